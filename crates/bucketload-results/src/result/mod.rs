//! The result of a run: every figure that any output shows, computed once.
//!
//! [`RunResult`] is what `--output json` prints. Its form is versioned by [`SCHEMA`]: fields may be
//! added under the same number; removing one or changing its meaning raises it. Names end in their
//! unit (`_ns`, `_s`, `_bytes`, `_per_s`); shares and ratios have none. Instants are nanoseconds
//! since the run's epoch unless they are called `unix`.
//!
//! Plain figures are declared in [`figure`]. [`phase`] holds those of one phase, [`accounting`] what only some phases state,
//! [`latency`] those of one duration, [`series`] what changes over time, [`balance`] how load was
//! spread and [`realised`] how the workload's laws came out.

pub mod accounting;
pub mod balance;
pub mod figure;
pub mod latency;
pub mod model;
pub mod oracle;
pub mod ossperf;
pub mod phase;
pub mod realised;
pub mod rounds;
pub mod series;

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
pub use figure::Computed;
pub use latency::{Cdf, Latency, Percentile};
pub use model::{JobsResult, ReplayResult, SpanResult};
pub use phase::{
    ClassResult, ClientUse, ErrorCount, PartResult, PhaseResult, Rates, SlowestRequests,
    SteadySeries, Totals, Window,
};
pub use rounds::{RoundsResult, StepResult};

pub use realised::{Realised, RealisedPopularity, RealisedSizes, SizeQuantile, TopShare};
pub use series::{Dispersion, HeatMap, HistBin, LatencyOverTime, Series, ThroughputDistribution};

/// Version of the JSON form.
pub const SCHEMA: u32 = 1;

/// Everything that is known about a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Version of this form, [`SCHEMA`].
    pub schema: u32,
    /// What was run, on what.
    pub run: RunHeader,
    /// Whether to believe it: the gravest verdict of the measuring phases.
    pub verdict: Verdict,
    /// The phases that have intervals or events, in order.
    pub phases: Vec<PhaseResult>,
    /// How load was spread over the store's data nodes; `None` unless their placement was given.
    pub nodes: Option<NodeBalance>,
    /// The null target driven with the same schedule.
    pub calibration: Option<Calibration>,
    /// Warnings given during the run.
    pub warnings: Vec<String>,
    /// The first failures of each kind.
    pub failures: Vec<FailureExample>,
    /// What the consistency oracle found; absent unless it judged the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oracle: Option<OracleResult>,
    /// The six steps of OSSperf; only of workloads that consist of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ossperf: Option<Ossperf>,
    /// The scores of IO500; only of its runs, and only where the configuration could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io500: Option<ScoreTable>,
    /// How soon listings showed what was written and deleted; only of works in rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<RoundsResult>,
    /// What could not be read of the run directory.
    pub damage: Damage,
}

impl RunResult {
    /// The phases that measure (not preparation or clean-up).
    pub fn measured(&self) -> impl Iterator<Item = &PhaseResult> {
        self.phases.iter().filter(|p| p.is_measured())
    }
}

/// What was run, on what: the manifest without the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct RunHeader {
    /// Identifier of the run.
    pub run_id: String,
    /// Version of the tool.
    pub version: String,
    /// How far the run has come.
    pub status: Status,
    /// What went wrong, for an aborted run.
    pub error: Option<String>,
    /// Name of the workload.
    pub workload: String,
    /// Its profile; empty when it has none.
    pub profile: String,
    /// Name of another benchmark whose published procedure was reproduced; empty for none. Such
    /// results stand in no table with others.
    #[serde(default)]
    pub compat: String,
    /// Identity of what is measured.
    pub scenario_hash: String,
    /// Fingerprint of the first operations offered; empty when it was not recorded.
    #[serde(default)]
    pub schedule_hash: String,
    /// Popularity of every operation that has one, in theory and as realised.
    #[serde(default)]
    pub popularity: Vec<PopularityId>,
    /// Seed of every random stream.
    pub seed: u64,
    /// Factor applied to object counts.
    pub scale: f64,
    /// Factor applied to all sizes; results with different factors are not comparable.
    #[serde(default = "one")]
    pub size_scale: f64,
    /// Why the data set has its size; empty when it is as the workload states.
    pub scale_note: String,
    /// What the user stated of the target, as name and value: durability, deployment, version.
    #[serde(default)]
    pub facts: Vec<(String, String)>,
    /// Whose objects were read, for runs on those of an earlier one; else empty.
    #[serde(default)]
    pub data_note: String,
    /// Content of objects, in words.
    pub payload: String,
    /// Whether every byte read was compared with what was written.
    pub verify: bool,
    /// The target.
    pub target: String,
    /// How the driver talks to it.
    pub driver: DriverFacts,
    /// The load generator.
    pub client: ClientFacts,
    /// The machine it ran on.
    pub host: HostFacts,
    /// The operation log; `None` when none was asked for.
    pub op_log: Option<OpLogFacts>,
    /// The command line.
    pub command_line: Vec<String>,
    /// Wall-clock start, RFC 3339 in UTC.
    pub started: String,
    /// Wall-clock start, nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// Wall-clock end, nanoseconds since 1970; 0 when unknown.
    pub ended_unix_ns: u64,
    /// The workload as the user wrote it (TOML).
    pub workload_source: String,
    /// The trace, for a replay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceInput>,
}

bucketload_core::serde_once!(RunHeader);

/// The factor of results from before there was one.
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
