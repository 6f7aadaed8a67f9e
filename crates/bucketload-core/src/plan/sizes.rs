//! Laws of object sizes as stated in a plan; `generate::sizes` draws from them.

use serde::{Deserialize, Serialize};

use super::is_default;

/// A law of sizes in bytes (docs/spec/scenarios.md section 1.2). All results are rounded and clamped to
/// `min..=max`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizeLaw {
    /// The law.
    pub law: SizeKind,
    /// Smallest size, bytes.
    pub min: u64,
    /// Largest size, bytes.
    pub max: u64,
}

impl SizeLaw {
    /// Always `bytes`.
    #[must_use]
    pub const fn constant(bytes: u64) -> Self {
        Self {
            law: SizeKind::Const { bytes },
            min: bytes,
            max: bytes,
        }
    }
}

/// The kinds of size laws; parameters are in bytes unless noted otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum SizeKind {
    /// One size.
    Const {
        /// Bytes.
        bytes: u64,
    },
    /// Integers from `a` to `b`, inclusive.
    Uniform {
        /// Smallest.
        a: u64,
        /// Largest.
        b: u64,
    },
    /// exp(U(ln a, ln b)).
    Loguniform {
        /// Smallest.
        a: f64,
        /// Largest.
        b: f64,
    },
    /// Exponentially modified Gaussian: N(mu, sigma²) + Exp(mean tau).
    Emg {
        /// Mean of the Gaussian part.
        mu: f64,
        /// Standard deviation of the Gaussian part.
        sigma: f64,
        /// Mean of the exponential part.
        tau: f64,
    },
    /// ln X ~ N(mu, sigma²).
    Lognormal {
        /// Mean of ln bytes.
        mu: f64,
        /// Standard deviation of ln bytes.
        sigma: f64,
    },
    /// Log-normal conditioned on X ≤ cap.
    TruncLognormal {
        /// Mean of ln bytes.
        mu: f64,
        /// Standard deviation of ln bytes.
        sigma: f64,
        /// Largest value.
        cap: f64,
    },
    /// unit · rank, P(rank i) ~ i^-s, i = 1..n.
    Zipf {
        /// Number of ranks.
        n: u64,
        /// Exponent, any value > 0.
        s: f64,
        /// Bytes per rank.
        unit: u64,
        /// Whether sizes are whole units (otherwise U{0..unit-1} is subtracted).
        align: bool,
    },
    /// offset + unit · k, P(k) ~ (v + k)^-s, k = 0..=n.
    ZipfMandelbrot {
        /// Largest k.
        n: u64,
        /// Exponent.
        s: f64,
        /// Shift.
        v: f64,
        /// Bytes per rank.
        unit: u64,
        /// Bytes added to every size.
        #[serde(default, skip_serializing_if = "is_default")]
        offset: u64,
    },
    /// F(x) = (1-(L/x)^a)/(1-(L/H)^a).
    BoundedPareto {
        /// Smallest.
        low: f64,
        /// Largest.
        high: f64,
        /// Exponent.
        a: f64,
    },
    /// A finite mixture.
    Mixture {
        /// Weight and law of each component.
        parts: Vec<(f64, SizeKind)>,
    },
    /// Sizes of the chunks that files are cut into: whole chunks and a remainder.
    Chunked {
        /// The law of file sizes.
        files: Box<SizeKind>,
        /// Bytes of a whole chunk.
        chunk: u64,
    },
    /// Samples as DLIO lays them out (docs/spec/ai-training.md section 3): side · side + offset, each side drawn
    /// from N(⌊√record⌋, stdev / (2·√record)) and cut to a whole number of at least 1.
    Sides {
        /// Nominal bytes of a record.
        record: f64,
        /// Their nominal standard deviation.
        stdev: f64,
        /// Bytes of framing added to every size.
        #[serde(default, skip_serializing_if = "is_default")]
        offset: u64,
    },
    /// Weighted sizes: each entry is one size in bytes and its weight.
    Histogram {
        /// Size and weight.
        bins: Vec<(u64, f64)>,
    },
}
