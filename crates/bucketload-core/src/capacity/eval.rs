//! Judges whether a trial met the SLO.
//!
//! ```text
//! Tally of the window ─ by class ─> responses of successes + failures at the timeout ─┐
//! rates, verdict ────────────────────────────────────────────────────────────────────┴─> Judgement
//! ```
//!
//! A failed operation counts with the timeout, or with its real duration if that was longer, because dropping
//! failures would make a failing store look faster (docs/spec/statistics.md section 1). So does an operation
//! still in flight at the end of the drain: the recorder does not know its age, which is at least the drain.
//! If the plan does not count absent objects as failures, they do not count as failures here.

use serde::{Deserialize, Serialize};

use super::slo::{Bound, Objective, Slo, Statistic, Timing};
use crate::ai::AiFigures;
use crate::error::ErrorKind;
use crate::histogram::Histogram;
use crate::op::OpClass;
use crate::stats::quantile::{Print, print_rule};
use crate::tally::{Cell, Tally};
use crate::verdict::{Verdict, Word};

/// The results of a trial, over its measured window.
#[derive(Clone, Copy, Debug)]
pub struct TrialEvidence<'a> {
    /// Everything from the start of the window to the end of the drain.
    pub tally: &'a Tally,
    /// Operations that succeeded inside the window, per second.
    pub ok_per_s: f64,
    /// Longest duration of one attempt, nanoseconds.
    pub timeout_ns: u64,
    /// Whether a failed read of an absent object counts as a failure.
    pub not_found_is_failure: bool,
    /// The figures of training, checkpoints or a cache that the trial has.
    pub ai: &'a AiFigures,
    /// The verdict on the trial's validity.
    pub verdict: &'a Verdict,
}

/// An objective with its measured value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckedObjective {
    /// The objective as written.
    pub objective: String,
    /// The measured value, in the unit of the bound: nanoseconds, a share, or per second. `None` if there
    /// were no operations.
    pub value: Option<f64>,
    /// Number of operations behind the value.
    pub n: u64,
    /// Whether the bound was met.
    pub holds: bool,
    /// For percentiles: whether `n` is large enough to support them.
    pub print: Print,
}

/// What a trial means for the search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum TrialMeaning {
    /// A steady, valid trial met the SLO.
    Pass,
    /// The store did not meet the SLO.
    Fail {
        /// Why, in words.
        reason: String,
    },
    /// The client limited the trial, which says nothing about the store.
    Client {
        /// The verdict's rule and figures.
        reason: String,
    },
    /// The trial did not complete.
    Broken {
        /// What happened.
        reason: String,
    },
}

/// A trial judged against the SLO.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// Every objective with its measured value.
    pub checked: Vec<CheckedObjective>,
    /// What the trial means.
    pub meaning: TrialMeaning,
}

/// The response times of `cells` for SLO compliance: successes as measured, failures censored at the timeout.
/// Also returns the number of failures and of all operations.
#[must_use]
pub fn censored<'a>(
    cells: impl Iterator<Item = &'a Cell>,
    timing: Timing,
    timeout_ns: u64,
    not_found_is_failure: bool,
) -> (Histogram, u64, u64) {
    let (mut all, mut failed, mut total) = (Histogram::new(), 0, 0);
    for cell in cells {
        all.merge(match timing {
            Timing::Response => &cell.response,
            Timing::Ttfb => &cell.ttfb,
        });
        let absent = if not_found_is_failure {
            0
        } else {
            cell.failed[ErrorKind::NotFound as usize]
        };
        // Answers about absent objects cannot be distinguished from failures by their time; they are assumed
        // to be the quickest ones.
        let mut quick = absent;
        for (index, count) in cell.failed_response.buckets() {
            let ns = Histogram::highest_of(index);
            let answered = quick.min(count);
            quick -= answered;
            all.record_n(ns, answered);
            all.record_n(ns.max(timeout_ns), count - answered);
        }
        all.record_n(timeout_ns, cell.cancelled());
        failed += cell.failures() - absent + cell.cancelled();
        total += cell.ended();
    }
    (all, failed, total)
}

