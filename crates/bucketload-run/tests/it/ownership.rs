//! What a run creates, marks and deletes, and what it never touches.

use std::sync::Arc;

use crate::common::*;
use bucketload_core::op::OpClass;
use bucketload_core::plan::{BucketService, BucketsPlan, KeyLaw, Limits, PhaseKind, Plan};
use bucketload_core::sink::{Event, PhaseEnd};
use bucketload_run::{
    CleanupReport, MARKER, Marker, RunEnd, RunError, RunOptions, StopHandle, run, run_calibrated,
};

/// A plan: init, prepare 1000 objects, write 200 more, clean up.
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
            for_ops(200),
        ),
        phase(PhaseKind::Cleanup, vec![], Limits::default()),
    ])
}

fn go(
    driver: &Arc<Scripted>,
    plan: &Plan,
    options: &RunOptions,
) -> (Result<RunEnd, RunError>, Kept) {
    let mut kept = Kept::default();
    let end = run(
        &Arc::clone(driver).into(),
        plan,
        options,
        &mut kept,
        &StopHandle::new(),
    );
    (end, kept)
}

#[test]
fn the_client_is_calibrated_once_the_target_has_answered() {
    let calibrated = |create: bool| {
        let driver = Arc::new(Scripted::new(|_| at_once()));
        let mut kept = Kept::default();
        let mut calls = 0;
        let options = RunOptions {
            bucket: "new".to_owned(),
            create_bucket: create,
            ..options(2)
        };
        let end = run_calibrated(
            &Arc::clone(&driver).into(),
            &whole(),
            &options,
            &mut kept,
            &StopHandle::new(),
            &mut |sink| {
                calls += 1;
                let message = format!("calibrating after {} operations", driver.calls());
                sink.event(&Event::Warning { message });
                Ok(())
            },
        );
        (end, kept, calls)
    };
    let (end, _, calls) = calibrated(false);
    assert!(matches!(end, Err(RunError::NoBucket { .. })), "{end:?}");
    assert_eq!(calls, 0, "a refusal comes first");
    let (end, kept, calls) = calibrated(true);
    end.unwrap();
    assert_eq!(calls, 1);
    assert_eq!(kept.warnings(), ["calibrating after 0 operations"]);
    let of = |wanted: fn(&Event) -> bool| kept.events.iter().position(wanted).unwrap();
    let init = of(|event| matches!(event, Event::PhaseEnded { phase: 0, .. }));
    let warned = of(|event| matches!(event, Event::Warning { .. }));
    let prepare = of(|event| matches!(event, Event::PhaseStarted { phase: 1, .. }));
    assert!(
        init < warned && warned < prepare,
        "{init} {warned} {prepare}"
    );
}

#[test]
fn a_run_that_cannot_be_calibrated_cleans_up() {
    let driver = Arc::new(Scripted::new(|_| at_once()));
    let end = run_calibrated(
        &Arc::clone(&driver).into(),
        &whole(),
        &options(2),
        &mut Kept::default(),
        &StopHandle::new(),
        &mut |_| Err(RunError::Options("no calibration".to_owned())),
    );
    assert!(matches!(end, Err(RunError::Options(_))), "{end:?}");
    assert_eq!(driver.calls(), 0);
    assert!(driver.keys("b").is_empty());
}

#[test]
fn a_whole_run_leaves_only_foreign_objects() {
    let driver = Arc::new(Scripted::new(|_| at_once()));
    let foreign = ["a", "t", "t.txt", "tt/r/0000000000001", "u/x"];
    foreign.iter().for_each(|key| driver.put("b", key));
    driver.0.state.lock().unwrap().uploads.extend([
        ("b".to_owned(), "t/w/0000000000007".to_owned()),
        ("b".to_owned(), "other".to_owned()),
    ]);
    let (end, kept) = go(&driver, &whole(), &options(2));
    let end = end.unwrap();
    assert_eq!(driver.keys("b"), foreign);
    let expected = CleanupReport {
        objects: 1_200,
        uploads: 1,
        complete: true,
        ..CleanupReport::default()
    };
    assert_eq!(end.cleanup, Some(expected));
    assert!(!end.created_bucket);
    let ended: Vec<PhaseEnd> = end.phases.iter().map(|p| p.end).collect();
    assert_eq!(ended, [PhaseEnd::Complete; 4]);
    let started = |e: &&Event| matches!(e, Event::PhaseStarted { .. });
    assert_eq!(kept.events.iter().filter(started).count(), 4);
    assert_eq!(driver.0.state.lock().unwrap().uploads.len(), 1);
}

