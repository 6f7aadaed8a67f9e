//! Densities and distribution functions: throughput per second, and response times.

use bucketload_core::stats::moments::Moments;
use bucketload_core::stats::normality::GaussianFit;

use bucketload_results::kit::svg::Body;
use bucketload_results::kit::{Axis, Chart, Series, Unit};

use super::super::curves::Curve;
use super::super::estimate::Estimate;
use super::super::groups::{Group, PerSecond};
use super::super::show::{self, distinct};
use super::{Context, line_name, processes};

/// Bins of the histogram of throughput.
const BINS: usize = 40;
/// Points of the fitted Gaussian.
const GAUSS_POINTS: usize = 80;
/// Seconds needed for a statement about the shape (docs/spec/statistics.md section 9).
const ENOUGH: usize = 60;

/// Name of a group's line, with the mark of its verdict.
fn named(context: &Context<'_>, group: &Group) -> String {
    let several = processes(context.groups()).len() > 1;
    show::with_mark(line_name(&group.label, group.processes, several), group)
}

/// Explains the marks of names; empty without any.
fn letters(context: &Context<'_>) -> &'static str {
    match context.groups().iter().any(Group::flawed) {
        true => show::LETTERS,
        false => "",
    }
}

/// Histogram of the throughput per second with the fitted Gaussian; one chart per phase and value.
pub(super) fn throughput(context: &Context<'_>) -> Vec<Chart> {
    let phases = context
        .groups()
        .iter()
        .flat_map(|g| g.extra.per_second.keys());
    let phases = distinct(phases.filter(|phase| show::like(&context.figure.phase, phase)));
    let mut charts = Vec::new();
    for phase in &phases {
        for value in context.measured.values() {
            let shown = if phases.len() > 1 { phase.as_str() } else { "" };
            charts.extend(seconds(context, phase, shown, value));
        }
    }
    charts
}

fn seconds(context: &Context<'_>, phase: &str, shown: &str, value: &str) -> Option<Chart> {
    let own = context.groups().iter().filter(|g| g.value == value);
    let of: Vec<(&Group, &PerSecond)> = own
        .filter_map(|group| Some((group, group.extra.per_second.get(phase)?)))
        .collect();
    let moved = of.iter().any(|(_, s)| s.bytes.iter().any(|b| *b > 0.0));
    let values = |s: &PerSecond| {
        if moved {
            s.bytes.clone()
        } else {
            s.ops.clone()
        }
    };
    let mut samples: Vec<(&Group, Vec<f64>, &[f64])> = of
        .iter()
        .map(|(group, s)| (*group, values(s), &*s.excess))
        .collect();
    samples.retain(|(_, values, _)| !values.is_empty());
    let most = samples
        .iter()
        .flat_map(|(_, v, _)| v.iter().copied())
        .fold(0.0, f64::max);
    if most <= 0.0 {
        return None;
    }
    let width = most * 1.0001 / BINS as f64;
    let (mut series, mut notes) = (Vec::new(), Vec::new());
    for (group, values, excess) in &samples {
        let mut counts = [0u32; BINS];
        for v in values {
            counts[((v / width) as usize).min(BINS - 1)] += 1;
        }
        // Shares make runs of different lengths comparable; trailing zeros are dropped.
        let share = |count: u32| f64::from(count) / values.len() as f64;
        let used = counts.iter().rposition(|c| *c > 0).map_or(0, |at| at + 1);
        let from = counts.iter().position(|c| *c > 0).unwrap_or(0);
        let mut points = vec![(from as f64 * width, 0.0)];
        points.extend((from..used).map(|i| (i as f64 * width, share(counts[i]))));
        points.push((used as f64 * width, 0.0));
        let name = named(context, group);
        series.push(Series {
            steps: true,
            ..Series::line(&*name, group.look, points)
        });
        let moments = Moments::of(values);
        let mut note = format!("{name}: {} s", values.len());
        if let Some(cv) = moments.cv() {
            note += &format!(", CV {}", Unit::Share.show(cv));
        }
        if let Some(fit) = GaussianFit::of(values) {
            note += match (values.len() >= ENOUGH, fit.is_plausible()) {
                (false, _) => ", too few seconds to judge the shape",
                (true, true) => ", Gaussian not rejected at 1 %",
                (true, false) => ", not Gaussian (Anderson-Darling, 1 %)",
            };
            series.push(gaussian(&fit, width, group.look, most));
        }
        if let Some(excess) = Estimate::median(excess) {
            note += &format!(
                ", variation {} that of the offered bytes",
                Unit::Times.show(excess.value)
            );
        }
        notes.push(note);
    }
    let unit = if moved { Unit::BytesPerS } else { Unit::PerS };
    let axes = (
        Axis::linear("throughput in a second", unit),
        Axis::linear("share of seconds", Unit::Share),
    );
    let title = show::titled("throughput per second", shown, value);
    let chart = context.chart(&[shown, value], &title, axes, Body::Lines(series));
    Some(chart.noted(format!(
        "All seconds inside the measured windows of all repetitions. Dashed: fitted Gaussians. {}. {}",
        notes.join("; "),
        letters(context)
    )))
}

fn gaussian(fit: &GaussianFit, width: f64, look: usize, most: f64) -> Series {
    let (low, high) = (
        (fit.mean - 4.0 * fit.sd).max(0.0),
        (fit.mean + 4.0 * fit.sd).min(most * 1.05),
    );
    let points = (0..=GAUSS_POINTS).map(|i| {
        let x = low + (high - low) * i as f64 / GAUSS_POINTS as f64;
        let z = (x - fit.mean) / fit.sd;
        let density = (-z * z / 2.0).exp() / (fit.sd * std::f64::consts::TAU.sqrt());
        (x, density * width)
    });
    Series::line("", look, points).dashed()
}

/// Distribution functions of the response time; one chart per phase, class and value.
pub(super) fn cdf(context: &Context<'_>) -> Vec<Chart> {
    let y = Axis::linear("share of operations", Unit::Share);
    times(context, "response time", &y, |curve| curve.points.clone())
}

/// Densities of the response time; one chart per phase, class and value.
pub(super) fn density(context: &Context<'_>) -> Vec<Chart> {
    let y = Axis::linear("share of operations per decade", Unit::Number);
    times(context, "density of the response time", &y, Curve::density)
}

fn times(
    context: &Context<'_>,
    title: &str,
    y: &Axis,
    points: impl Fn(&Curve) -> Vec<(f64, f64)>,
) -> Vec<Chart> {
    let groups = context.groups();
    let keys = groups.iter().flat_map(|g| g.extra.curves.keys());
    let requested = |(phase, class): &&(String, String)| {
        show::like(&context.figure.phase, phase)
            && match context.figure.class.as_str() {
                "" => !class.is_empty(),
                name => name == class,
            }
    };
    let mut keys = distinct(keys.filter(requested));
    // In order of execution.
    let order = show::phases(groups, "");
    keys.sort_by_key(|(phase, _)| order.iter().position(|known| known == phase));
    let several = distinct(keys.iter().map(|(phase, _)| phase)).len() > 1;
    let mut charts = Vec::new();
    for key in keys {
        for value in context.measured.values() {
            let own = groups.iter().filter(|g| g.value == value);
            let lines = own.filter_map(|group| {
                let curve = group.extra.curves.get(key)?;
                Some(Series::line(
                    named(context, group),
                    group.look,
                    points(curve),
                ))
            });
            let body = Body::Lines(lines.collect());
            let class = key.1.as_str();
            let phase = if several { key.0.as_str() } else { "" };
            let of = format!("{phase} {value}");
            let axes = (Axis::log("response time", Unit::Ns), y.clone());
            let title = show::titled(title, of.trim(), class);
            let chart = context.chart(&[class, phase, value], &title, axes, body);
            let note = "Operations of all repetitions together (merged histograms).";
            charts.push(chart.noted(format!("{note} {}", letters(context)).trim_end()));
        }
    }
    charts
}
