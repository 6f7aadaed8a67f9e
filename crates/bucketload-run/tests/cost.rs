//! The cost of the runner itself: allocations, punctuality, calibration.
//!
//! The bounds here hold on a loaded machine; the example `pacing` prints the figures.

mod common;
#[path = "common/null.rs"]
mod null;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bucketload_core::driver::{Capabilities, Completion, Driver, DriverFacts, Session, WorkerId};
use bucketload_core::error::OpError;
use bucketload_core::op::{OpClass, Request};
use bucketload_core::oplog::{Batch as Logged, OpLog};
use bucketload_core::plan::named::{NamePattern, NamedEntry, NamedPlan, NamedSizes, Numbers};
use bucketload_core::plan::ranks::{RankMapping, RankTask, RanksPlan};
use bucketload_core::plan::train::TrainRead;
use bucketload_core::plan::{
    ArrivalLaw, ClosedPlan, JobStart, JobsPlan, KeyLaw, LatePolicy, MixEntry, ModelPlan, OnAbsent,
    RangePlan, ReplayPart, ReplayPlan, ReplayTiming, StageKind, StagePace, StagePlan, TrainPlan,
};
use bucketload_core::record::Probe;
use bucketload_core::trace::{
    Batch, RecordStream, TraceError, TraceOp, TraceRecord, TraceSource, key_hash,
};
use bucketload_run::{Pacing, RunOptions, StopHandle, calibrate, run};
use bucketload_testkit::alloc::{Counting, calls};
use common::undisturbed::undisturbed;
use common::*;
use null::{Null, NullSession};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    /// Number of allocations of the thread when counting began.
    static BEGUN: Cell<Option<u64>> = const { Cell::new(None) };
}

/// A null driver that counts its load thread's allocations between two of its operations.
struct Watching {
    from: u64,
    to: u64,
    /// Whether every operation waits for one turn of the runtime.
    wait: bool,
    calls: AtomicU64,
    allocations: AtomicU64,
}

struct WatchingSession(Arc<Watching>, NullSession);

impl Driver for Arcs {
    type Session = WatchingSession;
    fn capabilities(&self) -> Capabilities {
        Null.capabilities()
    }
    fn facts(&self) -> DriverFacts {
        DriverFacts::default()
    }
    async fn open(&self, _: WorkerId, _: &mut Probe) -> Result<WatchingSession, OpError> {
        Ok(WatchingSession(Arc::clone(&self.0), NullSession))
    }
}

struct Arcs(Arc<Watching>);

impl Session for WatchingSession {
    async fn execute(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let nth = self.0.calls.fetch_add(1, Ordering::Relaxed);
        if nth == self.0.from {
            BEGUN.set(Some(calls()));
        }
        if nth == self.0.to {
            let counted = calls() - BEGUN.replace(None).expect("the same thread");
            self.0.allocations.store(counted, Ordering::Relaxed);
        }
        if self.0.wait {
            tokio::task::yield_now().await;
        }
        self.1.execute(request, probe).await
    }
}

impl bucketload_core::driver::Admin for WatchingSession {
    async fn ensure_bucket(&mut self, b: &str) -> Result<bool, OpError> {
        self.1.ensure_bucket(b).await
    }
    async fn head_bucket(&mut self, b: &str) -> Result<(), OpError> {
        self.1.head_bucket(b).await
    }
    async fn delete_bucket(&mut self, b: &str) -> Result<(), OpError> {
        self.1.delete_bucket(b).await
    }
    async fn list_keys(
        &mut self,
        b: &str,
        p: &str,
        a: Option<&str>,
    ) -> Result<bucketload_core::driver::KeyPage, OpError> {
        self.1.list_keys(b, p, a).await
    }
    async fn delete_keys(&mut self, b: &str, k: &[String]) -> Result<(), OpError> {
        self.1.delete_keys(b, k).await
    }
    async fn abort_uploads(&mut self, b: &str, p: &str) -> Result<u64, OpError> {
        self.1.abort_uploads(b, p).await
    }
    async fn put_small(&mut self, b: &str, k: &str, v: &[u8]) -> Result<(), OpError> {
        self.1.put_small(b, k, v).await
    }
    async fn get_small(&mut self, b: &str, k: &str) -> Result<Vec<u8>, OpError> {
        self.1.get_small(b, k).await
    }
}

