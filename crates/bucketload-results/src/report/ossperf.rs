//! The six steps of OSSperf.

use crate::kit::{Section, Table};
use crate::output::OSSPERF_STEPS;
use crate::result::Ossperf;
use crate::units;

/// Times, sum and bandwidths.
pub(super) fn section(run: &Ossperf) -> Section {
    let steps = OSSPERF_STEPS.iter().zip(&run.steps).enumerate();
    let rows = steps.map(|(number, (what, step))| {
        [
            format!("{}. {what}", number + 1),
            format!("{:.6} s", step.time_ns as f64 / 1e9),
            units::count(step.ok),
            units::count(step.failed),
            match number {
                1 | 3 => format!("{} Mbit/s", run.bandwidth_text(number)),
                _ => String::new(),
            },
        ]
    });
    let blank = String::new;
    let sum = format!("{} s", run.sum_s());
    let head = ["step", "time", "succeeded", "failed", "bandwidth"];
    let table = Table::new(1, head)
        .with(rows)
        .with([["sum".to_owned(), sum, blank(), blank(), blank()]])
        .noted(match run.incomplete.as_str() {
            "" => String::new(),
            why => format!("No line for results.csv: {why}."),
        });
    let intro = format!(
        "{} files of {} bytes. Bandwidths are computed from times truncated to milliseconds, as in \
         results.csv.",
        units::count(run.files),
        units::count(run.size_bytes)
    );
    Section::new("OSSperf", intro).tables([table])
}
