//! The static schedule: due instants and operations are functions of the sequence number.

use bucketload_core::generate::arrivals::{Arrival, Arrivals};
use bucketload_core::op::Op;

use super::{Next, Offer};
use crate::due::DueOp;
use crate::shard::Shard;
use crate::source::Source;

/// One thread's share of a schedule.
pub(crate) struct Fixed {
    arrivals: Arrivals,
    /// The next arrival.
    head: Option<Arrival>,
    start_ns: u64,
    /// A second cursor that counts offered arrivals while the thread is behind its schedule.
    ahead: Option<(Arrivals, Option<Arrival>)>,
    /// Every arrival due before this instant has been counted as offered.
    counted_to_ns: u64,
    /// First sequence number beyond the operation limit.
    beyond_seq: u64,
}

impl Fixed {
    pub(crate) fn new(arrivals: Arrivals) -> Self {
        Self {
            arrivals,
            head: None,
            start_ns: 0,
            ahead: None,
            counted_to_ns: 0,
            beyond_seq: u64::MAX,
        }
    }

    /// The phase begins, which makes the due instants absolute.
    pub(super) fn start(&mut self, start_ns: u64) {
        self.start_ns = start_ns;
        self.head = self.arrivals.next();
    }

    #[inline]
    fn due(&self, arrival: Arrival) -> u64 {
        self.start_ns.saturating_add(arrival.due_ns)
    }

    /// Due instant of the next arrival.
    pub(super) fn head_ns(&self) -> Option<u64> {
        self.head.map(|head| self.due(head))
    }

    #[inline]
    pub(super) fn next(&self, cutoff_ns: u64) -> Next {
        match self.head {
            Some(head) => Next::At(self.due(head).min(cutoff_ns)),
            None => Next::Over,
        }
    }

    /// The next arrival. The schedule is over when that lies beyond the cutoff or the operation limit.
    #[inline]
    pub(super) fn take(&mut self, now_ns: u64, shard: &Shard, source: &Source) -> Offer {
        let Some(arrival) = self.head else {
            return Offer::Nothing;
        };
        let due_ns = self.due(arrival);
        if due_ns >= shard.cutoff_ns.get() {
            if now_ns >= shard.cutoff_ns.get() {
                self.head = None;
            }
            return Offer::Nothing;
        }
        let uncounted = due_ns >= self.counted_to_ns;
        if uncounted && self.is_beyond(arrival, shard) || arrival.seq >= self.beyond_seq {
            self.head = None;
            return Offer::Nothing;
        }
        let op = source.op(arrival.seq);
        self.head = self.arrivals.next();
        Offer::Perform(DueOp {
            uncounted,
            ..DueOp::new(op, due_ns, now_ns)
        })
    }

    /// Whether the operation limit excludes an uncounted arrival.
    #[inline]
    fn is_beyond(&mut self, arrival: Arrival, shard: &Shard) -> bool {
        if arrival.seq < self.beyond_seq && shard.beyond_ops(arrival.seq) {
            self.beyond_seq = arrival.seq;
        }
        arrival.seq >= self.beyond_seq
    }

    pub(super) fn count_until(
        &mut self,
        until_ns: u64,
        shard: &Shard,
        source: &Source,
        offer: &mut dyn FnMut(u64, &Op),
    ) {
        let until_ns = until_ns.min(shard.cutoff_ns.get());
        if until_ns <= self.counted_to_ns {
            return;
        }
        let Some(head) = self.head else { return };
        if self.due(head) < until_ns {
            let stale = |next: &Option<Arrival>| next.is_some_and(|a| a.seq < head.seq);
            let (mut arrivals, mut next) = match self.ahead.take() {
                Some((arrivals, next)) if !stale(&next) => (arrivals, next),
                _ => (self.arrivals.clone(), Some(head)),
            };
            while let Some(arrival) = next {
                let due = self.due(arrival);
                if due >= until_ns {
                    break;
                }
                if due >= self.counted_to_ns {
                    if self.is_beyond(arrival, shard) {
                        break;
                    }
                    offer(due, &source.op(arrival.seq));
                }
                next = arrivals.next();
            }
            self.ahead = Some((arrivals, next));
        }
        self.counted_to_ns = until_ns;
    }
}