fn online() -> Vec<MixEntry> {
    let zipf = KeyLaw::Zipf {
        theta: 0.99,
        scramble: true,
    };
    vec![
        entry(OpClass::Get, 0.7, 0, zipf),
        entry(OpClass::Put, 0.3, 1, KeyLaw::Fresh),
    ]
}

/// Workers on named objects, as many operations as the other models perform.
fn named(workers: u32) -> ModelPlan {
    let pattern = |prefix: &str, hi: u32| NamePattern {
        prefix: prefix.into(),
        suffix: String::new(),
        numbers: Numbers::Uniform { lo: 1, hi },
        divided: false,
    };
    let entry = |id: &str| NamedEntry {
        id: id.into(),
        title: id.into(),
        bucket: pattern("bucket", 32),
        object: Some(pattern("object", 100_000)),
        sizes: Some(NamedSizes {
            numbers: Numbers::Weighted {
                buckets: vec![(1, 64, 3), (64, 1024, 1)],
            },
            unit_bytes: 1,
            by_name: true,
        }),
        range: None,
        trailer: false,
        files: Vec::new(),
    };
    ModelPlan::Named(NamedPlan {
        workers,
        driver: String::new(),
        entries: vec![entry("op1"), entry("op2")],
        walk: false,
        buckets_too: false,
        rampup_ns: 0,
        runtime_ns: 0,
        rampdown_ns: 0,
        ops: 70_000,
        bytes: 0,
        max_ops_per_s: 0,
        max_bytes_per_s: 0,
        max_failed_ppm: 0,
        legacy_sequences: false,
    })
}

/// Ranks, as many operations as the other models perform: two per step.
fn ranks(ranks: u32) -> ModelPlan {
    ModelPlan::Ranks(RanksPlan {
        ranks,
        task: RankTask::EasyItem,
        mapping: RankMapping::Libs3Single,
        opening: 0,
        first_opens: false,
        closing: 0,
        shift: 1,
        steps: 35_000 / u64::from(ranks),
        follows: None,
        part: None,
        after: Vec::new(),
        start: 0,
        stonewall_ns: 0,
        wear_out: false,
        waiting: 0.0,
        newer_than: None,
    })
}

#[test]
fn nothing_is_allocated_per_operation_or_interval() {
    // The counted stretch of 40 000 operations spans many intervals of 100 ms in the open loops.
    let think = ModelPlan::Closed(ClosedPlan {
        workers: 8,
        think: bucketload_core::plan::GapLaw::Exponential { mean_ns: 50_000 },
    });
    let models = [
        (closed(8), false, false),
        (closed(8), true, false),
        (closed(8), true, true),
        (think, true, false),
        (named(8), false, false),
        (named(8), true, true),
        (ranks(8), true, false),
        (
            open(ArrivalLaw::Poisson { rate: 50_000.0 }, 64),
            false,
            true,
        ),
        (
            open(ArrivalLaw::Poisson { rate: 50_000.0 }, 64),
            true,
            false,
        ),
    ];
    for (model, wait, logged) in models {
        let name = format!("{model:?}, waiting: {wait}, logged: {logged}");
        let watching = Arc::new(Watching {
            from: 20_000,
            to: 60_000,
            wait,
            calls: AtomicU64::new(0),
            allocations: AtomicU64::new(u64::MAX),
        });
        let mut mix = online();
        // Named objects are chosen by whole weights.
        mix.iter_mut().for_each(|entry| entry.weight *= 100.0);
        if matches!(model, ModelPlan::Ranks(_)) {
            // The tasks of ranks state their own sizes.
            mix.iter_mut()
                .for_each(|entry| entry.size = Some(const_size(100)));
        }
        let plan = one(model, mix, for_ops(70_000));
        let driver = Arc::new(Arcs(Arc::clone(&watching)));
        let stop = StopHandle::new();
        let (op_log, batches) = OpLog::new(1);
        let dropped = op_log.dropped();
        let options = RunOptions {
            op_log: logged.then(|| op_log.clone()),
            ..options(1)
        };
        drop(op_log);
        let reader = std::thread::spawn(move || {
            let rows = |batch: Logged| {
                let rows = batch.len() as u64;
                batch.recycle();
                rows
            };
            batches.into_iter().map(rows).sum::<u64>()
        });
        run(&driver.into(), &plan, &options, &mut Kept::default(), &stop).unwrap();
        drop(options);
        let rows = reader.join().unwrap() + dropped.load(Ordering::Relaxed);
        assert_eq!(rows, if logged { 70_000 } else { 0 }, "{name}");
        let counted = watching.allocations.load(Ordering::Relaxed);
        // On a busy machine the open loop opens more sessions, at a few allocations each. A slow collector costs some
        // thirty per tally, and each interval one for its slowest requests. One allocation in forty operations would
        // show as 1 000.
        assert!(counted <= 1_000, "{name}: {counted}");
    }
}

