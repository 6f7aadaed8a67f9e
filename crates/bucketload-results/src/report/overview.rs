//! The charts of the first screen: throughput and latency over time, and the distribution of latencies; for several
//! phases, a comparison of the phases.

use super::latency::{self, points};
use super::load;
use crate::kit::svg::{Bar, Bars, Body};
use crate::kit::{Axis, Chart, Series, Unit};
use crate::result::{ClassResult, PhaseResult, RunResult};

/// Limit on the lines of a chart, and on the bars.
const LINES: usize = 8;
const BARS: usize = 24;

/// The charts that answer first.
pub(super) fn charts(result: &RunResult) -> Vec<Chart> {
    let phases: Vec<&PhaseResult> = result.measured().collect();
    let charts = match phases[..] {
        [] => Vec::new(),
        [phase] => vec![
            load::operations(phase),
            latency::over_time(phase),
            latency::cdf(phase),
        ],
        _ => of_several(&phases),
    };
    charts.into_iter().filter(|c| !c.is_empty()).collect()
}

/// Throughput, 99th percentile and distribution of each operation of each phase.
fn of_several(phases: &[&PhaseResult]) -> Vec<Chart> {
    let classes = || {
        phases.iter().flat_map(|phase| {
            let used = phase.classes.iter().filter(|class| class.ok > 0);
            used.map(move |class| (format!("{} {}", phase.name, phase.class_name(class)), class))
        })
    };
    let bars = |title: &str, label: &str, unit: Unit, of: &dyn Fn(&ClassResult) -> Option<f64>| {
        let known = classes().filter_map(|(name, class)| Some((name, of(class)?)));
        let known: Vec<(String, f64)> = known.filter(|(_, value)| *value > 0.0).collect();
        let axis = Axis::fitting(label, unit, known.iter().map(|(_, value)| *value));
        let left_out = known.len().saturating_sub(BARS);
        let group = |(name, value): (String, f64)| {
            let bar = Bar {
                value,
                text: unit.show(value),
                ..Bar::default()
            };
            (name, vec![bar])
        };
        let bars = Bars {
            groups: known.into_iter().take(BARS).map(group).collect(),
            ..Bars::default()
        };
        let chart = Chart::new(title, axis.clone(), axis, Body::Bars(bars));
        match left_out {
            0 => chart,
            n => chart.noted(format!("The first {BARS}; {n} more stand below.")),
        }
    };
    let p99 = |class: &ClassResult| {
        let p99 = class.response.percentile(0.99)?;
        let known = p99.print != bucketload_core::stats::quantile::Print::Omit;
        known.then_some(p99.value_ns as f64)
    };
    let lines = classes()
        .take(LINES)
        .enumerate()
        .map(|(look, (name, class))| Series {
            steps: true,
            ..Series::line(name, look, points(&class.response_cdf, false))
        });
    let all = classes().count();
    let mut distribution = Chart::lines(
        "Response time, distribution",
        Axis::log("response time", Unit::Ns),
        Axis::share("share of operations"),
        lines,
    );
    if all > LINES {
        distribution.note = format!("The first {LINES} of {all}; the others stand below.");
    }
    vec![
        bars("Throughput", "operations/s", Unit::PerS, &|c| {
            Some(c.ops_per_s.mean)
        }),
        bars("Response time, p99", "99th percentile", Unit::Ns, &p99),
        distribution,
    ]
}
