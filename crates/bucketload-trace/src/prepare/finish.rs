//! The last pass: sets instants within a tick and merges the keys of a multi-object delete.

use bucketload_core::generate::rng::mix64;
use bucketload_core::trace::TraceOp;

use super::options::{Ticks, Untimed};
use crate::error::TraceError;
use crate::named_record::NamedRecord;
use crate::spill::Merge;

/// Maximum number of keys of one delete request (S3: 1000).
const KEYS_PER_DELETE: usize = 1000;

/// Sorted records, with the keys of each multi-object delete merged into one record.
pub(crate) struct GroupedDeletes {
    input: Merge,
    next: NamedRecord,
    /// Whether `next` holds a record.
    waiting: bool,
}

impl GroupedDeletes {
    pub(crate) fn new(mut input: Merge) -> Result<Self, TraceError> {
        let mut next = NamedRecord::default();
        let waiting = input.next(&mut next)?;
        Ok(Self {
            input,
            next,
            waiting,
        })
    }

    pub(crate) fn next(&mut self, rec: &mut NamedRecord) -> Result<bool, TraceError> {
        if !self.waiting {
            return Ok(false);
        }
        std::mem::swap(rec, &mut self.next);
        self.waiting = self.input.next(&mut self.next)?;
        while self.waiting
            && rec.base.op == TraceOp::MultiDelete
            && self.next.base.op == TraceOp::MultiDelete
            && rec.base.upload != 0
            && rec.base.upload == self.next.base.upload
            && rec.base.ts_ns == self.next.base.ts_ns
            && rec.base.bucket == self.next.base.bucket
            && rec.more.len() + 1 < KEYS_PER_DELETE
        {
            rec.base.absent &= self.next.base.absent;
            rec.more.push(std::mem::take(&mut self.next.key));
            self.waiting = self.input.next(&mut self.next)?;
        }
        Ok(true)
    }
}

/// Sets the instant of every record. A second reader of the same records runs ahead and counts how many share a tick,
/// so memory does not depend on that number.
pub(crate) struct TimedRecords {
    ahead: GroupedDeletes,
    ahead_rec: NamedRecord,
    ahead_has: bool,
    records: GroupedDeletes,
    ticks: Ticks,
    resolution_ns: i64,
    untimed: Option<Untimed>,
    total: u64,
    /// The current tick: its start, number of records, records returned so far, and position of the last one in [0, 1).
    tick: (i64, u64, u64, f64),
    given: u64,
    clock: f64,
    seed: u64,
}

impl TimedRecords {
    /// `total` is the number of records; `untimed` is set if their instants are only numbers.
    pub(crate) fn new(
        mut ahead: GroupedDeletes,
        records: GroupedDeletes,
        ticks: Ticks,
        resolution_ns: i64,
        untimed: Option<Untimed>,
        total: u64,
        seed: u64,
    ) -> Result<Self, TraceError> {
        let mut ahead_rec = NamedRecord::default();
        let ahead_has = ahead.next(&mut ahead_rec)?;
        Ok(Self {
            ahead,
            ahead_rec,
            ahead_has,
            records,
            ticks,
            resolution_ns,
            untimed,
            total,
            tick: (0, 0, 0, 0.0),
            given: 0,
            clock: 0.0,
            seed,
        })
    }

    /// The next record with its instant.
    pub(crate) fn next(&mut self, rec: &mut NamedRecord) -> Result<bool, TraceError> {
        if !self.records.next(rec)? {
            return Ok(false);
        }
        if let Some(untimed) = self.untimed {
            rec.base.ts_ns = self.paced(untimed);
            self.given += 1;
            return Ok(true);
        }
        let spread = self.resolution_ns >= 1_000_000 && self.ticks != Ticks::Burst;
        if spread {
            if self.tick.2 == self.tick.1 {
                self.count_tick()?;
            }
            rec.base.ts_ns = self.tick.0 + self.within();
            self.tick.2 += 1;
        }
        self.given += 1;
        Ok(true)
    }

    /// The instant of record number `given`, in a trace without instants.
    fn paced(&mut self, untimed: Untimed) -> i64 {
        let i = self.given as f64;
        match untimed {
            Untimed::Constant(rate) => (i * 1e9 / rate) as i64,
            Untimed::Span(ns) => (i * ns as f64 / self.total.max(1) as f64) as i64,
            Untimed::Poisson(rate) => {
                if self.given > 0 {
                    self.clock -= (1.0 - self.unit(self.given)).ln() * 1e9 / rate;
                }
                self.clock as i64
            }
        }
    }

    /// A number in [0, 1) that depends only on the seed and `index`.
    fn unit(&self, index: u64) -> f64 {
        (mix64(mix64(self.seed) ^ index) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn count_tick(&mut self) -> Result<(), TraceError> {
        let start = self.ahead_rec.base.ts_ns;
        let mut n = 0;
        while self.ahead_has && self.ahead_rec.base.ts_ns == start {
            n += 1;
            self.ahead_has = self.ahead.next(&mut self.ahead_rec)?;
        }
        self.tick = (start, n, 0, 0.0);
        Ok(())
    }

    /// The next record's offset in the tick.
    fn within(&mut self) -> i64 {
        let (_, n, given, last) = self.tick;
        match self.ticks {
            Ticks::Jitter => {
                // The next of n sorted uniform numbers, given the previous one: the minimum of the n - given numbers
                // above it.
                let left = (n - given) as f64;
                let u = self.unit(self.given);
                let at = 1.0 - (1.0 - last) * (1.0 - u).powf(1.0 / left);
                self.tick.3 = at.clamp(last, 1.0);
                ((self.tick.3 * self.resolution_ns as f64) as i64).min(self.resolution_ns - 1)
            }
            _ => (i128::from(self.resolution_ns) * i128::from(given) / i128::from(n)) as i64,
        }
    }
}
