//! Continuous size laws with a closed inverse.

use crate::generate::elementary::{exp, exp_m1, ln, ln_1p};
use crate::generate::math::{normal_cdf, normal_quantile};
use crate::generate::{LawError, positive};
use crate::plan::SizeKind;

/// A law of positive reals (docs/spec/scenarios.md section 1.2).
#[derive(Clone, Debug)]
pub(super) enum Continuous {
    /// exp(U(ln a, ln b)).
    Loguniform { ln_a: f64, ln_b: f64 },
    /// Log-normal restricted to at most `cap`; `below_cap` = Φ((ln cap - mu)/sigma), 1 without a cap.
    Lognormal {
        mu: f64,
        sigma: f64,
        cap: f64,
        below_cap: f64,
    },
    /// X = low·(1 - U·(1 - (low/high)^a))^(-1/a), with `mass` = 1 - (low/high)^a.
    Pareto {
        low: f64,
        high: f64,
        a: f64,
        mass: f64,
    },
}

impl Continuous {
    pub(super) fn new(kind: &SizeKind) -> Result<Self, LawError> {
        match *kind {
            SizeKind::Loguniform { a, b } => {
                positive("a", a)?;
                ordered("b", b, "a", a)?;
                Ok(Self::Loguniform {
                    ln_a: ln(a),
                    ln_b: ln(b),
                })
            }
            SizeKind::Lognormal { mu, sigma } => Self::lognormal(mu, sigma, f64::INFINITY),
            SizeKind::TruncLognormal { mu, sigma, cap } => {
                positive("cap", cap)?;
                Self::lognormal(mu, sigma, cap)
            }
            SizeKind::BoundedPareto { low, high, a } => {
                positive("low", low)?;
                positive("a", a)?;
                ordered("high", high, "low", low)?;
                Ok(Self::Pareto {
                    low,
                    high,
                    a,
                    mass: -exp_m1(a * ln(low / high)),
                })
            }
            _ => Err(LawError::new("kind", "is not a continuous law")),
        }
    }

    fn lognormal(mu: f64, sigma: f64, cap: f64) -> Result<Self, LawError> {
        if !mu.is_finite() {
            return Err(LawError::new("mu", format!("is {mu}, must be a number")));
        }
        positive("sigma", sigma)?;
        let below_cap = normal_cdf((ln(cap) - mu) / sigma);
        if below_cap < 1e-12 {
            let reason = format!("is {cap}, but hardly any size of the law is that small");
            return Err(LawError::new("cap", reason));
        }
        Ok(Self::Lognormal {
            mu,
            sigma,
            cap,
            below_cap,
        })
    }

    #[inline]
    pub(super) fn quantile(&self, u: f64) -> f64 {
        match *self {
            Self::Loguniform { ln_a, ln_b } => exp(ln_a + (ln_b - ln_a) * u),
            Self::Lognormal {
                mu,
                sigma,
                cap,
                below_cap,
            } => exp(mu + sigma * normal_quantile(u * below_cap)).min(cap),
            Self::Pareto {
                low, high, a, mass, ..
            } => (low * exp(-ln_1p(-u * mass) / a)).clamp(low, high),
        }
    }

    pub(super) fn cdf(&self, x: f64) -> f64 {
        1.0 - self.survival(x)
    }

    /// P(X > x).
    pub(super) fn survival(&self, x: f64) -> f64 {
        let (low, high) = self.support();
        if x <= low {
            return 1.0;
        }
        if x >= high {
            return 0.0;
        }
        match *self {
            Self::Loguniform { ln_a, ln_b } => (ln_b - ln(x)) / (ln_b - ln_a),
            Self::Lognormal {
                mu,
                sigma,
                below_cap,
                ..
            } => 1.0 - normal_cdf((ln(x) - mu) / sigma) / below_cap,
            Self::Pareto { low, a, mass, .. } => 1.0 + exp_m1(a * ln(low / x)) / mass,
        }
    }

    /// Infimum and supremum.
    pub(super) fn support(&self) -> (f64, f64) {
        match *self {
            Self::Loguniform { ln_a, ln_b } => (exp(ln_a), exp(ln_b)),
            Self::Lognormal { cap, .. } => (0.0, cap),
            Self::Pareto { low, high, .. } => (low, high),
        }
    }
}

/// Rejects `high` unless it is a number above `low`.
fn ordered(field: &str, high: f64, low_name: &str, low: f64) -> Result<(), LawError> {
    if high.is_finite() && high > low {
        Ok(())
    } else {
        let reason = format!("is {high}, must be greater than {low_name} = {low}");
        Err(LawError::new(field, reason))
    }
}
