//! A comparison of access paths for the terminal.

use std::fmt::Write as _;

use super::{Cell, Figure, HpcResult, Record, STEPS};
use crate::units;

/// The row that the others are compared with.
pub(super) const BASE: &str = "posix";

/// True if a step is rated by bandwidth, which is the case from 1 MiB on; smaller objects are rated by operations.
pub(super) fn by_bytes(step: &str, size_bytes: u64) -> bool {
    matches!(step, "write" | "read") && size_bytes >= 1 << 20
}

/// The figure that a step is rated by.
pub(super) fn value(figure: &Figure, size_bytes: u64) -> f64 {
    match by_bytes(&figure.step, size_bytes) {
        true => figure.bytes_per_s,
        false => figure.ops_per_s,
    }
}

/// The figure as text, with `x` where operations failed.
pub(super) fn shown(figure: &Figure, size_bytes: u64) -> String {
    let failed = if figure.failed > 0 { " x" } else { "" };
    match by_bytes(&figure.step, size_bytes) {
        true => format!("{}/s{failed}", units::bytes(figure.bytes_per_s)),
        false => format!("{}{failed}", units::rate(figure.ops_per_s)),
    }
}

/// Ratio of a figure to that of the base row; `None` for the base itself or without its figure.
pub(super) fn ratio(result: &HpcResult, cell: &Cell, figure: &Figure) -> Option<f64> {
    let base = result
        .cell(BASE, cell.size_bytes, cell.processes)?
        .figure(&figure.step)?;
    let base = value(base, cell.size_bytes);
    (base > 0.0 && cell.row != BASE).then(|| value(figure, cell.size_bytes) / base)
}

/// The whole result.
#[must_use]
pub fn text(result: &HpcResult) -> String {
    let header = &result.header;
    let mut out = String::new();
    // Writing to a string cannot fail.
    let mut line = |text: String| {
        let _ = writeln!(out, "{}", text.trim_end());
    };
    line(format!(
        "Access paths to the objects of {}: {} of {} runs",
        header.root,
        result.trials,
        result.wanted()
    ));
    for row in &header.rows {
        line(format!("  {:12} {}", row.name, row.meaning));
    }
    for (&size, &objects) in header.sizes.iter().zip(&header.objects) {
        for &processes in &header.processes {
            line(String::new());
            line(format!(
                "{} x {objects}, {}",
                units::bytes(size as f64),
                units::processes(processes)
            ));
            let head: String = STEPS.iter().map(|step| format!("{step:>24}")).collect();
            line(format!("  {:12}{head}", ""));
            for row in &header.rows {
                let Some(cell) = result.cell(&row.name, size, processes) else {
                    continue;
                };
                let figures: String = STEPS
                    .iter()
                    .map(|step| match cell.figure(step) {
                        None => format!("{:>24}", "-"),
                        Some(figure) => {
                            let ratio = ratio(result, cell, figure)
                                .map_or_else(String::new, |r| format!(" ({r:.2})"));
                            format!("{:>24}", shown(figure, size) + &ratio)
                        }
                    })
                    .collect();
                line(format!("  {:12}{figures}", row.name));
            }
        }
    }
    line(String::new());
    line(format!(
        "Medians of {} runs; ratio to the figure of {BASE} in brackets; x: operations failed. A list is one \
         operation over all objects. Floors move the same bytes but store nothing.",
        header.repetitions
    ));
    out
}

/// One line about a trial, printed when it ends.
#[must_use]
pub fn trial_line(record: &Record) -> String {
    let steps: Vec<String> = record
        .steps
        .iter()
        .map(|step| {
            let rate = match by_bytes(&step.step, record.size_bytes) {
                true => units::bytes(step.rate(step.bytes)) + "/s",
                false => units::rate(step.rate(step.ok)),
            };
            format!("{} {rate}", step.step)
        })
        .collect();
    format!(
        "bucketload: {} {} P={} run {}: {}",
        record.row,
        units::bytes(record.size_bytes as f64),
        record.processes,
        record.repetition + 1,
        steps.join(", ")
    )
}
