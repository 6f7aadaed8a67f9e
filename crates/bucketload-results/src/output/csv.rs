//! The result as one table (RFC 4180): one row per phase and operation class.

use bucketload_core::capacity::Statistic;
use bucketload_core::stats::quantile::Print;

use crate::kit::escape;
use crate::result::figure::{CLASS, DURATIONS, Figure, Outcome, decimal};
use crate::result::latency::QUANTILES;
use crate::result::{ClassResult, Latency, PhaseResult, PopularityId, RunResult};

/// The data of a row.
struct Row<'a> {
    result: &'a RunResult,
    phase: &'a PhaseResult,
    class: &'a ClassResult,
}

/// A column that is not a figure of the class: its name and its cell.
type Column = (&'static str, fn(&Row<'_>) -> String);

/// Columns before the figures.
const HEAD: [Column; 8] = [
    ("run_id", |r| r.result.run.run_id.clone()),
    ("workload", |r| r.result.run.workload.clone()),
    ("scenario_hash", |r| r.result.run.scenario_hash.clone()),
    ("verdict", |r| {
        let verdict = r.phase.verdict.as_ref();
        verdict.map_or_else(String::new, |v| v.word.name().to_owned())
    }),
    ("phase", |r| r.phase.name.clone()),
    ("work", |r| r.class.work_name.clone()),
    ("operation", |r| r.class.class.to_string()),
    ("window_s", |r| decimal(Some(r.phase.window.seconds()))),
];

/// The column between figures and latencies.
const OFFERED: Column = ("offered_ops_per_s", |r| {
    decimal(Some(r.phase.rates.offered_ops_per_s))
});

/// Columns after the latencies: errors, the identity of the workload, the backlog of the phase.
const TAIL: [Column; 10] = [
    ("errors", |r| {
        let errors = r.class.errors.iter();
        let errors: Vec<String> = errors.map(|e| format!("{}={}", e.kind, e.count)).collect();
        errors.join(" ")
    }),
    ("profile", |r| r.result.run.profile.clone()),
    ("compat", |r| r.result.run.compat.clone()),
    ("schedule_hash", |r| r.result.run.schedule_hash.clone()),
    ("seed", |r| r.result.run.seed.to_string()),
    ("scale", |r| r.result.run.scale.to_string()),
    ("payload", |r| plain(&r.result.run.payload)),
    ("popularity", |r| {
        let of_phase = r.result.run.popularity.iter();
        let of_phase = of_phase.filter(|p| p.phase == r.phase.name);
        let lines: Vec<String> = of_phase.map(PopularityId::line).collect();
        plain(&lines.join(" | "))
    }),
    ("backlog_max_s", |r| {
        decimal(r.phase.backlog.map(|b| b.max_s))
    }),
    ("backlog_mean_s", |r| {
        decimal(r.phase.backlog.map(|b| b.mean_s))
    }),
];

/// The result as CSV with a header line. New columns are only ever appended at the end.
///
/// `verdict` is that of the phase and empty for phases that do not measure. Percentiles with too few values and
/// missing figures are empty. `offered_ops_per_s` is that of the whole phase.
#[must_use]
pub fn csv(result: &RunResult) -> String {
    let name = |column: &Column| column.0.to_owned();
    let mut head: Vec<String> = HEAD.iter().map(name).collect();
    for figure in figures(false) {
        head.push(figure.id.to_owned());
        if figure.has_interval() {
            head.push(format!("{}_half_width", figure.id));
        }
    }
    head.push(name(&OFFERED));
    for duration in DURATIONS {
        let id = duration.id;
        head.extend([format!("{id}_n"), format!("{id}_mean_ns")]);
        head.extend(QUANTILES.map(|q| {
            let name = Statistic::Quantile(q).name().replace('.', "");
            format!("{id}_{name}_ns")
        }));
        head.push(format!("{id}_max_ns"));
    }
    head.extend(TAIL.iter().map(name));
    head.extend(figures(true).map(|figure| figure.id.to_owned()));
    let mut out = String::new();
    row(&mut out, &head);
    for phase in &result.phases {
        for class in &phase.classes {
            row(
                &mut out,
                &cells(&Row {
                    result,
                    phase,
                    class,
                }),
            );
        }
    }
    out
}

/// The figures that are fields of the class, or those computed from fields.
fn figures(computed: bool) -> impl Iterator<Item = &'static Figure<Outcome>> {
    CLASS
        .iter()
        .filter(move |figure| figure.computed == computed)
}

/// Replaces commas: simple readers do not know quotes, and without a comma the cell needs none.
fn plain(text: &str) -> String {
    text.replace(',', ";")
}

fn cells(of: &Row<'_>) -> Vec<String> {
    let outcome = Outcome::from(of.class);
    let mut cells: Vec<String> = HEAD.iter().map(|(_, cell)| cell(of)).collect();
    for figure in figures(false) {
        cells.push(figure.digits(&outcome));
        if figure.has_interval() {
            let estimate = figure.estimate(&outcome);
            cells.push(decimal(estimate.and_then(|e| e.half_width)));
        }
    }
    cells.push(OFFERED.1(of));
    for duration in DURATIONS {
        cells.extend(latency_cells((duration.of)(of.class)));
    }
    cells.extend(TAIL.iter().map(|(_, cell)| cell(of)));
    cells.extend(figures(true).map(|figure| figure.digits(&outcome)));
    cells
}

fn latency_cells(latency: &Latency) -> Vec<String> {
    let some = |text: String| if latency.n == 0 { String::new() } else { text };
    let mut cells = vec![
        latency.n.to_string(),
        some(format!("{:.0}", latency.mean_ns)),
    ];
    for q in QUANTILES {
        let shown = latency.percentile(q).filter(|p| p.print != Print::Omit);
        cells.push(shown.map_or_else(String::new, |p| p.value_ns.to_string()));
    }
    cells.push(some(latency.max_ns.to_string()));
    cells
}

fn row(out: &mut String, cells: &[String]) {
    let cells: Vec<String> = cells.iter().map(|cell| escape::csv(cell)).collect();
    out.push_str(&cells.join(","));
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::row;

    #[test]
    fn cells_are_quoted_where_needed() {
        let mut out = String::new();
        row(
            &mut out,
            &["a".to_owned(), "b,\"c\"".to_owned(), String::new()],
        );
        assert_eq!(out, "a,\"b,\"\"c\"\"\",\n");
    }
}
