//! How phases and runs end: limits, drain, interrupts, errors of sessions and threads.

use std::sync::Arc;
use std::time::Duration;

use crate::common::undisturbed::undisturbed;
use crate::common::*;
use bucketload_core::error::ErrorKind;
use bucketload_core::op::OpClass;
use bucketload_core::plan::{
    ClosedPlan, GapLaw, KeyLaw, Limits, ModelPlan, PhaseKind, Plan, StopFigure, StopRule,
};
use bucketload_core::sink::{Event, PhaseEnd, RunSink};
use bucketload_core::tally::Interval;
use bucketload_run::{RunEnd, RunError, RunOptions, StopHandle, StopLevel, run};

fn go(driver: Scripted, plan: &Plan, options: &RunOptions) -> (Result<RunEnd, RunError>, Kept) {
    let mut kept = Kept::default();
    let end = run(
        &Arc::new(driver).into(),
        plan,
        options,
        &mut kept,
        &StopHandle::new(),
    );
    (end, kept)
}

#[test]
fn the_byte_limit_ends_a_phase() {
    let limits = Limits {
        bytes: 1_000 * 4096,
        drain_ns: ms(1_000),
        ..Limits::default()
    };
    for model in [closed(4), constant(20_000.0, 16)] {
        let plan = one(model, gets(), limits);
        let (end, _) = go(Scripted::new(|_| at_once()), &plan, &options(2));
        let summary = end.unwrap().phases[0];
        assert_eq!(summary.end, PhaseEnd::ByteLimit);
        assert!(summary.totals.bytes >= limits.bytes);
        assert!(
            summary.totals.bytes < limits.bytes + 20_000 * 4096,
            "{summary:?}"
        );
    }
}

#[test]
fn the_operation_limit_counts_over_all_works() {
    let works = vec![
        work(closed(3), gets()),
        work(
            constant(5_000.0, 16),
            vec![entry(OpClass::Put, 1.0, 1, KeyLaw::Fresh)],
        ),
    ];
    let plan = plan(vec![phase(PhaseKind::Run, works, for_ops(3_000))]);
    let slowly = |call: &Call| match call.class {
        OpClass::Get => until(call.now_ns + ms(1)),
        _ => at_once(),
    };
    let (end, kept) = go(Scripted::new(slowly), &plan, &options(2));
    assert_eq!(end.unwrap().phases[0].totals.ok, 3_000);
    let works: Vec<u16> = kept
        .total(0)
        .cells
        .iter()
        .filter(|c| c.ok > 100)
        .map(|c| c.work)
        .collect();
    assert_eq!(works.len(), 2);
}

#[test]
fn operations_in_flight_after_the_drain_are_cancelled_not_lost() {
    let limits = Limits {
        duration_ns: ms(200),
        drain_ns: ms(100),
        ..Limits::default()
    };
    for model in [closed(8), constant(100.0, 64)] {
        let plan = one(model, gets(), limits);
        let script = |call: &Call| if call.nth >= 5 { never() } else { at_once() };
        let (end, kept) = go(Scripted::new(script), &plan, &options(2));
        let summary = end.unwrap().phases[0];
        let totals = summary.totals;
        assert_eq!(totals.ok, 5);
        assert!(totals.cancelled >= 8, "{totals:?}");
        assert_eq!(totals.issued, totals.ok + totals.cancelled);
        assert_eq!(totals.offered, totals.issued);
        assert_eq!(totals.failed, 0);
        assert!(summary.drained_ns >= summary.at_ns + ms(100));
        assert_eq!(kept.intervals.last().unwrap().gauges.in_flight, 0);
        assert_eq!(kept.failures(), 0);
    }
}

#[test]
fn arrivals_that_no_worker_could_take_stay_offered_and_unissued() {
    let limits = Limits {
        duration_ns: ms(200),
        drain_ns: ms(50),
        ..Limits::default()
    };
    let plan = one(constant(1_000.0, 4), gets(), limits);
    let (end, kept) = go(Scripted::new(|_| never()), &plan, &options(2));
    let totals = end.unwrap().phases[0].totals;
    assert_eq!(
        (totals.offered, totals.issued, totals.cancelled),
        (200, 4, 4)
    );
    assert_eq!(kept.intervals.last().unwrap().gauges.in_flight, 196);
    assert_eq!(kept.total(0).capped, 196);
    // Arrivals count as offered by the schedule although nothing was taken: 100 per interval of 100 ms.
    let offered: Vec<u64> = kept.intervals.iter().map(|i| i.tally.offered).collect();
    assert_eq!(offered[..2], [100, 100]);
}

