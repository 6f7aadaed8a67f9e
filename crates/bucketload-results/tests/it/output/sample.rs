//! The run that every format shows: two operations, failures, slow requests, an endpoint with two nodes.

use std::path::Path;

use crate::support::{SECOND, manifest, plan, record};
use bucketload_core::endpoint::EndpointTally;
use bucketload_core::error::ErrorKind;
use bucketload_core::op::OpClass;
use bucketload_core::record::{ConnectTimes, OpRecord, Outcome, Part};
use bucketload_core::sink::{Event, PhaseEnd, RunSink};
use bucketload_core::slowest::SlowRequest;
use bucketload_core::tally::{Gauges, Interval, Tally};
use bucketload_results::oplog::OpLogFacts;
use bucketload_results::rundir::{Manifest, RunEnd, Status};
use bucketload_results::{RunDirSink, RunResult, analyze};

/// Interval `s` of the measuring phase. Integer arithmetic only, so every platform gives the same figures.
pub(super) fn interval(s: u64) -> Interval {
    let start = (1 + s) * SECOND;
    let mut tally = Tally::new();
    tally.endpoints = EndpointTally::all(2);
    for i in 0..120 + s % 3 {
        let class = if i % 4 == 0 {
            OpClass::Put
        } else {
            OpClass::Get
        };
        let service = 1_000_000 + (i * 7919 + s * 104_729) % 1000 * 3000;
        let outcome = match (i, s % 10) {
            (7, 3) => Outcome::Failed(ErrorKind::Timeout),
            (9, 3 | 4) => Outcome::Failed(ErrorKind::Server),
            _ => Outcome::Ok,
        };
        tally.record(&OpRecord {
            endpoint: u16::from(i.is_multiple_of(3)),
            ..record(class, start + i * 1000, service, outcome)
        });
    }
    tally.record_connect(ConnectTimes {
        dns_ns: 0,
        tcp_ns: 90_000 + s,
        tls_ns: 0,
    });
    (tally.offered, tally.issued) = (120 + s % 3, 120 + s % 3);
    tally.offered_bytes = tally.offered * 4096;
    Interval {
        phase: 1,
        index: s,
        start_ns: start,
        end_ns: start + SECOND,
        tally,
        gauges: Gauges {
            in_flight: 2 + s % 2,
            sessions: 4,
            load_cpu_ns: (1 + s) * 20_000_000,
            busiest_thread_cpu_ns: (1 + s) * 20_000_000,
            process_cpu_ns: (1 + s) * 24_000_000,
            machine_busy_ns: (1 + s) * 80_000_000,
            machine_softirq_ns: (1 + s) * 4_000_000,
            machine_total_ns: (1 + s) * 4 * SECOND,
            rss_bytes: 31 << 20,
            ..Gauges::default()
        },
    }
}

/// A slow request that took `ms` milliseconds.
pub(super) fn slow(ms: u64, error: Option<ErrorKind>) -> SlowRequest {
    let due_ns = 3 * SECOND;
    SlowRequest {
        phase: 1,
        work: 0,
        class: OpClass::Get,
        seq: 17,
        key: "r/000017".to_owned(),
        response_ns: ms * 1_000_000,
        parts: vec![(Part::Build, 20_000), (Part::Wait, ms * 1_000_000 - 20_000)],
        due_ns,
        started_ns: due_ns + 20_000,
        first_byte_ns: due_ns + ms * 1_000_000,
        done_ns: due_ns + ms * 1_000_000,
        bytes: 4096,
        worker: 3,
        endpoint: 1,
        connection: 5,
        local_port: 40_000,
        attempts: 1,
        status: if error.is_none() { 200 } else { 0 },
        error,
        request_id: "17A9C0FFEE".to_owned(),
        extended_id: String::new(),
    }
}

pub(super) fn write_run(dir: &Path) {
    write_run_with(dir, |_| {});
}

pub(super) fn write_run_with(dir: &Path, change: impl FnOnce(&mut Manifest)) {
    let mut m = manifest(plan(120.0, 40));
    change(&mut m);
    m.scenario_hash = "0123456789abcdef".to_owned();
    m.scale_note = "the corpus is reduced to fit into 512 MiB".to_owned();
    m.driver.endpoints = ["http://127.0.0.1:9000", "http://127.0.0.1:9001"]
        .map(str::to_owned)
        .to_vec();
    m.driver.settings = vec![("addressing".to_owned(), "path".to_owned())];
    let mut sink = RunDirSink::create(dir, m).unwrap();
    let mut prepare = interval(0);
    (prepare.phase, prepare.start_ns, prepare.end_ns) = (0, 0, SECOND);
    sink.interval(&prepare);
    sink.event(&Event::PhaseEnded {
        phase: 0,
        at_ns: SECOND,
        end: PhaseEnd::Complete,
        drained_ns: SECOND,
    });
    sink.event(&Event::Warning {
        message: "the client shares the machine with the store".to_owned(),
    });
    sink.event(&Event::Failure {
        phase: 1,
        class: OpClass::Get,
        key: "r/000042".to_owned(),
        error: "server (500): InternalError".to_owned(),
        at_ns: 5 * SECOND,
    });
    (0..40).for_each(|s| sink.interval(&interval(s)));
    sink.slow_requests(&[slow(4, None)]);
    sink.slow_requests(&[slow(9, Some(ErrorKind::Timeout)), slow(5, None)]);
    sink.set_op_log(OpLogFacts {
        complete: true,
        rows: 4800,
        dropped: 39,
        files: 2,
        ..OpLogFacts::default()
    });
    sink.event(&Event::PhaseEnded {
        phase: 1,
        at_ns: 41 * SECOND,
        end: PhaseEnd::TimeLimit,
        drained_ns: 41 * SECOND,
    });
    sink.finish(RunEnd {
        status: Status::Finished,
        ended_unix_ns: 1_767_323_090 * SECOND,
        error: None,
    })
    .unwrap();
}

pub(super) fn result() -> RunResult {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("run");
    write_run(&dir);
    analyze(&dir).unwrap()
}
