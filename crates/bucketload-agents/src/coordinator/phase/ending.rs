//! How the phase ended, from what each agent says of its end.

use bucketload_core::sink::{Event, PhaseEnd, RunSink};
use bucketload_run::{PhaseSummary, PhaseTotals, RunError, now_ns};

use super::PhaseCourse;
use crate::tally::shifted;

impl PhaseCourse<'_> {
    /// Reports how the phase ended.
    pub(super) fn finish(self, sink: &mut dyn RunSink) -> Result<PhaseSummary, RunError> {
        if let Some(log) = self.options.op_log.as_ref().filter(|_| self.start_ns > 0) {
            self.remote.fleet.relay.end(log);
        }
        let parts = || {
            let parts = self.done.iter().zip(&self.offsets);
            parts.filter_map(|(part, offset)| part.map(|part| (part, *offset)))
        };
        let started = self.start_ns > 0;
        let now = now_ns();
        let start_ns = if started { self.start_ns } else { now };
        let ends: Vec<_> = self.done.iter().map(|part| Some((*part)?.end)).collect();
        let end = match self.failed {
            Some(_) => self.end.unwrap_or(PhaseEnd::Aborted),
            None => end_of(&ends, self.end),
        };
        let offered_until = parts().map(|(part, offset)| shifted(part.at_ns, offset));
        let at_ns = match end {
            PhaseEnd::TimeLimit => start_ns.saturating_add(self.plan.limits.duration_ns),
            // The load was incomplete from the instant at which the first agent stopped.
            PhaseEnd::Converged | PhaseEnd::Failing | PhaseEnd::Interrupted | PhaseEnd::Aborted => {
                offered_until.min().unwrap_or(now)
            }
            PhaseEnd::Complete | PhaseEnd::ByteLimit => offered_until.max().unwrap_or(now),
        };
        let drained = parts().map(|(part, offset)| shifted(part.drained_ns, offset));
        let drained_ns = drained.max().unwrap_or(now).max(start_ns);
        let totals = self.remote.merger.totals;
        let summary = PhaseSummary {
            phase: self.phase,
            start_ns,
            at_ns: at_ns.max(start_ns),
            drained_ns,
            end,
            totals: PhaseTotals {
                offered: totals.offered,
                issued: totals.issued,
                ok: totals.ok,
                failed: totals.failed,
                cancelled: totals.cancelled,
                bytes: totals.bytes,
            },
        };
        if let Some(rows) = self.rows {
            sink.event(&Event::Rows(rows));
        }
        if let Some(ranks) = self.ranks {
            sink.event(&Event::Ranks(ranks));
        }
        if started {
            sink.event(&Event::PhaseEnded {
                phase: self.phase,
                at_ns: summary.at_ns,
                end,
                drained_ns,
            });
        }
        self.failed.map_or(Ok(summary), Err)
    }
}

/// Whether a phase with this end followed its plan, rather than being stopped.
pub(super) const fn is_planned(end: PhaseEnd) -> bool {
    matches!(
        end,
        PhaseEnd::Complete | PhaseEnd::TimeLimit | PhaseEnd::ByteLimit
    )
}

/// How a phase ended whose agents ended with `ends` (`None`: without a result), if it was stopped with `stopped`.
fn end_of(ends: &[Option<PhaseEnd>], stopped: Option<PhaseEnd>) -> PhaseEnd {
    // A stop request that came after the phase's own end did not end it.
    if !ends.iter().all(|end| end.is_some_and(is_planned)) {
        return stopped.unwrap_or(PhaseEnd::Aborted);
    }
    let limits = [PhaseEnd::ByteLimit, PhaseEnd::TimeLimit];
    let reached = limits.into_iter().find(|end| ends.contains(&Some(*end)));
    reached.unwrap_or(PhaseEnd::Complete)
}

#[cfg(test)]
mod tests {
    use super::PhaseEnd::{Aborted, Complete, Interrupted, TimeLimit};
    use super::*;

    #[test]
    fn a_phase_is_complete_only_if_every_agent_followed_the_plan() {
        let (planned, stopped) = (Some(TimeLimit), Some(Interrupted));
        assert_eq!(end_of(&[planned, Some(Complete)], None), TimeLimit);
        assert_eq!(end_of(&[planned, planned], stopped), TimeLimit, "too late");
        assert_eq!(end_of(&[planned, stopped], stopped), Interrupted);
        for lost in [[None, None], [planned, None], [planned, Some(Aborted)]] {
            assert_eq!(end_of(&lost, None), Aborted, "{lost:?}");
        }
    }
}
