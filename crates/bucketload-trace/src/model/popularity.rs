//! Fits the popularity of objects: sequential, uniform, or a power law of rank.
//!
//! The fit needs only the spectrum: how many keys were used how often. The dispersion of the counts gives the kind of
//! law: sequential requests make the counts equal, uniform ones make them Poisson, skewed ones spread them. The exponent
//! is the maximum-likelihood estimate from the most frequent ranks, whose order is certain. A short trace shows only some
//! of the objects, so their number is chosen such that the expected number of distinct keys equals the recorded one.

use std::collections::BTreeMap;

use bucketload_core::plan::KeyLaw;
use bucketload_workload::spec::law::KeySpec;
use serde::Serialize;

/// The number of keys by number of requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Spectrum(BTreeMap<u64, u64>);

impl Spectrum {
    /// Adds a key that was used `times`; 0 adds nothing.
    pub(super) fn add(&mut self, times: u64) {
        if times > 0 {
            *self.0.entry(times).or_insert(0) += 1;
        }
    }

    fn keys(&self) -> u64 {
        self.0.values().sum()
    }

    fn requests(&self) -> f64 {
        self.0.iter().map(|(&c, &n)| c as f64 * n as f64).sum()
    }

    fn squares(&self) -> f64 {
        self.0
            .iter()
            .map(|(&c, &n)| (c as f64).powi(2) * n as f64)
            .sum()
    }

    /// Share of the requests to the `k` most frequent keys.
    fn share_of_top(&self, k: u64) -> f64 {
        let (mut left, mut sum) = (k, 0.0);
        for (&count, &keys) in self.0.iter().rev() {
            let counted = keys.min(left);
            sum += count as f64 * counted as f64;
            left -= counted;
        }
        sum / self.requests().max(1.0)
    }

    /// Number of keys with at least `count` requests.
    fn above(&self, count: u64) -> u64 {
        self.0.range(count..).map(|(_, &keys)| keys).sum()
    }
}

/// Share of requests to the most frequent keys.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TopShare {
    /// Number of keys.
    pub keys: u64,
    /// Recorded share.
    pub recorded: f64,
    /// Share under the law.
    pub fitted: f64,
}

/// A fitted popularity law, with its goodness of fit.
#[derive(Clone, Debug, Serialize)]
pub struct PopularityFit {
    /// The law as it is written in a workload.
    pub law: String,
    /// Number of objects.
    pub objects: u64,
    /// Recorded number of distinct keys.
    pub keys_recorded: u64,
    /// Expected number of distinct keys under the law, with the same number of requests.
    pub keys_fitted: f64,
    /// Number of fitted requests.
    pub requests: u64,
    /// Exponent, if the law has one.
    pub theta: Option<f64>,
    /// The exponent's 95 % confidence interval. It covers the sampling error, not a wrong form of law.
    pub theta_interval: Option<(f64, f64)>,
    /// Number of ranks used to fit the exponent.
    pub ranks: u64,
    /// Shares of the most frequent keys.
    pub top: Vec<TopShare>,
}

impl PopularityFit {
    /// Fits a law to `spectrum`; `None` if it is empty.
    pub(super) fn of(spectrum: &Spectrum) -> Option<Self> {
        let keys = spectrum.keys();
        if keys == 0 {
            return None;
        }
        let requests = spectrum.requests();
        let mean = requests / keys as f64;
        let variance = spectrum.squares() / keys as f64 - mean * mean;
        // Counts of sequential requests differ by at most one, so their variance is below 1/4, far below Poisson's.
        if keys == 1 || mean < 1.001 || mean >= 2.0 && variance < 0.5 * mean {
            return Some(Self::with_fit(spectrum, KeyLaw::Sequential, keys, None, 0));
        }
        let uniform = objects(keys, requests, 0.0);
        // Variance over mean of the counts of all objects, including those without requests: 1 for uniform requests, with
        // a standard error of sqrt(2 / objects).
        let all = requests / uniform as f64;
        let dispersion = (spectrum.squares() / uniform as f64 - all * all) / all;
        if dispersion <= 1.05 + 4.0 * (2.0 / uniform as f64).sqrt() {
            return Some(Self::with_fit(spectrum, KeyLaw::Uniform, uniform, None, 0));
        }
        let (theta, half, ranks) = exponent(spectrum);
        let theta = (theta * 1e4).round() / 1e4;
        let law = KeyLaw::Zipf {
            theta,
            scramble: true,
        };
        let n = objects(keys, requests, theta);
        Some(Self::with_fit(
            spectrum,
            law,
            n,
            Some((theta - half, theta + half)),
            ranks,
        ))
    }

