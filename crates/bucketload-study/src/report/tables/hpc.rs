//! Tables of IO500 and MD-Workbench, with the published values beside ours.

use bucketload_results::io500::{PHASES, Scores};
use bucketload_results::units;

use super::super::estimate::Over;
use super::super::groups::{Group, Measured};
use super::super::published;
use super::super::read::Files;
use super::super::show;
use super::super::table::{Cell, Column, Table};
use super::named::plain;
use super::{name, title};
use crate::model;

/// IO500's phases and scores: a row per phase, a column per target.
pub(super) fn io500(measured: &Measured, asked: &model::Table) -> Table {
    use bucketload_results::io500::Group as Kind;
    let groups: Vec<&Group> = measured.groups.iter().collect();
    let column = |g: &&Group| match g.value.is_empty() {
        true => (g.label.clone(), g.target.clone()),
        false => (
            format!("{}, {}", g.label, g.value),
            format!("{}_{}", g.target, g.value),
        ),
    };
    let mut columns = vec![Column::text("phase", "phase"), Column::text("unit", "unit")];
    for group in &groups {
        let (title, key) = column(group);
        columns.push(Column::figure(&title, &key));
    }
    let mut table = Table::new(
        &name(measured, asked, &[]),
        title(measured, asked, "IO500's phases and scores"),
        columns,
    );
    let unit = |kind: Kind| {
        if kind == Kind::Bandwidth {
            "GiB/s"
        } else {
            "kIOPS"
        }
    };
    let cell = |group: &Group, values: &[f64], invalid: bool| {
        let cell = Cell::figure(Over::mean(values).filter(|o| o.value > 0.0), |v| {
            format!("{v:.3}")
        });
        match cell {
            Cell::Figure {
                over,
                shown,
                interval,
            } if invalid => Cell::Figure {
                over,
                shown: format!("{shown} [INVALID]"),
                interval,
            },
            Cell::None if group.extra.io500.is_empty() => Cell::text(group.why_none()),
            cell => cell,
        }
    };
    for phase in PHASES.iter().filter(|phase| phase.group != Kind::None) {
        let mut row = vec![Cell::text(phase.name), Cell::text(unit(phase.group))];
        for group in &groups {
            let recorded = || {
                group
                    .extra
                    .io500
                    .iter()
                    .flat_map(|r| &r.phases)
                    .filter(|p| p.name == phase.name)
            };
            let values: Vec<f64> = recorded().filter_map(|p| p.score.parse().ok()).collect();
            row.push(cell(group, &values, recorded().any(|p| p.invalid)));
        }
        table.rows.push(row);
    }
    type Score = fn(&Scores) -> f64;
    let scores: [(&str, &str, Score); 3] = [
        ("bandwidth", "GiB/s", |s| s.bw),
        ("metadata", "kIOPS", |s| s.md),
        ("SCORE", "", |s| s.total),
    ];
    for (what, unit, of) in scores {
        let mut row = vec![Cell::text(what), Cell::text(unit)];
        for group in &groups {
            let each = group.extra.io500.iter().map(|recorded| {
                let figures = recorded.phases.iter().filter_map(|p| {
                    let known = bucketload_results::io500::phase_named(&p.name)?;
                    Some((known.group, p.score.parse::<f64>().ok()?))
                });
                let figures: Vec<(Kind, f64)> = figures.collect();
                of(&Scores::from_figures(
                    figures.into_iter(),
                    !recorded.invalid,
                ))
            });
            let values: Vec<f64> = each.collect();
            row.push(cell(
                group,
                &values,
                group.extra.io500.iter().any(|r| r.invalid),
            ));
        }
        table.rows.push(row);
    }
    table.note = "Scores by IO500's rules: geometric means of the bandwidths and of the metadata rates, and the root of their product. [INVALID]: by \
                  IO500's rules the figure does not count, most often because the stonewall was shorter than 300 s. Geometric mean of the \
                  repetitions; in brackets: 95 % interval."
        .to_owned();
    table
}

