//! Each rule on both sides of its threshold.

use super::{Backlog, Completeness, Figures, Slice, Verdict, Word, judge};
use crate::error::ErrorKind;
use crate::sink::Calibration;
use crate::stats::steady::{Assessment, Checks, State};

fn good() -> Figures {
    Figures {
        completeness: Completeness::Complete,
        open_loop: true,
        window_s: 60.0,
        offered: 100_000,
        unsent: 0,
        worst_slice: Some(Slice {
            start_ns: 0,
            offered: 10_000,
            unsent: 0,
        }),
        ok: 100_000,
        failed: 0,
        main_failure: None,
        gave_up: false,
        cancelled: 0,
        issued_in_phase: 100_500,
        ended_in_phase: 100_500,
        retries: 0,
        capped: 0,
        max_in_flight: 1024,
        ok_per_s: 1000.0,
        late_p99_ns: 100_000,
        service_p50_ns: 2_000_000,
        service_p99_ns: 10_000_000,
        response_p99_ns: 10_100_000,
        busiest_thread: Some(0.3),
        program: None,
        machine_busy: Some(0.4),
        machine_steal: Some(0.0),
        nic: Some(0.1),
        cpu_ns_per_op: Some(25_000.0),
        calibration: Some(Calibration {
            offered_ops_per_s: 1000.0,
            null_ops_per_s: 50_000.0,
            null_p99_ns: 200_000,
            null_cpu_ns_per_op: 900.0,
        }),
        wall_step_ns: 0,
        backlog: Some(Backlog {
            slope_per_s: 0.0,
            p_value: 0.8,
            first_quarter: 3.0,
            end: 3.0,
        }),
        jobs: None,
        steadiness: vec![("service p50".to_owned(), assessment(State::Steady))],
    }
}

fn assessment(state: State) -> Assessment {
    Assessment {
        state,
        cut_bins: 0,
        mser_bins: 0,
        checks: Some(Checks {
            batch_len: 3,
            batches: 20,
            trend: 0.2,
            trend_p: 1e-4,
            halves: 0.1,
            halves_p: 1e-3,
            lag1: 0.5,
            lag1_limit: 0.47,
        }),
    }
}

/// Applies `change` and returns the names of the rules that found a problem, with the verdict.
fn after(change: impl FnOnce(&mut Figures)) -> (Vec<String>, Verdict) {
    let mut figures = good();
    change(&mut figures);
    let verdict = judge(&figures);
    (
        verdict.reasons.iter().map(|r| r.rule.clone()).collect(),
        verdict,
    )
}

#[track_caller]
fn finds_nothing(change: impl FnOnce(&mut Figures)) {
    let (rules, verdict) = after(change);
    assert!(
        rules.is_empty() && verdict.word == Word::Valid,
        "{verdict:?}"
    );
}

#[track_caller]
fn finds(rule: &str, word: Word, change: impl FnOnce(&mut Figures)) -> Verdict {
    let (rules, verdict) = after(change);
    assert_eq!(rules, [rule]);
    assert_eq!(verdict.word, word);
    let reason = &verdict.reasons[0];
    assert!(!reason.figures.is_empty() && !reason.measured.is_empty() && !reason.advice.is_empty());
    verdict
}

#[test]
fn a_good_run_is_valid_and_states_cost_and_headroom() {
    let (_, verdict) = after(|_| {});
    assert!(verdict.is_comparable() && verdict.notes.is_empty());
    assert_eq!(verdict.client.cpu_ns_per_op, Some(25_000.0));
    assert_eq!(verdict.client.headroom, Some(50.0));
}

#[test]
fn incomplete() {
    for how in [
        Completeness::Interrupted,
        Completeness::Aborted,
        Completeness::Killed,
    ] {
        finds("incomplete", Word::Incomplete, |f| f.completeness = how);
    }
    finds("incomplete", Word::Incomplete, |f| f.ok = 0);
    finds_nothing(|f| f.ok = 1);
}

#[test]
fn v1_window() {
    finds_nothing(|f| f.unsent = 1000);
    finds("V1", Word::ClientBound, |f| f.unsent = 1001);
    // Two operations at the edge of a tiny window are no evidence.
    finds_nothing(|f| (f.offered, f.unsent) = (20, 2));
    finds("V1", Word::ClientBound, |f| (f.offered, f.unsent) = (20, 3));
}