    fn with_fit(
        spectrum: &Spectrum,
        law: KeyLaw,
        objects: u64,
        theta_interval: Option<(f64, f64)>,
        ranks: u64,
    ) -> Self {
        let theta = match law {
            KeyLaw::Zipf { theta, .. } => Some(theta),
            _ => None,
        };
        let requests = spectrum.requests();
        let total = power_sum(objects, theta.unwrap_or(0.0));
        let top = [1, 10, 100, 1000]
            .into_iter()
            .filter(|&k| k <= objects)
            .map(|keys| TopShare {
                keys,
                recorded: spectrum.share_of_top(keys),
                fitted: power_sum(keys, theta.unwrap_or(0.0)) / total,
            });
        let keys_fitted = match law {
            KeyLaw::Sequential => requests.min(objects as f64),
            _ => distinct(objects, requests, theta.unwrap_or(0.0)),
        };
        Self {
            top: top.collect(),
            law: KeySpec(law).to_string(),
            objects,
            keys_recorded: spectrum.keys(),
            keys_fitted,
            requests: requests as u64,
            theta,
            theta_interval,
            ranks,
        }
    }
}

/// The maximum-likelihood exponent from the most frequent ranks, half its confidence interval, and the number of ranks.
/// A request to one of the first m ranks goes to rank r with probability r^-θ / Σ r^-θ. The likelihood is largest where
/// the expected ln r equals the recorded mean, and its second derivative is the variance of ln r (Fisher information).
fn exponent(spectrum: &Spectrum) -> (f64, f64, u64) {
    // Below some ten requests, the order of ranks is random.
    let ranks = [10, 5, 2, 1]
        .into_iter()
        .map(|min_count| spectrum.above(min_count))
        .find(|&ranks| ranks >= 50)
        .unwrap_or_else(|| spectrum.keys());
    let (mut rank, mut requests, mut logs) = (0u64, 0.0, 0.0);
    for (&count, &keys) in spectrum.0.iter().rev() {
        let keys = keys.min(ranks - rank);
        // Σ ln r over the ranks of these keys.
        let sum = ln_factorial(rank + keys) - ln_factorial(rank);
        logs += count as f64 * sum;
        requests += count as f64 * keys as f64;
        rank += keys;
        if rank == ranks {
            break;
        }
    }
    let recorded = logs / requests;
    let (mut low, mut high) = (0.01, 8.0);
    for _ in 0..50 {
        let theta = 0.5 * (low + high);
        if log_moments(ranks, theta).0 > recorded {
            low = theta;
        } else {
            high = theta;
        }
    }
    let theta = 0.5 * (low + high);
    let variance = log_moments(ranks, theta).1;
    (theta, 1.96 / (requests * variance).sqrt(), ranks)
}

/// Calls `each` with representative ranks of 1..=n and the number of ranks that each represents: the first 1024 singly,
/// then blocks that grow by 1 %.
fn blocks(n: u64, mut each: impl FnMut(f64, f64)) {
    let mut first = 1;
    while first <= n {
        let last = if first <= 1024 {
            first
        } else {
            (first + first / 100).min(n)
        };
        each(
            0.5 * (first as f64 + last as f64),
            (last - first + 1) as f64,
        );
        first = last + 1;
    }
}

/// Σ r^-θ over 1..=n, within 1e-5.
fn power_sum(n: u64, theta: f64) -> f64 {
    let mut sum = 0.0;
    blocks(n, |rank, ranks| sum += ranks * rank.powf(-theta));
    sum
}

