//! Figures of one measured duration.

use bucketload_core::histogram::Histogram;
use bucketload_core::stats::quantile::{Print, ci_ranks, print_rule};
use serde::{Deserialize, Serialize};

use crate::units;

/// The reported percentiles.
pub const QUANTILES: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 0.999];

/// Percentiles below the median, for reports of both tails.
pub const LOW_QUANTILES: [f64; 4] = [0.001, 0.01, 0.05, 0.1];

/// Column headings of a [`Latency`] in tables.
pub const HEAD: [&str; 8] = ["n", "mean", "p50", "p90", "p95", "p99", "p99.9", "max"];

/// Limit on the points of a distribution function.
const CDF_POINTS: usize = 4000;

/// A percentile with its precision.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Percentile {
    /// The quantile, such as 0.99.
    pub q: f64,
    /// Its value, nanoseconds.
    pub value_ns: u64,
    /// 95 % interval from order statistics, nanoseconds; `None` with too few values. Optimistic, because
    /// operations of one run are correlated.
    pub ci_ns: Option<(u64, u64)>,
    /// Whether enough values lie beyond it to show it.
    pub print: Print,
}

impl Percentile {
    /// Whether enough values lie beyond it to show it.
    pub(crate) fn is_shown(&self) -> bool {
        self.print != Print::Omit
    }

    /// Its value for readers; a dash if too few values lie beyond it.
    pub(crate) fn text(&self) -> String {
        match self.print {
            Print::Omit => "–".to_owned(),
            Print::Plain | Print::Bold => units::ns(self.value_ns as f64),
        }
    }
}

/// Figures of a distribution of durations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Number of values.
    pub n: u64,
    /// Exact mean, nanoseconds.
    pub mean_ns: f64,
    /// Standard deviation, nanoseconds, accurate to 0.1 %; 0 with fewer than two values.
    #[serde(default)]
    pub sd_ns: f64,
    /// Exact smallest value, nanoseconds.
    pub min_ns: u64,
    /// Exact largest value, nanoseconds.
    pub max_ns: u64,
    /// p50, p90, p95, p99 and p99.9; empty without values.
    pub percentiles: Vec<Percentile>,
    /// p0.1, p1, p5 and p10; empty without values.
    #[serde(default)]
    pub low: Vec<Percentile>,
}

impl Latency {
    /// The figures of `histogram`.
    #[must_use]
    pub fn of(histogram: &Histogram) -> Self {
        let n = histogram.count();
        // Half a rank less keeps the rank exact despite rounding in the division.
        let at_rank = |rank: u64| histogram.quantile_ns((rank as f64 - 0.5) / n as f64);
        let percentile = |q| Percentile {
            q,
            value_ns: histogram.quantile_ns(q),
            ci_ns: ci_ranks(n, q).map(|(lo, hi)| (at_rank(lo), at_rank(hi))),
            // The rarer side decides whether there are enough values.
            print: print_rule(n, q.max(1.0 - q)),
        };
        let all = |quantiles: &[f64]| -> Vec<Percentile> {
            if n == 0 {
                return Vec::new();
            }
            quantiles.iter().copied().map(percentile).collect()
        };
        Self {
            n,
            mean_ns: histogram.mean_ns(),
            sd_ns: sd_ns(histogram),
            min_ns: histogram.min_ns(),
            max_ns: histogram.max_ns(),
            percentiles: all(&QUANTILES),
            low: all(&LOW_QUANTILES),
        }
    }

    /// The percentile `q`, which must be in [`QUANTILES`] or [`LOW_QUANTILES`]; `None` without values.
    #[must_use]
    pub fn percentile(&self, q: f64) -> Option<&Percentile> {
        self.percentiles.iter().chain(&self.low).find(|p| p.q == q)
    }
    /// The percentile `q` for readers; a dash if it has too few values.
    pub(crate) fn percentile_text(&self, q: f64) -> String {
        self.percentile(q)
            .map_or_else(|| "–".to_owned(), Percentile::text)
    }
}