#[test]
fn readers_of_accelerators_allocate_nothing_per_read() {
    let train = TrainPlan {
        accelerators: 2,
        readers: 4,
        ahead: 2,
        batch: 10,
        computation_ns: 20_000,
        epochs: 1,
        steps: 0,
        objects: 70_000,
        samples: 1,
        record: 4096.0,
        read: TrainRead::Whole,
        mark: 0.9,
    };
    let ranges = TrainPlan {
        samples: 4,
        objects: 70_000,
        record: 1024.0,
        read: TrainRead::Ranges { bytes: 1024 },
        ..train.clone()
    };
    let read = |class, range| {
        vec![MixEntry {
            range,
            count: 1,
            ..entry(class, 1.0, 0, KeyLaw::Sequential)
        }]
    };
    let range = RangePlan {
        len: const_size(1024),
        align: 1,
    };
    let models = [
        (train, read(OpClass::Get, None)),
        (ranges, read(OpClass::RangeGet, Some(range))),
    ];
    for (model, mix) in models {
        for wait in [false, true] {
            let name = format!("{model:?}, waiting: {wait}");
            let watching = Arc::new(Watching {
                from: 20_000,
                to: 60_000,
                wait,
                calls: AtomicU64::new(0),
                allocations: AtomicU64::new(u64::MAX),
            });
            let mut plan = one(model.clone().into(), mix.clone(), for_ops(0));
            plan.keysets = vec![keyset("train", 70_000)];
            let driver = Arc::new(Arcs(Arc::clone(&watching)));
            let stop = StopHandle::new();
            run(
                &driver.into(),
                &plan,
                &options(1),
                &mut Kept::default(),
                &stop,
            )
            .unwrap();
            let counted = watching.allocations.load(Ordering::Relaxed);
            // The collector takes some thirty per interval; one allocation per read would show as 40 000, one per step
            // as 4 000.
            assert!(counted <= 1_000, "{name}: {counted}");
        }
    }
}

#[test]
fn arrivals_are_taken_punctually() {
    // A busy machine takes the core away from a thread that never sleeps for most of the time.
    let judged = [
        (Pacing::Timer, 0.25),
        (Pacing::Precise, 0.25),
        (Pacing::BusyPoll, 0.05),
    ];
    for (pacing, share) in judged {
        let plan = one(
            open(ArrivalLaw::Poisson { rate: 2_000.0 }, 64),
            online(),
            for_ms(400),
        );
        let options = RunOptions {
            pacing,
            ..options(1)
        };
        // A busy machine can make a single run late, but not five.
        let late = (0..5).map(|_| {
            let mut kept = Kept::default();
            let stop = StopHandle::new();
            run(&Arc::new(Null).into(), &plan, &options, &mut kept, &stop).unwrap();
            kept.total(0).late.quantile_ns(share)
        });
        // On a quiet machine: 25 µs or less. With the runtime's own timer a quarter would be within 300 µs and half
        // within 600 µs.
        let mut punctual = late.skip_while(|late| *late > 200_000);
        assert!(punctual.next().is_some(), "{pacing:?}");
    }
}

#[test]
fn calibration_reports_rate_ceiling_and_cost() {
    undisturbed(|| {
        let options = options(1);
        let stop = StopHandle::new();
        let plan = one(
            open(ArrivalLaw::Poisson { rate: 3_000.0 }, 64),
            online(),
            for_ms(60_000),
        );
        let open = calibrate(&Arc::new(Null).into(), &plan, 0, &options, &stop).unwrap();
        assert!((open.offered_ops_per_s - 3_000.0).abs() < 1e-6);
        assert!(open.null_ops_per_s > 10_000.0, "{open:?}");
        assert!(open.null_p99_ns > 1_000, "{open:?}");
        assert!(
            (20.0..10_000.0).contains(&open.null_cpu_ns_per_op),
            "{open:?}"
        );
        let plan = one(closed(4), online(), for_ops(10));
        let closed = calibrate(&Arc::new(Null).into(), &plan, 0, &options, &stop).unwrap();
        assert_eq!(closed.offered_ops_per_s, 0.0);
        assert!(closed.null_ops_per_s > 10_000.0, "{closed:?}");
        assert!(calibrate(&Arc::new(Null).into(), &plan, 1, &options, &stop).is_err());
    });
}

