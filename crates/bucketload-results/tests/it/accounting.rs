//! Figures that only some phases have, from the run directory to every output format: backlog, short time scales,
//! streams, size classes, gates, and the identity of the workload.

use crate::support::{SECOND, manifest, plan, record};
use bucketload_core::error::ErrorKind;
use bucketload_core::op::OpClass;
use bucketload_core::plan::{Accounting, ArrivalLaw, ModelPlan, OpenPlan};
use bucketload_core::record::Outcome;
use bucketload_core::sink::{ActiveSum, Event, PhaseEnd, RunSink, StreamSum};
use bucketload_core::tally::{Gauges, Interval, Tally};
use bucketload_results::output::{TextOptions, csv, json, jsonl, text};
use bucketload_results::report::html;
use bucketload_results::result::{PhaseResult, RunResult};
use bucketload_results::rundir::{RunEnd, Status};
use bucketload_results::{RunDirSink, analyze};

const SECONDS: u64 = 30;
/// Operations per second; in each second, all are due in the first hundredth and end evenly spaced.
const PER_SECOND: u64 = 100;

/// A run whose main phase records everything. Of every hundred operations, `failed` fail; the backlog in second `s` is
/// `s / 2` seconds.
fn run(failed: u64, max_failed: impl Into<Option<f64>>, compat: &str) -> RunResult {
    let mut plan = plan(100.0, SECONDS);
    plan.compat = compat.to_owned();
    plan.phases[1].steady_state = false;
    plan.phases[1].accounting = Accounting {
        streams: false,
        size_classes: vec![1, 1 << 20],
        max_failed: max_failed.into(),
        ..Accounting::default()
    };
    plan.phases[1].works[0].model = ModelPlan::Open(OpenPlan {
        arrival: ArrivalLaw::PeriodicBatch {
            clients: 2,
            period_ns: 5 * SECOND,
            min: 10,
            max: 100,
            spread_ns: 0,
            gap_ns: 0,
        },
        max_in_flight: 600,
    });
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("run");
    let mut sink = RunDirSink::create(&dir, manifest(plan)).unwrap();
    sink.event(&Event::PhaseStarted { phase: 1, at_ns: 0 });
    for s in 0..SECONDS {
        let start_ns = s * SECOND;
        let mut tally = Tally::new();
        tally.fine.begin(start_ns, SECOND);
        tally.size_cells(0, OpClass::Put, &[1, 1 << 20]);
        for i in 0..PER_SECOND {
            let outcome = if i < failed {
                Outcome::Failed(ErrorKind::Server)
            } else {
                Outcome::Ok
            };
            let mut op = record(OpClass::Put, start_ns, (i + 1) * SECOND / 101, outcome);
            // A third each of empty, small and large objects.
            op.bytes = [0, 1000, 2 << 20][(i % 3) as usize];
            tally.record(&op);
            tally.fine.offered(op.due_ns);
        }
        (tally.offered, tally.issued) = (PER_SECOND, PER_SECOND);
        sink.interval(&Interval {
            phase: 1,
            index: s,
            start_ns,
            end_ns: start_ns + SECOND,
            tally,
            gauges: Gauges {
                backlog_ns: s * SECOND / 2,
                ..Gauges::default()
            },
        });
    }
    let stream = |worker, first: u64, last: u64| StreamSum {
        work: 0,
        worker,
        first_start_ns: first * SECOND,
        last_stop_ns: last * SECOND,
        ops: 10,
        failed: 0,
        bytes: 10_000,
        busy_ns: 5 * SECOND,
        active: ActiveSum {
            first_start_ns: 5 * SECOND,
            last_stop_ns: 15 * SECOND,
            ops: 5,
            bytes: 5_000,
            busy_ns: 4 * SECOND,
        },
    };
    sink.event(&Event::Streams {
        phase: 1,
        streams: vec![stream(0, 0, 15), stream(1, 5, 20)],
    });
    sink.event(&Event::PhaseEnded {
        phase: 1,
        at_ns: SECONDS * SECOND,
        end: PhaseEnd::TimeLimit,
        drained_ns: SECONDS * SECOND,
    });
    let status = Status::Finished;
    sink.finish(RunEnd {
        status,
        ended_unix_ns: 1,
        error: None,
    })
    .unwrap();
    analyze(&dir).unwrap()
}

fn main_phase(result: &RunResult) -> &PhaseResult {
    result.measured().next().unwrap()
}

#[test]
fn the_backlog_follows_the_readings() {
    let result = run(0, 0.05, "");
    let backlog = main_phase(&result).backlog.unwrap();
    assert_eq!((backlog.max_s, backlog.end_s), (14.5, 14.5));
    assert!((backlog.mean_s - 7.25).abs() < 1e-9, "{backlog:?}");
    // 14.5 s span two whole periods and part of a third: at most three batches are outstanding.
    assert_eq!(
        (backlog.period_s, backlog.max_batches),
        (Some(5.0), Some(3))
    );
    let series = &main_phase(&result).series;
    assert_eq!(series.backlog_s.len(), series.t_s.len());
    let shown = text(&result, TextOptions::default());
    assert!(
        shown.contains("at most 3 outstanding batches per client"),
        "{shown}"
    );
    assert!(html(&result).contains("age of the oldest outstanding arrival"));
}

