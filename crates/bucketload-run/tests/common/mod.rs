//! A scripted in-process driver and helpers for the tests of the runner.
//!
//! The store is a map of objects. A script decides what each call of `execute` does: it sees the request and returns a
//! delay and an outcome.
#![allow(dead_code, unreachable_pub, missing_docs)]

mod plans;
pub mod undisturbed;
pub mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bucketload_core::driver::{
    Admin, Capabilities, Completion, Driver, DriverFacts, KeyPage, KeyVersion, Session,
    VersionPage, WorkerId,
};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::{OpClass, Request};
use bucketload_core::record::{ConnectTimes, Probe};
use bucketload_core::sink::{Event, RunSink};
use bucketload_core::tally::{Interval, Tally};
use bucketload_run::now_ns;
pub use plans::*;

/// A call, as the script sees it.
#[derive(Clone, Debug)]
pub struct Call {
    pub class: OpClass,
    pub seq: u64,
    pub key: String,
    pub size: u64,
    /// Number of calls of `execute` before this one, over all sessions.
    pub nth: u64,
    /// Number of the executing session, in order of opening.
    pub session: u32,
    pub now_ns: u64,
}

/// What a call does, as the script decides.
#[derive(Clone, Debug)]
pub struct Act {
    /// Instant of the answer; in the past = without waiting.
    pub until_ns: u64,
    pub error: Option<ErrorKind>,
}

pub fn at_once() -> Act {
    until(0)
}

pub fn until(until_ns: u64) -> Act {
    Act {
        until_ns,
        error: None,
    }
}

pub fn never() -> Act {
    until(u64::MAX)
}

pub fn fail(kind: ErrorKind) -> Act {
    Act {
        until_ns: 0,
        error: Some(kind),
    }
}

type Script = Box<dyn Fn(&Call) -> Act + Send + Sync>;

#[derive(Default)]
pub struct State {
    pub buckets: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
    pub uploads: BTreeSet<(String, String)>,
    /// Keys and ids of old versions and delete markers in any bucket.
    pub versions: BTreeSet<(String, String)>,
    /// Calls of `execute`: sequence number, class, key, size.
    pub log: Vec<(u64, OpClass, String, u64)>,
}

/// State that the driver shares with its sessions.
pub struct Inner {
    script: Script,
    pub state: Mutex<State>,
    pub log: bool,
    /// Whether operations on absent objects fail.
    pub strict: bool,
    calls: AtomicU64,
    opened: AtomicU32,
    /// Sessions beyond this number cannot be opened.
    pub openable: u32,
    /// Time to open a session.
    pub open_delay: Duration,
    /// Whether small objects of the control plane read back differently from what was written.
    pub garbles: bool,
    /// Whether the driver claims to verify reads.
    pub verifies: bool,
    /// Executions under way: now, and the most so far.
    running: AtomicU64,
    peak: AtomicU64,
}

/// The driver.
pub struct Scripted(pub Arc<Inner>);

impl Scripted {
    pub fn new(script: impl Fn(&Call) -> Act + Send + Sync + 'static) -> Self {
        let mut state = State::default();
        state.buckets.insert("b".into(), BTreeMap::new());
        Self(Arc::new(Inner {
            script: Box::new(script),
            state: Mutex::new(state),
            log: false,
            strict: false,
            calls: AtomicU64::new(0),
            opened: AtomicU32::new(0),
            openable: u32::MAX,
            open_delay: Duration::ZERO,
            garbles: false,
            verifies: false,
            running: AtomicU64::new(0),
            peak: AtomicU64::new(0),
        }))
    }

    fn with(mut self, change: impl FnOnce(&mut Inner)) -> Self {
        change(Arc::get_mut(&mut self.0).unwrap());
        self
    }

    pub fn logged(self) -> Self {
        self.with(|inner| inner.log = true)
    }

    pub fn strict(self) -> Self {
        self.with(|inner| inner.strict = true)
    }

    pub fn openable(self, sessions: u32) -> Self {
        self.with(|inner| inner.openable = sessions)
    }

    pub fn open_delay(self, delay: Duration) -> Self {
        self.with(|inner| inner.open_delay = delay)
    }

