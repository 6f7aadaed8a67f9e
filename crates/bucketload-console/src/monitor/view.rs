//! The views of a run, as pages, terminals and programs receive them.

use serde::{Deserialize, Serialize};

/// One operation class in one bin of time. Rates are per second of measured time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassPoint {
    /// Operations that succeeded.
    pub ops_per_s: f64,
    /// Object bytes of the successful operations.
    pub bytes_per_s: f64,
    /// Operations that failed.
    pub failed_per_s: f64,
    /// Median response time, nanoseconds. Percentiles are accurate to 1/32; the report has them to 1/1000.
    pub p50_ns: u64,
    /// 95th percentile, nanoseconds.
    pub p95_ns: u64,
    /// 99th percentile, nanoseconds.
    pub p99_ns: u64,
    /// Longest response time, nanoseconds, exact.
    pub max_ns: u64,
}

/// One bin of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Start of the bin since the start of the phase, seconds.
    pub t_s: f64,
    /// Operations that came due, per second.
    pub offered_per_s: f64,
    /// Maximum number of operations in flight at the end of an interval.
    pub in_flight: u64,
    /// Indexed like [`SeriesView::classes`]; `None` for an idle class, shorter before later classes appeared.
    pub classes: Vec<Option<ClassPoint>>,
}

/// The points of a phase, or the latest of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SeriesView {
    /// Index of the phase.
    pub phase: usize,
    /// Width of a bin, seconds.
    pub width_s: f64,
    /// Names of the operation classes.
    pub classes: Vec<String>,
    /// Index of the first of `points`; earlier points have not changed since they were sent.
    pub from: usize,
    /// The points.
    pub points: Vec<Point>,
}

/// The state of a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PhaseState {
    /// Not started.
    #[default]
    Waiting,
    /// Running.
    Running,
    /// Ended.
    Done,
}

/// The summary of a phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseView {
    /// Its name.
    pub name: String,
    /// `init`, `prepare`, `run`, `audit` or `cleanup`.
    pub kind: String,
    /// Its state.
    pub state: PhaseState,
    /// Why it ended; empty before.
    pub end: String,
    /// Time since its start, or its duration, seconds.
    pub elapsed_s: f64,
    /// Its time limit, seconds; 0 for none.
    pub limit_s: f64,
    /// Progress towards the nearest limit, 0 to 1; `None` without limits.
    pub share: Option<f64>,
    /// Operations that succeeded.
    pub ok: u64,
    /// Operations that failed.
    pub failed: u64,
    /// Object bytes of the successful operations.
    pub bytes: u64,
    /// Whether points are available.
    pub has_series: bool,
}

/// A sign of trouble so far. The verdict comes from the whole run, at its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarningSign {
    /// The topic, in one word.
    pub name: String,
    /// The figures.
    pub text: String,
}

/// The summary of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunView {
    /// Identifier of the run.
    pub run_id: String,
    /// Name of the workload.
    pub workload: String,
    /// The target.
    pub target: String,
    /// `running`, `finished`, `interrupted` or `aborted`.
    pub status: String,
    /// The verdict, once there is one.
    pub verdict: Option<String>,
    /// Index of the running phase, or of the last one.
    pub current: usize,
    /// Index of the phase whose figures are shown by default.
    #[serde(default)]
    pub shown: usize,
    /// All phases of the plan.
    pub phases: Vec<PhaseView>,
    /// Signs of trouble so far.
    pub signs: Vec<WarningSign>,
    /// The latest warnings and failures, oldest first.
    pub messages: Vec<String>,
    /// Operations in flight.
    pub in_flight: u64,
    /// Busiest load thread's share of a core; `None` before it is known.
    pub busiest_share: Option<f64>,
    /// Resident memory of the client, bytes.
    pub rss_bytes: u64,
}

/// A run with the points of one phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct View {
    /// The run.
    pub run: RunView,
    /// The selected phase.
    pub series: SeriesView,
}
