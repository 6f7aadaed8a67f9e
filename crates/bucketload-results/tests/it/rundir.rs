//! Run directories: reading returns what was written, and at most the last line can be lost.

use std::fs;
use std::path::Path;

use crate::support::{Shape, end, feed, manifest, plan};
use bucketload_core::endpoint::EndpointTally;
use bucketload_core::error::ErrorKind;
use bucketload_core::op::OpClass;
use bucketload_core::record::{ConnectTimes, OpRecord, Outcome};
use bucketload_core::sink::{Event, PhaseEnd, RunSink};
use bucketload_core::tally::{Gauges, Interval, Tally};
use bucketload_results::rundir::{Manifest, RunDir, RunEnd, Status};
use bucketload_results::{ResultsError, RunDirSink};
use proptest::prelude::*;

fn read_all(dir: &Path) -> (Vec<Interval>, bucketload_results::rundir::Damage) {
    let mut reader = RunDir::open(dir).unwrap().intervals().unwrap();
    let mut all = Vec::new();
    while let Some(interval) = reader.next_interval().unwrap() {
        all.push(interval);
    }
    (all, reader.into_damage())
}

fn operation() -> impl Strategy<Value = OpRecord> {
    (
        0u16..3,
        0usize..20,
        1u64..1 << 43,
        0u64..1 << 40,
        0usize..20,
        0u64..5,
    )
        .prop_map(|(work, class, ns, bytes, outcome, extra)| OpRecord {
            work,
            class: OpClass::ALL[class],
            endpoint: (extra % 3) as u16,
            due_ns: 1000,
            taken_ns: 1000 + extra,
            dispatch_ns: extra / 2,
            held_ns: extra / 3,
            started_ns: 1010 + extra,
            connect: ConnectTimes {
                tls_ns: extra / 4,
                ..ConnectTimes::default()
            },
            sent_ns: 1010 + extra + ns / 3,
            first_byte_ns: if extra == 3 { 0 } else { 1010 + ns / 2 },
            done_ns: 1010 + extra + ns,
            bytes,
            outcome: ErrorKind::ALL
                .get(outcome)
                .map_or(Outcome::Ok, |&kind| Outcome::Failed(kind)),
            attempts: 1 + extra as u32,
            ..OpRecord::BLANK
        })
}

