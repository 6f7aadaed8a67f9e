//! Closed and open loops against the scripted driver: offered, performed and recorded operations.

use std::sync::Arc;

use crate::common::*;
use bucketload_core::error::ErrorKind;
use bucketload_core::op::OpClass;
use bucketload_core::plan::{KeyLaw, PhaseKind, Plan};
use bucketload_core::sink::PhaseEnd;
use bucketload_run::{RunEnd, RunOptions, StopHandle, run};

fn go(driver: Scripted, plan: &Plan, options: &RunOptions) -> (RunEnd, Kept, Arc<Scripted>) {
    let driver = Arc::new(driver);
    let mut kept = Kept::default();
    let end = run(
        &Arc::clone(&driver).into(),
        plan,
        options,
        &mut kept,
        &StopHandle::new(),
    )
    .unwrap();
    (end, kept, driver)
}

#[test]
fn a_closed_loop_performs_exactly_as_many_operations_as_its_limit() {
    let plan = one(closed(8), gets(), for_ops(20_000));
    let (end, kept, driver) = go(Scripted::new(|_| at_once()).logged(), &plan, &options(2));
    let summary = end.phases[0];
    assert_eq!(summary.end, PhaseEnd::Complete);
    assert_eq!(summary.totals.ok, 20_000);
    assert_eq!(summary.totals.offered, summary.totals.issued);
    assert_eq!(kept.total(0).bytes(), 20_000 * 4096);
    let seqs: Vec<u64> = driver.log().iter().map(|l| l.0).collect();
    assert_eq!(seqs, (0..20_000).collect::<Vec<_>>());
    assert_eq!(driver.sessions(), 8);
}

#[test]
fn writes_are_read_back_on_request() {
    let puts = |keys| vec![entry(OpClass::Put, 1.0, 0, keys)];
    let plan = one(closed(4), puts(KeyLaw::Sequential), for_ops(100));
    // Of ten objects, one is missing, one has other bytes and one cannot be read.
    let script = |call: &Call| match (call.class, call.seq % 10) {
        (OpClass::Get, 3) => fail(ErrorKind::NotFound),
        (OpClass::Get, 4) => fail(ErrorKind::Corrupt),
        (OpClass::Get, 5) => fail(ErrorKind::Server),
        _ => at_once(),
    };
    let (end, _, driver) = go(Scripted::new(script), &plan, &options(1));
    assert_eq!((end.phases[0].totals.ok, driver.calls()), (100, 100));
    let checking = RunOptions {
        check_writes: true,
        ..options(1)
    };
    let (end, kept, driver) = go(Scripted::new(script).verifies(), &plan, &checking);
    assert_eq!(end.phases[0].totals.ok, 70);
    assert_eq!(driver.calls(), 200);
    let total = kept.total(0);
    assert_eq!(
        total.bytes(),
        70 * 4096,
        "objects that cannot be read back do not count as throughput"
    );
    let classes: Vec<OpClass> = total.cells.iter().map(|cell| cell.class).collect();
    assert_eq!(classes, [OpClass::Put], "the reads are not measured");
    let failed = |kind| total.cells[0].failed[kind as usize];
    assert_eq!(failed(ErrorKind::Corrupt), 20);
    assert_eq!(failed(ErrorKind::Server), 10);
    let told = kept.events.iter().find_map(|event| match event {
        bucketload_core::sink::Event::Failure { error, .. } => Some(error.to_string()),
        _ => None,
    });
    assert!(told.unwrap().contains("the write was acknowledged"));
}

#[test]
fn objects_that_others_may_change_are_not_read_back() {
    let checking = RunOptions {
        check_writes: true,
        ..options(1)
    };
    let refused = |plan: &Plan| {
        let driver = Arc::new(Scripted::new(|_| at_once()).verifies());
        let mut kept = Kept::default();
        let outcome = run(
            &driver.into(),
            plan,
            &checking,
            &mut kept,
            &StopHandle::new(),
        );
        outcome.unwrap_err().to_string()
    };
    let put = || entry(OpClass::Put, 1.0, 0, KeyLaw::Uniform);
    let delete = entry(OpClass::Delete, 1.0, 0, KeyLaw::Uniform);
    let plan = one(closed(2), vec![put(), delete], for_ops(10));
    assert!(refused(&plan).contains("also performs delete"));
    let mut plan = one(closed(2), vec![put()], for_ops(10));
    plan.keysets[0].overwritten = true;
    assert!(refused(&plan).contains("--oracle"));
    let mut plan = one(closed(1), vec![put()], for_ops(10));
    plan.keysets[0].overwritten = true;
    let (end, ..) = go(Scripted::new(|_| at_once()).verifies(), &plan, &checking);
    assert_eq!(end.phases[0].totals.ok, 10, "one worker races with nobody");
}

#[test]
fn the_hook_of_the_caller_runs_before_each_measured_phase() {
    let load = |kind| {
        let works = vec![work(closed(1), gets())];
        phase(kind, works, for_ops(5))
    };
    let plan = plan(vec![load(PhaseKind::Run), load(PhaseKind::Run)]);
    let called = std::rc::Rc::new(std::cell::Cell::new(0));
    let hook = |most: u32| {
        let called = std::rc::Rc::clone(&called);
        called.set(0);
        RunOptions {
            before_measuring: Some(std::cell::RefCell::new(Box::new(move || {
                called.set(called.get() + 1);
                match called.get() > most {
                    true => Err("no further".to_owned()),
                    false => Ok(()),
                }
            }))),
            ..options(1)
        }
    };
    let (_, kept, _) = go(Scripted::new(|_| at_once()), &plan, &hook(2));
    assert_eq!((called.get(), kept.total(1).ok()), (2, 5));
    let driver = Arc::new(Scripted::new(|_| at_once()));
    let mut kept = Kept::default();
    let ended = run(
        &driver.into(),
        &plan,
        &hook(1),
        &mut kept,
        &StopHandle::new(),
    );
    assert_eq!(ended.unwrap_err().to_string(), "no further");
    assert_eq!((kept.total(0).ok(), kept.total(1).ok()), (5, 0));
}

#[test]
fn an_open_loop_offers_its_schedule_no_matter_what() {
    let plan = one(constant(2_000.0, 64), gets(), for_ms(1_000));
    let (end, kept, driver) = go(Scripted::new(|_| at_once()).logged(), &plan, &options(2));
    let summary = end.phases[0];
    assert_eq!(summary.end, PhaseEnd::TimeLimit);
    assert!(
        (1_998..=2_000).contains(&summary.totals.offered),
        "{summary:?}"
    );
    assert_eq!(summary.totals.ok, summary.totals.offered);
    assert_eq!(summary.at_ns - summary.start_ns, ms(1_000));
    assert_eq!(driver.calls(), summary.totals.issued);
    assert!(kept.intervals.len() >= 10);
    for interval in &kept.intervals[..10] {
        assert!(
            (199..=201).contains(&interval.tally.offered),
            "{}",
            interval.tally.offered
        );
    }
}
