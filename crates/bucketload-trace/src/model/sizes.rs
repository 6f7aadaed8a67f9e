//! Fits the law of sizes: a parametric law if one fits, otherwise the quantiles.

use bucketload_core::generate::sizes::SizeSampler;
use bucketload_core::plan::SizeKind;
use bucketload_workload::spec::law::SizeSpec;
use serde::Serialize;

use crate::prepare::SizeSketch;

/// Maximum Kolmogorov-Smirnov distance of an accepted parametric law.
const MAX_DISTANCE: f64 = 0.02;
/// Number of equally weighted sizes of a law by quantiles.
const BINS: usize = 200;
/// The quantiles that reports show.
const SHOWN: [f64; 7] = [0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999];

/// A quantile, recorded and fitted, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct QuantileRow {
    /// Share of sizes below it.
    pub p: f64,
    /// Recorded quantile, accurate to 1 %.
    pub recorded: u64,
    /// Quantile of the law.
    pub fitted: u64,
}

/// A fitted size law, with its goodness of fit.
#[derive(Clone, Debug, Serialize)]
pub struct SizeFit {
    /// The law as it is written in a workload.
    pub law: String,
    /// Number of fitted sizes.
    pub n: u64,
    /// Recorded mean, bytes.
    pub mean_recorded: f64,
    /// Mean of the law, bytes.
    pub mean_fitted: f64,
    /// Kolmogorov-Smirnov distance of the distribution functions.
    pub ks: f64,
    /// Quantiles.
    pub quantiles: Vec<QuantileRow>,
}

impl SizeFit {
    /// Fits a law to the sizes in `sketch`; `None` if it is empty.
    pub(super) fn of(sketch: &SizeSketch) -> Option<Self> {
        let (min, max) = (sketch.quantile(0.0)?, sketch.quantile(1.0)?);
        let mut fits: Vec<Self> = Vec::new();
        if min == max {
            fits.extend(Self::with_fit(
                sketch,
                SizeSpec::unclamped(SizeKind::Const { bytes: min }),
            ));
        } else {
            for kind in candidates(sketch, min, max) {
                let mut spec = SizeSpec::unclamped(kind);
                (spec.0.min, spec.0.max) = (min, max);
                fits.extend(Self::with_fit(sketch, spec).filter(|fit| fit.ks <= MAX_DISTANCE));
            }
        }
        fits.sort_by(|a, b| a.ks.total_cmp(&b.ks));
        match fits.into_iter().next() {
            Some(best) => Some(best),
            None => Self::with_fit(sketch, SizeSpec::unclamped(by_quantiles(sketch))),
        }
    }

    fn with_fit(sketch: &SizeSketch, spec: SizeSpec) -> Option<Self> {
        let sampler = SizeSampler::new(&spec.0).ok()?;
        let quantiles = SHOWN.map(|p| QuantileRow {
            p,
            recorded: sketch.quantile(p).unwrap_or(0),
            fitted: sampler.quantile(p),
        });
        Some(Self {
            law: spec.to_string(),
            n: sketch.total(),
            mean_recorded: sketch.mean(),
            mean_fitted: sampler.mean(),
            ks: sketch.distance(|bytes| sampler.cdf(bytes)),
            quantiles: quantiles.into(),
        })
    }
}

/// Parametric laws with the moments of the sketch.
fn candidates(sketch: &SizeSketch, min: u64, max: u64) -> Vec<SizeKind> {
    let mut laws = vec![SizeKind::Uniform { a: min, b: max }];
    if min > 0 {
        laws.push(SizeKind::Loguniform {
            a: min as f64,
            b: max as f64,
        });
    }
    if let Some((mu, sigma)) = sketch.log_moments().filter(|m| m.1 > 0.0) {
        // Rounded to the precision of the data, which keeps the workload readable.
        let round = |x: f64| (x * 1e4).round() / 1e4;
        let (mu, sigma) = (round(mu), round(sigma).max(1e-4));
        laws.push(SizeKind::Lognormal { mu, sigma });
    }
    laws
}

/// The sizes themselves if they are few, otherwise the quantiles as a histogram with equal weights, in which equal sizes
/// are merged.
fn by_quantiles(sketch: &SizeSketch) -> SizeKind {
    if let Some(exact) = sketch.exact().filter(|exact| exact.len() <= BINS) {
        let bins = exact
            .iter()
            .map(|(&size, &count)| (size, count as f64))
            .collect();
        return SizeKind::Histogram { bins };
    }
    let mut bins: Vec<(u64, f64)> = Vec::new();
    for i in 0..BINS {
        let size = sketch.quantile((i as f64 + 0.5) / BINS as f64).unwrap_or(0);
        match bins.last_mut() {
            Some((last, weight)) if *last == size => *weight += 1.0,
            _ => bins.push((size, 1.0)),
        }
    }
    SizeKind::Histogram { bins }
}

#[cfg(test)]
mod tests {
    use bucketload_core::generate::rng::{Draws, Purpose, Stream};
    use bucketload_core::generate::sizes::SizeSampler;
    use bucketload_core::plan::SizeKind;
    use bucketload_workload::spec::law::SizeSpec;

    use super::SizeFit;
    use crate::prepare::SizeSketch;

    fn fitted(kind: SizeKind) -> (SizeFit, SizeSampler) {
        let sampler = SizeSampler::new(&SizeSpec::unclamped(kind).0).unwrap();
        let mut sketch = SizeSketch::default();
        for i in 0..50_000 {
            let mut draws = Draws::new(3, Stream::new(Purpose::Size, 0, 0), i);
            sketch.add(sampler.sample(&mut draws));
        }
        (SizeFit::of(&sketch).unwrap(), sampler)
    }

    #[test]
    fn laws_are_identified_or_reproduced() {
        let laws = [
            (SizeKind::Const { bytes: 4096 }, "4KiB"),
            (
                SizeKind::Lognormal {
                    mu: 10.0,
                    sigma: 1.5,
                },
                "lognormal(",
            ),
            (SizeKind::Loguniform { a: 1e3, b: 1e7 }, "loguniform("),
            (SizeKind::Uniform { a: 0, b: 1_000_000 }, "uniform("),
            (
                SizeKind::Emg {
                    mu: 32_768.0,
                    sigma: 8192.0,
                    tau: 96_000.0,
                },
                "histogram(",
            ),
            (
                SizeKind::Histogram {
                    bins: vec![(4096, 70.0), (1 << 20, 30.0)],
                },
                "histogram(",
            ),
        ];
        for (kind, name) in laws {
            let (fit, truth) = fitted(kind);
            assert!(fit.law.starts_with(name), "{} for {name}", fit.law);
            assert!(fit.ks <= 0.02, "{fit:?}");
            for row in &fit.quantiles[..5] {
                let truth = truth.quantile(row.p) as f64;
                // The body is within 3 % of the true size.
                let near = |x: u64| (x as f64 - truth).abs() <= 0.03 * truth + 2.0;
                assert!(
                    near(row.fitted) || name == "uniform(",
                    "{} {row:?} {truth}",
                    fit.law
                );
            }
        }
    }
}
