//! Tables of what single kinds of cells have: fitted laws, capacities, load balance; and the verdicts of all.

use bucketload_core::capacity::Limit;
use bucketload_core::stats::balance::Indices;
use bucketload_core::stats::usl::{EXTRAPOLATE, Fitted, UslFit};
use bucketload_results::units;

use super::super::balance::{Balance, instead};
use super::super::estimate::Over;
use super::super::figures::{balance_phases, ends, fit, line_name, processes, targets};
use super::super::groups::{Group, Measured};
use super::super::published;
use super::super::read::Files;
use super::super::show::{self, Look};
use super::super::svg::Unit;
use super::super::table::{Cell, Column, Table};
use super::{name, title};
use crate::model::{self, Metric};

/// Parameters of the Universal Scalability Law per target.
pub(super) fn scaling(measured: &Measured, asked: &model::Table) -> Table {
    let groups = &measured.groups;
    let phases = show::phases(groups, &asked.phase);
    let look = Look {
        phase: phases.first().copied().unwrap_or(""),
        class: &asked.class,
    };
    let mut table = Table::new(
        &name(measured, asked, &[]),
        title(measured, asked, "Universal Scalability Law"),
        vec![
            Column::text("target", "target"),
            Column::figure("gamma (operations/s of one)", "gamma"),
            Column::figure("alpha (contention)", "alpha"),
            Column::figure("beta (coherency)", "beta"),
            Column::figure("peak at", "peak_n"),
            Column::figure("peak throughput", "peak_ops_per_s"),
            Column::figure("residual", "residual_share"),
            Column::number("runs", "runs"),
            Column::text("remark", "remark"),
        ],
    );
    for (target, label, _) in targets(groups) {
        let own: Vec<&Group> = groups.iter().filter(|g| g.target == target).collect();
        let mut row = vec![Cell::text(label)];
        match fit(&own, look) {
            Some(fit) => row.extend(law(&fit)),
            None => {
                row.resize(table.columns.len() - 1, Cell::None);
                row.push(Cell::text(
                    "not fitted: fewer than six numbers of workers, a range below a factor of 32, or the client was the limit",
                ));
            }
        }
        table.rows.push(row);
    }
    table.note = format!(
        "X(N) = gamma N / (1 + alpha (N - 1) + beta N (N - 1)), least squares of relative residuals over all runs that the client did not limit; \
         95 % intervals by parametric bootstrap. A coefficient whose interval reaches 0 is not distinct from 0. No statement beyond {EXTRAPOLATE} times the \
         largest number measured."
    );
    table.compact()
}

fn law(fit: &UslFit) -> Vec<Cell> {
    let figure = |fitted: Fitted, show: fn(f64) -> String| {
        let over = Over {
            value: fitted.value,
            ci: Some(fitted.ci).filter(|(low, high)| low.is_finite() && high.is_finite()),
            runs: fit.runs as usize,
        };
        Cell::figure(Some(over), show)
    };
    let small = |v: f64| match v {
        0.0 => "0".to_owned(),
        v if v.abs() < 0.001 => format!("{v:.2e}"),
        v => units::number(v),
    };
    let peak = fit.peak();
    let mut remark = Vec::new();
    for (name, coefficient) in [("alpha", fit.alpha), ("beta", fit.beta)] {
        if !coefficient.is_distinct() {
            remark.push(format!("{name} not distinct from 0"));
        }
    }
    if peak.is_none() {
        remark.push("no peak within the range".to_owned());
    }
    vec![
        figure(fit.gamma, units::rate),
        figure(fit.alpha, small),
        figure(fit.beta, small),
        peak.map_or(Cell::None, |(n, _)| figure(n, units::number)),
        peak.map_or(Cell::None, |(_, x)| figure(x, |v| Unit::PerS.show(v))),
        Cell::figure(Some(Over::plain(fit.residual_sd)), |v| Unit::Share.show(v)),
        Cell::Count(fit.runs),
        Cell::text(remark.join("; ")),
    ]
}

