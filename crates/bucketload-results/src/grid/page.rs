//! A grid as a page.

use super::published::{NODES, SYSTEMS, published};
use super::text::{METADATA, StudyTable, THROUGHPUT, marks, rate, time, wide_rows};
use super::{Cell, GridResult, Header, StepCell};
use crate::kit::{Axis, Chart, Page, Section, Series, Table, Unit, VerdictBox};
use crate::study;
use crate::units::MIB;

/// The page of a grid as one self-contained HTML file.
#[must_use]
pub fn html(result: &GridResult) -> String {
    let header = &result.header;
    let complete = result.measured() >= result.wanted();
    let bound = steps(result).filter(|(_, step)| step.client_bound).count();
    let mut reasons = header
        .dropped
        .iter()
        .map(|row| format!("Dropped: {row}."))
        .collect::<Vec<_>>();
    if bound > 0 {
        reasons.push(format!(
            "{bound} figures, marked c, show the client rather than the store: they take less than twice the \
             time of the same work on the null target, or their run was client-bound."
        ));
    }
    reasons.extend(result.warnings.iter().map(|warning| format!("{warning}.")));
    Page {
        title: format!("Files, sizes and processes on {}", header.target),
        subtitle: study::origin(&header.started, &header.version, &header.command_line),
        verdict: VerdictBox {
            word: if complete { "GRID" } else { "INTERRUPTED" }.to_owned(),
            tone: match (complete, bound + result.warnings.len()) {
                (false, _) => "bad",
                (true, 0) => "good",
                (true, _) => "warn",
            },
            meaning: format!(
                "{} runs: {} rows with {} process counts, {} runs each in random order; in flight per \
                 process: {}; scale {} of the study's number of files.",
                result.measured(),
                header.rows.len(),
                header.processes.len(),
                header.repetitions,
                header.streams,
                header.scale
            ),
            reasons,
            ..VerdictBox::default()
        },
        facts: facts(result),
        first: first(result),
        sections: [
            throughput(result),
            metadata(result),
            Some(all(result)),
            Some(times(result)),
            reference(result),
            Some(method(header)),
        ]
        .into_iter()
        .flatten()
        .collect(),
    }
    .render()
}

/// The highest rate of each step, and with how many processes.
fn facts(result: &GridResult) -> Vec<(String, String)> {
    let best = |step: &str| {
        let cells = steps(result).filter(|(_, of)| of.step == step && of.figures.a_mean > 0.0);
        let by_rate = |a: &(&Cell, &StepCell), b: &(&Cell, &StepCell)| {
            a.1.figures.a_mean.total_cmp(&b.1.figures.a_mean)
        };
        let (cell, of) = cells.max_by(by_rate)?;
        let rate = Unit::BytesPerS.show(of.figures.a_mean * MIB);
        Some((
            format!("fastest {step}"),
            format!("{rate} (P = {})", cell.processes),
        ))
    };
    ["write", "read"].into_iter().filter_map(best).collect()
}

/// The charts of throughput, if any row has bytes.
fn first(result: &GridResult) -> Vec<Chart> {
    match facts(result).is_empty() {
        true => Vec::new(),
        false => vec![
            curves(result, "Write", "write"),
            curves(result, "Read", "read"),
        ],
    }
}

fn steps(result: &GridResult) -> impl Iterator<Item = (&Cell, &StepCell)> {
    result
        .cells
        .iter()
        .flat_map(|cell| cell.steps.iter().map(move |step| (cell, step)))
}

/// Those of `tables` that have rows, in the study's layout; the last one explains the marks.
fn wide(result: &GridResult, tables: &[StudyTable]) -> Vec<Table> {
    let mut head = vec!["files x bytes".to_owned()];
    let processes = result.header.processes.iter();
    head.extend(processes.map(|n| format!("P = {n}")));
    let table = |table: &StudyTable| {
        let rows = wide_rows(result, table)
            .into_iter()
            .map(|(_, name, cells)| {
                let mut line = vec![name];
                line.extend(cells.into_iter().map(|cell| {
                    let text = cell.map(|s| format!("{} {}", rate(table.2(s)), marks(s)));
                    text.unwrap_or_default().trim_end().to_owned()
                }));
                line
            });
        Table::new(1, head.clone()).titled(table.0).with(rows)
    };
    let mut tables: Vec<Table> = tables.iter().map(table).collect();
    tables.retain(|table| !table.rows.is_empty());
    if let Some(last) = tables.last_mut() {
        last.note =
            "c: client-bound; !: one process much slower than the mean; x: operations failed"
                .to_owned();
    }
    tables
}

/// One curve per number of processes over the file size.
fn curves(result: &GridResult, title: &str, step: &str) -> Chart {
    let mut lines = Vec::new();
    for (look, &n) in result.header.processes.iter().enumerate() {
        let cells = || {
            let all = result.cells.iter();
            all.filter(move |cell| cell.processes == n && cell.size_bytes > 0)
        };
        let line = |name: String, figure: fn(&StepCell) -> f64| {
            let points = cells().filter_map(|cell| {
                let value = figure(cell.step(step)?) * MIB;
                Some((cell.size_bytes as f64, Some(value).filter(|v| *v > 0.0)))
            });
            let mut line = Series::line(name, look, points);
            line.points.sort_by(|a, b| a.x.total_cmp(&b.x));
            line.markers = true;
            line
        };
        lines.push(line(format!("P = {n}"), |s| s.figures.a_mean));
        if n > 1 {
            let slowest = line(format!("P = {n}, slowest"), |s| s.figures.a_slow);
            lines.push(slowest.dashed());
        }
    }
    Chart::lines(
        title,
        Axis::log("file size", Unit::Bytes),
        Axis::log("A_mean", Unit::BytesPerS),
        lines,
    )
    .noted("One point per row; dashed: A_slow, from the slowest process.")
}

