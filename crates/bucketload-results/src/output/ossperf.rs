//! The six steps of OSSperf as text.

use std::fmt::{self, Write as _};

use crate::result::Ossperf;
use crate::units;

/// Descriptions of the steps, in order.
pub(crate) const WHAT: [&str; 6] = [
    "create the bucket",
    "upload the files",
    "list the bucket",
    "download the files",
    "erase the objects",
    "erase the bucket",
];

/// Appends times, sum and bandwidths.
pub(super) fn write(out: &mut String, run: &Ossperf) -> fmt::Result {
    writeln!(
        out,
        "OSSperf: {} files of {} bytes",
        units::count(run.files),
        units::count(run.size_bytes)
    )?;
    for (number, (what, step)) in WHAT.iter().zip(&run.steps).enumerate() {
        let failed = match step.failed {
            0 => String::new(),
            n => format!("  {} failed", units::count(n)),
        };
        let time = format!("{:.6} s", step.time_ns as f64 / 1e9);
        writeln!(out, "  [{}] {what:<19} {time:>14}{failed}", number + 1)?;
    }
    writeln!(out, "      {:<19} {:>12} s", "sum", run.sum_s().to_string())?;
    for (name, step) in [("upload", 1), ("download", 3)] {
        let bandwidth = run.bandwidth_text(step);
        writeln!(
            out,
            "      {:<19} {bandwidth:>12} Mbit/s",
            format!("{name} bandwidth")
        )?;
    }
    if !run.incomplete.is_empty() {
        writeln!(out, "  no line for results.csv: {}", run.incomplete)?;
    }
    Ok(())
}