    pub fn verifies(self) -> Self {
        self.with(|inner| inner.verifies = true)
    }

    pub fn garbles(self) -> Self {
        self.with(|inner| inner.garbles = true)
    }

    pub fn sessions(&self) -> u32 {
        self.0.opened.load(Ordering::Relaxed)
    }

    /// Most executions under way at the same time so far.
    pub fn peak(&self) -> u64 {
        self.0.peak.load(Ordering::Relaxed)
    }

    pub fn calls(&self) -> u64 {
        self.0.calls.load(Ordering::Relaxed)
    }

    pub fn keys(&self, bucket: &str) -> Vec<String> {
        let state = self.0.state.lock().unwrap();
        let bucket = state.buckets.get(bucket);
        bucket.map_or(Vec::new(), |b| b.keys().cloned().collect())
    }

    pub fn put(&self, bucket: &str, key: &str) {
        let mut state = self.0.state.lock().unwrap();
        let bucket = state.buckets.entry(bucket.into()).or_default();
        bucket.insert(key.into(), b"foreign".to_vec());
    }

    /// The logged calls, sorted.
    pub fn log(&self) -> Vec<(u64, OpClass, String, u64)> {
        let mut log = self.0.state.lock().unwrap().log.clone();
        log.sort();
        log
    }
}

impl Driver for Scripted {
    type Session = ScriptedSession;

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            classes: vec![
                OpClass::Get,
                OpClass::Put,
                OpClass::Head,
                OpClass::Delete,
                OpClass::DeleteMany,
                OpClass::RangeGet,
                OpClass::List,
                OpClass::Copy,
                OpClass::MultipartPut,
                OpClass::MakeBucket,
                OpClass::DeleteBucket,
            ],
            verify: self.0.verifies,
            connections: true,
            parts_in_flight: false,
        }
    }

    fn facts(&self) -> DriverFacts {
        DriverFacts {
            driver: "scripted".into(),
            ..DriverFacts::default()
        }
    }

    async fn open(&self, worker: WorkerId, probe: &mut Probe) -> Result<ScriptedSession, OpError> {
        if worker.thread == u16::MAX {
            // The session of the control plane does not count.
            return Ok(ScriptedSession {
                inner: Arc::clone(&self.0),
                number: u32::MAX,
            });
        }
        if !self.0.open_delay.is_zero() {
            tokio::time::sleep(self.0.open_delay).await;
        }
        let number = self.0.opened.fetch_add(1, Ordering::Relaxed);
        if number >= self.0.openable {
            self.0.opened.fetch_sub(1, Ordering::Relaxed);
            return Err(OpError::new(ErrorKind::Connect, "scripted: no more"));
        }
        probe.connected(ConnectTimes {
            dns_ns: 0,
            tcp_ns: 1_000,
            tls_ns: 0,
        });
        Ok(ScriptedSession {
            inner: Arc::clone(&self.0),
            number,
        })
    }
}

pub struct ScriptedSession {
    inner: Arc<Inner>,
    number: u32,
}

/// Counts an execution as running until dropped, so dropped futures are counted correctly.
struct Running<'a>(&'a Inner);

