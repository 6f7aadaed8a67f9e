//! How load was spread over the data nodes of a store, its endpoints, or its keys.

use bucketload_results::kit::svg::{Bar, Bars, Body, Point};
use bucketload_results::kit::{Axis, Chart, Series, Unit};

use super::super::balance::{Balance, why_not};
use super::super::groups::Group;
use super::super::show::{self, distinct};
use super::{Context, hollow, targets};

/// Load per node; if no placement is known, the share of the most popular keys.
pub(super) fn balance(context: &Context<'_>) -> Vec<Chart> {
    let mut charts: Vec<Chart> = context
        .groups()
        .iter()
        .filter(|group| why_not(context.files, group).is_none())
        .map(|group| nodes(context, group))
        .collect();
    if charts.is_empty() {
        charts.extend(keys(context));
    }
    charts
}

/// The reasons why targets are not shown in the figure.
pub(super) fn remarks(context: &Context<'_>) -> Vec<String> {
    let groups = context.groups().iter();
    let said = groups.filter_map(|group| {
        let name = show::titled(&group.label, "", &group.value);
        Some(format!("{name}: {}.", why_not(context.files, group)?))
    });
    let mut remarks: Vec<String> = said.collect();
    remarks.dedup();
    remarks
}

/// Names of the phases in their order.
pub(in super::super) fn phases(balances: &[Balance]) -> Vec<&str> {
    distinct(balances.iter().map(|balance| balance.phase.as_str()))
}

/// Shares of requests and objects of each node, sums over the repetitions.
fn shares<'b>(balances: impl Iterator<Item = &'b Balance>) -> Vec<(String, f64, f64)> {
    let mut out: Vec<(String, f64, f64)> = Vec::new();
    for (name, requests, objects) in balances.flat_map(|b| &b.loads) {
        match out.iter_mut().find(|(known, _, _)| known == name) {
            Some(sum) => {
                sum.1 += requests;
                sum.2 += objects;
            }
            None => out.push((name.clone(), *requests, *objects)),
        }
    }
    let (all, placed) = out.iter().fold((0.0, 0.0), |(r, o), n| (r + n.1, o + n.2));
    let share = |part: f64, all: f64| if all > 0.0 { part / all } else { 0.0 };
    for node in &mut out {
        (node.1, node.2) = (share(node.1, all), share(node.2, placed));
    }
    out
}

fn nodes(context: &Context<'_>, group: &Group) -> Chart {
    let balances = &group.extra.balance;
    let phases = phases(balances);
    let bar = |look: usize, value: f64| Bar {
        look,
        value,
        text: Unit::Share.show(value),
        flawed: group.flawed(),
        ..Bar::default()
    };
    let mut bars = Bars::default();
    for (look, phase) in phases.iter().enumerate() {
        for (name, requests, _) in shares(balances.iter().filter(|b| b.phase == *phase)) {
            bars.add(&name, bar(look, requests));
        }
    }
    let all = shares(balances.iter());
    if all.iter().any(|(_, _, objects)| *objects > 0.0) {
        for (name, _, objects) in &all {
            bars.add(name, bar(phases.len(), *objects));
        }
    }
    bars.mark = Some(1.0 / all.len().max(1) as f64);
    let first = &balances[0];
    let what = match first.observed {
        true => "requests observed",
        false => "requests expected from popularity and placement",
    };
    let phase = |phase: &&str| match *phase {
        "" => what.to_owned(),
        phase => phase.to_owned(),
    };
    bars.legend = phases.iter().map(phase).collect();
    bars.legend.push("objects".to_owned());
    let axis = Axis::linear(&format!("share per {}", first.unit), Unit::Share);
    let title = format!(
        "load per {} of {}",
        first.unit,
        show::titled(&group.label, "", &group.value)
    );
    let parts = [group.target.as_str(), &group.value];
    let chart = context.chart(&parts, &title, (axis.clone(), axis), Body::Bars(bars));
    let runs = balances.iter().filter(|b| b.phase == first.phase).count();
    chart.noted(format!(
        "Shares of the {what}. Sum over {runs} runs, each with its own popular keys; the line is the even load. The indices \
         in the table are for single runs.{}",
        hollow(std::slice::from_ref(group))
    ))
}

/// Share of the requests to the most popular keys, which no placement can avoid.
fn keys(context: &Context<'_>) -> Option<Chart> {
    let groups = context.groups();
    let several = targets(groups).len() > 1;
    let lines = groups.iter().enumerate().filter_map(|(look, group)| {
        let first = group.extra.popularity.first()?;
        let points = first.top.iter().map(|top| {
            let half = 1.96 * top.standard_error;
            let (low, high) = (top.realised - half, top.realised + half);
            Point {
                ci: Some((low.max(0.0), high.min(1.0))),
                ..Point::from((top.k as f64, top.realised))
            }
        });
        let name = match (group.value.is_empty(), several) {
            (true, _) => group.label.clone(),
            (false, true) => format!("{}, {}", group.label, group.value),
            (false, false) => group.value.clone(),
        };
        Some(Series {
            markers: true,
            ..Series::line(name, look, points)
        })
    });
    let lines: Vec<Series> = lines.collect();
    if lines.is_empty() {
        return None;
    }
    let axes = (
        Axis::log("number of most popular keys", Unit::Number),
        Axis::linear("share of requests", Unit::Share),
    );
    let title = "requests to the most popular keys";
    let chart = context.chart(&["keys"], title, axes, Body::Lines(lines));
    Some(chart.noted(
        "Due to the workload alone, independent of the nodes: if a single node holds the only copies of these keys, \
         it gets at least this share.",
    ))
}
