//! From one value per run to a decision: intervals, correction for multiple testing, verdict.

use bucketload_core::stats::decide::{Decision, decide, overall};
use bucketload_core::stats::dist::t_quantile;
use bucketload_core::stats::holm::holm;
use bucketload_core::stats::moments::Moments;
use bucketload_core::stats::ranks::mann_whitney;
use bucketload_core::stats::ratio::{Interval, log_welch, paired, paired_difference, welch};

use super::{Compared, Effect, Options, Sample};

/// Confidence of every interval.
pub const LEVEL: f64 = 0.95;
/// Share of the allowed error for the primary quantities together; the others share the rest. With equal
/// shares, many percentiles would hide a slower store: 30 of them leave each one 0.17 %, which five runs
/// hardly ever reach.
const PRIMARY_SHARE: f64 = 0.8;
/// Largest difference of shares (of errors) that does not matter: rule V7 for comparisons.
const SHARE_MARGIN: f64 = 0.001;

/// Judges every quantity and the comparison as a whole. Ratios and differences are those of B to A. `margin` is
/// the largest ratio that does not matter, as its distance from 1.
///
/// # Panics
/// If a quantity has no value on a side.
#[must_use]
pub fn judge(samples: Vec<Sample>, pairs: bool, margin: f64) -> (Decision, Vec<Compared>) {
    let intervals: Vec<Option<Interval>> = samples.iter().map(|s| interval(s, pairs)).collect();
    let primaries = samples.iter().filter(|s| s.quantity.primary).count();
    let others = samples.len() - primaries;
    let tests: Vec<(f64, f64)> = samples
        .iter()
        .zip(&intervals)
        .map(|(sample, interval)| {
            let weight = if sample.quantity.primary {
                PRIMARY_SHARE / primaries as f64
            } else {
                (1.0 - PRIMARY_SHARE) / others as f64
            };
            (interval.map_or(1.0, |i| i.p_value), weight)
        })
        .collect();
    let adjusted = holm(&tests);
    let quantities: Vec<Compared> = samples
        .into_iter()
        .zip(intervals)
        .zip(adjusted)
        .map(|((sample, interval), adjusted_p)| compared(sample, interval, adjusted_p, margin))
        .collect();
    let decisions = |primary: bool| -> Vec<Decision> {
        quantities
            .iter()
            .filter(|q| q.sample.quantity.gate && (!primary || q.sample.quantity.primary))
            .map(|q| q.decision)
            .collect()
    };
    (overall(&decisions(false), &decisions(true)), quantities)
}

/// Ratio or difference of B to A with its interval.
pub(super) fn interval(sample: &Sample, pairs: bool) -> Option<Interval> {
    let (a, b) = (&sample.a, &sample.b);
    match (sample.quantity.effect, pairs) {
        (Effect::Ratio, true) => paired(a, b, LEVEL),
        (Effect::Ratio, false) => log_welch(a, b, LEVEL),
        (Effect::Difference, true) => paired_difference(a, b, LEVEL),
        (Effect::Difference, false) => welch(a, b, LEVEL),
    }
}

/// Number of runs per side at which the interval of a ratio would be as narrow as the margin, if further runs vary
/// like the present ones. `None` if the runs do not vary or more than 1000 would be needed.
pub(super) fn runs_needed(q: &Compared, options: &Options) -> Option<u64> {
    let interval = q.interval.filter(|i| i.df.is_finite() && i.low > 0.0)?;
    let runs = q.sample.a.len().min(q.sample.b.len()) as f64;
    let tail = 0.5 + LEVEL / 2.0;
    let error = (interval.high / interval.low).ln() / 2.0 / t_quantile(tail, interval.df);
    let wanted = options.margin.ln_1p();
    (2..=1000u64).find(|&n| {
        let n = n as f64;
        let df = if options.paired {
            n - 1.0
        } else {
            2.0 * (n - 1.0)
        };
        t_quantile(tail, df) * error * (runs / n).sqrt() <= wanted
    })
}

fn compared(sample: Sample, interval: Option<Interval>, adjusted_p: f64, margin: f64) -> Compared {
    let effect = sample.quantity.effect;
    let (neutral, margin) = match effect {
        Effect::Ratio => (1.0, margin),
        Effect::Difference => (0.0, SHARE_MARGIN),
    };
    let decision = interval.map_or(Decision::Inconclusive, |i| {
        decide(
            &i,
            neutral,
            adjusted_p,
            1.0 - LEVEL,
            sample.quantity.better,
            margin,
        )
    });
    let cv = |x: &[f64]| Moments::of(x).cv().filter(|_| x.len() > 1);
    Compared {
        a_mean: centre(&sample.a, effect),
        b_mean: centre(&sample.b, effect),
        a_cv: cv(&sample.a),
        b_cv: cv(&sample.b),
        interval,
        adjusted_p,
        ranks: mann_whitney(&sample.a, &sample.b),
        decision,
        sample,
    }
}

/// Geometric mean for ratios of positive values, arithmetic mean otherwise.
fn centre(x: &[f64], effect: Effect) -> f64 {
    if effect == Effect::Ratio && x.iter().all(|v| *v > 0.0) {
        let logs: Vec<f64> = x.iter().map(|v| v.ln()).collect();
        Moments::of(&logs).mean.exp()
    } else {
        Moments::of(x).mean
    }
}

#[cfg(test)]
mod tests {
    use bucketload_core::stats::decide::Better;

    use super::{judge, runs_needed};
    use crate::compare::{Effect, Options, Quantity, Sample, Unit};

    #[test]
    fn more_variation_needs_more_runs() {
        let needed = |spread: f64| {
            let sample = Sample {
                quantity: Quantity {
                    id: "x".into(),
                    name: "x".into(),
                    unit: Unit::PerS,
                    better: Better::Higher,
                    effect: Effect::Ratio,
                    primary: true,
                    gate: true,
                },
                a: vec![100.0, 100.0 * (1.0 + spread), 100.0 / (1.0 + spread)],
                b: vec![101.0, 101.0 * (1.0 + spread), 101.0 / (1.0 + spread)],
            };
            let (_, quantities) = judge(vec![sample], false, 0.05);
            runs_needed(&quantities[0], &Options::default())
        };
        // sd 0.1 per side: t · 0.1 · sqrt(2/n) = ln 1.05 at n = 34.
        assert!(
            (30..=38).contains(&needed(0.1).unwrap()),
            "{:?}",
            needed(0.1)
        );
        assert!(needed(0.2) > needed(0.1) && needed(0.01) < Some(5));
        assert_eq!(needed(0.0), None);
    }
}
