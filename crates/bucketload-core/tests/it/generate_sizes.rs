//! Size laws against the figures they were chosen for (docs/spec/scenarios.md sections 3.2, 4.2 and 5): 10^6
//! draws, every stated quantile within four standard errors.

use bucketload_core::generate::rng::{Draws, Purpose, Stream};
use bucketload_core::generate::sizes::SizeSampler;
use bucketload_core::plan::{SizeKind, SizeLaw};

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * 1024.0;
const CAP: u64 = 64 << 20;
const DRAWS: u64 = 1_000_000;

struct Drawn {
    law: SizeSampler,
    sizes: Vec<u64>,
}

impl Drawn {
    fn new(scope: u16, law: SizeKind, min: u64) -> Self {
        let law = SizeSampler::new(&SizeLaw { law, min, max: CAP }).unwrap();
        let stream = Stream::new(Purpose::Size, 0, scope);
        let mut sizes: Vec<u64> = (0..DRAWS)
            .map(|i| law.sample(&mut Draws::new(20_200_501, stream, i)))
            .collect();
        sizes.sort_unstable();
        Self { law, sizes }
    }

    fn share_up_to(&self, bytes: u64) -> f64 {
        self.sizes.partition_point(|&s| s <= bytes) as f64 / DRAWS as f64
    }

    /// The theoretical P(size ≤ bytes) is `p` within `rounding` (of the printed figures), and the
    /// realised one within four standard errors of the theoretical one.
    #[track_caller]
    fn check_share(&self, bytes: u64, p: f64, rounding: f64) {
        let theory = self.law.cdf(bytes);
        assert!(
            (theory - p).abs() <= rounding,
            "F({bytes}) = {theory}, stated {p}"
        );
        let realised = self.share_up_to(bytes);
        let four_se = 4.0 * (theory * (1.0 - theory) / DRAWS as f64).sqrt();
        assert!(
            (realised - theory).abs() <= four_se + 1e-12,
            "{realised} of the draws are up to {bytes}, expected {theory} ± {four_se}"
        );
    }

    /// The stated `p`-quantile, printed with `digits` significant digits.
    #[track_caller]
    fn check_quantile(&self, p: f64, bytes: f64, digits: i32) {
        let half = 0.5 * 10f64.powi(bytes.log10().floor() as i32 + 1 - digits);
        let low = self.law.cdf((bytes - half).max(0.0) as u64);
        let high = self.law.cdf((bytes + half) as u64 + 1);
        assert!(
            low <= p + 1e-9 && p <= high + 1e-9,
            "p{p}: F around {bytes} is {low}..{high}"
        );
        let quantile = self.law.quantile(p) as f64;
        assert!(
            (quantile - bytes).abs() <= half + 1.0,
            "p{p} = {quantile}, stated {bytes}"
        );
        let theory = self.law.cdf(bytes as u64);
        self.check_share(bytes as u64, theory, 0.0);
    }

    fn mean_and_sd(&self) -> (f64, f64) {
        let n = DRAWS as f64;
        let mean = self.sizes.iter().map(|&s| s as f64).sum::<f64>() / n;
        let squares = self.sizes.iter().map(|&s| (s as f64 - mean).powi(2));
        (mean, (squares.sum::<f64>() / (n - 1.0)).sqrt())
    }

    /// The computed mean matches the stated one within `rounding`, and the realised mean is within four
    /// standard errors of it.
    #[track_caller]
    fn check_mean(&self, stated: f64, rounding: f64) {
        let theory = self.law.mean();
        assert!(
            (theory - stated).abs() <= rounding,
            "mean {theory}, stated {stated}"
        );
        let (mean, sd) = self.mean_and_sd();
        let four_se = 4.0 * sd / (DRAWS as f64).sqrt();
        assert!(
            (mean - theory).abs() <= four_se,
            "mean {mean}, expected {theory} ± {four_se}"
        );
    }

    /// Kolmogorov-Smirnov: 1.95/√n is the 0.001 critical value.
    #[track_caller]
    fn check_shape(&self) {
        for i in 0..2000 {
            let at = self.sizes[(DRAWS as usize / 2000) * i];
            let distance = (self.share_up_to(at) - self.law.cdf(at)).abs();
            assert!(distance < 1.95e-3, "distance {distance} at {at}");
        }
    }
}

