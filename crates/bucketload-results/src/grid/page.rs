//! A grid as a page.

use super::published::{NODES, SYSTEMS, published};
use super::text::{marks, rate, time};
use super::{Cell, GridResult, Row, StepCell};
use crate::report::page::{Axis, Chart, Page, Section, Series, Table, VerdictBox};

const MIB: f64 = 1_048_576.0;

/// The page of a grid as one self-contained HTML file.
#[must_use]
pub fn html(result: &GridResult) -> String {
    page(result).render()
}

fn page(result: &GridResult) -> Page {
    let header = &result.header;
    let complete = result.measured() >= result.wanted();
    let bound = steps(result).filter(|(_, step)| step.client_bound).count();
    let mut reasons = header
        .dropped
        .iter()
        .map(|row| format!("Left out: {row}."))
        .collect::<Vec<_>>();
    if bound > 0 {
        reasons.push(format!(
            "{bound} figures, marked c, show the client rather than the store: less than twice the time of \
             the same work on the null target, or a run that was client-bound."
        ));
    }
    reasons.extend(result.warnings.iter().map(|warning| format!("{warning}.")));
    let settings = header
        .settings
        .iter()
        .map(|(name, value)| (name.clone(), value.clone()));
    Page {
        title: format!("Files, sizes and processes on {}", header.target),
        subtitle: format!(
            "Started {}, Bucketload {}. {}",
            header.started,
            header.version,
            header.command_line.join(" ")
        ),
        verdict: VerdictBox {
            word: if complete { "GRID" } else { "INTERRUPTED" }.to_owned(),
            tone: match (complete, bound + result.warnings.len()) {
                (false, _) => "bad",
                (true, 0) => "good",
                (true, _) => "warn",
            },
            meaning: format!(
                "{} runs: {} rows with {} numbers of processes, {} runs each in random order; {} requests \
                 in flight per process, {} times the files of the study.",
                result.measured(),
                header.rows.len(),
                header.processes.len(),
                header.repetitions,
                header.streams,
                header.scale
            ),
            reasons,
        },
        facts: settings.collect(),
        sections: vec![
            throughput(result),
            metadata(result),
            Some(all(result)),
            Some(times(result)),
            reference(result),
            Some(method()),
        ]
        .into_iter()
        .flatten()
        .collect(),
    }
}

fn steps(result: &GridResult) -> impl Iterator<Item = (&Cell, &StepCell)> {
    result
        .cells
        .iter()
        .flat_map(|cell| cell.steps.iter().map(move |step| (cell, step)))
}

/// A table as in the study: rows of files and sizes, columns of processes.
fn wide<'a>(
    result: &'a GridResult,
    title: &str,
    step: &str,
    rows: impl Iterator<Item = &'a Row>,
    figure: fn(&StepCell) -> f64,
) -> Option<Table> {
    let header = &result.header;
    let mut head = vec!["files x bytes".to_owned()];
    head.extend(header.processes.iter().map(|n| format!("P = {n}")));
    let rows: Vec<Vec<String>> = rows
        .filter_map(|row| {
            let cells: Vec<String> = header
                .processes
                .iter()
                .map(|&n| {
                    let found = result.cell(&row.name, n).and_then(|cell| cell.step(step));
                    found.map_or_else(String::new, |s| {
                        format!("{} {}", rate(figure(s)), marks(s))
                            .trim_end()
                            .to_owned()
                    })
                })
                .collect();
            let measured = cells.iter().any(|cell| !cell.is_empty());
            let mut line = vec![format!("{} x {}", row.files, row.size_bytes)];
            line.extend(cells);
            measured.then_some(line)
        })
        .collect();
    (!rows.is_empty()).then(|| Table {
        title: title.to_owned(),
        head,
        rows,
        note: String::new(),
        text: false,
    })
}

/// The tables that there are, with what the marks mean under the last one.
fn explained(tables: impl Iterator<Item = Option<Table>>) -> Vec<Table> {
    let mut tables: Vec<Table> = tables.flatten().collect();
    if let Some(last) = tables.last_mut() {
        last.note =
            "c: client-bound; !: one process much slower than the mean; x: operations failed"
                .to_owned();
    }
    tables
}

/// One curve per number of processes over the size of files.
fn curves(result: &GridResult, title: &str, step: &str) -> Chart {
    let mut chart = Chart::lines(
        title,
        Axis::log("file size", "B"),
        Axis::log("A_mean", "B/s"),
    );
    chart.note = "A point per row; dashed: A_slow, what the slowest process allows.".to_owned();
    for (color, &n) in result.header.processes.iter().enumerate() {
        let mut of = |figure: fn(&StepCell) -> f64, dash: bool| {
            let mut points: Vec<(f64, Option<f64>)> = result
                .cells
                .iter()
                .filter(|cell| cell.processes == n && cell.size_bytes > 0)
                .filter_map(|cell| Some((cell.size_bytes as f64, cell.step(step)?)))
                .map(|(size, s)| (size, Some(figure(s) * MIB).filter(|v| *v > 0.0)))
                .collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            let name = match dash {
                false => format!("P = {n}"),
                true => format!("P = {n}, slowest"),
            };
            chart.series.push(Series {
                name,
                points,
                dash,
                color: Some(color as u8 % 6),
                ..Series::default()
            });
        };
        of(|s| s.figures.a_mean, false);
        if n > 1 {
            of(|s| s.figures.a_slow, true);
        }
    }
    chart
}

