//! The rounds of a list-consistency run as text.

use std::fmt::{self, Write as _};

use crate::result::{RoundsResult, StepResult};
use crate::units;

/// Appends how soon listings were correct.
pub(super) fn write(out: &mut String, rounds: &RoundsResult) -> fmt::Result {
    writeln!(out, "List consistency:")?;
    step(out, "after writing", &rounds.after_write)?;
    step(out, "after deleting", &rounds.after_delete)
}

fn step(out: &mut String, title: &str, step: &StepResult) -> fmt::Result {
    writeln!(
        out,
        "  {title}: {} of {} rounds consistent at the first listing ({}), {} listings",
        units::count(step.consistent),
        units::count(step.rounds),
        units::percent(step.share()),
        units::count(step.lists)
    )?;
    let (Some(median), Some(p90), Some(max)) = (
        step.window_ns(0.5),
        step.window_ns(0.9),
        step.window_ns(1.0),
    ) else {
        return Ok(());
    };
    let ns = |ns: u64| units::ns(ns as f64);
    writeln!(
        out,
        "    inconsistency window: median {}, p90 {}, max {} over {} rounds{}",
        ns(median),
        ns(p90),
        ns(max),
        units::count(step.windows_ns.len() as u64),
        if step.never == 0 {
            String::new()
        } else {
            format!("; {} never became consistent", units::count(step.never))
        }
    )?;
    writeln!(
        out,
        "    first listings missed {} objects and still showed {} deleted ones",
        units::count(step.missing),
        units::count(step.ghosts)
    )
}
