//! The tables of an experiment, as it requests them, computed from its groups.
//!
//! [`general`] has tables for all kinds of runs, [`named`] and [`hpc`] those of other benchmarks in their layouts with
//! published values, [`ai`] those of MLPerf Storage, [`balance`] the load balance, [`special`] results of single kinds of cells.

mod ai;
mod balance;
mod general;
mod hpc;
mod named;
mod special;

use bucketload_results::kit::{Cell, Column, Table};

use super::groups::Measured;
use super::read::Files;
use crate::model::{self, TableKind};

/// A requested table with its data.
#[derive(Clone, Copy)]
struct Request<'a> {
    files: &'a Files,
    measured: &'a Measured,
    table: &'a model::Table,
}

impl Request<'_> {
    /// The table without rows. `parts` distinguish its files from others of the experiment; `what` is its title if none
    /// was given.
    fn table(&self, parts: &[&str], what: &str, columns: Vec<Column>) -> Table {
        let mut name = vec![
            self.measured.experiment.name.as_str(),
            self.table.kind.name(),
        ];
        name.extend(parts.iter().copied().filter(|part| !part.is_empty()));
        let title = match self.table.title.as_str() {
            "" => format!("{}: {what}", self.measured.experiment.label()),
            given => given.to_owned(),
        };
        Table::named(&name.join("-"), title, columns)
    }
}

/// A column with the function that computes its cells.
type Shown<'a, R> = (Column, Box<dyn Fn(&R) -> Cell + 'a>);

/// A table described by its columns, each with a function from a row to a cell.
struct Sheet<'a, R>(Vec<Shown<'a, R>>);

impl<'a, R> Sheet<'a, R> {
    /// Adds a column.
    fn column(mut self, column: Column, cell: impl Fn(&R) -> Cell + 'a) -> Self {
        self.0.push((column, Box::new(cell)));
        self
    }

    /// Adds a column of texts, whose key is its title.
    fn text(self, title: &str, text: impl Fn(&R) -> String + 'a) -> Self {
        self.column(Column::text(title, title), move |row| Cell::Text(text(row)))
    }

    /// The columns alone, and the cells of each row.
    fn parts(self, rows: impl IntoIterator<Item = R>) -> (Vec<Column>, Vec<Vec<Cell>>) {
        let cells = |row| self.0.iter().map(|(_, cell)| cell(&row)).collect();
        let rows = rows.into_iter().map(cells).collect();
        (self.0.into_iter().map(|(column, _)| column).collect(), rows)
    }
}

/// The tables of an experiment; `all` are the study's, for tables over several experiments.
pub(super) fn of(files: &Files, all: &[Measured], measured: &Measured) -> Vec<Table> {
    let tables = measured.experiment.tables.iter();
    let mut out: Vec<Table> = tables
        .flat_map(|table| {
            let request = Request {
                files,
                measured,
                table,
            };
            one(&request, all)
        })
        .collect();
    out.retain(|table| !table.rows.is_empty());
    out
}

fn one(request: &Request<'_>, all: &[Measured]) -> Vec<Table> {
    match request.table.kind {
        TableKind::Summary => vec![general::summary(request)],
        TableKind::Ladder => general::ladder(request),
        TableKind::Latency => vec![general::latency(request)],
        TableKind::Multiples => general::multiples(request),
        TableKind::Clients => vec![general::clients(request)],
        TableKind::Verdicts => vec![verdicts(request.measured)],
        TableKind::Ossperf => named::ossperf(request.files, all),
        TableKind::Grid => named::grid(request),
        TableKind::Io500 => vec![hpc::io500(request)],
        TableKind::MdWorkbench => vec![hpc::workbench(request)],
        TableKind::Scaling => vec![special::scaling(request)],
        TableKind::Capacity => vec![special::capacity(request)],
        TableKind::Mlperf => vec![ai::mlperf(request)],
        TableKind::LoadBalance => balance::balance(request),
    }
}

pub(super) use special::{cells, verdicts};