#[test]
fn old_versions_of_the_runs_own_objects_go_too() {
    let versions = |driver: &Arc<Scripted>| driver.0.state.lock().unwrap().versions.clone();
    let of = |key: &str, id: &str| (key.to_owned(), id.to_owned());
    let driver = Arc::new(Scripted::new(|_| at_once()));
    let own = "t/r/0000000000001";
    let marker = format!("t/{}", MARKER);
    let foreign = [of("t/r/notes.txt", "1"), of("tt/r/0000000000001", "2")];
    driver.0.state.lock().unwrap().versions.extend(
        [of(own, "1"), of(own, "2"), of(own, "3"), of(&marker, "4")]
            .into_iter()
            .chain(foreign.clone()),
    );
    let end = go(&driver, &whole(), &options(1)).0.unwrap();
    let report = end.cleanup.unwrap();
    assert_eq!((report.versions, report.complete), (4, true));
    assert!(versions(&driver).into_iter().eq(foreign));

    let driver = Arc::new(Scripted::new(|_| at_once()));
    let locked = of(own, "locked");
    driver.0.state.lock().unwrap().versions.insert(locked);
    let end = go(&driver, &whole(), &options(1)).0.unwrap();
    let report = end.cleanup.unwrap();
    assert!(!report.complete && versions(&driver).len() == 1);
    let left = report.left.unwrap();
    assert!(
        left.contains("old versions") && left.contains("scripted: locked"),
        "{left}"
    );
}

#[test]
fn objects_that_appear_under_the_prefix_during_the_run_survive() {
    let driver = Scripted::new(|_| at_once());
    let state = Arc::downgrade(&driver.0);
    let driver = Arc::new(driver);
    let mut kept = Kept::default();
    // The sink is called between phases, so it stands for somebody who writes there after the preflight.
    struct Intruder<'a>(&'a mut Kept, std::sync::Weak<Inner>);
    impl bucketload_core::sink::RunSink for Intruder<'_> {
        fn event(&mut self, event: &Event) {
            if matches!(event, Event::PhaseStarted { phase: 1, .. }) {
                let inner = self.1.upgrade().unwrap();
                let mut state = inner.state.lock().unwrap();
                let bucket = state.buckets.get_mut("b").unwrap();
                bucket.insert("t/r/notes.txt".into(), vec![1]);
            }
            self.0.event(event);
        }
        fn interval(&mut self, interval: &bucketload_core::tally::Interval) {
            self.0.interval(interval);
        }
    }
    let mut sink = Intruder(&mut kept, state);
    let stop = StopHandle::new();
    let end = run(
        &Arc::clone(&driver).into(),
        &whole(),
        &options(1),
        &mut sink,
        &stop,
    )
    .unwrap();
    assert_eq!(driver.keys("b"), ["t/r/notes.txt"]);
    let report = end.cleanup.unwrap();
    assert_eq!((report.objects, report.foreign), (1_200, 1));
    assert!(kept.warnings()[0].contains("left alone"));
}

#[test]
fn a_prefix_with_foreign_objects_is_refused_and_never_cleaned() {
    let driver = Arc::new(Scripted::new(|_| at_once()));
    driver.put("b", "t/r/0000000000003");
    driver.put("b", "t/notes");
    let (refused, _) = go(&driver, &whole(), &options(1));
    let text = refused.unwrap_err().to_string();
    assert!(
        text.contains("`b/t/`") && text.contains("t/notes"),
        "{text}"
    );
    assert_eq!(driver.keys("b").len(), 2);
    let allowed = RunOptions {
        allow_foreign: true,
        ..options(1)
    };
    let (end, kept) = go(&driver, &whole(), &allowed);
    let report = end.unwrap().cleanup.unwrap();
    assert_eq!((report.objects, report.complete), (0, false));
    assert!(kept.warnings()[0].contains("held other objects before"));
    assert_eq!(driver.keys("b").len(), 1_201, "all of them, and no marker");
}

