//! Key popularity: which rank an operation works on, and which shares follow from the law.
//!
//! A law yields ranks 0..n, where rank 0 is the most popular; [`crate::generate::objects`] maps ranks to
//! objects (scrambling). Sampling is exact, and memory does not depend on n. Theoretical shares come from
//! closed sums (power laws: Euler-Maclaurin, with a relative accuracy of about 1e-13), so they can be
//! compared with realised shares at any n.

use super::elementary::{exp_m1, ln, ln_1p};
use super::power::PowerLaw;
use super::rng::Draws;
use super::{LawError, positive};
use crate::plan::KeyLaw;

/// Theoretical concentration of a popularity law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares {
    /// Share of operations that goes to the most popular object.
    pub top1: f64,
    /// Share that goes to the 10 most popular objects.
    pub top10: f64,
    /// Share that goes to the 100 most popular objects.
    pub top100: f64,
    /// 1/Σp²: the number of equally popular objects that would give the same probability of drawing one
    /// twice.
    pub effective_keys: f64,
}

impl Shares {
    /// The shares of `n` equally popular objects.
    #[must_use]
    pub fn uniform(n: u64) -> Self {
        let top = |m: u64| m.min(n) as f64 / n as f64;
        Self {
            top1: top(1),
            top10: top(10),
            top100: top(100),
            effective_keys: n as f64,
        }
    }
}

#[derive(Clone, Debug)]
enum Law {
    /// All ranks equally.
    Uniform,
    /// P(k) ~ (v + k)^-s.
    Power(Box<PowerLaw>),
    /// `hot` ranks share `share` of the operations.
    Hotspot { hot: u64, share: f64 },
    /// The integer part of an exponential variable of rate `gamma`, below n; `mass` = 1 - e^(-γn).
    Exponential { gamma: f64, mass: f64 },
}

/// A popularity law over n ranks.
#[derive(Clone, Debug)]
pub struct Popularity {
    n: u64,
    law: Law,
}