/// Standard deviation with divisor n - 1, from the bucket midpoints and the exact mean.
fn sd_ns(histogram: &Histogram) -> f64 {
    if histogram.count() < 2 {
        return 0.0;
    }
    let mean = histogram.mean_ns();
    let squares: f64 = histogram
        .buckets()
        .map(|(index, count)| {
            let middle = Histogram::lowest_of(index).midpoint(Histogram::highest_of(index));
            let value = middle.clamp(histogram.min_ns(), histogram.max_ns()) as f64;
            (value - mean) * (value - mean) * count as f64
        })
        .sum();
    (squares / (histogram.count() - 1) as f64).sqrt()
}

/// A distribution function: `fraction[i]` of the values are at most `value_ns[i]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cdf {
    /// Values, ascending, nanoseconds.
    pub value_ns: Vec<u64>,
    /// Cumulative shares, ascending to 1.
    pub fraction: Vec<f64>,
}

impl Cdf {
    /// One point per non-empty bucket. Above 4000 buckets: every k-th, at least 2000, and always the last 500,
    /// which are the tail.
    #[must_use]
    pub fn of(histogram: &Histogram) -> Self {
        let buckets = histogram.buckets().count();
        let stride = buckets.div_ceil(CDF_POINTS);
        let n = histogram.count() as f64;
        let mut cdf = Self::default();
        let mut seen = 0;
        for (i, (index, count)) in histogram.buckets().enumerate() {
            seen += count;
            if stride == 1 || i % stride == 0 || i + 500 >= buckets {
                let value = Histogram::highest_of(index);
                cdf.value_ns
                    .push(value.clamp(histogram.min_ns(), histogram.max_ns()));
                cdf.fraction.push(seen as f64 / n);
            }
        }
        cdf
    }
}

#[cfg(test)]
mod tests {
    use bucketload_core::histogram::Histogram;
    use bucketload_core::stats::quantile::Print;

    use super::{Cdf, Latency};

    fn of(values: impl IntoIterator<Item = u64>) -> Histogram {
        let mut h = Histogram::new();
        values.into_iter().for_each(|v| h.record(v));
        h
    }

    #[test]
    fn figures_carry_their_precision() {
        let l = Latency::of(&of(1..=1000));
        assert_eq!((l.n, l.min_ns, l.max_ns, l.mean_ns), (1000, 1, 1000, 500.5));
        let p = |q| *l.percentile(q).unwrap();
        assert_eq!(p(0.5).value_ns, 500);
        // Uniform on 1..=1000: sd √((n² - 1)/12 · n/(n - 1)).
        assert!((l.sd_ns - 288.819_4).abs() < 1e-3, "{}", l.sd_ns);
        assert_eq!((p(0.1).value_ns, p(0.01).print), (100, Print::Plain));
        assert_eq!(p(0.001).print, Print::Omit);
        assert_eq!(p(0.99).ci_ns, Some((983, 997)));
        assert_eq!(
            (p(0.5).print, p(0.99).print, p(0.999).print),
            (Print::Bold, Print::Plain, Print::Omit)
        );
        assert_eq!(p(0.999).ci_ns, None);
        assert_eq!(Latency::of(&Histogram::new()), Latency::default());
    }

    #[test]
    fn distribution_functions_are_complete_and_bounded() {
        let small = Cdf::of(&of([5, 5, 7, 2000]));
        assert_eq!(small.value_ns, [5, 7, 2000]);
        assert_eq!(small.fraction, [0.5, 0.75, 1.0]);
        let large = Cdf::of(&of((0..200_000u64).map(|i| 1000 + i * i / 10)));
        assert!(
            (1000..=5000).contains(&large.value_ns.len()),
            "{}",
            large.value_ns.len()
        );
        assert_eq!(large.fraction.last(), Some(&1.0));
        assert!(large.value_ns.is_sorted() && large.fraction.is_sorted());
        assert_eq!(Cdf::of(&Histogram::new()), Cdf::default());
    }
}