#[test]
fn another_runs_objects_are_neither_used_nor_deleted() {
    let driver = Arc::new(Scripted::new(|_| at_once()));
    let mut keep = whole();
    keep.phases.pop();
    go(&driver, &keep, &options(1)).0.unwrap();
    assert!(driver.keys("b").contains(&format!("t/{MARKER}")));
    let other = RunOptions {
        run_id: "run-2".into(),
        ..options(1)
    };
    let (refused, _) = go(&driver, &whole(), &other);
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("the objects of run run-1")
    );
    let only_cleanup = plan(vec![phase(PhaseKind::Cleanup, vec![], Limits::default())]);
    let (end, kept) = go(&driver, &only_cleanup, &other);
    assert_eq!(end.unwrap().cleanup.unwrap().objects, 0);
    assert!(kept.warnings()[0].contains("belongs to run run-1"));
    // The run itself may continue there and clean up later.
    let (end, _) = go(&driver, &only_cleanup, &options(1));
    assert_eq!(end.unwrap().cleanup.unwrap().objects, 1_200);
    assert!(driver.keys("b").is_empty());
}

#[test]
fn a_bucket_is_created_only_if_allowed_and_deleted_only_by_its_creator() {
    let driver = Arc::new(Scripted::new(|_| at_once()));
    let new = |create_bucket| RunOptions {
        bucket: "new".into(),
        prefix: String::new(),
        create_bucket,
        ..options(1)
    };
    let (refused, _) = go(&driver, &whole(), &new(false));
    assert!(matches!(refused, Err(RunError::NoBucket { .. })));
    let (end, _) = go(&driver, &whole(), &new(true));
    let end = end.unwrap();
    assert!(end.created_bucket && end.cleanup.unwrap().bucket_deleted);
    assert!(!driver.0.state.lock().unwrap().buckets.contains_key("new"));
    // An empty bucket that existed before stays.
    let (end, _) = go(
        &driver,
        &whole(),
        &RunOptions {
            prefix: String::new(),
            ..options(1)
        },
    );
    assert!(!end.unwrap().cleanup.unwrap().bucket_deleted);
    assert!(driver.keys("b").is_empty());
}

#[test]
fn a_bucket_that_was_just_created_but_cannot_be_used_is_deleted() {
    let into = |driver: &Arc<Scripted>, bucket: &str| {
        let options = RunOptions {
            bucket: bucket.into(),
            create_bucket: true,
            ..options(1)
        };
        go(driver, &whole(), &options).0
    };
    // The marker reads differently from what was written.
    let driver = Arc::new(Scripted::new(|_| at_once()).garbles());
    let refused = into(&driver, "new");
    assert!(
        matches!(&refused, Err(RunError::Bucket { .. })),
        "{refused:?}"
    );
    assert_eq!(
        buckets(&driver),
        ["b"],
        "the bucket that was created is gone"
    );
    // A bucket that existed before stays, with its contents.
    driver.put("b", "theirs");
    let refused = into(&driver, "b");
    assert!(
        matches!(&refused, Err(RunError::Bucket { .. })),
        "{refused:?}"
    );
    assert!(driver.keys("b").contains(&"theirs".to_owned()));
}

#[test]
fn the_marker_names_the_run() {
    let driver = Arc::new(Scripted::new(|_| at_once()));
    let init = plan(vec![phase(PhaseKind::Init, vec![], Limits::default())]);
    go(&driver, &init, &options(1)).0.unwrap();
    let state = driver.0.state.lock().unwrap();
    let marker: Marker =
        serde_json::from_slice(&state.buckets["b"]["t/.bucketload-run.json"]).unwrap();
    let expected = Marker {
        locks: false,
        run_id: "run-1".into(),
        workload: "test".into(),
        created_bucket: false,
        buckets: Vec::new(),
    };
    assert_eq!(marker, expected);
}

#[test]
fn an_incomplete_preparation_ends_the_run_and_is_cleaned_up() {
    let full = |call: &Call| match call.seq % 10 {
        3 => fail(bucketload_core::error::ErrorKind::Full),
        _ => at_once(),
    };
    let driver = Arc::new(Scripted::new(full));
    let (refused, kept) = go(&driver, &whole(), &options(1));
    let error = refused.unwrap_err();
    assert!(matches!(error, RunError::Prepare { .. }), "{error}");
    assert!(driver.keys("b").is_empty(), "cleaned up");
    assert_eq!(kept.failures(), 20, "the first of the kind, in full");
    assert!(
        !kept
            .events
            .iter()
            .any(|e| matches!(e, Event::PhaseStarted { phase: 2, .. }))
    );
}

