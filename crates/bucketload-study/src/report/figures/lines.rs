//! Metrics over the values of the swept field.

use bucketload_core::stats::usl::{self, UslFit};
use bucketload_core::verdict::Word;

use super::super::estimate::Over;
use super::super::groups::Group;
use super::super::published;
use super::super::show::{self, Look};
use super::super::svg::{Axis, Body, Chart, Point, Series};
use super::{Context, bars_note, hollow, line_name, processes, targets};
use crate::model::{Figure, Metric};

/// Points of a drawn law.
const LAW_POINTS: usize = 60;
/// Series that repeat a colour differ by this in their look.
const NEXT: usize = 8;

/// A line per target (and number of processes).
pub(super) fn curve(context: &Context<'_>, figure: &Figure) -> Vec<Chart> {
    let metric = figure.metric.unwrap_or(Metric::Throughput);
    let phases = show::phases(context.groups(), &figure.phase);
    let charts = phases.into_iter().map(|phase| {
        let look = Look {
            phase,
            class: &figure.class,
        };
        let (x, mut series) = series(context, |group| show::over(group, metric, look));
        let ours = !series.is_empty();
        if ours && metric == Metric::Bandwidth {
            series.extend(ossperf(context, phase));
        }
        let with_published = series.iter().any(|s| s.dashed);
        let mut chart = context.chart(
            figure,
            &[
                show::key(metric),
                &figure.class,
                if figure.phase.is_empty() {
                    phase
                } else {
                    &figure.phase
                },
            ],
            show::titled(show::name(metric), phase, &figure.class),
            (x, y_axis(metric, &series)),
            Body::Lines(series),
        );
        chart.note =
            bars_note(context.groups(), show::is_percentile(metric)) + hollow(context.groups());
        if with_published {
            chart.note += " Dashed: published, another machine.";
        }
        chart
    });
    charts.collect()
}

fn y_axis(metric: Metric, series: &[Series]) -> Axis {
    let values = series.iter().flat_map(|s| s.points.iter().map(|p| p.y));
    Axis::fitting(&show::label(metric), show::unit(metric), values)
}

/// Lines of `figure` over the swept values.
fn series(context: &Context<'_>, figure: impl Fn(&Group) -> Option<Over>) -> (Axis, Vec<Series>) {
    let groups = context.groups();
    let (x, at) = context.values_axis();
    let several = processes(groups);
    let mut out = Vec::new();
    for (name, label, look) in targets(groups) {
        for (i, number) in several.iter().enumerate() {
            let own = groups.iter().zip(&at);
            let own = own.filter(|(g, _)| g.target == name && g.processes == *number);
            let mut points: Vec<Point> = own
                .filter_map(|(group, x)| point(*x, figure(group)?, group.flawed()))
                .collect();
            points.sort_by(|a, b| a.x.total_cmp(&b.x));
            if !points.is_empty() {
                out.push(Series {
                    name: line_name(label, *number, several.len() > 1),
                    points,
                    // Numbers of processes share the colour of their target; a ninth target alone has dashes of its own.
                    look: match several.len() {
                        1 => look,
                        _ => look % NEXT + NEXT * i,
                    },
                    markers: true,
                    ..Series::default()
                });
            }
        }
    }
    (x, out)
}

fn point(x: f64, over: Over, flawed: bool) -> Option<Point> {
    over.value.is_finite().then_some(Point {
        x,
        y: over.value,
        ci: over.ci,
        flawed,
    })
}

/// OSSperf's published bandwidths over the file size, where the experiment is one of its steps.
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
    let systems = ["MinIO", "Amazon S3"].into_iter().enumerate();
    let lines = systems.map(|(i, system)| {
        let values = published::of("ossperf")
            .filter(|v| v.system == system && v.quantity == phase && v.variant == variant);
        let points = values.filter_map(|v| {
            Some(Point {
                x: v.key.parse().ok()?,
                y: v.value * 1e6 / 8.0,
                ci: None,
                flawed: false,
            })
        });
        Series {
            name: format!(
                "{system}, published ({})",
                if i == 0 { "Table 4" } else { "Table 5" }
            ),
            points: points.collect(),
            look: 6 - i * 3,
            dashed: true,
            ..Series::default()
        }
    });
    lines.filter(|s| !s.points.is_empty()).collect()
}

/// The runs of a target that a law is fitted to: those that the client did not limit.
pub(in super::super) fn fit(groups: &[&Group], look: Look<'_>) -> Option<UslFit> {
    let points: Vec<usl::Point> = groups
        .iter()
        .filter_map(|group| group.number.map(|n| (group, n)))
        .flat_map(|(group, n)| {
            group
                .counted()
                .filter(|run| run.word != Word::ClientBound)
                .filter_map(move |run| run.figures(look.phase, look.class))
                .map(move |figures| usl::Point {
                    n,
                    x: figures.ops_per_s,
                })
        })
        .collect();
    usl::fit(&points)
}

/// Throughput with the fitted law, and response time, over the number of workers.
pub(super) fn scaling(context: &Context<'_>, figure: &Figure) -> Vec<Chart> {
    let groups = context.groups();
    let phases = show::phases(groups, &figure.phase);
    let phase = phases.first().copied().unwrap_or("");
    let look = Look {
        phase,
        class: &figure.class,
    };
    let metrics = match figure.metric {
        Some(metric) => vec![metric],
        None => vec![Metric::Throughput, Metric::Mean],
    };
    let charts = metrics.into_iter().map(|metric| {
        let (x, mut lines) = series(context, |group| show::over(group, metric, look));
        let mut note = bars_note(groups, show::is_percentile(metric)) + hollow(groups);
        if metric == Metric::Throughput {
            let laws: Vec<Series> = targets(groups)
                .into_iter()
                .filter_map(|(name, label, colour)| {
                    let own: Vec<&Group> = groups.iter().filter(|g| g.target == name).collect();
                    law(&fit(&own, look)?, label, colour, &own)
                })
                .collect();
            note += match laws.is_empty() {
                true => " The Universal Scalability Law is not fitted: it takes six numbers of workers over a factor of 32, and runs that the client did not limit.",
                false => " Dashed: fit of the Universal Scalability Law to the runs that the client did not limit; its parameters and their intervals stand in the table.",
            };
            lines.extend(laws);
        }
        let mut chart = context.chart(
            figure,
            &[show::key(metric), &figure.class],
            show::titled(show::name(metric), phase, &figure.class),
            (x, y_axis(metric, &lines)),
            Body::Lines(lines),
        );
        chart.note = note;
        chart
    });
    charts.collect()
}

fn law(fit: &UslFit, label: &str, look: usize, groups: &[&Group]) -> Option<Series> {
    let numbers = groups.iter().filter_map(|g| g.number);
    let (low, high) = numbers.fold((f64::INFINITY, 0.0f64), |(l, h), n| (l.min(n), h.max(n)));
    let at = |i: usize| low * (high / low).powf(i as f64 / LAW_POINTS as f64);
    let points = (0..=LAW_POINTS).filter_map(|i| {
        Some(Point {
            x: at(i),
            y: fit.at(at(i))?,
            ci: None,
            flawed: false,
        })
    });
    (low > 0.0).then(|| Series {
        name: format!("{label}, law"),
        points: points.collect(),
        look,
        dashed: true,
        ..Series::default()
    })
}
