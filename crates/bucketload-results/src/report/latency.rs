//! Latency charts of a phase: distribution functions, bands and heat maps over time, lag.

use super::summary::{latencies, latency_row};
use crate::kit::svg::{Body, Heat, Point};
use crate::kit::{Axis, Chart, Section, Series, Table, Unit};
use crate::result::{Cdf, ClassResult, PhaseResult};

/// The latency section of a phase.
pub(super) fn section(phase: &PhaseResult) -> Section {
    let intro = "Distribution functions with one point per histogram bucket, on a logarithmic axis, then the response \
                 time over the phase.";
    let of_class = |class| [bands(phase, class), heat_map(phase, class)];
    Section::new("Latency", intro)
        .tables([lag_table(phase)])
        .charts([cdf(phase, false), cdf(phase, true)])
        .charts(phase.classes.iter().flat_map(of_class))
}

fn cdf(phase: &PhaseResult, tail: bool) -> Chart {
    let (title, y) = match tail {
        true => (
            "Response time, tail",
            Axis::log("share slower than", Unit::Share),
        ),
        false => ("Latency CDF", Axis::share("share of operations")),
    };
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
    Chart::lines(title, Axis::log("latency", Unit::Ns), y, lines)
}

fn points(cdf: &Cdf, tail: bool) -> impl Iterator<Item = (f64, f64)> {
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

fn bands(phase: &PhaseResult, class: &ClassResult) -> Chart {
    let over = &class.over_time;
    let lines = [
        ("p50", &over.p50_ms),
        ("p99", &over.p99_ms),
        ("max", &over.max_ms),
    ];
    let lines = lines.into_iter().enumerate().map(|(look, (name, values))| {
        let point = |i: usize| {
            let ms = |values: &[f64]| values[i] * 1e6;
            let some = over.n[i] > 0;
            Point {
                ci: (look == 0 && some).then(|| (ms(&over.p50_ms), ms(&over.p99_ms))),
                ..Point::from((over.t_s[i], some.then(|| ms(values))))
            }
        };
        Series {
            dashed: name == "max",
            band: look == 0,
            ..Series::line(name, look, (0..over.t_s.len()).map(point))
        }
    });
    Chart {
        marks: warm_up_mark(phase),
        ..Chart::lines(
            format!("{} response time over the phase", phase.class_name(class)),
            Axis::linear("time", Unit::Seconds),
            Axis::log("response time", Unit::Ns),
            lines,
        )
        .noted("Percentiles per column; the band spans p50 to p99.")
    }
}

fn heat_map(phase: &PhaseResult, class: &ClassResult) -> Chart {
    let (map, over) = (&class.heat_map, &class.over_time);
    let from = over.t_s.first().copied().unwrap_or(0.0);
    let heat = Heat {
        from,
        step: over.t_s.get(1).map_or(1.0, |next| next - from),
        edges: map.edges_ns.iter().map(|&ns| ns as f64).collect(),
        columns: map.counts.clone(),
    };
    Chart {
        marks: warm_up_mark(phase),
        ..Chart::new(
            format!("{} response time heat map", phase.class_name(class)),
            Axis::linear("time", Unit::Seconds),
            Axis::log("response time", Unit::Ns),
            Body::Heat(heat),
        )
        .noted("Operations per cell; darker is more.")
    }
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
    latencies("Lag: intended to actual start")
        .noted(
            "Lag is the delay that the client adds before an operation starts. Timer lateness and build time are the \
             client's own share; dispatch wait is the wait for a free connection. Connecting is never part of a \
             service time.",
        )
        .with(rows.map(|(name, figures)| latency_row(name, figures)))
}
