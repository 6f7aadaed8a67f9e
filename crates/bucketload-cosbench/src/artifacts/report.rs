//! `wN-NAME.csv`, and the lines of `workloads.csv` and `run-history.csv`.

use std::fmt::Write as _;

use super::text::{date, number, present, ratio, states};
use super::{Record, Row, StageRecord, cell};

const HEADER: &str = "Stage,Op-Name,Op-Type,Op-Count,Byte-Count,Avg-ResTime,Avg-ProcTime,60%-ResTime,\
80%-ResTime,90%-ResTime,95%-ResTime,99%-ResTime,100%-ResTime,Throughput,Bandwidth,Succ-Ratio,Status,\
Detailed Status\n";
/// Number of cells with figures in a row.
const CELLS: usize = 15;

/// Mean times, percentiles, rates and success of a row, each preceded by a comma.
fn figures(out: &mut String, row: &Row) {
    let figures = &row.figures;
    let _ = write!(
        out,
        ",{},{}",
        present(figures.response_ms),
        present(figures.processing_ms)
    );
    match row.percentiles {
        Some(percentiles) => percentiles.iter().for_each(|ms| {
            let _ = write!(out, ",{}", number(*ms));
        }),
        None => out.push_str(&",N/A".repeat(6)),
    }
    let success = figures.success.map_or_else(|| "N/A".to_owned(), ratio);
    let _ = write!(
        out,
        ",{},{},{success}",
        number(figures.throughput),
        number(figures.bandwidth)
    );
}

fn status(stage: &StageRecord, utc_offset_s: i64) -> String {
    let last = stage.states.last().map_or("waiting", |state| state.name);
    format!(",{last}{}\n", states(&stage.states, utc_offset_s))
}

pub(super) fn workload(record: &Record) -> String {
    let mut out = HEADER.to_owned();
    for (index, stage) in record.stages.iter().enumerate() {
        let status = status(stage, record.utc_offset_s);
        if stage.rows.is_empty() {
            out.push_str(&cell(&stage.name));
            out.push_str(&",N/A".repeat(CELLS));
            out.push_str(&status);
        }
        for row in &stage.rows {
            let _ = write!(
                out,
                "{},{},{},{},{}",
                cell(&stage.id(index)),
                cell(&row.title()),
                row.kind,
                row.figures.ops,
                row.figures.bytes
            );
            figures(&mut out, row);
            out.push_str(&status);
        }
    }
    out
}

pub(super) fn workloads(record: &Record) -> String {
    let mut out = String::new();
    for (index, stage) in record.stages.iter().enumerate() {
        for (number, row) in stage.rows.iter().enumerate() {
            let _ = write!(
                out,
                "w{}-{}-{},{},{},{},{}",
                record.number,
                cell(&stage.id(index)),
                number + 1,
                cell(&row.title()),
                row.figures.ops,
                row.figures.bytes,
                row.workers
            );
            figures(&mut out, row);
            let config = row.config.replace(',', "-").replace([';', '\n', '\r'], " ");
            let _ = writeln!(out, ",{}% {config}", row.ratio);
        }
    }
    out
}

pub(super) fn history(record: &Record) -> String {
    let at = |name: &str| {
        let found = record.states.iter().find(|state| state.name == name);
        found.map_or_else(String::new, |state| date(state.at_ms, record.utc_offset_s))
    };
    let mut kinds: Vec<&str> = Vec::new();
    for row in record.stages.iter().flat_map(|stage| &stage.rows) {
        if !kinds.contains(&row.kind) {
            kinds.push(row.kind);
        }
    }
    let last = record.states.last();
    let stopped = last.map_or_else(String::new, |s| date(s.at_ms, record.utc_offset_s));
    format!(
        "w{},{},{},{},{stopped},{},{}{}\n",
        record.number,
        cell(&record.name),
        at("queuing"),
        at("processing"),
        kinds.join(" "),
        last.map_or("queuing", |state| state.name),
        states(&record.states, record.utc_offset_s),
    )
}