fn interval(phase: u16) -> impl Strategy<Value = Interval> {
    (
        prop::collection::vec(operation(), 0..40),
        prop::collection::vec((0u64..1 << 30, 0u64..1 << 30, 0u64..1 << 30), 0..4),
        any::<(u64, u64, i64)>(),
    )
        .prop_map(move |(ops, connects, (a, b, c))| {
            let mut tally = Tally::new();
            tally.endpoints = EndpointTally::all((a % 4) as usize);
            for class in [OpClass::Get, OpClass::Put] {
                tally.size_cells(0, class, &[1, 1 << 20, 1 << 39]);
            }
            ops.iter().for_each(|op| tally.record(op));
            // Empty classes are not written.
            tally.sizes.retain(|cell| cell.ok > 0);
            for (dns_ns, tcp_ns, tls_ns) in connects {
                tally.record_connect(ConnectTimes {
                    dns_ns,
                    tcp_ns,
                    tls_ns,
                });
            }
            for op in ops.iter().take(9) {
                let span = tally.span_mut(0, (op.bytes % 3) as u16);
                span.makespan.record(op.done_ns);
                span.failed += op.bytes % 2;
            }
            tally.jobs.begun = a / 5;
            tally.replay.shed = b / 7;
            for (i, count) in tally.kvcache.sums().into_iter().enumerate() {
                *count = b / (i as u64 + 2);
            }
            tally.shaped.record(b);
            (
                tally.offered,
                tally.offered_bytes,
                tally.issued,
                tally.capped,
            ) = (a, b, a / 2, b / 3);
            Interval {
                phase,
                index: a % 1000,
                start_ns: a / 2,
                end_ns: a / 2 + 1,
                tally,
                gauges: Gauges {
                    in_flight: a,
                    jobs: b,
                    machine_total_ns: b,
                    wall_offset_ns: c,
                    ..Gauges::default()
                },
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn intervals_written_are_intervals_read(
        first in prop::collection::vec(interval(0), 0..4),
        second in prop::collection::vec(interval(3), 0..4),
    ) {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("run");
        let mut sink = RunDirSink::create(&dir, manifest(plan(100.0, 10))).unwrap();
        let written: Vec<_> = first.into_iter().chain(second).collect();
        written.iter().for_each(|i| sink.interval(i));
        prop_assert!(sink.error().is_none());
        let (read, damage) = read_all(&dir);
        prop_assert_eq!(read, written);
        prop_assert!(damage.is_none());
    }
}

fn small_run(dir: &Path) {
    let shape = Shape {
        seconds: 4,
        rate: 20.0,
        ..Shape::default()
    };
    let mut sink = RunDirSink::create(dir, manifest(plan(20.0, 4))).unwrap();
    feed(&mut sink, &shape);
    end(&mut sink, &shape, PhaseEnd::TimeLimit);
    let done = RunEnd {
        status: Status::Finished,
        ended_unix_ns: 9,
        error: None,
    };
    sink.finish(done).unwrap();
}

/// A process can die between any two bytes: the histogram log is written before the line that
/// names it, so every prefix of the line file with a log at least as long is possible.
#[test]
fn every_prefix_of_a_run_is_readable() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("run");
    small_run(&dir);
    let (whole, _) = read_all(&dir);
    let path = dir.join("intervals.jsonl");
    let bytes = fs::read(&path).unwrap();
    let mut cuts: Vec<usize> = (0..bytes.len()).step_by(97).collect();
    // And around every line end.
    let ends = bytes.iter().enumerate().filter(|(_, b)| **b == b'\n');
    cuts.extend(ends.flat_map(|(i, _)| [i, i + 1]));
    for cut in cuts {
        fs::write(&path, &bytes[..cut]).unwrap();
        let complete = bytes[..cut].iter().filter(|&&b| b == b'\n').count();
        let (read, damage) = read_all(&dir);
        assert_eq!(read, whole[..complete]);
        let torn = cut > 0 && bytes[cut - 1] != b'\n';
        assert_eq!(!damage.torn.is_empty(), torn, "cut at {cut}");
        assert!(damage.lines.is_empty() && damage.histograms == 0);
    }
}

/// The same with a real process and a real kill.
#[test]
fn a_killed_process_leaves_a_readable_directory() {
    const DIRECTORY: &str = "BUCKETLOAD_TEST_KILLED_RUN";
    const NAME: &str = "rundir::a_killed_process_leaves_a_readable_directory";
    if let Some(dir) = std::env::var_os(DIRECTORY) {
        // The child: writes until it is killed.
        let mut sink = RunDirSink::create(dir, manifest(plan(20.0, 4))).unwrap();
        loop {
            feed(&mut sink, &Shape::default());
        }
    }
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("run");
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", NAME])
        .env(DIRECTORY, &dir)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let written = || fs::metadata(dir.join("intervals.jsonl")).map_or(0, |m| m.len());
    let begun = std::time::Instant::now();
    while written() < 50_000 {
        assert!(begun.elapsed().as_secs() < 60, "the child writes nothing");
        assert_eq!(child.try_wait().unwrap(), None, "the child ended by itself");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let (read, damage) = read_all(&dir);
    assert!(read.len() > 10);
    assert!(
        damage.lines.is_empty() && damage.histograms == 0,
        "{damage:?}"
    );
    let result = bucketload_results::analyze(&dir).unwrap();
    assert_eq!(result.run.status, Status::Running);
    assert_eq!(result.verdict.word.name(), "INCOMPLETE");
}

#[test]
fn damage_inside_a_file_is_skipped_and_reported() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("run");
    small_run(&dir);
    let path = dir.join("intervals.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let broken = text.replacen(lines[2], "{\"phase\":", 1);
    fs::write(&path, broken).unwrap();
    let (read, damage) = read_all(&dir);
    assert_eq!(read.len(), lines.len() - 1);
    assert_eq!(damage.lines, ["intervals.jsonl:3"]);

    // A shortened histogram log loses histograms, not counters.
    let hist = dir.join("hist/phase-1.hlog");
    let log = fs::read(&hist).unwrap();
    fs::write(&hist, &log[..log.len() - 100]).unwrap();
    let (read, damage) = read_all(&dir);
    assert!(damage.histograms > 0);
    let last = read.last().unwrap();
    assert!(last.tally.ok() > 0);

    fs::remove_file(&hist).unwrap();
    let (_, damage) = read_all(&dir);
    assert!(damage.histograms > 10);
}

#[test]
fn events_round_trip_and_a_killed_run_says_running() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("deep/run");
    let mut sink = RunDirSink::create(&dir, manifest(plan(100.0, 10))).unwrap();
    let events = [
        Event::PhaseStarted { phase: 0, at_ns: 5 },
        Event::Warning {
            message: "line\nbreak \"quoted\"".to_owned(),
        },
        Event::Failure {
            phase: 0,
            class: OpClass::Get,
            key: "a/b".to_owned(),
            error: "server (500): no".to_owned(),
            at_ns: 6,
        },
        Event::PhaseEnded {
            phase: 0,
            at_ns: 7,
            end: PhaseEnd::Complete,
            drained_ns: 8,
        },
    ];
    events.iter().for_each(|e| sink.event(e));
    drop(sink);
    let run = RunDir::open(&dir).unwrap();
    assert_eq!(run.manifest().status, Status::Running);
    let (read, damage) = run.events().unwrap();
    assert_eq!(read, events);
    assert!(damage.is_none());
}

#[test]
fn the_manifest_round_trips_without_secrets() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("run");
    let mut m = manifest(plan(100.0, 10));
    m.target = "https://user:hunter2@host/b".to_owned();
    m.driver.settings = vec![("secret_key".to_owned(), "hunter2".to_owned())];
    m.driver.endpoints = vec!["https://a:hunter2@host".to_owned()];
    m.workload_source = "secret_access_key = \"hunter2\"\n".to_owned();
    m.command_line = ["x", "--secret-key", "hunter2"].map(str::to_owned).to_vec();
    let sink = RunDirSink::create(&dir, m.clone()).unwrap();
    sink.finish(RunEnd {
        status: Status::Aborted,
        ended_unix_ns: 12,
        error: Some("https://u:hunter2@h: refused".to_owned()),
    })
    .unwrap();
    let text = fs::read_to_string(dir.join("run.json")).unwrap();
    assert!(!text.contains("hunter2"), "{text}");
    let read = Manifest::read(&dir).unwrap();
    assert_eq!((read.status, read.ended_unix_ns), (Status::Aborted, 12));
    assert_eq!((read.plan, read.scenario_hash), (m.plan, m.scenario_hash));
}

#[test]
fn errors_name_the_file_and_the_remedy() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("run");
    assert!(matches!(RunDir::open(&dir), Err(ResultsError::NoRun(_))));
    small_run(&dir);
    let again = RunDirSink::create(&dir, manifest(plan(1.0, 1)))
        .err()
        .unwrap();
    assert!(again.to_string().contains("not empty"));
    let path = dir.join("run.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("\"format\": 1", "\"format\": 99", 1)).unwrap();
    let newer = RunDir::open(&dir).unwrap_err().to_string();
    assert!(
        newer.contains("format 99") && newer.contains("0.1.0"),
        "{newer}"
    );
    fs::write(&path, &text[..text.len() / 2]).unwrap();
    let torn = RunDir::open(&dir).unwrap_err().to_string();
    assert!(torn.contains("run.json") && torn.contains("line"), "{torn}");
}

#[test]
fn a_failed_write_is_reported_and_stops_writing() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("run");
    let mut sink = RunDirSink::create(&dir, manifest(plan(20.0, 4))).unwrap();
    // The log of phase 0 cannot be opened: a directory stands in its place.
    fs::create_dir(dir.join("hist/phase-0.hlog")).unwrap();
    feed(
        &mut sink,
        &Shape {
            seconds: 1,
            ..Shape::default()
        },
    );
    assert!(sink.error().is_some());
    let outcome = sink.finish(RunEnd {
        status: Status::Finished,
        ended_unix_ns: 1,
        error: None,
    });
    assert!(outcome.unwrap_err().to_string().contains("phase-0.hlog"));
    assert_eq!(read_all(&dir).0.len(), 0);
}
