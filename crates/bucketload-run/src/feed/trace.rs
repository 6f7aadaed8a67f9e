//! The requests of a trace on one thread, from the parcels of the reader.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use bucketload_core::op::{Op, OpClass};
use bucketload_core::plan::{LatePolicy, OnAbsent, ReplayPlan, ReplayTiming};
use bucketload_core::record::Outcome;
use bucketload_core::trace::Recorded;

use super::keys::KeyOrder;
use super::queue::{Parcel, Pop, Queue};
use super::{Next, Offer};
use crate::due::{DueOp, OpEnd};
use crate::names::Names;
use crate::shard::Shard;
use crate::source::Source;

/// Most requests per thread that may wait for their keys; beyond that the trace waits too.
const MOST_HELD: usize = 65_536;

/// Tag of a request whose end releases others on its key.
const MUTATES: u32 = 1;

/// The requests of one work on one thread.
pub(crate) struct Trace {
    queue: Arc<Queue>,
    parcels: VecDeque<Parcel>,
    /// Index of the next item in the first parcel.
    at: usize,
    /// Number of items in parcels that were given back.
    before: u64,
    /// Skipped records that are not yet counted: those on keys known to be absent, and others.
    skipped: (u64, u64),
    /// Number of items that were counted as offered.
    counted: u64,
    /// Whether the reader has delivered everything, or the phase offers nothing more.
    over: bool,
    start_ns: u64,
    asap: bool,
    late: LatePolicy,
    fail_on_absent: bool,
    order: Option<KeyOrder>,
}

impl Trace {
    pub(crate) fn new(plan: &ReplayPlan, queue: Arc<Queue>) -> Self {
        Self {
            queue,
            parcels: VecDeque::new(),
            at: 0,
            before: 0,
            skipped: (0, 0),
            counted: 0,
            over: false,
            start_ns: 0,
            asap: plan.timing == ReplayTiming::Asap,
            late: plan.late,
            fail_on_absent: plan.on_absent == OnAbsent::Fail,
            order: plan.per_key.then(KeyOrder::default),
        }
    }

    pub(super) fn start(&mut self, start_ns: u64) {
        self.start_ns = start_ns;
    }

    fn held(&self) -> usize {
        self.order.as_ref().map_or(0, KeyOrder::held)
    }

    /// Due instant of the next request of the trace; `None` when there is none yet.
    fn head_ns(&self) -> Option<u64> {
        let item = self.parcels.front()?.items.get(self.at)?;
        Some(self.start_ns.saturating_add(item.due_ns))
    }

    /// Due instant of the oldest request that is not taken.
    pub(super) fn oldest_ns(&self) -> Option<u64> {
        let held = self.order.as_ref().and_then(KeyOrder::oldest_ns);
        held.into_iter().chain(self.head_ns()).min()
    }

    /// Gives used parcels back and fetches the next one.
    fn refill(&mut self, waker: Option<&Waker>) {
        loop {
            match self.parcels.front() {
                Some(parcel) if self.at < parcel.items.len() => return,
                Some(_) => {
                    if let Some(parcel) = self.parcels.pop_front() {
                        self.before += parcel.items.len() as u64;
                        self.queue.give_back(parcel);
                    }
                    self.at = 0;
                }
                None if self.over => return,
                None => match self.queue.pop(waker) {
                    Pop::Parcel(parcel) => {
                        self.skipped.0 += parcel.skipped.0;
                        self.skipped.1 += parcel.skipped.1;
                        self.parcels.push_back(parcel);
                    }
                    Pop::Empty => return,
                    Pop::Ended => self.over = true,
                },
            }
        }
    }

    pub(super) fn next(&mut self, cutoff_ns: u64, waker: Option<&Waker>) -> Next {
        if self.order.as_ref().is_some_and(KeyOrder::has_ready) {
            return Next::At(self.start_ns);
        }
        if self.held() >= MOST_HELD {
            return Next::Later;
        }
        if self.head_ns().is_none() {
            self.refill(waker);
        }
        if self.skipped != (0, 0) {
            // `take` counts them: it has a tally at hand.
            return Next::At(self.start_ns);
        }
        match self.head_ns() {
            Some(_) if self.asap && self.start_ns < cutoff_ns => Next::At(self.start_ns),
            Some(due) if due < cutoff_ns => Next::At(due),
            Some(_) if self.held() > 0 => Next::Later,
            Some(_) => Next::At(cutoff_ns),
            None if self.over && self.held() == 0 => Next::Over,
            None => Next::Later,
        }
    }