#[test]
fn online_read_sizes() {
    let law = SizeKind::Emg {
        mu: 32.0 * KIB,
        sigma: 8.0 * KIB,
        tau: 93.98 * KIB,
    };
    let drawn = Drawn::new(0, law, 1);
    for (p, kib, digits) in [
        (0.10, 41.75, 4),
        (0.25, 59.38, 4),
        (0.50, 97.48, 4),
        (0.75, 162.6, 4),
        (0.90, 248.7, 4),
        (0.95, 313.9, 4),
        (0.98, 400.0, 4),
        (0.99, 465.1, 4),
        (0.999, 681.5, 4),
    ] {
        // The figure is printed in KiB, so its rounding is that of the KiB digits.
        let half = 0.5 * 10f64.powi(f64::log10(kib).floor() as i32 + 1 - digits) * KIB;
        let quantile = drawn.law.quantile(p) as f64;
        assert!(
            (quantile - kib * KIB).abs() <= half * 1.05,
            "p{p} = {}",
            quantile / KIB
        );
        drawn.check_share((kib * KIB) as u64, p, 1e-4);
    }
    drawn.check_share(400 * 1024 - 1, 0.98, 1e-4);
    drawn.check_mean(125.98 * KIB, 0.005 * KIB);
    let (mean, sd) = drawn.mean_and_sd();
    assert!((sd / mean - 0.75).abs() < 0.005, "cv {}", sd / mean);
    drawn.check_shape();
}

fn online_writes(align: bool) -> SizeKind {
    SizeKind::Zipf {
        n: 16_384,
        s: 1.5036,
        unit: 4096,
        align,
    }
}

#[test]
fn online_write_sizes() {
    let drawn = Drawn::new(1, online_writes(true), 1);
    for (p, bytes) in [
        (0.10, 4096),
        (0.25, 4096),
        (0.50, 8192),
        (0.75, 36_864),
        (0.90, 208_896),
        (0.95, 749_568),
    ] {
        assert_eq!(drawn.law.quantile(p), bytes, "p{p}");
        drawn.check_share(bytes, drawn.law.cdf(bytes), 0.0);
    }
    for (p, bytes) in [(0.98, 3.47e6), (0.99, 9.17e6), (0.999, 4.89e7)] {
        drawn.check_quantile(p, bytes, 3);
    }
    drawn.check_share(400 * 1024 - 1, 0.930_01, 5e-6);
    drawn.check_mean(392_475.0, 1.0);
    let (mean, sd) = drawn.mean_and_sd();
    assert!((sd / mean - 7.49).abs() < 0.1, "cv {}", sd / mean);
    assert_eq!(drawn.law.support(), (4096, CAP));
    // 38.7 % are one unit; 1.76 % exceed 4 MiB.
    drawn.check_share(4096, 0.387, 5e-4);
    drawn.check_share(4 << 20, 1.0 - 0.0176, 5e-5);
    drawn.check_shape();
}

#[test]
fn online_write_sizes_spread_within_units() {
    let drawn = Drawn::new(2, online_writes(false), 1);
    drawn.check_share(400 * 1024, 0.9304, 5e-4);
    drawn.check_shape();
    let whole = drawn.sizes.iter().filter(|&&s| s % 4096 == 0).count();
    assert!(
        (50..1000).contains(&whole),
        "{whole} of 10^6 are whole units"
    );
}

#[test]
fn alternative_online_write_laws() {
    let zipf_mandelbrot = SizeKind::ZipfMandelbrot {
        n: CAP,
        s: 1.5,
        v: 2349.0,
        unit: 1,
        offset: 0,
    };
    let drawn = Drawn::new(3, zipf_mandelbrot, 0);
    drawn.check_share(400 * 1024, 0.93, 5e-4);
    drawn.check_mean(394_600.0, 2_000.0);
    drawn.check_shape();
    for (scope, low, a, mean) in [(4, KIB, 0.42505, 448e3), (5, 4.0 * KIB, 0.56587, 357e3)] {
        let high = CAP as f64;
        let drawn = Drawn::new(scope, SizeKind::BoundedPareto { low, high, a }, 1);
        drawn.check_share(400 * 1024, 0.93, 1e-4);
        drawn.check_mean(mean, 1e3);
        drawn.check_shape();
    }
}

/// 20 % of the files are empty. Of the rest, a share `big` is between `threshold` and the cap, the others are
/// 4 KiB or more. The scale factor 2^-10 is applied to threshold and cap: 10 GiB and 64 GiB.
fn analysis(big: f64, uniform: bool) -> SizeKind {
    let sigma = 1.0 / 1024.0;
    let (threshold, cap) = (10.0 * KIB * MIB * sigma, 64.0 * KIB * MIB * sigma);
    let large = if uniform {
        SizeKind::Uniform {
            a: threshold as u64,
            b: cap as u64,
        }
    } else {
        SizeKind::Loguniform {
            a: threshold,
            b: cap,
        }
    };
    let small = SizeKind::Loguniform {
        a: 4.0 * KIB,
        b: threshold,
    };
    SizeKind::Mixture {
        parts: vec![
            (0.2, SizeKind::Const { bytes: 0 }),
            (0.8 * (1.0 - big), small),
            (0.8 * big, large),
        ],
    }
}

