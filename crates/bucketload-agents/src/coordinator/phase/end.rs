//! How a phase on agents ended: its instants, its totals, its last events.

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
        let ended = |end| parts().any(|(part, _)| part.end == end);
        let own_end = match () {
            () if ended(PhaseEnd::ByteLimit) => PhaseEnd::ByteLimit,
            () if ended(PhaseEnd::TimeLimit) => PhaseEnd::TimeLimit,
            () => PhaseEnd::Complete,
        };
        // A stop request that came after the phase's own end did not end it.
        let by_itself = parts().all(|(part, _)| is_planned(part.end));
        let end = self.end.filter(|_| !by_itself || self.failed.is_some());
        let end = end.unwrap_or(own_end);
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
