//! Reading returns what was written, in both formats.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bucketload_core::driver::RequestRoute;
use bucketload_core::error::ErrorKind;
use bucketload_core::op::{ByteRange, Op, OpClass};
use bucketload_core::oplog::OpLog;
use bucketload_core::payload::PayloadKind;
use bucketload_core::plan::{PhaseKind, PhasePlan, Plan, RetryPlan, WorkPlan};
use bucketload_core::record::{AnswerIds, ConnectTimes, OpRecord, Outcome};
use bucketload_core::trail::Trail;

use super::{OpLogHeader, write_with};
use crate::oplog::{COLUMNS, Column, OpLogFormat, Rows, read};

fn plan() -> Plan {
    let phase = |name: &str| PhasePlan {
        name: name.into(),
        kind: PhaseKind::Run,
        works: vec![WorkPlan {
            name: "w, \"x\"".into(),
            model: bucketload_core::plan::ModelPlan::Closed(bucketload_core::plan::ClosedPlan {
                workers: 1,
                think: bucketload_core::plan::GapLaw::None,
            }),
            mix: Vec::new(),
        }],
        limits: Default::default(),
        steady_state: false,
        stop: None,
        accounting: Default::default(),
    };
    Plan {
        workload: "t".into(),
        profile: String::new(),
        compat: Default::default(),
        size_scale: Default::default(),
        seed: 1,
        scale: 1.0,
        payload: PayloadKind::Zeros,
        verify: false,
        timeout_ns: 1,
        retry: RetryPlan {
            max_attempts: 1,
            backoff_ns: 0,
            max_backoff_ns: 0,
        },
        not_found_is_failure: true,
        keysets: Vec::new(),
        phases: vec![phase("first"), phase("second")],
    }
}

/// The `i`-th operation. Every kind of cell occurs with and without a value.
fn trail(i: u64) -> Trail {
    let class = [OpClass::Get, OpClass::Put, OpClass::RangeGet, OpClass::Copy][(i % 4) as usize];
    let mut ids = AnswerIds::default();
    if i.is_multiple_of(3) {
        ids.request_id.set(format!("ID{i}").as_bytes());
    }
    Trail {
        record: OpRecord {
            work: 0,
            class,
            worker: i as u32 % 5,
            endpoint: (i % 2) as u16,
            due_ns: i * 1000,
            taken_ns: i * 1000 + 10,
            dispatch_ns: 3,
            blocked_ns: 2,
            started_ns: i * 1000 + 100,
            held_ns: 40,
            connect: ConnectTimes {
                dns_ns: 1,
                tcp_ns: 2,
                tls_ns: 3,
            },
            sent_ns: i * 1000 + 120,
            first_byte_ns: if i.is_multiple_of(5) {
                0
            } else {
                i * 1000 + 200
            },
            done_ns: i * 1000 + 250,
            bytes: i,
            outcome: match i % 7 {
                0 => Outcome::Failed(ErrorKind::Throttled),
                _ => Outcome::Ok,
            },
            attempts: 1 + (i % 2) as u32,
        },
        op: Op {
            seq: i,
            class,
            entry: 0,
            keyset: (i % 2) as u16,
            key: i,
            source_key: i + 1,
            source_keyset: 1,
            version: 2,
            size: if i.is_multiple_of(2) {
                Op::UNKNOWN_SIZE
            } else {
                77
            },
            range: Some(ByteRange { offset: i, len: 9 }),
            count: 0,
            pages: 0,
        },
        route: RequestRoute {
            endpoint: (i % 2) as u16,
            local_port: (i % 3) as u16 * 1000,
            connection: i % 3,
        },
        status: if i.is_multiple_of(5) { 0 } else { 200 },
        ids,
    }
}

