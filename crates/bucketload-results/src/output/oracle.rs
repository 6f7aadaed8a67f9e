//! The findings of the consistency oracle as text.

use std::fmt::{self, Write as _};

use bucketload_core::oracle::{Finding, FindingKind};

use crate::kit::Style;
use crate::result::OracleResult;
use crate::units;

/// Number of findings shown in full.
const SHOWN: usize = 5;

/// Appends the oracle's findings.
pub(super) fn write(out: &mut String, oracle: &OracleResult, colour: bool) -> fmt::Result {
    let word = match (&oracle.summary, oracle.is_clean()) {
        (_, false) => Style::Bad.paint("INCONSISTENT", colour),
        (Some(_), true) => Style::Good.paint("no findings", colour),
        (None, true) => Style::Warn.paint("unfinished, no findings so far", colour),
    };
    writeln!(out, "Oracle: {word}")?;
    if let Some(s) = &oracle.summary {
        let share = if s.share < 1.0 {
            format!(" ({} of all)", units::percent(s.share))
        } else {
            String::new()
        };
        writeln!(
            out,
            "  {} keys tracked{share}: {} writes and deletes ({} of unknown outcome), {} reads and {} \
             listings judged",
            units::count(s.keys),
            units::count(s.mutations),
            units::count(s.unknown),
            units::count(s.reads),
            units::count(s.lists),
        )?;
        writeln!(
            out,
            "  audit: {} objects read{}{}",
            units::count(s.audited),
            match s.unaudited {
                0 => String::new(),
                n if s.unaudited_why.is_empty() => {
                    format!(", {} could not be read", units::count(n))
                }
                n => format!(
                    ", {} could not be read: {}",
                    units::count(n),
                    s.unaudited_reasons()
                ),
            },
            match s.unjudged {
                0 => String::new(),
                n => format!("; {} answers could not be judged", units::count(n)),
            }
        )?;
    }
    for kind in FindingKind::ALL {
        let Some(count) = oracle.found.get(&kind).filter(|count| count.findings > 0) else {
            continue;
        };
        let answers = if count.answers > count.findings {
            format!(" in {} answers", units::count(count.answers))
        } else {
            String::new()
        };
        writeln!(
            out,
            "  {}: {}{answers}, {}",
            Style::Bad.paint(kind.name(), colour),
            units::count(count.findings),
            kind.meaning()
        )?;
    }
    for finding in oracle.findings.iter().take(SHOWN) {
        writeln!(out, "    {}", line(finding))?;
    }
    if !oracle.is_clean() {
        writeln!(out, "  evidence: oracle.jsonl in the run directory")?;
    }
    Ok(())
}

/// A finding as one line.
fn line(finding: &Finding) -> String {
    let mut text = format!(
        "{}: {} {} at {}: {}; expected {}",
        finding.kind,
        if finding.audit {
            "audit of".to_owned()
        } else {
            finding.class.to_string()
        },
        finding.key,
        units::seconds(finding.start_ns as f64 / 1e9),
        finding.observed,
        finding.expected
    );
    if let Some(missed) = &finding.missed
        && let Some(at) = missed.acknowledged_ns
    {
        let _ = write!(
            text,
            " (acknowledged at {})",
            units::seconds(at as f64 / 1e9)
        );
    }
    for (what, id) in [
        ("read", &finding.request_id),
        (
            "write",
            finding
                .missed
                .as_ref()
                .map_or(&finding.request_id, |m| &m.request_id),
        ),
    ] {
        if !id.is_empty() {
            let _ = write!(text, ", {what} request {id}");
        }
    }
    text
}