// ---- buckets that the workload makes itself ----

/// A plan: make `count` buckets, write an object into each, delete objects and buckets, clean up.
fn with_buckets(count: u64, exact: bool, erase: bool) -> Plan {
    let of = |class, keys| vec![entry(class, 1.0, 0, keys)];
    let run = |class| {
        let works = vec![work(closed(1), of(class, KeyLaw::Sequential))];
        phase(PhaseKind::Run, works, for_ops(count))
    };
    let mut phases = vec![
        phase(PhaseKind::Init, vec![], Limits::default()),
        run(OpClass::MakeBucket),
        run(OpClass::Put),
    ];
    if erase {
        phases.extend([run(OpClass::Delete), run(OpClass::DeleteBucket)]);
    }
    phases.push(phase(PhaseKind::Cleanup, vec![], Limits::default()));
    let mut plan = plan(phases);
    plan.keysets[0].count = count;
    plan.keysets[0].buckets = Some(BucketsPlan {
        count,
        name: "made".into(),
        exact,
        service: BucketService::Any,
        per_rank: 0,
    });
    plan
}

fn buckets(driver: &Scripted) -> Vec<String> {
    let state = driver.0.state.lock().unwrap();
    state.buckets.keys().cloned().collect()
}

#[test]
fn buckets_are_made_used_and_deleted_by_measured_operations() {
    let driver = Arc::new(Scripted::new(|_| at_once()).logged());
    let (end, kept) = go(&driver, &with_buckets(3, false, true), &options(2));
    let end = end.unwrap();
    let report = end.cleanup.unwrap();
    assert_eq!(
        (report.buckets, report.objects, report.complete),
        (0, 0, true)
    );
    assert_eq!(buckets(&driver), ["b"], "the run's works left nothing");
    for (phase, class) in [
        (1, OpClass::MakeBucket),
        (2, OpClass::Put),
        (3, OpClass::Delete),
        (4, OpClass::DeleteBucket),
    ] {
        let total = kept.total(phase);
        assert_eq!((total.ok(), total.failures()), (3, 0), "{class}");
        assert!(total.cells.iter().all(|cell| cell.class == class));
    }
    let made: Vec<_> = driver
        .log()
        .into_iter()
        .filter(|c| c.1 == OpClass::MakeBucket)
        .collect();
    let put = driver
        .log()
        .into_iter()
        .find(|c| c.1 == OpClass::Put)
        .unwrap();
    assert_eq!(put.2, "t-r-0000000000000", "no directories in the key");
    let names: Vec<&str> = made.iter().map(|call| call.2.as_str()).collect();
    assert_eq!(names, ["made-run-1-0", "made-run-1-1", "made-run-1-2"]);
}

#[test]
fn buckets_that_a_run_leaves_are_emptied_and_deleted() {
    // The second bucket also holds an object that does not belong to the run.
    let driver = Scripted::new(|_| at_once());
    let state = Arc::downgrade(&driver.0);
    let driver = Arc::new(driver);
    struct Intruder(std::sync::Weak<Inner>);
    impl bucketload_core::sink::RunSink for Intruder {
        fn event(&mut self, event: &Event) {
            if matches!(event, Event::PhaseEnded { phase: 2, .. }) {
                let inner = self.0.upgrade().unwrap();
                let mut state = inner.state.lock().unwrap();
                let bucket = state.buckets.get_mut("made-run-1-1").unwrap();
                bucket.insert("notes".into(), vec![1]);
            }
        }
        fn interval(&mut self, _: &bucketload_core::tally::Interval) {}
    }
    let plan = with_buckets(3, false, false);
    let stop = StopHandle::new();
    let end = run(
        &Arc::clone(&driver).into(),
        &plan,
        &options(1),
        &mut Intruder(state),
        &stop,
    )
    .unwrap();
    let report = end.cleanup.unwrap();
    assert_eq!((report.buckets, report.objects), (2, 3));
    assert_eq!(buckets(&driver), ["b", "made-run-1-1"]);
    assert_eq!(driver.keys("made-run-1-1"), ["notes"]);
    assert!(
        report.warnings[0].contains("made-run-1-1"),
        "{:?}",
        report.warnings
    );
}

