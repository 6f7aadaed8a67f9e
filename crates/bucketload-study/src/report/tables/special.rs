//! Tables for single kinds of cells (fitted laws, capacities), and the verdicts of all cells.

use bucketload_core::capacity::Limit;
use bucketload_core::stats::usl::{EXTRAPOLATE, Fitted, UslFit};
use bucketload_results::kit::{Cell, Column, Table, Unit};
use bucketload_results::units;

use super::super::digest::Slot;
use super::super::estimate::Estimate;
use super::super::figures::{ends, fit, line_name, processes, targets};
use super::super::groups::{Group, Measured};
use super::super::read::Files;
use super::super::show::{self, Ops, distinct};
use super::{Request, Sheet};
use crate::model::Metric;

/// Parameters of the Universal Scalability Law per target.
pub(super) fn scaling(request: &Request<'_>) -> Table {
    let groups = &request.measured.groups;
    let phases = show::phases(groups, &request.table.phase);
    let ops = Ops {
        phase: phases.first().copied().unwrap_or(""),
        class: &request.table.class,
    };
    let mut table = request.table(
        &[],
        "Universal Scalability Law",
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
        match fit(&own, ops) {
            Some(fit) => row.extend(law(&fit)),
            None => {
                row.resize(table.columns.len() - 1, Cell::None);
                row.push(Cell::text(
                    "not fitted: fewer than six numbers of workers, a range below a factor of 32, or the client was the limit",
                ));
            }
        }
        table.row(row);
    }
    table.noted(format!(
        "X(N) = gamma N / (1 + alpha (N - 1) + beta N (N - 1)), least squares of relative residuals over all runs that the client did not limit; \
         95 % intervals by parametric bootstrap. A coefficient whose interval reaches 0 is indistinguishable from 0. No statement beyond {EXTRAPOLATE} times the \
         largest number measured."
    ))
    .compact()
}

fn law(fit: &UslFit) -> Vec<Cell> {
    let figure = |fitted: Fitted, show: fn(f64) -> String| {
        let ci = Some(fitted.ci).filter(|(low, high)| low.is_finite() && high.is_finite());
        Cell::figure(fitted.value, ci, show)
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
            remark.push(format!("{name} indistinguishable from 0"));
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
        Cell::figure(fit.residual_sd, None, |v| Unit::Share.show(v)),
        Cell::Count(fit.runs),
        Cell::text(remark.join("; ")),
    ]
}

/// Capacity, bracket and limiting factor per target.
pub(super) fn capacity(request: &Request<'_>) -> Table {
    let rate = |estimate| Estimate::cell(estimate, |v| Unit::PerS.show(v));
    let (columns, rows) = Sheet(Vec::new())
        .text("target", |g: &&Group| g.label.clone())
        .text("value", |g| g.value.clone())
        .text("objectives", |g| {
            let first = g.extra.capacity.first();
            first.map_or_else(String::new, |s| s.header.slo.to_string())
        })
        .column(
            Column::figure("confirmed", "confirmed_ops_per_s"),
            move |g| rate(Estimate::mean(&ends(g).0)),
        )
        .column(Column::figure("refuted", "refuted_ops_per_s"), move |g| {
            rate(Estimate::mean(&ends(g).1))
        })
        .column(
            Column::figure("half of the trials pass at", "threshold_ops_per_s"),
            move |g| rate(threshold(g)),
        )
        .column(Column::text("limited by", "limit"), |g| {
            Cell::Text(limits(g))
        })
        .column(Column::number("trials", "trials"), |g| {
            let trials = g.extra.capacity.iter().map(|s| s.trials.len() as u64);
            Cell::Count(trials.sum())
        })
        .column(Column::number("searches", "searches"), |g| {
            Cell::Count(g.extra.capacity.len() as u64)
        })
        .parts(&request.measured.groups);
    let table = request.table(&[], "capacity", columns).noted(
        "Confirmed: the highest rate at which the confirming trials met the objectives; refuted: the lowest at which they did not. \
         The capacity lies in between. Half of the trials: logistic regression over all trials of a search, with its 95 % interval.",
    );
    Table { rows, ..table }.compact()
}

/// The rate at which half of the trials pass. The interval of a single search is that of its regression; for several
/// searches it is the interval over them.
fn threshold(group: &Group) -> Option<Estimate> {
    let searches = &group.extra.capacity;
    let known = searches.iter().filter_map(|s| s.threshold.as_ref());
    if let [only] = &searches[..] {
        return only.threshold.as_ref().map(|t| Estimate {
            value: t.rate,
            ci: Some(t.ci).filter(|(low, high)| *low > 0.0 && high.is_finite()),
            runs: 1,
        });
    }
    Estimate::mean(&known.map(|t| t.rate).collect::<Vec<f64>>())
}

