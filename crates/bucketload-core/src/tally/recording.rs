//! A tally while a load thread fills it.
//!
//! Several times of an operation are usually equal: only the client's own work comes before the start of most
//! operations, and only waiting after it. Such a time is recorded once. [`Recording::settle`] then adds it to every
//! histogram that it belongs to:
//!
//! ```text
//!  load thread                                    collector
//!  record ─┬─ counts, response time ─▶ tally ◀─┐
//!          ├─ times that differ ─────▶ tally   ├─ settle ──▶ &Tally
//!          └─ times that are equal ──▶ shared ─┘
//! ```

use super::{Cell, Tally};
use crate::histogram::Histogram;
use crate::record::{OpRecord, Part};

/// A [`Tally`] that is being filled.
#[derive(Debug, Default)]
pub struct Recording {
    tally: Tally,
    /// One per cell of the tally.
    shared: Vec<SharedTimes>,
}

/// Times of operations of one cell that belong to several histograms.
#[derive(Debug, Default)]
struct SharedTimes {
    /// Lag, lateness plus build time, and [`Part::Build`].
    built: Histogram,
    /// Service time, time to first byte, and [`Part::Wait`].
    waited: Histogram,
}

impl Recording {
    /// Fills `tally`. Recording operations of its existing cells allocates nothing.
    #[must_use]
    pub fn new(tally: Tally) -> Self {
        let mut shared = Vec::new();
        shared.resize_with(tally.cells.len(), SharedTimes::default);
        Self { tally, shared }
    }

    /// Records one operation that ended.
    #[inline]
    pub fn record(&mut self, r: &OpRecord) {
        let at = self.tally.count(r);
        if at >= self.shared.len() {
            self.extend();
        }
        let shared = &mut self.shared[at];
        if r.only_built() {
            shared.built.record(r.lag_ns());
        } else {
            self.tally.record_start(at, r);
        }
        if r.only_waited() {
            shared.waited.record(r.service_ns());
        } else {
            self.tally.record_service(at, r);
        }
    }

    /// Records operations that ended, in order.
    ///
    /// Nearly every operation touches buckets that have left the caches since the last list, and recording one
    /// operation takes more instructions than the processor looks ahead. So the buckets of all operations are read
    /// first, and the processor waits for them together.
    pub fn record_all(&mut self, records: &[OpRecord]) {
        let read = records.iter().fold(0, |sum, r| sum ^ self.read_buckets(r));
        std::hint::black_box(read);
        for r in records {
            self.record(r);
        }
    }

    /// Reads the buckets that a typical operation is recorded in, to load them into the caches.
    #[inline]
    fn read_buckets(&self, r: &OpRecord) -> u64 {
        let wanted = |c: &Cell| c.class == r.class && c.work == r.work;
        let Some(at) = self.tally.cells.iter().position(wanted) else {
            return 0;
        };
        let built = self.shared.get(at).map_or(0, |shared| {
            shared.built.alike(r.lag_ns()) ^ shared.waited.alike(r.service_ns())
        });
        built ^ self.tally.cells[at].response.alike(r.response_ns())
    }

    #[cold]
    fn extend(&mut self) {
        let cells = self.tally.cells.len();
        self.shared.resize_with(cells, SharedTimes::default);
    }

    /// The tally, for counters that are incremented directly. Times of operations may be missing from it.
    #[inline]
    pub const fn counts(&mut self) -> &mut Tally {
        &mut self.tally
    }

    /// Completes the tally and returns it.
    pub fn settle(&mut self) -> &Tally {
        let Tally {
            cells, lag, late, ..
        } = &mut self.tally;
        for (shared, cell) in self.shared.iter_mut().zip(cells) {
            shared.settle(cell, [lag, late]);
        }
        &self.tally
    }

    /// Empties the recording and keeps its memory.
    pub fn clear(&mut self) {
        self.tally.clear();
        for shared in &mut self.shared {
            shared.built.clear();
            shared.waited.clear();
        }
    }
}