#[test]
fn think_times_are_observed_and_do_not_count_as_lag() {
    undisturbed(|| {
        let think = GapLaw::Constant { ns: ms(10) };
        let plan = one(
            ModelPlan::Closed(ClosedPlan { workers: 20, think }),
            gets(),
            for_ms(500),
        );
        let (end, kept) = go(Scripted::new(|_| at_once()), &plan, &options(2));
        let totals = end.unwrap().phases[0].totals;
        // 20 workers, at most 50 turns each; a loaded machine makes some turns late.
        assert!((500..=1_000).contains(&totals.ok), "{totals:?}");
        assert!(kept.total(0).lag.quantile_ns(0.5) < ms(5));
    });
}

#[test]
fn a_closed_loop_that_lacks_sessions_does_not_start() {
    let plan = one(closed(8), gets(), for_ops(100));
    let (end, kept) = go(Scripted::new(|_| at_once()).openable(5), &plan, &options(2));
    let error = end.unwrap_err();
    assert!(matches!(error, RunError::Session { .. }), "{error}");
    assert!(error.to_string().contains("fewer workers"), "{error}");
    assert!(kept.intervals.is_empty());
    assert!(kept.events.is_empty(), "it never began: {:?}", kept.events);
}

#[test]
fn a_phase_that_is_stopped_before_its_start_never_begins() {
    let stop = StopHandle::new();
    let mut kept = Kept::default();
    let plan = one(closed(2), gets(), for_ops(100));
    let driver = Scripted::new(|_| at_once()).open_delay(Duration::from_secs(3_600));
    let other = stop.clone();
    let stopper = std::thread::spawn(move || other.stop());
    let mut plan = plan;
    plan.timeout_ns = ms(3_600_000);
    let end = run(
        &Arc::new(driver).into(),
        &plan,
        &options(2),
        &mut kept,
        &stop,
    )
    .unwrap();
    stopper.join().unwrap();
    assert_eq!(end.stopped, StopLevel::Finish);
    assert!(
        end.phases
            .iter()
            .all(|p| p.totals.issued == 0 && p.start_ns <= p.drained_ns)
    );
    assert!(kept.intervals.is_empty() && kept.events.is_empty());
}

#[test]
fn an_open_loop_goes_on_with_the_sessions_it_has() {
    undisturbed(|| {
        let plan = one(constant(1_000.0, 64), gets(), for_ms(400));
        let slow = |call: &Call| until(call.now_ns + ms(15));
        let (end, kept) = go(Scripted::new(slow).openable(6), &plan, &options(1));
        let totals = end.unwrap().phases[0].totals;
        assert_eq!((totals.offered, totals.ok), (400, 400));
        let tally = kept.total(0);
        assert!(
            tally.dispatch.count() > 300,
            "waits for sessions are dispatch waits"
        );
        assert_eq!(tally.capped, 0, "the cap was never reached");
        let refused =
            |e: &&Event| matches!(e, Event::Failure { error, .. } if error.contains("no more"));
        assert!(kept.events.iter().filter(refused).count() >= 1);
        let (end, _) = go(Scripted::new(|_| at_once()).openable(0), &plan, &options(1));
        assert!(matches!(end, Err(RunError::Session { .. })));
    });
}

#[test]
fn a_session_that_cannot_be_opened_is_reported_under_its_own_work() {
    undisturbed(|| {
        let mut plan = one(closed(1), gets(), for_ms(400));
        let puts = vec![entry(OpClass::Put, 1.0, 0, KeyLaw::Uniform)];
        let works = &mut plan.phases.last_mut().unwrap().works;
        works.push(work(constant(1_000.0, 64), puts));
        let slow = |call: &Call| until(call.now_ns + ms(15));
        let (end, kept) = go(Scripted::new(slow).openable(7), &plan, &options(1));
        end.unwrap();
        let classes: Vec<OpClass> = kept
            .events
            .iter()
            .filter_map(|event| match event {
                Event::Failure { class, error, .. } if error.contains("no more") => Some(*class),
                _ => None,
            })
            .collect();
        assert!(!classes.is_empty());
        assert!(
            classes.iter().all(|&class| class == OpClass::Put),
            "{classes:?}"
        );
    });
}

#[test]
fn slow_connecting_counts_neither_as_service_time_nor_as_lateness() {
    undisturbed(|| {
        // Starts with 4 to 10 sessions; needs some 100 at once while each takes 20 ms to open.
        let plan = one(constant(1_000.0, 400), gets(), for_ms(300));
        let slow = |call: &Call| until(call.now_ns + ms(100));
        let driver = Scripted::new(slow).open_delay(Duration::from_millis(20));
        let (end, kept) = go(driver, &plan, &options(1));
        assert_eq!(end.unwrap().phases[0].totals.ok, 300);
        let tally = kept.total(0);
        assert!(tally.connects >= 100, "{}", tally.connects);
        assert!(tally.dispatch.count() > 0);
        assert_eq!(tally.capped, 0);
        assert!(tally.late.quantile_ns(0.5) < ms(10), "{:?}", tally.late);
    });
}

