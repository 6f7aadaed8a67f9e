//! What is shown of a run: the form in which pages, terminals and programs get it.

use serde::{Deserialize, Serialize};

/// One operation class in one bin of time. Rates are per second of measured time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassPoint {
    /// Operations that succeeded.
    pub ops_per_s: f64,
    /// Object bytes of these.
    pub bytes_per_s: f64,
    /// Operations that failed.
    pub failed_per_s: f64,
    /// Median response time, nanoseconds; percentiles are exact to 1/32, the report has them to 1/1000.
    pub p50_ns: u64,
    /// 95th percentile, nanoseconds.
    pub p95_ns: u64,
    /// 99th percentile, nanoseconds.
    pub p99_ns: u64,
    /// Longest response time, nanoseconds, exactly.
    pub max_ns: u64,
}

/// One bin of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Start of the bin since the start of the phase, seconds.
    pub t_s: f64,
    /// Operations that fell due, per second.
    pub offered_per_s: f64,
    /// Most operations under way at the end of an interval.
    pub in_flight: u64,
    /// By position in [`SeriesView::classes`]; none where the class did nothing, shorter where later
    /// classes were not known yet.
    pub classes: Vec<Option<ClassPoint>>,
}

/// A phase over time, or the end of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SeriesView {
    /// Index of the phase.
    pub phase: usize,
    /// Width of a bin, seconds.
    pub width_s: f64,
    /// Names of the operation classes.
    pub classes: Vec<String>,
    /// Position of the first of `points`; those before it are as they were told before.
    pub from: usize,
    /// The points.
    pub points: Vec<Point>,
}

/// How far a phase is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PhaseState {
    /// Not begun.
    #[default]
    Waiting,
    /// Under way.
    Running,
    /// Over.
    Done,
}

/// A phase in sum.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseView {
    /// Its name.
    pub name: String,
    /// `init`, `prepare`, `run`, `audit` or `cleanup`.
    pub kind: String,
    /// How far it is.
    pub state: PhaseState,
    /// Why it ended; empty before.
    pub end: String,
    /// Time since its start, or its length, seconds.
    pub elapsed_s: f64,
    /// Its time limit, seconds; 0 for none.
    pub limit_s: f64,
    /// Share of the limit that it is closest to, 0 to 1; none without limits.
    pub share: Option<f64>,
    /// Operations that succeeded.
    pub ok: u64,
    /// Operations that failed.
    pub failed: u64,
    /// Object bytes of the successes.
    pub bytes: u64,
    /// Whether points over time are kept.
    pub has_series: bool,
}

/// Something that does not look right so far. The verdict comes from the whole run, at its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sign {
    /// What it concerns, in one word.
    pub name: String,
    /// The figures.
    pub text: String,
}

/// A run in sum.
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
    /// Index of the phase under way, or of the last one.
    pub current: usize,
    /// All phases of the plan.
    pub phases: Vec<PhaseView>,
    /// What does not look right so far.
    pub signs: Vec<Sign>,
    /// The latest warnings and failures, oldest first.
    pub messages: Vec<String>,
    /// Operations under way.
    pub in_flight: u64,
    /// Busiest load thread's share of a core; none before it is known.
    pub busiest_share: Option<f64>,
    /// Resident memory of the client, bytes.
    pub rss_bytes: u64,
}

/// A run with the points of one phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct View {
    /// The run.
    pub run: RunView,
    /// The phase that is looked at.
    pub series: SeriesView,
}
