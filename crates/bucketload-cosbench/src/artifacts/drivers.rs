//! `DRIVER.csv` and `sI-STAGE-worker.csv`: a line per operation.

use std::fmt::Write as _;

use super::text::{number, present, ratio};
use super::{Figures, Record, StageRecord};

const HEADER: &str = "Op-Type,Sample-Type,Op-Count,Byte-Count,Avg-ResTime,Avg-ProcTime,Throughput,\
Bandwidth,Succ-Ratio\n";

fn line(out: &mut String, kind: &str, sample: &str, figures: &Figures) {
    let _ = writeln!(
        out,
        "{kind},{sample},{},{},{},{},{},{},{}",
        figures.ops,
        figures.bytes,
        present(figures.response_ms),
        present(figures.processing_ms),
        number(figures.throughput),
        number(figures.bandwidth),
        figures.success.map_or_else(|| "N/A".to_owned(), ratio)
    );
}

pub(super) fn driver(record: &Record) -> String {
    let mut out = HEADER.to_owned();
    for row in record.stages.iter().flat_map(|stage| &stage.rows) {
        line(&mut out, row.kind, row.sample, &row.figures);
    }
    out
}

pub(super) fn workers(stage: &StageRecord) -> String {
    let mut out = HEADER.to_owned();
    for worker in &stage.workers {
        line(&mut out, worker.kind, worker.sample, &worker.figures);
    }
    out
}
