//! Throughput per process (worker, node) relative to the smallest number.

use bucketload_results::kit::svg::{Body, Point};
use bucketload_results::kit::{Axis, Chart, Series, Unit};

use super::super::estimate::{Estimate, ratio};
use super::super::groups::Group;
use super::super::show::{self, Blocks, Ops, distinct};
use super::{Context, hollow, numbered, targets};
use crate::model::Metric;

/// Number of lines above which each target gets its own chart.
const TOGETHER: usize = 8;

/// A line: target, its label and look, and the row of a grid (empty for none).
#[derive(Clone, Copy, PartialEq)]
struct Row<'a> {
    target: &'a str,
    label: &'a str,
    look: usize,
    value: &'a str,
}

/// The charts: one per phase, or one per phase and target if there are too many lines.
pub(super) fn efficiency(context: &Context<'_>) -> Vec<Chart> {
    let groups = context.groups();
    let several = targets(groups).len() > 1;
    let mut charts = Vec::new();
    for ops in context.selections() {
        let mut rows = rows(groups);
        rows.retain(|row| points(context, row, ops).len() > 1);
        if rows.len() <= TOGETHER {
            let name = |row: &Row<'_>| match (row.value, several) {
                ("", _) => row.label.to_owned(),
                (value, true) => format!("{}, {value}", row.label),
                (value, false) => value.to_owned(),
            };
            charts.extend(chart(context, ops, "", &rows, name));
            continue;
        }
        for (target, label, _) in targets(groups) {
            let own = rows.iter().copied().filter(|row| row.target == target);
            let own: Vec<Row<'_>> = own.collect();
            let name = |row: &Row<'_>| row.value.to_owned();
            charts.extend(chart(context, ops, label, &own, name));
        }
    }
    charts
}

/// True if the command itself sweeps the number of processes, as a grid does.
fn swept_inside(groups: &[Group]) -> bool {
    groups.iter().any(|g| g.processes > 0)
}

fn rows(groups: &[Group]) -> Vec<Row<'_>> {
    let inside = swept_inside(groups);
    distinct(groups.iter().map(|group| Row {
        target: &group.target,
        label: &group.label,
        look: group.look,
        value: if inside { &group.value } else { "" },
    }))
}

fn points(context: &Context<'_>, row: &Row<'_>, ops: Ops<'_>) -> Vec<Point> {
    let groups = context.groups();
    let metric = context.figure.metric.unwrap_or(Metric::Throughput);
    let inside = swept_inside(groups);
    let own = groups
        .iter()
        .filter(|g| g.target == row.target && (!inside || g.value == row.value));
    let mut units: Vec<(f64, Blocks, bool)> = own
        .filter_map(|group| {
            let n = if inside {
                f64::from(group.processes)
            } else {
                group.number?
            };
            let each = show::blocks(group, metric, ops);
            let each: Blocks = each.into_iter().map(|(block, x)| (block, x / n)).collect();
            (n > 0.0 && !each.is_empty()).then(|| (n, each, group.flawed()))
        })
        .collect();
    units.sort_by(|a, b| a.0.total_cmp(&b.0));
    let Some((first, base, _)) = units.first() else {
        return Vec::new();
    };
    let point = |(n, each, flawed): &(f64, Blocks, bool)| {
        let estimate = match n == first {
            true => Estimate::plain(1.0),
            false => ratio(base, each)?,
        };
        Some(Point {
            x: *n,
            y: estimate.value,
            ci: estimate.ci,
            flawed: *flawed,
        })
    };
    units.iter().filter_map(point).collect()
}

fn chart(
    context: &Context<'_>,
    ops: Ops<'_>,
    of: &str,
    rows: &[Row<'_>],
    name: impl Fn(&Row<'_>) -> String,
) -> Option<Chart> {
    let groups = context.groups();
    let inside = swept_inside(groups);
    let lines: Vec<Series> = rows
        .iter()
        .enumerate()
        .map(|(i, row)| Series {
            markers: true,
            ..Series::line(
                name(row),
                if inside { i } else { row.look },
                points(context, row, ops),
            )
        })
        .collect();
    if lines.is_empty() {
        return None;
    }
    let numbers = lines
        .iter()
        .flat_map(|line| line.points.iter().map(|p| p.x));
    let numbers: Vec<f64> = numbers.collect();
    let what = if inside { "processes" } else { "workers" };
    let x = numbered(&format!("number of {what}"), Unit::Number, &numbers);
    let y = Axis::linear("efficiency (smallest number: 100 %)", Unit::Share);
    let metric = context.figure.metric.unwrap_or(Metric::Throughput);
    let title = match of {
        "" => "efficiency".to_owned(),
        of => format!("efficiency on {of}"),
    };
    let parts = [metric.id, &context.figure.class, ops.phase, of];
    let title = show::titled(&title, ops.phase, &context.figure.class);
    let chart = context.chart(&parts, &title, (x, y), Body::Lines(lines));
    Some(chart.noted(format!(
        "Ratio of the {} per unit, 95 % interval of the ratios inside the blocks (t, logarithms).{}",
        metric.title,
        hollow(groups)
    )))
}
