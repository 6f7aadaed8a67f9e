//! Figures that only some phases have: backlog, streams, size classes, bandwidth per object, gates, and the
//! popularity that identifies the workload.

use bucketload_core::op::OpClass;
use serde::{Deserialize, Serialize};

use super::{Latency, TopShare};

/// How far an open loop lagged behind its arrivals: the age of the oldest arrival that was due but had not
/// ended, read at the end of each interval (docs/spec/scenarios.md section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Backlog {
    /// Largest reading of the whole phase including the drain, seconds.
    pub max_s: f64,
    /// Mean of the readings inside the window, seconds.
    pub mean_s: f64,
    /// Last reading inside the window, seconds.
    pub end_s: f64,
    /// Period of the batches in seconds, for periodic arrivals.
    pub period_s: Option<f64>,
    /// Largest number of one client's batches that were due since the oldest outstanding arrival, including that
    /// arrival's own. More than 1 means that a batch was not finished when the next was due.
    pub max_batches: Option<u64>,
}

/// Throughput from the point of view of a closed loop's streams, by three different definitions
/// (docs/spec/scenarios.md section 10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Streams {
    /// Streams that performed at least one operation.
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
    /// Time in which every stream was active, seconds; 0 if there was none.
    pub all_active_s: f64,
    /// Time from the first start to the last stop, seconds.
    pub any_active_s: f64,
    /// Share of the common time that streams spent between operations, which is the client's overhead.
    pub gap: f64,
    /// From the earliest to the latest first start, seconds.
    pub start_skew_s: f64,
    /// From the earliest to the latest last stop, seconds.
    pub stop_skew_s: f64,
    /// Sum of both skews over the whole time: from 0.2 on, the streams hardly ran together.
    pub skew: f64,
}

impl Streams {
    /// Skew from which on figures for the common time mean little.
    pub const MAX_SKEW: f64 = 0.2;

    /// True if the streams started or stopped too far apart.
    #[must_use]
    pub fn is_skewed(&self) -> bool {
        self.skew >= Self::MAX_SKEW
    }
}

/// Successful operations of one range of sizes.
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
    /// Pairs of a quantile and its bandwidth, 10^6 bits per second.
    pub percentiles: Vec<(f64, f64)>,
}

/// A condition that a phase had to meet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// The quantity that is limited, such as `share of failed operations`.
    pub what: String,
    /// Largest value at which the phase passes.
    pub limit: f64,
    /// The measured value.
    pub measured: f64,
    /// Whether it passed.
    pub passed: bool,
}

/// Popularity of the objects of one operation; it is part of the identity of a result.
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
    /// Effective number of keys, as realised.
    pub effective: f64,
}

impl PopularityId {
    /// One line of text: `get zipf(0.99) over 100000: top 1 7.8 % (theory 7.8 %), …`.
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
