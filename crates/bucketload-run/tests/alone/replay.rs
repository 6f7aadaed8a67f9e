//! Replay of recorded requests: timing, order per key, absent objects, counts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::common::undisturbed::undisturbed;
use crate::common::*;
use bucketload_core::error::ErrorKind;
use bucketload_core::op::OpClass;
use bucketload_core::payload::PayloadKind;
use bucketload_core::plan::replay::{ReplayRequest, plan as replay_plan};
use bucketload_core::plan::{
    LatePolicy, OnAbsent, PhaseKind, Plan, ReplayPart, ReplayPlan, ReplayTiming,
};
use bucketload_core::trace::{
    Batch, RecordStream, TraceError, TraceOp, TraceRecord, TraceSource, key_hash,
};
use bucketload_run::{RunEnd, RunError, RunOptions, StopHandle, run};

/// A trace in memory.
#[derive(Default)]
struct Records {
    requests: Vec<(TraceRecord, Vec<u8>, Vec<Vec<u8>>)>,
    preload: Vec<(TraceRecord, Vec<u8>, Vec<Vec<u8>>)>,
    end: End,
}

/// What comes after the last record.
#[derive(Clone, Copy, Default)]
enum End {
    #[default]
    Fine,
    Torn,
    Panic,
}

impl Records {
    fn add(&mut self, ms_: u64, op: TraceOp, key: &str, status: u16) -> &mut TraceRecord {
        let record = TraceRecord {
            ts_ns: ms(ms_) as i64,
            op,
            key_hash: key_hash(0, key.as_bytes()),
            size: 1000,
            status,
            ..TraceRecord::default()
        };
        self.requests.push((record, key.into(), Vec::new()));
        &mut self.requests.last_mut().unwrap().0
    }

    fn create(&mut self, key: &str) {
        let record = TraceRecord {
            op: TraceOp::Put,
            key_hash: key_hash(0, key.as_bytes()),
            size: 1000,
            ..TraceRecord::default()
        };
        self.preload.push((record, key.into(), Vec::new()));
    }
}

struct Stream(
    std::vec::IntoIter<(TraceRecord, Vec<u8>, Vec<Vec<u8>>)>,
    End,
);

impl RecordStream for Stream {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool, TraceError> {
        out.clear();
        for (record, key, more) in self.0.by_ref().take(100) {
            out.push(record, &key, more.iter().map(Vec::as_slice));
        }
        match (out.is_empty(), self.1) {
            (true, End::Torn) => return Err(TraceError("scripted: torn".into())),
            (true, End::Panic) => panic!("scripted: a defect"),
            _ => {}
        }
        Ok(!out.is_empty())
    }
}

impl TraceSource for Records {
    fn records(&self) -> Result<Box<dyn RecordStream>, TraceError> {
        let requests = self.requests.clone().into_iter();
        Ok(Box::new(Stream(requests, self.end)))
    }
    fn preload(&self) -> Result<Box<dyn RecordStream>, TraceError> {
        Ok(Box::new(Stream(
            self.preload.clone().into_iter(),
            End::Fine,
        )))
    }
}

fn replay(timing: ReplayTiming) -> ReplayPlan {
    ReplayPlan {
        trace: "test".into(),
        part: ReplayPart::Requests,
        timing,
        late: LatePolicy::Issue,
        per_key: true,
        on_absent: OnAbsent::Preload,
        max_in_flight: 64,
        buckets: vec!["one/".into()],
    }
}

const FAST: ReplayTiming = ReplayTiming::Original { speed: 10.0 };

/// The phases of a replay without init and clean-up.
fn bare(replay: ReplayPlan, preload: bool) -> Plan {
    let mut plan = replay_plan(&ReplayRequest {
        name: "replay".into(),
        replay,
        ops: TraceOp::ALL
            .into_iter()
            .filter(|op| *op != TraceOp::MpuAbort)
            .collect(),
        preload,
        preload_workers: 4,
        duration_ns: 0,
        timeout_ns: ms(5_000),
        keep: true,
        payload: PayloadKind::Zeros,
        seed: 1,
    });
    plan.phases.retain(|phase| phase.kind != PhaseKind::Init);
    plan
}

