//! Replays a synthetic trace against a driver that does nothing, in real time, and says how well its
//! instants were kept: traces.md section 7 asks for a 99th percentile of |realised - intended| below
//! 1 ms at 10^6 records and speed 10.
//!
//! `cargo run --release -p bucketload-run --example replay_pacing [records] [recorded rate]`. The
//! records are made while they are read, 2 000 per second of the trace unless another rate is given.
//! Fails when the bound is missed or the memory grows beyond 100 MiB. The figures mean something on
//! an idle machine.

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/common/null.rs"]
mod null;

use std::process::ExitCode;
use std::sync::Arc;

use bucketload_core::generate::rng::mix64;
use bucketload_core::payload::PayloadKind;
use bucketload_core::plan::replay::{ReplayRequest, plan};
use bucketload_core::plan::{
    LatePolicy, OnAbsent, PhaseKind, ReplayPart, ReplayPlan, ReplayTiming,
};
use bucketload_core::sink::{Event, RunSink};
use bucketload_core::tally::{Interval, Tally};
use bucketload_core::trace::{
    Batch, RecordStream, TraceError, TraceOp, TraceRecord, TraceSource, key_hash,
};
use bucketload_run::{Cores, RunOptions, StopHandle, run};

/// `records` requests with exponential gaps on 10 000 keys, a tenth of them writes.
#[derive(Clone, Copy)]
struct Synthetic {
    records: u64,
    rate: f64,
}

struct Stream {
    of: Synthetic,
    next: u64,
    now_ns: f64,
}

impl RecordStream for Stream {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool, TraceError> {
        out.clear();
        while self.next < self.of.records && !out.is_full() {
            let word = mix64(self.next);
            let u = (word >> 11) as f64 / (1u64 << 53) as f64;
            self.now_ns += -(1.0 - u).ln() * 1e9 / self.of.rate;
            let key = format!("k{:05}", mix64(word) % 10_000);
            let record = TraceRecord {
                ts_ns: self.now_ns as i64,
                op: if word.is_multiple_of(10) {
                    TraceOp::Put
                } else {
                    TraceOp::Get
                },
                key_hash: key_hash(0, key.as_bytes()),
                size: 4096,
                src: self.next,
                ..TraceRecord::default()
            };
            out.push(record, key.as_bytes(), []);
            self.next += 1;
        }
        Ok(!out.is_empty())
    }
}

impl TraceSource for Synthetic {
    fn records(&self) -> Result<Box<dyn RecordStream>, TraceError> {
        Ok(Box::new(Stream {
            of: *self,
            next: 0,
            now_ns: 0.0,
        }))
    }

    fn preload(&self) -> Result<Box<dyn RecordStream>, TraceError> {
        let none = Self {
            records: 0,
            ..*self
        };
        none.records()
    }
}

#[derive(Default)]
struct Total {
    tally: Tally,
    rss_bytes: u64,
}

impl RunSink for Total {
    fn event(&mut self, _: &Event) {}
    fn interval(&mut self, interval: &Interval) {
        self.tally.merge(&interval.tally);
        self.rss_bytes = self.rss_bytes.max(interval.gauges.rss_bytes);
    }
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let mut next = |default: f64| {
        let given = arguments.next().and_then(|a| a.parse().ok());
        given.unwrap_or(default)
    };
    let (records, rate) = (next(1e6) as u64, next(2_000.0));
    let mut plan = plan(&ReplayRequest {
        name: "synthetic".into(),
        replay: ReplayPlan {
            trace: "synthetic".into(),
            part: ReplayPart::Requests,
            timing: ReplayTiming::Original { speed: 10.0 },
            late: LatePolicy::Issue,
            per_key: true,
            on_absent: OnAbsent::Expect,
            max_in_flight: 256,
            buckets: Vec::new(),
        },
        ops: vec![TraceOp::Get, TraceOp::Put],
        preload: false,
        preload_workers: 1,
        duration_ns: 0,
        timeout_ns: 30_000_000_000,
        keep: true,
        payload: PayloadKind::Zeros,
        seed: 1,
    });
    plan.phases.retain(|phase| phase.kind == PhaseKind::Run);
    let options = RunOptions {
        trace: Some(Arc::new(Synthetic { records, rate })),
        cores: Cores::First,
        ..common::options(1)
    };
    let mut total = Total::default();
    let stop = StopHandle::new();
    if let Err(error) = run(Arc::new(null::Null), &plan, &options, &mut total, &stop) {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    let lag = &total.tally.lag;
    let us = |q| lag.quantile_ns(q) as f64 / 1e3;
    println!(
        "{} requests replayed; realised - intended: p50 {:.0} us, p99 {:.0} us, p99.9 {:.0} us, max {:.0} us; memory {} MiB",
        total.tally.ok(),
        us(0.5),
        us(0.99),
        us(0.999),
        lag.max_ns() as f64 / 1e3,
        total.rss_bytes >> 20
    );
    let kept = total.tally.ok() == records && us(0.99) < 1_000.0 && total.rss_bytes < 100 << 20;
    if kept {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
