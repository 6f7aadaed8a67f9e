//! Periodic batches: in every period each client offers one batch of uniformly distributed size.
//!
//! ```text
//!  client 0   ▐k            ▐k'           ▐k''        phase of client c: U(0, period)
//!  client 1       ▐k            ▐k'           ▐k''    k ~ U{min..max}, all at the tick, spread
//!                                                    over a time or at a pace
//!            ─┼─────────────┼─────────────┼────────▶
//!             0           period
//! ```
//!
//! Batches start in a fixed order (period by period, clients by phase). A heap holds the active ones, at most
//! two per client, and yields their operations in order of due instant.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::generate::elementary::{exp_m1, ln};
use crate::generate::rng::{Draws, Purpose, Stream};

/// A batch with operations still to yield.
#[derive(Clone, Debug)]
struct Active {
    due_ns: u64,
    /// Position in the order of batches: breaks ties and addresses the batch's random numbers.
    number: u64,
    start_ns: u64,
    /// Operations left, including the one due next.
    left: u32,
    /// Position of the next operation in the spread, 0 to 1.
    position: f64,
    draws: Draws,
}

impl Active {
    /// Determines the due instant of the next operation. The smallest of m uniform variables on the rest of
    /// the spread is at the fraction 1 - U^(1/m), so sorted positions can be drawn one by one.
    #[inline]
    fn schedule_next(&mut self, spread_ns: u64) {
        if spread_ns > 0 {
            let share = -exp_m1(ln(self.draws.next_open()) / f64::from(self.left));
            self.position += (1.0 - self.position) * share;
            let offset = (self.position * spread_ns as f64) as u64;
            self.due_ns = self.start_ns.saturating_add(offset);
        }
    }
}

impl PartialEq for Active {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Active {}
impl PartialOrd for Active {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Active {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due_ns, self.number).cmp(&(other.due_ns, other.number))
    }
}

#[derive(Clone, Debug)]
pub(super) struct Batches {
    seed: u64,
    length: Stream,
    spread: Stream,
    period_ns: u64,
    min: u32,
    max: u32,
    spread_ns: u64,
    /// Time between the operations of a batch; 0 unless they are paced.
    gap_ns: u64,
    /// Phases of the clients, ascending.
    phases_ns: Box<[u64]>,
    /// Batches begun.
    begun: u64,
    active: BinaryHeap<Reverse<Active>>,
}

impl Batches {
    /// The batches of `clients` clients: `min` to `max` operations each, spread over `spread_ns` or
    /// `gap_ns` apart (one of which must be 0).
    pub(super) fn new(
        seed: u64,
        (phase, work): (u16, u16),
        clients: u32,
        period_ns: u64,
        (min, max): (u32, u32),
        (spread_ns, gap_ns): (u64, u64),
    ) -> Self {
        let stream = |purpose| Stream::new(purpose, phase, work);
        let mut phases_ns: Box<[u64]> = (0..u64::from(clients))
            .map(|c| Draws::new(seed, stream(Purpose::ClientPhase), c).below(period_ns))
            .collect();
        phases_ns.sort_unstable();
        Self {
            seed,
            length: stream(Purpose::BatchLength),
            spread: stream(Purpose::BatchSpread),
            period_ns,
            min,
            max,
            spread_ns,
            gap_ns,
            phases_ns,
            begun: 0,
            active: BinaryHeap::new(),
        }
    }

    /// Instant at which the next batch begins.
    #[inline]
    fn next_start_ns(&self) -> u64 {
        let clients = self.phases_ns.len() as u64;
        let phase = self.phases_ns[(self.begun % clients) as usize];
        (self.begun / clients)
            .saturating_mul(self.period_ns)
            .saturating_add(phase)
    }

    fn begin(&mut self) {
        let start_ns = self.next_start_ns();
        let number = self.begun;
        self.begun += 1;
        let range = u64::from(self.max - self.min) + 1;
        let drawn = Draws::new(self.seed, self.length, number).below(range);
        let mut batch = Active {
            due_ns: start_ns,
            number,
            start_ns,
            left: self.min + drawn as u32,
            position: 0.0,
            draws: Draws::new(self.seed, self.spread, number),
        };
        if batch.left > 0 {
            batch.schedule_next(self.spread_ns);
            self.active.push(Reverse(batch));
        }
    }

    /// The next due instant.
    #[inline]
    pub(super) fn step(&mut self) -> Option<u64> {
        // A batch that starts after the earliest active operation cannot precede it.
        while self
            .active
            .peek()
            .is_none_or(|Reverse(first)| self.next_start_ns() < first.due_ns)
        {
            self.begin();
        }
        let mut first = self.active.peek_mut()?;
        let batch = &mut first.0;
        let due_ns = batch.due_ns;
        batch.left -= 1;
        if batch.left > 0 {
            batch.schedule_next(self.spread_ns);
            batch.due_ns = batch.due_ns.saturating_add(self.gap_ns);
        } else {
            PeekMut::pop(first);
        }
        Some(due_ns)
    }
}
