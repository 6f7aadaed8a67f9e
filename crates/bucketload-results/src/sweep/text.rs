//! A sweep for the terminal.

use bucketload_core::ai::AiFigure;
use bucketload_core::stats::usl::{Fitted, UslFit};

use super::{Axis, MeanOverRuns, Point, Record, SweepResult};
use crate::kit::Table;
use crate::result::ai;
use crate::result::metric::Metric;
use crate::{study, units};

/// One line about a run, printed when it ends.
#[must_use]
pub fn trial_line(field: &str, record: &Record) -> String {
    format!(
        "{field} {:<10} run {:<2} {:>10}/s  {:>12}/s  p50 {:>9}  p99 {:>9}  {}",
        record.value,
        record.repetition + 1,
        units::rate(record.ok_per_s),
        units::bytes(record.bytes_per_s),
        units::ns(record.p50_ns as f64),
        units::ns(record.p99_ns as f64),
        record.verdict
    )
}

/// The whole result.
#[must_use]
pub fn text(result: &SweepResult) -> String {
    let header = &result.header;
    let mut out = format!(
        "{} over {} on {}, {} runs each\n\n",
        header.workload, header.field, header.target, header.repetitions
    );
    let width = header
        .values
        .iter()
        .map(String::len)
        .max()
        .unwrap_or(0)
        .max(header.field.len());
    out += &format!(
        "{:>width$}  {:>20}  {:>12}  {:>22}  {:>22}  {}\n",
        header.field, "ok/s", "bytes/s", "p50", "p99", "verdict"
    );
    for point in &result.points {
        out += &format!(
            "{:>width$}  {:>20}  {:>12}  {:>22}  {:>22}  {}\n",
            point.value,
            with_error(&point.ok_per_s, units::rate),
            units::bytes(point.bytes_per_s.mean),
            with_error(&point.p50_ns, units::ns),
            with_error(&point.p99_ns, units::ns),
            point.verdict
        );
    }
    let figures = result.ai_figures();
    if !figures.is_empty() {
        out.push('\n');
        values_of(result, &figures).render(false, &mut out);
    }
    out.push('\n');
    for line in conclusion(result) {
        out += &line;
        out.push('\n');
    }
    out
}

/// A table of figures of training, checkpoints or a cache.
pub(super) fn values_of(result: &SweepResult, figures: &[AiFigure]) -> Table {
    let titles = figures.iter().map(|figure| Metric::of_ai(*figure).title);
    let head: Vec<&str> = [result.header.field.as_str()]
        .into_iter()
        .chain(titles)
        .collect();
    let mut table = Table::new(1, head);
    for point in &result.points {
        let cell = |figure: &AiFigure| {
            let mean = point.ai.get(figure)?;
            Some(with_error(mean, |value| ai::unit(*figure).show(value)))
        };
        let cells = figures
            .iter()
            .map(|f| cell(f).unwrap_or_else(|| "–".to_owned()));
        table.texts([point.value.clone()].into_iter().chain(cells));
    }
    table
}

pub(super) fn with_error(mean: &MeanOverRuns, unit: impl Fn(f64) -> String) -> String {
    match mean.half_width {
        // An interval as wide as the mean says only that the runs differ too much for their number.
        Some(half) if half >= mean.mean => format!("{} ± ?", unit(mean.mean)),
        Some(half) => format!("{} ± {}", unit(mean.mean), unit(half)),
        None => unit(mean.mean),
    }
}

pub(super) fn fitted(f: &Fitted, show: fn(f64) -> String) -> String {
    format!("{} ({} to {})", show(f.value), show(f.ci.0), show(f.ci.1))
}

/// A coefficient of the law: scientific notation for very small and very large values.
pub(super) fn coefficient(value: f64) -> String {
    if value == 0.0 || (1e-3..1e4).contains(&value.abs()) {
        units::number(value)
    } else {
        format!("{value:.2e}")
    }
}

/// What to do if the client limited every run.
const CLIENT_BOUND: &str = "the client was the limit in every run, so the figures say nothing about the store: run the \
                            store on another machine, stop other processes, or use more --threads";

/// The findings in sentences.
#[must_use]
pub fn conclusion(result: &SweepResult) -> Vec<String> {
    let mut lines = Vec::new();
    if result.is_client_bound() {
        lines.push(CLIENT_BOUND.to_owned());
    }
    if result.points.iter().any(Point::is_uncertain) {
        lines.push(format!(
            "± ?: the runs at a value differ too much for an interval from {} runs; use more --repetitions",
            result.header.repetitions
        ));
    }
    if result.header.axis == Axis::Concurrency && !result.is_client_bound() {
        match &result.usl {
            Some(fit) => lines.extend(law(&result.header.field, fit)),
            None => lines.extend(efficiency(result)),
        }
        if result.client_bound() > 0 {
            lines.push(format!(
                "{} runs were limited by the client and are excluded from the scaling figures",
                result.client_bound()
            ));
        }
    }
    lines.extend(study::saturated(result.saturation.as_ref(), "runs"));
    if result.header.axis == Axis::Rate {
        let power = "largest power (throughput over mean latency)";
        lines.extend(study::bend(
            "knee of the p99 (Kneedle)",
            result.knee.as_ref(),
        ));
        lines.extend(study::bend(power, result.power.as_ref()));
    }
    lines.extend(study::interrupted(result.trials.len(), result.wanted()));
    lines.extend(study::unreadable(result.damaged));
    lines
}

fn law(field: &str, fit: &UslFit) -> Vec<String> {
    let mut lines = vec![format!(
        "Universal Scalability Law over {} runs: gamma {}/s, residuals {}",
        fit.runs,
        fitted(&fit.gamma, units::rate),
        units::percent(fit.residual_sd)
    )];
    for (name, meaning, f) in [
        ("alpha", "contention", &fit.alpha),
        ("beta", "coherency", &fit.beta),
    ] {
        lines.push(if f.is_distinct() {
            format!("  {name} {} ({meaning})", fitted(f, coefficient))
        } else {
            format!(
                "  {name}: {meaning} indistinguishable from 0 (upper bound {})",
                coefficient(f.ci.1)
            )
        });
    }
    lines.push(match fit.peak() {
        Some((n, x)) => format!(
            "  highest throughput {}/s at {field} {}",
            fitted(&x, units::rate),
            fitted(&n, units::number)
        ),
        None => format!(
            "  no peak within twice the largest value measured ({})",
            units::number(fit.largest_n)
        ),
    });
    lines
}

fn efficiency(result: &SweepResult) -> Vec<String> {
    if result.efficiency.is_empty() {
        return Vec::new();
    }
    let each: Vec<String> = result
        .efficiency
        .iter()
        .map(|e| format!("{} at {}", units::percent(e.efficiency), units::number(e.n)))
        .collect();
    vec![
        "too few values for the Universal Scalability Law (six distinct values that span a factor of 32 are needed)"
            .to_owned(),
        format!("throughput per unit relative to the smallest: {}", each.join(", ")),
    ]
}