#[test]
fn analysis_sizes() {
    for (scope, law, big, mean, mean_digit, quantiles) in [
        (
            10,
            analysis(0.8, false),
            0.8,
            18.8,
            0.05,
            [0.045, 15.0, 31.0, 47.8, 62.2],
        ),
        (
            11,
            analysis(0.8, true),
            0.8,
            23.9,
            0.05,
            [0.045, 21.8, 43.0, 55.6, 63.2],
        ),
        (
            12,
            analysis(0.2, false),
            0.2,
            5.47,
            0.005,
            [0.007, 0.154, 3.28, 19.9, 56.9],
        ),
    ] {
        let drawn = Drawn::new(scope, law, 0);
        // Zero stays zero.
        drawn.check_share(0, 0.2, 1e-9);
        let small = drawn.law.cdf(10 << 20);
        assert!(((1.0 - small) / 0.8 - big).abs() < 1e-6, "{small}");
        drawn.check_share(10 << 20, small, 0.0);
        drawn.check_mean(mean * MIB, mean_digit * 1.02 * MIB);
        for (p, mib) in [0.25, 0.5, 0.75, 0.9, 0.99].into_iter().zip(quantiles) {
            // The printed quantiles come from a simulation (the exact upper quartile of the last law is
            // 3.317, printed 3.28), so they are compared in probability, with four standard errors plus the
            // rounding of the printed digits.
            let rounding = if mib < 0.1 { 0.0005 } else { 0.005 * mib };
            let share = |mib: f64| drawn.law.cdf((mib * MIB) as u64);
            let four_se = 4.0 * (p * (1.0 - p) / DRAWS as f64).sqrt();
            let (low, high) = (share(mib - rounding), share(mib + rounding));
            assert!(
                low - four_se <= p && p <= high + four_se,
                "p{p} at {mib}: {low}..{high}"
            );
            let at = drawn.law.quantile(p);
            drawn.check_share(at, drawn.law.cdf(at), 0.0);
        }
        drawn.check_shape();
    }
}

#[test]
fn analysis_sizes_of_the_code() {
    let drawn = Drawn::new(13, SizeKind::Uniform { a: 0, b: CAP - 1 }, 0);
    drawn.check_share(10 << 20, 1.0 - 0.844, 5e-4);
    drawn.check_mean(32.0 * MIB, 1.0);
    for (p, mib) in [
        (0.25, 16.0),
        (0.5, 32.0),
        (0.75, 48.0),
        (0.9, 57.6),
        (0.99, 63.4),
    ] {
        drawn.check_quantile(p, mib * MIB, 3);
    }
    drawn.check_shape();
}

#[test]
fn backup_sizes() {
    let rows = [
        (0.40, 12.1956, 1923.0, 0.119, 0.102, None),
        (
            0.60,
            10.9119,
            775.0,
            0.252,
            0.039,
            Some([53.2, 1282.0, 14_868.0, 48_545.0]),
        ),
        (
            0.80,
            9.4347,
            230.0,
            0.468,
            0.0097,
            Some([12.2, 300.0, 3992.0, 22_791.0]),
        ),
    ];
    for (scope, (f, mu, mean, under_10k, over_4m, quantiles)) in rows.into_iter().enumerate() {
        let law = SizeKind::TruncLognormal {
            mu,
            sigma: 2.5,
            cap: CAP as f64,
        };
        let drawn = Drawn::new(20 + scope as u16, law, 1);
        drawn.check_share(100 * 1024, f, 1e-4);
        drawn.check_share(10 * 1024, under_10k, 5.1e-4);
        drawn.check_share(4 << 20, 1.0 - over_4m, 5.1e-4);
        drawn.check_mean(mean * KIB, 0.6 * KIB);
        let quantiles = quantiles.unwrap_or([187.0, 4210.0, 33_168.0, 59_901.0]);
        for (p, kib) in [0.5, 0.9, 0.99, 0.999].into_iter().zip(quantiles) {
            let quantile = drawn.law.quantile(p) as f64 / KIB;
            assert!(
                (quantile / kib - 1.0).abs() < 3e-3,
                "p{p} = {quantile}, stated {kib}"
            );
            let at = drawn.law.quantile(p);
            drawn.check_share(at, drawn.law.cdf(at), 0.0);
        }
        drawn.check_shape();
    }
    // The narrower law of the same table: only the stated share and mean.
    for (f, mu, mean) in [
        (0.4, 12.0462, 1033.0),
        (0.6, 11.0307, 416.0),
        (0.8, 9.8535, 135.0),
    ] {
        let law = SizeKind::TruncLognormal {
            mu,
            sigma: 2.0,
            cap: CAP as f64,
        };
        let law = SizeSampler::new(&SizeLaw {
            law,
            min: 1,
            max: CAP,
        })
        .unwrap();
        assert!((law.cdf(100 * 1024) - f).abs() < 1e-4);
        assert!(
            (law.mean() / KIB - mean).abs() < 0.6,
            "{}",
            law.mean() / KIB
        );
    }
}

