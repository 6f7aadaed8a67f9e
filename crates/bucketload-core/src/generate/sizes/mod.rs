//! Object sizes: sampler, distribution function, quantile and mean for every law of
//! [`crate::plan::SizeKind`].
//!
//! [`SizeSampler`] works in whole bytes: continuous laws are rounded to the nearest byte, then every result
//! is clamped to `min..=max` of the [`SizeLaw`]. Distribution function and quantile are those of the rounded
//! and clamped size, so they describe the sizes sent.
//!
//! ```text
//!   continuous.rs  uniform, loguniform, lognormal (truncated), bounded pareto  ┐
//!   emg.rs         exponentially modified Gaussian, tabulated inverse          ├─ SizeSampler
//!   ranked.rs      zipf, zipf-mandelbrot: units times rank (power.rs)          │
//!   mixture.rs     mixture, histogram (alias.rs)                               │
//!   chunked.rs     chunks of the files of another law                          │
//!   sides.rs       products of two normal variables                            ┘
//! ```

mod chunked;
mod continuous;
pub mod emg;
mod kind;
mod mixture;
mod ranked;
mod sides;

use self::kind::Kind;
use super::LawError;
use super::rng::Draws;
use crate::plan::SizeLaw;

/// Sizes of a [`SizeLaw`], in bytes.
#[derive(Clone, Debug)]
pub struct SizeSampler {
    kind: Kind,
    min: u64,
    max: u64,
}

impl SizeSampler {
    /// Prepares `law`. Takes about a millisecond for exponentially modified Gaussians (it computes a table)
    /// and microseconds for the others.
    ///
    /// # Errors
    /// If a parameter lies outside its range.
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

    /// Draws one size, in bytes.
    #[inline]
    pub fn sample(&self, draws: &mut Draws) -> u64 {
        self.kind.sample(draws).clamp(self.min, self.max)
    }

    /// The size, in bytes, if only one is possible.
    pub(crate) fn fixed(&self) -> Option<u64> {
        match self.kind {
            Kind::Const(bytes) => Some(bytes.clamp(self.min, self.max)),
            _ => None,
        }
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

    /// Mean size, in bytes, with a relative accuracy of about 1e-6 (continuous laws: of the size before
    /// rounding).
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

    /// Parameters of a truncated log-normal law whose cap leaves sizes below it; other caps are rejected.
    fn truncated() -> impl Strategy<Value = (f64, f64, f64)> {
        (1f64..14.0, 0.1f64..3.0, -2f64..6.0)
            .prop_map(|(mu, sigma, z)| (mu, sigma, (mu + z * sigma).exp().max(1.0)))
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
            truncated().prop_map(|(mu, sigma, cap)| SizeKind::TruncLognormal { mu, sigma, cap }),
            (1u64..20_000, 0.1f64..3.0, 1u64..5000, any::<bool>())
                .prop_map(|(n, s, unit, align)| SizeKind::Zipf { n, s, unit, align }),
            (
                1u64..20_000,
                0.1f64..3.0,
                0.5f64..3000.0,
                1u64..5000,
                0u64..3000
            )
                .prop_map(|(n, s, v, unit, offset)| SizeKind::ZipfMandelbrot {
                    n,
                    s,
                    v,
                    unit,
                    offset
                }),
            (1f64..1e4, 1.01f64..1e5, 0.1f64..3.0).prop_map(|(low, f, a)| {
                SizeKind::BoundedPareto {
                    low,
                    high: low * f,
                    a,
                }
            }),
            prop::collection::vec((0u64..1_000_000, 0.1f64..3.0), 1..9)
                .prop_map(|bins| SizeKind::Histogram { bins }),
            (1f64..10_000.0, 0f64..=1.0, 0u64..600).prop_map(|(record, share, offset)| {
                SizeKind::Sides {
                    record,
                    stdev: record * share,
                    offset,
                }
            }),
            (truncated(), 1u64..20_000).prop_map(|((mu, sigma, cap), chunk)| SizeKind::Chunked {
                files: Box::new(SizeKind::TruncLognormal { mu, sigma, cap }),
                chunk: chunk.max(cap as u64 / 200),
            }),
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
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(80))]
        /// The mean equals the average of many quantiles.
        #[test]
        fn mean_matches_the_quantiles(law in kinds(), min in 0u64..2000, span in 0u64..1 << 20) {
            let s = sampler(law, min, min + span);
            let n = 5000;
            let average = (0..n)
                .map(|i| s.quantile((f64::from(i) + 0.5) / f64::from(n)) as f64)
                .sum::<f64>() / f64::from(n);
            let tolerance = 0.6 + 2e-3 * average + 2.0 * span as f64 / f64::from(n);
            prop_assert!((s.mean() - average).abs() < tolerance, "{} {average}", s.mean());
        }
    }

    /// The samples of unet3d, docs/spec/ai-training.md section 3: sides from N(12107, 2822.2²).
    #[test]
    fn sides_of_samples_are_normal_and_their_product_is_the_size() {
        let law = SizeKind::Sides {
            record: 146_600_628.0,
            stdev: 68_341_808.0,
            offset: 498,
        };
        let s = sampler(law, 1, 5 << 30);
        // E[side] is the mean of the normal law less half a byte for the cut; P(side < 1) is below 10^-5.
        assert!(
            (s.mean() - 12_106.5_f64.powi(2)).abs() < 3e4,
            "{}",
            s.mean()
        );
        let (mut sum, mut squares) = (0.0, 0.0);
        let n = 40_000;
        for i in 0..n {
            let mut draws = Draws::new(7, Stream::new(Purpose::Size, 0, 0), i);
            let x = s.sample(&mut draws) as f64;
            (sum, squares) = (sum + x, squares + x * x);
        }
        let mean = sum / n as f64;
        let cv = (squares / n as f64 - mean * mean).sqrt() / mean;
        assert!((mean / s.mean() - 1.0).abs() < 0.007, "{mean}");
        assert!((cv - 0.334).abs() < 0.01, "{cv}");
        // A square of 12107 bytes a side divides the law nearly in halves.
        assert!((s.cdf(12_107 * 12_107) - 0.52).abs() < 0.03);
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
