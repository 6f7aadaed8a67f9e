//! Load charts of a phase: offered and completed work over time, concurrency, client, and the
//! distribution of the throughput.

use super::page::{Axis, Chart, Mark, Section, Series, Table};
use crate::result::figure::{CLIENT, Figure};
use crate::result::{ClientUse, PhaseResult, ThroughputDistribution};
use crate::units;

/// The load section of a phase.
pub(super) fn section(phase: &PhaseResult) -> Section {
    let series = &phase.series;
    let time = || Axis::linear("time", "s");
    let line = |values: &[f64]| -> Vec<(f64, Option<f64>)> {
        series
            .t_s
            .iter()
            .zip(values)
            .map(|(&t, &y)| (t, Some(y)))
            .collect()
    };
    let chart = |title: &str, y: Axis, lines: &[(&str, &[f64], bool)]| {
        let mut chart = Chart::lines(title, time(), y);
        if phase.window.warmup_ns > 0 {
            let x = phase.window.warmup_ns as f64 / 1e9;
            chart.marks.push(Mark {
                x,
                label: "end of warm-up".to_owned(),
            });
        }
        for &(name, values, dash) in lines {
            if values.iter().any(|&v| v != 0.0) || lines.len() == 1 {
                chart.series.push(Series {
                    name: name.to_owned(),
                    points: line(values),
                    dash,
                    ..Series::default()
                });
            }
        }
        chart
    };
    let mut charts = vec![chart(
        "Operations offered and completed",
        Axis::linear("operations", "/s"),
        &[
            ("completed", &series.ops_per_s, false),
            ("offered", &series.offered_ops_per_s, true),
            ("failed", &series.failed_per_s, false),
        ],
    )];
    if series.bytes_per_s.iter().any(|&v| v > 0.0) {
        charts.push(chart(
            "Throughput offered and completed",
            Axis::linear("object bytes", "B/s"),
            &[
                ("completed", &series.bytes_per_s, false),
                ("offered", &series.offered_bytes_per_s, true),
            ],
        ));
    }
    charts.push(chart(
        "Operations in flight",
        Axis::linear("operations", ""),
        &[
            ("in flight", &series.in_flight, false),
            ("open sessions", &series.sessions, true),
        ],
    ));
    if phase.backlog.is_some() {
        charts.push(chart(
            "Backlog",
            Axis::linear("age of the oldest outstanding arrival", "s"),
            &[("backlog", &series.backlog_s, false)],
        ));
    }
    let late: Vec<f64> = series.late_p99_ms.iter().map(|ms| ms * 1e6).collect();
    charts.push(chart(
        "Client lag, 99th percentile",
        Axis::linear("timer lateness and build", "ns"),
        &[("p99", &late, false)],
    ));
    charts.push(chart(
        "Machine",
        Axis {
            min: Some(0.0),
            max: Some(1.0),
            ..Axis::linear("busy share of all cores", "%")
        },
        &[("busy", &series.machine_busy, false)],
    ));
    Section {
        title: "Load".to_owned(),
        intro: "What was asked of the store and what it did.".to_owned(),
        tables: std::iter::once(client(phase))
            .chain(std::iter::once(steadiness(phase)))
            .chain(super::accounting::backlog(phase))
            .collect(),
        charts,
    }
}

fn client(phase: &PhaseResult) -> Table {
    let mut figures: Vec<&Figure<ClientUse>> = CLIENT.iter().collect();
    figures.sort_by_key(|figure| figure.unit);
    let row = |figure: &Figure<ClientUse>| {
        let value = figure.value(&phase.client)?;
        Some(vec![figure.title.to_owned(), figure.unit.show(value)])
    };
    Table {
        title: "Client".to_owned(),
        rows: figures.into_iter().filter_map(row).collect(),
        ..Table::default()
    }
}