#[test]
fn a_bucket_of_somebody_else_is_neither_used_nor_deleted() {
    // If the bucket existed before, the run does not begin.
    let driver = Arc::new(Scripted::new(|_| at_once()));
    driver.put("made", "t/r/0000000000000");
    let (refused, _) = go(&driver, &with_buckets(1, true, true), &options(1));
    let error = refused.unwrap_err();
    assert!(
        matches!(&error, RunError::BucketExists { bucket } if bucket == "made"),
        "{error}"
    );
    assert_eq!(driver.keys("made").len(), 1);
    assert!(driver.keys("b").is_empty(), "no mark was left");

    // If somebody else makes a bucket of that name meanwhile, nothing is sent to it and it stays, empty or not.
    let driver = Scripted::new(|_| at_once());
    let state = Arc::downgrade(&driver.0);
    let driver = Arc::new(driver);
    struct Intruder<'a>(&'a mut Kept, std::sync::Weak<Inner>);
    impl bucketload_core::sink::RunSink for Intruder<'_> {
        fn event(&mut self, event: &Event) {
            if matches!(event, Event::PhaseEnded { phase: 0, .. }) {
                let inner = self.1.upgrade().unwrap();
                let mut state = inner.state.lock().unwrap();
                state.buckets.entry("made".into()).or_default();
            }
            self.0.event(event);
        }
        fn interval(&mut self, interval: &bucketload_core::tally::Interval) {
            self.0.interval(interval);
        }
    }
    let mut kept = Kept::default();
    let mut sink = Intruder(&mut kept, state);
    let plan = with_buckets(1, true, true);
    let end = run(
        &Arc::clone(&driver).into(),
        &plan,
        &options(1),
        &mut sink,
        &StopHandle::new(),
    )
    .unwrap();
    assert_eq!(buckets(&driver), ["b", "made"]);
    for phase in 1..5 {
        assert_eq!(kept.total(phase).ok(), 0, "phase {phase}");
        assert_eq!(kept.total(phase).failures(), 1, "phase {phase}");
    }
    assert_eq!(driver.calls(), 1, "only the make-bucket request was sent");
    let report = end.cleanup.unwrap();
    assert_eq!(report.buckets, 0);
    assert!(
        report.warnings[0].contains("nothing proves"),
        "{:?}",
        report.warnings
    );
}

#[test]
fn the_marker_names_the_buckets_before_they_are_made() {
    let driver = Arc::new(Scripted::new(|_| at_once()));
    let mut plan = with_buckets(2, false, false);
    // As after a crash: the buckets were made and not cleaned up.
    plan.phases.pop();
    go(&driver, &plan, &options(1)).0.unwrap();
    let marker: Marker = {
        let state = driver.0.state.lock().unwrap();
        serde_json::from_slice(&state.buckets["b"]["t/.bucketload-run.json"]).unwrap()
    };
    let names: Vec<(String, bool)> = marker.bucket_names().collect();
    let expected = ["made-run-1-0", "made-run-1-1"].map(|name| (name.to_owned(), true));
    assert_eq!(names, expected);
    // Another process with the same plan finds and deletes them.
    let mut cleanup = plan.clone();
    cleanup.phases = vec![phase(PhaseKind::Cleanup, vec![], Limits::default())];
    let (end, _) = go(&driver, &cleanup, &options(1));
    assert_eq!(end.unwrap().cleanup.unwrap().buckets, 2);
    assert_eq!(buckets(&driver), ["b"]);
}

#[test]
fn names_that_a_service_rejects_are_refused_before_anything_is_sent() {
    let driver = Arc::new(Scripted::new(|_| at_once()));
    let mut plan = with_buckets(1, true, true);
    let mut refuse = |name: &str, service, words: &str| {
        let buckets = plan.keysets[0].buckets.as_mut().unwrap();
        (buckets.name, buckets.service) = (name.to_owned(), service);
        let text = go(&driver, &plan, &options(1)).0.unwrap_err().to_string();
        assert!(text.contains(words), "{text}");
    };
    refuse("Made", BucketService::Minio, "upper-case");
    refuse("made", BucketService::S3ninja, "lower-case");
    refuse("b", BucketService::Swift, "bucket of the target");
    assert!(driver.keys("b").is_empty() && driver.calls() == 0);
}
