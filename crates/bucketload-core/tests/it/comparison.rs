//! Coverage of the intervals of a comparison, by simulation with fixed seeds (docs/spec/statistics.md
//! section 5). With 4000 trials the standard error of a coverage near 95 % is 0.34 %.

use bucketload_core::generate::rng::mix64;
use bucketload_core::stats::quantile::ci_ranks;
use bucketload_core::stats::ratio;

const TRIALS: u32 = 4000;
/// Run-to-run standard deviation of the logarithm.
const NOISE: f64 = 0.05;
const TRUTH: f64 = 1.10;

struct Noise {
    seed: u64,
    counter: u64,
}

impl Noise {
    fn new(seed: u64) -> Self {
        Self {
            seed: mix64(seed),
            counter: 0,
        }
    }

    fn uniform(&mut self) -> f64 {
        self.counter += 1;
        ((mix64(self.seed ^ mix64(self.counter)) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Values of `n` runs with the given level.
    fn runs(&mut self, n: usize, level: f64) -> Vec<f64> {
        (0..n)
            .map(|_| level * (NOISE * self.normal()).exp())
            .collect()
    }
}

/// Percentage of trials whose interval from `n` runs per side contains the true ratio.
fn coverage(seed: u64, n: usize, interval: impl Fn(&[f64], &[f64]) -> Option<(f64, f64)>) -> f64 {
    let mut noise = Noise::new(seed);
    let hits = (0..TRIALS)
        .filter(|_| {
            let a = noise.runs(n, 100.0);
            let b = noise.runs(n, 100.0 * TRUTH);
            interval(&a, &b).is_some_and(|(low, high)| low <= TRUTH && TRUTH <= high)
        })
        .count();
    100.0 * hits as f64 / f64::from(TRIALS)
}

fn log_welch(a: &[f64], b: &[f64]) -> Option<(f64, f64)> {
    ratio::log_welch(a, b, 0.95).map(|i| (i.low, i.high))
}

fn paired(a: &[f64], b: &[f64]) -> Option<(f64, f64)> {
    ratio::paired(a, b, 0.95).map(|i| (i.low, i.high))
}

#[test]
fn nominal_95_per_cent_at_five_runs_are_93_to_97() {
    for (name, got) in [
        ("log-Welch", coverage(1, 5, log_welch)),
        ("paired", coverage(2, 5, paired)),
    ] {
        assert!((93.0..=97.0).contains(&got), "{name}: {got} %");
    }
}

#[test]
fn three_and_ten_runs_are_as_published() {
    // The table's 96-97 % at 3 and 96 % at 10 runs, with four standard errors.
    for (name, got) in [
        ("log-Welch 3", coverage(4, 3, log_welch)),
        ("paired 3", coverage(6, 3, paired)),
    ] {
        assert!((93.6..=98.4).contains(&got), "{name}: {got} %");
    }
    for (name, got) in [
        ("log-Welch 10", coverage(7, 10, log_welch)),
        ("paired 10", coverage(9, 10, paired)),
    ] {
        assert!((93.0..=97.4).contains(&got), "{name}: {got} %");
    }
}

#[test]
fn unequal_variances_and_numbers_of_runs_are_covered() {
    let mut noise = Noise::new(10);
    let hits = (0..TRIALS)
        .filter(|_| {
            let a = noise.runs(4, 100.0);
            let b: Vec<f64> = (0..8)
                .map(|_| 100.0 * TRUTH * (3.0 * NOISE * noise.normal()).exp())
                .collect();
            ratio::log_welch(&a, &b, 0.95).is_some_and(|i| i.contains(TRUTH))
        })
        .count();
    let got = 100.0 * hits as f64 / f64::from(TRIALS);
    assert!((93.0..=97.0).contains(&got), "{got} %");
}

/// Why requests are not pooled: with 20 000 per run, the pooled interval of a p99 ratio is so narrow that it
/// misses the true value in every third comparison (published: 67 % coverage). The run-level interval of the
/// same data keeps its nominal coverage.
#[test]
fn pooling_requests_gives_confidently_wrong_intervals() {
    const REQUESTS: usize = 20_000;
    let trials = 100;
    let mut noise = Noise::new(12);
    let (mut pooled_hits, mut run_hits) = (0, 0);
    for _ in 0..trials {
        let mut side = |level: f64| -> (Vec<f64>, Vec<f64>) {
            let mut pool = Vec::with_capacity(5 * REQUESTS);
            let p99 = noise.runs(5, level).into_iter().map(|run| {
                let from = pool.len();
                pool.extend((0..REQUESTS).map(|_| -run * noise.uniform().ln()));
                pool[from..].sort_unstable_by(f64::total_cmp);
                pool[from + REQUESTS * 99 / 100 - 1]
            });
            let p99 = p99.collect();
            (p99, pool)
        };
        let (a, mut pool_a) = side(1.0);
        let (b, mut pool_b) = side(TRUTH);
        run_hits += u32::from(log_welch(&a, &b).is_some_and(|(l, h)| l <= TRUTH && TRUTH <= h));
        let (ln_a, se_a) = pooled_p99(&mut pool_a);
        let (ln_b, se_b) = pooled_p99(&mut pool_b);
        let half = 1.96 * se_a.hypot(se_b);
        pooled_hits += u32::from((ln_b - ln_a - TRUTH.ln()).abs() <= half);
    }
    assert!(pooled_hits <= 82, "pooled: {pooled_hits} of {trials}");
    // 95 % with a standard error of 2.2 %.
    assert!(run_hits >= 87, "run-level: {run_hits} of {trials}");
}

/// ln of the 99th percentile and its standard error as if all values were independent.
fn pooled_p99(pool: &mut [f64]) -> (f64, f64) {
    pool.sort_unstable_by(f64::total_cmp);
    let n = pool.len() as u64;
    let at = |rank: u64| pool[rank as usize - 1].ln();
    let (low, high) = ci_ranks(n, 0.99).unwrap();
    (at(n * 99 / 100), (at(high) - at(low)) / (2.0 * 1.96))
}