/// Stops the run from inside the sink, after `after` calls.
struct StopAfter {
    kept: Kept,
    calls: usize,
    after: usize,
    stop: StopHandle,
    times: usize,
}

impl StopAfter {
    fn count(&mut self) {
        self.calls += 1;
        if self.calls == self.after {
            (0..self.times).for_each(|_| self.stop.stop());
        }
    }
}

impl RunSink for StopAfter {
    fn event(&mut self, event: &Event) {
        self.kept.event(event);
        self.count();
    }
    fn interval(&mut self, interval: &Interval) {
        self.kept.interval(interval);
        self.count();
    }
}

fn whole(model: ModelPlan) -> Plan {
    let puts = |keys, set| vec![entry(OpClass::Put, 1.0, set, keys)];
    plan(vec![
        phase(PhaseKind::Init, vec![], Limits::default()),
        phase(
            PhaseKind::Prepare,
            vec![work(closed(4), puts(KeyLaw::Sequential, 0))],
            for_ops(1_000),
        ),
        phase(
            PhaseKind::Run,
            vec![work(model, puts(KeyLaw::Fresh, 1))],
            for_ms(10_000),
        ),
        phase(PhaseKind::Cleanup, vec![], Limits::default()),
    ])
}

#[test]
fn a_stop_at_any_moment_finishes_and_cleans_up() {
    // The sink is called at the start and end of phases and for intervals in between.
    for after in 1..=7 {
        for model in [closed(4), constant(2_000.0, 64)] {
            let driver = Arc::new(Scripted::new(|call| until(call.now_ns + ms(1))));
            let stop = StopHandle::new();
            let mut sink = StopAfter {
                kept: Kept::default(),
                calls: 0,
                after,
                stop: stop.clone(),
                times: 1,
            };
            let end = run(
                &Arc::clone(&driver).into(),
                &whole(model),
                &options(2),
                &mut sink,
                &stop,
            );
            let end = end.unwrap();
            assert_eq!(end.stopped, StopLevel::Finish);
            assert!(end.cleanup.unwrap().complete, "stopped after call {after}");
            assert!(driver.keys("b").is_empty());
            for phase in &end.phases {
                let t = phase.totals;
                assert_eq!(t.issued, t.ok + t.failed + t.cancelled);
                assert!(phase.drained_ns - phase.start_ns < ms(9_000), "{phase:?}");
            }
            assert_eq!(end.phases.last().unwrap().end, PhaseEnd::Complete);
        }
    }
}

#[test]
fn an_abort_ends_at_once_and_reports_what_is_left() {
    let driver = Arc::new(Scripted::new(|call| match call.key.starts_with("t/w/") {
        true => never(),
        false => at_once(),
    }));
    let stop = StopHandle::new();
    let mut sink = StopAfter {
        kept: Kept::default(),
        calls: 0,
        after: 7,
        stop: stop.clone(),
        times: 2,
    };
    let model = constant(100.0, 16);
    let aborted = options(2);
    let end = run(
        &Arc::clone(&driver).into(),
        &whole(model),
        &aborted,
        &mut sink,
        &stop,
    )
    .unwrap();
    assert_eq!(end.stopped, StopLevel::Abort);
    assert_eq!(end.cleanup, None);
    let last = end.phases.last().unwrap();
    assert_eq!(last.end, PhaseEnd::Aborted);
    assert!(last.totals.cancelled > 0);
    assert!(last.drained_ns - last.start_ns < ms(5_000));
    assert_eq!(driver.keys("b").len(), 1_001);
    let left = aborted.left.take().expect("the objects are still there");
    assert!(left.contains("`b/t/`"), "{left}");
}

/// A driver that never answers on the control plane.
struct Mute;

impl bucketload_core::driver::Driver for Mute {
    type Session = ScriptedSession;
    fn capabilities(&self) -> bucketload_core::driver::Capabilities {
        Scripted::new(|_| at_once()).capabilities()
    }
    fn facts(&self) -> bucketload_core::driver::DriverFacts {
        Default::default()
    }
    async fn open(
        &self,
        _: bucketload_core::driver::WorkerId,
        _: &mut bucketload_core::record::Probe,
    ) -> Result<ScriptedSession, bucketload_core::error::OpError> {
        std::future::pending().await
    }
}

