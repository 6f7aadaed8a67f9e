//! The slowest requests of a phase, each with the details that explain why it was slow.
//!
//! ```text
//! load thread: Slowest<(Trail, KeyText)> ── new ones, with each interval ──▶ collector: the phase's slowest
//!                                                                            └─ new ones ─▶ RunSink
//! ```
//!
//! Each thread keeps its own [`KEPT`] slowest, so the slowest of all are among them. Most operations cost one
//! comparison.

use serde::{Deserialize, Serialize};

use crate::error::ErrorKind;
use crate::op::OpClass;
use crate::record::{Outcome, Part};
use crate::trail::Trail;

/// Requests kept per phase (docs/spec/statistics.md section 1).
pub const KEPT: usize = 1000;

/// Keeps the entries with the largest values, in a binary heap whose root has the smallest value kept.
#[derive(Clone, Debug)]
pub struct Slowest<T> {
    capacity: usize,
    /// Value and slot, in heap order with the smallest value first.
    heap: Vec<(u64, u32)>,
    slots: Vec<T>,
    /// Whether each slot was filled since the last [`Slowest::take_fresh`].
    fresh: Vec<bool>,
    any_fresh: bool,
}

impl<T: Clone> Slowest<T> {
    /// An empty list of at most `capacity` entries (at least 1). Reserves memory for all of them.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let capacity = capacity.max(1);
        Self {
            capacity,
            heap: Vec::with_capacity(capacity),
            slots: Vec::with_capacity(capacity),
            fresh: Vec::with_capacity(capacity),
            any_fresh: false,
        }
    }

    /// An entry is kept if its value exceeds this threshold.
    #[inline]
    #[must_use]
    pub fn threshold(&self) -> u64 {
        if self.heap.len() < self.capacity {
            0
        } else {
            self.heap[0].0
        }
    }

    /// Keeps `entry` if `value` exceeds the threshold. Returns whether it did.
    pub fn offer(&mut self, value: u64, entry: T) -> bool {
        if value <= self.threshold() {
            return false;
        }
        self.any_fresh = true;
        if self.heap.len() < self.capacity {
            self.heap.push((value, self.slots.len() as u32));
            self.slots.push(entry);
            self.fresh.push(true);
            self.rise(self.heap.len() - 1);
        } else {
            let slot = self.heap[0].1;
            self.slots[slot as usize] = entry;
            self.fresh[slot as usize] = true;
            self.heap[0] = (value, slot);
            self.sink();
        }
        true
    }

    fn rise(&mut self, mut at: usize) {
        while at > 0 && self.heap[at] < self.heap[(at - 1) / 2] {
            self.heap.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
    }

    fn sink(&mut self) {
        let mut at = 0;
        loop {
            let children = 2 * at + 1..(2 * at + 3).min(self.heap.len());
            let Some(least) = children.min_by_key(|&child| self.heap[child]) else {
                return;
            };
            if self.heap[at] <= self.heap[least] {
                return;
            }
            self.heap.swap(at, least);
            at = least;
        }
    }

    /// The entries kept since the last call that are still in the list, in no order. Allocates only if there are any.
    pub fn take_fresh(&mut self) -> Vec<T> {
        if !self.any_fresh {
            return Vec::new();
        }
        self.any_fresh = false;
        let (slots, fresh) = (&self.slots, &mut self.fresh);
        self.heap
            .iter()
            .filter(|(_, slot)| std::mem::take(&mut fresh[*slot as usize]))
            .map(|&(_, slot)| slots[slot as usize].clone())
            .collect()
    }

    /// Makes the next [`Slowest::take_fresh`] return all entries, because those that the last one returned were lost.
    pub fn refresh(&mut self) {
        self.fresh.fill(true);
        self.any_fresh = !self.fresh.is_empty();
    }

    /// The entries with their values, largest first.
    #[must_use]
    pub fn sorted(&self) -> Vec<(u64, &T)> {
        let mut all: Vec<_> = self.heap.clone();
        all.sort_unstable_by(|a, b| b.cmp(a));
        all.into_iter()
            .map(|(value, slot)| (value, &self.slots[slot as usize]))
            .collect()
    }

    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// True if empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

/// One of the slowest requests, in the form of files and messages. Instants are nanoseconds since the run's epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct SlowRequest {
    /// Index of the phase.
    pub phase: u16,
    /// Index of the work within the phase.
    pub work: u16,
    /// Operation class.
    pub class: OpClass,
    /// Position in the work's global sequence.
    pub seq: u64,
    /// Key; for lists, the prefix.
    pub key: String,
    /// End minus intended start, nanoseconds. The list is ordered by this.
    pub response_ns: u64,
    /// The parts of the response time, nanoseconds, without those that took no time.
    pub parts: Vec<(Part, u64)>,
    /// Intended start.
    pub due_ns: u64,
    /// When the request of the last attempt left.
    pub started_ns: u64,
    /// When the answer's first byte came; 0 if none came.
    pub first_byte_ns: u64,
    /// End of the operation.
    pub done_ns: u64,
    /// Object bytes transferred.
    pub bytes: u64,
    /// Index of the worker among all workers of the agent.
    pub worker: u32,
    /// Index of the endpoint.
    pub endpoint: u16,
    /// Number of the connection within the run; 0 if the driver has none.
    pub connection: u64,
    /// Local port of the connection; 0 if unknown.
    pub local_port: u16,
    /// Number of attempts.
    pub attempts: u32,
    /// Status of the last answer; 0 if there was none.
    pub status: u16,
    /// Why the operation failed; `None` if it succeeded.
    pub error: Option<ErrorKind>,
    /// The store's identifier of the request; empty if it gave none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request_id: String,
    /// The store's identifier of host or path; empty if it gave none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub extended_id: String,
}

