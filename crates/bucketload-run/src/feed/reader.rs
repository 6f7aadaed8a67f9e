//! The thread that reads a trace: turns records into requests and spreads them over load threads.
//!
//! ```text
//!  RecordStream ─▶ repeat ─▶ operation class ─▶ due instant (speed, limits) ─▶ queue of the key's
//!                              └ none: counted as skipped                       thread
//! ```
//!
//! All requests on a key go to one thread, so their order is kept without locks. The reader delivers what it has read
//! before it reads more, so requests of a slow trace do not wait for a parcel to fill.

use std::sync::Arc;

use bucketload_core::op::{Op, OpClass};
use bucketload_core::plan::jobs::{LEAST_PART, MULTIPART_ABOVE, part_size};
use bucketload_core::plan::{MixEntry, OnAbsent, ReplayPart, ReplayPlan, ReplayTiming};
use bucketload_core::trace::{Batch, Recorded, TraceError, TraceOp, TraceRecord, TraceSource};

use super::Queue;
use super::queue::{Parcel, TraceRequest};
use crate::source::body_bytes;

/// Longest page of a listing, keys.
const PAGE: u64 = 1000;

/// Reads one list of a trace (its preload or its requests) for the load threads of this process.
pub(crate) struct Reader {
    plan: ReplayPlan,
    /// The class of each mix entry of the work.
    entries: Vec<OpClass>,
    /// One queue per share of the keys; `None` for the shares of other agents.
    queues: Vec<Option<Arc<Queue>>>,
    shaper: Shaper,
    /// Requests delivered, over all shares.
    seq: u64,
}

impl Reader {
    /// A reader of the list that `plan` replays, for a work with mix `mix`.
    pub(crate) fn new(
        plan: &ReplayPlan,
        mix: &[MixEntry],
        queues: Vec<Option<Arc<Queue>>>,
    ) -> Self {
        Self {
            plan: plan.clone(),
            entries: mix.iter().map(|entry| entry.class).collect(),
            queues,
            shaper: Shaper::new(&plan.timing),
            seq: 0,
        }
    }

    /// Reads to the end, or until a queue is closed.
    ///
    /// # Errors
    /// When the trace cannot be read. Everything read before is delivered.
    pub(crate) fn run(mut self, source: &dyn TraceSource) -> Result<(), TraceError> {
        let outcome = self.read(source);
        for queue in self.queues.iter().flatten() {
            queue.end();
        }
        outcome
    }

