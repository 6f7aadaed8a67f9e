//! Charts with both sides of a comparison: the mean over the runs of each as a line, from the
//! smallest to the largest run as a band.

use super::page::{Axis, Chart, Section, Series};
use super::summary::class_name;
use crate::compare::Comparison;
use crate::result::{Cdf, ClassResult, PhaseResult};

/// Points of a distribution function.
const POINTS: usize = 240;
const SIDES: [&str; 2] = ["A", "B"];

/// Distribution functions and throughput of one phase.
pub(super) fn section(name: &str, a: &[&PhaseResult], b: &[&PhaseResult]) -> Section {
    let mut charts = Vec::new();
    for class in &a[0].classes {
        let label = class_name(a[0], class);
        for tail in [false, true] {
            charts.extend(distribution(&label, class, [a, b], tail));
        }
    }
    charts.push(over_time(
        "Operations completed",
        Axis::linear("operations", "/s"),
        [a, b],
        |p| &p.series.ops_per_s,
    ));
    if a[0].series.bytes_per_s.iter().any(|&v| v > 0.0) {
        charts.push(over_time(
            "Throughput",
            Axis::linear("object bytes", "B/s"),
            [a, b],
            |p| &p.series.bytes_per_s,
        ));
    }
    Section {
        title: format!("Both sides of phase {name}"),
        intro: "Lines are means over the runs of a side, bands reach from its smallest to its \
                largest run."
            .to_owned(),
        charts,
        ..Section::default()
    }
}

fn distribution(
    label: &str,
    class: &ClassResult,
    sides: [&[&PhaseResult]; 2],
    tail: bool,
) -> Option<Chart> {
    let cdfs = sides.map(|phases| -> Vec<&Cdf> {
        let same = |c: &&ClassResult| c.class == class.class && c.work_name == class.work_name;
        let found = phases.iter().filter_map(|p| p.classes.iter().find(same));
        found
            .map(|c| &c.response_cdf)
            .filter(|cdf| !cdf.value_ns.is_empty())
            .collect()
    });
    let all = || cdfs.iter().flatten();
    let low = all().filter_map(|cdf| cdf.value_ns.first()).min()?;
    let high = all().filter_map(|cdf| cdf.value_ns.last()).max()?;
    let (low, high) = ((*low).max(1) as f64, (*high).max(2) as f64);
    let (title, y) = if tail {
        (
            format!("{label} response time, the tail"),
            Axis::log("share slower than", "%"),
        )
    } else {
        let y = Axis {
            min: Some(0.0),
            max: Some(1.0),
            ..Axis::linear("share of operations", "%")
        };
        (format!("{label} response time"), y)
    };
    let mut chart = Chart::lines(&title, Axis::log("latency", "ns"), y);
    for (i, (name, cdfs)) in SIDES.into_iter().zip(&cdfs).enumerate() {
        let at = |x: f64| -> Vec<f64> {
            let share = |cdf: &&Cdf| {
                let n = cdf.value_ns.partition_point(|&value| value as f64 <= x);
                let below = if n == 0 { 0.0 } else { cdf.fraction[n - 1] };
                if tail { 1.0 - below } else { below }
            };
            cdfs.iter().map(share).collect()
        };
        let points: Vec<(f64, Vec<f64>)> = (0..=POINTS)
            .map(|k| low * (high / low).powf(k as f64 / POINTS as f64))
            .map(|x| (x, at(x)))
            .filter(|(_, shares)| !tail || shares.iter().all(|share| *share > 1e-9))
            .collect();
        chart.series.push(line(name, i, &points));
    }
    Some(chart)
}

fn over_time(
    title: &str,
    y: Axis,
    sides: [&[&PhaseResult]; 2],
    values: fn(&PhaseResult) -> &Vec<f64>,
) -> Chart {
    let mut chart = Chart::lines(title, Axis::linear("time", "s"), y);
    for (i, (name, phases)) in SIDES.into_iter().zip(sides).enumerate() {
        let longest = phases.iter().max_by_key(|p| p.series.t_s.len());
        let times = longest.map_or(&[][..], |p| &p.series.t_s[..]);
        let points: Vec<(f64, Vec<f64>)> = times
            .iter()
            .enumerate()
            .map(|(k, &t)| {
                (
                    t,
                    phases
                        .iter()
                        .filter_map(|p| values(p).get(k).copied())
                        .collect(),
                )
            })
            .collect();
        chart.series.push(line(name, i, &points));
    }
    chart
}

/// Mean and range of the values at each x.
fn line(name: &str, color: usize, points: &[(f64, Vec<f64>)]) -> Series {
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    let least = |v: &[f64]| v.iter().copied().fold(f64::INFINITY, f64::min);
    let most = |v: &[f64]| v.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Series {
        name: name.to_owned(),
        points: points
            .iter()
            .map(|(x, v)| (*x, (!v.is_empty()).then(|| mean(v))))
            .collect(),
        band: points
            .iter()
            .filter(|(_, v)| v.len() > 1)
            .map(|(x, v)| (*x, least(v), most(v)))
            .collect(),
        dash: color == 1,
        color: Some(color as u8),
        ..Series::default()
    }
}

/// The shift curves: B's quantiles against A's, with run-level intervals and the margin.
pub(super) fn shifts(c: &Comparison) -> Section {
    let chart = |shift: &crate::compare::Shift| {
        let mut chart = Chart::lines(
            &format!("{}: quantiles of B against A", shift.name),
            Axis {
                min: Some(0.0),
                max: Some(1.0),
                ..Axis::linear("quantile", "%")
            },
            Axis::linear("change", "%"),
        );
        chart.note =
            "Above 0, B is slower. The band is the 95 % interval over the runs.".to_owned();
        let change = |p: &crate::compare::ShiftPoint| p.b_ns / p.a_ns - 1.0;
        chart.series.push(Series {
            name: "change".to_owned(),
            points: shift
                .points
                .iter()
                .map(|p| (p.q, Some(change(p))))
                .collect(),
            band: shift
                .points
                .iter()
                .filter_map(|p| p.ratio.map(|i| (p.q, i.low - 1.0, i.high - 1.0)))
                .collect(),
            ..Series::default()
        });
        for (name, y) in [
            ("no change", 0.0),
            ("margin, slower", c.margin),
            ("margin, faster", -c.margin),
        ] {
            chart.series.push(Series {
                name: name.to_owned(),
                points: vec![(0.0, Some(y)), (1.0, Some(y))],
                dash: true,
                color: Some(if y == 0.0 { 3 } else { 4 }),
                ..Series::default()
            });
        }
        chart
    };
    Section {
        title: "Shift of the distributions".to_owned(),
        intro: "The ratio of each quantile, which shows where operations became slower: all of \
                them, or only the tail."
            .to_owned(),
        charts: c
            .shifts
            .iter()
            .filter(|s| !s.points.is_empty())
            .map(chart)
            .collect(),
        ..Section::default()
    }
}
