//! Arrival processes: the absolute due instants of one global schedule.
//!
//! ```text
//!  Schedule (law, seed) ── arrivals() ──> 0 1 2 3 4 5 6 7 …      the global schedule
//!                       └─ shard(1 of 3) ─> 1     4     7 …      every third of the same instants
//! ```
//!
//! Sharding strides over the sequence numbers of one schedule, so the law of arrivals does not change with
//! the number of workers. (The superposition of W independent log-normal renewal processes would tend towards
//! Poisson.) Every gap is a function of (seed, index), and every iterator adds the same gaps in the same
//! order, so all see identical instants.
//!
//! Instants never drift. They are sums stored as whole nanoseconds plus a fraction below 1 ns (`Instant`),
//! whose rounding error stays below 1 ns over 10^9 arrivals at rates of 1 per second and above.

mod batch;
mod intensity;
mod schedule;

use self::batch::Batches;
use self::intensity::Modulated;
pub use self::schedule::Schedule;
use super::elementary::exp;
use super::math::normal_quantile;
use super::rng::{Draws, Stream, open_unit};

/// Nanoseconds per second.
const NS: f64 = 1e9;

/// One arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Position in the global schedule, from 0.
    pub seq: u64,
    /// Due instant, nanoseconds from the start of the phase.
    pub due_ns: u64,
}

/// A share of the global schedule: the arrivals whose sequence number is `index` modulo `of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which share, below `of`.
    pub index: u32,
    /// Number of shares.
    pub of: u32,
}

impl Shard {
    /// The whole schedule.
    pub const ALL: Self = Self { index: 0, of: 1 };
}

/// A point in time that sums without loss of precision: whole nanoseconds and a fraction in [0, 1).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Instant {
    whole_ns: u64,
    fraction: f64,
}

impl Instant {
    /// Advances by `gap_ns` ≥ 0; saturates at the largest instant (584 years).
    #[inline]
    fn advance(&mut self, gap_ns: f64) {
        let sum = self.fraction + gap_ns;
        let whole = sum as u64;
        self.whole_ns = self.whole_ns.saturating_add(whole);
        self.fraction = (sum - whole as f64).max(0.0);
    }

    /// Nanoseconds until the whole instant `to_ns`; 0 if it has passed.
    #[inline]
    fn until(self, to_ns: u64) -> f64 {
        (to_ns.saturating_sub(self.whole_ns) as f64 - self.fraction).max(0.0)
    }

    fn at(whole_ns: u64) -> Self {
        Self {
            whole_ns,
            fraction: 0.0,
        }
    }
}

/// Uniform random words by position, two per Philox block, read mostly in order.
#[derive(Clone, Debug)]
struct Words {
    seed: u64,
    stream: Stream,
    /// The odd word of the current block.
    odd: u64,
}

impl Words {
    /// The number in (0, 1) at `index`. Calls must use the indices 0, 1, 2, … in order.
    #[inline]
    fn next_open(&mut self, index: u64) -> f64 {
        if index & 1 == 1 {
            return open_unit(self.odd);
        }
        let [even, odd] = Draws::new(self.seed, self.stream, index >> 1).next_block();
        self.odd = odd;
        open_unit(even)
    }
}

/// The process behind a schedule.
#[derive(Clone, Debug)]
enum Process {
    /// Due at seq / rate.
    Constant { rate: f64 },
    /// exp(mu + sigma·Z) nanoseconds between arrivals.
    Lognormal {
        mu: f64,
        sigma: f64,
        words: Words,
        now: Instant,
    },
    /// Poisson arrivals of constant, stepwise, linear or random intensity.
    Modulated(Modulated),
    /// Batches of periodic clients.
    Batches(Box<Batches>),
}

/// The arrivals of a schedule, or of a share of it, in order. Ends only if the law's rate stays at 0 forever;
/// the caller stops at the end of the phase.
#[derive(Clone, Debug)]
pub struct Arrivals {
    process: Process,
    /// Sequence number of the next arrival of the process.
    next: u64,
    /// Arrivals to skip before the next one of the share.
    skip: u64,
    stride: u64,
}

impl Arrivals {
    /// The next due instant of the global schedule.
    #[inline]
    fn step(&mut self) -> Option<u64> {
        let seq = self.next;
        self.next += 1;
        match &mut self.process {
            Process::Constant { rate } => Some(constant_due(seq, *rate)),
            Process::Lognormal {
                mu,
                sigma,
                words,
                now,
            } => {
                let z = normal_quantile(words.next_open(seq));
                now.advance(exp(*mu + *sigma * z));
                Some(now.whole_ns)
            }
            Process::Modulated(process) => process.step(seq),
            Process::Batches(process) => process.step(),
        }
    }
}

/// seq / rate in nanoseconds. Product and quotient are rounded once each: exact to a relative 2^-52, which is
/// below 1 ns for the first 50 days.
#[inline]
fn constant_due(seq: u64, rate: f64) -> u64 {
    (seq as f64 * NS / rate) as u64
}

impl Iterator for Arrivals {
    type Item = Arrival;

    #[inline]
    fn next(&mut self) -> Option<Arrival> {
        if matches!(self.process, Process::Constant { .. }) {
            self.next += self.skip;
        } else {
            for _ in 0..self.skip {
                self.step()?;
            }
        }
        self.skip = self.stride - 1;
        let seq = self.next;
        let due_ns = self.step()?;
        Some(Arrival { seq, due_ns })
    }
}
