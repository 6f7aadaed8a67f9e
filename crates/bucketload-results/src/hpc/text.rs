//! A comparison of access paths for the terminal.

use std::fmt::Write as _;

use super::{Cell, Figure, HpcResult, Record, STEPS};
use crate::kit::Table;
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
    // Writing to a string cannot fail.
    let mut out = format!(
        "Access paths to the objects of {}: {} of {} runs\n",
        header.root,
        result.trials,
        result.wanted()
    );
    for row in &header.rows {
        let _ = writeln!(out, "  {:12} {}", row.name, row.meaning);
    }
    for (&size, &objects) in header.sizes.iter().zip(&header.objects) {
        for &processes in &header.processes {
            let (each, processes_shown) = (units::bytes(size as f64), units::processes(processes));
            let _ = writeln!(out, "\n{each} x {objects}, {processes_shown}");
            let rows = header.rows.iter().filter_map(|row| {
                let cell = result.cell(&row.name, size, processes)?;
                let figures = STEPS.iter().map(|step| match cell.figure(step) {
                    None => "-".to_owned(),
                    Some(figure) => {
                        let ratio = ratio(result, cell, figure)
                            .map_or_else(String::new, |r| format!(" ({r:.2})"));
                        shown(figure, size) + &ratio
                    }
                });
                Some(
                    [row.name.clone()]
                        .into_iter()
                        .chain(figures)
                        .collect::<Vec<_>>(),
                )
            });
            let head = [""].into_iter().chain(STEPS);
            Table::new(1, head).with(rows).render(false, &mut out);
        }
    }
    let _ = writeln!(
        out,
        "\n{}; ratio to the figure of {BASE} in brackets; x: operations failed.\nA list is one operation over all \
         objects. Floors move the same bytes but store nothing.",
        medians(header.repetitions)
    );
    out
}

/// What each figure is, as the beginning of a sentence.
pub(super) fn medians(repetitions: u32) -> String {
    match repetitions {
        1 => "One run per figure".to_owned(),
        n => format!("Medians of {n} runs"),
    }
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
