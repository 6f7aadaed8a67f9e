//! The busiest stretch of a trace, with which a replay is calibrated.
//!
//! The trace is read once, as the replay will read it. The second in which most requests are due is kept in memory and
//! repeated for as long as the calibration lasts. A closed loop has no busiest second; there it is the beginning of
//! the trace.

use std::sync::Arc;

use bucketload_core::plan::{
    LatePolicy, OnAbsent, PhasePlan, ReplayPart, ReplayPlan, ReplayTiming,
};
use bucketload_core::trace::{Batch, RecordStream, TraceError, TraceSource};

use super::reader::{Shaper, operation};
use crate::source::body_bytes;
use crate::stop::{StopHandle, StopLevel};

/// Length of a stretch in the replay's time, nanoseconds.
const STRETCH_NS: u64 = 1_000_000_000;
/// Most requests of a stretch that are kept.
const KEPT: usize = 16_384;
/// Passes over a repeated trace that are searched: from the second on, the copies overlap alike in all passes.
const LAPS: u32 = 2;

/// Requests of a trace, repeated endlessly.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stretch {
    /// The requests, with due instants relative to the beginning of the stretch.
    requests: Arc<Batch>,
    /// Time from one repetition to the next, nanoseconds.
    period_ns: u64,
    /// Requests in the busiest second; 0 in a closed loop.
    pub(crate) rate: f64,
}

impl Stretch {
    /// Finds the busiest stretch of the requests that `replay` takes from `trace` in `phase`; it is empty when there
    /// are none. A stop ends the search, and the busiest stretch so far counts.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(crate) fn find(
        trace: &dyn TraceSource,
        replay: &ReplayPlan,
        phase: &PhasePlan,
        stop: &StopHandle,
    ) -> Result<Self, TraceError> {
        let mut stream = match replay.part {
            ReplayPart::Preload => trace.preload()?,
            ReplayPart::Requests => trace.records()?,
        };
        let end_ns = match phase.limits.duration_ns {
            0 => u64::MAX,
            duration => duration,
        };
        let paced = replay.timing.speed().is_some();
        let mut shaper = Shaper::new(&replay.timing);
        let (mut busiest, mut current) = (Second::default(), Second::default());
        let mut batch = Batch::new();
        'trace: while stop.level() == StopLevel::Run && stream.next_batch(&mut batch)? {
            for recorded in batch.iter() {
                let mut record = recorded.record;
                if record.lap >= LAPS {
                    break 'trace;
                }
                let left_out = replay.on_absent == OnAbsent::Skip && record.absent;
                let Some(op) = operation(&recorded).filter(|_| !left_out) else {
                    continue;
                };
                let times = std::mem::replace(&mut record.repeat, 1).max(1);
                for _ in 0..times {
                    let (due_ns, _) = shaper.due(record.ts_ns, body_bytes(&op));
                    if due_ns >= end_ns || (!paced && current.count >= KEPT as u64) {
                        break 'trace;
                    }
                    if due_ns / STRETCH_NS != current.number {
                        current.end(&mut busiest, due_ns / STRETCH_NS);
                    }
                    current.count += 1;
                    if current.requests.len() < KEPT {
                        record.ts_ns = (due_ns % STRETCH_NS) as i64;
                        current.requests.push_recorded(&recorded, record);
                    }
                }
            }
        }
        current.end(&mut busiest, 0);
        let rate = match paced {
            true => busiest.count as f64 * 1e9 / STRETCH_NS as f64,
            false => 0.0,
        };
        let kept = busiest.requests.len();
        // If only part of the second's requests are kept, the period is that part of a second. But no repetition begins
        // before the previous one has ended.
        let share_ns = (STRETCH_NS * kept as u64).div_ceil(busiest.count.max(1));
        let last_ns = kept
            .checked_sub(1)
            .map(|i| busiest.requests.get(i).record.ts_ns);
        Ok(Self {
            period_ns: share_ns.max(last_ns.unwrap_or(0).unsigned_abs()),
            requests: Arc::new(busiest.requests),
            rate,
        })
    }

    /// As `replay`, but of this stretch at `ops_per_s` requests per second.
    pub(crate) fn paced(&self, replay: &ReplayPlan, ops_per_s: f64) -> ReplayPlan {
        let kept_rate = self.requests.len() as f64 * 1e9 / self.period_ns.max(1) as f64;
        let timing = ReplayTiming::Rate {
            ops_per_s,
            recorded_ops_per_s: kept_rate.max(1e-9),
        };
        plain(replay, timing, replay.max_in_flight)
    }

    /// As `replay`, but as fast as possible with `workers` requests in flight, or as many as `replay` allows.
    pub(crate) fn saturating(replay: &ReplayPlan, workers: u32) -> ReplayPlan {
        plain(
            replay,
            ReplayTiming::Asap,
            workers.min(replay.max_in_flight),
        )
    }
}

/// `replay` without the policies that leave requests out: calibration must not skip what the client is too slow for.
fn plain(replay: &ReplayPlan, timing: ReplayTiming, max_in_flight: u32) -> ReplayPlan {
    ReplayPlan {
        timing,
        late: LatePolicy::Issue,
        on_absent: OnAbsent::Preload,
        max_in_flight,
        ..replay.clone()
    }
}

/// The requests due in one second.
#[derive(Default)]
struct Second {
    number: u64,
    count: u64,
    /// The first requests of the second, at most [`KEPT`].
    requests: Batch,
}

impl Second {
    /// Ends the second, keeps it in `busiest` if it is busier, and begins second `number`.
    fn end(&mut self, busiest: &mut Self, number: u64) {
        if self.count > busiest.count {
            std::mem::swap(self, busiest);
        }
        self.requests.clear();
        (self.number, self.count) = (number, 0);
    }
}

/// A stream that reads a stretch endlessly.
struct Repeated {
    stretch: Stretch,
    /// Index of the next request.
    next: usize,
    /// Beginning of the current repetition, nanoseconds.
    from_ns: u64,
}

impl RecordStream for Repeated {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool, TraceError> {
        out.clear();
        let requests = &*self.stretch.requests;
        while !out.is_full() && !requests.is_empty() {
            let recorded = requests.get(self.next);
            let mut record = recorded.record;
            record.ts_ns = record.ts_ns.saturating_add_unsigned(self.from_ns);
            out.push_recorded(&recorded, record);
            self.next += 1;
            if self.next == requests.len() {
                self.next = 0;
                self.from_ns = self.from_ns.saturating_add(self.stretch.period_ns);
            }
        }
        Ok(!out.is_empty())
    }
}

impl TraceSource for Stretch {
    fn records(&self) -> Result<Box<dyn RecordStream>, TraceError> {
        Ok(Box::new(Repeated {
            stretch: self.clone(),
            next: 0,
            from_ns: 0,
        }))
    }

    fn preload(&self) -> Result<Box<dyn RecordStream>, TraceError> {
        self.records()
    }
}

#[cfg(test)]
#[path = "stretch_tests.rs"]
mod tests;