/// A trace that is generated while it is read.
struct Endless;

struct EndlessStream(u64);

impl RecordStream for EndlessStream {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool, TraceError> {
        out.clear();
        while !out.is_full() && self.0 < 70_000 {
            let key = format!("key-{}", self.0 % 1_000);
            let record = TraceRecord {
                // 100 000 per second, so some always wait.
                ts_ns: self.0 as i64 * 10_000,
                op: if self.0.is_multiple_of(3) {
                    TraceOp::Put
                } else {
                    TraceOp::Get
                },
                key_hash: key_hash(0, key.as_bytes()),
                size: 1,
                ..TraceRecord::default()
            };
            out.push(record, key.as_bytes(), []);
            self.0 += 1;
        }
        Ok(!out.is_empty())
    }
}

impl TraceSource for Endless {
    fn records(&self) -> Result<Box<dyn RecordStream>, TraceError> {
        Ok(Box::new(EndlessStream(0)))
    }
    fn preload(&self) -> Result<Box<dyn RecordStream>, TraceError> {
        self.records()
    }
}

#[test]
fn jobs_and_traces_allocate_nothing_per_operation() {
    let jobs = ModelPlan::Jobs(JobsPlan {
        start: JobStart::Closed { jobs: 8 },
        stages: [StageKind::Write, StageKind::Read, StageKind::Write]
            .map(|kind| StagePlan {
                kind,
                min: 10,
                max: 19,
            })
            .to_vec(),
        pace: StagePace::Poisson { rate: 50_000.0 },
        limit: 1_300,
        max_jobs: 8,
        retain: 8,
        max_in_flight: 64,
        temp: 0,
        results: 1,
    });
    let keysets = vec![keyset("temp", 0), keyset("results", 0)];
    let ModelPlan::Jobs(of) = &jobs else {
        unreachable!()
    };
    let jobs_mix = bucketload_core::generate::jobs::mix(of, &keysets).unwrap();
    let replay = |timing| {
        ModelPlan::Replay(ReplayPlan {
            trace: String::new(),
            part: ReplayPart::Requests,
            timing,
            late: LatePolicy::Issue,
            per_key: true,
            on_absent: OnAbsent::Expect,
            max_in_flight: 64,
            buckets: Vec::new(),
        })
    };
    let replay_mix = bucketload_core::plan::replay::mix(&[TraceOp::Get, TraceOp::Put]);
    let models = [
        (jobs, jobs_mix),
        (replay(ReplayTiming::Asap), replay_mix.clone()),
        (replay(ReplayTiming::Original { speed: 1.0 }), replay_mix),
    ];
    for (model, mix) in models {
        for wait in [false, true] {
            let name = format!("{model:?}, waiting: {wait}");
            let watching = Arc::new(Watching {
                from: 20_000,
                to: 60_000,
                wait,
                calls: AtomicU64::new(0),
                allocations: AtomicU64::new(u64::MAX),
            });
            let limits = bucketload_core::plan::Limits {
                drain_ns: ms(20_000),
                ..Default::default()
            };
            let mut plan = one(model.clone(), mix.clone(), limits);
            plan.keysets.clone_from(&keysets);
            let options = RunOptions {
                trace: Some(Arc::new(Endless)),
                ..options(1)
            };
            let driver = Arc::new(Arcs(Arc::clone(&watching)));
            let stop = StopHandle::new();
            run(&driver.into(), &plan, &options, &mut Kept::default(), &stop).unwrap();
            let counted = watching.allocations.load(Ordering::Relaxed);
            // Some remain: structures grow with what is under way, and on a busy machine the loop opens more sessions.
            // One allocation per operation would show as 40 000.
            assert!(counted <= 1_000, "{name}: {counted}");
        }
    }
}
