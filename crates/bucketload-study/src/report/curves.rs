//! Distributions of response times, thinned for drawing.

use bucketload_core::histogram::Histogram;
use bucketload_results::report::density;
use bucketload_results::result::Cdf;

/// Points per decade that are kept.
const PER_DECADE: f64 = 120.0;

/// A distribution function of merged runs: latency in ns and the share of operations up to it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// Operations.
    pub n: u64,
    /// Points, ascending in both.
    pub points: Vec<(f64, f64)>,
}

impl Curve {
    /// The curve of a histogram. Of the points in the same bin of 1/120 decade the last is kept; so are the very first
    /// and the very last.
    #[must_use]
    pub fn of(histogram: &Histogram) -> Self {
        let cdf = Cdf::of(histogram);
        let mut points: Vec<(f64, f64)> = Vec::new();
        let slot = |ns: f64| (ns.max(1.0).log10() * PER_DECADE).floor();
        for (&ns, &share) in cdf.value_ns.iter().zip(&cdf.fraction) {
            let ns = ns as f64;
            let first = points.len() < 2;
            match points.last_mut() {
                Some(last) if !first && slot(last.0) == slot(ns) => *last = (ns, share),
                _ => points.push((ns, share)),
            }
        }
        Self {
            n: histogram.count(),
            points,
        }
    }

    /// Latency in ns and the share of operations per decade around it.
    #[must_use]
    pub fn density(&self) -> Vec<(f64, f64)> {
        density(&self.points)
    }
}

#[cfg(test)]
mod tests {
    use bucketload_core::histogram::Histogram;

    use super::Curve;

    #[test]
    fn a_curve_is_thin_and_accurate() {
        let mut histogram = Histogram::new();
        for i in 1..=100_000u64 {
            histogram.record(i * 1000);
        }
        let curve = Curve::of(&histogram);
        assert!(curve.points.len() < 620, "{}", curve.points.len());
        assert_eq!(curve.points.last().unwrap().1, 1.0);
        for (ns, share) in &curve.points {
            // Uniform: the share up to ns is ns / 10^8, to the width of a bucket.
            assert!((share - ns / 1e8).abs() < 0.002, "{ns} {share}");
        }
        let density = curve.density();
        let area: f64 = density
            .windows(2)
            .map(|pair| (pair[1].0 / pair[0].0).log10() * f64::midpoint(pair[0].1, pair[1].1))
            .sum();
        assert!((area - 1.0).abs() < 0.02, "{area}");
        assert_eq!(Curve::of(&Histogram::new()).density(), Vec::new());
    }
}
