//! The intervals of the drilled phase, condensed to what the figures need. Two passes, because the limit that tells slow
//! operations follows from the baseline.

use std::collections::BTreeMap;

use bucketload_core::error::ErrorKind;
use bucketload_core::histogram::Histogram;

use crate::error::ResultsError;
use crate::rundir::{Metric, RunDir, empty_interval};

/// An interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slot {
    /// Start, nanoseconds since the run's epoch.
    pub(crate) start_ns: u64,
    /// End.
    pub(crate) end_ns: u64,
    /// Operations that fell due.
    pub(crate) offered: u64,
    /// Operations that succeeded.
    pub(crate) ok: u64,
    /// Successes whose response time exceeded the limit of the band.
    pub(crate) slow: u64,
    /// Successes whose response time exceeded what three quarters of the baseline keep.
    pub(crate) late: u64,
    /// Successes within the deadline.
    pub(crate) good: u64,
    /// Operations that failed.
    pub(crate) failed: u64,
    /// Operations that were cut off by the end.
    pub(crate) cancelled: u64,
    /// Attempts beyond the first.
    pub(crate) retries: u64,
    /// Operations that had fallen due and had not ended, at the end of the interval.
    pub(crate) backlog: u64,
}

/// A part of the drill.
#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    pub(crate) response: Histogram,
    pub(crate) errors: BTreeMap<ErrorKind, u64>,
    /// Successes and failures per endpoint; empty if there is only one.
    pub(crate) endpoints: Vec<(u64, u64)>,
}

/// A second of the picture.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wave {
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) offered: u64,
    pub(crate) ok: u64,
    pub(crate) good: u64,
    pub(crate) failed: u64,
    pub(crate) p50_ns: u64,
    pub(crate) p99_ns: u64,
}

/// Spans of the drill, nanoseconds since the run's epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spans {
    pub(crate) phase: u16,
    pub(crate) baseline: (u64, u64),
    /// From the first break to the last mend.
    pub(crate) fault: (u64, u64),
    pub(crate) wave_ns: u64,
    pub(crate) not_found_is_failure: bool,
}

/// The response times of the baseline.
pub(crate) fn baseline(run: &RunDir, spans: &Spans) -> Result<Histogram, ResultsError> {
    let mut all = Histogram::new();
    let (mut reader, mut interval) = (run.intervals()?, empty_interval());
    while let Some(line) = reader.next_line()? {
        let (from, to) = spans.baseline;
        if line.phase != spans.phase || line.start_ns < from || line.end_ns > to {
            continue;
        }
        reader.load(&line, &mut interval, |metric| metric == Metric::Response)?;
        interval
            .tally
            .cells
            .iter()
            .for_each(|cell| all.merge(&cell.response));
    }
    Ok(all)
}

/// Everything from the second pass.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    pub(crate) slots: Vec<Slot>,
    pub(crate) waves: Vec<Wave>,
    pub(crate) baseline: Part,
    pub(crate) fault: Part,
    pub(crate) after: Part,
}

/// Condenses the intervals. An operation is late beyond `usual_ns`, slow beyond `limit_ns` and good within `deadline_ns`.
pub(crate) fn slots(
    run: &RunDir,
    spans: &Spans,
    (usual_ns, limit_ns): (u64, u64),
    deadline_ns: u64,
) -> Result<Slots, ResultsError> {
    let mut all = Slots::default();
    let (mut backlog, mut response) = (0u64, Histogram::new());
    let mut wave = Wave::default();
    let (mut reader, mut interval) = (run.intervals()?, empty_interval());
    while let Some(line) = reader.next_line()? {
        if line.phase != spans.phase {
            continue;
        }
        reader.load(&line, &mut interval, |metric| metric == Metric::Response)?;
        let mut slot = Slot {
            start_ns: line.start_ns,
            end_ns: line.end_ns,
            offered: line.offered,
            ..Slot::default()
        };
        let (from, to) = spans.fault;
        let part = match (line.start_ns, line.end_ns) {
            (start, end) if start >= spans.baseline.0 && end <= spans.baseline.1 => {
                Some(&mut all.baseline)
            }
            (start, end) if end > from && start < to => Some(&mut all.fault),
            (start, _) if start >= to => Some(&mut all.after),
            _ => None,
        };
        let mut ignored = Part::default();
        let part = part.unwrap_or(&mut ignored);
        for cell in &line.cells {
            slot.ok += cell.ok;
            slot.retries += cell.retries;
            for (kind, count) in &cell.failed {
                match kind {
                    ErrorKind::Cancelled => slot.cancelled += count,
                    ErrorKind::NotFound if !spans.not_found_is_failure => {
                        // Answered as expected; its time is not among the successes.
                        slot.ok += count;
                        slot.good += count;
                    }
                    kind => {
                        slot.failed += count;
                        *part.errors.entry(*kind).or_default() += count;
                    }
                }
            }
        }
        for cell in &interval.tally.cells {
            let h = &cell.response;
            slot.late += h.count() - h.count_at_most(usual_ns);
            slot.slow += h.count() - h.count_at_most(limit_ns);
            slot.good += h.count_at_most(deadline_ns);
            response.merge(h);
            part.response.merge(h);
        }
        part.endpoints
            .resize(part.endpoints.len().max(line.endpoints.len()), (0, 0));
        for (sum, endpoint) in part.endpoints.iter_mut().zip(&line.endpoints) {
            sum.0 += endpoint.ok;
            sum.1 += endpoint.failed;
        }
        backlog = (backlog + slot.offered).saturating_sub(slot.ok + slot.failed + slot.cancelled);
        slot.backlog = backlog;
        if wave.end_ns == 0 {
            wave.start_ns = slot.start_ns;
        }
        wave.end_ns = slot.end_ns;
        wave.offered += slot.offered;
        wave.ok += slot.ok;
        wave.good += slot.good;
        wave.failed += slot.failed;
        if wave.end_ns - wave.start_ns + (slot.end_ns - slot.start_ns) / 2 >= spans.wave_ns {
            wave.p50_ns = response.quantile_ns(0.5);
            wave.p99_ns = response.quantile_ns(0.99);
            all.waves.push(std::mem::take(&mut wave));
            response.clear();
        }
        all.slots.push(slot);
    }
    Ok(all)
}
