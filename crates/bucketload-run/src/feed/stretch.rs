//! The busiest stretch of a trace: what a replay is calibrated with.
//!
//! The trace is read once, as the replay will read it. The second in which most of its requests are due is
//! kept in memory and repeated for as long as the calibration lasts; a closed loop has no busy second, so
//! there it is the beginning of the trace.

use std::sync::Arc;

use bucketload_core::plan::{
    LatePolicy, OnAbsent, PhasePlan, ReplayPart, ReplayPlan, ReplayTiming,
};
use bucketload_core::trace::{Batch, RecordStream, TraceError, TraceSource};

use super::reader::{Shaper, operation, transferred};
use crate::stop::{StopHandle, StopLevel};

/// Length of a stretch, nanoseconds of the replay's time.
const STRETCH_NS: u64 = 1_000_000_000;
/// Requests of a stretch that are kept.
const KEPT: usize = 16_384;
/// Passes of a trace in which everything happens that happens in many: in the second one the copies of a
/// trace overlap as in all later ones.
const LAPS: u32 = 2;

/// Requests of a trace, repeated without end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stretch {
    /// The requests, with their due instants from the beginning of the stretch.
    requests: Arc<Batch>,
    /// From one repetition to the next, nanoseconds.
    period_ns: u64,
    /// Requests per second of the busiest second; 0 in a closed loop.
    pub(crate) rate: f64,
}

impl Stretch {
    /// Finds the busiest stretch of what `replay` replays of `trace` in `phase`. Without any request the
    /// stretch is empty. A stop ends the search; what was found until then counts.
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
                    let (due_ns, _) = shaper.due(record.ts_ns, transferred(&op));
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
        // What is kept of a second takes its share of it, but no repetition begins before its predecessor
        // has ended.
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

    /// `replay` of this stretch with `ops_per_s` requests per second.
    pub(crate) fn paced(&self, replay: &ReplayPlan, ops_per_s: f64) -> ReplayPlan {
        let own = self.requests.len() as f64 * 1e9 / self.period_ns.max(1) as f64;
        let timing = ReplayTiming::Rate {
            ops_per_s,
            recorded_ops_per_s: own.max(1e-9),
        };
        plain(replay, timing, replay.max_in_flight)
    }

    /// `replay` of this stretch by `workers` requests at a time, or as many as it allows.
    pub(crate) fn saturating(replay: &ReplayPlan, workers: u32) -> ReplayPlan {
        plain(
            replay,
            ReplayTiming::Asap,
            workers.min(replay.max_in_flight),
        )
    }
}

/// `replay` without what would leave requests out: that would be those for which the client is too slow.
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
    /// The first of them.
    requests: Batch,
}

impl Second {
    /// Ends the second, which is remembered if it is the busiest one; it becomes second `number`.
    fn end(&mut self, busiest: &mut Self, number: u64) {
        if self.count > busiest.count {
            std::mem::swap(self, busiest);
        }
        self.requests.clear();
        (self.number, self.count) = (number, 0);
    }
}

/// Reads a stretch again and again.
struct Repeated {
    stretch: Stretch,
    /// The next request.
    next: usize,
    /// Beginning of the repetition, nanoseconds.
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
