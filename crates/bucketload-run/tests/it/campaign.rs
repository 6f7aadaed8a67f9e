//! Several measurements on one data set: phases selected by index, fresh names per generation, and deletions in
//! between.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::common::*;
use bucketload_core::error::ErrorKind;
use bucketload_core::op::OpClass;
use bucketload_core::plan::{KeyLaw, Limits, PhaseKind, Plan};
use bucketload_run::{
    CleanupReport, Discard, MARKER, RunEnd, RunError, RunOptions, StopHandle, discard, run,
};

/// A plan: init, prepare 1000 objects of set 0, write 100 fresh ones into set 1, clean up.
fn whole() -> Plan {
    let puts = |keys, set| vec![entry(OpClass::Put, 1.0, set, keys)];
    plan(vec![
        phase(PhaseKind::Init, vec![], Limits::default()),
        phase(
            PhaseKind::Prepare,
            vec![work(closed(8), puts(KeyLaw::Sequential, 0))],
            for_ops(1_000),
        ),
        phase(
            PhaseKind::Run,
            vec![work(closed(4), puts(KeyLaw::Fresh, 1))],
            for_ops(100),
        ),
        phase(PhaseKind::Cleanup, vec![], Limits::default()),
    ])
}

fn part(driver: &Arc<Scripted>, phases: &[usize], generation: u32) -> Result<RunEnd, RunError> {
    let options = RunOptions {
        phases: Some(phases.to_vec()),
        generation,
        ..options(1)
    };
    let stop = StopHandle::new();
    run(
        &Arc::clone(driver).into(),
        &whole(),
        &options,
        &mut Kept::default(),
        &stop,
    )
}

fn drop_of(driver: &Arc<Scripted>, what: Discard) -> Result<CleanupReport, RunError> {
    discard(
        &Arc::clone(driver).into(),
        &whole(),
        &options(1),
        what,
        &StopHandle::new(),
    )
}

#[test]
fn measurements_on_one_data_set_write_different_keys_and_are_cleaned_up_together() {
    let driver = Arc::new(Scripted::new(|_| at_once()).logged());
    let ended = |end: RunEnd| end.phases.iter().map(|p| p.phase).collect::<Vec<_>>();
    assert_eq!(ended(part(&driver, &[0, 1], 0).unwrap()), [0, 1]);
    assert_eq!(driver.keys("b").len(), 1_001);
    for generation in 0..3 {
        let end = part(&driver, &[2], generation).unwrap();
        assert_eq!(end.cleanup, None);
        assert_eq!(ended(end), [2]);
    }
    // 300 fresh objects with distinct names, and the same sizes in the same order each time.
    assert_eq!(driver.keys("b").len(), 1_301);
    let state = driver.0.state.lock().unwrap();
    let measured: Vec<_> = state.log[1_000..].to_vec();
    drop(state);
    let sizes = |n: usize| {
        let mut ops: Vec<_> = measured[n * 100..][..100]
            .iter()
            .map(|l| (l.0, l.3))
            .collect();
        ops.sort_unstable();
        ops
    };
    assert_eq!(sizes(0), sizes(1));
    assert_eq!(sizes(0), sizes(2));
    let keys: BTreeSet<_> = measured.iter().map(|l| &l.2).collect();
    assert_eq!(keys.len(), 300);
    let end = part(&driver, &[3], 0).unwrap();
    assert_eq!(end.cleanup.unwrap().objects, 1_300);
    assert!(driver.keys("b").is_empty());
}

#[test]
fn discarding_keeps_prepared_objects_the_marker_and_foreign_objects() {
    let driver = Arc::new(Scripted::new(|_| at_once()));
    part(&driver, &[0, 1, 2], 0).unwrap();
    driver.put("b", "t/notes.txt");
    driver.0.state.lock().unwrap().uploads.extend([
        ("b".to_owned(), "t/w/0000000000007".to_owned()),
        ("b".to_owned(), "other".to_owned()),
    ]);
    let report = drop_of(&driver, Discard::Written).unwrap();
    assert_eq!(
        (
            report.objects,
            report.uploads,
            report.foreign,
            report.complete
        ),
        (100, 1, 1, true)
    );
    assert_eq!(driver.keys("b").len(), 1_002);
    // The next measurement finds the same data set as the first.
    part(&driver, &[2], 1).unwrap();
    assert_eq!(driver.keys("b").len(), 1_102);
    let report = drop_of(&driver, Discard::Everything).unwrap();
    assert_eq!((report.objects, report.bucket_deleted), (1_100, false));
    assert_eq!(
        driver.keys("b"),
        [format!("t/{MARKER}"), "t/notes.txt".into()]
    );
}

#[test]
fn nothing_is_discarded_under_another_runs_prefix() {
    let driver = Arc::new(Scripted::new(|_| at_once()));
    part(&driver, &[0, 1], 0).unwrap();
    let other = RunOptions {
        run_id: "run-2".into(),
        ..options(1)
    };
    let stop = StopHandle::new();
    let refused = discard(
        &Arc::clone(&driver).into(),
        &whole(),
        &other,
        Discard::Everything,
        &stop,
    )
    .unwrap_err();
    assert!(
        refused.to_string().contains("belongs to run run-1"),
        "{refused}"
    );
    assert_eq!(driver.keys("b").len(), 1_001);
    // Nor under a prefix without a marker.
    let nowhere = RunOptions {
        prefix: "u/".into(),
        ..options(1)
    };
    assert!(
        discard(
            &Arc::clone(&driver).into(),
            &whole(),
            &nowhere,
            Discard::Everything,
            &stop
        )
        .is_err()
    );
}

#[test]
fn an_aborted_campaign_discards_nothing() {
    let driver = Arc::new(Scripted::new(|_| at_once()));
    part(&driver, &[0, 1], 0).unwrap();
    let stop = StopHandle::new();
    stop.stop();
    stop.stop();
    let report = discard(
        &Arc::clone(&driver).into(),
        &whole(),
        &options(1),
        Discard::Everything,
        &stop,
    )
    .unwrap();
    assert!(!report.complete && report.objects == 0);
    assert_eq!(driver.keys("b").len(), 1_001);
}

#[test]
fn a_measurement_without_init_needs_an_existing_bucket() {
    let driver = Arc::new(Scripted::new(|_| fail(ErrorKind::NotFound)));
    driver.0.state.lock().unwrap().buckets.clear();
    assert!(matches!(
        part(&driver, &[2], 0),
        Err(RunError::NoBucket { .. })
    ));
}