/// Sizes written by the published code (section 6.1): p50 1028 B, p90 1175 B, p99 15 957 B, P(< 400 KiB)
/// 0.9982, mean 11 183 B, CV 42.6.
#[test]
fn write_sizes_of_the_published_code() {
    let law = SizeKind::ZipfMandelbrot {
        n: CAP,
        s: 1.5,
        v: 2.0,
        unit: 1,
        offset: 1024,
    };
    let whole = SizeLaw {
        law: law.clone(),
        min: 0,
        max: u64::MAX,
    };
    let support = SizeSampler::new(&whole).unwrap().support();
    assert_eq!(support, (1024, CAP + 1024));
    let drawn = Drawn::new(6, law, 0);
    for (p, bytes) in [(0.5, 1028), (0.9, 1175), (0.99, 15_957)] {
        assert_eq!(drawn.law.quantile(p), bytes, "p{p}");
        drawn.check_share(bytes, drawn.law.cdf(bytes), 0.0);
    }
    drawn.check_share(400 * 1024 - 1, 0.9982, 5e-5);
    drawn.check_mean(11_183.0, 1.0);
    drawn.check_shape();
}

/// Backup files cut into chunks, compared with chunks counted one by one over the same files.
#[test]
fn chunks_match_the_files() {
    const CHUNK: u64 = 4 << 20;
    let files = SizeKind::TruncLognormal {
        mu: 10.9119,
        sigma: 2.5,
        cap: CAP as f64,
    };
    let drawn = Drawn::new(25, files.clone(), 1);
    let mut chunks: Vec<u64> = Vec::new();
    for &file in &drawn.sizes {
        let whole = (file.div_ceil(CHUNK) - 1) as usize;
        chunks.extend(std::iter::repeat_n(CHUNK, whole));
        chunks.push(file - whole as u64 * CHUNK);
    }
    chunks.sort_unstable();
    let chunked = SizeKind::Chunked {
        files: Box::new(files),
        chunk: CHUNK,
    };
    let law = Drawn::new(26, chunked, 1);
    assert_eq!(law.law.support(), (1, CHUNK));
    let n = chunks.len() as f64;
    for at in [1024, 10 << 10, 100 << 10, 1 << 20, CHUNK - 1] {
        let counted = chunks.partition_point(|&c| c <= at) as f64 / n;
        let theory = law.law.cdf(at);
        let four_se = 4.0 * (theory * (1.0 - theory) / n).sqrt();
        assert!(
            (counted - theory).abs() <= four_se,
            "{at}: {counted} {theory}"
        );
        law.check_share(at, theory, 0.0);
    }
    law.check_mean(law.law.mean(), 0.0);
    // The same bytes, in more requests.
    let per_file = n / DRAWS as f64;
    let ratio = drawn.law.mean() / law.law.mean();
    assert!((ratio / per_file - 1.0).abs() < 0.002, "{ratio} {per_file}");
    law.check_shape();
}

#[test]
fn remaining_laws() {
    let drawn = Drawn::new(30, SizeKind::Loguniform { a: 1e3, b: 1e7 }, 1);
    // Mean (b-a)/ln(b/a).
    drawn.check_mean((1e7 - 1e3) / 1e4f64.ln(), 1.0);
    drawn.check_quantile(0.5, 1e5, 6);
    drawn.check_shape();

    let drawn = Drawn::new(
        31,
        SizeKind::Lognormal {
            mu: 9.0,
            sigma: 1.0,
        },
        1,
    );
    // Mean exp(mu + sigma²/2); the cap at 64 MiB is nine sigma away.
    drawn.check_mean(9.5f64.exp(), 1.0);
    drawn.check_quantile(0.5, 9f64.exp().round(), 5);
    drawn.check_shape();

    let bins = vec![(65_536, 3.0), (4096, 6.0), (1 << 20, 1.0)];
    let drawn = Drawn::new(32, SizeKind::Histogram { bins }, 0);
    drawn.check_share(4096, 0.6, 1e-12);
    drawn.check_share(65_536, 0.9, 1e-12);
    drawn.check_mean(0.6 * 4096.0 + 0.3 * 65_536.0 + 0.1 * MIB, 1e-6);
    drawn.check_shape();

    let heavy = SizeKind::Zipf {
        n: 1000,
        s: 0.7,
        unit: 100,
        align: true,
    };
    let drawn = Drawn::new(33, heavy, 1);
    drawn.check_shape();
    drawn.check_mean(drawn.law.mean(), 0.0);

    let drawn = Drawn::new(34, SizeKind::Const { bytes: 77 }, 0);
    assert!(drawn.sizes.iter().all(|&s| s == 77));
}