#[test]
fn closed_loops_have_no_schedule_and_say_so() {
    let (rules, verdict) = after(|f| (f.open_loop, f.unsent) = (false, 50_000));
    assert!(rules.is_empty());
    assert!(verdict.notes.iter().any(|n| n.contains("closed loop")));
}

#[test]
fn v1_slice() {
    let slice = |unsent| {
        Some(Slice {
            start_ns: 20_000_000_000,
            offered: 10_000,
            unsent,
        })
    };
    finds_nothing(|f| f.worst_slice = slice(500));
    let verdict = finds("V1", Word::ClientBound, |f| f.worst_slice = slice(501));
    assert!(verdict.reasons[0].measured.contains("starting at 20 s"));
}

#[test]
fn v2_absolute_and_relative_limit() {
    finds_nothing(|f| f.late_p99_ns = 1_000_000);
    finds("V2", Word::ClientBound, |f| f.late_p99_ns = 1_000_001);
    finds_nothing(|f| (f.service_p50_ns, f.late_p99_ns) = (100_000_000, 5_000_000));
    finds("V2", Word::ClientBound, |f| {
        (f.service_p50_ns, f.late_p99_ns) = (100_000_000, 5_000_001);
    });
}

#[test]
fn v3_needs_a_client_limit() {
    let slow =
        |f: &mut Figures, response| (f.service_p99_ns, f.response_p99_ns) = (9_000_000, response);
    finds_nothing(|f| slow(f, 50_000_000));
    let (rules, _) = after(|f| {
        slow(f, 10_000_000);
        f.capped = 5;
    });
    assert_eq!(rules, ["semi-open"]);
    let (rules, verdict) = after(|f| {
        slow(f, 10_000_100);
        f.capped = 5;
    });
    assert_eq!(rules, ["V3", "semi-open"]);
    assert_eq!(verdict.word, Word::ClientBound);
}

#[test]
fn v4_each_resource() {
    finds_nothing(|f| {
        (f.busiest_thread, f.machine_busy, f.nic) = (Some(0.85), Some(0.80), Some(0.85))
    });
    finds("V4", Word::ClientBound, |f| f.busiest_thread = Some(0.851));
    finds_nothing(|f| f.program = Some(0.85));
    finds("V4", Word::ClientBound, |f| f.program = Some(0.851));
    finds("V4", Word::ClientBound, |f| f.machine_busy = Some(0.801));
    finds("V4", Word::ClientBound, |f| f.nic = Some(0.851));
    finds_nothing(|f| (f.busiest_thread, f.machine_busy, f.nic) = (None, None, None));
}

#[test]
fn v5_headroom_and_null_latency() {
    let null = |f: &mut Figures, rate, p99| {
        let c = f.calibration.as_mut().unwrap();
        (c.null_ops_per_s, c.null_p99_ns) = (rate, p99);
    };
    finds_nothing(|f| null(f, 1500.0, 2_020_000));
    finds("V5", Word::ClientBound, |f| null(f, 1499.0, 0));
    finds("V5", Word::ClientBound, |f| null(f, 1500.0, 2_020_001));
    let (_, verdict) = after(|f| f.calibration = None);
    assert_eq!((verdict.word, verdict.client.headroom), (Word::Valid, None));
    assert!(verdict.notes[0].contains("V5"));
}

#[test]
fn v6_wall_clock() {
    finds_nothing(|f| f.wall_step_ns = 50_000_000);
    finds("V6", Word::Degraded, |f| f.wall_step_ns = 50_000_001);
}

#[test]
fn v7_failures() {
    finds_nothing(|f| (f.ok, f.failed) = (99_900, 100));
    let explore = finds("V7", Word::Degraded, |f| (f.ok, f.failed) = (99_899, 101));
    assert!(explore.reasons[0].advice.contains("exploration"));
    let (_, bad) = after(|f| (f.ok, f.failed) = (98_999, 1001));
    assert!(bad.reasons[0].advice.contains("do not describe"));
}