/// The limits that ended the searches.
fn limits(group: &Group) -> String {
    let searches = group.extra.capacity.iter();
    let mut limits: Vec<String> = searches
        .map(|search| match (&search.outcome, &search.client_limit) {
            (Some(outcome), client) => limit(outcome.limit, client.as_deref()),
            (None, _) => "interrupted".to_owned(),
        })
        .collect();
    limits.dedup();
    match limits.is_empty() {
        true => group.why_none().to_owned(),
        false => limits.join("; "),
    }
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
pub(in super::super) fn verdicts(measured: &Measured) -> Table {
    let several = processes(&measured.groups).len() > 1;
    let (columns, rows) = Sheet(Vec::new())
        .text("target", |g: &&Group| g.label.clone())
        .text("value", move |g| line_name(&g.value, g.processes, several))
        .text("runs", |g| format!("{} of {}", g.runs.len(), g.planned))
        .text("verdicts", |g| {
            let word = |word: &str| {
                let same = g.runs.iter().filter(|run| run.word.name() == word);
                match (g.runs.len(), same.count()) {
                    (1, _) => word.to_owned(),
                    (_, n) => format!("{n} {word}"),
                }
            };
            let words = distinct(g.runs.iter().map(|run| run.word.name()));
            words.into_iter().map(word).collect::<Vec<_>>().join(", ")
        })
        .text("rules", |g| {
            let rules = g.runs.iter().flat_map(|run| &run.rules);
            distinct(rules.map(String::as_str)).join(", ")
        })
        .column(Column::text("without a run", "missing"), |g| {
            let mut missing: Vec<&str> = g.missing.iter().map(|(_, why)| why.as_str()).collect();
            missing.dedup();
            Cell::Text(missing.join("; "))
        })
        .parts(&measured.groups);
    let experiment = &measured.experiment;
    let name = format!("{}-verdicts", experiment.name);
    let title = format!("{}: verdicts", experiment.label());
    let table = Table::named(&name, title, columns).noted(
        "The report of each run explains the rules. Runs whose verdict is INCOMPLETE are excluded from all figures; all others are \
         included, and their cells are marked.",
    );
    Table { rows, ..table }.compact()
}

/// A row of the table of all runs: a slot of a run, or a cell without one.
struct Line<'a> {
    measured: &'a Measured,
    group: &'a Group,
    repetition: u32,
    cell: &'a str,
    /// The verdict, or the reason why there is no run.
    word: &'a str,
    rules: String,
    slot: Option<&'a Slot>,
}

/// The rows of a group: at least one per run, and one per cell without a run.
fn lines<'a>(measured: &'a Measured, group: &'a Group) -> Vec<Line<'a>> {
    let mut out = Vec::new();
    for run in &group.runs {
        let line = |slot| Line {
            measured,
            group,
            repetition: run.repetition,
            cell: &run.cell,
            word: run.word.name(),
            rules: run.rules.join(" "),
            slot,
        };
        let known = out.len();
        let slots = run.slots.iter().filter(|slot| !slot.phase.is_empty());
        out.extend(slots.map(|slot| line(Some(slot))));
        if out.len() == known {
            out.push(line(None));
        }
    }
    out.extend(group.missing.iter().map(|(cell, why)| Line {
        measured,
        group,
        repetition: 0,
        cell,
        word: why,
        rules: String::new(),
        slot: None,
    }));
    out
}

/// Every run with its figures: one row per run, phase and class.
pub(in super::super) fn cells(files: &Files, all: &[Measured]) -> Table {
    let some = |n: u32| match n {
        0 => Cell::None,
        n => Cell::Count(u64::from(n)),
    };
    let of_slot = |line: &Line<'_>, of: &dyn Fn(&Slot) -> Cell| line.slot.map_or(Cell::None, of);
    let sheet = Sheet(Vec::new())
        .text("experiment", |l: &Line<'_>| {
            l.measured.experiment.name.clone()
        })
        .text("target", |l| l.group.target.clone())
        .text("value", |l| l.group.value.clone())
        .column(Column::number("processes", "processes"), move |l| {
            some(l.group.processes)
        })
        .column(Column::number("repetition", "repetition"), move |l| {
            some(l.repetition)
        })
        .text("cell", |l| l.cell.to_owned())
        .text("verdict", |l| l.word.to_owned())
        .text("rules", |l| l.rules.clone())
        .column(Column::text("phase", "phase"), move |l| {
            of_slot(l, &|slot| Cell::text(&*slot.phase))
        })
        .column(Column::text("class", "class"), move |l| {
            of_slot(l, &|slot| match slot.class.as_str() {
                "" => Cell::text("all"),
                class => Cell::text(class),
            })
        })
        .column(Column::number("ok", "ok"), move |l| {
            of_slot(l, &|slot| Cell::Count(slot.figures.ok))
        })
        .column(Column::number("failed", "failed"), move |l| {
            of_slot(l, &|slot| Cell::Count(slot.figures.failed))
        });
    let sheet = Metric::ALL.iter().copied().fold(sheet, |sheet, metric| {
        let column = Column::number(metric.title, metric.id);
        sheet.column(column, move |l| {
            of_slot(l, &|slot| {
                let value = metric.value(&slot.figures).map(Estimate::plain);
                Estimate::cell(value, |v| metric.unit.show(v))
            })
        })
    });
    let groups = all
        .iter()
        .flat_map(|m| m.groups.iter().map(move |g| (m, g)));
    let (columns, rows) = sheet.parts(groups.flat_map(|(m, g)| lines(m, g)));
    let title = format!("{}: every run", files.study.title);
    Table {
        rows,
        ..Table::named("cells", title, columns)
    }
}
