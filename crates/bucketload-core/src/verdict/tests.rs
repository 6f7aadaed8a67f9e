//! Each rule on both sides of its threshold.

use proptest::prelude::*;

use super::{Backlog, Completeness, Figures, Limit, Slice, Verdict, Word, judge};
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
            age_s: None,
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
    // The null target would allow 50 times the rate, but the machine is busy to 40 %.
    let reserve = verdict.client.reserve.unwrap();
    assert_eq!((reserve.factor, reserve.limit), (2.5, Limit::Machine));
    assert!((reserve.used() - 0.4).abs() < 1e-12);
}

#[test]
fn the_tightest_resource_limits_the_headroom() {
    let reserve = |change: fn(&mut Figures)| after(change).1.client.reserve;
    let limit = |change| reserve(change).map(|r| r.limit);
    assert_eq!(
        limit(|f| f.busiest_thread = Some(0.9)),
        Some(Limit::LoadThread)
    );
    assert_eq!(limit(|f| f.program = Some(1.2)), Some(Limit::Program));
    assert_eq!(limit(|f| f.nic = Some(0.7)), Some(Limit::Network));
    assert_eq!(limit(|f| f.late_p99_ns = 9_000_000), Some(Limit::Timing));
    assert_eq!(limit(|f| f.unsent = 2_000), Some(Limit::Schedule));
    assert_eq!(reserve(|f| f.unsent = 2_000).map(|r| r.factor), Some(0.98));
    // A busy machine makes the client late: the machine is the limit.
    let both = reserve(|f| (f.late_p99_ns, f.machine_busy) = (9_000_000, Some(0.9))).unwrap();
    assert_eq!((both.factor, both.limit), (1.0, Limit::Machine));
    // Spinning threads say nothing, and the null target alone never makes a headroom.
    assert_eq!(reserve(|f| f.busiest_thread = None), None);
    assert!(
        Limit::LoadThread.words() == "load thread"
            && Limit::Network.meaning().contains("line rate")
    );
}

proptest! {
    /// A client at its limit has no headroom to speak of: less than the rule that found it asks for.
    #[test]
    fn a_client_bound_run_never_shows_headroom(
        shares in prop::array::uniform4(prop::option::of(0.0..1.3f64)),
        rates in (1.0..1e6f64, 1.0..1e6f64, prop::option::of(1.0..1e7f64)),
        times in (0..20_000_000u64, 0..20_000_000u64, 0..20_000_000u64),
        counts in (0..100_000u64, 0..100u64, 0..3u64, 0..200_000u64),
    ) {
        let mut f = good();
        [f.busiest_thread, f.program, f.machine_busy, f.nic] = shares;
        f.ok_per_s = rates.0;
        f.calibration = rates.2.map(|null_ops_per_s| Calibration {
            offered_ops_per_s: rates.1,
            null_ops_per_s,
            null_p99_ns: times.0,
            null_cpu_ns_per_op: 1.0,
            age_s: None,
        });
        (f.late_p99_ns, f.response_p99_ns) = (times.1, times.2);
        (f.unsent, f.capped, f.failed) = (counts.0, counts.2, counts.3);
        f.worst_slice.as_mut().unwrap().unsent = counts.1 * 100;
        let verdict = judge(&f);
        let rules: Vec<&str> = verdict.reasons.iter().map(|r| r.rule.as_str()).collect();
        let bound = verdict.reasons.iter().any(|r| r.word == Word::ClientBound);
        if bound {
            let factor = verdict.client.reserve.unwrap().factor;
            let most = if rules.contains(&"V4") { 1.25 } else { 1.5 };
            prop_assert!(factor < most, "{rules:?}: {factor}");
        } else if let Some(reserve) = verdict.client.reserve.filter(|_| !f.mostly_failed()) {
            prop_assert!(reserve.factor >= 1.0 / 0.85, "{reserve:?}");
        }
    }
}

#[test]
fn when_most_operations_fail_failures_lead() {
    let failing = |f: &mut Figures| {
        (f.ok, f.failed) = (10, 415_000);
        f.machine_busy = Some(0.99);
        f.steadiness[0].1 = assessment(State::NonStationary);
    };
    let verdict = finds("V7", Word::Degraded, failing);
    assert!(verdict.reasons[0].advice.contains("failures"));
    assert!(
        verdict.notes[0].contains("not judged"),
        "{:?}",
        verdict.notes
    );
    let (rules, verdict) = after(|f| {
        failing(f);
        f.ok = 0;
    });
    assert_eq!(
        (rules[0].as_str(), verdict.word),
        ("incomplete", Word::Incomplete)
    );
    // With half of the operations, the client's limits count.
    let (rules, _) = after(|f| {
        failing(f);
        f.ok = f.failed;
    });
    assert_eq!(rules, ["V4", "steady", "V7"]);
}

#[test]
fn words_say_what_they_mean() {
    assert_eq!(
        Word::Valid.meaning(),
        "The figures are valid and may be compared."
    );
    assert!(
        Word::ClientBound
            .meaning()
            .starts_with("The client limited")
    );
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
    let aged = |f: &mut Figures| f.calibration.as_mut().unwrap().age_s = Some(7199);
    let (_, verdict) = after(aged);
    assert_eq!(verdict.word, Word::Valid);
    let said = "119 min ago; --no-calibration-cache measures it again";
    assert!(verdict.notes[0].contains(said), "{:?}", verdict.notes);
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
