//! `workload.log`: the log of each stage and driver, under rules with their names.

use std::fmt::Write as _;

use super::Record;
use super::text::date;

/// Number of rule characters on each side of the title.
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
        let drivers = record.drivers.len();
        for (number, driver) in record.drivers.iter().enumerate() {
            let has_lines = stage.log.iter().any(|line| line.driver == number);
            if !(has_lines || stage.missions.is_empty() || stage.missions.contains(&number)) {
                continue;
            }
            let mission = index * drivers + number + 1;
            let name = &driver.name;
            let _ = writeln!(out, "{rule} mission: M{mission}, driver: {name} {rule}");
            for line in stage.log.iter().filter(|line| line.driver == number) {
                let when = date(line.at_ms, record.utc_offset_s);
                let _ = writeln!(out, "{when} {}", line.text);
            }
        }
    }
    out
}
