//! Object sizes: every law of [`SizeKind`] with sampler, distribution function, quantile and mean.
//!
//! [`SizeSampler`] works in whole bytes: continuous laws are rounded to the nearest byte, then every
//! result is clamped to `min..=max` of the [`SizeLaw`]; distribution function and quantile are those
//! of that rounded and clamped size, so they describe what is sent.
//!
//! ```text
//!   continuous.rs  uniform, loguniform, lognormal (truncated), bounded pareto  ┐
//!   emg.rs         exponentially modified Gaussian, tabulated inverse          ├─ SizeSampler
//!   ranked.rs      zipf, zipf-mandelbrot: units times rank (power.rs)          │
//!   mixture.rs     mixture, histogram (alias.rs)                               ┘
//! ```

mod continuous;
pub mod emg;
mod mixture;
mod ranked;

use self::continuous::Continuous;
use self::emg::Emg;
use self::mixture::{Histogram, Mixture};
use self::ranked::Ranked;
use super::LawError;
use super::elementary::{exp, ln};
use super::rng::Draws;
use crate::plan::{SizeKind, SizeLaw};

/// One law, before clamping.
#[derive(Clone, Debug)]
enum Kind {
    Const(u64),
    /// First value and number of values.
    Uniform(u64, u64),
    Continuous(Continuous),
    Emg(Box<Emg>),
    Ranked(Box<Ranked>),
    Mixture(Mixture),
    Histogram(Histogram),
}

impl Kind {
    fn new(kind: &SizeKind) -> Result<Self, LawError> {
        Ok(match *kind {
            SizeKind::Const { bytes } => Self::Const(bytes),
            SizeKind::Uniform { a, b } => {
                if a > b || b - a == u64::MAX {
                    let reason = format!("is {b}, must be at least a = {a} and below 2^64 - 1");
                    return Err(LawError::new("b", reason));
                }
                Self::Uniform(a, b - a + 1)
            }
            SizeKind::Emg { mu, sigma, tau } => Self::Emg(Box::new(Emg::new(mu, sigma, tau)?)),
            SizeKind::Loguniform { .. }
            | SizeKind::Lognormal { .. }
            | SizeKind::TruncLognormal { .. }
            | SizeKind::BoundedPareto { .. } => Self::Continuous(Continuous::new(kind)?),
            SizeKind::Zipf { .. } | SizeKind::ZipfMandelbrot { .. } => {
                Self::Ranked(Box::new(Ranked::new(kind)?))
            }
            SizeKind::Mixture { ref parts } => Self::Mixture(Mixture::new(parts)?),
            SizeKind::Histogram { ref bins } => Self::Histogram(Histogram::new(bins)?),
        })
    }

    #[inline]
    fn sample(&self, draws: &mut Draws) -> u64 {
        match self {
            Self::Const(bytes) => *bytes,
            Self::Uniform(first, n) => first + draws.below(*n),
            Self::Continuous(law) => round(law.quantile(draws.next_open())),
            Self::Emg(law) => round(law.sample(draws)),
            Self::Ranked(law) => law.sample(draws),
            Self::Mixture(law) => law.sample(draws),
            Self::Histogram(law) => law.sample(draws),
        }
    }

    /// The smallest size whose distribution function reaches `u`.
    fn quantile(&self, u: f64) -> u64 {
        match self {
            Self::Const(bytes) => *bytes,
            Self::Uniform(first, n) => first + ((u * *n as f64) as u64).min(n - 1),
            Self::Continuous(law) => round(law.quantile(u)),
            Self::Emg(law) => round(law.quantile(u)),
            Self::Ranked(law) => law.quantile(u),
            Self::Mixture(law) => law.quantile(u),
            Self::Histogram(law) => law.quantile(u),
        }
    }

    /// P(size ≤ x).
    fn cdf(&self, x: u64) -> f64 {
        match self {
            Self::Const(bytes) => f64::from(u8::from(*bytes <= x)),
            Self::Uniform(first, _) if x < *first => 0.0,
            Self::Uniform(first, n) => ((x - first + 1) as f64 / *n as f64).min(1.0),
            Self::Continuous(law) => law.cdf(x as f64 + 0.5),
            Self::Emg(law) => law.cdf(x as f64 + 0.5),
            Self::Ranked(law) => law.cdf(x),
            Self::Mixture(law) => law.cdf(x),
            Self::Histogram(law) => law.cdf(x),
        }
    }

