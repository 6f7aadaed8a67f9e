//! Clean-ups that do not finish: the results are kept and the user is told what is left.

use std::sync::Arc;

use crate::common::*;
use bucketload_core::driver::{
    Admin, Capabilities, Completion, Driver, DriverFacts, KeyPage, Session, WorkerId,
};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::{OpClass, Request};
use bucketload_core::plan::{KeyLaw, Limits, PhaseKind, Plan};
use bucketload_core::record::Probe;
use bucketload_core::sink::PhaseEnd;
use bucketload_run::{Leftovers, MARKER, RunEnd, RunError, RunOptions, StopHandle, StopLevel, run};

/// What fails in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Nothing,
    /// Listing after the first page.
    SecondPage,
    Delete,
    /// Reading small objects, except once, when the run writes its marker.
    ReadMarker,
    ListUploads,
    DeleteBucket,
    /// Nothing, but the user aborts the run when the first keys are about to be deleted.
    Abort,
}

/// The scripted driver as a native S3 driver whose control plane fails.
struct Failing {
    inner: Scripted,
    fault: Fault,
    stop: StopHandle,
}

struct FailingSession {
    inner: ScriptedSession,
    fault: Fault,
    stop: StopHandle,
    clean_up: bool,
}

impl Driver for Failing {
    type Session = FailingSession;

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn facts(&self) -> DriverFacts {
        DriverFacts {
            driver: "s3".into(),
            engine: "native".into(),
            ..DriverFacts::default()
        }
    }

    async fn open(&self, worker: WorkerId, probe: &mut Probe) -> Result<FailingSession, OpError> {
        Ok(FailingSession {
            inner: self.inner.open(worker, probe).await?,
            fault: self.fault,
            stop: self.stop.clone(),
            // Before the load no operation has been executed.
            clean_up: self.inner.calls() > 0,
        })
    }
}

impl FailingSession {
    fn fails(&self, fault: Fault, kind: ErrorKind) -> Result<(), OpError> {
        match self.fault == fault && self.clean_up {
            true => Err(OpError::with_status(
                kind,
                404,
                format!("scripted: {fault:?}"),
            )),
            false => Ok(()),
        }
    }
}

impl Session for FailingSession {
    async fn execute(&mut self, r: &Request<'_>, p: &mut Probe) -> Result<Completion, OpError> {
        self.inner.execute(r, p).await
    }
}

impl Admin for FailingSession {
    async fn ensure_bucket(&mut self, b: &str) -> Result<bool, OpError> {
        self.inner.ensure_bucket(b).await
    }
    async fn head_bucket(&mut self, b: &str) -> Result<(), OpError> {
        self.inner.head_bucket(b).await
    }
    async fn delete_bucket(&mut self, b: &str) -> Result<(), OpError> {
        self.fails(Fault::DeleteBucket, ErrorKind::Rejected)?;
        self.inner.delete_bucket(b).await
    }
    async fn list_keys(&mut self, b: &str, p: &str, a: Option<&str>) -> Result<KeyPage, OpError> {
        if a.is_some() {
            self.fails(Fault::SecondPage, ErrorKind::Rejected)?;
        }
        let mut page = self.inner.list_keys(b, p, a).await?;
        page.note = Some("listed in another way".into());
        Ok(page)
    }
    async fn delete_keys(&mut self, b: &str, keys: &[String]) -> Result<(), OpError> {
        self.fails(Fault::Delete, ErrorKind::Rejected)?;
        if self.fault == Fault::Abort {
            (0..2).for_each(|_| self.stop.stop());
            std::future::pending::<()>().await;
        }
        self.inner.delete_keys(b, keys).await
    }
    async fn abort_uploads(&mut self, b: &str, p: &str) -> Result<u64, OpError> {
        self.fails(Fault::ListUploads, ErrorKind::NotFound)?;
        self.inner.abort_uploads(b, p).await
    }
    async fn put_small(&mut self, b: &str, k: &str, body: &[u8]) -> Result<(), OpError> {
        self.inner.put_small(b, k, body).await
    }
    async fn get_small(&mut self, b: &str, k: &str) -> Result<Vec<u8>, OpError> {
        self.fails(Fault::ReadMarker, ErrorKind::Rejected)?;
        self.inner.get_small(b, k).await
    }
}

/// A plan that writes 250 objects, three pages of a listing, in one request each or in parts, and cleans up.
fn writes(class: OpClass) -> Plan {
    let mut mix = vec![entry(class, 1.0, 0, KeyLaw::Sequential)];
    if class == OpClass::MultipartPut {
        mix[0].count = 5 << 20;
    }
    plan(vec![
        phase(PhaseKind::Init, vec![], Limits::default()),
        phase(PhaseKind::Run, vec![work(closed(2), mix)], for_ops(250)),
        phase(PhaseKind::Cleanup, vec![], Limits::default()),
    ])
}

fn telling() -> RunOptions {
    RunOptions {
        leftovers: Leftovers::RemovedBy("bucketload cleanup HERE".into()),
        ..options(1)
    }
}

struct Finished {
    end: Result<RunEnd, RunError>,
    kept: Kept,
    keys: Vec<String>,
}