fn throughput(result: &GridResult) -> Option<Section> {
    let rows = || result.header.rows.iter().filter(|row| row.size_bytes > 0);
    let steps = [
        ("Write, MiB/s (A_mean)", "write"),
        ("Read, MiB/s (A_mean)", "read"),
    ];
    let table = |(title, step)| wide(result, title, step, rows(), |s| s.figures.a_mean);
    let tables = explained(steps.into_iter().map(table));
    (!tables.is_empty()).then(|| Section {
        title: "Throughput".to_owned(),
        intro: "A_mean = files times size of all processes over the mean of their times, the figure of the \
                study."
            .to_owned(),
        tables,
        charts: vec![curves(result, "Write", "write"), curves(result, "Read", "read")],
    })
}

fn metadata(result: &GridResult) -> Option<Section> {
    // What was touched is read as well, which says nothing new.
    let rows = |step: &'static str| {
        let all = result.header.rows.iter();
        all.filter(move |row| row.size_bytes == 0 && row.touch == (step == "touch"))
    };
    let steps = [
        ("Write empty files, files/s (R_mean)", "write"),
        ("Read empty files, files/s (R_mean)", "read"),
        ("Touch, files/s (R_mean)", "touch"),
    ];
    let table = |(title, step)| wide(result, title, step, rows(step), |s| s.figures.r_mean);
    let tables = explained(steps.into_iter().map(table));
    let mut chart = Chart::lines(
        "Files without content",
        Axis::log("processes", ""),
        Axis::linear("R_mean", "/s"),
    );
    for step in ["write", "read", "touch"] {
        let Some(row) = rows(step).next() else {
            continue;
        };
        let points: Vec<(f64, Option<f64>)> = result
            .cells
            .iter()
            .filter(|cell| cell.row == row.name)
            .filter_map(|cell| Some((f64::from(cell.processes), cell.step(step)?)))
            .map(|(n, s)| (n, Some(s.figures.r_mean)))
            .collect();
        if !points.is_empty() {
            chart.series.push(Series {
                name: step.to_owned(),
                points,
                ..Series::default()
            });
        }
    }
    let several = result.header.processes.len() > 1;
    (!tables.is_empty()).then(|| Section {
        title: "Metadata".to_owned(),
        intro: "R_mean = files of all processes over the mean of their times.".to_owned(),
        tables,
        charts: if several { vec![chart] } else { Vec::new() },
    })
}

fn all(result: &GridResult) -> Section {
    let rows = steps(result).map(|(cell, step)| {
        let f = step.figures;
        vec![
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
    Section {
        title: "Four definitions".to_owned(),
        intro: "A_wall ≤ A_slow ≤ A_mean ≤ A_sum always; they differ where processes differ. MiB/s; R in \
                files/s. Spread: largest deviation of a run from the mean of the runs."
            .to_owned(),
        tables: vec![Table {
            head: [
                "row", "step", "P", "A_mean", "A_slow", "A_wall", "A_sum", "R_mean", "spread", "failed",
                "marks",
            ]
            .map(str::to_owned)
            .to_vec(),
            rows: rows.collect(),
            ..Table::default()
        }],
        charts: Vec::new(),
    }
}

fn times(result: &GridResult) -> Section {
    let rows = steps(result).map(|(cell, step)| {
        let f = step.figures;
        let [p50, p90, p99, max] = step.latency_s.map(time);
        vec![
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
    Section {
        title: "Times and floor".to_owned(),
        intro: "T is the time from a process's first request to the end of its last. Floor: mean T of the \
                same work on the null target; below twice of it a figure shows the client."
            .to_owned(),
        tables: vec![Table {
            head: [
                "row", "step", "P", "mean T", "max T", "max/mean", "CV", "start skew", "p50", "p90", "p99",
                "max", "floor", "T / floor",
            ]
            .map(str::to_owned)
            .to_vec(),
            rows: rows.collect(),
            ..Table::default()
        }],
        charts: Vec::new(),
    }
}

/// What the study has for the same rows.
fn reference(result: &GridResult) -> Option<Section> {
    let tables: Vec<Table> = ["write", "read"]
        .into_iter()
        .filter_map(|step| {
            let rows: Vec<Vec<String>> = result
                .header
                .rows
                .iter()
                .filter_map(|row| {
                    let values = published(step, &row.name)?;
                    let mut line = vec![format!("{} x {}", row.full_files, row.size_bytes)];
                    line.extend(values.iter().map(|value| rate(*value)));
                    Some(line)
                })
                .collect();
            let mut head = vec!["files x bytes".to_owned()];
            for system in SYSTEMS {
                head.extend(NODES.iter().map(|n| format!("{system}-{n}")));
            }
            (!rows.is_empty()).then(|| Table {
                title: format!("Published, corrected: {step}, MiB/s; without content files/s"),
                head,
                rows,
                ..Table::default()
            })
        })
        .collect();
    (!tables.is_empty()).then(|| Section {
        title: "The study".to_owned(),
        intro: "A_mean of the CS597 study \"Benchmarking Storage Systems\", recomputed from its raw times \
                with 4, 16 and 64 nodes of one process each, on machines of 2016. For orientation only: \
                many of these figures show the study's clients."
            .to_owned(),
        tables,
        charts: Vec::new(),
    })
}

fn method() -> Section {
    Section {
        title: "Method".to_owned(),
        intro: "A process is a closed-loop worker of this client with its own connection; all processes \
                of a cell run on one machine and begin together. Each writes its files, all wait for each \
                other, each reads the files that it wrote, and each deletes them. What is read is \
                discarded in memory. Payloads are unique and incompressible. Rows are measured in random \
                order, once per repetition."
            .to_owned(),
        tables: Vec::new(),
        charts: Vec::new(),
    }
}
