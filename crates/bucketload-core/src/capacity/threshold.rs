//! The capacity from all trials at once: logistic regression of pass on the logarithm of the rate.
//!
//! ```text
//! P(pass at rate r) = 1 / (1 + (r/c)^k)      c: the capacity, where half of the trials pass
//! ```
//!
//! The interval is that of the profile likelihood: all c for which twice the loss of log-likelihood relative
//! to the best fit, maximised over k, stays below the 95 % quantile of χ² with one degree of freedom (Venzon
//! and Moolgavkar 1988; docs/spec/statistics.md section 6). If passes and failures do not overlap, the
//! likelihood grows with k without bound. k is limited for that reason, which leaves the whole gap between
//! passes and failures in the interval.

use serde::{Deserialize, Serialize};

/// 95 % quantile of χ² with one degree of freedom.
const CHI2_1_95: f64 = 3.841_459;
/// Range of the steepness: below it the rate hardly matters, above it a difference of 1 % decides.
const STEEPNESS: (f64, f64) = (1.0, 400.0);
/// Candidate capacities per natural logarithm of the rate.
const GRID_PER_LN: f64 = 500.0;
/// Maximum number of steps in the search for the best steepness.
const STEEPNESS_STEPS: usize = 40;

/// A capacity with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Threshold {
    /// The rate at which half of the trials pass, operations per second.
    pub rate: f64,
    /// Its 95 % interval; an end is infinite or 0 if the trials do not bound it.
    pub ci: (f64, f64),
    /// The exponent k: the probability of passing falls from 3/4 to 1/4 within a factor of 9^(1/k).
    pub steepness: f64,
    /// Number of trials used.
    pub trials: u64,
}

impl Threshold {
    /// The fit to `trials`, each a rate and whether it passed. `None` unless there are both passes and
    /// failures.
    #[must_use]
    pub fn fit(trials: &[(f64, bool)]) -> Option<Self> {
        let passes = trials.iter().filter(|(_, pass)| *pass).count();
        if passes == 0 || passes == trials.len() {
            return None;
        }
        let ln: Vec<(f64, bool)> = trials.iter().map(|&(r, pass)| (r.ln(), pass)).collect();
        let lowest = ln.iter().map(|t| t.0).fold(f64::INFINITY, f64::min);
        let highest = ln.iter().map(|t| t.0).fold(f64::NEG_INFINITY, f64::max);
        // Extending the grid by one natural logarithm beyond the trials shows whether they bound the
        // interval.
        let (from, to) = (lowest - 1.0, highest + 1.0);
        let steps = ((to - from) * GRID_PER_LN).ceil() as usize;
        let at = |i: usize| from + (to - from) * i as f64 / steps as f64;
        let profile: Vec<(f64, f64)> = (0..=steps).map(|i| best_steepness(&ln, at(i))).collect();
        let best = profile
            .iter()
            .map(|p| p.0)
            .fold(f64::NEG_INFINITY, f64::max);
        // Equally good capacities form a plateau if passes and failures do not overlap; use its middle.
        let on_top: Vec<usize> = (0..=steps)
            .filter(|&i| profile[i].0 > best - 1e-6)
            .collect();
        let middle = on_top[on_top.len() / 2];
        let inside = |i: &usize| 2.0 * (best - profile[*i].0) <= CHI2_1_95;
        let low = (0..=steps).find(inside).unwrap_or(0);
        let high = (0..=steps).rfind(inside).unwrap_or(steps);
        Some(Self {
            rate: at(middle).exp(),
            ci: (
                if low == 0 { 0.0 } else { at(low).exp() },
                if high == steps {
                    f64::INFINITY
                } else {
                    at(high).exp()
                },
            ),
            steepness: profile[middle].1,
            trials: trials.len() as u64,
        })
    }
}

/// The largest log-likelihood for the capacity `c` (a logarithm), and its steepness. The log-likelihood is
/// concave in the steepness (golden-section search).
fn best_steepness(trials: &[(f64, bool)], c: f64) -> (f64, f64) {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    let likelihood = |ln_k: f64| log_likelihood(trials, c, ln_k.exp());
    let (mut a, mut b) = (STEEPNESS.0.ln(), STEEPNESS.1.ln());
    let (mut x, mut y) = (b - GOLDEN * (b - a), a + GOLDEN * (b - a));
    let (mut fx, mut fy) = (likelihood(x), likelihood(y));
    for _ in 0..STEEPNESS_STEPS {
        if (b - a) < 1e-3 {
            break;
        }
        if fx < fy {
            (a, x, fx) = (x, y, fy);
            y = a + GOLDEN * (b - a);
            fy = likelihood(y);
        } else {
            (b, y, fy) = (y, x, fx);
            x = b - GOLDEN * (b - a);
            fx = likelihood(x);
        }
    }
    let k = f64::midpoint(a, b);
    (likelihood(k), k.exp())
}

fn log_likelihood(trials: &[(f64, bool)], c: f64, k: f64) -> f64 {
    trials
        .iter()
        .map(|&(ln_rate, pass)| {
            let x = k * (ln_rate - c);
            // ln of 1/(1+e^x) or of 1/(1+e^-x), without overflow.
            let x = if pass { x } else { -x };
            -(x.max(0.0) + (-x.abs()).exp().ln_1p())
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::Threshold;
    use crate::stats::testing::Noise;

    #[test]
    fn trials_that_agree_leave_the_gap_open() {
        let trials = [(100.0, true), (200.0, true), (250.0, false), (400.0, false)];
        let fit = Threshold::fit(&trials).unwrap();
        assert!((200.0..250.0).contains(&fit.rate), "{fit:?}");
        assert!(fit.ci.0 < 200.0 && fit.ci.1 > 250.0, "{fit:?}");
        assert_eq!(fit.trials, 4);
    }

    #[test]
    fn one_sided_trials_have_no_threshold() {
        assert_eq!(Threshold::fit(&[(1.0, true), (2.0, true)]), None);
        assert_eq!(Threshold::fit(&[]), None);
    }

    #[test]
    fn the_interval_covers_the_true_capacity() {
        let mut noise = Noise::new(17);
        let (mut covered, mut width) = (0, 0.0);
        for _ in 0..60 {
            // 30 trials within 10 % of a capacity of 1000 with k = 40.
            let trials: Vec<(f64, bool)> = (0..30)
                .map(|i| {
                    let rate = 1000.0 * (0.9 + 0.2 * f64::from(i) / 29.0);
                    let p = 1.0 / (1.0 + (rate / 1000.0f64).powf(40.0));
                    (rate, noise.uniform() < p)
                })
                .collect();
            let fit = Threshold::fit(&trials).unwrap();
            covered += u32::from(fit.ci.0 <= 1000.0 && 1000.0 <= fit.ci.1);
            width += (fit.ci.1.min(2000.0) - fit.ci.0) / 60.0;
        }
        // 95 % nominal; four standard errors of 60 trials are 11 %.
        assert!(covered >= 51, "{covered} of 60");
        assert!(width < 150.0, "{width}");
    }
}