fn throughput(result: &GridResult) -> Option<Section> {
    let tables = wide(result, &THROUGHPUT);
    let intro =
        "A_mean: files times size of all processes over the mean of their times, as in the study.";
    (!tables.is_empty()).then(|| Section::new("Throughput", intro).tables(tables))
}

fn metadata(result: &GridResult) -> Option<Section> {
    let tables = wide(result, &METADATA);
    let steps = METADATA.iter().filter_map(|table| {
        let (row, _, _) = wide_rows(result, table).into_iter().next()?;
        Some((table.1, row))
    });
    let lines = steps.enumerate().map(|(look, (step, row))| {
        let cells = result.cells.iter().filter(|cell| cell.row == row.name);
        let points = cells.filter_map(|cell| {
            let figure = cell.step(step)?.figures.r_mean;
            Some((f64::from(cell.processes), figure))
        });
        Series::line(step, look, points)
    });
    let chart = Chart::lines(
        "Empty files",
        Axis::log("processes", Unit::Number),
        Axis::linear("R_mean", Unit::PerS),
        lines,
    );
    let several = result.header.processes.len() > 1;
    let intro = "R_mean: files of all processes over the mean of their times.";
    (!tables.is_empty()).then(|| {
        Section::new("Metadata", intro)
            .tables(tables)
            .charts(several.then_some(chart))
    })
}

fn all(result: &GridResult) -> Section {
    let rows = steps(result).map(|(cell, step)| {
        let f = step.figures;
        [
            cell.row.clone(),
            step.step.clone(),
            cell.processes.to_string(),
            rate(f.a_mean),
            rate(f.a_slow),
            rate(f.a_wall),
            rate(f.a_sum),
            rate(f.r_mean),
            format!("{:.1} %", step.spread * 100.0),
            step.failed.to_string(),
            marks(step),
        ]
    });
    let head = [
        "row", "step", "P", "A_mean", "A_slow", "A_wall", "A_sum", "R_mean", "spread", "failed",
        "marks",
    ];
    let intro = "A_wall ≤ A_slow ≤ A_mean ≤ A_sum always holds; they differ where processes differ. A in MiB/s, \
                 R in files/s. Spread: largest deviation of a run from the mean of the runs.";
    Section::new("Four definitions of the rate", intro).tables([Table::new(2, head).with(rows)])
}

fn times(result: &GridResult) -> Section {
    let rows = steps(result).map(|(cell, step)| {
        let f = step.figures;
        let [p50, p90, p99, max] = step.latency_s.map(time);
        [
            cell.row.clone(),
            step.step.clone(),
            cell.processes.to_string(),
            time(f.mean_s),
            time(f.max_s),
            format!("{:.2}", f.max_over_mean),
            format!("{:.1} %", f.cv * 100.0),
            time(step.start_skew_s),
            p50,
            p90,
            p99,
            max,
            step.floor_s.map_or_else(|| "–".to_owned(), time),
            step.floor_ratio
                .map_or_else(|| "–".to_owned(), |r| format!("{r:.1}")),
        ]
    });
    let head = [
        "row",
        "step",
        "P",
        "mean T",
        "max T",
        "max/mean",
        "CV",
        "start skew",
        "p50",
        "p90",
        "p99",
        "max",
        "floor",
        "T / floor",
    ];
    let intro = "T: from a process's first request to the end of its last. Floor: mean T of the same work on the \
                 null target; a time below twice the floor shows the client.";
    Section::new("Times and floor", intro).tables([Table::new(2, head).with(rows)])
}

/// The study's figures for the same rows.
fn reference(result: &GridResult) -> Option<Section> {
    let mut head = vec!["files x bytes".to_owned()];
    for system in SYSTEMS {
        head.extend(NODES.iter().map(|n| format!("{system}-{n}")));
    }
    let table = |step: &str| {
        let rows = result.header.rows.iter().filter_map(|row| {
            let values = published(step, &row.name)?;
            let mut line = vec![format!("{} x {}", row.full_files, row.size_bytes)];
            line.extend(values.iter().map(|value| rate(*value)));
            Some(line)
        });
        let title = format!("Published, corrected: {step}, MiB/s; empty files in files/s");
        Table::new(1, head.clone()).titled(title).with(rows)
    };
    let mut tables = vec![table("write"), table("read")];
    tables.retain(|table| !table.rows.is_empty());
    let intro = "A_mean of the CS597 study \"Benchmarking Storage Systems\", recomputed from its raw times \
                 on 4, 16 and 64 nodes with one process each, on machines of 2016. For orientation only: \
                 many of these figures show the study's clients.";
    (!tables.is_empty()).then(|| Section::new("The study", intro).tables(tables))
}

fn method(header: &Header) -> Section {
    let text = "A process is a closed-loop worker of this client with its own connection. All processes of a \
                cell run on one machine and start together: each writes its files, waits for the others, reads \
                the files that it wrote, and deletes them. Data read is discarded in memory. Payloads are \
                unique and incompressible. Rows are measured in random order, once per repetition.";
    let settings = header.settings.iter().map(|(name, value)| [name, value]);
    let mut tables = vec![Table::pairs("Settings").with(settings)];
    tables.retain(|table| !table.rows.is_empty());
    Section::new("Method", text).tables(tables)
}
