//! The figures of one phase.

use bucketload_core::capacity::CheckedObjective;
use bucketload_core::error::ErrorKind;
use bucketload_core::op::OpClass;
use bucketload_core::plan::PhaseKind;
use bucketload_core::record::Part;
use bucketload_core::sink::PhaseEnd;
use bucketload_core::slowest::SlowRequest;
use bucketload_core::stats::batch::Estimate;
use bucketload_core::stats::steady::Assessment;
use bucketload_core::verdict::{Limit, Verdict};
use serde::{Deserialize, Serialize};

use super::{
    Backlog, Bandwidth, Cdf, Computed, EndpointBalance, Gate, HeatMap, JobsResult, KvcacheResult,
    Latency, LatencyOverTime, Realised, ReplayResult, Series, SizeClass, Streams,
    ThroughputDistribution,
};

/// One phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct PhaseResult {
    /// Index in the plan.
    pub index: u16,
    /// Name.
    pub name: String,
    /// Purpose.
    pub kind: PhaseKind,
    /// Whether operations were due independently of the store (any work with arrivals).
    pub open_loop: bool,
    /// How load was generated, as text, one entry per work.
    pub load: Vec<String>,
    /// Why it ended; `None` if not recorded (the process was killed).
    pub end: Option<PhaseEnd>,
    /// The precision at which it could end before its limits, such as `p99 ± 2 %`; absent if it could not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub precision: String,
    /// Its start, nanoseconds since the run's epoch.
    pub started_ns: u64,
    /// Instant of the last offer, nanoseconds since the run's epoch.
    pub offered_until_ns: u64,
    /// Instant at which the last operation had ended, nanoseconds since the run's epoch.
    pub drained_ns: u64,
    /// The part on which the figures below are based.
    pub window: Window,
    /// Counts over the whole phase, including warm-up and drain.
    pub totals: Totals,
    /// Rates over the window.
    pub rates: Rates,
    /// Per work and operation class.
    pub classes: Vec<ClassResult>,
    /// Actual minus intended start of all operations.
    pub lag: Latency,
    /// The client's own share of the lag: timer lateness plus build time.
    pub late: Latency,
    /// Wait for a free worker, of the operations that had to wait.
    pub dispatch: Latency,
    /// TCP connect times.
    pub connect_tcp: Latency,
    /// TLS handshake times.
    pub connect_tls: Latency,
    /// Name resolution times.
    pub connect_dns: Latency,
    /// Time series of the whole phase.
    pub series: Series,
    /// Distribution of the throughput per interval over the window; `None` with fewer than two
    /// intervals.
    pub throughput: Option<ThroughputDistribution>,
    /// Steadiness of each series that was assessed.
    pub steadiness: Vec<SteadySeries>,
    /// Resources that the client used in the window.
    pub client: ClientUse,
    /// Load balance over several endpoints; `None` with a single one.
    pub endpoints: Option<EndpointBalance>,
    /// The slowest requests of the whole phase.
    pub slowest: SlowestRequests,
    /// How far the store lagged behind the arrivals; `None` for closed loops.
    #[serde(default)]
    pub backlog: Option<Backlog>,
    /// Throughput from the streams' point of view, if the workload asks for it.
    #[serde(default)]
    pub streams: Option<Streams>,
    /// Latencies by size, if the workload asks for them.
    #[serde(default)]
    pub size_classes: Vec<SizeClass>,
    /// Conditions that the phase had to meet.
    #[serde(default)]
    pub gates: Vec<Gate>,
    /// The objectives that the user set, compared with the measurements; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objectives: Vec<CheckedObjective>,
    /// Whether to trust the phase; `None` for phases that do not measure.
    pub verdict: Option<Verdict>,
    /// Jobs, for works that consist of them.
    #[serde(default)]
    pub jobs: Option<JobsResult>,
    /// Figures of a replay besides its requests.
    #[serde(default)]
    pub replay: Option<ReplayResult>,
    /// Figures of the key-value cache of a language model; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kvcache: Option<KvcacheResult>,
    /// The workload's laws as realised; empty for phases that do not measure.
    pub realised: Vec<Realised>,
}

bucketload_core::serde_once!(PhaseResult);

impl PhaseResult {
    /// True for phases that measure.
    #[must_use]
    pub fn is_measured(&self) -> bool {
        self.kind == PhaseKind::Run
    }

    /// Whether `offered_bytes` are those of all arrivals. Reads of objects that the workload overwrites have sizes that
    /// nobody knows in advance, and then more was transferred than was known to fall due.
    pub(crate) fn knows_offered_bytes(&self) -> bool {
        self.open_loop && self.totals.offered_bytes >= self.totals.bytes
    }

    /// Name of a class for readers, with its work's name if the phase has several works.
    pub(crate) fn class_name(&self, class: &ClassResult) -> String {
        match self.classes.iter().any(|other| other.work != class.work) {
            true => format!("{} {}", class.work_name, class.class),
            false => class.class.to_string(),
        }
    }
}

/// The slowest requests of a phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SlowestRequests {
    /// How many were recorded individually; the run directory has all of them.
    pub kept: u64,
    /// Mean times of the parts of these requests' response times, nanoseconds.
    pub parts: Vec<(Part, f64)>,
    /// The slowest of them, slowest first.
    pub top: Vec<SlowRequest>,
}

/// The measured part of a phase.
///
/// Rates cover `start_ns..end_ns`. Latencies and counts also include operations that ended after `end_ns`: they
/// fell due inside the window, and without them its slowest operations would be missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Start, nanoseconds since the run's epoch: the end of the warm-up.
    pub start_ns: u64,
    /// End, nanoseconds since the run's epoch: the end of offering, or of the work in phases with a fixed
    /// amount of it.
    pub end_ns: u64,
    /// Warm-up cut off before it, nanoseconds.
    pub warmup_ns: u64,
    /// Intervals inside.
    pub intervals: u64,
}

