//! The result of a run: every figure that any output shows, computed once.
//!
//! [`RunResult`] is what `--output json` prints. [`SCHEMA`] is the version of its format: adding fields keeps the
//! number; removing a field or changing its meaning raises it. Names end in their unit (`_ns`, `_s`, `_bytes`,
//! `_per_s`); shares and ratios have none. Instants are nanoseconds since the run's epoch unless their name
//! contains `unix`.
//!
//! Plain figures are declared in [`figure`]. [`phase`] has those of one phase, [`accounting`] those that only some
//! phases have, [`latency`] those of one duration, [`series`] the time series, [`balance`] the spread of the
//! load, [`ai`] the figures of training, checkpoints and caches by name, and [`realised`] the workload as realised, compared with its laws.

pub mod accounting;
pub mod ai;
pub mod balance;
pub mod checkpoint;
pub mod figure;
pub mod headline;
pub mod latency;
pub mod metric;
pub mod model;
pub mod oracle;
pub mod ossperf;
pub mod phase;
pub mod realised;
pub mod rounds;
pub mod series;
pub mod summary;
pub mod train;

use crate::drill::DrillResult;
use crate::io500::ScoreTable;
use bucketload_core::driver::DriverFacts;
use bucketload_core::op::OpClass;
use bucketload_core::sink::Calibration;
use bucketload_core::verdict::Verdict;
use serde::{Deserialize, Serialize};

use crate::oplog::OpLogFacts;
use crate::rundir::host::HostFacts;
use crate::rundir::{ClientFacts, Damage, Status, TraceInput};

pub use oracle::OracleResult;
pub use ossperf::{Ossperf, OssperfStep};

pub use accounting::{Backlog, Bandwidth, Gate, PopularityId, SizeClass, Streams};
pub use balance::{EndpointBalance, EndpointResult, NodeBalance, NodeResult};
pub use checkpoint::CheckpointResult;
pub use figure::Computed;
pub use latency::{Cdf, Latency, Percentile};
pub use model::{
    JobsResult, KvClassResult, KvDuration, KvMlperf, KvTarget, KvcacheResult, ReplayResult,
    SpanResult,
};
pub use phase::{
    ClassResult, ClientUse, ErrorCount, PartResult, PhaseResult, Rates, SlowestRequests,
    SteadySeries, Totals, Window,
};
pub use rounds::{RoundsResult, StepResult};

pub use realised::{Realised, RealisedPopularity, RealisedSizes, SizeQuantile, TopShare};
pub use summary::Summary;
pub use train::TrainResult;

pub use series::{Dispersion, HeatMap, HistBin, LatencyOverTime, Series, ThroughputDistribution};

/// Version of the JSON format.
pub const SCHEMA: u32 = 1;

/// The complete result of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Version of this format, [`SCHEMA`].
    pub schema: u32,
    /// The figures that scripts ask for, without levels.
    #[serde(default)]
    pub summary: Summary,
    /// Description of the run.
    pub run: RunHeader,
    /// Whether to trust the result: the worst verdict of the measuring phases.
    pub verdict: Verdict,
    /// The phases that have intervals or events, in order.
    pub phases: Vec<PhaseResult>,
    /// Load balance over the store's data nodes; `None` without a given placement.
    pub nodes: Option<NodeBalance>,
    /// Measurement of the null target with the same schedule.
    pub calibration: Option<Calibration>,
    /// Warnings given during the run.
    pub warnings: Vec<String>,
    /// The first failures of each kind.
    pub failures: Vec<FailureExample>,
    /// Findings of the consistency oracle; absent if it did not judge the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oracle: Option<OracleResult>,
    /// The six steps of OSSperf; only for workloads that consist of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ossperf: Option<Ossperf>,
    /// The scores of IO500; only for its runs, and only if the configuration could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io500: Option<ScoreTable>,
    /// How soon listings reflected writes and deletions; only for works in rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<RoundsResult>,
    /// What users noticed while something was broken; only for drills.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drill: Option<DrillResult>,
    /// Times of checkpoints; only for workloads that consist of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<CheckpointResult>,
    /// How busy the store kept accelerators; only for phases that train.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub train: Vec<TrainResult>,
    /// Unreadable parts of the run directory.
    pub damage: Damage,
}

impl RunResult {
    /// The phases that measure (not preparation or clean-up).
    pub fn measured(&self) -> impl Iterator<Item = &PhaseResult> {
        self.phases.iter().filter(|p| p.is_measured())
    }
}

/// Description of a run: the manifest without the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct RunHeader {
    /// Identifier of the run.
    pub run_id: String,
    /// Version of the tool.
    pub version: String,
    /// How far the run got.
    pub status: Status,
    /// The error of an aborted run.
    pub error: Option<String>,
    /// Name of the workload.
    pub workload: String,
    /// Its profile; empty if it has none.
    pub profile: String,
    /// Name of another benchmark whose published procedure was reproduced; empty for none. Such results must not
    /// be mixed with others.
    #[serde(default)]
    pub compat: String,
    /// Hash of the scenario that was measured.
    pub scenario_hash: String,
    /// Fingerprint of the first operations offered; empty if not recorded.
    #[serde(default)]
    pub schedule_hash: String,
    /// Popularity of every operation that has one, in theory and as realised.
    #[serde(default)]
    pub popularity: Vec<PopularityId>,
    /// Seed of all random streams.
    pub seed: u64,
    /// Factor applied to object counts.
    pub scale: f64,
    /// Factor applied to all sizes; results with different factors are not comparable.
    #[serde(default = "one")]
    pub size_scale: f64,
    /// Why the size of the data set differs from the workload; empty if it does not.
    pub scale_note: String,
    /// Facts about the target from the user, as name and value: durability, deployment, version.
    #[serde(default)]
    pub facts: Vec<(String, String)>,
    /// The earlier run whose objects were read; empty for runs on their own objects.
    #[serde(default)]
    pub data_note: String,
    /// Description of the objects' content.
    pub payload: String,
    /// Whether every byte read was compared with the bytes written.
    pub verify: bool,
    /// The target.
    pub target: String,
    /// The driver and its settings.
    pub driver: DriverFacts,
    /// The load generator.
    pub client: ClientFacts,
    /// The machine it ran on.
    pub host: HostFacts,
    /// The operation log; `None` if none was requested.
    pub op_log: Option<OpLogFacts>,
    /// The command line.
    pub command_line: Vec<String>,
    /// Wall-clock start, RFC 3339 in UTC.
    pub started: String,
    /// Wall-clock start, nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// Wall-clock end, nanoseconds since 1970; 0 if unknown.
    pub ended_unix_ns: u64,
    /// The workload as the user wrote it (TOML).
    pub workload_source: String,
    /// The trace, for a replay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceInput>,
}

bucketload_core::serde_once!(RunHeader);

/// Size factor of results that lack the field because they are older.
const fn one() -> f64 {
    1.0
}

/// One failed operation in full.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailureExample {
    /// Index of the phase.
    pub phase: u16,
    /// Operation class.
    pub class: OpClass,
    /// Key or bucket concerned.
    pub key: String,
    /// Kind, status and detail.
    pub error: String,
    /// Instant, nanoseconds since the run's epoch.
    pub at_ns: u64,
}
