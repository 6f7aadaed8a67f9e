//! Latency charts of a phase: distribution functions, bands and heat maps over time, lag.

use super::summary::{latencies, latency_row};
use super::time::{self, Drawn, Percentiles};
use crate::kit::svg::{Body, Heat, Point};
use crate::kit::{Axis, Chart, Section, Series, Table, Unit};
use crate::result::{Cdf, ClassResult, PhaseResult};

/// Limit on the operations of a chart with several lines for each.
const CLASSES: usize = 4;

/// The distribution function of the response times.
pub(super) fn cdf(phase: &PhaseResult) -> Chart {
    let classes = phase.classes.iter().enumerate();
    let lines = classes.map(|(look, class)| Series {
        steps: true,
        ..Series::line(
            phase.class_name(class),
            look,
            points(&class.response_cdf, false),
        )
    });
    Chart::lines(
        "Response time, distribution",
        Axis::log("response time", Unit::Ns),
        Axis::share("share of operations"),
        lines,
    )
}

/// The tail of the response and service times.
pub(super) fn tail(phase: &PhaseResult) -> Chart {
    let y = Axis::log("share slower than", Unit::Share);
    both(phase, "Response and service time, tail", y, true)
}

/// The distribution functions of the response and service times.
pub(super) fn service(phase: &PhaseResult) -> Section {
    let intro = "The service time counts from the actual start, the response time from the due time. One point per \
                 bucket of the histograms.";
    let y = Axis::share("share of operations");
    Section::new("Response time beside service time", intro)
        .charts([both(
            phase,
            "Response and service time, distribution",
            y,
            false,
        )])
        .folded()
}

fn both(phase: &PhaseResult, title: &str, y: Axis, tail: bool) -> Chart {
    let mut lines = Vec::new();
    for (look, class) in phase.classes.iter().enumerate() {
        let name = phase.class_name(class);
        for (kind, cdf, dashed) in [
            ("response", &class.response_cdf, false),
            ("service", &class.service_cdf, true),
        ] {
            lines.push(Series {
                dashed,
                steps: !tail,
                ..Series::line(format!("{name} {kind}"), look, points(cdf, tail))
            });
        }
    }
    Chart::lines(title, Axis::log("time", Unit::Ns), y, lines)
}

pub(super) fn points(cdf: &Cdf, tail: bool) -> impl Iterator<Item = (f64, f64)> {
    let shares = cdf.value_ns.iter().zip(&cdf.fraction);
    shares
        .map(move |(&ns, &share)| (ns as f64, if tail { 1.0 - share } else { share }))
        .filter(move |&(_, share)| !tail || share > 1e-12)
}

/// A mark at the end of the warm-up, if there was one.
pub(super) fn warm_up_mark(phase: &PhaseResult) -> Vec<(f64, String)> {
    match phase.window.warmup_ns {
        0 => Vec::new(),
        ns => vec![(ns as f64 / 1e9, "end of warm-up".to_owned())],
    }
}

/// Median and tail of the response times over the phase, for the most frequent operations.
pub(super) fn over_time(phase: &PhaseResult) -> Chart {
    let mut classes: Vec<&ClassResult> = phase.classes.iter().filter(|c| c.ok > 0).collect();
    classes.sort_by_key(|class| std::cmp::Reverse(class.ok));
    let left_out = classes.len().saturating_sub(CLASSES);
    let mut remarks = Vec::new();
    let mut lines = Vec::new();
    let mut axis = Axis::linear("time", Unit::Seconds);
    for class in classes.into_iter().take(CLASSES) {
        let look = phase.classes.iter().position(|c| std::ptr::eq(c, class));
        let (look, name) = (look.unwrap_or(0), phase.class_name(class));
        let (over, drawn) = (&class.over_time, Drawn::columns(phase, class));
        axis = drawn.axis();
        let upper = time::tail(over, drawn.count);
        if upper.as_ref().is_none_or(|p| p.name != "p99") {
            remarks.push(name.clone());
        }
        let mut line = |p: &Percentiles, dashed: bool| {
            let point = |i: usize| Point::from((0.0, p.ns.get(i).copied()));
            let points = drawn.curve(&over.t_s, point);
            if points.iter().any(|p| p.y.is_finite()) {
                let line = Series::line(format!("{name} {}", p.name), look, points);
                lines.push(Series { dashed, ..line });
            }
        };
        line(&time::median(over), false);
        upper.iter().for_each(|p| line(p, true));
    }
    let every = phase
        .classes
        .first()
        .map(|c| Drawn::columns(phase, c).every());
    let mut note = format!("Percentiles per {}.", every.unwrap_or_default());
    if !remarks.is_empty() {
        note += &format!(
            " Too few of {} per interval for p99: a percentile is drawn where ten values lie beyond it.",
            remarks.join(" and ")
        );
    }
    if left_out > 0 {
        note += &format!(" The {CLASSES} most frequent operations.");
    }
    Chart {
        marks: warm_up_mark(phase),
        note,
        ..Chart::lines(
            "Response time over the phase",
            axis,
            Axis::log("response time", Unit::Ns),
            lines,
        )
    }
}