#[test]
fn short_time_scales_distinguish_bursts_from_an_even_stream() {
    let result = run(0, 0.05, "");
    let dispersion = &main_phase(&result).throughput.as_ref().unwrap().dispersion;
    let at = |s: f64| {
        dispersion
            .iter()
            .find(|d| (d.window_s - s).abs() < 1e-9)
            .unwrap()
    };
    // All 100 of a second fall into one hundredth: variance over mean 99·n/(n - 1), n = 3000.
    let burst = at(0.01).offered.unwrap();
    assert!((burst - 99.0 * 3000.0 / 2999.0).abs() < 1e-9, "{burst}");
    assert!(at(0.01).completed.unwrap() < 0.1, "one per hundredth");
    assert_eq!(at(1.0).offered, Some(0.0), "the same every second");
    assert!(dispersion.iter().any(|d| (d.window_s - 10.0).abs() < 1e-9));
}

#[test]
fn size_classes_are_separate() {
    let result = run(0, 0.05, "");
    let classes = &main_phase(&result).size_classes;
    let ranges: Vec<_> = classes
        .iter()
        .map(|c| (c.from_bytes, c.to_bytes, c.ok, c.bytes))
        .collect();
    assert_eq!(
        ranges,
        [
            (0, Some(1), 34 * SECONDS, 0),
            (1, Some(1 << 20), 33 * SECONDS, 33 * SECONDS * 1000),
            (1 << 20, None, 33 * SECONDS, (33 * SECONDS) << 21),
        ]
    );
    assert!(
        classes
            .iter()
            .all(|c| c.response.n == c.ok && c.service.n == c.ok)
    );
    let shown = text(&result, TextOptions::default());
    for name in ["put empty", "put 1 B to 1.00 MiB", "put from 1.00 MiB"] {
        assert!(shown.contains(name), "{name} in {shown}");
    }
}

#[test]
fn streams_and_gates_reach_every_output() {
    for (failed, passed) in [(5, true), (6, false)] {
        let result = run(failed, 0.05, "");
        let phase = main_phase(&result);
        let gate = &phase.gates[0];
        assert_eq!((gate.passed, gate.limit), (passed, 0.05));
        assert!((gate.measured - failed as f64 / 100.0).abs() < 1e-12);
        let streams = phase.streams.unwrap();
        assert_eq!(streams.net_bytes_per_s, 2.0 * 5_000.0 / 4.0);
        assert_eq!(streams.net_with_gap_bytes_per_s, 2.0 * 5_000.0 / 10.0);
        assert_eq!(streams.simplified_bytes_per_s, 1_000.0);
        assert!((streams.gap - 0.6).abs() < 1e-12);
        // Skews of 5 s and 5 s in 20 s.
        assert!(streams.is_skewed());
        let shown = text(&result, TextOptions::default());
        assert!(shown.contains("mean little"), "{shown}");
        assert_eq!(
            shown.contains("FAILED: share of failed"),
            !passed,
            "{shown}"
        );
        assert!(json(&result).contains("\"net_with_gap_bytes_per_s\": 1000.0"));
        assert!(html(&result).contains("net throughput with gaps"));
    }
}

#[test]
fn a_phase_with_mostly_failed_operations_is_not_a_success() {
    for (failed, shown) in [(0, false), (50, false), (51, true)] {
        let result = run(failed, None, "");
        let gates = &main_phase(&result).gates;
        assert_eq!(gates.iter().any(|gate| !gate.passed), shown, "{failed}");
        assert_eq!(gates.len(), usize::from(shown), "{failed}");
    }
    // A workload may state that it expects failures.
    let result = run(90, 1.0, "");
    assert!(main_phase(&result).gates[0].passed);
}

/// docs/spec/statistics.md section 10: the identity of a result is in its header, in every format.
#[test]
fn every_output_identifies_the_measurement() {
    let result = run(0, 0.05, "ostorebench");
    let run = &result.run;
    assert_eq!(
        (run.compat.as_str(), run.schedule_hash.len()),
        ("ostorebench", 16)
    );
    let popularity = &run.popularity[0];
    assert_eq!(
        (popularity.law.as_str(), popularity.objects),
        ("zipf(0.99)", 1000)
    );
    assert_eq!(popularity.top.len(), 3);
    let outputs = [
        text(&result, TextOptions::default()),
        json(&result),
        jsonl(&result),
        csv(&result),
        html(&result),
    ];
    for output in outputs {
        for part in [
            "ostorebench",
            &run.schedule_hash,
            &run.scenario_hash,
            "zipf(0.99)",
            "random (unique",
        ] {
            assert!(output.contains(part), "{part} is missing in {output:.3000}");
        }
    }
}