    fn read(&mut self, source: &dyn TraceSource) -> Result<(), TraceError> {
        let mut stream = match self.plan.part {
            ReplayPart::Preload => source.preload()?,
            ReplayPart::Requests => source.records()?,
        };
        let spare = |queue: &Option<Arc<Queue>>| queue.as_ref().map(|queue| queue.spare());
        let mut parcels: Vec<Option<Parcel>> = self.queues.iter().map(spare).collect();
        let mut batch = Batch::new();
        while stream.next_batch(&mut batch)? {
            for recorded in batch.iter() {
                for _ in 0..recorded.record.repeat.max(1) {
                    let share = self.share(recorded.record.key_hash);
                    self.add(&recorded, parcels[share].as_mut());
                    if parcels[share].as_ref().is_some_and(|p| p.keys.is_full())
                        && !self.deliver(share, &mut parcels[share])
                    {
                        return Ok(());
                    }
                }
            }
            for (share, parcel) in parcels.iter_mut().enumerate() {
                let is_empty = |p: &Parcel| p.items.is_empty() && p.skipped == (0, 0);
                if !parcel.as_ref().is_none_or(is_empty) && !self.deliver(share, parcel) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The share of a key, from the high half of its hash: sampling uses the low half.
    fn share(&self, key_hash: u64) -> usize {
        ((key_hash >> 32) % self.queues.len() as u64) as usize
    }

    fn deliver(&self, share: usize, parcel: &mut Option<Parcel>) -> bool {
        match (&self.queues[share], parcel.take()) {
            (Some(queue), Some(full)) => {
                let wanted = queue.push(full);
                *parcel = Some(queue.spare());
                wanted
            }
            _ => true,
        }
    }

    /// Adds a record to the parcel of its share; `None` if the share is another agent's. Rate limits and sequence
    /// numbers cover all shares.
    fn add(&mut self, recorded: &Recorded<'_>, parcel: Option<&mut Parcel>) {
        let record = recorded.record;
        let skip_absent = self.plan.on_absent == OnAbsent::Skip && record.absent;
        let op = match skip_absent {
            true => None,
            false => operation(recorded).and_then(|op| {
                let entry = self.entries.iter().position(|class| *class == op.class)?;
                let (seq, entry) = (self.seq, entry as u16);
                Some(Op { seq, entry, ..op })
            }),
        };
        let Some(op) = op else {
            if let Some(parcel) = parcel {
                parcel.skipped.0 += u64::from(skip_absent);
                parcel.skipped.1 += u64::from(!skip_absent);
            }
            return;
        };
        self.seq += 1;
        let (due_ns, shaped_ns) = self.shaper.due(record.ts_ns, body_bytes(&op));
        if let Some(parcel) = parcel {
            parcel.items.push(TraceRequest {
                op,
                due_ns,
                shaped_ns,
                mutates: record.op.mutates(),
                absent: record.status == 404,
            });
            parcel.keys.push_recorded(recorded, record);
        }
    }
}

/// The operation that a record describes; `None` if it describes none of its own or lacks a needed fact. The caller
/// sets entry and sequence number.
pub(super) fn operation(recorded: &Recorded<'_>) -> Option<Op> {
    let record = &recorded.record;
    let size = record.known_size();
    let range = match record.op {
        TraceOp::Get => record.range(),
        _ => None,
    };
    let (class, count) = match record.op {
        TraceOp::Get if range.is_some() => (OpClass::RangeGet, 0),
        TraceOp::Get => (OpClass::Get, 0),
        TraceOp::Head => (OpClass::Head, 0),
        TraceOp::Put => match size? {
            size if size > MULTIPART_ABOVE => (OpClass::MultipartPut, part_size(size)),
            _ => (OpClass::Put, 0),
        },
        TraceOp::MpuComplete => (OpClass::MultipartPut, upload_part(record, size?)),
        TraceOp::MpuAbort => (OpClass::MultipartAbort, LEAST_PART),
        TraceOp::Delete => (OpClass::Delete, 0),
        TraceOp::MultiDelete => (OpClass::DeleteMany, 1 + recorded.more().count() as u64),
        TraceOp::List => {
            let page = u64::try_from(record.len).unwrap_or(PAGE);
            (OpClass::List, if page == 0 { PAGE } else { page.min(PAGE) })
        }
        TraceOp::Copy => {
            recorded.more().next()?;
            (OpClass::Copy, 0)
        }
        TraceOp::MpuInit | TraceOp::MpuPart | TraceOp::Other => return None,
    };
    Some(Op {
        key: record.key_hash,
        size: match class {
            OpClass::Get | OpClass::RangeGet => size.unwrap_or(Op::UNKNOWN_SIZE),
            OpClass::Put | OpClass::MultipartPut => size.unwrap_or(0),
            _ => 0,
        },
        range,
        count,
        pages: u32::from(class == OpClass::List),
        ..Op::new(class)
    })
}

/// Part size of a recorded upload: the recorded one if S3 accepts it.
fn upload_part(record: &TraceRecord, size: u64) -> u64 {
    const LEAST: u64 = 5 << 20;
    let recorded = u64::try_from(record.len).unwrap_or(0);
    match recorded >= LEAST && size.div_ceil(recorded) <= 10_000 {
        true => recorded,
        false => part_size(size),
    }
}

/// Turns recorded instants into due instants (docs/spec/traces.md section 4.1).
pub(super) struct Shaper {
    /// Divisor of recorded times; `None` when requests are replayed as fast as possible.
    speed: Option<f64>,
    /// Nanoseconds per request; 0 without a limit.
    per_op: f64,
    /// Nanoseconds per byte; 0 without a limit.
    per_byte: f64,
    /// Nothing may be due before this instant, by the limit on requests.
    ops_free: f64,
    /// Nothing may be due before this instant, by the limit on bytes.
    bytes_free: f64,
}

impl Shaper {
    pub(super) fn new(timing: &ReplayTiming) -> Self {
        let gap = |rate: f64| if rate > 0.0 { 1e9 / rate } else { 0.0 };
        let (ops, bytes) = match *timing {
            ReplayTiming::Capped {
                ops_per_s,
                bytes_per_s,
                ..
            } => (ops_per_s, bytes_per_s),
            _ => (0.0, 0.0),
        };
        Self {
            speed: timing.speed(),
            per_op: gap(ops),
            per_byte: gap(bytes),
            ops_free: 0.0,
            bytes_free: 0.0,
        }
    }

    /// Due instant of a request that was recorded at `ts_ns` and moves `bytes`, nanoseconds from the start, and how
    /// much later than recorded a limit made it.
    pub(super) fn due(&mut self, ts_ns: i64, bytes: u64) -> (u64, u64) {
        let Some(speed) = self.speed else {
            return (0, 0);
        };
        let wanted = ts_ns.max(0) as f64 / speed;
        let due = wanted.max(self.ops_free).max(self.bytes_free);
        if self.per_op > 0.0 {
            self.ops_free = due + self.per_op;
        }
        if self.per_byte > 0.0 {
            self.bytes_free = due + self.per_byte * bytes as f64;
        }
        (due.round() as u64, (due - wanted).round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use bucketload_core::op::OpClass;
    use bucketload_core::plan::ReplayTiming;
    use bucketload_core::trace::{Batch, TraceOp, TraceRecord};

    use super::{Shaper, operation};

    fn class(record: TraceRecord) -> Option<(OpClass, u64)> {
        let mut batch = Batch::new();
        batch.push(record, b"k", []);
        operation(&batch.get(0)).map(|op| (op.class, op.count))
    }

    #[test]
    fn records_become_the_operations_they_describe() {
        let of = |op, size, off, len| {
            class(TraceRecord {
                op,
                size,
                off,
                len,
                ..TraceRecord::default()
            })
        };
        assert_eq!(of(TraceOp::Get, 10, 0, -1), Some((OpClass::Get, 0)));
        assert_eq!(of(TraceOp::Get, 10, 2, 3), Some((OpClass::RangeGet, 0)));
        assert_eq!(of(TraceOp::Put, 10, 0, -1), Some((OpClass::Put, 0)));
        assert_eq!(of(TraceOp::Put, -1, 0, -1), None, "size unknown");
        let part = 8 << 20;
        let big = Some((OpClass::MultipartPut, part));
        assert_eq!(of(TraceOp::Put, 65 << 20, 0, -1), big);
        assert_eq!(of(TraceOp::MpuComplete, 65 << 20, 0, 1), big);
        let recorded = Some((OpClass::MultipartPut, 16 << 20));
        assert_eq!(of(TraceOp::MpuComplete, 65 << 20, 0, 16 << 20), recorded);
        assert_eq!(of(TraceOp::MpuPart, 1 << 20, 0, -1), None);
        assert_eq!(of(TraceOp::Copy, 1, 0, -1), None, "source unknown");
        assert_eq!(of(TraceOp::List, -1, 0, 5), Some((OpClass::List, 5)));
    }

    #[test]
    fn limits_delay_only_requests_that_come_too_fast() {
        let mut shaper = Shaper::new(&ReplayTiming::Capped {
            speed: 2.0,
            ops_per_s: 1e6,
            bytes_per_s: 1e9,
        });
        // Recorded at 0, 0, 10 µs; at double speed due at 0, 0, 5 µs; 1 µs apart and 1 ns per byte.
        assert_eq!(shaper.due(0, 0), (0, 0));
        assert_eq!(shaper.due(0, 3_000), (1_000, 1_000));
        assert_eq!(shaper.due(0, 0), (4_000, 4_000));
        assert_eq!(shaper.due(20_000, 0), (10_000, 0));
        let mut rate = Shaper::new(&ReplayTiming::Rate {
            ops_per_s: 5.0,
            recorded_ops_per_s: 10.0,
        });
        assert_eq!(rate.due(1_000, 0), (2_000, 0));
        let mut asap = Shaper::new(&ReplayTiming::Asap);
        assert_eq!(asap.due(1_000, 0), (0, 0));
    }
}
