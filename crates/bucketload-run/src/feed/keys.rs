//! Keeps the order of requests on each key: none is sent before the latest mutating one on its key has ended.
//!
//! ```text
//!  PUT k ─▶ sent          GET k ─▶ held ─┐   PUT k ─▶ held ─┐   GET k ─▶ held
//!            └─ ended ───────────────────▶ sent            ▶ sent     │
//!                                                            └─ ended ─▶ sent
//! ```
//!
//! Only keys with a mutating request in flight are remembered, and the caller bounds the number of held requests. So
//! memory does not grow with the trace.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use bucketload_core::trace::{Batch, Recorded};

use super::queue::TraceRequest;

/// No index.
const NONE: u32 = u32::MAX;

/// A hasher for keys that are hashes already.
#[derive(Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|b| self.0 = self.0.rotate_left(8) ^ u64::from(*b));
    }
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// A request that waits for its key.
pub(super) struct HeldRequest {
    pub(super) item: TraceRequest,
    pub(super) keys: Batch,
    /// When it fell due, nanoseconds since the epoch.
    pub(super) due_ns: u64,
    /// When it was released, nanoseconds since the epoch.
    pub(super) freed_ns: u64,
    next: u32,
}

/// Queue of the requests held on one key: indices of first and last.
#[derive(Clone, Copy)]
struct Line {
    first: u32,
    last: u32,
}

/// Keeps the order of each key.
#[derive(Default)]
pub(super) struct KeyOrder {
    busy: HashMap<u64, Line, BuildHasherDefault<Identity>>,
    slab: Vec<HeldRequest>,
    free: Vec<u32>,
    ready: VecDeque<u32>,
    held: usize,
}

impl KeyOrder {
    /// Number of requests that are held, or released and not taken.
    pub(super) const fn held(&self) -> usize {
        self.held
    }

    /// Due instant of the oldest request that is held, or released and not taken.
    pub(super) fn oldest_ns(&self) -> Option<u64> {
        // Within a line the first is the oldest.
        let held = self.busy.values().map(|line| line.first);
        let all = held.chain(self.ready.iter().copied());
        all.filter_map(|index| Some(self.slab.get(index as usize)?.due_ns))
            .min()
    }

    /// Whether released requests are waiting to be taken.
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// A request falls due. Returns whether it may be sent; otherwise holds it.
    pub(super) fn arrive(&mut self, item: &TraceRequest, keys: &Recorded<'_>, due_ns: u64) -> bool {
        let Some(line) = self.busy.get_mut(&item.op.key) else {
            if item.mutates {
                let line = Line {
                    first: NONE,
                    last: NONE,
                };
                self.busy.insert(item.op.key, line);
            }
            return true;
        };
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                self.slab.push(HeldRequest {
                    item: *item,
                    keys: Batch::new(),
                    due_ns,
                    freed_ns: 0,
                    next: NONE,
                });
                (self.slab.len() - 1) as u32
            }
        };
        let held = &mut self.slab[index as usize];
        (held.item, held.due_ns, held.freed_ns, held.next) = (*item, due_ns, 0, NONE);
        held.keys.clear();
        held.keys.push_recorded(keys, keys.record);
        match line.last {
            NONE => line.first = index,
            last => self.slab[last as usize].next = index,
        }
        line.last = index;
        self.held += 1;
        false
    }

    /// The mutating request in flight on key `hash` has ended: releases the requests behind it, up to and including the
    /// next mutating one.
    pub(super) fn release(&mut self, hash: u64, now_ns: u64) {
        let Some(line) = self.busy.get_mut(&hash) else {
            return;
        };
        while line.first != NONE {
            let index = line.first;
            let held = &mut self.slab[index as usize];
            line.first = held.next;
            held.freed_ns = now_ns;
            self.ready.push_back(index);
            if held.item.mutates {
                if line.first == NONE {
                    line.last = NONE;
                }
                return;
            }
        }
        self.busy.remove(&hash);
    }

    /// Index of the request that was released first. Give it back with [`KeyOrder::done`].
    pub(super) fn pop(&mut self) -> Option<u32> {
        self.ready.pop_front()
    }

    pub(super) fn get(&self, index: u32) -> &HeldRequest {
        &self.slab[index as usize]
    }

    pub(super) fn done(&mut self, index: u32) {
        self.held -= 1;
        self.free.push(index);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, VecDeque};

    use bucketload_core::op::{Op, OpClass};
    use bucketload_core::trace::{Batch, TraceRecord};
    use proptest::prelude::*;

    use super::KeyOrder;
    use crate::feed::queue::TraceRequest;

    fn item(seq: u64, key: u64, mutates: bool) -> TraceRequest {
        let class = if mutates { OpClass::Put } else { OpClass::Get };
        let op = Op {
            seq,
            key,
            ..Op::new(class)
        };
        TraceRequest {
            op,
            due_ns: 0,
            shaped_ns: 0,
            mutates,
            absent: false,
        }
    }

    proptest! {
        /// The definition: when a request is sent, every earlier mutating request on its key has ended, and every
        /// request is sent in the end.
        #[test]
        fn every_request_sees_the_mutations_before_it(
            requests in prop::collection::vec((0u64..4, any::<bool>()), 1..200),
            ends in prop::collection::vec(0usize..8, 0..400),
        ) {
            let mut order = KeyOrder::default();
            let mut batch = Batch::new();
            let mut flying: VecDeque<TraceRequest> = VecDeque::new();
            let mut last_mutation: HashMap<u64, u64> = HashMap::new();
            let mut before: Vec<Option<u64>> = Vec::new();
            let mut ended = vec![false; requests.len()];
            let mut sent = 0;
            let mut ends = ends.into_iter();
            let send = |item: TraceRequest, flying: &mut VecDeque<TraceRequest>, ended: &[bool], before: &[Option<u64>]| {
                let earlier = before[item.op.seq as usize];
                assert!(earlier.is_none_or(|seq| ended[seq as usize]), "{item:?}");
                flying.push_back(item);
            };
            let mut next = requests.iter().enumerate();
            loop {
                let arrival = next.next();
                if let Some((seq, &(key, mutates))) = arrival {
                    let item = item(seq as u64, key, mutates);
                    before.push(last_mutation.get(&key).copied());
                    if mutates {
                        last_mutation.insert(key, seq as u64);
                    }
                    batch.clear();
                    batch.push(TraceRecord::default(), &key.to_le_bytes(), []);
                    if order.arrive(&item, &batch.get(0), 0) {
                        send(item, &mut flying, &ended, &before);
                        sent += 1;
                    }
                }
                let n = ends.next().unwrap_or(1);
                let n = if arrival.is_none() { n.max(1) } else { n };
                for _ in 0..n {
                    let Some(item) = flying.pop_front() else { break };
                    ended[item.op.seq as usize] = true;
                    if item.mutates {
                        order.release(item.op.key, 1);
                    }
                    while let Some(index) = order.pop() {
                        let held = order.get(index).item;
                        order.done(index);
                        send(held, &mut flying, &ended, &before);
                        sent += 1;
                    }
                }
                if arrival.is_none() && flying.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(sent, requests.len());
            prop_assert_eq!(order.held(), 0);
            prop_assert!(order.busy.is_empty());
        }
    }
}
