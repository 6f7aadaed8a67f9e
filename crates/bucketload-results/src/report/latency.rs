//! Latency charts of a phase: distribution functions, bands and maps over time, lag.

use super::page::{Axis, Chart, ChartKind, Heat, Mark, Section, Series, Table};
use super::summary::{class_name, latency_row};
use crate::result::{Cdf, ClassResult, PhaseResult};

/// The latency section of a phase.
pub(super) fn section(phase: &PhaseResult) -> Section {
    let mut charts = vec![cdf(phase, false), cdf(phase, true)];
    for class in &phase.classes {
        charts.push(bands(phase, class));
        charts.push(heat_map(phase, class));
    }
    Section {
        title: "Latency".to_owned(),
        intro: "Distribution functions with one point per histogram bucket, on a logarithmic axis; then how the \
                response time changed over the phase."
            .to_owned(),
        tables: vec![lag_table(phase)],
        charts,
    }
}

fn cdf(phase: &PhaseResult, tail: bool) -> Chart {
    let (title, y) = if tail {
        (
            "Response time, the tail",
            Axis::log("share slower than", "%"),
        )
    } else {
        (
            "Latency CDF",
            Axis {
                min: Some(0.0),
                max: Some(1.0),
                ..Axis::linear("share of operations", "%")
            },
        )
    };
    let mut chart = Chart::lines(title, Axis::log("latency", "ns"), y);
    for (i, class) in phase.classes.iter().enumerate() {
        let name = class_name(phase, class);
        let mut push = |kind: &str, cdf: &Cdf, dash: bool| {
            if !cdf.value_ns.is_empty() {
                chart.series.push(Series {
                    name: format!("{name} {kind}"),
                    points: points(cdf, tail),
                    dash,
                    step: !tail,
                    color: Some(i as u8),
                    ..Series::default()
                });
            }
        };
        push("response", &class.response_cdf, false);
        push("service", &class.service_cdf, true);
    }
    chart
}

fn points(cdf: &Cdf, tail: bool) -> Vec<(f64, Option<f64>)> {
    cdf.value_ns
        .iter()
        .zip(&cdf.fraction)
        .map(|(&ns, &share)| (ns as f64, if tail { 1.0 - share } else { share }))
        .filter(|&(_, share)| !tail || share > 1e-12)
        .map(|(ns, share)| (ns, Some(share)))
        .collect()
}

fn warm_up_mark(phase: &PhaseResult) -> Vec<Mark> {
    let warm_up = phase.window.warmup_ns;
    if warm_up == 0 {
        return Vec::new();
    }
    vec![Mark {
        x: warm_up as f64 / 1e9,
        label: "end of warm-up".to_owned(),
    }]
}

fn bands(phase: &PhaseResult, class: &ClassResult) -> Chart {
    let over = &class.over_time;
    let mut chart = Chart::lines(
        &format!("{} response time over the phase", class_name(phase, class)),
        Axis::linear("time", "s"),
        Axis::log("response time", "ns"),
    );
    chart.note = "Percentiles per column; the band spans p50 to p99.".to_owned();
    chart.marks = warm_up_mark(phase);
    let line = |values: &[f64]| -> Vec<(f64, Option<f64>)> {
        over.t_s
            .iter()
            .zip(values)
            .zip(&over.n)
            .map(|((&t, &ms), &n)| (t, (n > 0).then_some(ms * 1e6)))
            .collect()
    };
    let band: Vec<_> = (0..over.t_s.len())
        .filter(|&i| over.n[i] > 0)
        .map(|i| (over.t_s[i], over.p50_ms[i] * 1e6, over.p99_ms[i] * 1e6))
        .collect();
    for (i, (name, values)) in [
        ("p50", &over.p50_ms),
        ("p99", &over.p99_ms),
        ("max", &over.max_ms),
    ]
    .into_iter()
    .enumerate()
    {
        chart.series.push(Series {
            name: name.to_owned(),
            points: line(values),
            band: if i == 0 { band.clone() } else { Vec::new() },
            dash: name == "max",
            ..Series::default()
        });
    }
    chart
}

fn heat_map(phase: &PhaseResult, class: &ClassResult) -> Chart {
    let (map, over) = (&class.heat_map, &class.over_time);
    let x0 = over.t_s.first().copied().unwrap_or(0.0);
    let dx = over.t_s.get(1).map_or(1.0, |next| next - x0);
    Chart {
        kind: ChartKind::Heat,
        note: "Number of operations per cell, darker is more.".to_owned(),
        marks: warm_up_mark(phase),
        heat: Some(Heat {
            x0,
            dx,
            edges: map.edges_ns.iter().map(|&ns| ns as f64).collect(),
            rows: map.counts.clone(),
        }),
        ..Chart::lines(
            &format!("{} response times as a map", class_name(phase, class)),
            Axis::linear("time", "s"),
            Axis::log("response time", "ns"),
        )
    }
}

fn lag_table(phase: &PhaseResult) -> Table {
    let mut table = Table {
        title: "Lag: intended to actual start".to_owned(),
        head: ["", "n", "mean", "p50", "p90", "p95", "p99", "p99.9", "max"].map(str::to_owned).to_vec(),
        note: "Lag is what the client adds before an operation starts. Timer lateness and build time are the \
               client's own; dispatch is the wait for a free connection. Connections are never made inside a \
               service time."
            .to_owned(),
        ..Table::default()
    };
    for (name, figures) in [
        ("lag", &phase.lag),
        ("timer lateness and build", &phase.late),
        ("dispatch wait", &phase.dispatch),
        ("name resolution", &phase.connect_dns),
        ("TCP connect", &phase.connect_tcp),
        ("TLS handshake", &phase.connect_tls),
    ] {
        if figures.n > 0 {
            table.rows.push(latency_row(name, figures));
        }
    }
    table
}