/// Mean and variance of ln r for the power law over 1..=n.
fn log_moments(n: u64, theta: f64) -> (f64, f64) {
    let (mut sum, mut first, mut second) = (0.0, 0.0, 0.0);
    blocks(n, |rank, ranks| {
        let (weight, log) = (ranks * rank.powf(-theta), rank.ln());
        sum += weight;
        first += weight * log;
        second += weight * log * log;
    });
    let mean = first / sum;
    (mean, second / sum - mean * mean)
}

/// Expected number of distinct keys in `requests` requests to `n` objects.
fn distinct(n: u64, requests: f64, theta: f64) -> f64 {
    let total = power_sum(n, theta);
    let mut sum = 0.0;
    blocks(n, |rank, ranks| {
        let expected = requests * rank.powf(-theta) / total;
        sum -= ranks * (-expected).exp_m1();
    });
    sum
}

/// The number of objects for which the expected number of distinct keys is the recorded one, at most a hundred times the
/// recorded number.
fn objects(keys: u64, requests: f64, theta: f64) -> u64 {
    let (mut low, mut high) = (keys, keys.saturating_mul(100));
    while low < high {
        let middle = low + (high - low) / 2;
        if distinct(middle, requests, theta) < keys as f64 - 0.5 {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// ln n! (Stirling's series, accurate to 1e-10 from n = 10 on; summed below).
fn ln_factorial(n: u64) -> f64 {
    if n < 10 {
        return (2..=n).map(|i| (i as f64).ln()).sum();
    }
    let x = n as f64;
    x * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI * x).ln() + 1.0 / (12.0 * x)
        - 1.0 / (360.0 * x.powi(3))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use bucketload_core::generate::popularity::Popularity;
    use bucketload_core::generate::rng::{Draws, Purpose, Stream};
    use bucketload_core::plan::KeyLaw;

    use super::{PopularityFit, Spectrum};

    fn fitted(law: KeyLaw, n: u64, requests: u64) -> PopularityFit {
        let mut counts: HashMap<u64, u64> = HashMap::new();
        let popularity = (law != KeyLaw::Sequential).then(|| Popularity::new(&law, n).unwrap());
        for i in 0..requests {
            let mut draws = Draws::new(5, Stream::new(Purpose::Key, 0, 0), i);
            let key = popularity.as_ref().map_or(i % n, |p| p.rank(&mut draws));
            *counts.entry(key).or_insert(0) += 1;
        }
        let mut spectrum = Spectrum::default();
        counts.values().for_each(|&count| spectrum.add(count));
        PopularityFit::of(&spectrum).unwrap()
    }

    #[test]
    fn exponents_are_recovered() {
        for (theta, n, requests) in [
            (0.99, 10_000, 300_000),
            (0.99, 100_000, 100_000),
            (0.6, 5_000, 300_000),
            (1.4, 100_000, 100_000),
        ] {
            let fit = fitted(
                KeyLaw::Zipf {
                    theta,
                    scramble: true,
                },
                n,
                requests,
            );
            let found = fit.theta.unwrap();
            assert!((found - theta).abs() < 0.04, "{theta}: {fit:?}");
            // A steep law shows few of its objects, so their number is uncertain.
            let ratio = fit.objects as f64 / n as f64;
            let bounds = if theta < 1.2 { 0.8..1.25 } else { 0.3..3.0 };
            assert!(bounds.contains(&ratio), "{theta}: {fit:?}");
            for share in &fit.top {
                assert!(
                    (share.recorded - share.fitted).abs() < 0.02,
                    "{theta}: {share:?}"
                );
            }
            let keys = fit.keys_fitted / fit.keys_recorded as f64;
            assert!((keys - 1.0).abs() < 0.02, "{fit:?}");
        }
    }

    #[test]
    fn uniform_and_sequential_are_distinguished() {
        for (n, requests) in [(1_000, 100_000), (10_000, 30_000), (100_000, 50_000)] {
            let fit = fitted(KeyLaw::Uniform, n, requests);
            assert_eq!(fit.law, "uniform", "{fit:?}");
            assert!(
                (fit.objects as f64 / n as f64 - 1.0).abs() < 0.05,
                "{fit:?}"
            );
            let fit = fitted(KeyLaw::Sequential, n, requests);
            assert_eq!(fit.law, "sequential", "{fit:?}");
            assert_eq!(fit.objects, n.min(requests));
        }
    }
}
