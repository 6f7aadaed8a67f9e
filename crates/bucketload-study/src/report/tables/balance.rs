//! How load was spread: over the data nodes of a store where their placement is known, and over keys, which is
//! what the workload alone asks for.

use bucketload_core::stats::balance::Indices;
use bucketload_results::units;

use super::super::balance::{Balance, instead};
use super::super::estimate::Over;
use super::super::figures::balance_phases;
use super::super::groups::{Group, Measured};
use super::super::published;
use super::super::read::Files;
use super::super::svg::Unit;
use super::super::table::{Cell, Column, Table};
use super::{name, title};
use crate::model;

/// The tables of nodes and of keys.
pub(super) fn balance(files: &Files, measured: &Measured, asked: &model::Table) -> Vec<Table> {
    vec![nodes(files, measured, asked), keys(measured, asked)]
}

/// What every row begins with.
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
fn nodes(files: &Files, measured: &Measured, asked: &model::Table) -> Table {
    let mut all = columns("load per data node");
    all.push(Column::number("nodes", "nodes"));
    let indices = [
        ("peak / mean", "peak"),
        ("CV", "cv"),
        ("Gini", "gini"),
        ("Jain", "jain"),
        ("effective nodes", "effective"),
        ("usable capacity", "usable"),
    ];
    all.extend(indices.map(|(heading, key)| Column::figure(heading, key)));
    let width = all.len();
    let mut table = Table::new(
        &name(measured, asked, &[]),
        title(measured, asked, "load balance"),
        all,
    );
    for group in &measured.groups {
        let why = match (group.runs.is_empty(), instead(files, group)) {
            (true, _) => group.why_none().to_owned(),
            (false, Some(why)) => why,
            (false, None) => {
                spreads(group, &group.extra.balance, &mut table);
                continue;
            }
        };
        let mut row = row(group, why);
        row.resize(width, Cell::None);
        table.rows.push(row);
    }
    if files.study.published == "ostorebench" && !table.rows.is_empty() {
        let value = |(_, key): (&str, &str)| {
            let found =
                published::of("ostorebench").find(|v| v.quantity == format!("balance-{key}"));
            Cell::figure(found.map(|v| Over::plain(v.value)), units::number)
        };
        let mut row = vec![
            Cell::text("published, another machine"),
            Cell::None,
            Cell::text("requests, read off Fig. 8"),
            Cell::Count(6),
        ];
        row.extend(indices.map(value));
        table.rows.push(row);
    }
    table.note = "Peak / mean: load of the busiest node over the mean, 1 for even load. Usable capacity: mean over maximum. Expected: from the \
                  keys that were read and where their copies lie, each copy answering equally often. In brackets: 95 % interval over the \
                  repetitions, as far as the index goes."
        .to_owned();
    table.compact()
}

/// A row for the requests of each phase, and one for the objects.
fn spreads(group: &Group, balances: &[Balance], table: &mut Table) {
    let mut add = |load: String, nodes: usize, indices: &[Indices]| {
        // An interval by logarithms goes beyond where the index ends.
        let n = nodes as f64;
        let of = |figure: fn(&Indices) -> f64, low: f64, high: f64| {
            let values: Vec<f64> = indices.iter().map(figure).collect();
            let over = Over::mean(&values).map(|over| over.within(low, high));
            Cell::figure(over, units::number)
        };
        let mut row = row(group, load);
        row.extend([
            Cell::Count(nodes as u64),
            of(|i| i.peak, 1.0, n),
            of(|i| i.cv, 0.0, f64::INFINITY),
            of(|i| i.gini, 0.0, 1.0),
            of(|i| i.jain, 0.0, 1.0),
            of(|i| i.effective, 1.0, n),
            of(|i| i.usable, 0.0, 1.0),
        ]);
        table.rows.push(row);
    };
    for phase in balance_phases(balances) {
        let own: Vec<&Balance> = balances.iter().filter(|b| b.phase == phase).collect();
        let Some(first) = own.first() else { continue };
        let of_phase = match phase {
            "" => String::new(),
            phase => format!("{phase}: "),
        };
        // Endpoints where there are no nodes.
        let over = match first.over {
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
            format!("{of_phase}requests{over}, {how}"),
            first.loads.len(),
            &indices,
        );
    }
    if let Some(first) = balances.first().filter(|b| b.over == "data node") {
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
fn keys(measured: &Measured, asked: &model::Table) -> Table {
    let mut all = columns("popularity");
    all.extend([
        Column::figure("top key's share", "top1_share"),
        Column::figure("top 100", "top100_share"),
        Column::figure("effective keys", "effective_keys"),
    ]);
    let mut table = Table::new(
        &name(measured, asked, &["keys"]),
        title(measured, asked, "requests per key"),
        all,
    );
    for group in &measured.groups {
        let ids = &group.extra.popularity;
        let mut laws: Vec<(&str, &str)> = Vec::new();
        for id in ids {
            if !laws.contains(&(&*id.phase, &*id.law)) {
                laws.push((&id.phase, &id.law));
            }
        }
        for (phase, law) in laws {
            let own = || ids.iter().filter(|id| id.phase == phase && id.law == law);
            let top = |k: u64| {
                let shares = own()
                    .filter_map(|id| id.top.iter().find(|t| t.k == k))
                    .map(|t| t.realised);
                let shares: Vec<f64> = shares.collect();
                let over = Over::mean(&shares).map(|over| over.within(0.0, 1.0));
                Cell::figure(over, |v| Unit::Share.show(v))
            };
            let effective: Vec<f64> = own().map(|id| id.effective).collect();
            // A phase is often called like its law.
            let mut row = row(
                group,
                match law.starts_with(phase) {
                    true => law.to_owned(),
                    false => format!("{phase}: {law}"),
                },
            );
            row.extend([
                top(1),
                top(100),
                Cell::figure(Over::mean(&effective), units::number),
            ]);
            table.rows.push(row);
        }
    }
    table.note = "What the workload alone asks, whatever the store: with one copy per key and n nodes the peak is at least n times \
                  the top key's share. In brackets: 95 % interval over the repetitions."
        .to_owned();
    table.compact()
}
