//! Puts the blocks that the reader of a trace delivers together into requests.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use bucketload_core::plan::KvcachePlan;

use crate::feed::queue::{Parcel, Pop, Queue};

/// A block of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) id: u64,
    pub(super) tokens: u64,
    pub(super) bytes: u64,
    /// Objects of the block that were found, read or written in the current stage.
    pub(super) good: u32,
    /// Objects of the block whose operation has ended in the current stage.
    pub(super) ended: u32,
    /// End of its last read, nanoseconds since the epoch.
    pub(super) done_ns: u64,
}

/// The next request of the trace.
#[derive(Debug, Default)]
pub(super) struct Arrival {
    /// Due instant, nanoseconds from the start.
    pub(super) due_ns: u64,
    /// The blocks that the cache stores.
    pub(super) blocks: Vec<Block>,
    /// Tokens of all blocks, also of those that it does not store.
    pub(super) tokens: u64,
}

/// The requests of a trace, one at a time.
pub(super) struct Arrivals {
    queue: Arc<Queue>,
    parcels: VecDeque<Parcel>,
    at: usize,
    next: Arrival,
    /// Blocks of `next` in the trace, those that arrived and all.
    taken: u64,
    of: u64,
    over: bool,
}

impl Arrivals {
    pub(super) fn new(queue: Arc<Queue>) -> Self {
        Self {
            queue,
            parcels: VecDeque::new(),
            at: 0,
            next: Arrival::default(),
            taken: 0,
            of: u64::MAX,
            over: false,
        }
    }

    /// Whether nothing more will come.
    pub(super) fn is_over(&self) -> bool {
        self.over && self.taken < self.of
    }

    /// Drops what has not been taken.
    pub(super) fn end(&mut self) {
        self.parcels.clear();
        (self.over, self.taken, self.of) = (true, 0, u64::MAX);
    }

    /// Due instant of the next request, nanoseconds from the start; `None` if there is none yet. Then `waker` is woken
    /// when more comes.
    pub(super) fn head_ns(&mut self, plan: &KvcachePlan, waker: Option<&Waker>) -> Option<u64> {
        while self.taken < self.of && !self.over {
            let Some(parcel) = self.parcels.front() else {
                match self.queue.pop(waker) {
                    Pop::Parcel(parcel) => self.parcels.push_back(parcel),
                    Pop::Empty => return None,
                    Pop::Ended => self.over = true,
                }
                continue;
            };
            let Some(item) = parcel.items.get(self.at) else {
                if let Some(used) = self.parcels.pop_front() {
                    self.queue.give_back(used);
                }
                self.at = 0;
                continue;
            };
            let recorded = parcel.keys.get(self.at);
            self.at += 1;
            if recorded.record.part == 0 {
                (self.next.due_ns, self.next.tokens, self.taken) = (item.due_ns, 0, 0);
                self.next.blocks.clear();
                self.of = recorded.record.upload.max(1);
            }
            self.taken += 1;
            let number = std::str::from_utf8(recorded.key).ok();
            let number = number.and_then(|text| text.parse().ok());
            self.add(
                plan,
                number.unwrap_or(recorded.record.key_hash),
                item.op.size,
            );
        }
        (self.taken >= self.of).then_some(self.next.due_ns)
    }

    /// Adds block `id` of the trace, of `tokens` tokens, in blocks of the cache.
    fn add(&mut self, plan: &KvcachePlan, id: u64, tokens: u64) {
        let per_block = plan.trace_block_tokens / plan.block_tokens;
        self.next.tokens += tokens;
        let mut left = tokens;
        for i in 0..per_block {
            let tokens = left.min(plan.block_tokens);
            left -= tokens;
            if tokens == 0 || tokens < plan.block_tokens && !plan.partial_last {
                return;
            }
            self.next.blocks.push(Block {
                id: id.wrapping_mul(per_block).wrapping_add(i),
                tokens,
                // No object is empty.
                bytes: plan.bytes_of(tokens).max(plan.parts()),
                good: 0,
                ended: 0,
                done_ns: 0,
            });
        }
    }

    /// Takes the request that [`Arrivals::head_ns`] announced, in exchange for the memory of an old one.
    pub(super) fn take(&mut self, blocks: Vec<Block>) -> Arrival {
        (self.taken, self.of) = (0, u64::MAX);
        let empty = Arrival {
            blocks,
            ..Arrival::default()
        };
        std::mem::replace(&mut self.next, empty)
    }
}
