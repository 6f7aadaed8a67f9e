//! Load balance over the data nodes of a store if the placement is known, and over keys, which shows the demand of the
//! workload alone.

use bucketload_core::stats::balance::Indices;
use bucketload_results::kit::{Cell, Column, Table, Unit};
use bucketload_results::result::PopularityId;
use bucketload_results::units;

use super::super::balance::{Balance, why_not};
use super::super::estimate::Estimate;
use super::super::figures::balance_phases;
use super::super::groups::Group;
use super::super::published;
use super::super::show::distinct;
use super::Request;

/// An index: heading, key, figure, minimum, and maximum for a number of nodes.
type Index = (
    &'static str,
    &'static str,
    fn(&Indices) -> f64,
    f64,
    fn(f64) -> f64,
);

const INDICES: [Index; 6] = [
    ("peak / mean", "peak", |i| i.peak, 1.0, |nodes| nodes),
    ("CV", "cv", |i| i.cv, 0.0, |_| f64::INFINITY),
    ("Gini", "gini", |i| i.gini, 0.0, |_| 1.0),
    ("Jain", "jain", |i| i.jain, 0.0, |_| 1.0),
    (
        "effective nodes",
        "effective",
        |i| i.effective,
        1.0,
        |nodes| nodes,
    ),
    ("usable capacity", "usable", |i| i.usable, 0.0, |_| 1.0),
];

/// The tables of nodes and of keys.
pub(super) fn balance(request: &Request<'_>) -> Vec<Table> {
    vec![nodes(request), keys(request)]
}

/// The first columns of every row.
fn columns(load: &str) -> Vec<Column> {
    vec![
        Column::text("target", "target"),
        Column::text("value", "value"),
        Column::text(load, "load"),
    ]
}

fn row(group: &Group, load: impl Into<String>) -> Vec<Cell> {
    vec![
        Cell::text(&*group.label),
        Cell::text(&*group.value),
        Cell::text(load.into()),
    ]
}

/// Indices of the load per data node.
fn nodes(request: &Request<'_>) -> Table {
    let mut columns = columns("load per data node");
    columns.push(Column::number("nodes", "nodes"));
    columns.extend(INDICES.map(|(heading, key, ..)| Column::figure(heading, key)));
    let mut table = request.table(&[], "load balance", columns);
    for group in &request.measured.groups {
        match (group.runs.is_empty(), why_not(request.files, group)) {
            (true, _) => table.short_row(row(group, group.why_none())),
            (false, Some(why)) => table.short_row(row(group, why)),
            (false, None) => spreads(group, &group.extra.balance, &mut table),
        }
    }
    if request.files.study.published == "ostorebench" && !table.rows.is_empty() {
        let mut row = vec![
            Cell::text("published, another installation"),
            Cell::None,
            Cell::text("requests, read from Fig. 8"),
            Cell::Count(6),
        ];
        row.extend(INDICES.map(|(_, key, ..)| {
            let quantity = format!("balance-{key}");
            let found = published::of("ostorebench").find(|v| v.quantity == quantity);
            Estimate::cell(found.map(|v| Estimate::plain(v.value)), units::number)
        }));
        table.row(row);
    }
    table.noted(
        "Peak / mean: load of the busiest node over the mean, 1 for even load. Usable capacity: mean over maximum. Expected: from the \
         keys that were read and the placement of their copies, each copy answering equally often. In brackets: 95 % interval over the \
         repetitions, cut to the range of the index.",
    )
    .compact()
}

/// One row for the requests of each phase, and one for the objects.
fn spreads(group: &Group, balances: &[Balance], table: &mut Table) {
    let mut add = |load: String, nodes: usize, indices: &[Indices]| {
        let mut row = row(group, load);
        row.push(Cell::Count(nodes as u64));
        row.extend(INDICES.map(|(_, _, figure, low, high)| {
            let values: Vec<f64> = indices.iter().map(figure).collect();
            // An interval by logarithms may exceed the range of the index.
            let estimate =
                Estimate::mean(&values).map(|estimate| estimate.within(low, high(nodes as f64)));
            Estimate::cell(estimate, units::number)
        }));
        table.row(row);
    };
    for phase in balance_phases(balances) {
        let own: Vec<&Balance> = balances.iter().filter(|b| b.phase == phase).collect();
        let Some(first) = own.first() else { continue };
        let of_phase = match phase {
            "" => String::new(),
            phase => format!("{phase}: "),
        };
        // Without data nodes, endpoints.
        let per = match first.unit {
            "data node" => String::new(),
            other => format!(" per {other}"),
        };
        let how = if first.observed {
            "observed"
        } else {
            "expected"
        };
        let indices: Vec<Indices> = own.iter().filter_map(|b| b.indices).collect();
        add(
            format!("{of_phase}requests{per}, {how}"),
            first.loads.len(),
            &indices,
        );
    }
    if let Some(first) = balances.first().filter(|b| b.unit == "data node") {
        let runs = balances.iter().filter(|b| b.phase == first.phase);
        let indices: Vec<Indices> = runs
            .filter_map(|b| {
                let objects: Vec<f64> = b.loads.iter().map(|(_, _, objects)| *objects).collect();
                Indices::of(&objects)
            })
            .collect();
        add("objects".to_owned(), first.loads.len(), &indices);
    }
}

/// Popularity of keys as drawn.
fn keys(request: &Request<'_>) -> Table {
    let mut columns = columns("popularity");
    columns.extend([
        Column::figure("top key's share", "top1_share"),
        Column::figure("top 100", "top100_share"),
        Column::figure("effective keys", "effective_keys"),
    ]);
    let mut table = request.table(&["keys"], "requests per key", columns);
    for group in &request.measured.groups {
        let ids = &group.extra.popularity;
        for (phase, law) in distinct(ids.iter().map(|id| (&*id.phase, &*id.law))) {
            let own = ids.iter().filter(|id| id.phase == phase && id.law == law);
            let own: Vec<&PopularityId> = own.collect();
            let top = |k: u64| {
                let shares = own.iter().filter_map(|id| id.top.iter().find(|t| t.k == k));
                let shares: Vec<f64> = shares.map(|t| t.realised).collect();
                let estimate = Estimate::mean(&shares).map(|estimate| estimate.within(0.0, 1.0));
                Estimate::cell(estimate, |v| Unit::Share.show(v))
            };
            let effective: Vec<f64> = own.iter().map(|id| id.effective).collect();
            // A phase often has the name of its law.
            let load = match law.starts_with(phase) {
                true => law.to_owned(),
                false => format!("{phase}: {law}"),
            };
            let mut row = row(group, load);
            row.extend([
                top(1),
                top(100),
                Estimate::cell(Estimate::mean(&effective), units::number),
            ]);
            table.row(row);
        }
    }
    table.noted(
        "The demand of the workload alone, independent of the store: with one copy per key and n nodes, the peak is at least n \
         times the top key's share. In brackets: 95 % interval over the repetitions.",
    )
    .compact()
}