impl SharedTimes {
    /// Adds the times to every histogram that they belong to.
    fn settle(&mut self, cell: &mut Cell, starts: [&mut Histogram; 2]) {
        if !self.built.is_empty() {
            for histogram in starts {
                histogram.merge(&self.built);
            }
            cell.anatomy.part_mut(Part::Build).merge(&self.built);
            self.built.clear();
        }
        if !self.waited.is_empty() {
            cell.service.merge(&self.waited);
            cell.ttfb.merge(&self.waited);
            cell.anatomy.part_mut(Part::Wait).merge(&self.waited);
            self.waited.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Recording;
    use crate::error::ErrorKind;
    use crate::op::OpClass;
    use crate::record::{OpRecord, Outcome};
    use crate::tally::Tally;

    /// Operations whose times are each zero, small or large, so that all combinations of equal times occur.
    fn record() -> impl Strategy<Value = OpRecord> {
        let step = || prop_oneof![3 => Just(0u64), 1 => 1u64..5, 1 => 1u64..1 << 40];
        let steps = prop::array::uniform6(step());
        (
            steps,
            0u16..2,
            0usize..3,
            prop::option::of(0usize..16),
            any::<[bool; 3]>(),
        )
            .prop_map(
                |(
                    [late, queue, held, build, send, wait],
                    work,
                    class,
                    failure,
                    [sent, answered, body],
                )| {
                    let mut r = OpRecord::BLANK;
                    (r.work, r.class, r.attempts) = (work, OpClass::ALL[class], 1);
                    r.due_ns = 77;
                    r.taken_ns = r.due_ns + late + queue;
                    (r.dispatch_ns, r.blocked_ns) = (queue / 2, queue - queue / 2);
                    r.held_ns = held;
                    r.connect.tcp_ns = held / 3;
                    r.started_ns = r.taken_ns + held + build;
                    r.sent_ns = if sent { r.started_ns + send } else { 0 };
                    r.first_byte_ns = if answered {
                        r.started_ns + send + wait
                    } else {
                        0
                    };
                    r.done_ns = r.started_ns + send + wait + if body { queue } else { 0 };
                    r.outcome = failure
                        .and_then(|kind| ErrorKind::ALL.get(kind).copied())
                        .map_or(Outcome::Ok, Outcome::Failed);
                    r
                },
            )
    }

    proptest! {
        #[test]
        fn a_time_recorded_once_counts_in_every_histogram_it_belongs_to(
            records in prop::collection::vec(record(), 0..40),
            again in prop::collection::vec(record(), 0..10),
        ) {
            let mut recording = Recording::default();
            for records in [&records, &again] {
                let mut tally = Tally::new();
                let (one_by_one, together) = records.split_at(records.len() / 2);
                one_by_one.iter().for_each(|r| recording.record(r));
                recording.record_all(together);
                records.iter().for_each(|r| tally.record(r));
                recording.counts().offered += 3;
                tally.offered += 3;
                let by_cell = |mut tally: Tally| {
                    tally.cells.retain(|cell| cell.ended() > 0);
                    tally.cells.sort_by_key(|cell| (cell.work, cell.class));
                    tally
                };
                prop_assert_eq!(by_cell(recording.settle().clone()), by_cell(tally.clone()));
                prop_assert_eq!(by_cell(recording.settle().clone()), by_cell(tally), "settled twice");
                recording.clear();
            }
        }
    }

    #[test]
    fn a_typical_operation_is_recorded_in_three_histograms() {
        let mut r = OpRecord::BLANK;
        (r.due_ns, r.taken_ns, r.started_ns) = (100, 100, 130);
        (r.sent_ns, r.first_byte_ns, r.done_ns) = (130, 900, 900);
        let mut recording = Recording::default();
        recording.record(&r);
        assert!(recording.tally.lag.is_empty() && recording.tally.cells[0].service.is_empty());
        let shared = &recording.shared[0];
        assert_eq!((shared.built.max_ns(), shared.waited.max_ns()), (30, 770));
        assert_eq!(recording.settle().cells[0].ttfb.max_ns(), 770);
    }
}
