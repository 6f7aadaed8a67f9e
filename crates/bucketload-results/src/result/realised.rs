//! Sizes and popularity as realised, compared with their laws.
//!
//! Operations are functions of seed and sequence number, so the offered ones are regenerated instead of stored.
//! The comparison is exact for what was offered and costs no memory during the run.

use bucketload_core::op::OpClass;
use serde::{Deserialize, Serialize};

/// Limit on the operations of a work that are regenerated.
pub const MAX_SAMPLE: u64 = 1_000_000;
/// Quantiles of sizes that are compared.
pub const SIZE_QUANTILES: [f64; 9] = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99];

/// One entry of a work's mix: its share of the operations, its sizes, its popularity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Realised {
    /// Index of the work in the phase.
    pub work: u16,
    /// Name of the work.
    pub work_name: String,
    /// Index of the entry in the mix.
    pub entry: u16,
    /// Operation class.
    pub class: OpClass,
    /// Operations of this entry among the regenerated ones.
    pub n: u64,
    /// Regenerated operations of the work (the first offered ones, at most 10^6).
    pub sample: u64,
    /// Share of the entry according to the weights.
    pub share_theory: f64,
    /// Share of the entry, as realised.
    pub share: f64,
    /// Sizes; `None` for operations without a known size.
    pub sizes: Option<RealisedSizes>,
    /// Popularity; `None` for fresh and sequential keys and operations on buckets.
    pub popularity: Option<RealisedPopularity>,
}

/// Sizes compared with their law.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RealisedSizes {
    /// Number of sizes compared.
    pub n: u64,
    /// Mean, bytes.
    pub mean_bytes: f64,
    /// Kolmogorov-Smirnov distance to the law.
    pub ks: f64,
    /// Distance that a sample of the law exceeds in 1 % of cases. Reads repeat the sizes of popular objects, which
    /// makes the distance larger.
    pub ks_critical: f64,
    /// Quantiles, realised and in theory.
    pub quantiles: Vec<SizeQuantile>,
}

/// A quantile of sizes, realised and in theory, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizeQuantile {
    /// The quantile, such as 0.5.
    pub q: f64,
    /// In theory, bytes.
    pub theory: f64,
    /// Realised, bytes.
    pub realised: f64,
}

/// Popularity compared with its law.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RealisedPopularity {
    /// The law, as in a workload file.
    #[serde(default)]
    pub law: String,
    /// Operations counted.
    pub n: u64,
    /// Objects of the key set.
    pub objects: u64,
    /// Number of distinct objects used.
    pub used: u64,
    /// Shares of the most popular objects.
    pub top: Vec<TopShare>,
    /// Effective number of keys 1/Σp² in theory; `None` if the law has no fixed probabilities.
    pub effective_theory: Option<f64>,
    /// Effective number of keys as realised, corrected for the sample size; if no object was used twice, the
    /// number of objects used.
    pub effective: f64,
    /// Share of operations by rank: (rank, share), at most 200 points on a logarithmic scale.
    pub by_rank: Vec<(u64, f64)>,
}

/// Share of the operations that went to the `k` most popular objects.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopShare {
    /// Number of objects.
    pub k: u64,
    /// In theory; `None` if the law has no fixed probabilities.
    pub theory: Option<f64>,
    /// Realised share of the objects that are most popular in theory, if the law determines them, else of the most
    /// used ones.
    pub realised: f64,
    /// Standard error of the realised share.
    pub standard_error: f64,
}