/// Capacity, bracket and what limited it per target.
pub(super) fn capacity(measured: &Measured, asked: &model::Table) -> Table {
    let mut table = Table::new(
        &name(measured, asked, &[]),
        title(measured, asked, "capacity"),
        vec![
            Column::text("target", "target"),
            Column::text("value", "value"),
            Column::text("objectives", "objectives"),
            Column::figure("confirmed", "confirmed_ops_per_s"),
            Column::figure("refuted", "refuted_ops_per_s"),
            Column::figure("half of the trials pass at", "threshold_ops_per_s"),
            Column::text("limited by", "limit"),
            Column::number("trials", "trials"),
            Column::number("searches", "searches"),
        ],
    );
    for group in &measured.groups {
        let searches = &group.extra.capacity;
        let (low, high) = ends(group);
        let rate = |over| Cell::figure(over, |v| Unit::PerS.show(v));
        let threshold = match &searches[..] {
            // The interval of a single search is that of its regression; of several that over them.
            [only] => only.threshold.as_ref().map(|t| Over {
                value: t.rate,
                ci: Some(t.ci).filter(|(low, high)| *low > 0.0 && high.is_finite()),
                runs: 1,
            }),
            several => {
                let rates: Vec<f64> = several
                    .iter()
                    .filter_map(|s| s.threshold.as_ref())
                    .map(|t| t.rate)
                    .collect();
                Over::mean(&rates)
            }
        };
        let mut limits: Vec<String> = searches
            .iter()
            .map(|search| match (&search.outcome, &search.client_limit) {
                (Some(outcome), client) => limit(outcome.limit, client.as_deref()),
                (None, _) => "interrupted".to_owned(),
            })
            .collect();
        limits.dedup();
        if searches.is_empty() {
            limits.push(group.why_none().to_owned());
        }
        let objectives = searches
            .first()
            .map_or_else(String::new, |s| s.header.slo.to_string());
        table.rows.push(vec![
            Cell::text(&*group.label),
            Cell::text(&*group.value),
            Cell::text(objectives),
            rate(Over::mean(&low)),
            rate(Over::mean(&high)),
            rate(threshold),
            Cell::text(limits.join("; ")),
            Cell::Count(searches.iter().map(|s| s.trials.len() as u64).sum()),
            Cell::Count(searches.len() as u64),
        ]);
    }
    table.note = "Confirmed: the highest rate at which the objectives were kept in the confirming trials; refuted: the lowest at which they were not. \
                  The capacity lies between. Half of the trials: logistic regression over all trials of a search, with its 95 % interval."
        .to_owned();
    table.compact()
}

fn limit(limit: Limit, client: Option<&str>) -> String {
    match limit {
        Limit::Store => "the store".to_owned(),
        Limit::Client => match client {
            Some(reason) => format!("the client ({reason}): the store's capacity is higher"),
            None => "the client: the store's capacity is higher".to_owned(),
        },
        Limit::MaxRate => "the highest rate allowed: the capacity is higher".to_owned(),
        Limit::NotMet => "the lowest rate failed: no capacity at these objectives".to_owned(),
        Limit::Unconfirmed => "not confirmed: trials contradict each other".to_owned(),
    }
}