fn check(objective: &Objective, e: &TrialEvidence<'_>) -> CheckedObjective {
    let cells = || {
        e.tally
            .cells
            .iter()
            .filter(move |c| objective.class.is_none_or(|class| c.class == class))
    };
    let timing = match objective.bound {
        Bound::Duration { of, .. } => of,
        _ => Timing::Response,
    };
    let (times, failed, n) = censored(cells(), timing, e.timeout_ns, e.not_found_is_failure);
    let (ok, bytes) = cells().fold((0, 0), |(ok, bytes), c| (ok + c.ok, bytes + c.bytes));
    let mut print = Print::Bold;
    let value = match objective.bound {
        _ if n == 0 => f64::NAN,
        Bound::Duration { statistic, .. } => match statistic {
            Statistic::Quantile(q) => {
                print = print_rule(times.count(), q);
                times.quantile_ns(q) as f64
            }
            Statistic::Mean => times.mean_ns(),
            Statistic::Max => times.max_ns() as f64,
        },
        Bound::Errors { .. } => failed as f64 / n as f64,
        Bound::Ai { figure, .. } => e.ai.get(&figure).copied().unwrap_or(f64::NAN),
        // The tally extends to the end of the drain, but the window does not. The window's rate is therefore
        // divided among the classes.
        Bound::Operations { .. } => e.ok_per_s * ok as f64 / e.tally.ok().max(1) as f64,
        Bound::Bytes { .. } => e.ok_per_s * bytes as f64 / e.tally.ok().max(1) as f64,
    };
    CheckedObjective {
        objective: objective.to_string(),
        value: (n > 0 && !value.is_nan()).then_some(value),
        n,
        // Without measurements the objective is not met.
        holds: objective.holds(value),
        print,
    }
}

/// Judges a trial by the conditions of docs/spec/statistics.md section 6, in the order of what they exclude.
///
/// The verdict's rules distinguish a client limit from a store limit: V2, V4 and V5 concern the client alone.
/// V1 and V3 may also mean that a slow store filled the in-flight cap; in that case the cap is to blame only
/// if the store's service time alone would have met the SLO.
#[must_use]
pub fn judge(slo: &Slo, e: &TrialEvidence<'_>) -> Judgement {
    let checked: Vec<CheckedObjective> = slo.objectives.iter().map(|o| check(o, e)).collect();
    let meaning = meaning(slo, e, &checked);
    Judgement { checked, meaning }
}

fn meaning(slo: &Slo, e: &TrialEvidence<'_>, checked: &[CheckedObjective]) -> TrialMeaning {
    let found = |word: Word| e.verdict.reasons.iter().find(move |r| r.word == word);
    if let Some(reason) = found(Word::Incomplete)
        && e.tally.ok() > 0
    {
        return TrialMeaning::Broken {
            reason: reason.measured.clone(),
        };
    }
    let client = e
        .verdict
        .reasons
        .iter()
        .filter(|r| r.word == Word::ClientBound);
    for reason in client {
        let store_may_be_slow = matches!(reason.rule.as_str(), "V1" | "V3") && e.tally.capped > 0;
        if !store_may_be_slow || store_alone_keeps(slo, e) {
            return TrialMeaning::Client {
                reason: format!("{}: {}. {}", reason.rule, reason.measured, reason.advice),
            };
        }
    }
    let broken: Vec<String> = checked
        .iter()
        .filter(|c| !c.holds)
        .map(|c| format!("{} is not met", c.objective))
        .collect();
    let reason = if !broken.is_empty() {
        broken.join("; ")
    } else if let Some(reason) = found(Word::ClientBound) {
        format!("the store did not keep up: {}", reason.measured)
    } else if let Some(reason) = found(Word::Overloaded) {
        format!("the backlog grows: {}", reason.measured)
    } else if let Some(reason) = found(Word::Unsteady) {
        format!("not steady: {}", reason.measured)
    } else {
        return TrialMeaning::Pass;
    };
    TrialMeaning::Fail { reason }
}

