//! How load was spread over the data nodes of a store, its endpoints, or its keys.

use super::super::groups::{Balance, Group};
use super::super::svg::{Axis, Bar, Bars, Body, Chart, Point, Series, Unit};
use super::Context;
use crate::model::Figure;

/// Load per node; where no placement is known, the share of the most popular keys.
pub(super) fn balance(context: &Context<'_>, figure: &Figure) -> Vec<Chart> {
    let mut charts: Vec<Chart> = context
        .groups()
        .iter()
        .filter(|group| !group.extra.balance.is_empty())
        .map(|group| nodes(context, figure, group))
        .collect();
    if charts.is_empty() {
        charts.extend(keys(context, figure));
    }
    charts
}

/// Shares of requests and objects of each node, sums over the repetitions.
pub(in super::super) fn shares(balances: &[Balance]) -> Vec<(String, f64, f64)> {
    let mut out: Vec<(String, f64, f64)> = Vec::new();
    for (name, requests, objects) in balances.iter().flat_map(|b| &b.loads) {
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
    let shares = shares(&group.extra.balance);
    let placed = shares.iter().any(|(_, _, objects)| *objects > 0.0);
    let bar = |look: usize, value: f64| Bar {
        look,
        value,
        ci: None,
        text: Unit::Share.show(value),
        flawed: false,
        published: false,
    };
    let rows = shares.iter().map(|(name, requests, objects)| {
        let mut bars = vec![bar(0, *requests)];
        if placed {
            bars.push(bar(1, *objects));
        }
        (name.clone(), bars)
    });
    let first = &group.extra.balance[0];
    let even = 1.0 / shares.len().max(1) as f64;
    let what = match first.observed {
        true => "requests observed",
        false => "requests expected from popularity and placement",
    };
    let bars = Bars {
        groups: rows.collect(),
        legend: vec![what.to_owned(), "objects".to_owned()],
        mark: Some(even),
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
    chart.note = format!(
        "Sum over {} runs; the line is even load. Indices stand in the table.",
        group.extra.balance.len()
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
                top.realised + 1.96 * top.standard_error,
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
    chart.note = "No placement of keys on nodes was recorded, so this is what the workload alone asks of whatever \
         nodes hold these keys: with the keys' one copy on one node, that node gets at least this share."
        .to_owned();
    Some(chart)
}