impl Popularity {
    /// The law of ranks of `keys` over `n` objects. Sequential and fresh keys touch every object equally
    /// often; latest is Zipf over age.
    ///
    /// # Errors
    /// If a parameter lies outside its range or there are no objects.
    pub fn new(keys: &KeyLaw, n: u64) -> Result<Self, LawError> {
        if n == 0 || n > 1 << 63 {
            let reason = format!("is {n}, must be 1 to 2^63 for this key law");
            return Err(LawError::new("count", reason));
        }
        let named = |name: &'static str| {
            move |mut error: LawError| {
                if error.field == "s" {
                    error.field = name.to_owned();
                }
                error
            }
        };
        let law = match *keys {
            KeyLaw::Sequential | KeyLaw::Fresh | KeyLaw::Chained | KeyLaw::Uniform => Law::Uniform,
            KeyLaw::Zipf { theta, .. } | KeyLaw::Latest { theta, .. } => {
                let law = PowerLaw::new(n, theta, 1.0).map_err(named("theta"))?;
                Law::Power(Box::new(law))
            }
            KeyLaw::ZipfMandelbrot { s, v, .. } => Law::Power(Box::new(PowerLaw::new(n, s, v)?)),
            KeyLaw::Hotspot { data, ops, .. } => {
                positive("data", data)?;
                if data > 1.0 {
                    let reason = format!("is {data}, must be at most 1");
                    return Err(LawError::new("data", reason));
                }
                if !(0.0..=1.0).contains(&ops) {
                    return Err(LawError::new("ops", format!("is {ops}, must be 0 to 1")));
                }
                let hot = ((data * n as f64).round() as u64).clamp(1, n);
                let share = if hot == n { 1.0 } else { ops };
                Law::Hotspot { hot, share }
            }
            KeyLaw::Exponential {
                percentile,
                fraction,
                ..
            } => {
                let inside = |x: f64| x > 0.0 && x < 1.0;
                if !inside(fraction) {
                    let reason = format!("is {fraction}, must be between 0 and 1");
                    return Err(LawError::new("fraction", reason));
                }
                if !inside(percentile) || percentile <= fraction {
                    let reason = format!(
                        "is {percentile}, must be below 1 and above fraction = {fraction} (an \
                         exponential law favours the first objects)"
                    );
                    return Err(LawError::new("percentile", reason));
                }
                let total = exponential_rate(percentile, fraction);
                Law::Exponential {
                    gamma: total / n as f64,
                    mass: -exp_m1(-total),
                }
            }
        };
        Ok(Self { n, law })
    }

    /// Number of ranks.
    #[must_use]
    pub const fn n(&self) -> u64 {
        self.n
    }

    /// Draws one rank; 0 is the most popular.
    #[inline]
    pub fn rank(&self, draws: &mut Draws) -> u64 {
        match &self.law {
            Law::Uniform => draws.below(self.n),
            Law::Power(law) => law.sample(draws),
            Law::Hotspot { hot, share } => {
                if draws.next_unit() < *share {
                    draws.below(*hot)
                } else {
                    hot + draws.below(self.n - hot)
                }
            }
            Law::Exponential { gamma, mass } => {
                let x = -ln_1p(-draws.next_unit() * mass) / gamma;
                (x as u64).min(self.n - 1)
            }
        }
    }

    /// The share of operations that goes to the `m` most popular objects.
    #[must_use]
    pub fn share_of_top(&self, m: u64) -> f64 {
        let m = m.min(self.n);
        match &self.law {
            Law::Uniform => m as f64 / self.n as f64,
            Law::Power(law) => law.share_below(m),
            Law::Hotspot { hot, share } => {
                let per_hot = share / *hot as f64;
                let per_cold = if *hot == self.n {
                    0.0
                } else {
                    (1.0 - share) / (self.n - hot) as f64
                };
                // With ops < data the "hot" part is the less popular one.
                if per_hot >= per_cold {
                    per_hot * m.min(*hot) as f64 + per_cold * m.saturating_sub(*hot) as f64
                } else {
                    let cold = self.n - hot;
                    per_cold * m.min(cold) as f64 + per_hot * m.saturating_sub(cold) as f64
                }
            }
            Law::Exponential { gamma, mass } => -exp_m1(-gamma * m as f64) / mass,
        }
    }

    /// The share of operations that goes to the first `m` ranks. Differs from [`Popularity::share_of_top`]
    /// only for a hotspot whose hot part is less popular than the rest.
    #[must_use]
    pub(crate) fn share_of_ranks(&self, m: u64) -> f64 {
        match &self.law {
            Law::Hotspot { hot, share } => {
                let cold = m.min(self.n).saturating_sub(*hot) as f64;
                let cold_all = ((self.n - hot) as f64).max(1.0);
                share * m.min(*hot) as f64 / *hot as f64 + (1.0 - share) * cold / cold_all
            }
            _ => self.share_of_top(m),
        }
    }

    /// Top shares and effective number of keys.
    #[must_use]
    pub fn shares(&self) -> Shares {
        let n = self.n as f64;
        let effective_keys = match &self.law {
            Law::Uniform => n,
            Law::Power(law) => law.effective_values(),
            Law::Hotspot { hot, share } => {
                let cold = (self.n - hot) as f64;
                let cold_part = if cold > 0.0 {
                    (1.0 - share).powi(2) / cold
                } else {
                    0.0
                };
                1.0 / (share * share / *hot as f64 + cold_part)
            }
            // p_k = (1-q)q^k/(1-q^n), q = e^-γ: Σp² = tanh(γ/2)/tanh(γn/2).
            Law::Exponential { gamma, .. } => (0.5 * gamma * n).tanh() / (0.5 * gamma).tanh(),
        };
        Shares {
            top1: self.share_of_top(1),
            top10: self.share_of_top(10),
            top100: self.share_of_top(100),
            effective_keys,
        }
    }

    /// The power law over age, for laws that follow the newest object.
    pub(crate) fn power(&self) -> Option<&PowerLaw> {
        match &self.law {
            Law::Power(law) => Some(law),
            _ => None,
        }
    }
}

/// The rate g of an exponential law truncated at 1 that puts `percentile` of its mass below `fraction`: (1 -
/// e^(-g·fraction)) / (1 - e^-g) = percentile.
///
/// YCSB uses g = -ln(1 - percentile)/fraction and redraws values beyond the last object, which puts more than
/// the stated share (0.98 with its defaults) below the fraction. Here the stated share is exact.
fn exponential_rate(percentile: f64, fraction: f64) -> f64 {
    let share = |g: f64| exp_m1(-g * fraction) / exp_m1(-g);
    // The share grows from `fraction` (g → 0) to 1; YCSB's rate is an upper bound.
    let (mut low, mut high) = (0.0, -ln(1.0 - percentile) / fraction);
    for _ in 0..200 {
        let mid = 0.5 * (low + high);
        if share(mid) < percentile {
            low = mid;
        } else {
            high = mid;
        }
    }
    high
}