/// A chart per operation: percentiles and largest value over the phase.
pub(super) fn bands(phase: &PhaseResult) -> Vec<Chart> {
    let used = phase.classes.iter().filter(|class| class.ok > 0);
    used.map(|class| band(phase, class)).collect()
}

fn band(phase: &PhaseResult, class: &ClassResult) -> Chart {
    let (over, drawn) = (&class.over_time, Drawn::columns(phase, class));
    let (median, upper) = (time::median(over), time::tail(over, drawn.count));
    let value = |p: &Percentiles, i: usize| p.ns.get(i).copied().unwrap_or(f64::NAN);
    let mut lines = vec![Series {
        band: upper.is_some(),
        ..Series::line(
            median.name,
            0,
            drawn.curve(&over.t_s, |i| {
                let ends = (value(&median, i), upper.as_ref().map(|p| value(p, i)));
                Point {
                    ci: ends
                        .1
                        .filter(|high| high.is_finite())
                        .map(|high| (ends.0, high)),
                    ..Point::from((0.0, ends.0))
                }
            }),
        )
    }];
    if let Some(p) = &upper {
        let points = drawn.curve(&over.t_s, |i| Point::from((0.0, value(p, i))));
        lines.push(Series::line(p.name, 1, points));
    }
    let max = |i: usize| Point::from((0.0, (over.n[i] > 0).then(|| over.max_ms[i] * 1e6)));
    lines.push(Series::line("max", 2, drawn.curve(&over.t_s, max)).dashed());
    let every = drawn.every();
    let note = match &upper {
        Some(p) if p.name == "p99" => format!("Per {every}; the band spans p50 to p99."),
        Some(p) => format!(
            "Per {every}; the band spans p50 to {}. There are too few operations per interval for p99: a percentile is \
             drawn where ten values lie beyond it.",
            p.name
        ),
        None => format!(
            "Per {every}. There are too few operations per interval for p90: a percentile is drawn where ten values \
             lie beyond it."
        ),
    };
    let known = lines
        .into_iter()
        .filter(|line| line.points.iter().any(|p| p.y.is_finite()));
    Chart {
        marks: warm_up_mark(phase),
        ..Chart::lines(
            format!("{} response time over the phase", phase.class_name(class)),
            drawn.axis(),
            Axis::log("response time", Unit::Ns),
            known,
        )
        .noted(note)
    }
}

/// A heat map per operation.
pub(super) fn heat_maps(phase: &PhaseResult) -> Section {
    let used = phase.classes.iter().filter(|class| class.ok > 0);
    Section::new(
        "Response times as heat maps",
        "Operations per cell of time and response time; darker is more.",
    )
    .charts(used.map(|class| heat_map(phase, class)))
    .folded()
}

fn heat_map(phase: &PhaseResult, class: &ClassResult) -> Chart {
    let (map, drawn) = (&class.heat_map, Drawn::columns(phase, class));
    let heat = Heat {
        from: class.over_time.t_s.first().copied().unwrap_or(0.0),
        step: drawn.step,
        edges: map.edges_ns.iter().map(|&ns| ns as f64).collect(),
        columns: map.counts.iter().take(drawn.count).cloned().collect(),
    };
    Chart {
        marks: warm_up_mark(phase),
        ..Chart::new(
            format!("{} response time heat map", phase.class_name(class)),
            drawn.axis(),
            Axis::log("response time", Unit::Ns),
            Body::Heat(heat),
        )
    }
}

/// What the client added before operations started.
pub(super) fn lag(phase: &PhaseResult) -> Section {
    Section::new("Lag: intended to actual start", "")
        .tables([lag_table(phase)])
        .folded()
}

fn lag_table(phase: &PhaseResult) -> Table {
    let rows = [
        ("lag", &phase.lag),
        ("timer lateness and build", &phase.late),
        ("dispatch wait", &phase.dispatch),
        ("name resolution", &phase.connect_dns),
        ("TCP connect", &phase.connect_tcp),
        ("TLS handshake", &phase.connect_tls),
    ];
    let rows = rows.into_iter().filter(|(_, figures)| figures.n > 0);
    latencies("")
        .noted(
            "Lag is the delay that the client adds before an operation starts. Timer lateness and build time are the \
             client's own share; dispatch wait is the wait for a free connection. Connecting is never part of a \
             service time.",
        )
        .with(rows.map(|(name, figures)| latency_row(name, figures)))
}
