//! A validated arrival law with its seed: yields the schedule and the expected numbers of arrivals.

use super::batch::Batches;
use super::intensity::{Intensity, Modulated};
use super::{Arrivals, Instant, NS, Process, Shard, Words, constant_due};
use crate::generate::elementary::ln;
use crate::generate::rng::{Purpose, Stream};
use crate::generate::{LawError, not_negative, positive};
use crate::plan::ArrivalLaw;

/// An arrival law with its seed: yields the schedule and the expected numbers of arrivals.
#[derive(Clone, Debug)]
pub struct Schedule {
    law: ArrivalLaw,
    seed: u64,
    phase: u16,
    work: u16,
}

impl Schedule {
    /// The schedule of work `work` in phase `phase` (indices in the plan) of a run with `seed`.
    ///
    /// # Errors
    /// If a parameter of the law lies outside its range.
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

    /// The whole schedule. Takes at most about 50 ns per arrival.
    #[must_use]
    pub fn arrivals(&self) -> Arrivals {
        self.shard(Shard::ALL)
    }

    /// A share of the schedule. Arrivals of other shares are computed and skipped, so each of its arrivals
    /// costs as much as `of` arrivals of the whole schedule (with constant rates: as much as one).
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
                gap_ns,
            } => Process::Batches(Box::new(Batches::new(
                self.seed,
                (self.phase, self.work),
                *clients,
                *period_ns,
                (*min, *max),
                (*spread_ns, *gap_ns),
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

    /// Expected number of arrivals from `from_ns` to `to_ns` (exclusive) of the phase.
    ///
    /// Exact for Poisson laws of any intensity and for the mean of the random-rate law. For renewal and
    /// periodic laws it is the long-run rate times the time, which neglects start effects of at most a few
    /// arrivals ((cv² - 1)/2 for log-normal gaps).
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

    /// Exact number of arrivals of this schedule from `from_ns` to `to_ns` (exclusive) of the phase. Iterates
    /// over the schedule from its start (for constant rates it is computed).
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

/// Rejects laws that no schedule can follow.
fn check(law: &ArrivalLaw) -> Result<(), LawError> {
    let at_least_1 = |field: &str, value: u64| match value {
        0 => Err(LawError::new(field, "is 0, must be at least 1")),
        _ => Ok(()),
    };
    // Faster rates than one arrival per nanosecond are indistinguishable.
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
            gap_ns,
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
            if *spread_ns > 0 && *gap_ns > 0 {
                let reason = "is set together with spread_ns; a batch is either spread or paced";
                return Err(LawError::new("gap_ns", reason));
            }
            if u64::from(max - 1).saturating_mul(*gap_ns) > *period_ns {
                let reason = format!(
                    "is {gap_ns}: a batch of {max} operations would last longer than period_ns = \
                     {period_ns}"
                );
                return Err(LawError::new("gap_ns", reason));
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
