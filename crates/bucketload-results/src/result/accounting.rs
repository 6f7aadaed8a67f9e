//! What some phases state beside the usual figures: backlog, streams, size classes, bandwidth per
//! object, gates, and what identifies the workload.

use bucketload_core::op::OpClass;
use serde::{Deserialize, Serialize};

use super::{Latency, TopShare};

/// How far an open loop lagged behind its arrivals: the age of the oldest one that was due but not
/// ended, read at the end of each interval (docs/spec/scenarios.md section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Backlog {
    /// Largest reading of the whole phase, drain included, seconds.
    pub max_s: f64,
    /// Mean of the readings inside the window, seconds.
    pub mean_s: f64,
    /// Last reading inside the window, seconds.
    pub end_s: f64,
    /// Period of the batches, for periodic arrivals, seconds.
    pub period_s: Option<f64>,
    /// Batches of one client that were due since the oldest outstanding arrival, at most, that one's
    /// own included: more than 1 means that a batch was not through when the next was due.
    pub max_batches: Option<u64>,
}

/// Throughput as the streams of a closed loop saw it; three definitions that differ
/// (docs/spec/scenarios.md section 10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Streams {
    /// Streams that performed anything.
    pub streams: u64,
    /// Sum over streams of bytes over the sum of service times, both while every stream was active.
    pub net_bytes_per_s: f64,
    /// Sum over streams of bytes over the time from their first start to their last stop, while
    /// every stream was active.
    pub net_with_gap_bytes_per_s: f64,
    /// All bytes over the time from the first start to the last stop of any stream.
    pub simplified_bytes_per_s: f64,
    /// Operations per second from the first start to the last stop of any stream.
    pub any_active_ops_per_s: f64,
    /// Operations per second while every stream was active.
    pub all_active_ops_per_s: f64,
    /// Time in which every stream was active, seconds; 0 when there was none.
    pub all_active_s: f64,
    /// Time from the first start to the last stop, seconds.
    pub any_active_s: f64,
    /// Share of the common time that streams spent between operations: the client's overhead.
    pub gap: f64,
    /// From the earliest to the latest first start, seconds.
    pub start_skew_s: f64,
    /// From the earliest to the latest last stop, seconds.
    pub stop_skew_s: f64,
    /// Sum of both over the whole time: from 0.2 on the streams hardly ran together.
    pub skew: f64,
}

impl Streams {
    /// Skew from which on the figures of the common time say little.
    pub const MAX_SKEW: f64 = 0.2;

    /// Whether the streams began or ended too far apart.
    #[must_use]
    pub fn is_skewed(&self) -> bool {
        self.skew >= Self::MAX_SKEW
    }
}

/// Successes of one range of sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizeClass {
    /// Name of the work.
    pub work_name: String,
    /// Operation class.
    pub class: OpClass,
    /// Smallest size, bytes.
    pub from_bytes: u64,
    /// First size beyond the class, bytes; `None` for the largest class.
    pub to_bytes: Option<u64>,
    /// Operations that succeeded (window and drain).
    pub ok: u64,
    /// Object bytes transferred.
    pub bytes: u64,
    /// Time from intended start to end.
    pub response: Latency,
    /// Time from actual start to end.
    pub service: Latency,
}

/// Bandwidth of single objects of one size: size over service time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bandwidth {
    /// Size of every object, bytes.
    pub object_bytes: u64,
    /// Mean, 10^6 bits per second.
    pub mean_mbit_s: f64,
    /// Standard deviation, 10^6 bits per second.
    pub sd_mbit_s: f64,
    /// Quantile and bandwidth that this share of the objects does not exceed, 10^6 bits per second.
    pub percentiles: Vec<(f64, f64)>,
}

/// A condition that a phase had to meet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// What is bounded, such as `share of failed operations`.
    pub what: String,
    /// Largest value with which the phase passes.
    pub limit: f64,
    /// The value.
    pub measured: f64,
    /// Whether it passed.
    pub passed: bool,
}

/// Popularity of the objects of one operation, as part of what identifies a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PopularityId {
    /// Name of the phase.
    pub phase: String,
    /// Name of the work.
    pub work: String,
    /// Operation class.
    pub class: OpClass,
    /// The law of keys, as in a workload file.
    pub law: String,
    /// Objects of the key set.
    pub objects: u64,
    /// Shares of the most popular objects.
    pub top: Vec<TopShare>,
    /// Effective number of keys realised.
    pub effective: f64,
}

impl PopularityId {
    /// In one line: `get zipf(0.99) over 100000: top 1 7.8 % (theory 7.8 %), …`.
    #[must_use]
    pub fn line(&self) -> String {
        use crate::units;
        let top: Vec<String> = self
            .top
            .iter()
            .map(|top| {
                let theory = top
                    .theory
                    .map_or_else(String::new, |t| format!(" (theory {})", units::percent(t)));
                format!("top {} {}{theory}", top.k, units::percent(top.realised))
            })
            .collect();
        format!(
            "{} {} over {} objects: {}, {} effective keys",
            self.class,
            self.law,
            self.objects,
            top.join(", "),
            units::number(self.effective)
        )
    }
}
