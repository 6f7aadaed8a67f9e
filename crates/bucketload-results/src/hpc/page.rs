//! A comparison of ways to the same objects as a page.

use super::text::{BASE, by_bytes, ratio, shown, value};
use super::{HpcResult, STEPS};
use crate::report::page::{Axis, Chart, Page, Section, Series, Table, VerdictBox};
use crate::units;

/// The page as one self-contained HTML file.
#[must_use]
pub fn html(result: &HpcResult) -> String {
    let header = &result.header;
    let complete = result.trials >= result.wanted();
    let failed: u64 = result
        .cells
        .iter()
        .flat_map(|c| &c.figures)
        .map(|f| f.failed)
        .sum();
    let mut reasons = Vec::new();
    if failed > 0 {
        reasons.push(format!(
            "{failed} operations failed; their figures are marked x."
        ));
    }
    let rows = header
        .rows
        .iter()
        .map(|row| (row.name.clone(), row.meaning.clone()));
    let mut sections: Vec<Section> = header
        .processes
        .iter()
        .map(|&n| charts(result, n))
        .collect();
    sections.push(Section {
        title: "Figures".to_owned(),
        intro: format!("In brackets the share of {BASE}'s figure."),
        tables: tables(result),
        charts: Vec::new(),
    });
    Page {
        title: format!("Ways to the objects of {}", header.root),
        subtitle: format!(
            "Started {}, Bucketload {}. {}",
            header.started,
            header.version,
            header.command_line.join(" ")
        ),
        verdict: VerdictBox {
            word: if complete { "COMPARED" } else { "INTERRUPTED" }.to_owned(),
            tone: match (complete, failed) {
                (false, _) => "bad",
                (true, 0) => "good",
                (true, _) => "warn",
            },
            meaning: format!(
                "{} of {} runs. Every figure is the median of {} runs; a list is one operation for all objects.",
                result.trials,
                result.wanted(),
                header.repetitions
            ),
            reasons,
        },
        facts: rows.collect(),
        sections,
    }
    .render()
}

/// A curve per row over the size of objects, for each step that moves bytes, and for stat.
fn charts(result: &HpcResult, processes: u32) -> Section {
    let header = &result.header;
    let chart = |title: &str, step: &str, unit: &'static str, bytes: bool| {
        let mut chart = Chart::lines(title, Axis::log("object size", "B"), Axis::log(title, unit));
        for (color, row) in header.rows.iter().enumerate() {
            let point = |&size: &u64| {
                let figure = result.cell(&row.name, size, processes)?.figure(step)?;
                let value = if bytes {
                    figure.bytes_per_s
                } else {
                    figure.ops_per_s
                };
                (value > 0.0).then_some((size as f64, Some(value)))
            };
            let points: Vec<_> = header.sizes.iter().filter_map(point).collect();
            if !points.is_empty() {
                chart.series.push(Series {
                    name: row.name.clone(),
                    points,
                    dash: row.floor,
                    color: u8::try_from(color).ok(),
                    ..Series::default()
                });
            }
        }
        chart
    };
    let all = [
        chart("write", "write", "B/s", true),
        chart("read", "read", "B/s", true),
        chart("write operations", "write", "1/s", false),
        chart("stat operations", "stat", "1/s", false),
    ];
    let plural = if processes == 1 {
        "process"
    } else {
        "processes"
    };
    Section {
        title: format!("{processes} {plural}"),
        intro: "Dashed: floors, which move the same bytes and keep nothing.".to_owned(),
        tables: Vec::new(),
        charts: all
            .into_iter()
            .filter(|chart| !chart.series.is_empty())
            .collect(),
    }
}

fn tables(result: &HpcResult) -> Vec<Table> {
    let header = &result.header;
    let mut tables = Vec::new();
    for &size in &header.sizes {
        for &processes in &header.processes {
            let rows: Vec<Vec<String>> = header
                .rows
                .iter()
                .filter_map(|row| {
                    let cell = result.cell(&row.name, size, processes)?;
                    let mut line = vec![row.name.clone()];
                    line.extend(STEPS.iter().map(|step| {
                        cell.figure(step).map_or_else(String::new, |figure| {
                            let share = ratio(result, cell, figure);
                            shown(figure, size)
                                + &share.map_or_else(String::new, |r| format!(" ({r:.2})"))
                        })
                    }));
                    let stat = cell
                        .figure("stat")
                        .filter(|figure| value(figure, size) > 0.0);
                    line.push(stat.map_or_else(String::new, |figure| units::ns(figure.p50_ns)));
                    Some(line)
                })
                .collect();
            if rows.is_empty() {
                continue;
            }
            let unit = |step: &str| if by_bytes(step, size) { "" } else { " 1/s" };
            let mut head = vec!["way".to_owned()];
            head.extend(STEPS.iter().map(|step| format!("{step}{}", unit(step))));
            head.push("stat, median".to_owned());
            tables.push(Table {
                title: format!("{}, P = {processes}", units::bytes(size as f64)),
                head,
                rows,
                note: String::new(),
                text: false,
            });
        }
    }
    tables
}
