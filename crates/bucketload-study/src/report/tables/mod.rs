//! The tables of an experiment: what its tables ask for, made of its groups.
//!
//! [`general`] has those of any run, [`named`] and [`hpc`] those of other benchmarks with their layouts and
//! published values, [`balance`] how load was spread, [`special`] what single kinds of cells have.

mod balance;
mod general;
mod hpc;
mod named;
mod special;

use super::groups::Measured;
use super::read::Files;
use super::table::Table;
use crate::model::{self, TableKind};

/// The tables of an experiment; `all` are the study's, for tables over several experiments.
pub(super) fn of(files: &Files, all: &[Measured], measured: &Measured) -> Vec<Table> {
    let mut out = Vec::new();
    for asked in &measured.experiment.tables {
        out.extend(one(files, all, measured, asked));
    }
    out.retain(|table| !table.rows.is_empty());
    out
}

fn one(files: &Files, all: &[Measured], measured: &Measured, asked: &model::Table) -> Vec<Table> {
    match asked.kind {
        TableKind::Summary => vec![general::summary(measured, asked)],
        TableKind::Ladder => general::ladder(measured, asked),
        TableKind::Latency => vec![general::latency(measured, asked)],
        TableKind::Multiples => general::multiples(files, measured, asked),
        TableKind::Clients => vec![general::clients(measured, asked)],
        TableKind::Verdicts => vec![verdicts(measured)],
        TableKind::Ossperf => named::ossperf(files, all),
        TableKind::Grid => named::grid(files, measured, asked),
        TableKind::Io500 => vec![hpc::io500(measured, asked)],
        TableKind::MdWorkbench => vec![hpc::workbench(files, measured, asked)],
        TableKind::Scaling => vec![special::scaling(measured, asked)],
        TableKind::Capacity => vec![special::capacity(measured, asked)],
        TableKind::LoadBalance => balance::balance(files, measured, asked),
    }
}

/// Every cell of an experiment with its verdict.
pub(super) fn verdicts(measured: &Measured) -> Table {
    special::verdicts(measured)
}

/// Every run of a study with its figures, for programs.
pub(super) fn cells(files: &Files, all: &[Measured]) -> Table {
    special::cells(files, all)
}

/// The title of a table: the one given, or the experiment's with `what`.
fn title(measured: &Measured, asked: &model::Table, what: &str) -> String {
    match asked.title.as_str() {
        "" => format!("{}: {what}", measured.experiment.label()),
        given => given.to_owned(),
    }
}

/// The name of a table's files.
fn name(measured: &Measured, asked: &model::Table, parts: &[&str]) -> String {
    let mut all = vec![measured.experiment.name.as_str(), asked.kind.name()];
    all.extend(parts.iter().copied().filter(|part| !part.is_empty()));
    all.join("-")
}