fn go(
    driver: Scripted,
    plan: &Plan,
    records: Records,
    threads: usize,
) -> (Result<RunEnd, RunError>, Kept, Arc<Scripted>) {
    let driver = Arc::new(driver.logged().strict());
    let mut kept = Kept::default();
    let options = RunOptions {
        trace: Some(Arc::new(records)),
        ..options(threads)
    };
    let stop = StopHandle::new();
    let end = run(
        &Arc::clone(&driver).into(),
        plan,
        &options,
        &mut kept,
        &stop,
    );
    (end, kept, driver)
}

/// `n` writes of different keys, 1 ms apart.
fn writes(n: u64) -> Records {
    let mut records = Records::default();
    for i in 0..n {
        records.add(i, TraceOp::Put, &format!("k/{i}"), 200);
    }
    records
}

#[test]
fn every_request_is_performed_at_its_time_under_its_name() {
    undisturbed(|| {
        let plan = bare(replay(FAST), false);
        let (end, kept, driver) = go(Scripted::new(|_| at_once()), &plan, writes(5_000), 2);
        let summary = end.unwrap().phases[0];
        assert_eq!((summary.totals.offered, summary.totals.ok), (5_000, 5_000));
        // Recorded over 5 s, replayed at ten times the speed.
        assert_eq!(summary.at_ns - summary.start_ns, 4_999 * 100_000);
        for interval in &kept.intervals[1..4] {
            let offered = interval.tally.offered;
            assert!((999..=1_001).contains(&offered), "{offered}");
        }
        let mut names: Vec<String> = driver.log().into_iter().map(|call| call.2).collect();
        let mut expected: Vec<String> = (0..5_000).map(|i| format!("t/t/one/k/{i}")).collect();
        names.sort();
        expected.sort();
        assert_eq!(names, expected);
    });
}

#[test]
fn the_requests_do_not_depend_on_the_number_of_threads() {
    let mixed = || {
        let mut records = Records::default();
        for i in 0..600u64 {
            let key = format!("k{}", i % 37);
            let ops = [TraceOp::Put, TraceOp::Get, TraceOp::Head, TraceOp::Delete];
            records.add(i, ops[(i / 37 % 4) as usize], &key, 200);
        }
        let record = records.add(600, TraceOp::MultiDelete, "k0", 200);
        record.repeat = 3;
        let keys = vec![b"k1".to_vec(), b"k2".to_vec()];
        records.requests.last_mut().unwrap().2 = keys;
        records.add(601, TraceOp::MpuPart, "k0", 200);
        records.add(602, TraceOp::Copy, "k0", 200);
        records
    };
    let logs = [1, 2, 3].map(|threads| {
        let plan = bare(replay(FAST), false);
        let (_, kept, driver) = go(Scripted::new(|_| at_once()), &plan, mixed(), threads);
        let total = kept.total(0);
        assert_eq!(total.ended(), 603);
        assert_eq!(
            total.replay.skipped_other, 2,
            "a part of an upload, and a copy without a source"
        );
        driver.log()
    });
    assert!(logs[0] == logs[1] && logs[0] == logs[2]);
    assert_eq!(
        logs[0]
            .iter()
            .filter(|call| call.1 == OpClass::DeleteMany)
            .count(),
        3
    );
}

