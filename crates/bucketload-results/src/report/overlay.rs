//! Charts with both sides of a comparison: the mean over a side's runs as a line, their range as a band.

use crate::compare::{Comparison, Shift, ShiftPoint};
use crate::kit::svg::{Point, log_spaced};
use crate::kit::{Axis, Chart, Section, Series, Unit};
use crate::result::{Cdf, ClassResult, PhaseResult};

const SIDES: [&str; 2] = ["A", "B"];

/// Distribution functions and throughput of one phase.
pub(super) fn section(name: &str, a: &[&PhaseResult], b: &[&PhaseResult]) -> Section {
    let mut charts = Vec::new();
    for class in &a[0].classes {
        let label = a[0].class_name(class);
        for tail in [false, true] {
            charts.extend(distribution(&label, class, [a, b], tail));
        }
    }
    charts.push(over_time(
        "Operations completed",
        Axis::linear("operations/s", Unit::PerS),
        [a, b],
        |p| &p.series.ops_per_s,
    ));
    if a[0].series.bytes_per_s.iter().any(|&v| v > 0.0) {
        charts.push(over_time(
            "Throughput",
            Axis::linear("object bytes", Unit::BytesPerS),
            [a, b],
            |p| &p.series.bytes_per_s,
        ));
    }
    let intro = "Lines are means over a side's runs; bands span its lowest to highest run.";
    Section::new(format!("Both sides of phase {name}"), intro).charts(charts)
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
    let (title, y) = match tail {
        true => (
            format!("{label} response time, tail"),
            Axis::log("share slower than", Unit::Share),
        ),
        false => (
            format!("{label} response time"),
            Axis::share("share of operations"),
        ),
    };
    let lines = cdfs.iter().enumerate().map(|(side, cdfs)| {
        let shares = |x: f64| -> Vec<f64> {
            let share = |cdf: &&Cdf| {
                let n = cdf.value_ns.partition_point(|&value| value as f64 <= x);
                let below = if n == 0 { 0.0 } else { cdf.fraction[n - 1] };
                if tail { 1.0 - below } else { below }
            };
            cdfs.iter().map(share).collect()
        };
        let points = log_spaced(low, high)
            .map(|x| (x, shares(x)))
            .filter(|(_, shares)| !tail || shares.iter().all(|share| *share > 1e-9));
        line(side, points)
    });
    let x = Axis::log("latency", Unit::Ns);
    Some(Chart::lines(title, x, y, lines))
}

fn over_time(
    title: &str,
    y: Axis,
    sides: [&[&PhaseResult]; 2],
    values: fn(&PhaseResult) -> &Vec<f64>,
) -> Chart {
    let lines = sides.into_iter().enumerate().map(|(side, phases)| {
        let longest = phases.iter().max_by_key(|p| p.series.t_s.len());
        let times = longest.map_or(&[][..], |p| &p.series.t_s[..]);
        let at = |k: usize| phases.iter().filter_map(move |p| values(p).get(k).copied());
        let points = times.iter().enumerate();
        line(side, points.map(|(k, &t)| (t, at(k).collect())))
    });
    Chart::lines(title, Axis::linear("time", Unit::Seconds), y, lines)
}

/// Mean and range of the values at each x.
fn line(side: usize, points: impl Iterator<Item = (f64, Vec<f64>)>) -> Series {
    let point = |(x, v): (f64, Vec<f64>)| {
        let least = v.iter().copied().fold(f64::INFINITY, f64::min);
        let most = v.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Point {
            ci: (v.len() > 1).then_some((least, most)),
            // Without values this is NaN, a gap.
            ..Point::from((x, v.iter().sum::<f64>() / v.len() as f64))
        }
    };
    Series {
        band: true,
        dashed: side == 1,
        ..Series::line(SIDES[side], side, points.map(point))
    }
}

/// Shift curves: B's quantiles relative to A's, with run-level intervals and the margin.
pub(super) fn shifts(c: &Comparison) -> Section {
    let chart = |shift: &Shift| {
        let point = |p: &ShiftPoint| Point {
            ci: p.ratio.map(|i| (i.low - 1.0, i.high - 1.0)),
            ..Point::from((p.q, p.b_ns / p.a_ns - 1.0))
        };
        let change = Series {
            band: true,
            ..Series::line("change", 0, shift.points.iter().map(point))
        };
        let levels = [
            ("no change", 0.0, 3),
            ("margin, slower", c.margin, 4),
            ("margin, faster", -c.margin, 4),
        ];
        let levels =
            levels.map(|(name, y, look)| Series::line(name, look, [(0.0, y), (1.0, y)]).dashed());
        Chart::lines(
            format!("{}: quantiles, B vs A", shift.name),
            Axis::share("quantile"),
            Axis::linear("change", Unit::Share),
            [change].into_iter().chain(levels),
        )
        .noted("Above 0, B is slower. The band is the 95 % interval over the runs.")
    };
    let intro = "The change of each quantile. It shows whether all operations became slower, or only the tail.";
    let known = c.shifts.iter().filter(|s| !s.points.is_empty());
    Section::new("Shift of the distributions", intro).charts(known.map(chart))
}
