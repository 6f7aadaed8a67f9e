//! Distributions of delays and service times.

use std::time::Duration;

/// A distribution; means and bounds are in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Distribution {
    Constant(f64),
    Uniform {
        min: f64,
        max: f64,
    },
    Exponential {
        mean: f64,
    },
    Lognormal {
        mean: f64,
        cv: f64,
    },
    /// Log-normal around `low`, or with probability `share` around `high`.
    Bimodal {
        low: f64,
        high: f64,
        share: f64,
        cv: f64,
    },
}

impl Distribution {
    /// Draws a duration. `uniform(stream)` returns independent numbers in [0, 1).
    pub(super) fn sample(self, uniform: impl Fn(u64) -> f64) -> Duration {
        let seconds = match self {
            Self::Constant(seconds) => seconds,
            Self::Uniform { min, max } => min + (max - min) * uniform(1),
            Self::Exponential { mean } => -mean * (1.0 - uniform(1)).ln(),
            Self::Lognormal { mean, cv } => lognormal(mean, cv, &uniform),
            Self::Bimodal {
                low,
                high,
                share,
                cv,
            } => {
                let mean = if uniform(3) < share { high } else { low };
                lognormal(mean, cv, &uniform)
            }
        };
        // Bounds the tails: no client waits longer than a day.
        Duration::from_secs_f64(seconds.clamp(0.0, 86_400.0))
    }
}

/// Mean and coefficient of variation fix the parameters: sigma^2 = ln(1 + cv^2),
/// mu = ln(mean) - sigma^2/2.
fn lognormal(mean: f64, cv: f64, uniform: &impl Fn(u64) -> f64) -> f64 {
    let variance = (1.0 + cv * cv).ln();
    let normal =
        (-2.0 * (1.0 - uniform(1)).ln()).sqrt() * (std::f64::consts::TAU * uniform(2)).cos();
    (mean.ln() - variance / 2.0 + variance.sqrt() * normal).exp()
}