/// MD-Workbench's rates and quantiles: a row per target, phase and kind of operation.
pub(super) fn workbench(files: &Files, measured: &Measured, asked: &model::Table) -> Table {
    let mut table = Table::new(
        &name(measured, asked, &[]),
        title(measured, asked, "MD-Workbench's rates and times"),
        vec![
            Column::text("target", "target"),
            Column::text("phase", "phase"),
            Column::figure("operations/s", "iops"),
            Column::figure("MiB/s", "mib_per_s"),
            Column::text("operation", "operation"),
            Column::figure("median", "p50_s"),
            Column::figure("p99", "p99_s"),
            Column::number("longest", "max_s"),
            Column::number("failed", "failed"),
        ],
    );
    for group in &measured.groups {
        if group.extra.workbench.is_empty() {
            let mut row = vec![Cell::text(&*group.label), Cell::text(group.why_none())];
            row.resize(table.columns.len(), Cell::None);
            table.rows.push(row);
        }
        for phase in ["precreate", "benchmark", "cleanup"] {
            let stages: Vec<_> = group
                .extra
                .workbench
                .iter()
                .filter(|s| s.name == phase)
                .collect();
            let of = |figure: fn(&super::super::workbench::Stage) -> f64| -> Vec<f64> {
                stages.iter().map(|stage| figure(stage)).collect()
            };
            let mut kinds: Vec<&str> = Vec::new();
            for (kind, _) in stages.iter().flat_map(|s| &s.times_s) {
                if !kinds.contains(kind) {
                    kinds.push(kind);
                }
            }
            for (i, kind) in kinds.iter().enumerate() {
                let times = |at: usize| -> Vec<f64> {
                    let of_kind = stages
                        .iter()
                        .flat_map(|s| &s.times_s)
                        .filter(|(k, _)| k == kind);
                    of_kind.map(|(_, times)| times[at]).collect()
                };
                let time = |over| Cell::figure(over, |s| units::ns(s * 1e9));
                let once = |cell: Cell| if i == 0 { cell } else { Cell::None };
                let longest = times(2).into_iter().fold(0.0, f64::max);
                let moved = of(|s| s.mib_per_s).iter().any(|m| *m > 0.0);
                table.rows.push(vec![
                    Cell::text(&*group.label),
                    Cell::text(phase),
                    once(show::marked(
                        group,
                        Cell::figure(Over::mean(&of(|s| s.rate)), plain),
                    )),
                    once(match moved {
                        true => Cell::figure(Over::mean(&of(|s| s.mib_per_s)), plain),
                        false => Cell::None,
                    }),
                    Cell::text(*kind),
                    time(Over::median(&times(0))),
                    time(Over::median(&times(1))),
                    time(Some(Over::plain(longest))),
                    once(Cell::Count(stages.iter().map(|s| s.failed).sum())),
                ]);
            }
        }
    }
    if files.study.published == "s3-hpc" && !table.rows.is_empty() {
        let value = |quantity: &str| {
            let found = published::of("s3-hpc").find(|v| v.quantity == quantity);
            Cell::figure(found.map(|v| Over::plain(v.value)), plain)
        };
        let mut row = vec![
            Cell::text("OpenStack Swift (published, another machine)"),
            Cell::text("benchmark"),
            value("md-workbench-rate"),
            value("md-workbench-mib-s"),
        ];
        row.resize(table.columns.len(), Cell::None);
        table.rows.push(row);
    }
    table.note = "Rates as MD-Workbench counts them (four operations per object of the benchmark phase, over the time of the slowest rank). \
                  Medians and p99: median of the repetitions' quantiles; in brackets: 95 % interval."
        .to_owned();
    if files.study.published == "s3-hpc" {
        table.note += " ";
        table.note += published::SEE;
    }
    table
}
