//! The figures a verdict rests on.

use serde::{Deserialize, Serialize};

use crate::sink::Calibration;
use crate::stats::steady::Assessment;

/// How the phase ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Completeness {
    /// By its own limits or stopping rule.
    Complete,
    /// The user stopped it.
    Interrupted,
    /// An error stopped it.
    Aborted,
    /// No end was recorded: the process was killed.
    Killed,
}

/// Ten seconds (or the nearest number of whole intervals) of an open-loop schedule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slice {
    /// Start, nanoseconds since the run's epoch.
    pub start_ns: u64,
    /// Operations that fell due.
    pub offered: u64,
    /// Of these, operations not yet sent at the end of the slice nor one interval later.
    pub unsent: u64,
}

impl Slice {
    /// Sends over offered operations; 1 for an empty slice.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        if self.offered == 0 {
            1.0
        } else {
            1.0 - self.unsent as f64 / self.offered as f64
        }
    }
}

/// Growth of the operations in flight over the measured window of an open loop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Backlog {
    /// Slope of the fitted line, operations per second.
    pub slope_per_s: f64,
    /// Two-sided p-value of the slope, on batch means.
    pub p_value: f64,
    /// Mean of the first quarter of the window.
    pub first_quarter: f64,
    /// Mean of the last tenth of the window (one reading alone is mostly noise).
    pub end: f64,
}

/// Everything [`super::judge`] looks at, over the measured window unless said otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// How the phase ended.
    pub completeness: Completeness,
    /// Whether operations had due instants that did not depend on the store.
    pub open_loop: bool,
    /// Length of the measured window, seconds.
    pub window_s: f64,
    /// Operations that fell due.
    pub offered: u64,
    /// Of these, operations not sent by the end of the window nor one interval later.
    pub unsent: u64,
    /// The slice with the lowest send ratio; `None` for windows below 10 s and closed loops.
    pub worst_slice: Option<Slice>,
    /// Operations that succeeded.
    pub ok: u64,
    /// Operations that failed, without cancelled ones and without absent objects where the plan
    /// says that these are no failure.
    pub failed: u64,
    /// Operations that were still under way when the drain ended.
    pub cancelled: u64,
    /// Operations of the whole phase that were handed to a worker.
    pub issued_in_phase: u64,
    /// Operations of the whole phase that ended, in whatever way.
    pub ended_in_phase: u64,
    /// Attempts beyond the first.
    pub retries: u64,
    /// Arrivals that found the in-flight cap reached.
    pub capped: u64,
    /// The in-flight cap; 0 for closed loops.
    pub max_in_flight: u64,
    /// Operations that succeeded, per second.
    pub ok_per_s: f64,
    /// 99th percentile of timer lateness plus build time, nanoseconds.
    pub late_p99_ns: u64,
    /// Median service time, nanoseconds.
    pub service_p50_ns: u64,
    /// 99th percentile of the service time, nanoseconds.
    pub service_p99_ns: u64,
    /// 99th percentile of the response time, nanoseconds.
    pub response_p99_ns: u64,
    /// CPU share of the busiest load thread, 0 to 1; `None` when not measured, or when the thread
    /// spins by request and its share says nothing.
    pub busiest_thread: Option<f64>,
    /// CPU time of the program that an operation starts over the operation's mean service time; `None` where
    /// operations start none, or it was not measured. Above 1 the program computes on several cores.
    pub program: Option<f64>,
    /// Busy share of all cores of the machine, soft interrupts included, 0 to 1.
    pub machine_busy: Option<f64>,
    /// Share of the machine's CPU time that the hypervisor took away, 0 to 1.
    pub machine_steal: Option<f64>,
    /// Share of the network interface's line rate in the busier direction, 0 to 1; `None` when the
    /// line rate is unknown.
    pub nic: Option<f64>,
    /// CPU time of the client process, and of programs that it ran, per operation, nanoseconds.
    pub cpu_ns_per_op: Option<f64>,
    /// The null target driven with the same schedule.
    pub calibration: Option<Calibration>,
    /// Largest step of the wall clock against the monotonic clock between two intervals of the
    /// run, nanoseconds.
    pub wall_step_ns: u64,
    /// Growth of the backlog; `None` for closed loops and windows that are too short.
    pub backlog: Option<Backlog>,
    /// Growth of the jobs under way; `None` for models without jobs that arrive openly and for
    /// windows that are too short.
    pub jobs: Option<Backlog>,
    /// Steadiness of each series that was assessed, by name; empty when the phase asks for none.
    pub steadiness: Vec<(String, Assessment)>,
}
