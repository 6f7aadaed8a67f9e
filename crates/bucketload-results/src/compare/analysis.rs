//! From one value per run to words: intervals, correction for many quantities, verdict.

use bucketload_core::stats::decide::{Decision, decide, overall};
use bucketload_core::stats::holm::holm;
use bucketload_core::stats::moments::Moments;
use bucketload_core::stats::ranks::mann_whitney;
use bucketload_core::stats::ratio::{Interval, log_welch, paired, paired_difference, welch};

use super::{Compared, Effect, Sample};

/// Confidence of every interval.
pub const LEVEL: f64 = 0.95;
/// Share of the allowed error that the primary quantities have together; the rest is that of all
/// others. With equal shares a page of percentiles would hide a slower store: 30 of them leave each
/// one 0.17 %, which five runs hardly ever reach.
const PRIMARY_SHARE: f64 = 0.8;
/// Difference of shares (of errors) without consequence: rule V7 for comparisons.
const SHARE_MARGIN: f64 = 0.001;

/// Judges every quantity and the whole. Ratios and differences are those of B against A; `margin`
/// is the largest ratio without consequence, as its distance from 1.
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
    let words = |primary: bool| -> Vec<Decision> {
        quantities
            .iter()
            .filter(|q| q.sample.quantity.gate && (!primary || q.sample.quantity.primary))
            .map(|q| q.decision)
            .collect()
    };
    (overall(&words(false), &words(true)), quantities)
}

/// Ratio or difference of B against A with its interval.
pub(super) fn interval(sample: &Sample, pairs: bool) -> Option<Interval> {
    let (a, b) = (&sample.a, &sample.b);
    match (sample.quantity.effect, pairs) {
        (Effect::Ratio, true) => paired(a, b, LEVEL),
        (Effect::Ratio, false) => log_welch(a, b, LEVEL),
        (Effect::Difference, true) => paired_difference(a, b, LEVEL),
        (Effect::Difference, false) => welch(a, b, LEVEL),
    }
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

/// Geometric mean for ratios, where all values are positive; arithmetic otherwise.
fn centre(x: &[f64], effect: Effect) -> f64 {
    if effect == Effect::Ratio && x.iter().all(|v| *v > 0.0) {
        let logs: Vec<f64> = x.iter().map(|v| v.ln()).collect();
        Moments::of(&logs).mean.exp()
    } else {
        Moments::of(x).mean
    }
}