#[test]
fn a_request_waits_for_the_latest_change_of_its_key() {
    undisturbed(|| {
        let records = || {
            let mut records = Records::default();
            for i in 0..200u64 {
                let key = format!("k{}", i % 10);
                for op in [TraceOp::Put, TraceOp::Get, TraceOp::Get, TraceOp::Delete] {
                    records.add(i, op, &key, 200);
                }
            }
            records
        };
        // A write takes 2 ms, in which 20 requests on its key fall due.
        let slow_writes = |write_ms: u64| {
            Scripted::new(move |call| match call.class {
                OpClass::Put => until(call.now_ns + ms(write_ms)),
                _ => at_once(),
            })
        };
        let strict = bare(replay(FAST), false);
        let (_, kept, driver) = go(slow_writes(2), &strict, records(), 2);
        let total = kept.total(0);
        assert_eq!((total.ok(), total.failures()), (800, 0));
        assert!(total.replay.blocked >= 400, "{:?}", total.replay);
        assert_eq!(total.blocked.count(), total.replay.blocked);
        // Waiting for a key is neither lateness nor a lack of workers.
        assert!(
            total.late.quantile_ns(0.5) < ms(1),
            "{}",
            total.late.quantile_ns(0.5)
        );
        assert!(driver.keys("b").is_empty());

        let mut free = replay(FAST);
        (free.per_key, free.max_in_flight) = (false, 1_000);
        // The trace is 20 ms long, and no write ends before all its requests are due.
        let (_, kept, _) = go(slow_writes(500), &bare(free, false), records(), 2);
        let total = kept.total(0);
        assert!(total.failures() > 100 && total.blocked.is_empty());
        assert_eq!(total.replay.absent, total.failures());
    });
}

#[test]
fn requests_that_are_too_late_are_shed_and_counted() {
    undisturbed(|| {
        let mut plan = replay(FAST);
        (plan.late, plan.max_in_flight) = (LatePolicy::Drop { after_ns: ms(20) }, 1);
        // 10 000 requests per second are due, 500 are possible.
        let slow = Scripted::new(|call| until(call.now_ns + ms(2)));
        let (_, kept, driver) = go(slow, &bare(plan, false), writes(3_000), 1);
        let total = kept.total(0);
        assert_eq!(total.offered, 3_000);
        assert_eq!(total.issued + total.replay.shed, 3_000);
        assert_eq!(total.issued, driver.calls());
        assert!(total.replay.shed > 2_000, "{:?}", total.replay);
    });
}

#[test]
fn absent_objects_are_judged_by_the_recorded_status() {
    let records = || {
        let mut records = Records::default();
        records.create("there");
        records.add(0, TraceOp::Get, "there", 200);
        records.add(1, TraceOp::Get, "there", 404);
        records.add(2, TraceOp::Get, "gone", 404);
        records.add(3, TraceOp::Get, "lost", 200).absent = true;
        records
    };
    let with = |on_absent, preload| {
        let mut plan = replay(FAST);
        plan.on_absent = on_absent;
        go(
            Scripted::new(|_| at_once()),
            &bare(plan, preload),
            records(),
            2,
        )
    };
    let (end, kept, _) = with(OnAbsent::Expect, true);
    assert_eq!(end.unwrap().phases.len(), 2);
    let total = kept.total(1);
    let counts = total.replay;
    assert_eq!((total.ok(), total.failures()), (3, 1));
    let judged = (counts.absent, counts.absent_as_recorded, counts.unexpected);
    assert_eq!(judged, (1, 1, 1));
    assert_eq!(total.cells[0].failed[ErrorKind::NotFound as usize], 1);

    let (_, kept, driver) = with(OnAbsent::Skip, false);
    assert_eq!(kept.total(0).replay.skipped_absent, 1);
    assert_eq!(driver.calls(), 3);

    let (end, ..) = with(OnAbsent::Fail, true);
    let error = end.unwrap_err();
    assert!(
        matches!(
            error,
            RunError::Absent {
                class: OpClass::Get
            }
        ),
        "{error}"
    );
    assert_eq!(error.exit_code(), 4);
}