    pub(super) fn take(
        &mut self,
        now_ns: u64,
        shard: &Shard,
        source: &Source,
        names: &mut Names,
    ) -> Offer {
        if now_ns < self.start_ns {
            return Offer::Nothing;
        }
        if let Some(offer) = self.take_ready(now_ns, source, names) {
            return offer;
        }
        let skipped = std::mem::take(&mut self.skipped);
        if skipped != (0, 0) {
            let mut tally = shard.recorder.tally();
            tally.replay.skipped_absent += skipped.0;
            tally.replay.skipped_other += skipped.1;
        }
        let head = self.parcels.front().and_then(|p| p.items.get(self.at));
        let Some(&item) = head else {
            return Offer::Nothing;
        };
        let cutoff_ns = shard.cutoff_ns.get();
        let scheduled_ns = self.start_ns.saturating_add(item.due_ns);
        // Without pacing a request is due when it is taken.
        let due_ns = if self.asap { now_ns } else { scheduled_ns };
        if due_ns >= cutoff_ns {
            if now_ns >= cutoff_ns && self.held() == 0 {
                self.parcels.clear();
                self.over = true;
            }
            return Offer::Nothing;
        }
        if due_ns > now_ns {
            return Offer::Nothing;
        }
        let index = self.at;
        self.at += 1;
        let number = self.before + index as u64;
        let uncounted = number >= self.counted;
        self.counted = self.counted.max(number + 1);
        if item.shaped_ns > 0 {
            let mut tally = shard.recorder.tally();
            tally.replay.shaped += 1;
            tally.shaped.record(item.shaped_ns);
        }
        let parcel = &self.parcels[0];
        let keys = parcel.keys.get(index);
        let due_op = DueOp {
            feed_tag: u32::from(item.mutates) * MUTATES,
            uncounted,
            absent_expected: item.absent,
            ..DueOp::new(item.op, due_ns, now_ns)
        };
        if let LatePolicy::Drop { after_ns } = self.late
            && now_ns - due_ns > after_ns
        {
            shard.recorder.tally().replay.shed += 1;
            return Offer::Shed(due_op);
        }
        if let Some(order) = &mut self.order
            && !order.arrive(&item, &keys, due_ns)
        {
            return Offer::Held(due_op);
        }
        write_names(&item.op, &keys, source, names);
        Offer::Perform(due_op)
    }

    /// The next request that the end of an earlier one on its key has released.
    fn take_ready(&mut self, now_ns: u64, source: &Source, names: &mut Names) -> Option<Offer> {
        let order = self.order.as_mut()?;
        let index = order.pop()?;
        let held = order.get(index);
        let due_op = DueOp {
            blocked_ns: held.freed_ns.saturating_sub(held.due_ns),
            feed_tag: u32::from(held.item.mutates) * MUTATES,
            uncounted: false,
            absent_expected: held.item.absent,
            ..DueOp::new(held.item.op, held.due_ns, now_ns)
        };
        write_names(&held.item.op, &held.keys.get(0), source, names);
        order.done(index);
        Some(Offer::Perform(due_op))
    }

    pub(super) fn ended(&mut self, due_op: &DueOp, end: &OpEnd, shard: &Shard) -> bool {
        let expected = due_op.absent_expected;
        let found = end.outcome == Outcome::Ok && !end.absent;
        if end.absent || (expected && found) {
            let mut tally = shard.recorder.tally();
            match (end.absent, expected) {
                (true, true) => tally.replay.absent_as_recorded += 1,
                (true, false) => tally.replay.absent += 1,
                (false, _) => tally.replay.unexpected += 1,
            }
            if self.fail_on_absent && end.absent && !expected {
                shard.fail_absent(&due_op.op);
            }
        }
        match &mut self.order {
            Some(order) if due_op.feed_tag == MUTATES => {
                let full = order.held() >= MOST_HELD;
                order.release(due_op.op.key, end.done_ns);
                full || order.has_ready() || self.over
            }
            _ => false,
        }
    }

    pub(super) fn count_until(
        &mut self,
        until_ns: u64,
        cutoff_ns: u64,
        offer: &mut dyn FnMut(u64, &Op),
    ) {
        if self.asap {
            // Without pacing nothing is due before it is taken.
            return;
        }
        let until_ns = until_ns.min(cutoff_ns);
        let mut first = self.before;
        for parcel in &self.parcels {
            let from = self.counted.saturating_sub(first) as usize;
            for item in parcel.items.iter().skip(from) {
                let due_ns = self.start_ns.saturating_add(item.due_ns);
                if due_ns >= until_ns {
                    return;
                }
                offer(due_ns, &item.op);
                self.counted += 1;
            }
            first += parcel.items.len() as u64;
        }
    }
}

/// Writes the names of a request, below the run's prefix.
fn write_names(op: &Op, keys: &Recorded<'_>, source: &Source, names: &mut Names) {
    let bucket = keys.record.bucket;
    source.recorded_name(bucket, keys.key, names.key_mut());
    names.clear_source();
    match op.class {
        OpClass::Copy => {
            if let Some(other) = keys.more().next() {
                let more = names.more_mut();
                source.recorded_name(bucket, other, &mut more.source);
            }
        }
        OpClass::DeleteMany => {
            let more = names.more_mut();
            more.listed.clear();
            for key in std::iter::once(keys.key).chain(keys.more()) {
                more.listed
                    .push(|out| source.push_recorded(bucket, key, out));
            }
        }
        _ => {}
    }
}