/// Whether service times alone, without waiting in the client, meet the response-time objectives. Failures
/// count as before.
fn store_alone_keeps(slo: &Slo, e: &TrialEvidence<'_>) -> bool {
    let served = Tally {
        cells: e
            .tally
            .cells
            .iter()
            .map(|cell| Cell {
                response: cell.service.clone(),
                ..cell.clone()
            })
            .collect(),
        ..Tally::new()
    };
    let evidence = TrialEvidence {
        tally: &served,
        ..*e
    };
    slo.objectives
        .iter()
        .filter(|o| matches!(o.bound, Bound::Duration { .. } | Bound::Errors { .. }))
        .all(|o| check(o, &evidence).holds)
}

/// The classes that the SLO names but the trial did not perform.
#[must_use]
pub fn absent_classes(slo: &Slo, performed: &[OpClass]) -> Vec<OpClass> {
    slo.classes().filter(|c| !performed.contains(c)).collect()
}

#[cfg(test)]
mod tests {
    use super::{TrialEvidence, TrialMeaning, judge};
    use crate::ai::AiFigures;
    use crate::error::ErrorKind;
    use crate::op::OpClass;
    use crate::tally::Tally;
    use crate::verdict::{Client, Reason, Verdict, Word};

    const MS: u64 = 1_000_000;

    fn verdict(rules: &[(&str, Word)]) -> Verdict {
        let reasons: Vec<Reason> = rules
            .iter()
            .map(|(rule, word)| Reason {
                rule: (*rule).to_owned(),
                word: *word,
                condition: String::new(),
                measured: "figures".to_owned(),
                advice: "advice".to_owned(),
                figures: Vec::new(),
            })
            .collect();
        Verdict {
            word: reasons.first().map_or(Word::Valid, |r| r.word),
            reasons,
            notes: Vec::new(),
            client: Client::default(),
        }
    }

    /// 1000 gets of 1..=1000 ms response and 1 ms service.
    fn tally() -> Tally {
        let mut tally = Tally::new();
        let cell = tally.cell_mut(0, OpClass::Get);
        cell.ok = 1000;
        for ms in 1..=1000 {
            cell.response.record(ms * MS);
            cell.service.record(MS);
            cell.ttfb.record(MS);
        }
        tally
    }

    fn meaning(slo: &str, tally: &Tally, rules: &[(&str, Word)]) -> TrialMeaning {
        let evidence = TrialEvidence {
            tally,
            ok_per_s: 100.0,
            timeout_ns: 30_000 * MS,
            not_found_is_failure: true,
            ai: &AiFigures::new(),
            verdict: &verdict(rules),
        };
        judge(&slo.parse().unwrap(), &evidence).meaning
    }

    fn passes(slo: &str, tally: &Tally) -> bool {
        meaning(slo, tally, &[]) == TrialMeaning::Pass
    }

    #[test]
    fn percentiles_follow_the_one_definition() {
        let t = tally();
        assert!(passes("p99<=991ms", &t) && !passes("p99<=989ms", &t));
        assert!(passes("mean<501ms", &t) && !passes("mean<500ms", &t));
        assert!(passes("max<=1s", &t) && !passes("max<1s", &t));
        assert!(passes("get.ttfb.p99.9<=2ms", &t));
        assert!(passes("throughput>=100/s", &t) && !passes("throughput>100/s", &t));
    }