    /// Mean of the size clamped to `min..=max`.
    fn clamped_mean(&self, min: u64, max: u64) -> f64 {
        match self {
            Self::Const(bytes) => (*bytes).clamp(min, max) as f64,
            Self::Uniform(first, n) => {
                // Uniform on [first - 1/2, last + 1/2], which rounds to the same integers.
                let low = *first as f64 - 0.5;
                let width = *n as f64;
                let survival = |x: f64| 1.0 - ((x - low) / width).clamp(0.0, 1.0);
                mean_of_survival(survival, (low, low + width), min, max)
            }
            Self::Continuous(law) => mean_of_survival(|x| law.survival(x), law.support(), min, max),
            Self::Emg(law) => mean_of_survival(
                |x| law.survival(x),
                (f64::NEG_INFINITY, f64::INFINITY),
                min,
                max,
            ),
            Self::Ranked(law) => law.clamped_mean(min, max),
            Self::Mixture(law) => law.clamped_mean(min, max),
            Self::Histogram(law) => law.clamped_mean(min, max),
        }
    }

    /// Smallest and largest size that can occur before clamping.
    fn support(&self) -> (u64, u64) {
        match self {
            Self::Const(bytes) => (*bytes, *bytes),
            Self::Uniform(first, n) => (*first, first + (n - 1)),
            Self::Continuous(law) => {
                let (low, high) = law.support();
                (round(low), round(high))
            }
            Self::Emg(_) => (0, u64::MAX),
            Self::Ranked(law) => law.support(),
            Self::Mixture(law) => law.support(),
            Self::Histogram(law) => law.support(),
        }
    }
}

/// The nearest whole number of bytes; 0 for negative values.
#[inline]
fn round(x: f64) -> u64 {
    (x + 0.5) as u64
}

/// Mean of X clamped to `min..=max`: min plus the integral of P(X > x) from min to max, taken over
/// ln x where the law spreads over decades. Exact to about 1e-6 relative.
fn mean_of_survival(
    survival: impl Fn(f64) -> f64,
    (low, high): (f64, f64),
    min: u64,
    max: u64,
) -> f64 {
    const PANELS: u32 = 400;
    let from = (min as f64).max(low.min(max as f64));
    let to = (max as f64).min(high.max(from));
    let bend = to.min(from.max(1.0));
    let linear = super::math::integrate(&survival, from, bend, 1);
    let decades = super::math::integrate(
        |t| {
            let x = exp(t);
            x * survival(x)
        },
        ln(bend.max(f64::MIN_POSITIVE)),
        ln(to.max(f64::MIN_POSITIVE)),
        PANELS,
    );
    from + linear + decades
}

/// Sizes of a [`SizeLaw`], in bytes.
#[derive(Clone, Debug)]
pub struct SizeSampler {
    kind: Kind,
    min: u64,
    max: u64,
}

impl SizeSampler {
    /// Prepares `law`. Costs about a millisecond for exponentially modified Gaussians (a table is
    /// computed) and microseconds for the others.
    ///
    /// # Errors
    /// When a parameter lies outside its range.
    pub fn new(law: &SizeLaw) -> Result<Self, LawError> {
        if law.min > law.max {
            let reason = format!("is {}, must be at least min = {}", law.max, law.min);
            return Err(LawError::new("max", reason));
        }
        Ok(Self {
            kind: Kind::new(&law.law).map_err(|e| e.within("law"))?,
            min: law.min,
            max: law.max,
        })
    }

    /// One size, in bytes.
    #[inline]
    pub fn sample(&self, draws: &mut Draws) -> u64 {
        self.kind.sample(draws).clamp(self.min, self.max)
    }

    /// The size, in bytes, that a share `u` (0 to 1) of all sizes does not exceed.
    #[inline]
    #[must_use]
    pub fn quantile(&self, u: f64) -> u64 {
        self.kind.quantile(u).clamp(self.min, self.max)
    }

    /// The share of sizes of at most `bytes`.
    #[must_use]
    pub fn cdf(&self, bytes: u64) -> f64 {
        if bytes < self.min {
            0.0
        } else if bytes >= self.max {
            1.0
        } else {
            self.kind.cdf(bytes)
        }
    }