impl Window {
    /// Length, seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.end_ns.saturating_sub(self.start_ns) as f64 / 1e9
    }
}

/// Counts of a whole phase. `ok + failed + cancelled` is the number of operations that were issued and ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Operations that fell due.
    pub offered: u64,
    /// Operations handed to a worker.
    pub issued: u64,
    /// Operations that succeeded.
    pub ok: u64,
    /// Operations that failed.
    pub failed: u64,
    /// Operations cut off by the end of the run.
    pub cancelled: u64,
    /// Attempts beyond the first.
    pub retries: u64,
    /// Object bytes of operations that succeeded.
    pub bytes: u64,
    /// Object bytes of operations that fell due, as far as known in advance.
    pub offered_bytes: u64,
    /// Arrivals that hit the in-flight cap.
    pub capped: u64,
    /// Connections made.
    pub connects: u64,
    /// Intervals recorded.
    pub intervals: u64,
}

/// Rates over the window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Operations that succeeded, per second.
    pub ops_per_s: Estimate,
    /// Object bytes of operations that succeeded, per second.
    pub bytes_per_s: Estimate,
    /// Operations that fell due, per second.
    pub offered_ops_per_s: f64,
    /// Object bytes of these, as far as known in advance, per second.
    pub offered_bytes_per_s: f64,
    /// Operations that failed, per second.
    pub failed_per_s: f64,
}

/// One operation class of one work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassResult {
    /// Index of the work in the phase.
    pub work: u16,
    /// Name of the work.
    pub work_name: String,
    /// Operation class.
    pub class: OpClass,
    /// Operations that succeeded (window and drain).
    pub ok: u64,
    /// Operations that failed (window and drain).
    pub failed: u64,
    /// Operations cut off by the end of the run.
    pub cancelled: u64,
    /// Attempts beyond the first.
    pub retries: u64,
    /// Object bytes of operations that succeeded (window and drain).
    pub bytes: u64,
    /// Failures by kind, most frequent first; includes cancelled operations.
    pub errors: Vec<ErrorCount>,
    /// Operations that succeeded inside the window, per second.
    pub ops_per_s: Estimate,
    /// Their object bytes, per second.
    pub bytes_per_s: Estimate,
    /// Time from intended start to end.
    pub response: Latency,
    /// Time from actual start to end.
    pub service: Latency,
    /// Time from actual start to first byte of the response.
    pub ttfb: Latency,
    /// Response times of operations that failed.
    pub failed_response: Latency,
    /// The parts of the response times of successful operations, in order; parts that never took any time are
    /// omitted.
    pub anatomy: Vec<PartResult>,
    /// Bandwidth per object, if all have the same size.
    #[serde(default)]
    pub bandwidth: Option<Bandwidth>,
    /// Distribution function of the response time.
    pub response_cdf: Cdf,
    /// Distribution function of the service time.
    pub service_cdf: Cdf,
    /// Response time percentiles over time.
    pub over_time: LatencyOverTime,
    /// Response times over time as a heat map.
    pub heat_map: HeatMap,
    /// Figures computed from the fields above.
    #[serde(flatten)]
    pub figures: Computed,
}

/// A part of the response time, over all successful operations. The means of the parts add up to the mean
/// response time; their percentiles do not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartResult {
    /// The part.
    pub part: Part,
    /// Its share of the sum of all response times.
    pub share: f64,
    /// Operations in which it took any time.
    pub occurred: u64,
    /// Its times, zeros included.
    pub time: Latency,
}

/// The number of failures of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorCount {
    /// The kind.
    pub kind: ErrorKind,
    /// Their number.
    pub count: u64,
}

/// Steadiness of one series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SteadySeries {
    /// Content of the series, such as `service p50 of get`.
    pub name: String,
    /// Length of a bin, nanoseconds.
    pub bin_ns: u64,
    /// The assessment.
    pub assessment: Assessment,
}

/// Resources that the client used in the window. Shares are 0 to 1; `None` if not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientUse {
    /// CPU time of the client process, and of programs that it started, per ended operation, microseconds.
    pub cpu_us_per_op: Option<f64>,
    /// CPU time of the load threads alone per operation, microseconds.
    pub load_cpu_us_per_op: Option<f64>,
    /// CPU share of the busiest load thread.
    pub busiest_thread: Option<f64>,
    /// Share of all cores used by the client process.
    pub process_share: Option<f64>,
    /// Busy share of all cores of the machine, soft interrupts included.
    pub machine_busy: Option<f64>,
    /// Soft-interrupt share of all cores.
    pub machine_softirq: Option<f64>,
    /// Share taken by the hypervisor.
    pub machine_steal: Option<f64>,
    /// Share of the network interface's line rate, busier direction.
    pub nic: Option<f64>,
    /// Largest resident memory of the process, bytes.
    pub rss_max_bytes: u64,
    /// Rate against the null target over the measured rate. The null target speaks no protocol and moves no
    /// bytes, so this is no headroom: `headroom_factor` is.
    pub headroom: Option<f64>,
    /// Share used of what limits the client first: 1 / `headroom_factor`.
    #[serde(default)]
    pub used_share: Option<f64>,
    /// The multiple of the measured rate that this client could have driven by this protocol, with these sizes, on
    /// this machine; 1 or less if it was at its limit. `None` if the CPU time of its threads is unknown.
    #[serde(default)]
    pub headroom_factor: Option<f64>,
    /// What limits the client first.
    #[serde(default)]
    pub headroom_limit: Option<Limit>,
}
