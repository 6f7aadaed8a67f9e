//! Latency density: smoothed histograms of operation times, in the style of MD-Workbench's results.

use crate::kit::{Axis, Chart, Section, Series, Unit};
use crate::result::{PhaseResult, RunResult};

/// Half of the smoothing width, in decades. The width is four steps between points, so every operation counts
/// alike.
const HALF: f64 = 0.05;
/// Points per decade.
const POINTS: f64 = 40.0;

/// One chart per measuring phase; `None` for workloads other than MD-Workbench.
pub(super) fn section(result: &RunResult) -> Option<Section> {
    if result.run.profile != "md-workbench" {
        return None;
    }
    let moves = |phase: &&PhaseResult| {
        phase
            .classes
            .iter()
            .any(|class| !class.response_cdf.value_ns.is_empty())
    };
    let charts: Vec<Chart> = result
        .measured()
        .filter(moves)
        .filter(|phase| phase.name != "audit")
        .map(chart)
        .collect();
    let intro = "Share of operations per decade of latency, smoothed over 0.1 decades. One chart per phase.";
    (!charts.is_empty()).then(|| Section::new("Latency density", intro).charts(charts))
}

fn chart(phase: &PhaseResult) -> Chart {
    let lines = phase.classes.iter().enumerate().map(|(look, class)| {
        let cdf = &class.response_cdf;
        let points = cdf.value_ns.iter().zip(&cdf.fraction);
        let points: Vec<(f64, f64)> = points.map(|(&ns, &share)| (ns as f64, share)).collect();
        Series::line(phase.class_name(class), look, density(&points))
    });
    Chart::lines(
        &*phase.name,
        Axis::log("latency", Unit::Ns),
        Axis::linear("share of operations per decade", Unit::Number),
        lines,
    )
}

/// Pairs of latency in ns and share of operations per decade around it, from the points of a distribution function.
#[must_use]
pub fn density(cdf: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let values: Vec<(f64, f64)> = cdf
        .iter()
        .map(|&(ns, share)| (ns.max(1.0).log10(), share))
        .collect();
    let (Some(first), Some(last)) = (values.first(), values.last()) else {
        return Vec::new();
    };
    let below = |x: f64| {
        let after = values.partition_point(|(value, _)| *value <= x);
        if after == 0 { 0.0 } else { values[after - 1].1 }
    };
    let (from, to) = (first.0 - 2.0 * HALF, last.0 + 2.0 * HALF);
    let steps = ((to - from) * POINTS).ceil() as usize;
    (0..=steps)
        .map(|step| {
            let x = from + step as f64 / POINTS;
            (
                10f64.powf(x),
                (below(x + HALF) - below(x - HALF)) / (2.0 * HALF),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::density;

    #[test]
    fn the_area_is_one_and_the_peak_where_the_operations_are() {
        let points = density(&[(1e4, 0.1), (1e5, 0.5), (1.1e5, 0.9), (1e6, 1.0)]);
        let area: f64 = points
            .windows(2)
            .map(|pair| {
                let width = pair[1].0.log10() - pair[0].0.log10();
                width * (pair[0].1 + pair[1].1) / 2.0
            })
            .sum();
        assert!((area - 1.0).abs() < 0.05, "{area}");
        let peak = points.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
        assert!((90_000.0..120_000.0).contains(&peak.0), "{peak:?}");
    }
}