    /// Mean size, in bytes, to about 1e-6 relative (continuous laws: of the size before rounding).
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.kind.clamped_mean(self.min, self.max)
    }

    /// Smallest and largest size that can occur, in bytes.
    #[must_use]
    pub fn support(&self) -> (u64, u64) {
        let (low, high) = self.kind.support();
        (
            low.clamp(self.min, self.max),
            high.clamp(self.min, self.max),
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::SizeSampler;
    use crate::generate::rng::{Draws, Purpose, Stream};
    use crate::plan::{SizeKind, SizeLaw};

    fn sampler(law: SizeKind, min: u64, max: u64) -> SizeSampler {
        SizeSampler::new(&SizeLaw { law, min, max }).unwrap()
    }

    fn kinds() -> impl Strategy<Value = SizeKind> {
        let plain = prop_oneof![
            (0u64..5000).prop_map(|bytes| SizeKind::Const { bytes }),
            (0u64..5000, 0u64..5000).prop_map(|(a, d)| SizeKind::Uniform { a, b: a + d }),
            (1f64..1e5, 1.01f64..1e4).prop_map(|(a, f)| SizeKind::Loguniform { a, b: a * f }),
            (0f64..1e5, 1f64..1e4, 1f64..1e5).prop_map(|(mu, sigma, tau)| SizeKind::Emg {
                mu,
                sigma,
                tau
            }),
            (1f64..14.0, 0.1f64..3.0).prop_map(|(mu, sigma)| SizeKind::Lognormal { mu, sigma }),
            (1f64..14.0, 0.1f64..3.0, 1e3f64..1e8)
                .prop_map(|(mu, sigma, cap)| SizeKind::TruncLognormal { mu, sigma, cap }),
            (1u64..20_000, 0.1f64..3.0, 1u64..5000, any::<bool>())
                .prop_map(|(n, s, unit, align)| SizeKind::Zipf { n, s, unit, align }),
            (1u64..20_000, 0.1f64..3.0, 0.5f64..3000.0, 1u64..5000)
                .prop_map(|(n, s, v, unit)| SizeKind::ZipfMandelbrot { n, s, v, unit }),
            (1f64..1e4, 1.01f64..1e5, 0.1f64..3.0).prop_map(|(low, f, a)| {
                SizeKind::BoundedPareto {
                    low,
                    high: low * f,
                    a,
                }
            }),
            prop::collection::vec((0u64..1_000_000, 0.1f64..3.0), 1..9)
                .prop_map(|bins| SizeKind::Histogram { bins }),
        ];
        prop_oneof![
            4 => plain.clone(),
            1 => prop::collection::vec((0.1f64..2.0, plain), 1..4)
                .prop_map(|parts| SizeKind::Mixture { parts }),
        ]
    }

    proptest! {
        /// The quantile is the smallest size whose distribution function reaches u, for every law.
        #[test]
        fn quantile_and_cdf_are_inverse(
            law in kinds(), min in 0u64..2000, span in 0u64..1 << 27, u in 1e-6f64..0.999_999,
        ) {
            let s = sampler(law, min, min + span);
            let x = s.quantile(u);
            prop_assert!(s.cdf(x) >= u - 1e-9, "F({x}) = {} < {u}", s.cdf(x));
            if x > min {
                prop_assert!(s.cdf(x - 1) <= u + 1e-9, "F({x}-1) = {} > {u}", s.cdf(x - 1));
            }
            let (low, high) = s.support();
            prop_assert!((low..=high).contains(&x));
            prop_assert!(s.cdf(high) == 1.0 || s.cdf(high) > 1.0 - 1e-9);
        }

        #[test]
        fn samples_stay_in_the_support(law in kinds(), min in 0u64..2000, span in 0u64..1 << 27, i in any::<u64>()) {
            let s = sampler(law, min, min + span);
            let (low, high) = s.support();
            let mut draws = Draws::new(1, Stream::new(Purpose::Size, 0, 0), i);
            for _ in 0..4 {
                let x = s.sample(&mut draws);
                prop_assert!((low..=high).contains(&x), "{x} not in {low}..={high}");
            }
        }

        /// The mean equals the average of many quantiles.
        #[test]
        fn mean_is_that_of_the_quantiles(law in kinds(), min in 0u64..2000, span in 0u64..1 << 20) {
            let s = sampler(law, min, min + span);
            let n = 20_000;
            let average = (0..n)
                .map(|i| s.quantile((f64::from(i) + 0.5) / f64::from(n)) as f64)
                .sum::<f64>() / f64::from(n);
            let tolerance = 0.6 + 2e-3 * average + 2.0 * span as f64 / f64::from(n);
            prop_assert!((s.mean() - average).abs() < tolerance, "{} {average}", s.mean());
        }
    }

    #[test]
    fn bad_laws_name_the_parameter() {
        let error = |law, min, max| {
            SizeSampler::new(&SizeLaw { law, min, max })
                .unwrap_err()
                .to_string()
        };
        let uniform = |a, b| SizeKind::Uniform { a, b };
        assert!(error(uniform(1, 2), 9, 8).starts_with("max: is 8"));
        assert!(error(uniform(2, 1), 0, 9).starts_with("law.b: "));
        let emg = SizeKind::Emg {
            mu: 1.0,
            sigma: 0.0,
            tau: 1.0,
        };
        assert!(error(emg.clone(), 0, 9).starts_with("law.sigma: "));
        let mixture = SizeKind::Mixture {
            parts: vec![(1.0, uniform(0, 1)), (1.0, emg)],
        };
        assert!(error(mixture, 0, 9).starts_with("law.parts[1].sigma: "));
        let none = SizeKind::Histogram { bins: vec![] };
        assert!(error(none, 0, 9).starts_with("law.bins: "));
        let zipf = SizeKind::Zipf {
            n: 1 << 40,
            s: 1.0,
            unit: 1 << 40,
            align: true,
        };
        assert!(error(zipf, 0, 9).starts_with("law.unit: "));
        let pareto = SizeKind::BoundedPareto {
            low: 5.0,
            high: 5.0,
            a: 1.0,
        };
        assert!(error(pareto, 0, 9).starts_with("law.high: "));
    }
}
