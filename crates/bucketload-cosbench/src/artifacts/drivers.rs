//! `DRIVER.csv` and `sI-STAGE-worker.csv`: one line per operation; `all-drivers.csv`: the drivers' addresses.

use std::fmt::Write as _;

use super::text::{number, present, ratio};
use super::{DriverRecord, OperationLine, StageRecord, cell};

const HEADER: &str = "Op-Type,Sample-Type,Op-Count,Byte-Count,Avg-ResTime,Avg-ProcTime,Throughput,\
Bandwidth,Succ-Ratio\n";

fn lines(all: &[OperationLine]) -> String {
    let mut out = HEADER.to_owned();
    for OperationLine {
        kind,
        sample,
        figures,
    } in all
    {
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
    out
}

pub(super) fn driver(driver: &DriverRecord) -> String {
    lines(&driver.lines)
}

pub(super) fn workers(stage: &StageRecord) -> String {
    lines(&stage.workers)
}

pub(super) fn all(drivers: &[DriverRecord]) -> String {
    let mut out = "Driver,URL\n".to_owned();
    for driver in drivers {
        let _ = writeln!(out, "{},{}", cell(&driver.name), cell(&driver.url));
    }
    out
}
