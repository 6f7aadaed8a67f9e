//! Metrics over the values of the swept field.

use bucketload_core::stats::usl::{self, UslFit};
use bucketload_core::verdict::Word;

use bucketload_results::kit::svg::{Body, LOOKS, Point};
use bucketload_results::kit::{Axis, Chart, Series};

use super::super::estimate::Estimate;
use super::super::groups::Group;
use super::super::published;
use super::super::show::{self, Ops};
use super::{Context, line_name, processes, targets};
use crate::model::Metric;

/// Number of points of a drawn law.
const LAW_POINTS: usize = 60;

/// One line per target (and number of processes).
pub(super) fn curve(context: &Context<'_>) -> Vec<Chart> {
    let metric = context.figure.metric.unwrap_or(Metric::Throughput);
    let chart = |ops: Ops<'_>| {
        let (x, mut lines) = series(context, |group| show::estimate(group, metric, ops));
        if !lines.is_empty() && metric == Metric::Bandwidth {
            lines.extend(ossperf(context, ops.phase));
        }
        let mut note = context.note(metric);
        if lines.iter().any(|s| s.dashed) {
            note += " Dashed: published, another machine.";
        }
        let phase = match context.figure.phase.as_str() {
            "" => ops.phase,
            requested => requested,
        };
        let parts = [metric.id, ops.class, phase];
        of_metric(context, metric, ops, &parts, (x, lines)).noted(note)
    };
    context.selections().into_iter().map(chart).collect()
}

/// The chart of a metric in a phase.
fn of_metric(
    context: &Context<'_>,
    metric: Metric,
    ops: Ops<'_>,
    parts: &[&str],
    (x, lines): (Axis, Vec<Series>),
) -> Chart {
    let values = lines.iter().flat_map(|s| s.points.iter().map(|p| p.y));
    let y = Axis::fitting(&show::label(metric), metric.unit, values);
    let title = show::titled(metric.title, ops.phase, ops.class);
    context.chart(parts, &title, (x, y), Body::Lines(lines))
}

/// Lines of `figure` over the swept values.
fn series(
    context: &Context<'_>,
    figure: impl Fn(&Group) -> Option<Estimate>,
) -> (Axis, Vec<Series>) {
    let groups = context.groups();
    let (x, at) = context.values_axis();
    let several = processes(groups);
    let mut out = Vec::new();
    for (name, label, look) in targets(groups) {
        for (i, number) in several.iter().enumerate() {
            let own = groups.iter().zip(&at);
            let own = own.filter(|(g, _)| g.target == name && g.processes == *number);
            let points = own.filter_map(|(group, x)| {
                let estimate = figure(group).filter(|estimate| estimate.value.is_finite())?;
                Some(Point {
                    ci: estimate.ci,
                    flawed: group.flawed(),
                    ..Point::from((*x, estimate.value))
                })
            });
            // Numbers of processes share the colour of their target; only a ninth target has its own dashes.
            let look = match several.len() {
                1 => look,
                _ => look % LOOKS + LOOKS * i,
            };
            let mut line = Series::line(line_name(label, *number, several.len() > 1), look, points);
            line.points.sort_by(|a, b| a.x.total_cmp(&b.x));
            line.markers = true;
            if !line.points.is_empty() {
                out.push(line);
            }
        }
    }
    (x, out)
}

/// OSSperf's published bandwidths over the file size, if the experiment is one of its steps.
fn ossperf(context: &Context<'_>, phase: &str) -> Vec<Series> {
    let groups = context.groups();
    let clients = groups
        .iter()
        .flat_map(|g| &g.extra.ossperf)
        .map(|(clients, _)| *clients);
    let Some(clients) = clients
        .max()
        .filter(|_| context.files.study.published == "ossperf")
    else {
        return Vec::new();
    };
    let variant = if clients > 1 {
        "parallel"
    } else {
        "sequential"
    };
    let systems = [("MinIO", "Table 4", 6), ("Amazon S3", "Table 5", 3)];
    let lines = systems.map(|(system, table, look)| {
        let values = published::of("ossperf")
            .filter(|v| v.system == system && v.quantity == phase && v.variant == variant);
        let points = values.filter_map(|v| Some((v.key.parse().ok()?, v.value * 1e6 / 8.0)));
        let points: Vec<(f64, f64)> = points.collect();
        Series::line(format!("{system}, published ({table})"), look, points).dashed()
    });
    let known = lines.into_iter().filter(|s| !s.points.is_empty());
    known.collect()
}

/// Fits the law to a target's runs that the client did not limit.
pub(in super::super) fn fit(groups: &[&Group], ops: Ops<'_>) -> Option<UslFit> {
    let points: Vec<usl::Point> = groups
        .iter()
        .filter_map(|group| group.number.map(|n| (group, n)))
        .flat_map(|(group, n)| {
            group
                .counted()
                .filter(|run| run.word != Word::ClientBound)
                .filter_map(move |run| run.figures(ops.phase, ops.class))
                .map(move |figures| usl::Point {
                    n,
                    x: figures.ops_per_s,
                })
        })
        .collect();
    usl::fit(&points)
}

/// Throughput with the fitted law, and response time, over the number of workers.
pub(super) fn scaling(context: &Context<'_>) -> Vec<Chart> {
    let groups = context.groups();
    let ops = Ops {
        phase: show::phases(groups, &context.figure.phase)
            .first()
            .copied()
            .unwrap_or(""),
        class: &context.figure.class,
    };
    let metrics = match context.figure.metric {
        Some(metric) => vec![metric],
        None => vec![Metric::Throughput, Metric::Mean],
    };
    let chart = |metric: Metric| {
        let (x, mut lines) = series(context, |group| show::estimate(group, metric, ops));
        let mut note = context.note(metric);
        if metric == Metric::Throughput {
            let laws = targets(groups)
                .into_iter()
                .filter_map(|(name, label, colour)| {
                    let own: Vec<&Group> = groups.iter().filter(|g| g.target == name).collect();
                    law(&fit(&own, ops)?, label, colour, &own)
                });
            let ours = lines.len();
            lines.extend(laws);
            note += match lines.len() == ours {
                true => {
                    " The Universal Scalability Law is not fitted: it needs six numbers of workers that span a factor of 32, and runs that the client did not limit."
                }
                false => {
                    " Dashed: fit of the Universal Scalability Law to the runs that the client did not limit; the table has its parameters with intervals."
                }
            };
        }
        let parts = [metric.id, ops.class];
        of_metric(context, metric, ops, &parts, (x, lines)).noted(note)
    };
    metrics.into_iter().map(chart).collect()
}

fn law(fit: &UslFit, label: &str, look: usize, groups: &[&Group]) -> Option<Series> {
    let numbers = groups.iter().filter_map(|g| g.number);
    let (low, high) = numbers.fold((f64::INFINITY, 0.0f64), |(l, h), n| (l.min(n), h.max(n)));
    let at = |i: usize| low * (high / low).powf(i as f64 / LAW_POINTS as f64);
    let points = (0..=LAW_POINTS).filter_map(|i| Some((at(i), fit.at(at(i))?)));
    (low > 0.0).then(|| Series::line(format!("{label}, law"), look, points).dashed())
}