fn log(dir: &Path, format: OpLogFormat, rows: u64, file_rows: u64) -> crate::oplog::OpLogFacts {
    let (log, batches) = OpLog::sized(1, 2, 100);
    let header = OpLogHeader {
        run_id: "run".into(),
        bucket: "bucket".into(),
        epoch_unix_ns: 1_700_000_000_000_000_000,
        endpoints: vec!["http://a".into(), "http://b".into()],
    };
    let dropped: Arc<AtomicU64> = log.dropped();
    std::thread::scope(|scope| {
        let plan = plan();
        let (header, dropped) = (&header, &dropped);
        let writer = scope.spawn(move || {
            write_with(dir, format, header, &plan, &batches, dropped, file_rows).unwrap()
        });
        // One producer per batch: a batch is handed over without loss when its producer ends.
        for first in (0..rows).step_by(100) {
            let mut producer = log.producer((first / 100 % 2) as u16, 4);
            (first..rows.min(first + 100)).for_each(|i| {
                producer.push(
                    trail(i),
                    &format!("k,\"{i}\""),
                    if i % 4 == 3 { "src" } else { "" },
                )
            });
        }
        drop(log);
        writer.join().unwrap()
    })
}

fn all(dir: &Path) -> Vec<Rows> {
    let names = COLUMNS.map(|(name, _)| name);
    let mut all = Vec::new();
    read(dir, &names, |rows| all.push(rows.clone())).unwrap();
    all
}

/// All rows as text, to compare the formats.
fn flat(parts: &[Rows]) -> Vec<Vec<String>> {
    let cell = |column: &Column, i: usize| match column {
        Column::Ints(values) => values[i].map_or_else(String::new, |v| v.to_string()),
        Column::Texts(values) => values[i].clone().unwrap_or_default(),
    };
    let rows = parts.iter().flat_map(|p| (0..p.len).map(move |i| (p, i)));
    rows.map(|(p, i)| p.columns.iter().map(|c| cell(c, i)).collect())
        .collect()
}

#[test]
fn both_formats_hold_every_cell() {
    let (parquet, csv) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let facts = log(parquet.path(), OpLogFormat::Parquet, 1234, 500);
    assert!(facts.complete && facts.dropped == 0, "{facts:?}");
    assert_eq!((facts.rows, facts.files), (1234, 3));
    log(csv.path(), OpLogFormat::CsvZst, 1234, 500);
    let (parquet, csv) = (all(parquet.path()), all(csv.path()));
    assert_eq!(parquet.len(), 3);
    let rows = flat(&parquet);
    assert_eq!(rows, flat(&csv));
    assert_eq!(rows.len(), 1234);
    let at = |name: &str| COLUMNS.iter().position(|(n, _)| *n == name).unwrap();
    let row = |i: usize| move |name: &str| rows[i][at(name)].clone();
    let odd = row(7);
    for (name, value) in [
        ("seq", "7"),
        ("phase", "first"),
        ("work", "w, \"x\""),
        ("class", "copy"),
        ("key", "k,\"7\""),
        ("source_key", "src"),
        ("endpoint", "http://b"),
        ("thread", "4"),
        ("due_ns", "7000"),
        ("first_byte_ns", "7200"),
        ("queue_ns", "10"),
        ("retry_ns", "34"),
        ("build_ns", "50"),
        ("send_ns", "20"),
        ("wait_ns", "80"),
        ("body_ns", "50"),
        ("outcome", "throttled"),
        ("status", "200"),
        ("size", ""),
        ("request_id", ""),
    ] {
        assert_eq!(odd(name), value, "{name}");
    }
    // Nulls are nulls, not zeros or empty texts.
    let Column::Ints(first_bytes) = &parquet[0].columns[at("first_byte_ns")] else {
        panic!("first_byte_ns is a number");
    };
    assert_eq!(first_bytes[5], None);
    assert_eq!(parquet[0].columns[at("request_id")].text(1), None);
    assert_eq!(parquet[0].columns[at("request_id")].text(3), Some("ID3"));
    assert_eq!(parquet[0].columns[at("range_length")].int(2), Some(9));
}

#[test]
fn a_killed_run_leaves_its_finished_files_readable() {
    let dir = tempfile::tempdir().unwrap();
    log(dir.path(), OpLogFormat::Parquet, 600, 200);
    let last = dir.path().join("ops-00002.parquet");
    let bytes = std::fs::read(&last).unwrap();
    std::fs::write(dir.path().join("ops-00002.parquet.part"), &bytes[..50]).unwrap();
    std::fs::remove_file(last).unwrap();
    assert_eq!(flat(&all(dir.path())).len(), 400);
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(read(empty.path(), &["key"], |_| ()).unwrap(), 0);
}
