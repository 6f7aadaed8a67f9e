//! When the phase stops, and how long agents may take.
//!
//! Every wait has a deadline, so a message that never comes cannot block the run:
//!
//! | waits for | ends after |
//! |---|---|
//! | sessions of all agents | 2 minutes |
//! | the end of a phase with a time limit | its limit, its drain and a minute |
//! | the end after a stop | the drain and a minute; 20 s after an abort |
//! | the agreement of ranks | as for the end of the phase; an agent that is lost or ends before it stops all |
//! | the next interval of an agent | three time-outs, at least 30 s |
//! | any message | the time-out (on the network thread) |
//!
//! An agent that misses a deadline is lost. So is one that stops its load without being told to, as it does
//! when it takes the coordinator for lost. Its intervals are kept, the other agents finish, and the phase
//! ends as aborted: part of the load is missing, so the result is incomplete.

use std::time::{Duration, Instant};

use bucketload_core::agent::AgentState;
use bucketload_core::plan::PhaseKind;
use bucketload_core::sink::PhaseEnd;
use bucketload_run::{Filling, RunError, StopLevel, now_ns};

use super::PhaseCourse;
use crate::message::ToAgent;

/// How long agents may take to open their sessions.
pub(super) const READY_TIMEOUT: Duration = Duration::from_secs(120);
/// How long the end may take beyond the plan.
pub(super) const END_GRACE: Duration = Duration::from_secs(60);
/// How long an aborted phase may take to end.
const ABORT_TIMEOUT: Duration = Duration::from_secs(20);
/// Minimum time that an agent may take for its next interval.
const SLOW: Duration = Duration::from_secs(30);

impl PhaseCourse<'_> {
    /// Refuses to continue with an incomplete data set, as a local run does.
    pub(super) fn check_preparation(&mut self) {
        // Works on named objects have their own limit of acceptable failures.
        let prepares = self.plan.kind == PhaseKind::Prepare && !self.remote.plan.is_named();
        let totals = self.remote.merger.totals;
        let (failed, all) = (totals.failed, totals.failed + totals.ok);
        let complete = self.done.iter().all(Option::is_some);
        if prepares
            && self.start_ns > 0
            && self.failed.is_none()
            && failed * 100 > all
            && (complete || failed >= 100)
        {
            self.failed = Some(RunError::Prepare { failed, all });
            self.end = Some(PhaseEnd::Aborted);
            self.tell(StopLevel::Finish);
        }
    }

    /// Stops when another session holds the data set that the phase fills. The caller knows which.
    pub(super) fn look_at_holder(&mut self) {
        if self.filling.is_some_and(Filling::is_given_up) && self.stop_level == StopLevel::Run {
            self.end = Some(PhaseEnd::Aborted);
            self.tell(StopLevel::Finish);
        }
    }

    /// Passes the user's request to stop on.
    pub(super) fn look_at_stop(&mut self) {
        let wanted = self.stop.level();
        if wanted > self.stop_level {
            let end = match wanted {
                StopLevel::Abort => PhaseEnd::Aborted,
                _ => PhaseEnd::Interrupted,
            };
            if self.failed.is_none() {
                self.end = Some(end);
            }
            self.tell(wanted);
        }
    }

    pub(super) fn tell(&mut self, level: StopLevel) {
        if level > self.stop_level {
            self.stop_level = level;
            let number = if level == StopLevel::Abort { 2 } else { 1 };
            self.remote.fleet.tell_all(&ToAgent::Stop { level: number });
            match level {
                StopLevel::Abort => self.deadline = Some(Instant::now() + ABORT_TIMEOUT),
                _ => self.end_within(END_GRACE),
            }
        }
    }

    /// Agents that have not finished after the drain and `grace` count as lost.
    pub(super) fn end_within(&mut self, grace: Duration) {
        let latest = Instant::now() + Duration::from_nanos(self.plan.limits.drain_ns) + grace;
        self.deadline = Some(self.deadline.map_or(latest, |known| known.min(latest)));
    }

    pub(super) fn look_at_deadlines(&mut self) {
        let late = self.deadline.is_some_and(|at| Instant::now() > at);
        let slow = SLOW.max(3 * self.remote.fleet.timeout);
        let patience_ns = u64::try_from(slow.as_nanos()).unwrap_or(u64::MAX);
        let interval_ns = u64::try_from(self.remote.interval.as_nanos()).unwrap_or(u64::MAX);
        let now = now_ns();
        for rank in 0..self.done.len() {
            if self.is_out(rank) {
                continue;
            }
            let owed = self.remote.merger.owed(rank);
            let silent = self.start_ns > 0
                && owed.is_some_and(|index| {
                    let due = (index + 1).saturating_mul(interval_ns);
                    now.saturating_sub(self.start_ns.saturating_add(due)) > patience_ns
                });
            let reason = match (late, self.start_ns) {
                (true, 0) => format!(
                    "it did not open its sessions within {} s",
                    READY_TIMEOUT.as_secs()
                ),
                (true, _) => "it did not end the phase in time".to_owned(),
                (false, _) if silent => {
                    format!("it has delivered no interval for {} s", slow.as_secs())
                }
                (false, _) => continue,
            };
            self.fail(rank as u32, AgentState::Lost, &reason);
        }
    }
}
