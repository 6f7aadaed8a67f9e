//! Tables of IO500 and MD-Workbench, with published values next to ours.

use bucketload_results::io500::{self, PHASES, Scores};
use bucketload_results::kit::{Cell, Column, Table};
use bucketload_results::units;

use super::super::estimate::Estimate;
use super::super::groups::Group;
use super::super::published;
use super::super::show::{self, distinct};
use super::super::workbench::Stage;
use super::Request;
use super::named::plain;

/// IO500's phases and scores: one row per phase, one column per target.
pub(super) fn io500(request: &Request<'_>) -> Table {
    use io500::Group as Kind;
    let groups = &request.measured.groups;
    let mut columns = vec![Column::text("phase", "phase"), Column::text("unit", "unit")];
    columns.extend(groups.iter().map(|g| match g.value.is_empty() {
        true => Column::figure(&g.label, &g.target),
        false => Column::figure(
            &format!("{}, {}", g.label, g.value),
            &format!("{}_{}", g.target, g.value),
        ),
    }));
    let mut table = request.table(&[], "IO500's phases and scores", columns);
    let unit = |kind: Kind| {
        if kind == Kind::Bandwidth {
            "GiB/s"
        } else {
            "kIOPS"
        }
    };
    let cell = |group: &Group, values: &[f64], invalid: bool| {
        let estimate = Estimate::mean(values).filter(|o| o.value > 0.0);
        match Estimate::cell(estimate, |v| format!("{v:.3}")) {
            Cell::None if group.extra.io500.is_empty() => Cell::text(group.why_none()),
            cell => cell.marked(if invalid { "[INVALID]" } else { "" }),
        }
    };
    for phase in PHASES.iter().filter(|phase| phase.group != Kind::None) {
        let mut row = vec![Cell::text(phase.name), Cell::text(unit(phase.group))];
        row.extend(groups.iter().map(|group| {
            let recorded = || {
                let phases = group.extra.io500.iter().flat_map(|r| &r.phases);
                phases.filter(|p| p.name == phase.name)
            };
            let values: Vec<f64> = recorded().filter_map(|p| p.score.parse().ok()).collect();
            cell(group, &values, recorded().any(|p| p.invalid))
        }));
        table.row(row);
    }
    type Score = fn(&Scores) -> f64;
    let scores: [(&str, &str, Score); 3] = [
        ("bandwidth", "GiB/s", |s| s.bw),
        ("metadata", "kIOPS", |s| s.md),
        ("SCORE", "", |s| s.total),
    ];
    for (what, unit, of) in scores {
        let mut row = vec![Cell::text(what), Cell::text(unit)];
        row.extend(groups.iter().map(|group| {
            let all = || group.extra.io500.iter();
            let each = all().map(|recorded| {
                let figures = recorded.phases.iter().filter_map(|p| {
                    let known = io500::phase_named(&p.name)?;
                    Some((known.group, p.score.parse::<f64>().ok()?))
                });
                of(&Scores::from_figures(figures, !recorded.invalid))
            });
            let values: Vec<f64> = each.collect();
            cell(group, &values, all().any(|r| r.invalid))
        }));
        table.row(row);
    }
    table.noted(
        "Scores by IO500's rules: geometric means of the bandwidths and of the metadata rates, and the square root of their product. \
         [INVALID]: by IO500's rules the figure does not count, most often because the stonewall was shorter than 300 s. Geometric mean of \
         the repetitions; in brackets: 95 % interval.",
    )
}

/// MD-Workbench's rates and quantiles: one row per target, phase and kind of operation.
pub(super) fn workbench(request: &Request<'_>) -> Table {
    let mut table = request.table(
        &[],
        "MD-Workbench's rates and times",
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
    for group in &request.measured.groups {
        if group.extra.workbench.is_empty() {
            table.short_row(vec![
                Cell::text(&*group.label),
                Cell::text(group.why_none()),
            ]);
        }
        for phase in ["precreate", "benchmark", "cleanup"] {
            let all = group.extra.workbench.iter();
            let stages: Vec<&Stage> = all.filter(|s| s.name == phase).collect();
            stages_rows(&mut table, group, phase, &stages);
        }
    }
    let published = request.files.study.published == "s3-hpc";
    if published && !table.rows.is_empty() {
        let value = |quantity: &str| {
            let found = published::of("s3-hpc").find(|v| v.quantity == quantity);
            Estimate::cell(found.map(|v| Estimate::plain(v.value)), plain)
        };
        table.short_row(vec![
            Cell::text("OpenStack Swift (published, another installation)"),
            Cell::text("benchmark"),
            value("md-workbench-rate"),
            value("md-workbench-mib-s"),
        ]);
    }
    let mut note = "Rates as counted by MD-Workbench (four operations per object of the benchmark phase, over the time of the slowest rank). \
                    Medians and p99: median of the repetitions' quantiles; in brackets: 95 % interval."
        .to_owned();
    if published {
        note += " ";
        note += published::SEE;
    }
    table.noted(note)
}

/// The rows of a phase: one per kind of operation; the first also has the common figures.
fn stages_rows(table: &mut Table, group: &Group, phase: &str, stages: &[&Stage]) {
    let of = |figure: fn(&Stage) -> f64| -> Vec<f64> {
        stages.iter().map(|stage| figure(stage)).collect()
    };
    let all = || stages.iter().flat_map(|s| &s.times_s);
    for (i, kind) in distinct(all().map(|(kind, _)| *kind)).iter().enumerate() {
        let times = |at: usize| -> Vec<f64> {
            let of_kind = all().filter(|(k, _)| k == kind);
            of_kind.map(|(_, times)| times[at]).collect()
        };
        let time = |estimate| Estimate::cell(estimate, |s| units::ns(s * 1e9));
        let once = |cell: Cell| if i == 0 { cell } else { Cell::None };
        let longest = times(2).into_iter().fold(0.0, f64::max);
        let moved = of(|s| s.mib_per_s);
        let moved = Estimate::mean(&moved).filter(|_| moved.iter().any(|m| *m > 0.0));
        let rate = Estimate::cell(Estimate::mean(&of(|s| s.rate)), plain);
        table.row(vec![
            Cell::text(&*group.label),
            Cell::text(phase),
            once(rate.marked(&show::mark(group))),
            once(Estimate::cell(moved, plain)),
            Cell::text(*kind),
            time(Estimate::median(&times(0))),
            time(Estimate::median(&times(1))),
            time(Some(Estimate::plain(longest))),
            once(Cell::Count(stages.iter().map(|s| s.failed).sum())),
        ]);
    }
}
