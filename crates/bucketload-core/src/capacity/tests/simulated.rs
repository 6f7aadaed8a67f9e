//! The search against queues of known capacity, in virtual time.

use super::queue::{ServiceLaw, capacity};
use crate::capacity::{
    Limit, Outcome, Purpose, Recovery, Search, Settings, Threshold, TrialFinding, TrialResult,
};
use crate::stats::testing::Noise;

/// A single-server queue; each trial starts with it empty.
struct Queue {
    law: ServiceLaw,
    per_s: f64,
    noise: Noise,
}

impl Queue {
    /// Response times, seconds, of `seconds` of Poisson arrivals.
    fn trial(&mut self, rate: f64, seconds: f64) -> Vec<f64> {
        let (mut now, mut free) = (0.0f64, 0.0f64);
        let mut responses = Vec::new();
        loop {
            now += -self.noise.uniform().ln() / rate;
            if now > seconds {
                return responses;
            }
            let service = match self.law {
                ServiceLaw::Exponential => -self.noise.uniform().ln() / self.per_s,
                ServiceLaw::Deterministic => 1.0 / self.per_s,
            };
            free = free.max(now) + service;
            responses.push(free - now);
        }
    }
}

fn quantile(sorted: &[f64], q: f64) -> f64 {
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

struct Setup {
    law: ServiceLaw,
    per_s: f64,
    /// Objective: the `q`-quantile of the response stays below `bound_s`.
    q: f64,
    bound_s: f64,
    trial_s: f64,
    start_rate: f64,
    recovery: Recovery,
    confirm: u32,
}

impl Setup {
    fn search(&self, seed: u64) -> (Outcome, f64, Vec<(f64, bool)>) {
        let mut queue = Queue {
            law: self.law,
            per_s: self.per_s,
            noise: Noise::new(seed),
        };
        let mut search = Search::new(Settings {
            start_rate: self.start_rate,
            max_rate: None,
            precision: 1.05,
            confirm: self.confirm,
            reference_rate: self.start_rate,
            recovery: self.recovery,
            seed,
            stop_at_client: true,
            whole: false,
        });
        let (mut trials, mut elapsed) = (Vec::new(), 0.0);
        while let Some(trial) = search.ask() {
            let reference = trial.purpose.is_reference();
            let seconds = if reference {
                self.trial_s.min(2.0)
            } else {
                self.trial_s
            };
            elapsed += seconds;
            let mut responses = queue.trial(trial.rate, seconds);
            responses.sort_unstable_by(f64::total_cmp);
            let pass = quantile(&responses, self.q) < self.bound_s;
            if !reference {
                trials.push((trial.rate, pass));
            }
            search.record(TrialFinding {
                result: if pass {
                    TrialResult::Pass
                } else {
                    TrialResult::Fail
                },
                p50_ns: quantile(&responses, 0.5) * 1e9,
            });
        }
        (search.outcome().unwrap(), elapsed, trials)
    }

    /// Number of `seeds` searches whose bracket contains the true capacity, mean ratio of the ends, and mean
    /// duration in seconds.
    fn score(&self, seeds: u64) -> (u64, f64, f64) {
        let truth = capacity(self.law, self.per_s, self.q, self.bound_s).unwrap();
        let (mut hits, mut ratio, mut time) = (0, 0.0, 0.0);
        for seed in 0..seeds {
            let (outcome, elapsed, _) = self.search(seed);
            let (low, high) = (outcome.low.unwrap().rate, outcome.high.unwrap().rate);
            hits += u64::from(outcome.limit == Limit::Store && low <= truth && truth <= high);
            ratio += high / low / seeds as f64;
            time += elapsed / seeds as f64;
        }
        (hits, ratio, time)
    }
}

fn mm1() -> Setup {
    Setup {
        law: ServiceLaw::Exponential,
        per_s: 400.0,
        q: 0.99,
        bound_s: 0.05,
        trial_s: 60.0,
        start_rate: 25.0,
        recovery: Recovery::Always,
        confirm: 5,
    }
}

#[test]
fn the_bracket_contains_the_capacity_of_mm1() {
    // mu - lambda = ln(100)/50 ms: 307.9/s.
    let (hits, ratio, _) = mm1().score(10);
    assert!(hits >= 9, "{hits} of 10");
    assert!(ratio < 1.25, "{ratio}");
}

#[test]
fn the_bracket_contains_the_capacity_of_md1() {
    let setup = Setup {
        law: ServiceLaw::Deterministic,
        bound_s: 0.02,
        ..mm1()
    };
    let (hits, ratio, _) = setup.score(10);
    assert!(hits >= 9, "{hits} of 10");
    assert!(ratio < 1.25, "{ratio}");
}

/// The power of `cargo xtask conformance capacity`, which runs these short searches in real time: at least 95
/// of 100 brackets contain the capacity, so 9 of 10 do with a probability above 0.91 (by the counts here,
/// 0.99).
#[test]
fn short_searches_of_a_fast_queue_are_sound() {
    for (law, bound_s) in CONFORMANCE {
        let setup = Setup {
            law,
            per_s: 2000.0,
            q: 0.9,
            bound_s,
            trial_s: 2.0,
            start_rate: 500.0,
            recovery: Recovery::AfterFailure,
            confirm: 3,
        };
        let truth = capacity(law, 2000.0, 0.9, bound_s).unwrap();
        assert!((truth / 1600.0 - 1.0).abs() < 1e-3, "{truth}");
        let (hits, ratio, seconds) = setup.score(100);
        assert!(hits >= 95, "{law:?}: {hits} of 100");
        assert!(ratio < 1.2 && seconds < 80.0, "{ratio} {seconds}");
    }
}

/// Bounds on the p90 that a server of 2000 requests per second just meets at 1600 requests per second.
const CONFORMANCE: [(ServiceLaw, f64); 2] = [
    (ServiceLaw::Exponential, 5.756_463e-3),
    (ServiceLaw::Deterministic, 3.005_756e-3),
];

#[test]
fn the_regression_agrees_with_the_bracket() {
    let truth = capacity(ServiceLaw::Exponential, 400.0, 0.99, 0.05).unwrap();
    let mut covered = 0;
    for seed in 0..10 {
        let (_, _, trials) = mm1().search(seed);
        let fit = Threshold::fit(&trials).unwrap();
        covered += u32::from(fit.ci.0 <= truth && truth <= fit.ci.1);
        assert!((fit.rate / truth - 1.0).abs() < 0.1, "{fit:?}");
    }
    assert!(covered >= 8, "{covered} of 10");
}

/// Runs the search with the outcomes that `trial_result` returns.
fn scripted(
    settings: Settings,
    mut trial_result: impl FnMut(f64, Purpose) -> (TrialResult, f64),
) -> (Outcome, Vec<Purpose>) {
    let mut search = Search::new(settings);
    let mut purposes = Vec::new();
    while let Some(trial) = search.ask() {
        assert_eq!(
            search.ask(),
            Some(trial),
            "asking again returns the same trial"
        );
        assert_eq!(trial.number as usize, purposes.len());
        assert!(search.outcome().is_none());
        purposes.push(trial.purpose);
        assert!(purposes.len() < 1000);
        let (result, p50_ns) = trial_result(trial.rate, trial.purpose);
        search.record(TrialFinding { result, p50_ns });
    }
    (search.outcome().unwrap(), purposes)
}

fn settings() -> Settings {
    Settings {
        start_rate: 100.0,
        max_rate: None,
        precision: 1.05,
        confirm: 5,
        reference_rate: 50.0,
        recovery: Recovery::Always,
        seed: 7,
        stop_at_client: true,
        whole: false,
    }
}

fn below(capacity: f64) -> impl FnMut(f64, Purpose) -> (TrialResult, f64) {
    move |rate, _| {
        let result = if rate < capacity {
            TrialResult::Pass
        } else {
            TrialResult::Fail
        };
        (result, 1e6)
    }
}

#[test]
fn a_sharp_capacity_takes_the_expected_trials() {
    let (outcome, purposes) = scripted(settings(), below(1000.0));
    let (low, high) = (outcome.low.unwrap(), outcome.high.unwrap());
    assert_eq!(outcome.limit, Limit::Store);
    assert!(low.rate < 1000.0 && high.rate >= 1000.0 && high.rate / low.rate <= 1.05);
    assert_eq!(
        (low.trials, low.passes, high.trials, high.fails()),
        (5, 5, 5, 5)
    );
    let count = |purpose| purposes.iter().filter(|&&p| p == purpose).count();
    // 100, 200, 400, 800, 1600; one octave takes ceil(log2(ln 2 / ln 1.05)) = 4 halvings.
    assert_eq!(count(Purpose::Doubling), 5);
    assert_eq!(count(Purpose::Bisection), 4);
    assert_eq!(
        (count(Purpose::ConfirmLow), count(Purpose::ConfirmHigh)),
        (5, 5)
    );
    assert_eq!((count(Purpose::Baseline), count(Purpose::Final)), (3, 1));
    // One reference after each trial except the last, which is followed by the final one.
    assert_eq!(count(Purpose::Recovery), 18);
    assert_eq!((outcome.moves, outcome.unrecovered.len()), (0, 0));
    let sorted = purposes
        .iter()
        .filter(|p| matches!(p, Purpose::ConfirmLow | Purpose::ConfirmHigh));
    let order: Vec<_> = sorted.collect();
    assert!(
        order[..5].iter().any(|p| **p != *order[0]),
        "shuffled: {order:?}"
    );
}

#[test]
fn a_client_limit_is_not_a_capacity() {
    let (outcome, purposes) = scripted(settings(), |rate, _| {
        (
            if rate > 500.0 {
                TrialResult::Client
            } else {
                TrialResult::Pass
            },
            1e6,
        )
    });
    assert_eq!(outcome.limit, Limit::Client);
    assert_eq!((outcome.low.unwrap().rate, outcome.high), (400.0, None));
    // 100, 200, 400 and three times 800.
    assert_eq!(
        purposes.iter().filter(|p| **p == Purpose::Doubling).count(),
        6
    );
    // A brief stall of the client is not a limit.
    let mut hiccups = 2;
    let (outcome, _) = scripted(settings(), |rate, purpose| {
        if rate > 500.0 && hiccups > 0 {
            hiccups -= 1;
            return (TrialResult::Client, 1e6);
        }
        below(1000.0)(rate, purpose)
    });
    assert_eq!(outcome.limit, Limit::Store);
}

#[test]
fn a_baseline_that_the_client_limits_ends_the_search() {
    let always = |_: f64, _: Purpose| (TrialResult::Client, 1e6);
    let (outcome, purposes) = scripted(settings(), always);
    assert_eq!(purposes, [Purpose::Baseline; 3]);
    assert_eq!(
        (outcome.limit, outcome.low, outcome.high),
        (Limit::Client, None, None)
    );
    assert_eq!(outcome.final_p50_ns, outcome.baseline_p50_ns);
    // Files of earlier versions are replayed as they were searched.
    let older = Settings {
        stop_at_client: false,
        whole: false,
        ..settings()
    };
    let (outcome, purposes) = scripted(older, always);
    assert_eq!(outcome.limit, Limit::Client);
    assert!(purposes.contains(&Purpose::Doubling) && purposes.contains(&Purpose::Final));
    // One baseline in three is a hiccup.
    let mut hiccups = 1;
    let (outcome, _) = scripted(settings(), |rate, purpose| {
        if hiccups > 0 {
            hiccups -= 1;
            return (TrialResult::Client, 1e6);
        }
        below(1000.0)(rate, purpose)
    });
    assert_eq!(outcome.limit, Limit::Store);
}

#[test]
fn the_lowest_rate_is_not_abandoned_after_one_failure() {
    let (outcome, purposes) = scripted(settings(), below(10.0));
    assert_eq!((outcome.limit, outcome.low), (Limit::NotMet, None));
    let high = outcome.high.unwrap();
    assert_eq!((high.rate, high.fails()), (100.0, 4));
    assert_eq!(
        purposes.iter().filter(|p| **p == Purpose::Doubling).count(),
        4
    );
    let mut first = true;
    let (outcome, _) = scripted(settings(), |rate, purpose| {
        if std::mem::take(&mut first) && rate >= 100.0 {
            return (TrialResult::Fail, 1e6);
        }
        first = first && rate < 100.0;
        below(1000.0)(rate, purpose)
    });
    assert_eq!(outcome.limit, Limit::Store);
    // Without confirmation one failure decides.
    let quick = Settings {
        confirm: 0,
        ..settings()
    };
    let (outcome, purposes) = scripted(quick, below(10.0));
    assert_eq!(outcome.limit, Limit::NotMet);
    assert_eq!(
        purposes.iter().filter(|p| **p == Purpose::Doubling).count(),
        1
    );
}

#[test]
fn the_highest_rate_ends_the_search() {
    let limited = Settings {
        max_rate: Some(300.0),
        ..settings()
    };
    let (outcome, _) = scripted(limited.clone(), below(1000.0));
    assert_eq!((outcome.limit, outcome.high), (Limit::MaxRate, None));
    let low = outcome.low.unwrap();
    assert_eq!((low.rate, low.passes), (300.0, 5));
    // It passes once, by chance, and is not confirmed.
    let mut chance = true;
    let (outcome, _) = scripted(limited, |rate, purpose| {
        if rate >= 300.0 && std::mem::take(&mut chance) {
            return (TrialResult::Pass, 1e6);
        }
        below(250.0)(rate, purpose)
    });
    assert_eq!(outcome.limit, Limit::Store);
    assert!(outcome.low.unwrap().rate < 250.0 && outcome.high.unwrap().rate >= 250.0);
}

#[test]
fn the_search_recovers_from_a_misled_bisection() {
    let mut misled = true;
    let (outcome, _) = scripted(settings(), |rate, purpose| {
        // 200/s fails once, although the store sustains 1000/s.
        if rate >= 200.0 && std::mem::take(&mut misled) {
            return (TrialResult::Fail, 1e6);
        }
        below(1000.0)(rate, purpose)
    });
    assert_eq!(outcome.limit, Limit::Store);
    assert!(outcome.low.unwrap().rate < 1000.0 && outcome.high.unwrap().rate >= 1000.0);
    assert!(outcome.moves > 3);
    // Trials that contradict each other everywhere end the search.
    let (outcome, _) = scripted(settings(), |rate, purpose| match purpose {
        Purpose::ConfirmLow => (TrialResult::Fail, 1e6),
        Purpose::ConfirmHigh => (TrialResult::Pass, 1e6),
        _ => below(1e6)(rate, purpose),
    });
    assert_eq!(outcome.limit, Limit::Unconfirmed);
}

#[test]
fn the_store_is_given_time_to_recover() {
    // After a failure the median needs three references to recover.
    let mut slow = 0;
    let (outcome, purposes) = scripted(settings(), |rate, purpose| {
        if purpose.is_reference() {
            let p50 = if slow > 0 { 2e6 } else { 1e6 };
            slow -= i32::from(slow > 0);
            return (TrialResult::Pass, p50);
        }
        slow = if rate >= 1000.0 { 2 } else { 0 };
        below(1000.0)(rate, purpose)
    });
    assert_eq!(
        (outcome.limit, outcome.unrecovered.len()),
        (Limit::Store, 0)
    );
    let longest = purposes
        .split(|p| *p != Purpose::Recovery)
        .map(<[Purpose]>::len)
        .max();
    assert_eq!(longest, Some(3));
    // A store that stays slow is reported.
    let mut aged = false;
    let (outcome, _) = scripted(settings(), |rate, purpose| {
        aged |= rate >= 1000.0;
        let (result, _) = below(1000.0)(rate, purpose);
        (result, if aged { 1.2e6 } else { 1e6 })
    });
    assert!(!outcome.unrecovered.is_empty());
    assert_eq!(
        (outcome.baseline_p50_ns, outcome.final_p50_ns),
        (1e6, 1.2e6)
    );
    // Quick searches wait for recovery after failures only.
    let quick = Settings {
        recovery: Recovery::AfterFailure,
        ..settings()
    };
    let (_, purposes) = scripted(quick, below(1000.0));
    let failures = 1 + 4 + 5;
    let recoveries = purposes.iter().filter(|p| **p == Purpose::Recovery).count();
    assert!((4..=failures).contains(&recoveries), "{recoveries}");
}

/// A store that keeps five of something busy: the search ends between five and six, whatever the start.
#[test]
fn whole_loads_end_with_neighbours() {
    for (most, expected) in [
        (5.0, (Some(5.0), Some(6.0))),
        (1.0, (Some(1.0), Some(2.0))),
        (0.0, (None, Some(1.0))),
    ] {
        let mut search = Search::new(Settings {
            start_rate: 1.0,
            max_rate: Some(64.0),
            precision: 1.05,
            confirm: 3,
            reference_rate: 1.0,
            recovery: Recovery::Never,
            seed: 1,
            stop_at_client: true,
            whole: true,
        });
        let mut trials = 0;
        while let Some(trial) = search.ask() {
            trials += 1;
            assert!(trials < 60 && trial.rate.fract() == 0.0, "{trial:?}");
            let result = match trial.rate <= most {
                true => TrialResult::Pass,
                false => TrialResult::Fail,
            };
            search.record(TrialFinding {
                result,
                p50_ns: 1.0,
            });
        }
        let outcome = search.outcome().unwrap();
        let rate = |end: Option<crate::capacity::BracketEnd>| end.map(|end| end.rate);
        assert_eq!((rate(outcome.low), rate(outcome.high)), expected);
    }
}
