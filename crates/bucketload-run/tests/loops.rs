//! Closed and open loops against the scripted driver: what is offered, done and recorded.

mod common;

use std::sync::Arc;

use bucketload_core::plan::Plan;
use bucketload_core::sink::PhaseEnd;
use bucketload_run::{RunEnd, RunOptions, StopHandle, run};
use common::*;

fn go(driver: Scripted, plan: &Plan, options: &RunOptions) -> (RunEnd, Kept, Arc<Scripted>) {
    let driver = Arc::new(driver);
    let mut kept = Kept::default();
    let end = run(
        Arc::clone(&driver),
        plan,
        options,
        &mut kept,
        &StopHandle::new(),
    )
    .unwrap();
    (end, kept, driver)
}

#[test]
fn a_closed_loop_limited_by_operations_does_exactly_those() {
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
fn an_open_loop_offers_its_schedule_whatever_happens() {
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