fn run_with(fault: Fault, plan: &Plan, options: &RunOptions) -> Finished {
    let stop = StopHandle::new();
    let driver = Arc::new(Failing {
        inner: Scripted::new(|_| at_once()),
        fault,
        stop: stop.clone(),
    });
    let mut kept = Kept::default();
    let end = run(&Arc::clone(&driver).into(), plan, options, &mut kept, &stop);
    let keys = driver.inner.keys(&options.bucket);
    Finished { end, kept, keys }
}

#[test]
fn a_run_whose_clean_up_fails_ends_normally_and_reports_what_is_left() {
    for (fault, words) in [
        (Fault::SecondPage, "SecondPage"),
        (Fault::Delete, "Delete"),
        (Fault::ReadMarker, "ReadMarker"),
    ] {
        let options = telling();
        let ended = run_with(fault, &writes(OpClass::Put), &options);
        let end = ended.end.unwrap();
        assert_eq!(end.phases[1].totals.ok, 250, "{fault:?}");
        assert_eq!(end.phases[2].end, PhaseEnd::Aborted, "{fault:?}");
        assert!(ended.keys.contains(&format!("t/{MARKER}")), "{fault:?}");
        let report = end.cleanup.unwrap();
        assert!(!report.complete);
        let left = options.left.take().expect("something is left");
        assert_eq!(report.left.as_ref(), Some(&left));
        for word in ["`b/t/`", words, "bucketload cleanup HERE"] {
            assert!(left.contains(word), "{fault:?}: {left}");
        }
    }
}

#[test]
fn uploads_are_listed_only_if_there_may_be_some_and_a_failed_listing_is_a_warning() {
    let uploads = |warning: &&&str| warning.contains("multipart uploads");
    let plain = telling();
    let ended = run_with(Fault::ListUploads, &writes(OpClass::Put), &plain);
    assert!(ended.end.unwrap().cleanup.unwrap().complete);
    assert!(ended.keys.is_empty(), "{:?}", ended.keys);
    assert_eq!(ended.kept.warnings().iter().filter(uploads).count(), 0);
    let in_parts = telling();
    let ended = run_with(
        Fault::ListUploads,
        &writes(OpClass::MultipartPut),
        &in_parts,
    );
    assert!(ended.end.unwrap().cleanup.unwrap().complete);
    assert!(ended.keys.is_empty(), "{:?}", ended.keys);
    let warnings = ended.kept.warnings();
    let told: Vec<_> = warnings.iter().filter(uploads).collect();
    assert_eq!(told.len(), 1, "{warnings:?}");
    assert!(told[0].contains("scripted: ListUploads"), "{told:?}");
    assert_eq!((plain.left.take(), in_parts.left.take()), (None, None));
}

#[test]
fn a_note_of_the_store_about_listings_is_reported_once() {
    let ended = run_with(Fault::Nothing, &writes(OpClass::Put), &telling());
    assert!(ended.end.unwrap().cleanup.unwrap().complete);
    let notes = |warning: &&&str| **warning == "listed in another way";
    assert_eq!(ended.kept.warnings().iter().filter(notes).count(), 1);
}

#[test]
fn a_bucket_of_the_run_that_stays_is_reported() {
    let options = RunOptions {
        bucket: "new".into(),
        create_bucket: true,
        ..telling()
    };
    let ended = run_with(Fault::DeleteBucket, &writes(OpClass::Put), &options);
    assert!(!ended.end.unwrap().cleanup.unwrap().complete);
    let left = options.left.take().unwrap();
    assert!(
        left.contains("`new`") && left.contains("DeleteBucket"),
        "{left}"
    );
}

#[test]
fn a_clean_up_that_the_user_aborts_reports_what_is_left() {
    let options = telling();
    let ended = run_with(Fault::Abort, &writes(OpClass::Put), &options);
    assert_eq!(ended.end.unwrap().stopped, StopLevel::Abort);
    assert_eq!(ended.keys.len(), 251);
    let left = options.left.take().unwrap();
    assert!(
        left.contains("aborted") && left.contains("cleanup HERE"),
        "{left}"
    );
}

#[test]
fn a_failed_clean_up_does_not_hide_why_the_run_ended() {
    let full = |_: &Call| fail(ErrorKind::Full);
    let mut plan = writes(OpClass::Put);
    plan.phases[1].kind = PhaseKind::Prepare;
    let stop = StopHandle::new();
    let driver = Arc::new(Failing {
        inner: Scripted::new(full),
        fault: Fault::ReadMarker,
        stop: stop.clone(),
    });
    let options = telling();
    let end = run(&driver.into(), &plan, &options, &mut Kept::default(), &stop);
    assert!(matches!(end, Err(RunError::Prepare { .. })), "{end:?}");
    let left = options.left.take().unwrap();
    assert!(left.contains("ReadMarker"), "{left}");
}

#[test]
fn nothing_is_left_if_the_store_ends_with_the_run() {
    let options = RunOptions {
        leftovers: Leftovers::Vanish,
        ..options(1)
    };
    let ended = run_with(Fault::Delete, &writes(OpClass::Put), &options);
    assert!(!ended.end.unwrap().cleanup.unwrap().complete);
    assert_eq!(options.left.take(), None);
    let warnings = ended.kept.warnings();
    assert!(
        warnings
            .iter()
            .any(|w| w.contains("the store ends with this run")),
        "{warnings:?}"
    );
}
