//! The search for the highest rate that meets the objectives, as a state machine.
//!
//! ```text
//! baseline ─> doubling ─ first failure ─> bisection ─ hi/lo ≤ 1.05 ─> confirmation ─> final reference
//!    3 references │                            │                       │   ^
//!                 └── client limit ────────────┴───────────────────────┤   └─ widened, repeated
//!                                                                      └─> not confirmed
//! after a trial: references at a low rate until the median has recovered
//! ```
//!
//! - *Doubling* starts at the lowest rate. If that rate fails, it is repeated as in the confirmation before
//!   the objectives are declared out of reach.
//! - If the client limited every reference of the *baseline*, the search ends there: it would be the limit at any
//!   rate.
//! - A trial that the *client* limited says nothing about the store. It is repeated twice; then the search
//!   ends with the highest rate that passed and the client's limit as the reason.
//! - *Confirmation* runs `confirm` trials at either end in random order. An end is confirmed if four fifths
//!   of its trials agree. Otherwise it moves outwards by one step and is tried again. The step is the
//!   precision, doubled with each further move of that end, so that the search recovers from a misled
//!   bisection.

use serde::{Deserialize, Serialize};

use crate::generate::rng::mix64;
use crate::plan::is_default;

/// Number of references whose median is the baseline.
const BASELINES: usize = 3;
/// Largest median, as a multiple of the baseline, that counts as recovered.
const RECOVERED: f64 = 1.10;
/// Maximum number of consecutive references; then the search continues although the store has not recovered.
const MOST_REFERENCES: u32 = 5;
/// Number of times that a trial limited by the client is repeated.
const CLIENT_REPEATS: u32 = 2;
/// Number of moves of one end after which the search gives up.
const MOST_MOVES: u32 = 6;

/// How to search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Lowest rate to try, operations per second.
    pub start_rate: f64,
    /// Highest rate to try; `None` for no limit.
    pub max_rate: Option<f64>,
    /// Largest final ratio between the ends of the bracket, above 1.
    pub precision: f64,
    /// Confirmation trials at either end of the bracket; 0 for none.
    pub confirm: u32,
    /// Rate of the references, operations per second.
    pub reference_rate: f64,
    /// When to run references between trials.
    pub recovery: Recovery,
    /// Seed for the order of the confirmation trials.
    pub seed: u64,
    /// Whether the search ends after a baseline that the client limited throughout. Searches of earlier versions went
    /// on, and their files are replayed as they were.
    #[serde(default)]
    pub stop_at_client: bool,
    /// Whether the load is a whole number of something, such as accelerators, rather than a rate. The bracket then
    /// ends with neighbours, and the ends move by whole steps.
    #[serde(default, skip_serializing_if = "is_default")]
    pub whole: bool,
}

/// When the search waits for the store to recover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// After every trial.
    Always,
    /// After failed trials only, because a passed trial leaves no backlog.
    AfterFailure,
    /// Never: loads that wait for the store leave no backlog.
    Never,
}

/// The purpose of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// Reference before the search.
    Baseline,
    /// Looking for a rate that fails.
    Doubling,
    /// Narrowing the bracket.
    Bisection,
    /// Confirming the lower end.
    ConfirmLow,
    /// Confirming the upper end.
    ConfirmHigh,
    /// Reference between trials.
    Recovery,
    /// Reference after the search.
    Final,
}

impl Purpose {
    /// Whether the trial is a reference at the low rate, outside the search itself.
    #[must_use]
    pub const fn is_reference(self) -> bool {
        matches!(self, Self::Baseline | Self::Recovery | Self::Final)
    }

    /// The name used in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Doubling => "doubling",
            Self::Bisection => "bisection",
            Self::ConfirmLow => "confirm low",
            Self::ConfirmHigh => "confirm high",
            Self::Recovery => "recovery",
            Self::Final => "final",
        }
    }
}

/// A trial to run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Position in the search, from 0.
    pub number: u32,
    /// Offered load, operations per second.
    pub rate: f64,
    /// The purpose of the trial.
    pub purpose: Purpose,
}

/// The outcome of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrialResult {
    /// The objectives were met.
    Pass,
    /// The store did not meet them.
    Fail,
    /// The client limited the trial.
    Client,
}

/// The outcome of a trial, with the median response time from which recovery is judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrialFinding {
    /// The outcome.
    pub result: TrialResult,
    /// Median response time, nanoseconds.
    pub p50_ns: f64,
}

