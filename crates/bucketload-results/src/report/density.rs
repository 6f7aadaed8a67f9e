//! Latency density: smoothed histograms of the operations' times, as MD-Workbench's results are shown.

use super::page::{Axis, Chart, Section, Series};
use super::summary::class_name;
use crate::result::{Cdf, PhaseResult, RunResult};

/// Half of the width that the density is smoothed over, in decades; the width is four steps between points,
/// so that every operation counts alike.
const HALF: f64 = 0.05;
/// Points per decade.
const POINTS: f64 = 40.0;

/// A chart per measuring phase; nothing for other workloads than MD-Workbench.
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
    (!charts.is_empty()).then(|| Section {
        title: "Latency density".to_owned(),
        intro: "Share of operations per decade of latency, smoothed over 0.1 decades. One chart per phase."
            .to_owned(),
        tables: Vec::new(),
        charts,
    })
}

fn chart(phase: &PhaseResult) -> Chart {
    let mut chart = Chart::lines(
        &phase.name,
        Axis::log("latency", "ns"),
        Axis {
            min: Some(0.0),
            ..Axis::linear("share of operations per decade", "")
        },
    );
    for (i, class) in phase.classes.iter().enumerate() {
        let points = density(&class.response_cdf);
        if !points.is_empty() {
            chart.series.push(Series {
                name: class_name(phase, class),
                points: points.into_iter().map(|(x, y)| (x, Some(y))).collect(),
                color: Some(i as u8),
                ..Series::default()
            });
        }
    }
    chart
}

/// Latency in ns and the share of operations per decade around it.
fn density(cdf: &Cdf) -> Vec<(f64, f64)> {
    let values: Vec<(f64, f64)> = cdf
        .value_ns
        .iter()
        .zip(&cdf.fraction)
        .map(|(&ns, &share)| ((ns as f64).max(1.0).log10(), share))
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
    use crate::result::Cdf;

    #[test]
    fn the_area_is_one_and_the_peak_where_the_operations_are() {
        let cdf = Cdf {
            value_ns: vec![10_000, 100_000, 110_000, 1_000_000],
            fraction: vec![0.1, 0.5, 0.9, 1.0],
        };
        let points = density(&cdf);
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
