//! `workload.log`: the log of each stage under a rule with its name.

use std::fmt::Write as _;

use super::Record;
use super::text::date;

/// Signs of a rule on each side of its title.
const RULE: usize = 25;

pub(super) fn log(record: &Record) -> String {
    let mut out = String::new();
    for (index, stage) in record.stages.iter().enumerate() {
        let rule = "=".repeat(RULE);
        let _ = writeln!(out, "{rule} stage: {} {rule}", stage.id(index));
        if stage.rows.is_empty() {
            continue;
        }
        let rule = "-".repeat(RULE);
        let _ = writeln!(
            out,
            "{rule} mission: M{}, driver: {} {rule}",
            index + 1,
            record.driver
        );
        for (at_ms, text) in &stage.log {
            let when = date(*at_ms, record.utc_offset_s);
            let _ = writeln!(out, "{when} {text}");
        }
    }
    out
}