/// One end of the bracket with its trials.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BracketEnd {
    /// Operations per second.
    pub rate: f64,
    /// Trials at this rate that count (those of the confirmation, if there was one).
    pub trials: u32,
    /// Of these, the number that passed.
    pub passes: u32,
}

impl BracketEnd {
    const fn at(rate: f64) -> Self {
        Self {
            rate,
            trials: 0,
            passes: 0,
        }
    }

    fn count(&mut self, pass: bool) {
        self.trials += 1;
        self.passes += u32::from(pass);
    }

    /// Trials that failed.
    #[must_use]
    pub const fn fails(&self) -> u32 {
        self.trials - self.passes
    }
}

/// Why the search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// The store: its capacity lies within the bracket.
    Store,
    /// The client: the store meets the objectives at the lower end and was not seen to fail.
    Client,
    /// The highest allowed rate still passed.
    MaxRate,
    /// The lowest rate failed.
    NotMet,
    /// The ends could not be confirmed: trials at the same rate contradict each other over a wider range than
    /// the search may cover.
    Unconfirmed,
}

/// The result of the search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Why the search ended.
    pub limit: Limit,
    /// Highest rate that meets the objectives; `None` if there is none.
    pub low: Option<BracketEnd>,
    /// Lowest rate that does not; `None` if none was found.
    pub high: Option<BracketEnd>,
    /// Median response time of the references before the search, nanoseconds.
    pub baseline_p50_ns: f64,
    /// Median response time of the reference after the search, nanoseconds.
    pub final_p50_ns: f64,
    /// Numbers of the trials after which the store did not recover within five references; later results may
    /// be contaminated.
    pub unrecovered: Vec<u32>,
    /// How often an end moved outwards.
    pub moves: u32,
}

#[derive(Clone, Debug, PartialEq)]
enum Stage {
    Baseline,
    /// At `rate`; the lowest rate is repeated until `again` is decided.
    Doubling {
        rate: f64,
        again: Option<BracketEnd>,
    },
    Bisection,
    /// Remaining trials in reverse order; `true` for the upper end.
    Confirmation(Vec<bool>),
    Final,
    Done,
}

/// The state of a search.
#[derive(Clone, Debug)]
pub struct Search {
    settings: Settings,
    stage: Stage,
    number: u32,
    current: Option<Trial>,
    low: Option<BracketEnd>,
    high: Option<BracketEnd>,
    limit: Limit,
    baselines: Vec<f64>,
    /// Baselines that the client limited.
    baselines_limited: usize,
    final_p50_ns: f64,
    /// References run since the last trial, during recovery.
    recovering: Option<u32>,
    last_trial: u32,
    unrecovered: Vec<u32>,
    client_repeats: u32,
    moves_low: u32,
    moves_high: u32,
}

