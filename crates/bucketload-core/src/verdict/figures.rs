//! The figures behind a verdict.

use serde::{Deserialize, Serialize};

use crate::error::ErrorKind;
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
    /// Of these, operations sent neither by the end of the slice nor within one more interval.
    pub unsent: u64,
}

impl Slice {
    /// Share of offered operations that were sent; 1 for an empty slice.
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
    /// Mean of the last tenth of the window (a single reading is mostly noise).
    pub end: f64,
}

/// The input of [`super::judge`], over the measured window unless noted otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// How the phase ended.
    pub completeness: Completeness,
    /// Whether operations had due instants independent of the store.
    pub open_loop: bool,
    /// Length of the measured window, seconds.
    pub window_s: f64,
    /// Operations that fell due.
    pub offered: u64,
    /// Of these, operations sent neither by the end of the window nor within one more interval.
    pub unsent: u64,
    /// The slice with the lowest send ratio; `None` for windows below 10 s and closed loops.
    pub worst_slice: Option<Slice>,
    /// Operations that succeeded.
    pub ok: u64,
    /// Operations that failed, excluding cancelled ones, and excluding absent objects if the plan does not
    /// count them as failures.
    pub failed: u64,
    /// The most frequent kind of these failures, and their number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub main_failure: Option<(ErrorKind, u64)>,
    /// Whether the phase ended early because nearly all operations failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gave_up: bool,
    /// Operations still in flight at the end of the drain.
    pub cancelled: u64,
    /// Operations handed to a worker, over the whole phase.
    pub issued_in_phase: u64,
    /// Operations that ended in any way, over the whole phase.
    pub ended_in_phase: u64,
    /// Attempts beyond the first.
    pub retries: u64,
    /// Arrivals that found the in-flight cap reached.
    pub capped: u64,
    /// The in-flight cap; 0 for closed loops.
    pub max_in_flight: u64,
    /// Successful operations per second.
    pub ok_per_s: f64,
    /// 99th percentile of timer lateness plus build time, nanoseconds.
    pub late_p99_ns: u64,
    /// Median service time, nanoseconds.
    pub service_p50_ns: u64,
    /// 99th percentile of the service time, nanoseconds.
    pub service_p99_ns: u64,
    /// 99th percentile of the response time, nanoseconds.
    pub response_p99_ns: u64,
    /// CPU share of the busiest load thread, 0 to 1; `None` if not measured, or if the thread spins on
    /// request, so that its share means nothing.
    pub busiest_thread: Option<f64>,
    /// CPU time of the program that an operation starts, divided by the operation's mean service time; `None`
    /// if operations start no program or it was not measured. Above 1 the program uses several cores.
    pub program: Option<f64>,
    /// Busy share of all cores of the machine, soft interrupts included, 0 to 1.
    pub machine_busy: Option<f64>,
    /// Share of the machine's CPU time taken by the hypervisor, 0 to 1.
    pub machine_steal: Option<f64>,
    /// Share of the network interface's line rate in the busier direction, 0 to 1; `None` if the line rate is
    /// unknown.
    pub nic: Option<f64>,
    /// CPU time of the client process, and of programs that it ran, per operation, nanoseconds.
    pub cpu_ns_per_op: Option<f64>,
    /// The null target driven with the same schedule.
    pub calibration: Option<Calibration>,
    /// Largest step of the wall clock relative to the monotonic clock between two intervals of the run,
    /// nanoseconds.
    pub wall_step_ns: u64,
    /// Growth of the backlog; `None` for closed loops and windows that are too short.
    pub backlog: Option<Backlog>,
    /// Growth of the number of active jobs; `None` for models without openly arriving jobs and for windows
    /// that are too short.
    pub jobs: Option<Backlog>,
    /// Steadiness of each assessed series, by name; empty if the phase requests no assessment.
    pub steadiness: Vec<(String, Assessment)>,
}

impl Figures {
    /// Whether more than half of the operations failed, or the phase ended early because nearly all did.
    #[must_use]
    pub fn mostly_failed(&self) -> bool {
        self.gave_up || self.failed > self.ok
    }
}
