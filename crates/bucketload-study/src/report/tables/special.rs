//! Tables of what single kinds of cells have: fitted laws, capacities; and the verdicts of all.

use bucketload_core::capacity::Limit;
use bucketload_core::stats::usl::{EXTRAPOLATE, Fitted, UslFit};
use bucketload_results::units;

use super::super::estimate::Over;
use super::super::figures::{ends, fit, line_name, processes, targets};
use super::super::groups::{Group, Measured};
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