    #[test]
    fn failures_count_with_the_timeout() {
        let mut t = tally();
        let cell = t.cell_mut(0, OpClass::Get);
        // 2 % fail within a millisecond: if they were dropped, the p99 would hardly change.
        cell.failed[ErrorKind::Server as usize] = 20;
        cell.failed_response.record_n(MS, 20);
        assert!(!passes("p99<2s,errors<5%", &t));
        assert!(passes("p99<=30.1s,errors<5%", &t));
        assert!(passes("p97<1s,errors<5%", &t));
        assert!(!passes("p50<1s,errors<1%", &t) && passes("p50<1s,errors<2%", &t));
        // So do operations that never completed.
        let mut t = tally();
        t.cell_mut(0, OpClass::Get).failed[ErrorKind::Cancelled as usize] = 20;
        assert!(!passes("p99<2s,errors<5%", &t) && !passes("p50<1s,errors<1%", &t));
    }

    #[test]
    fn absent_objects_are_failures_only_if_the_plan_says_so() {
        let mut t = tally();
        let cell = t.cell_mut(0, OpClass::Get);
        cell.failed[ErrorKind::NotFound as usize] = 20;
        cell.failed[ErrorKind::Server as usize] = 1;
        cell.failed_response.record_n(MS, 20);
        cell.failed_response.record_n(5 * MS, 1);
        let evidence = TrialEvidence {
            tally: &t,
            ok_per_s: 100.0,
            timeout_ns: 30_000 * MS,
            not_found_is_failure: false,
            ai: &AiFigures::new(),
            verdict: &verdict(&[]),
        };
        let judged = judge(&"p99<1s,errors<0.1%".parse().unwrap(), &evidence);
        assert_eq!(judged.meaning, TrialMeaning::Pass);
        assert_eq!(judged.checked[0].n, 1021);
        assert!((judged.checked[1].value.unwrap() - 1.0 / 1021.0).abs() < 1e-12);
    }

    #[test]
    fn a_class_that_was_not_performed_meets_no_objective() {
        assert!(!passes("put.p99<1h", &tally()));
        assert!(!passes("p99<1h", &Tally::new()));
    }

    #[test]
    fn client_limits_are_distinguished_from_store_limits() {
        let slow = [("V2", Word::ClientBound)];
        assert!(matches!(
            meaning("p99<50ms", &tally(), &slow),
            TrialMeaning::Client { .. }
        ));
        let behind = [("V1", Word::ClientBound)];
        // Behind schedule without reaching the cap: the client.
        assert!(matches!(
            meaning("p99<50ms", &tally(), &behind),
            TrialMeaning::Client { .. }
        ));
        // At the cap, with a fast store: the cap, so the client.
        let mut capped = tally();
        capped.capped = 5;
        assert!(matches!(
            meaning("p99<50ms", &capped, &behind),
            TrialMeaning::Client { .. }
        ));
        // At the cap because the store is slow: the store.
        let cell = capped.cell_mut(0, OpClass::Get);
        cell.service = cell.response.clone();
        assert!(matches!(
            meaning("p99<50ms", &capped, &behind),
            TrialMeaning::Fail { .. }
        ));
    }

    #[test]
    fn other_verdicts_fail_or_break_the_trial() {
        let t = tally();
        for (rule, word) in [("backlog", Word::Overloaded), ("steady", Word::Unsteady)] {
            assert!(matches!(
                meaning("max<2s", &t, &[(rule, word)]),
                TrialMeaning::Fail { .. }
            ));
        }
        assert!(matches!(
            meaning("max<2s", &t, &[("incomplete", Word::Incomplete)]),
            TrialMeaning::Broken { .. }
        ));
        // A degraded trial is measured properly; errors are for the SLO to judge.
        assert!(matches!(
            meaning("max<2s", &t, &[("V7", Word::Degraded)]),
            TrialMeaning::Pass
        ));
        // No operation succeeded: the store refused everything, which is an answer.
        let incomplete = [("incomplete", Word::Incomplete)];
        assert!(matches!(
            meaning("p99<1s", &Tally::new(), &incomplete),
            TrialMeaning::Fail { .. }
        ));
    }
}
