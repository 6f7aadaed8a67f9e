//! Calibration of replays, against the trace's busiest second.

#[path = "../common/null.rs"]
mod null;

use std::sync::Arc;

use crate::common::undisturbed::undisturbed;
use crate::common::*;
use bucketload_core::payload::PayloadKind;
use bucketload_core::plan::replay::{ReplayRequest, plan as replay_plan};
use bucketload_core::plan::{
    LatePolicy, OnAbsent, PhaseKind, ReplayPart, ReplayPlan, ReplayTiming,
};
use bucketload_core::sink::Calibration;
use bucketload_core::trace::{
    Batch, RecordStream, TraceError, TraceOp, TraceRecord, TraceSource, key_hash,
};
use bucketload_run::{RunOptions, StopHandle, calibrate};
use null::Null;

/// Ten seconds of 50 requests each, except that the fourth has 2,000 on 100 keys. Every third request is a write.
struct Busy;

struct BusyStream(Vec<i64>, usize);

impl TraceSource for Busy {
    fn records(&self) -> Result<Box<dyn RecordStream>, TraceError> {
        let second = |s: i64| {
            let n = if s == 4 { 2_000 } else { 50 };
            (0..n).map(move |i| s * 1_000_000_000 + i * (1_000_000_000 / n))
        };
        Ok(Box::new(BusyStream((0..10).flat_map(second).collect(), 0)))
    }
    fn preload(&self) -> Result<Box<dyn RecordStream>, TraceError> {
        Err(TraceError("nobody asks for it".into()))
    }
}

impl RecordStream for BusyStream {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool, TraceError> {
        out.clear();
        while let Some(&ts_ns) = self.0.get(self.1).filter(|_| !out.is_full()) {
            let key = format!("key-{}", self.1 % 100);
            let op = match self.1.is_multiple_of(3) {
                true => TraceOp::Put,
                false => TraceOp::Get,
            };
            let record = TraceRecord {
                ts_ns,
                op,
                key_hash: key_hash(0, key.as_bytes()),
                size: 4096,
                ..TraceRecord::default()
            };
            out.push(record, key.as_bytes(), []);
            self.1 += 1;
        }
        Ok(!out.is_empty())
    }
}

fn calibrated(timing: ReplayTiming) -> Calibration {
    let plan = replay_plan(&ReplayRequest {
        name: "replay".into(),
        replay: ReplayPlan {
            trace: "test".into(),
            part: ReplayPart::Requests,
            timing,
            late: LatePolicy::Drop { after_ns: 0 },
            per_key: true,
            on_absent: OnAbsent::Fail,
            max_in_flight: 64,
            buckets: Vec::new(),
        },
        ops: vec![TraceOp::Put, TraceOp::Get],
        preload: false,
        preload_workers: 1,
        duration_ns: 0,
        timeout_ns: ms(5_000),
        keep: true,
        payload: PayloadKind::Zeros,
        seed: 1,
    });
    let phase = plan.phases.iter().position(|p| p.kind == PhaseKind::Run);
    let options = RunOptions {
        trace: Some(Arc::new(Busy)),
        ..options(1)
    };
    let stop = StopHandle::new();
    calibrate(
        &Arc::new(Null).into(),
        &plan,
        phase.unwrap(),
        &options,
        &stop,
    )
    .unwrap()
}

#[test]
fn a_replay_is_calibrated_with_its_busiest_second() {
    undisturbed(|| {
        let found = calibrated(ReplayTiming::Original { speed: 1.0 });
        assert_eq!(found.offered_ops_per_s, 2_000.0);
        assert!(found.null_ops_per_s > 10_000.0, "{found:?}");
        assert!(found.null_p99_ns > 1_000, "{found:?}");
        assert!(
            (20.0..20_000.0).contains(&found.null_cpu_ns_per_op),
            "{found:?}"
        );
        let tenfold = calibrated(ReplayTiming::Original { speed: 10.0 });
        assert_eq!(tenfold.offered_ops_per_s, 9.0 * 50.0 + 2_000.0);
        // A closed loop offers no rate; its ceiling is set by its requests in flight.
        let asap = calibrated(ReplayTiming::Asap);
        assert_eq!(asap.offered_ops_per_s, 0.0);
        assert!(asap.null_ops_per_s > 10_000.0, "{asap:?}");
    });
}