/// Indices of load balance: per data node where placement is known, and popularity of keys.
pub(super) fn balance(files: &Files, measured: &Measured, asked: &model::Table) -> Table {
    let mut table = Table::new(
        &name(measured, asked, &[]),
        title(measured, asked, "load balance"),
        vec![
            Column::text("target", "target"),
            Column::text("value", "value"),
            Column::text("load", "load"),
            Column::number("nodes", "nodes"),
            Column::figure("peak / mean", "peak"),
            Column::figure("CV", "cv"),
            Column::figure("Gini", "gini"),
            Column::figure("Jain", "jain"),
            Column::figure("effective nodes", "effective"),
            Column::figure("usable capacity", "usable"),
            Column::figure("top key's share", "top1_share"),
            Column::figure("top 100", "top100_share"),
            Column::figure("effective keys", "effective_keys"),
        ],
    );
    for group in &measured.groups {
        let balances = &group.extra.balance;
        match instead(files, group) {
            None => spreads(group, balances, &mut table),
            Some(why) if !group.runs.is_empty() => {
                let mut row = vec![
                    Cell::text(&*group.label),
                    Cell::text(&*group.value),
                    Cell::text(format!("per data node: {why}")),
                ];
                row.resize(13, Cell::None);
                table.rows.push(row);
            }
            Some(_) => {}
        }
        let mut laws: Vec<(&str, &str)> = Vec::new();
        for id in &group.extra.popularity {
            if !laws.contains(&(&*id.phase, &*id.law)) {
                laws.push((&id.phase, &id.law));
            }
        }
        for (phase, law) in laws {
            let ids = || {
                group
                    .extra
                    .popularity
                    .iter()
                    .filter(|id| id.phase == phase && id.law == law)
            };
            let top = |k: u64| {
                let shares = ids()
                    .filter_map(|id| id.top.iter().find(|t| t.k == k))
                    .map(|t| t.realised);
                let shares: Vec<f64> = shares.collect();
                Cell::figure(Over::mean(&shares).map(Over::share), |v| {
                    Unit::Share.show(v)
                })
            };
            let effective: Vec<f64> = ids().map(|id| id.effective).collect();
            let mut row = vec![
                Cell::text(&*group.label),
                Cell::text(&*group.value),
                // A phase is often called like its law.
                Cell::text(match law.starts_with(phase) {
                    true => format!("keys, {law}"),
                    false => format!("keys, {phase}: {law}"),
                }),
            ];
            row.resize(10, Cell::None);
            row.extend([
                top(1),
                top(100),
                Cell::figure(Over::mean(&effective), units::number),
            ]);
            table.rows.push(row);
        }
        if group.runs.is_empty() {
            let mut row = vec![
                Cell::text(&*group.label),
                Cell::text(&*group.value),
                Cell::text(group.why_none()),
            ];
            row.resize(13, Cell::None);
            table.rows.push(row);
        }
    }
    if files.study.published == "ostorebench" && !table.rows.is_empty() {
        let value = |index: &str| {
            let found =
                published::of("ostorebench").find(|v| v.quantity == format!("balance-{index}"));
            Cell::figure(found.map(|v| Over::plain(v.value)), units::number)
        };
        table.rows.push(vec![
            Cell::text("published, another machine"),
            Cell::None,
            Cell::text("requests per data node, read off Fig. 8"),
            Cell::Count(6),
            value("peak"),
            value("cv"),
            value("gini"),
            value("jain"),
            value("effective"),
            value("usable"),
            Cell::None,
            Cell::None,
            Cell::None,
        ]);
    }
    table.note = "Peak / mean: load of the busiest node over the mean, 1 for even load. Usable capacity: mean over maximum. Expected: from the \
                  keys that were read and where their copies lie, each copy answering equally often. Rows of keys: what the workload \
                  alone asks, whatever the store; with one copy per key and n nodes the peak is at least n times the top key's share. In brackets: 95 % interval over the repetitions."
        .to_owned();
    table.compact()
}

/// A row for the requests of each phase, and one for the objects.
fn spreads(group: &Group, balances: &[Balance], table: &mut Table) {
    let mut add = |load: String, nodes: usize, indices: &[Indices]| {
        let of = |figure: fn(&Indices) -> f64| {
            let values: Vec<f64> = indices.iter().map(figure).collect();
            Cell::figure(Over::mean(&values), units::number)
        };
        table.rows.push(vec![
            Cell::text(&*group.label),
            Cell::text(&*group.value),
            Cell::text(load),
            Cell::Count(nodes as u64),
            of(|i| i.peak),
            of(|i| i.cv),
            of(|i| i.gini),
            of(|i| i.jain),
            of(|i| i.effective),
            of(|i| i.usable),
            Cell::None,
            Cell::None,
            Cell::None,
        ]);
    };
    for phase in balance_phases(balances) {
        let own: Vec<&Balance> = balances.iter().filter(|b| b.phase == phase).collect();
        let Some(first) = own.first() else { continue };
        let of_phase = match phase {
            "" => String::new(),
            phase => format!("{phase}: "),
        };
        let load = match first.observed {
            true => format!("{of_phase}requests per {}, observed", first.over),
            false => format!("{of_phase}requests per {}, expected", first.over),
        };
        let indices: Vec<Indices> = own.iter().filter_map(|b| b.indices).collect();
        add(load, first.loads.len(), &indices);
    }
    if let Some(first) = balances.first().filter(|b| b.over == "data node") {
        let runs = balances.iter().filter(|b| b.phase == first.phase);
        let indices: Vec<Indices> = runs
            .filter_map(|b| {
                let objects: Vec<f64> = b.loads.iter().map(|(_, _, objects)| *objects).collect();
                Indices::of(&objects)
            })
            .collect();
        add(
            "objects per data node".to_owned(),
            first.loads.len(),
            &indices,
        );
    }
}

