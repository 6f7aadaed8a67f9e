//! Arrival processes: the absolute due instants of one global schedule.
//!
//! ```text
//!  Schedule (law, seed) ── arrivals() ──> 0 1 2 3 4 5 6 7 …      the global schedule
//!                       └─ shard(1 of 3) ─> 1     4     7 …      every third of the same instants
//! ```
//!
//! Sharding strides over sequence numbers of the one schedule, so the law of arrivals does not
//! change with the number of workers: the superposition of W independent log-normal renewal
//! processes would tend to Poisson. Every gap is a function of (seed, index), and every walker adds
//! the same gaps in the same order, so all see identical instants.
//!
//! Instants never drift: they are sums kept as whole nanoseconds plus a fraction below 1 ns
//! ([`Instant`]), whose rounding error stays below 1 ns over 10^9 arrivals at rates of 1 per second
//! and above.

mod batch;
mod intensity;

use self::batch::Batches;
use self::intensity::{Intensity, Modulated};
use super::elementary::{exp, ln};
use super::math::normal_quantile;
use super::rng::{Draws, Purpose, Stream, open_unit};
use super::{LawError, not_negative, positive};
use crate::plan::ArrivalLaw;

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

/// A point in time that sums do not blur: whole nanoseconds and a fraction in [0, 1).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Instant {
    whole_ns: u64,
    fraction: f64,
}

impl Instant {
    /// Advances by `gap_ns` ≥ 0; stays at the end of time (584 years) when it would overflow.
    #[inline]
    fn advance(&mut self, gap_ns: f64) {
        let sum = self.fraction + gap_ns;
        let whole = sum as u64;
        self.whole_ns = self.whole_ns.saturating_add(whole);
        self.fraction = (sum - whole as f64).max(0.0);
    }

    /// Nanoseconds from here to the whole instant `to_ns`; 0 when it is past.
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

/// Uniform words by position, two to a Philox block, read mostly in order.
#[derive(Clone, Debug)]
struct Words {
    seed: u64,
    stream: Stream,
    /// The odd word of the current block.
    odd: u64,
}

impl Words {
    /// The number in (0, 1) at `index`; successive calls go through 0, 1, 2, ….
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

/// The arrivals of a schedule, or of a share of it, in order. Ends only where the law's rate stays
/// at 0 for ever; the caller stops at the end of the phase.
#[derive(Clone, Debug)]
pub struct Arrivals {
    process: Process,
    /// Sequence number of the next arrival of the process.
    next: u64,
    /// Arrivals to pass over before the next one of the share.
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

/// seq / rate in nanoseconds, from 0. One rounding each for product and quotient: exact to 2^-52
/// relative, which is below 1 ns for the first 50 days.
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

/// An arrival law with its seed: gives the schedule and what to expect of it.
#[derive(Clone, Debug)]
pub struct Schedule {
    law: ArrivalLaw,
    seed: u64,
    phase: u16,
    work: u16,
}

impl Schedule {
    /// The schedule of a work of a phase (indices in the plan) of a run with `seed`.
    ///
    /// # Errors
    /// When a parameter of the law lies outside its range.
    ///
    /// # Panics
    /// If `phase` is not below [`Stream::MAX_PHASES`].
    pub fn new(seed: u64, phase: u16, work: u16, law: &ArrivalLaw) -> Result<Self, LawError> {
        check(law).map_err(|e| e.within("arrival"))?;
        Ok(Self {
            law: law.clone(),
            seed,
            phase,
            work,
        })
    }

    fn words(&self, purpose: Purpose) -> Words {
        Words {
            seed: self.seed,
            stream: Stream::new(purpose, self.phase, self.work),
            odd: 0,
        }
    }

    /// The whole schedule. Costs at most about 50 ns per arrival.
    #[must_use]
    pub fn arrivals(&self) -> Arrivals {
        self.shard(Shard::ALL)
    }

    /// A share of the schedule. Arrivals of other shares are computed and passed over, so each of
    /// its arrivals costs as much as `of` of the whole (constant rates: as much as one).
    ///
    /// # Panics
    /// If the shard's index is not below its number of shares.
    #[must_use]
    pub fn shard(&self, shard: Shard) -> Arrivals {
        assert!(
            shard.index < shard.of,
            "shard {} of {}",
            shard.index,
            shard.of
        );
        let process = match &self.law {
            ArrivalLaw::Constant { rate } => Process::Constant { rate: *rate },
            ArrivalLaw::LognormalGaps { rate, cv } => {
                let sigma = ln(1.0 + cv * cv).sqrt();
                Process::Lognormal {
                    mu: ln(NS / rate) - 0.5 * sigma * sigma,
                    sigma,
                    words: self.words(Purpose::Arrival),
                    now: Instant::default(),
                }
            }
            ArrivalLaw::PeriodicBatch {
                clients,
                period_ns,
                min,
                max,
                spread_ns,
            } => Process::Batches(Box::new(Batches::new(
                self.seed,
                (self.phase, self.work),
                *clients,
                *period_ns,
                (*min, *max),
                *spread_ns,
            ))),
            law => Process::Modulated(Modulated::new(
                Intensity::new(law, self.words(Purpose::Rate)),
                self.words(Purpose::Arrival),
            )),
        };
        Arrivals {
            process,
            next: 0,
            skip: u64::from(shard.index),
            stride: u64::from(shard.of),
        }
    }

