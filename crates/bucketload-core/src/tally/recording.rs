//! A tally while a load thread fills it.
//!
//! Several of the times of an operation coincide in most operations: nothing but the client's own work comes before its
//! start, nothing but waiting after it. Such a time is recorded once, and whoever takes the tally over has it counted
//! as all that it is:
//!
//! ```text
//!  load thread                                    collector
//!  record ─┬─ counts, response time ─▶ tally ◀─┐
//!          ├─ times that differ ─────▶ tally   ├─ settle ──▶ &Tally
//!          └─ times that coincide ───▶ alike ──┘
//! ```

use super::{Cell, Tally};
use crate::histogram::Histogram;
use crate::record::{OpRecord, Part};

/// A [`Tally`] that is being filled.
#[derive(Debug, Default)]
pub struct Recording {
    tally: Tally,
    /// As the cells of the tally.
    alike: Vec<Alike>,
}

/// Times of operations of one cell that are several times at once.
#[derive(Debug, Default)]
struct Alike {
    /// Lag, lateness with build time, and [`Part::Build`].
    built: Histogram,
    /// Service time, time to first byte, and [`Part::Wait`].
    waited: Histogram,
}

impl Recording {
    /// Fills `tally`. Nothing is allocated for operations of the cells that it has.
    #[must_use]
    pub fn new(tally: Tally) -> Self {
        let mut alike = Vec::new();
        alike.resize_with(tally.cells.len(), Alike::default);
        Self { tally, alike }
    }

    /// Records one operation that ended.
    #[inline]
    pub fn record(&mut self, r: &OpRecord) {
        let at = self.tally.count(r);
        if at >= self.alike.len() {
            self.extend();
        }
        let alike = &mut self.alike[at];
        if r.only_built() {
            alike.built.record(r.lag_ns());
        } else {
            self.tally.record_start(at, r);
        }
        if r.only_waited() {
            alike.waited.record(r.service_ns());
        } else {
            self.tally.record_service(at, r);
        }
    }

    /// Records operations that ended, in order.
    ///
    /// Nearly each touches buckets that have left the caches since the last list, and recording one is longer than the
    /// processor looks ahead: so it is shown the buckets of all first, and waits for them together.
    pub fn record_all(&mut self, records: &[OpRecord]) {
        let near = records.iter().fold(0, |sum, r| sum ^ self.near(r));
        std::hint::black_box(near);
        for r in records {
            self.record(r);
        }
    }

    /// Reads the buckets that the usual operation will be recorded in.
    #[inline]
    fn near(&self, r: &OpRecord) -> u64 {
        let wanted = |c: &Cell| c.class == r.class && c.work == r.work;
        let Some(at) = self.tally.cells.iter().position(wanted) else {
            return 0;
        };
        let built = self.alike.get(at).map_or(0, |alike| {
            alike.built.alike(r.lag_ns()) ^ alike.waited.alike(r.service_ns())
        });
        built ^ self.tally.cells[at].response.alike(r.response_ns())
    }

    #[cold]
    fn extend(&mut self) {
        let cells = self.tally.cells.len();
        self.alike.resize_with(cells, Alike::default);
    }

    /// The tally, in which the times of operations may be missing: for what is counted one by one.
    #[inline]
    pub const fn counts(&mut self) -> &mut Tally {
        &mut self.tally
    }

    /// The whole tally.
    pub fn settle(&mut self) -> &Tally {
        let Tally {
            cells, lag, late, ..
        } = &mut self.tally;
        for (alike, cell) in self.alike.iter_mut().zip(cells) {
            alike.settle(cell, [lag, late]);
        }
        &self.tally
    }

    /// Empties it and keeps its memory.
    pub fn clear(&mut self) {
        self.tally.clear();
        for alike in &mut self.alike {
            alike.built.clear();
            alike.waited.clear();
        }
    }
}

impl Alike {
    /// Counts the times as what they are.
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

    /// Operations of which every time is none, a little or more, so that all kinds of coincidence occur.
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
        fn what_is_recorded_once_counts_as_all_that_it_is(
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
    fn the_usual_operation_is_recorded_thrice() {
        let mut r = OpRecord::BLANK;
        (r.due_ns, r.taken_ns, r.started_ns) = (100, 100, 130);
        (r.sent_ns, r.first_byte_ns, r.done_ns) = (130, 900, 900);
        let mut recording = Recording::default();
        recording.record(&r);
        assert!(recording.tally.lag.is_empty() && recording.tally.cells[0].service.is_empty());
        let alike = &recording.alike[0];
        assert_eq!((alike.built.max_ns(), alike.waited.max_ns()), (30, 770));
        assert_eq!(recording.settle().cells[0].ttfb.max_ns(), 770);
    }
}