/// Every cell of an experiment with its verdicts.
pub(super) fn verdicts(measured: &Measured) -> Table {
    let groups = &measured.groups;
    let several = processes(groups).len() > 1;
    let mut table = Table::new(
        &format!("{}-verdicts", measured.experiment.name),
        format!("{}: verdicts", measured.experiment.label()),
        vec![
            Column::text("target", "target"),
            Column::text("value", "value"),
            Column::text("runs", "runs"),
            Column::text("verdicts", "verdicts"),
            Column::text("rules", "rules"),
            Column::text("without a run", "missing"),
        ],
    );
    for group in groups {
        let mut words: Vec<(&str, usize)> = Vec::new();
        let mut rules: Vec<&str> = Vec::new();
        for run in &group.runs {
            match words.iter_mut().find(|(word, _)| *word == run.word.name()) {
                Some((_, n)) => *n += 1,
                None => words.push((run.word.name(), 1)),
            }
            for rule in &run.rules {
                if !rules.contains(&&**rule) {
                    rules.push(rule);
                }
            }
        }
        let words: Vec<String> = words
            .iter()
            .map(|(word, n)| {
                if group.runs.len() == 1 {
                    (*word).to_owned()
                } else {
                    format!("{n} {word}")
                }
            })
            .collect();
        let mut missing: Vec<&str> = group.missing.iter().map(|(_, why)| why.as_str()).collect();
        missing.dedup();
        table.rows.push(vec![
            Cell::text(&*group.label),
            Cell::text(line_name(&group.value, group.processes, several)),
            Cell::text(format!("{} of {}", group.runs.len(), group.planned)),
            Cell::text(words.join(", ")),
            Cell::text(rules.join(", ")),
            Cell::text(missing.join("; ")),
        ]);
    }
    table.note = "Rules are explained in the report of each run. Runs whose verdict is INCOMPLETE are not part of any figure; all others are, and their \
                  cells are marked."
        .to_owned();
    table.compact()
}

/// Every run with its figures: a row per run, phase and class.
pub(super) fn cells(files: &Files, all: &[Measured]) -> Table {
    let metrics = Metric::ALL;
    let mut columns = vec![
        Column::text("experiment", "experiment"),
        Column::text("target", "target"),
        Column::text("value", "value"),
        Column::number("processes", "processes"),
        Column::number("repetition", "repetition"),
        Column::text("cell", "cell"),
        Column::text("verdict", "verdict"),
        Column::text("rules", "rules"),
        Column::text("phase", "phase"),
        Column::text("class", "class"),
        Column::number("ok", "ok"),
        Column::number("failed", "failed"),
    ];
    columns.extend(metrics.map(|metric| Column::number(show::name(metric), show::key(metric))));
    let mut table = Table::new(
        "cells",
        format!("{}: every run", files.study.title),
        columns,
    );
    for measured in all {
        for group in &measured.groups {
            let head = |repetition: u32, cell: &str, verdict: &str, rules: String| {
                vec![
                    Cell::text(&*measured.experiment.name),
                    Cell::text(&*group.target),
                    Cell::text(&*group.value),
                    if group.processes > 0 {
                        Cell::Count(u64::from(group.processes))
                    } else {
                        Cell::None
                    },
                    if repetition > 0 {
                        Cell::Count(u64::from(repetition))
                    } else {
                        Cell::None
                    },
                    Cell::text(cell),
                    Cell::text(verdict),
                    Cell::text(rules),
                ]
            };
            for run in &group.runs {
                let slots: Vec<_> = run
                    .slots
                    .iter()
                    .filter(|slot| !slot.phase.is_empty())
                    .collect();
                if slots.is_empty() {
                    let mut row = head(
                        run.repetition,
                        &run.cell,
                        run.word.name(),
                        run.rules.join(" "),
                    );
                    row.resize(table.columns.len(), Cell::None);
                    table.rows.push(row);
                }
                for slot in slots {
                    let mut row = head(
                        run.repetition,
                        &run.cell,
                        run.word.name(),
                        run.rules.join(" "),
                    );
                    row.push(Cell::text(&*slot.phase));
                    row.push(Cell::text(if slot.class.is_empty() {
                        "all"
                    } else {
                        &slot.class
                    }));
                    row.push(Cell::Count(slot.figures.ok));
                    row.push(Cell::Count(slot.figures.failed));
                    row.extend(metrics.map(|metric| {
                        Cell::figure(slot.figures.metric(metric).map(Over::plain), |v| {
                            show::unit(metric).show(v)
                        })
                    }));
                    table.rows.push(row);
                }
            }
            for (cell, why) in &group.missing {
                let mut row = head(0, cell, why, String::new());
                row.resize(table.columns.len(), Cell::None);
                table.rows.push(row);
            }
        }
    }
    table
}