crate::serde_once!(SlowRequest);

impl SlowRequest {
    /// The request with trail `trail` and key `key`.
    #[must_use]
    pub fn new(phase: u16, trail: &Trail, key: String) -> Self {
        let r = &trail.record;
        Self {
            phase,
            work: r.work,
            class: r.class,
            seq: trail.op.seq,
            key,
            response_ns: r.response_ns(),
            parts: Part::ALL
                .into_iter()
                .map(|part| (part, r.part_ns(part)))
                .filter(|&(_, ns)| ns > 0)
                .collect(),
            due_ns: r.due_ns,
            started_ns: r.started_ns,
            first_byte_ns: r.first_byte_ns,
            done_ns: r.done_ns,
            bytes: r.bytes,
            worker: r.worker,
            endpoint: r.endpoint,
            connection: trail.route.connection,
            local_port: trail.route.local_port,
            attempts: r.attempts,
            status: trail.status,
            error: match r.outcome {
                Outcome::Ok => None,
                Outcome::Failed(kind) => Some(kind),
            },
            request_id: trail.ids.request_id.as_str().to_owned(),
            extended_id: trail.ids.extended_id.as_str().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Slowest;

    proptest! {
        #[test]
        fn the_largest_are_kept(values in prop::collection::vec(1u64..500, 0..300), capacity in 1usize..40) {
            let mut list = Slowest::new(capacity);
            for (i, &value) in values.iter().enumerate() {
                list.offer(value, i);
            }
            let kept: Vec<u64> = list.sorted().iter().map(|(value, _)| *value).collect();
            let mut wanted = values.clone();
            wanted.sort_unstable_by(|a, b| b.cmp(a));
            wanted.truncate(capacity);
            prop_assert_eq!(kept, wanted);
            for (value, &i) in list.sorted() {
                prop_assert_eq!(values[i], value);
            }
        }

        /// The entries that all threads deliver piece by piece contain the slowest of all.
        #[test]
        fn fresh_entries_of_all_threads_hold_the_slowest(
            values in prop::collection::vec((0usize..3, 1u64..1 << 40), 0..300),
            capacity in 1usize..30,
            every in 1usize..50,
        ) {
            let mut threads = vec![Slowest::new(capacity); 3];
            let mut whole = Slowest::new(capacity);
            let mut delivered = 0;
            for (i, &(thread, value)) in values.iter().enumerate() {
                threads[thread].offer(value, value);
                if i % every == 0 || i + 1 == values.len() {
                    for thread in &mut threads {
                        for value in thread.take_fresh() {
                            whole.offer(value, value);
                            delivered += 1;
                        }
                    }
                }
            }
            prop_assert!(delivered <= values.len(), "nothing is delivered twice");
            let mut wanted: Vec<u64> = values.iter().map(|v| v.1).collect();
            wanted.sort_unstable_by(|a, b| b.cmp(a));
            wanted.truncate(capacity);
            let kept: Vec<u64> = whole.sorted().iter().map(|(value, _)| *value).collect();
            prop_assert_eq!(kept, wanted);
            prop_assert!(threads.iter_mut().all(|t| t.take_fresh().is_empty()));
        }
    }
}
