//! Where an open work's operations come from, and when they are due.
//!
//! ```text
//!  Fixed   a schedule: due instants and operations are functions of the sequence number
//!  Jobs    stages of jobs: the end of one stage decides when the next is due
//!  Trace   records that a reader thread reads from a file
//!  Kvcache requests from such records; what is read and written depends on what was written before
//!                 │ next: when to look again      ▲ ended: an operation's end may release others
//!                 ▼ take: the operation           │
//!               Baton ── leader ── perform ───────┘
//! ```
//!
//! A feed belongs to one load thread. Its kind never changes, so choosing between kinds is a branch that the processor
//! always predicts.

mod fixed;
mod jobs;
mod keys;
mod kvcache;
mod queue;
mod reader;
mod stage;
mod stretch;
mod trace;

use std::task::Waker;

use bucketload_core::op::Op;

pub(crate) use fixed::Fixed;
pub(crate) use jobs::Jobs;
pub(crate) use kvcache::Kvcache;
pub(crate) use queue::Queue;
pub(crate) use reader::Reader;
pub(crate) use stretch::Stretch;
pub(crate) use trace::Trace;

use crate::due::{DueOp, OpEnd};
use crate::names::Names;
use crate::shard::Shard;
use crate::source::Source;

/// When the leader should look at the feed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// At this instant, nanoseconds since the epoch: an operation is due then, or the offering ends.
    At(u64),
    /// The next arrival is not known until an operation ends or the reader of a trace delivers.
    Later,
    /// Nothing more will come.
    Over,
}

/// A feed's answer when it is asked for an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Offer {
    /// An operation to perform.
    Perform(DueOp),
    /// An operation that fell due but has to wait for an earlier one; the feed will offer it again.
    Held(DueOp),
    /// An operation that is skipped because it is too late.
    Shed(DueOp),
    /// Nothing is due.
    Nothing,
}

/// The operations of one open work on one thread.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one per work and thread, and a static schedule should cost no indirection"
)]
pub(crate) enum Feed {
    Fixed(Fixed),
    Jobs(Box<Jobs>),
    Trace(Box<Trace>),
    Kvcache(Box<Kvcache>),
}

impl Feed {
    /// The phase begins at `start_ns`.
    pub(crate) fn start(&mut self, start_ns: u64) {
        match self {
            Self::Fixed(feed) => feed.start(start_ns),
            Self::Jobs(feed) => feed.start(start_ns),
            Self::Trace(feed) => feed.start(start_ns),
            Self::Kvcache(feed) => feed.start(start_ns),
        }
    }

    /// When to look again, given that nothing new begins at or after `cutoff_ns`. A feed that waits for another thread
    /// wakes `waker` when that delivers.
    #[inline]
    pub(crate) fn next(&mut self, cutoff_ns: u64, waker: Option<&Waker>) -> Next {
        match self {
            Self::Fixed(feed) => feed.next(cutoff_ns),
            Self::Jobs(feed) => feed.next(cutoff_ns),
            Self::Trace(feed) => feed.next(cutoff_ns, waker),
            Self::Kvcache(feed) => feed.next(cutoff_ns, waker),
        }
    }

    /// The operation that is due at `now_ns`, if any. Call only when [`Feed::next`] has named an instant that is not
    /// later. Writes the operation's names if the source cannot render them.
    #[inline]
    pub(crate) fn take(
        &mut self,
        now_ns: u64,
        shard: &Shard,
        source: &Source,
        names: &mut Names,
    ) -> Offer {
        match self {
            Self::Fixed(feed) => feed.take(now_ns, shard, source),
            Self::Jobs(feed) => feed.take(now_ns, shard),
            Self::Trace(feed) => feed.take(now_ns, shard, source, names),
            Self::Kvcache(feed) => feed.take(now_ns, shard, names),
        }
    }

    /// Calls `offer` for every uncounted operation that is due before `until_ns`.
    pub(crate) fn count_until(
        &mut self,
        until_ns: u64,
        shard: &Shard,
        source: &Source,
        offer: &mut dyn FnMut(u64, &Op),
    ) {
        match self {
            Self::Fixed(feed) => feed.count_until(until_ns, shard, source, offer),
            Self::Jobs(feed) => feed.count_until(until_ns, shard.cutoff_ns.get(), offer),
            Self::Trace(feed) => feed.count_until(until_ns, shard.cutoff_ns.get(), offer),
            Self::Kvcache(feed) => feed.count_until(until_ns, offer),
        }
    }

    /// An operation has ended. Returns whether the leader should look again.
    #[inline]
    pub(crate) fn ended(&mut self, due_op: &DueOp, end: &OpEnd, shard: &Shard) -> bool {
        match self {
            Self::Fixed(_) => false,
            Self::Jobs(feed) => feed.ended(due_op.feed_tag, end, shard),
            Self::Trace(feed) => feed.ended(due_op, end, shard),
            Self::Kvcache(feed) => feed.ended(due_op, end, shard),
        }
    }

    /// Due instant of the oldest operation that was not taken, nanoseconds since the epoch.
    pub(crate) fn oldest_due_ns(&self) -> Option<u64> {
        match self {
            Self::Fixed(feed) => feed.head_ns(),
            Self::Jobs(feed) => feed.head_ns(),
            Self::Trace(feed) => feed.oldest_ns(),
            Self::Kvcache(feed) => feed.oldest_ns(),
        }
    }

    /// Jobs, or requests of a language model, that have arrived and not ended.
    pub(crate) fn jobs(&self) -> u64 {
        match self {
            Self::Jobs(feed) => feed.under_way(),
            Self::Kvcache(feed) => feed.under_way(),
            Self::Fixed(_) | Self::Trace(_) => 0,
        }
    }
}
