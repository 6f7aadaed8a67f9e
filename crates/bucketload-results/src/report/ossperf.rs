//! The six steps of OSSperf.

use super::page::{Section, Table};
use crate::output::OSSPERF_STEPS;
use crate::result::Ossperf;
use crate::units;

/// Times, sum and bandwidths.
pub(super) fn section(run: &Ossperf) -> Section {
    let mut rows: Vec<Vec<String>> = OSSPERF_STEPS
        .iter()
        .zip(&run.steps)
        .enumerate()
        .map(|(number, (what, step))| {
            vec![
                format!("{}. {what}", number + 1),
                format!("{:.6} s", step.time_ns as f64 / 1e9),
                units::count(step.ok),
                units::count(step.failed),
                match number {
                    1 | 3 => format!("{} Mbit/s", run.bandwidth_text(number)),
                    _ => String::new(),
                },
            ]
        })
        .collect();
    rows.push(vec![
        "sum".to_owned(),
        format!("{} s", run.sum_s()),
        String::new(),
        String::new(),
        String::new(),
    ]);
    Section {
        title: "OSSperf".to_owned(),
        intro: format!(
            "{} files of {} bytes. Bandwidths are computed from times cut off to milliseconds, as in \
             results.csv.",
            units::count(run.files),
            units::count(run.size_bytes)
        ),
        tables: vec![Table {
            head: ["step", "time", "succeeded", "failed", "bandwidth"]
                .map(str::to_owned)
                .to_vec(),
            rows,
            note: match run.incomplete.as_str() {
                "" => String::new(),
                why => format!("No line for results.csv: {why}."),
            },
            ..Table::default()
        }],
        charts: Vec::new(),
    }
}
