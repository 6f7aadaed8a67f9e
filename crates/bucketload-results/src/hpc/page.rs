//! The page of a comparison of access paths.

use super::text::{BASE, by_bytes, medians, ratio, shown, value};
use super::{HpcResult, STEPS};
use crate::kit::{Axis, Chart, Page, Section, Series, Table, Unit, VerdictBox};
use crate::{study, units};

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
            "{failed} operations failed; the figures affected are marked x."
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
    let paths = Table::prose("").with(rows.map(|(name, meaning)| [name, meaning]));
    sections.push(Section::new("Paths", "").tables([paths]));
    let intro = format!("Ratio to the figure of {BASE} in brackets.");
    sections.push(Section::new("Figures", intro).tables(tables(result)));
    Page {
        title: format!("Access paths to the objects of {}", header.root),
        subtitle: study::origin(&header.started, &header.version, &header.command_line),
        verdict: VerdictBox {
            word: if complete { "COMPARED" } else { "INTERRUPTED" }.to_owned(),
            tone: match (complete, failed) {
                (false, _) => "bad",
                (true, 0) => "good",
                (true, _) => "warn",
            },
            meaning: format!(
                "{} of {} runs. {}; a list is one operation over all objects.",
                result.trials,
                result.wanted(),
                medians(header.repetitions)
            ),
            reasons,
            ..VerdictBox::default()
        },
        sections,
        ..Page::default()
    }
    .render()
}

/// One curve per row over the object size: throughput of write and read, operations of write and stat.
fn charts(result: &HpcResult, processes: u32) -> Section {
    let header = &result.header;
    let chart = |title: &str, step: &str, unit: Unit| {
        let lines = header.rows.iter().enumerate().map(|(look, row)| {
            let point = |&size: &u64| {
                let figure = result.cell(&row.name, size, processes)?.figure(step)?;
                let value = match unit {
                    Unit::BytesPerS => figure.bytes_per_s,
                    _ => figure.ops_per_s,
                };
                (value > 0.0).then_some((size as f64, value))
            };
            Series {
                markers: true,
                dashed: row.floor,
                ..Series::line(&*row.name, look, header.sizes.iter().filter_map(point))
            }
        });
        let x = Axis::log("object size", Unit::Bytes);
        let label = match unit {
            Unit::BytesPerS => "bandwidth",
            _ => "operations/s",
        };
        Chart::lines(title, x, Axis::log(label, unit), lines)
    };
    let all = [
        chart("write", "write", Unit::BytesPerS),
        chart("read", "read", Unit::BytesPerS),
        chart("write operations", "write", Unit::PerS),
        chart("stat operations", "stat", Unit::PerS),
    ];
    let intro = "Dashed: floors, which move the same bytes but store nothing.";
    let known = all.into_iter().filter(|chart| !chart.is_empty());
    Section::new(units::processes(processes), intro).charts(known)
}

fn tables(result: &HpcResult) -> Vec<Table> {
    let header = &result.header;
    let mut tables = Vec::new();
    for &size in &header.sizes {
        for &processes in &header.processes {
            let unit = |step: &str| if by_bytes(step, size) { "" } else { " 1/s" };
            let mut head = vec!["path".to_owned()];
            head.extend(STEPS.iter().map(|step| format!("{step}{}", unit(step))));
            head.push("stat, p50".to_owned());
            let rows = header.rows.iter().filter_map(|row| {
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
            });
            let title = format!("{}, P = {processes}", units::bytes(size as f64));
            tables.push(Table::new(1, head).titled(title).with(rows));
        }
    }
    tables.retain(|table| !table.rows.is_empty());
    tables
}
