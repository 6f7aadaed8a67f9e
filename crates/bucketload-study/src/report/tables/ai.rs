//! Training, checkpoints and caches in the columns of MLPerf Storage, beside what this program adds.

use bucketload_results::kit::{Cell, Column, Table, Unit};

use super::super::groups::Group;
use super::super::show::{self, Ops};
use super::general::Row;
use super::{Request, Sheet};
use crate::model::{Command, Metric};

/// Options that make a run smaller than the benchmark's.
const SCALES: [&str; 3] = ["scale", "bytes-per-token", "block-bytes"];

/// One row per target and value, in the columns of the command's benchmark.
pub(super) fn mlperf(request: &Request<'_>) -> Table {
    let measured = request.measured;
    let rows = measured.groups.iter().map(|group| Row {
        group,
        ops: Ops {
            phase: "",
            class: "",
        },
    });
    let sheet = Sheet(Vec::new()).keys(measured, &[]);
    let field = measured.experiment.field.as_str();
    let (sheet, what, note) = match measured.experiment.command {
        Command::Train => (training(sheet, field), "columns of MLPerf", TRAINING),
        Command::Checkpoint => (checkpoints(sheet, field), "both definitions", CHECKPOINTS),
        _ => (cache(sheet, field), "hits and loads", CACHE),
    };
    let (columns, rows) = sheet.runs().verdict().parts(rows);
    let options = &measured.experiment.options;
    let scaled = SCALES.iter().find(|name| options.contains_key(**name));
    let scaled = scaled.map_or(String::new(), |name| {
        format!(" Scaled down by --{name}: not comparable with published results.")
    });
    let note = format!("{note}{scaled} {}", show::NOTE);
    let made = request.table(&[], what, columns).noted(note);
    Table { rows, ..made }.compact()
}

const TRAINING: &str = "AU, samples/s and I/O rate as DLIO computes them: means over the epochs, without the first step; \
     the I/O rate is from nominal record sizes. Passes: runs that reached the model's mark, completed every epoch and \
     lost no read.";

const CHECKPOINTS: &str = "DLIO: the bytes of all ranks over the longest time of a rank since its own start. From the \
     barrier: over the time from the common barrier to the last byte of the last rank, which is what a training job \
     waits for. Incomplete checkpoints enter no mean.";

const CACHE: &str = "Hits are blocks (tokens) found before the first miss of their request. Load time: from the first GET \
     to the last needed block. Within target: share of the requests that were loaded within the first target of their \
     class, from arrival.";

/// A column with the number of accelerators, ranks or requests, unless it is the swept value.
fn number<'a>(sheet: Sheet<'a, Row<'a>>, title: &'static str, field: &str) -> Sheet<'a, Row<'a>> {
    if field == title {
        return sheet;
    }
    sheet.column(Column::number(title, title), |row| {
        match row.group.extra.ai.number {
            0 => Cell::None,
            n => Cell::Count(n),
        }
    })
}

fn model<'a>(sheet: Sheet<'a, Row<'a>>) -> Sheet<'a, Row<'a>> {
    sheet.text("model", |row| {
        let model = row.group.extra.ai.model.as_str();
        model.strip_prefix("train-").unwrap_or(model).to_owned()
    })
}

fn training<'a>(sheet: Sheet<'a, Row<'a>>, field: &str) -> Sheet<'a, Row<'a>> {
    let passes = |row: &Row<'_>| {
        let all = row.group.counted().count();
        match all {
            0 => Cell::None,
            _ => Cell::Text(format!("{} of {all}", row.group.extra.ai.passed)),
        }
    };
    number(model(sheet), "accelerators", field)
        .metrics(&[
            ("AU", Metric::Au),
            ("samples/s", Metric::Samples),
            ("I/O rate", Metric::InputRate),
        ])
        .column(Column::text("passes", "passes"), passes)
}

fn checkpoints<'a>(sheet: Sheet<'a, Row<'a>>, field: &str) -> Sheet<'a, Row<'a>> {
    let size = |group: &Group| match group.extra.ai.bytes {
        0 => Cell::None,
        bytes => Cell::figure(bytes as f64, None, |v| Unit::Bytes.show(v)),
    };
    number(model(sheet), "ranks", field)
        .column(
            Column::number("checkpoint", "checkpoint_bytes"),
            move |row| size(row.group),
        )
        .metrics(&[
            ("write (DLIO)", Metric::DlioWrite),
            ("time (DLIO)", Metric::DlioWriteTime),
            ("write from the barrier", Metric::CheckpointWrite),
            ("time to write", Metric::CheckpointWriteTime),
            ("read (DLIO)", Metric::DlioRead),
            ("time of reads (DLIO)", Metric::DlioReadTime),
            ("read from the barrier", Metric::CheckpointRead),
            ("time to read", Metric::CheckpointReadTime),
        ])
}

fn cache<'a>(sheet: Sheet<'a, Row<'a>>, field: &str) -> Sheet<'a, Row<'a>> {
    number(sheet, "requests", field).metrics(&[
        ("block hits", Metric::HitRatio),
        ("token hits", Metric::TokenHitRatio),
        ("load p50", Metric::LoadP50),
        ("load p99", Metric::LoadP99),
        ("within target", Metric::Attainment),
    ])
}
