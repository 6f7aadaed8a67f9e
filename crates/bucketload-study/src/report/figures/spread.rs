//! How load was spread over the data nodes of a store, its endpoints, or its keys.

use super::super::balance::{Balance, instead};
use super::super::groups::Group;
use super::super::svg::{Axis, Bar, Bars, Body, Chart, Point, Series, Unit};
use super::Context;
use crate::model::Figure;

/// Load per node; where no placement is known, the share of the most popular keys.
pub(super) fn balance(context: &Context<'_>, figure: &Figure) -> Vec<Chart> {
    let mut charts: Vec<Chart> = context
        .groups()
        .iter()
        .filter(|group| instead(context.files, group).is_none())
        .map(|group| nodes(context, figure, group))
        .collect();
    if charts.is_empty() {
        charts.extend(keys(context, figure));
    }
    charts
}

/// What there is to say of the targets that the figure does not show.
pub(super) fn remarks(context: &Context<'_>) -> Vec<String> {
    let groups = context.groups().iter();
    let said = groups.filter_map(|group| {
        let name = super::super::show::titled(&group.label, "", &group.value);
        Some(format!("{name}: {}.", instead(context.files, group)?))
    });
    let mut remarks: Vec<String> = said.collect();
    remarks.dedup();
    remarks
}

/// Names of the phases in their order.
pub(in super::super) fn phases(balances: &[Balance]) -> Vec<&str> {
    let mut phases: Vec<&str> = Vec::new();
    for balance in balances {
        if !phases.contains(&&*balance.phase) {
            phases.push(&balance.phase);
        }
    }
    phases
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

fn nodes(context: &Context<'_>, figure: &Figure, group: &Group) -> Chart {
    let balances = &group.extra.balance;
    let phases = phases(balances);
    let bar = |look: usize, value: f64| Bar {
        look,
        value,
        ci: None,
        text: Unit::Share.show(value),
        flawed: group.flawed(),
        published: false,
    };
    let mut rows: Vec<(String, Vec<Bar>)> = Vec::new();
    let mut add = |name: &str, bar: Bar| match rows.iter_mut().find(|(known, _)| known == name) {
        Some((_, bars)) => bars.push(bar),
        None => rows.push((name.to_owned(), vec![bar])),
    };
    for (look, phase) in phases.iter().enumerate() {
        for (name, requests, _) in shares(balances.iter().filter(|b| b.phase == *phase)) {
            add(&name, bar(look, requests));
        }
    }
    let all = shares(balances.iter());
    if all.iter().any(|(_, _, objects)| *objects > 0.0) {
        for (name, _, objects) in &all {
            add(name, bar(phases.len(), *objects));
        }
    }
    let first = &balances[0];
    let what = match first.observed {
        true => "requests observed",
        false => "requests expected from popularity and placement",
    };
    let mut legend: Vec<String> = phases
        .iter()
        .map(|phase| match phase.is_empty() {
            true => what.to_owned(),
            false => (*phase).to_owned(),
        })
        .collect();
    legend.push("objects".to_owned());
    let bars = Bars {
        groups: rows,
        legend,
        mark: Some(1.0 / all.len().max(1) as f64),
    };
    let axis = Axis::linear(&format!("share per {}", first.over), Unit::Share);
    let mut chart = context.chart(
        figure,
        &[&group.target, &group.value],
        format!(
            "load per {} of {}",
            first.over,
            super::super::show::titled(&group.label, "", &group.value)
        ),
        (axis.clone(), axis),
        Body::Bars(bars),
    );
    let runs = balances.iter().filter(|b| b.phase == first.phase).count();
    chart.note = format!(
        "Shares of the {what}. Sum over {runs} runs, each with popular keys of its own; the line is even load. The indices \
         in the table are of single runs.{}",
        super::hollow(std::slice::from_ref(group))
    );
    chart
}

/// Share of the requests that the most popular keys receive: what any placement has to bear.
fn keys(context: &Context<'_>, figure: &Figure) -> Option<Chart> {
    let groups = context.groups();
    let mut series: Vec<Series> = Vec::new();
    let several = super::targets(groups).len() > 1;
    for (i, group) in groups.iter().enumerate() {
        let Some(first) = group.extra.popularity.first() else {
            continue;
        };
        let points = first.top.iter().map(|top| Point {
            x: top.k as f64,
            y: top.realised,
            ci: Some((
                (top.realised - 1.96 * top.standard_error).max(0.0),
                (top.realised + 1.96 * top.standard_error).min(1.0),
            )),
            flawed: false,
        });
        let name = match (group.value.is_empty(), several) {
            (true, _) => group.label.clone(),
            (false, true) => format!("{}, {}", group.label, group.value),
            (false, false) => group.value.clone(),
        };
        series.push(Series {
            name,
            points: points.collect(),
            look: i,
            markers: true,
            ..Series::default()
        });
    }
    if series.is_empty() {
        return None;
    }
    let mut chart = context.chart(
        figure,
        &["keys"],
        "requests to the most popular keys".to_owned(),
        (
            Axis::log("number of most popular keys", Unit::Number),
            Axis::linear("share of requests", Unit::Share),
        ),
        Body::Lines(series),
    );
    chart.note = "This is what the workload alone asks of whatever nodes hold these keys: with the keys' one copy on one \
         node, that node gets at least this share."
        .to_owned();
    Some(chart)
}