fn steadiness(phase: &PhaseResult) -> Table {
    Table {
        title: "Steadiness".to_owned(),
        head: [
            "series",
            "state",
            "warm-up cut",
            "trend over the window",
            "second half over first",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: phase
            .steadiness
            .iter()
            .map(|s| {
                let checks = s.assessment.checks.as_ref();
                let cut = s.assessment.cut_bins * s.bin_ns;
                vec![
                    s.name.clone(),
                    format!("{:?}", s.assessment.state),
                    units::ns(cut as f64),
                    checks.map_or_else(|| "–".into(), |c| units::percent(c.trend)),
                    checks.map_or_else(|| "–".into(), |c| units::percent(c.halves)),
                ]
            })
            .collect(),
        ..Table::default()
    }
}

/// The distribution of the throughput per second with the fitted Gaussian.
pub(super) fn distribution(throughput: &ThroughputDistribution) -> Section {
    let bytes = throughput.unit == "bytes/s";
    let unit = if bytes { "B/s" } else { "/s" };
    let total: u64 = throughput.histogram.iter().map(|bin| bin.count).sum();
    let width = throughput
        .histogram
        .first()
        .map_or(1.0, |bin| bin.to - bin.from);
    let mut chart = Chart::lines(
        "Throughput PDF",
        Axis {
            min: throughput.histogram.first().map(|bin| bin.from),
            ..Axis::linear("throughput", unit)
        },
        Axis::linear("share of the time", "%"),
    );
    chart.wide = true;
    chart.series.push(Series {
        name: "measured".to_owned(),
        points: throughput
            .histogram
            .iter()
            .map(|bin| (bin.from, Some(bin.count as f64 / total.max(1) as f64)))
            .collect(),
        bars: width,
        ..Series::default()
    });
    let moments = &throughput.moments;
    let mut rows = vec![
        vec!["mean".to_owned(), rate(moments.mean, bytes)],
        vec!["standard deviation".to_owned(), rate(moments.sd, bytes)],
        vec!["skewness".to_owned(), units::number(moments.skewness)],
        vec![
            "excess kurtosis".to_owned(),
            units::number(moments.excess_kurtosis),
        ],
    ];
    if let (Some(fit), Some(last)) = (&throughput.gaussian, throughput.histogram.last()) {
        let from = throughput.histogram[0].from;
        let curve = (0..=200).map(|i| from + (last.to - from) * f64::from(i) / 200.0);
        chart.series.push(Series {
            name: "fitted Gaussian".to_owned(),
            points: curve
                .map(|x| (x, Some(width * density(x, fit.mean, fit.sd))))
                .collect(),
            dash: true,
            ..Series::default()
        });
        let claim = if !throughput.enough {
            "fewer than 60 bins: nothing can be said about the shape"
        } else if fit.p_value < 0.01 {
            "rejected at 1 %"
        } else {
            "not rejected at 1 %"
        };
        let text = format!(
            "A² {}, p {}: {claim}",
            units::number(fit.anderson_darling),
            units::number(fit.p_value)
        );
        rows.push(vec!["normality (Anderson-Darling)".to_owned(), text]);
    }
    for (name, excess) in [
        ("bytes", &throughput.excess_bytes),
        ("operations", &throughput.excess_ops),
    ] {
        if let Some(excess) = excess {
            let ci = excess.ci.map_or_else(String::new, |(lo, hi)| {
                format!(
                    " (95 % interval {} to {})",
                    units::number(lo),
                    units::number(hi)
                )
            });
            rows.push(vec![
                format!("excess dispersion of {name}"),
                format!(
                    "{}{ci}; 1 means the store adds no fluctuation",
                    units::number(excess.ratio)
                ),
            ]);
        }
    }
    for d in &throughput.dispersion {
        let show = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), units::number);
        rows.push(vec![
            format!("index of dispersion at {} s", units::number(d.window_s)),
            format!(
                "offered {}, completed {}",
                show(d.offered),
                show(d.completed)
            ),
        ]);
    }
    Section {
        title: "Throughput distribution".to_owned(),
        intro: format!(
            "Per {} s over the measured window.",
            units::number(throughput.bin_s)
        ),
        tables: vec![Table {
            rows,
            ..Table::default()
        }],
        charts: vec![chart],
    }
}

fn rate(value: f64, bytes: bool) -> String {
    if bytes {
        format!("{}/s", units::bytes(value))
    } else {
        format!("{}/s", units::number(value))
    }
}

/// Density of the normal distribution.
fn density(x: f64, mean: f64, sd: f64) -> f64 {
    let z = (x - mean) / sd;
    (-0.5 * z * z).exp() / (sd * (2.0 * std::f64::consts::PI).sqrt())
}