#[test]
fn a_silent_target_hangs_neither_the_run_nor_an_abort() {
    let mut plan = whole(closed(2));
    plan.timeout_ns = ms(50);
    let stop = StopHandle::new();
    let go = |plan: &Plan, stop: &StopHandle| {
        run(
            &Arc::new(Mute).into(),
            plan,
            &options(1),
            &mut Kept::default(),
            stop,
        )
    };
    assert!(matches!(go(&plan, &stop), Err(RunError::Unreachable(_))));
    plan.phases.drain(..2);
    assert!(matches!(go(&plan, &stop), Err(RunError::Unreachable(_))));
    // A timeout of an hour, cut short by the user.
    let mut plan = whole(closed(2));
    plan.timeout_ns = ms(3_600_000);
    let other = stop.clone();
    let stopper = std::thread::spawn(move || (0..2).for_each(|_| other.stop()));
    let end = go(&plan, &stop).unwrap();
    stopper.join().unwrap();
    assert_eq!(end.stopped, StopLevel::Abort);
}

#[test]
fn the_stopping_rule_ends_a_phase_early() {
    let mut plan = one(constant(1_000.0, 16), gets(), for_ms(20_000));
    plan.phases[0].stop = Some(StopRule {
        min_window_ns: 0,
        figure: StopFigure::Throughput,
        half_width: 0.02,
        quantile: 0.9,
    });
    let hook = |interval: &Interval| (interval.index == 2).then_some(PhaseEnd::Converged);
    let options = RunOptions {
        converged: Some(std::cell::RefCell::new(Box::new(hook))),
        ..options(1)
    };
    let (end, kept) = go(Scripted::new(|_| at_once()), &plan, &options);
    let summary = end.unwrap().phases[0];
    assert_eq!(summary.end, PhaseEnd::Converged);
    assert!(kept.intervals.len() < 100);
}

#[test]
fn a_panicking_driver_ends_the_run_with_its_message() {
    let plan = one(closed(4), gets(), for_ops(100));
    let script = |call: &Call| match call.seq {
        17 => panic!("defect in the driver"),
        _ => at_once(),
    };
    let (end, _) = go(Scripted::new(script), &plan, &options(2));
    let text = end.unwrap_err().to_string();
    assert!(text.contains("defect in the driver"), "{text}");
}

#[test]
fn failures_are_reported_in_full_up_to_the_budget_and_counted_beyond() {
    let plan = one(closed(4), gets(), for_ops(2_000));
    let script = |call: &Call| match call.seq % 4 {
        0 => fail(ErrorKind::Server),
        1 => fail(ErrorKind::NotFound),
        _ => at_once(),
    };
    let limited = || RunOptions {
        failures_per_kind: 7,
        ..options(2)
    };
    let (end, kept) = go(Scripted::new(script), &plan, &limited());
    assert_eq!(end.unwrap().phases[0].totals.failed, 1_000);
    assert_eq!(kept.failures(), 14);
    // Absent objects that are expected are counted but not reported as failures.
    let mut plan = plan;
    plan.not_found_is_failure = false;
    let (_, kept) = go(Scripted::new(script), &plan, &limited());
    assert_eq!(kept.failures(), 7);
    assert_eq!(
        kept.total(0).cells[0].failed[ErrorKind::NotFound as usize],
        500
    );
}

#[test]
fn invalid_options_and_plans_are_refused_with_a_reason() {
    let good = || one(closed(1), gets(), for_ops(1));
    let refuse = |plan: &Plan, options: &RunOptions, word: &str| {
        let (end, _) = go(Scripted::new(|_| at_once()), plan, options);
        let text = end.unwrap_err().to_string();
        assert!(text.contains(word), "{text} lacks {word}");
    };
    refuse(
        &good(),
        &RunOptions {
            threads: Some(0),
            ..options(1)
        },
        "load threads",
    );
    refuse(
        &good(),
        &RunOptions {
            bucket: String::new(),
            ..options(1)
        },
        "bucket",
    );
    let mut plan = good();
    plan.phases[0].limits = Limits::default();
    refuse(&plan, &options(1), "never end");
    plan = good();
    plan.phases[0].works[0].mix[0].class = OpClass::DeleteBucket;
    refuse(&plan, &options(1), "delete-bucket");
    plan = good();
    plan.phases[0].works[0].mix[0].class = OpClass::MultipartCopy;
    let text = "scripted driver cannot perform multipart-copy";
    refuse(&plan, &options(1), text);
    plan = good();
    plan.verify = true;
    refuse(&plan, &options(1), "verification");
    plan = one(constant(0.0, 1), gets(), for_ops(1));
    refuse(&plan, &options(1), "rate");
    let elsewhere = RunOptions {
        bucket: "absent".into(),
        ..options(1)
    };
    refuse(&good(), &elsewhere, "`absent` does not exist");
}
