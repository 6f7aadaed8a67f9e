//! Time series and distributions of a phase, of bounded size.

use bucketload_core::stats::bootstrap::ExcessDispersion;
use bucketload_core::stats::moments::Moments;
use bucketload_core::stats::normality::GaussianFit;
use serde::{Deserialize, Serialize};

/// Time series of a phase, at most 2000 points; all vectors have the same length.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Intervals per point.
    pub intervals_per_point: u64,
    /// Start of each point, seconds since the start of the phase.
    pub t_s: Vec<f64>,
    /// Operations that fell due, per second.
    pub offered_ops_per_s: Vec<f64>,
    /// Operations that succeeded, per second.
    pub ops_per_s: Vec<f64>,
    /// Operations that failed, per second.
    pub failed_per_s: Vec<f64>,
    /// Object bytes that fell due, as far as known in advance, per second.
    pub offered_bytes_per_s: Vec<f64>,
    /// Object bytes transferred, per second.
    pub bytes_per_s: Vec<f64>,
    /// Operations that were due but had not ended, mean of the readings.
    pub in_flight: Vec<f64>,
    /// Age of the oldest operation that was due but had not ended, seconds: largest reading of the point's
    /// intervals.
    #[serde(default)]
    pub backlog_s: Vec<f64>,
    /// Open sessions, mean of the readings.
    pub sessions: Vec<f64>,
    /// Jobs that had arrived and not ended, mean of the readings; all 0 for models without jobs.
    #[serde(default)]
    pub jobs: Vec<f64>,
    /// Busy share of all cores of the machine; 0 if not measured.
    pub machine_busy: Vec<f64>,
    /// 99th percentile of timer lateness plus build time, milliseconds (largest of the point's
    /// intervals).
    pub late_p99_ms: Vec<f64>,
}

/// Percentile bands of the response time, at most 240 columns; all vectors have the same length.
/// Columns without operations have `n` 0 and all values 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyOverTime {
    /// Intervals per column.
    pub intervals_per_column: u64,
    /// Start of each column, seconds since the start of the phase.
    pub t_s: Vec<f64>,
    /// Operations that succeeded.
    pub n: Vec<u64>,
    /// Median, milliseconds.
    pub p50_ms: Vec<f64>,
    /// 90th percentile, milliseconds.
    pub p90_ms: Vec<f64>,
    /// 99th percentile, milliseconds.
    pub p99_ms: Vec<f64>,
    /// 99.9th percentile, milliseconds.
    pub p999_ms: Vec<f64>,
    /// Largest value, milliseconds.
    pub max_ms: Vec<f64>,
}

/// Counts of response times by time column and latency row, for a heat map. Columns are those of
/// [`LatencyOverTime`]; rows are a quarter of an octave high.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HeatMap {
    /// Lower edge of each row and upper edge of the last, nanoseconds: one more than rows.
    pub edges_ns: Vec<u64>,
    /// `counts[column][row]`.
    pub counts: Vec<Vec<u64>>,
}

/// A bin of a histogram: `count` values from `from` up to `to`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HistBin {
    /// Lower edge.
    pub from: f64,
    /// Upper edge.
    pub to: f64,
    /// Number of intervals.
    pub count: u64,
}

/// Distribution of the throughput per bin over the measured window (docs/spec/statistics.md section 9).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThroughputDistribution {
    /// `bytes/s`, or `ops/s` if no object bytes are transferred.
    pub unit: String,
    /// Length of a bin, seconds.
    pub bin_s: f64,
    /// Moments of the bins.
    pub moments: Moments,
    /// The probability density as a histogram.
    pub histogram: Vec<HistBin>,
    /// The fitted Gaussian; `None` without spread or with fewer than eight bins.
    pub gaussian: Option<GaussianFit>,
    /// Whether there are at least 60 bins, which a statement about the shape needs.
    pub enough: bool,
    /// Variation of completed over offered bytes; `None` if offered bytes are unknown or do not vary.
    pub excess_bytes: Option<ExcessDispersion>,
    /// Variation of completed over offered operations; `None` for closed loops or an even schedule.
    pub excess_ops: Option<ExcessDispersion>,
    /// Index of dispersion of operations at several time scales.
    pub dispersion: Vec<Dispersion>,
}

/// Index of dispersion of counts, variance over mean, at one time scale.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dispersion {
    /// Length of the counting window, seconds.
    pub window_s: f64,
    /// For the operations that fell due; `None` with fewer than two windows.
    pub offered: Option<f64>,
    /// For the operations that succeeded; `None` with fewer than two windows.
    pub completed: Option<f64>,
}