impl<'a> Running<'a> {
    fn new(inner: &'a Inner) -> Self {
        let running = inner.running.fetch_add(1, Ordering::Relaxed) + 1;
        inner.peak.fetch_max(running, Ordering::Relaxed);
        Self(inner)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Session for ScriptedSession {
    async fn execute(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let inner = &*self.inner;
        let _running = Running::new(inner);
        probe.started();
        let call = Call {
            class: request.op.class,
            seq: request.op.seq,
            key: request.key.to_owned(),
            size: request.op.size,
            nth: inner.calls.fetch_add(1, Ordering::Relaxed),
            session: self.number,
            now_ns: now_ns(),
        };
        let act = (inner.script)(&call);
        if act.until_ns == u64::MAX {
            std::future::pending::<()>().await;
        } else if act.until_ns > call.now_ns {
            tokio::time::sleep(Duration::from_nanos(act.until_ns - call.now_ns)).await;
        }
        if inner.log {
            let entry = (call.seq, call.class, call.key.clone(), call.size);
            inner.state.lock().unwrap().log.push(entry);
        }
        if let Some(kind) = act.error {
            probe.first_byte_and_done();
            return Err(OpError::new(kind, "scripted"));
        }
        if request.op.class == OpClass::MakeBucket {
            let mut state = inner.state.lock().unwrap();
            if state.buckets.contains_key(request.bucket) {
                probe.first_byte_and_done();
                return Err(OpError::new(ErrorKind::Conflict, "scripted: exists"));
            }
            state.buckets.insert(request.bucket.into(), BTreeMap::new());
        } else if request.op.class == OpClass::DeleteBucket {
            let mut state = inner.state.lock().unwrap();
            state.buckets.remove(request.bucket).unwrap();
        } else if request.op.class.writes_body() {
            let mut state = inner.state.lock().unwrap();
            let bucket = state.buckets.get_mut(request.bucket).unwrap();
            bucket.insert(call.key, Vec::new());
        } else if request.op.class == OpClass::Delete {
            let mut state = inner.state.lock().unwrap();
            let bucket = state.buckets.get_mut(request.bucket).unwrap();
            bucket.remove(&call.key);
        } else if request.op.class == OpClass::DeleteMany {
            let mut state = inner.state.lock().unwrap();
            let bucket = state.buckets.get_mut(request.bucket).unwrap();
            let mut key = String::new();
            for i in 0..request.op.count {
                request.keys.unwrap().render(i, &mut key);
                bucket.remove(&key);
            }
        } else if inner.strict && request.op.class != OpClass::List {
            let state = inner.state.lock().unwrap();
            let key = match request.op.class {
                OpClass::Copy => request.source,
                _ => &call.key,
            };
            if !state.buckets[request.bucket].contains_key(key) {
                probe.first_byte_and_done();
                return Err(absent());
            }
        }
        probe.first_byte_and_done();
        let body = request.op.class.writes_body() || request.op.class.reads_body();
        Ok(Completion {
            bytes: if body { request.op.size } else { 0 },
            ..Completion::default()
        })
    }
}

fn absent() -> OpError {
    OpError::with_status(ErrorKind::NotFound, 404, "scripted: absent")
}

impl Admin for ScriptedSession {
    async fn ensure_bucket(&mut self, bucket: &str) -> Result<bool, OpError> {
        let mut state = self.inner.state.lock().unwrap();
        let new = !state.buckets.contains_key(bucket);
        state.buckets.entry(bucket.into()).or_default();
        Ok(new)
    }

    async fn head_bucket(&mut self, bucket: &str) -> Result<(), OpError> {
        let state = self.inner.state.lock().unwrap();
        state.buckets.get(bucket).map(|_| ()).ok_or_else(absent)
    }

    async fn delete_bucket(&mut self, bucket: &str) -> Result<(), OpError> {
        let mut state = self.inner.state.lock().unwrap();
        if !state.buckets.get(bucket).ok_or_else(absent)?.is_empty() {
            return Err(OpError::new(ErrorKind::Conflict, "scripted: not empty"));
        }
        state.buckets.remove(bucket);
        Ok(())
    }

    async fn list_keys(
        &mut self,
        bucket: &str,
        prefix: &str,
        after: Option<&str>,
    ) -> Result<KeyPage, OpError> {
        let state = self.inner.state.lock().unwrap();
        let keys = state.buckets.get(bucket).ok_or_else(absent)?.keys();
        let mut keys: Vec<String> = keys
            .filter(|k| k.starts_with(prefix) && after.is_none_or(|a| k.as_str() > a))
            .take(101)
            .cloned()
            .collect();
        let more = keys.len() > 100;
        keys.truncate(100);
        let next = keys.last().filter(|_| more).cloned();
        Ok(KeyPage {
            keys,
            next,
            ..KeyPage::default()
        })
    }

    async fn delete_keys(&mut self, bucket: &str, keys: &[String]) -> Result<(), OpError> {
        tokio::task::yield_now().await;
        let mut state = self.inner.state.lock().unwrap();
        let bucket = state.buckets.get_mut(bucket).ok_or_else(absent)?;
        for key in keys {
            bucket.remove(key);
        }
        Ok(())
    }

    async fn list_versions(
        &mut self,
        _: &str,
        prefix: &str,
        after: Option<&KeyVersion>,
    ) -> Result<VersionPage, OpError> {
        let state = self.inner.state.lock().unwrap();
        let after = after.map(|after| (after.key.clone(), after.version.clone()));
        let below = state.versions.iter().filter(|version| {
            version.0.starts_with(prefix) && after.as_ref().is_none_or(|after| *version > after)
        });
        let versions: Vec<_> = below
            .take(2)
            .map(|(key, version)| KeyVersion {
                key: key.clone(),
                version: version.clone(),
            })
            .collect();
        Ok(VersionPage {
            next: versions.last().filter(|_| versions.len() == 2).cloned(),
            versions,
        })
    }

    async fn delete_versions(&mut self, _: &str, versions: &[KeyVersion]) -> Result<(), OpError> {
        let mut state = self.inner.state.lock().unwrap();
        for version in versions {
            if version.version == "locked" {
                return Err(OpError::new(ErrorKind::Auth, "scripted: locked"));
            }
            let version = (version.key.clone(), version.version.clone());
            state.versions.remove(&version);
        }
        Ok(())
    }

    async fn abort_uploads(&mut self, bucket: &str, prefix: &str) -> Result<u64, OpError> {
        let mut state = self.inner.state.lock().unwrap();
        let before = state.uploads.len();
        state
            .uploads
            .retain(|(b, key)| b != bucket || !key.starts_with(prefix));
        Ok((before - state.uploads.len()) as u64)
    }

    async fn put_small(&mut self, bucket: &str, key: &str, body: &[u8]) -> Result<(), OpError> {
        let mut state = self.inner.state.lock().unwrap();
        let bucket = state.buckets.get_mut(bucket).ok_or_else(absent)?;
        let mut body = body.to_vec();
        if self.inner.garbles {
            body.push(b' ');
        }
        bucket.insert(key.into(), body);
        Ok(())
    }

    async fn get_small(&mut self, bucket: &str, key: &str) -> Result<Vec<u8>, OpError> {
        let state = self.inner.state.lock().unwrap();
        let bucket = state.buckets.get(bucket).ok_or_else(absent)?;
        bucket.get(key).cloned().ok_or_else(absent)
    }
}

/// A sink that keeps everything, and checks what has to hold for every interval.
#[derive(Default)]
pub struct Kept {
    pub intervals: Vec<Interval>,
    pub events: Vec<Event>,
    offered: u64,
    ended: u64,
}

impl RunSink for Kept {
    fn event(&mut self, event: &Event) {
        if matches!(event, Event::PhaseStarted { .. }) {
            (self.offered, self.ended) = (0, 0);
        }
        self.events.push(event.clone());
    }

    fn interval(&mut self, interval: &Interval) {
        let tally = &interval.tally;
        self.offered += tally.offered;
        // Shed requests were offered and are not performed.
        self.ended += tally.ended() + tally.replay.shed;
        assert_eq!(
            self.offered,
            self.ended + interval.gauges.in_flight,
            "offered = ended + in flight, interval {}",
            interval.index
        );
        for cell in &tally.cells {
            assert_eq!(cell.response.count(), cell.ok);
            assert_eq!(cell.service.count(), cell.ok);
            assert_eq!(cell.failed_response.count(), cell.failures());
        }
        assert_eq!(tally.lag.count(), tally.ended());
        assert!(interval.start_ns <= interval.end_ns);
        self.intervals.push(interval.clone());
    }
}

impl Kept {
    /// All intervals of phase `phase` as one tally.
    pub fn total(&self, phase: u16) -> Tally {
        let mut total = Tally::new();
        let of_phase = self.intervals.iter().filter(|i| i.phase == phase);
        of_phase.for_each(|i| total.merge(&i.tally));
        total
    }

    pub fn failures(&self) -> usize {
        let is_failure = |e: &&Event| matches!(e, Event::Failure { .. });
        self.events.iter().filter(is_failure).count()
    }

    pub fn warnings(&self) -> Vec<&str> {
        self.events
            .iter()
            .filter_map(|e| match e {
                Event::Warning { message } => Some(message.as_str()),
                _ => None,
            })
            .collect()
    }
}
