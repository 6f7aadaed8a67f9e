//! Shift of a whole distribution: the ratio of each quantile, with run-level intervals.

use serde::Serialize;

use super::{Run, analysis::LEVEL};
use crate::result::{Cdf, ClassResult};
use bucketload_core::stats::ratio::{Interval, log_welch, paired};

/// Quantiles of a shift curve.
const QUANTILES: [f64; 27] = [
    0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75,
    0.8, 0.85, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995, 0.998, 0.999,
];

/// The shift of one duration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shift {
    /// Phase, class and duration, such as `get response`.
    pub name: String,
    /// One point per quantile that has enough values in every run.
    pub points: Vec<ShiftPoint>,
}

/// The shift of one quantile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ShiftPoint {
    /// The quantile.
    pub q: f64,
    /// B / A; `None` with one run on a side.
    pub ratio: Option<Interval>,
    /// Geometric mean over A's runs, nanoseconds.
    pub a_ns: f64,
    /// The same for B.
    pub b_ns: f64,
}

/// A distribution with its number of values.
struct Distribution<'a> {
    cdf: &'a Cdf,
    n: u64,
}

/// The shifts of all durations that every run has.
pub(super) fn shifts(a: &[Run], b: &[Run], pairs: bool) -> Vec<Shift> {
    let mut shifts = Vec::new();
    let several = a[0].result.measured().count() > 1;
    for phase in a[0].result.measured() {
        for class in &phase.classes {
            for service in [false, true] {
                if service && !phase.open_loop {
                    continue;
                }
                let side = |runs: &[Run]| -> Option<Vec<Vec<f64>>> {
                    let of = |run| quantiles(&distribution(run, &phase.name, class, service)?);
                    runs.iter().map(of).collect()
                };
                let (Some(x), Some(y)) = (side(a), side(b)) else {
                    continue;
                };
                let mut name = phase.class_name(class);
                if several {
                    name = format!("{} {name}", phase.name);
                }
                shifts.push(Shift {
                    name: format!("{name} {}", if service { "service" } else { "response" }),
                    points: points(&x, &y, pairs),
                });
            }
        }
    }
    shifts
}

fn distribution<'a>(
    run: &'a Run,
    phase: &str,
    class: &ClassResult,
    service: bool,
) -> Option<Distribution<'a>> {
    let phase = run.result.measured().find(|p| p.name == phase)?;
    let found = phase
        .classes
        .iter()
        .find(|c| c.class == class.class && c.work_name == class.work_name)?;
    let (cdf, latency) = if service {
        (&found.service_cdf, &found.service)
    } else {
        (&found.response_cdf, &found.response)
    };
    (latency.n > 0).then_some(Distribution { cdf, n: latency.n })
}

/// The value of each quantile with at least ten values beyond it; NaN for the others.
fn quantiles(d: &Distribution<'_>) -> Option<Vec<f64>> {
    let value = |q: f64| {
        let enough = d.n as f64 * q.min(1.0 - q) + 1e-6 >= 10.0;
        let at = d.cdf.fraction.partition_point(|&share| share < q);
        match d.cdf.value_ns.get(at) {
            Some(&ns) if enough => ns as f64,
            _ => f64::NAN,
        }
    };
    Some(QUANTILES.into_iter().map(value).collect())
}

fn points(a: &[Vec<f64>], b: &[Vec<f64>], pairs: bool) -> Vec<ShiftPoint> {
    let geometric = |x: &[f64]| (x.iter().map(|v| v.ln()).sum::<f64>() / x.len() as f64).exp();
    (0..QUANTILES.len())
        .filter_map(|i| {
            let at = |runs: &[Vec<f64>]| runs.iter().map(|run| run[i]).collect::<Vec<_>>();
            let (x, y) = (at(a), at(b));
            let known = x.iter().chain(&y).all(|v| *v > 0.0);
            known.then(|| ShiftPoint {
                q: QUANTILES[i],
                ratio: if pairs {
                    paired(&x, &y, LEVEL)
                } else {
                    log_welch(&x, &y, LEVEL)
                },
                a_ns: geometric(&x),
                b_ns: geometric(&y),
            })
        })
        .collect()
}