impl Search {
    /// A search that has not started.
    ///
    /// # Panics
    /// If rates are not positive, the highest is below the lowest, or the precision is not above 1.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        assert!(settings.start_rate > 0.0 && settings.reference_rate > 0.0);
        assert!(
            settings
                .max_rate
                .is_none_or(|max| max >= settings.start_rate)
        );
        assert!(settings.precision > 1.0);
        Self {
            settings,
            stage: Stage::Baseline,
            number: 0,
            current: None,
            low: None,
            high: None,
            limit: Limit::Store,
            baselines: Vec::new(),
            baselines_limited: 0,
            final_p50_ns: f64::NAN,
            recovering: None,
            last_trial: 0,
            unrecovered: Vec::new(),
            client_repeats: 0,
            moves_low: 0,
            moves_high: 0,
        }
    }

    /// The next trial to run; the same one until its result is recorded. `None` once the search is over.
    #[must_use]
    pub fn ask(&mut self) -> Option<Trial> {
        let reference = self.settings.reference_rate;
        let (rate, purpose) = match &self.stage {
            Stage::Done => return None,
            _ if self.recovering.is_some() => (reference, Purpose::Recovery),
            Stage::Baseline => (reference, Purpose::Baseline),
            Stage::Doubling { rate, .. } => (*rate, Purpose::Doubling),
            Stage::Bisection => {
                let (low, high) = self.ends();
                let middle = (low * high).sqrt();
                let middle = match self.settings.whole {
                    true => middle.round().clamp(low + 1.0, high - 1.0),
                    false => middle,
                };
                (middle, Purpose::Bisection)
            }
            Stage::Confirmation(order) => {
                let (low, high) = self.ends();
                match order.last() {
                    Some(true) => (high, Purpose::ConfirmHigh),
                    _ => (low, Purpose::ConfirmLow),
                }
            }
            Stage::Final => (reference, Purpose::Final),
        };
        let trial = Trial {
            number: self.number,
            rate,
            purpose,
        };
        self.current = Some(trial);
        Some(trial)
    }

    /// Records the result of the trial that [`Search::ask`] returned.
    ///
    /// # Panics
    /// If no trial is pending.
    pub fn record(&mut self, finding: TrialFinding) {
        let trial = self.current.take().expect("a trial that was asked for");
        self.number += 1;
        match trial.purpose {
            Purpose::Baseline => {
                self.baselines.push(finding.p50_ns);
                self.baselines_limited += usize::from(finding.result == TrialResult::Client);
                if self.settings.stop_at_client && self.baselines_limited == BASELINES {
                    // Higher rates would only take the client's time.
                    self.limit = Limit::Client;
                    self.final_p50_ns = self.baseline();
                    self.stage = Stage::Done;
                } else if self.baselines.len() == BASELINES {
                    self.stage = Stage::Doubling {
                        rate: self.settings.start_rate,
                        again: None,
                    };
                }
            }
            Purpose::Recovery => self.recovered(finding.p50_ns),
            Purpose::Final => {
                self.final_p50_ns = finding.p50_ns;
                self.stage = Stage::Done;
            }
            _ => self.searched(trial, finding.result),
        }
    }

    /// The result of the search; `None` while it continues.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        (self.stage == Stage::Done).then(|| Outcome {
            limit: self.limit,
            low: self.low,
            high: self.high,
            baseline_p50_ns: self.baseline(),
            final_p50_ns: self.final_p50_ns,
            unrecovered: self.unrecovered.clone(),
            moves: self.moves_low + self.moves_high,
        })
    }

    fn baseline(&self) -> f64 {
        let mut sorted = self.baselines.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
    }

    fn ends(&self) -> (f64, f64) {
        let rate = |side: Option<BracketEnd>| side.map_or(f64::NAN, |side| side.rate);
        (rate(self.low), rate(self.high))
    }

    /// Number of trials that must agree.
    fn quorum(&self) -> u32 {
        (self.settings.confirm * 4).div_ceil(5)
    }

    fn recovered(&mut self, p50_ns: f64) {
        let references = self.recovering.unwrap_or(0) + 1;
        // A baseline or median that is NaN would never be reached.
        let still_slow = p50_ns > RECOVERED * self.baseline();
        self.recovering = match (still_slow, references) {
            (true, n) if n >= MOST_REFERENCES => {
                self.unrecovered.push(self.last_trial);
                None
            }
            (true, n) => Some(n),
            (false, _) => None,
        };
    }

    fn searched(&mut self, trial: Trial, result: TrialResult) {
        self.last_trial = trial.number;
        if result == TrialResult::Client {
            self.client_repeats += 1;
            if self.client_repeats > CLIENT_REPEATS {
                // An earlier failure, if any, is beyond what the client can demonstrate.
                self.limit = Limit::Client;
                self.high = None;
                self.stage = Stage::Final;
            }
        } else {
            self.client_repeats = 0;
            let pass = result == TrialResult::Pass;
            match std::mem::replace(&mut self.stage, Stage::Final) {
                Stage::Doubling { rate, again } => self.doubled(rate, again, pass),
                Stage::Bisection => self.halved(trial.rate, pass),
                Stage::Confirmation(order) => self.confirmed(order, pass),
                other => self.stage = other,
            }
        }
        let wait = match self.settings.recovery {
            Recovery::Always => true,
            Recovery::AfterFailure => result != TrialResult::Pass,
            Recovery::Never => false,
        };
        // The final reference itself checks whether the store has recovered.
        self.recovering = (wait && self.stage != Stage::Final).then_some(0);
    }

    fn doubled(&mut self, rate: f64, again: Option<BracketEnd>, pass: bool) {
        let max = self.settings.max_rate.unwrap_or(f64::INFINITY);
        let mut tried = again.unwrap_or(BracketEnd::at(rate));
        tried.count(pass);
        let lowest = self.low.is_none();
        // A single failure at the lowest rate may be chance.
        if lowest && (again.is_some() || !pass) {
            if tried.fails() >= self.quorum().max(1) {
                self.limit = Limit::NotMet;
                self.high = Some(tried);
                return;
            }
            if tried.passes <= self.settings.confirm - self.quorum() {
                self.stage = Stage::Doubling {
                    rate,
                    again: Some(tried),
                };
                return;
            }
        } else if !pass {
            self.high = Some(tried);
            self.narrow();
            return;
        }
        self.low = Some(tried);
        if rate >= max {
            self.limit = Limit::MaxRate;
            if self.settings.confirm > 0 {
                self.low = Some(BracketEnd::at(rate));
                self.stage = Stage::Confirmation(vec![false; self.settings.confirm as usize]);
            }
            return;
        }
        self.stage = Stage::Doubling {
            rate: (rate * 2.0).min(max),
            again: None,
        };
    }

    fn halved(&mut self, rate: f64, pass: bool) {
        let mut side = BracketEnd::at(rate);
        side.count(pass);
        if pass {
            self.low = Some(side);
        } else {
            self.high = Some(side);
        }
        self.narrow();
    }

    /// Continues the bisection, or starts the next stage.
    fn narrow(&mut self) {
        let (low, high) = self.ends();
        let wide = match self.settings.whole {
            true => high - low > 1.0,
            false => high / low > self.settings.precision,
        };
        self.stage = if wide {
            Stage::Bisection
        } else if self.settings.confirm == 0 {
            Stage::Final
        } else {
            self.low = Some(BracketEnd::at(low));
            self.high = Some(BracketEnd::at(high));
            self.order(true, true)
        };
    }

    /// The trials that confirm the ends, shuffled (Fisher and Yates).
    fn order(&self, low: bool, high: bool) -> Stage {
        let n = self.settings.confirm as usize;
        let mut order = Vec::new();
        order.extend(std::iter::repeat_n(false, if low { n } else { 0 }));
        order.extend(std::iter::repeat_n(true, if high { n } else { 0 }));
        for i in (1..order.len()).rev() {
            let random = mix64(self.settings.seed ^ mix64(u64::from(self.number) << 16 | i as u64));
            order.swap(i, (random % (i as u64 + 1)) as usize);
        }
        Stage::Confirmation(order)
    }

    fn confirmed(&mut self, mut order: Vec<bool>, pass: bool) {
        let side = match order.pop() {
            Some(true) => &mut self.high,
            _ => &mut self.low,
        };
        if let Some(side) = side {
            side.count(pass);
        }
        if !order.is_empty() {
            self.stage = Stage::Confirmation(order);
            return;
        }
        let quorum = self.quorum();
        let low_holds = self.low.is_some_and(|low| low.passes >= quorum);
        let high_holds = self.high.is_none_or(|high| high.fails() >= quorum);
        if low_holds && high_holds {
            return;
        }
        let (low, high) = self.ends();
        if !low_holds && low <= self.settings.start_rate {
            self.limit = Limit::NotMet;
            self.high = self.low.take();
            return;
        }
        if self.limit == Limit::MaxRate {
            // The highest rate does not hold after all: the capacity lies below it.
            self.limit = Limit::Store;
            self.high = self.low;
            let half = match self.settings.whole {
                true => (low / 2.0).floor(),
                false => low / 2.0,
            };
            self.low = Some(BracketEnd::at(half.max(self.settings.start_rate)));
            self.narrow();
            return;
        }
        let max = self.settings.max_rate.unwrap_or(f64::INFINITY);
        if !high_holds && high >= max {
            let passes = self.high.is_some_and(|high| high.passes >= quorum);
            self.limit = if passes {
                self.low = self.high.take();
                Limit::MaxRate
            } else {
                Limit::Unconfirmed
            };
            return;
        }
        if !low_holds {
            let moved = self.moved(low, self.moves_low, false);
            self.low = Some(BracketEnd::at(moved.max(self.settings.start_rate)));
            self.moves_low += 1;
        }
        if !high_holds {
            let moved = self.moved(high, self.moves_high, true);
            self.high = Some(BracketEnd::at(moved.min(max)));
            self.moves_high += 1;
        }
        if self.moves_low.max(self.moves_high) > MOST_MOVES {
            self.limit = Limit::Unconfirmed;
            return;
        }
        self.stage = self.order(!low_holds, !high_holds);
    }

    /// Where an end at `rate` goes that has moved `moves` times before.
    fn moved(&self, rate: f64, moves: u32, up: bool) -> f64 {
        let whole = f64::from(1u32 << moves.min(MOST_MOVES));
        match (self.settings.whole, up) {
            (true, true) => rate + whole,
            (true, false) => rate - whole,
            (false, true) => rate * self.step(moves),
            (false, false) => rate / self.step(moves),
        }
    }

    /// The factor of the next move of an end that has moved `moves` times.
    fn step(&self, moves: u32) -> f64 {
        self.settings.precision.powi(1 << moves.min(MOST_MOVES))
    }
}