#[test]
fn failures_explain_what_the_client_did() {
    let (_, busy) = after(|f| (f.ok, f.failed, f.busiest_thread) = (50_000, 50_000, Some(1.0)));
    assert_eq!(busy.word, Word::ClientBound);
    let (_, most) = after(|f| {
        (f.ok, f.failed, f.busiest_thread) = (49_999, 50_001, Some(1.0));
        (f.retries, f.main_failure) = (50_000, Some((ErrorKind::Full, 50_000)));
    });
    assert_eq!(
        (most.word, most.reasons[0].rule.as_str()),
        (Word::Degraded, "V7")
    );
    assert!(
        most.reasons[0]
            .measured
            .contains("50000 of them with `full`")
    );
    let (_, gave_up) = after(|f| {
        (f.ok, f.failed, f.busiest_thread, f.gave_up) = (90_000, 10_000, Some(1.0), true);
    });
    assert_eq!(gave_up.word, Word::Degraded);
    assert!(gave_up.reasons[0].measured.contains("ended early"));
}

#[test]
fn unfinished_operations_degrade() {
    finds_nothing(|f| (f.ok, f.cancelled) = (99_900, 100));
    finds("unfinished", Word::Degraded, |f| {
        (f.ok, f.cancelled) = (99_899, 101);
    });
}

#[test]
fn lost_operations_are_no_result() {
    finds("conservation", Word::Incomplete, |f| f.ended_in_phase -= 1);
    let (rules, _) = after(|f| {
        f.ended_in_phase -= 1;
        f.completeness = Completeness::Killed;
    });
    assert_eq!(rules, ["incomplete"]);
}

#[test]
fn degraded_by_cap_retries_and_steal() {
    finds("semi-open", Word::Degraded, |f| f.capped = 1);
    finds_nothing(|f| f.retries = 100);
    finds("retries", Word::Degraded, |f| f.retries = 101);
    finds_nothing(|f| f.machine_steal = Some(0.05));
    finds("steal", Word::Degraded, |f| f.machine_steal = Some(0.051));
}

fn growing(f: &mut Figures) {
    f.backlog = Some(Backlog {
        slope_per_s: 5.0,
        p_value: 1e-6,
        first_quarter: 40.0,
        end: 280.0,
    });
}

#[test]
fn overload_needs_growth_significance_and_a_client_that_kept_up() {
    finds("backlog", Word::Overloaded, growing);
    for change in [
        |b: &mut Backlog| b.p_value = 0.01,
        |b: &mut Backlog| b.end = 80.0,
        |b: &mut Backlog| (b.first_quarter, b.end) = (0.1, 1.0),
        |b: &mut Backlog| b.slope_per_s = -1.0,
    ] {
        finds_nothing(|f| {
            growing(f);
            change(f.backlog.as_mut().unwrap());
        });
    }
    finds("V2", Word::ClientBound, |f| {
        growing(f);
        f.late_p99_ns = 9_000_000;
    });
}

#[test]
fn unsteady() {
    finds("steady", Word::Unsteady, |f| {
        f.steadiness[0].1 = assessment(State::NonStationary)
    });
    let (_, verdict) = after(|f| f.steadiness[0].1 = assessment(State::TooShort));
    assert_eq!(verdict.word, Word::Valid);
    assert!(verdict.notes[0].contains("service p50"));
}

#[test]
fn the_most_severe_word_wins_and_reasons_are_ordered() {
    let (rules, verdict) = after(|f| {
        f.capped = 3;
        f.steadiness[0].1 = assessment(State::NonStationary);
        growing(f);
        f.completeness = Completeness::Killed;
    });
    assert_eq!(rules, ["incomplete", "backlog", "steady", "semi-open"]);
    assert_eq!(verdict.word, Word::Incomplete);
}

#[test]
fn words_are_printed_and_stored_identically() {
    for word in [
        Word::Valid,
        Word::Degraded,
        Word::Unsteady,
        Word::Overloaded,
        Word::ClientBound,
        Word::Incomplete,
    ] {
        assert_eq!(serde_json::to_value(word).unwrap(), word.name());
    }
}

#[test]
fn jobs_that_pile_up_are_unstable() {
    let growing = |f: &mut Figures| {
        f.jobs = Some(Backlog {
            slope_per_s: 0.1,
            p_value: 1e-6,
            first_quarter: 2.0,
            end: 12.0,
        });
    };
    finds("unstable", Word::Overloaded, growing);
    let (rules, _) = after(|f| {
        growing(f);
        f.jobs.as_mut().unwrap().p_value = 0.5;
    });
    assert!(rules.is_empty(), "{rules:?}");
}