#[test]
fn as_fast_as_possible_is_a_closed_loop_in_order() {
    undisturbed(|| {
        let mut plan = replay(ReplayTiming::Asap);
        plan.max_in_flight = 4;
        let slow = Scripted::new(|call| until(call.now_ns + ms(1)));
        let (end, kept, driver) = go(slow, &bare(plan, false), writes(200), 2);
        assert_eq!(end.unwrap().phases[0].totals.ok, 200);
        assert!(driver.peak() <= 4, "{}", driver.peak());
        // A request is due when it is taken, not at its recorded time.
        let worst = kept.total(0).lag.quantile_ns(0.5);
        assert!(worst < ms(1), "{worst}");
    });
}

#[test]
fn rate_limits_shape_the_load_and_do_not_count_as_latency() {
    undisturbed(|| {
        let plan = replay(ReplayTiming::Capped {
            speed: 1e6,
            ops_per_s: 2_000.0,
            bytes_per_s: 0.0,
        });
        let (end, kept, _) = go(
            Scripted::new(|_| at_once()),
            &bare(plan, false),
            writes(600),
            2,
        );
        let summary = end.unwrap().phases[0];
        let length = summary.at_ns - summary.start_ns;
        assert!((ms(299)..=ms(300)).contains(&length), "{length}");
        let total = kept.total(0);
        assert_eq!(total.replay.shaped, 599);
        assert!(total.shaped.max_ns() > ms(298));
        assert!(total.lag.quantile_ns(0.5) < ms(20), "not part of the lag");
    });
}

#[test]
fn a_panic_while_the_trace_is_read_is_not_blamed_on_a_load_thread() {
    let mut records = writes(10);
    records.end = End::Panic;
    let plan = bare(replay(FAST), false);
    let (end, ..) = go(Scripted::new(|_| at_once()), &plan, records, 1);
    let error = end.unwrap_err().to_string();
    assert_eq!(
        error,
        "the thread that reads the trace panicked: scripted: a defect"
    );
}

#[test]
fn a_trace_that_cannot_be_read_ends_the_run() {
    let mut records = writes(10);
    records.end = End::Torn;
    let (end, ..) = go(
        Scripted::new(|_| at_once()),
        &bare(replay(FAST), false),
        records,
        1,
    );
    assert!(matches!(end.unwrap_err(), RunError::Trace(_)));
    let plan = bare(replay(FAST), false);
    let stop = StopHandle::new();
    let driver = Arc::new(Scripted::new(|_| at_once()));
    let error = run(
        &driver.into(),
        &plan,
        &options(1),
        &mut Kept::default(),
        &stop,
    )
    .unwrap_err();
    assert_eq!(error.exit_code(), 2, "{error}");
}

#[test]
fn a_whole_replay_preloads_and_cleans_up() {
    let mut records = Records::default();
    for i in 0..50u64 {
        let key = format!("odd name {i}/ü");
        records.create(&key);
        records.add(i, TraceOp::Get, &key, 200);
    }
    let mut plan = bare(replay(FAST), true);
    let other = |kind| {
        let mut phase = phase(kind, Vec::new(), Default::default());
        phase.name = format!("{kind:?}");
        phase
    };
    plan.phases.insert(0, other(PhaseKind::Init));
    plan.phases.push(other(PhaseKind::Cleanup));
    let seen: Arc<Mutex<BTreeMap<OpClass, u64>>> = Arc::default();
    let counted = Arc::clone(&seen);
    let driver = Scripted::new(move |call| {
        *counted.lock().unwrap().entry(call.class).or_default() += 1;
        at_once()
    });
    let (end, kept, driver) = go(driver, &plan, records, 2);
    let end = end.unwrap();
    assert_eq!(end.cleanup.unwrap().objects, 50);
    assert!(driver.keys("b").is_empty(), "{:?}", driver.keys("b"));
    assert_eq!(kept.total(2).ok(), 50);
    let seen = seen.lock().unwrap();
    assert_eq!((seen[&OpClass::Put], seen[&OpClass::Get]), (50, 50));
}