    /// Expected number of arrivals from `from_ns` up to (not including) `to_ns` of the phase.
    ///
    /// Exact for Poisson laws of any intensity and for the mean of the random-rate law; for renewal
    /// and periodic laws the long-run rate times the time, which misses start effects of at most a
    /// few arrivals ((cv² - 1)/2 for log-normal gaps).
    #[must_use]
    pub fn expected_between(&self, from_ns: u64, to_ns: u64) -> f64 {
        let seconds = to_ns.saturating_sub(from_ns) as f64 / NS;
        match &self.law {
            ArrivalLaw::Constant { rate }
            | ArrivalLaw::Poisson { rate }
            | ArrivalLaw::LognormalGaps { rate, .. }
            | ArrivalLaw::LognormalRate { rate, .. } => rate * seconds,
            ArrivalLaw::PeriodicBatch {
                clients,
                period_ns,
                min,
                max,
                ..
            } => {
                let per_batch = 0.5 * (f64::from(*min) + f64::from(*max));
                f64::from(*clients) * per_batch * seconds / (*period_ns as f64 / NS)
            }
            law => {
                let intensity = Intensity::new(law, self.words(Purpose::Rate));
                intensity.expected(to_ns.max(from_ns)) - intensity.expected(from_ns)
            }
        }
    }

    /// Exact number of arrivals of this schedule from `from_ns` up to (not including) `to_ns` of
    /// the phase. Walks the schedule from its start (constant rates: computed).
    #[must_use]
    pub fn offered_between(&self, from_ns: u64, to_ns: u64) -> u64 {
        if let ArrivalLaw::Constant { rate } = self.law {
            let before = |t: u64| {
                let mut seq = (t as f64 * rate / NS).ceil() as u64;
                while seq > 0 && constant_due(seq - 1, rate) >= t {
                    seq -= 1;
                }
                while constant_due(seq, rate) < t {
                    seq += 1;
                }
                seq
            };
            return before(to_ns).saturating_sub(before(from_ns));
        }
        self.arrivals()
            .map(|arrival| arrival.due_ns)
            .take_while(|&due| due < to_ns)
            .filter(|&due| due >= from_ns)
            .count() as u64
    }

    /// Expected arrivals per second over the first `duration_ns` of the phase; 0 for none.
    #[must_use]
    pub fn mean_rate(&self, duration_ns: u64) -> f64 {
        if duration_ns == 0 {
            0.0
        } else {
            self.expected_between(0, duration_ns) / (duration_ns as f64 / NS)
        }
    }
}

/// Refuses laws that no schedule can follow.
fn check(law: &ArrivalLaw) -> Result<(), LawError> {
    let at_least_1 = |field: &str, value: u64| match value {
        0 => Err(LawError::new(field, "is 0, must be at least 1")),
        _ => Ok(()),
    };
    // Faster than one per nanosecond cannot be told apart.
    let rate_ok = |field: &str, rate: f64| {
        if rate > NS {
            let reason = format!("is {rate}, must be at most 10^9 per second");
            return Err(LawError::new(field, reason));
        }
        not_negative(field, rate)
    };
    match law {
        ArrivalLaw::Constant { rate } | ArrivalLaw::Poisson { rate } => {
            positive("rate", *rate)?;
            rate_ok("rate", *rate)
        }
        ArrivalLaw::LognormalGaps { rate, cv } => {
            positive("rate", *rate)?;
            rate_ok("rate", *rate)?;
            positive("cv", *cv)
        }
        ArrivalLaw::LognormalRate { rate, cv, slot_ns } => {
            positive("rate", *rate)?;
            rate_ok("rate", *rate)?;
            positive("cv", *cv)?;
            at_least_1("slot_ns", *slot_ns)
        }
        ArrivalLaw::PeriodicBatch {
            clients,
            period_ns,
            min,
            max,
            spread_ns,
        } => {
            at_least_1("clients", u64::from(*clients))?;
            at_least_1("period_ns", *period_ns)?;
            at_least_1("max", u64::from(*max))?;
            if min > max {
                let reason = format!("is {min}, must be at most max = {max}");
                return Err(LawError::new("min", reason));
            }
            if spread_ns > period_ns {
                let reason = format!("is {spread_ns}, must be at most period_ns = {period_ns}");
                return Err(LawError::new("spread_ns", reason));
            }
            Ok(())
        }
        ArrivalLaw::Ramp { from, to, .. } => {
            rate_ok("from", *from)?;
            rate_ok("to", *to)?;
            positive("from + to", from + to)
        }
        ArrivalLaw::Steps { rates, step_ns } => {
            at_least_1("step_ns", *step_ns)?;
            for (i, rate) in rates.iter().enumerate() {
                rate_ok(&format!("rates[{i}]"), *rate)?;
            }
            positive("rates", rates.iter().sum())
        }
    }
}
