//! The analysis of whole runs, from their directories.

use std::path::Path;

use crate::support::{SECOND, Shape, end, feed, manifest, plan, record};
use bucketload_core::error::ErrorKind;
use bucketload_core::op::OpClass;
use bucketload_core::plan::PhaseKind;
use bucketload_core::record::Outcome;
use bucketload_core::sink::{Event, PhaseEnd, RunSink};
use bucketload_core::stats::steady::State;
use bucketload_core::tally::{Gauges, Interval, Tally};
use bucketload_core::verdict::{Limit, Word};
use bucketload_results::result::{PhaseResult, RunResult};
use bucketload_results::rundir::{RunEnd, Status};
use bucketload_results::{RunDirSink, analyze};

/// Runs `shape` and analyses its directory.
fn run(shape: &Shape) -> RunResult {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("run");
    finish(sink(&dir, shape), shape, PhaseEnd::TimeLimit);
    analyze(&dir).unwrap()
}

fn sink(dir: &Path, shape: &Shape) -> RunDirSink {
    let rate = if shape.closed { 0.0 } else { shape.rate };
    let mut sink = RunDirSink::create(dir, manifest(plan(rate, shape.seconds))).unwrap();
    feed(&mut sink, shape);
    sink
}

fn finish(mut sink: RunDirSink, shape: &Shape, how: PhaseEnd) {
    end(&mut sink, shape, how);
    sink.finish(RunEnd {
        status: Status::Finished,
        ended_unix_ns: 1,
        error: None,
    })
    .unwrap();
}

fn main_phase(result: &RunResult) -> &PhaseResult {
    result.measured().next().expect("a measuring phase")
}

fn rules(result: &RunResult) -> Vec<&str> {
    result
        .verdict
        .reasons
        .iter()
        .map(|r| r.rule.as_str())
        .collect()
}

#[test]
fn a_steady_open_loop_is_valid_and_its_figures_are_those_put_in() {
    let result = run(&Shape::default());
    assert_eq!(
        result.verdict.word,
        Word::Valid,
        "{:?}",
        result.verdict.reasons
    );
    assert!(
        result.verdict.notes.is_empty(),
        "{:?}",
        result.verdict.notes
    );
    assert!(result.damage.is_none());
    assert_eq!(result.run.started, "2026-01-02T03:04:05Z");
    let phase = main_phase(&result);
    assert_eq!(
        (phase.name.as_str(), phase.kind, phase.open_loop),
        ("main", PhaseKind::Run, true)
    );
    assert_eq!(
        phase.load,
        ["open loop, Poisson 200/s, at most 1024 in flight"]
    );

    let rate = phase.rates.ops_per_s;
    // Poisson counts with mean 200 over up to 60 s: standard error 1.9.
    assert!((rate.mean - 200.0).abs() < 8.0, "{rate:?}");
    assert!(rate.half_width.unwrap() < 8.0 && rate.is_sound());
    assert!((phase.rates.bytes_per_s.mean / rate.mean - 4096.0).abs() < 1e-6);

    let get = phase
        .classes
        .iter()
        .find(|c| c.class == OpClass::Get)
        .unwrap();
    let p50 = get.service.percentile(0.5).unwrap();
    let (low, high) = p50.ci_ns.unwrap();
    assert!((low..=high).contains(&2_000_000), "{p50:?}");
    assert_eq!(get.response.n, get.ok);
    let lag = get.response.percentile(0.5).unwrap().value_ns - p50.value_ns;
    assert!(lag.abs_diff(50_000) < 10_000, "{lag}");
    assert_eq!(phase.lag.max_ns, 50_000);

    // 0.2 s of load CPU per 200 operations; the process uses 1 % more.
    let cpu = phase.client.load_cpu_us_per_op.unwrap();
    assert!((cpu - 1000.0).abs() < 50.0, "{cpu}");
    assert!((phase.client.cpu_us_per_op.unwrap() / cpu - 1.05).abs() < 1e-6);
    assert!((phase.client.busiest_thread.unwrap() - 0.2).abs() < 1e-9);
    assert!((phase.client.machine_busy.unwrap() - 0.1).abs() < 1e-9);
    assert!((phase.client.headroom.unwrap() - 100.0).abs() < 5.0);
    // The load thread is busy to 20 %: whatever the null target allows, five times the rate is the limit.
    assert!((phase.client.headroom_factor.unwrap() - 5.0).abs() < 1e-6);
    assert!((phase.client.used_share.unwrap() - 0.2).abs() < 1e-9);
    assert_eq!(phase.client.headroom_limit, Some(Limit::LoadThread));
    let summary = &result.summary;
    assert_eq!(summary.headroom_limit, Some(Limit::LoadThread));
    assert_eq!((summary.verdict, summary.failed), (Some(Word::Valid), 0));
    let rate = summary.figures["ops_per_s"];
    assert_eq!(rate, phase.rates.ops_per_s.mean);
    let get = &phase.classes[0];
    let p99 = get.response.percentile(0.99).unwrap().value_ns;
    assert_eq!(summary.figures["get_p99_ns"], p99 as f64);
    assert_eq!(summary.slo_met, None);
}

#[test]
fn counts_are_conserved() {
    let shape = Shape {
        failed_share: 0.02,
        ..Shape::default()
    };
    let result = run(&shape);
    for phase in &result.phases {
        let t = &phase.totals;
        assert_eq!(phase.series.t_s.len() as u64, t.intervals);
        let sum = |x: &[f64]| x.iter().sum::<f64>();
        // The last interval of the main phase is half a second long.
        let halves = if phase.kind == PhaseKind::Run {
            *phase.series.ops_per_s.last().unwrap() / 2.0
        } else {
            0.0
        };
        assert!((sum(&phase.series.ops_per_s) - halves - t.ok as f64).abs() < 1e-6);
        for class in &phase.classes {
            assert_eq!(
                class.errors.iter().map(|e| e.count).sum::<u64>(),
                class.failed + class.cancelled
            );
            assert_eq!(class.failed_response.n, class.failed);
            let columns: u64 = class.heat_map.counts.iter().flatten().sum();
            assert_eq!(columns, class.over_time.n.iter().sum::<u64>());
            assert_eq!(class.response_cdf.fraction.last(), Some(&1.0));
        }
    }
    let phase = main_phase(&result);
    if phase.window.warmup_ns == 0 {
        let ok: u64 = phase.classes.iter().map(|c| c.ok).sum();
        assert_eq!(ok, phase.totals.ok);
    }
    let heat: u64 = phase
        .classes
        .iter()
        .flat_map(|c| c.heat_map.counts.iter().flatten())
        .sum();
    assert_eq!(heat, phase.totals.ok);
}

#[test]
fn preparation_is_measured_until_its_work_is_done() {
    let result = run(&Shape::default());
    let prepare = &result.phases[0];
    assert_eq!(
        (prepare.kind, prepare.totals.ok),
        (PhaseKind::Prepare, 1000)
    );
    assert!((prepare.rates.ops_per_s.mean - 1000.0).abs() < 1e-9);
    assert!(prepare.verdict.is_none() && prepare.realised.is_empty());
}

/// Intervals have a fixed length, but the last one of a phase ends with its last operation.
#[test]
fn a_phase_shorter_than_an_interval_has_its_own_length() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("run");
    let mut sink = RunDirSink::create(&dir, manifest(plan(10.0, 2))).unwrap();
    let mut tally = Tally::new();
    (0..500).for_each(|i| tally.record(&record(OpClass::Put, i, 1000, Outcome::Ok)));
    (tally.offered, tally.issued) = (500, 500);
    sink.interval(&Interval {
        phase: 0,
        index: 0,
        start_ns: 20_000_000,
        end_ns: 20_000_000 + SECOND,
        tally,
        gauges: Gauges::default(),
    });
    sink.event(&Event::PhaseEnded {
        phase: 0,
        at_ns: 110_000_000,
        end: PhaseEnd::Complete,
        drained_ns: 120_000_000,
    });
    drop(sink);
    let result = analyze(&dir).unwrap();
    let rate = result.phases[0].rates.ops_per_s;
    assert!((rate.mean - 5000.0).abs() < 1e-6, "{rate:?}");
    assert_eq!(result.phases[0].window.end_ns, 120_000_000);
}

#[test]
fn a_warm_up_is_cut() {
    let shape = Shape {
        service_ms: |t| if t < 12.0 { 6.0 - t / 3.0 } else { 2.0 },
        ..Shape::default()
    };
    let result = run(&shape);
    let phase = main_phase(&result);
    assert_eq!(
        result.verdict.word,
        Word::Valid,
        "{:?}",
        result.verdict.reasons
    );
    let warmup = phase.window.warmup_ns / SECOND;
    assert!((9..=20).contains(&warmup), "{warmup} s");
    assert_eq!(
        phase.window.start_ns,
        phase.started_ns + phase.window.warmup_ns
    );
    let get = phase
        .classes
        .iter()
        .find(|c| c.class == OpClass::Get)
        .unwrap();
    assert!(get.service.percentile(0.5).unwrap().value_ns < 2_100_000);
    assert_eq!(phase.series.t_s.len(), 61);
}

#[test]
fn drift_is_unsteady_and_nothing_is_cut() {
    let shape = Shape {
        service_ms: |t| 2.0 + t / 60.0,
        ..Shape::default()
    };
    let result = run(&shape);
    assert_eq!(
        (result.verdict.word, rules(&result)),
        (Word::Unsteady, vec!["steady"])
    );
    let phase = main_phase(&result);
    assert_eq!((phase.window.warmup_ns, phase.window.intervals), (0, 60));
    assert_eq!(phase.steadiness[0].name, "service p50 of get");
    assert_eq!(phase.steadiness[0].assessment.state, State::NonStationary);
}

#[test]
fn closed_loops_are_judged_by_completed_operations() {
    let steady = run(&Shape {
        closed: true,
        seed: 2,
        ..Shape::default()
    });
    assert_eq!(
        steady.verdict.word,
        Word::Valid,
        "{:?}",
        steady.verdict.reasons
    );
    let phase = main_phase(&steady);
    assert_eq!(phase.steadiness[0].name, "completed operations");
    assert!(steady.verdict.notes[0].contains("closed loop"));
    assert_eq!(phase.throughput.as_ref().unwrap().excess_ops, None);
    let falling = run(&Shape {
        closed: true,
        rate_at: |t| 1.0 - t / 150.0,
        ..Shape::default()
    });
    assert_eq!(falling.verdict.word, Word::Unsteady);
}

#[test]
fn a_growing_backlog_is_an_overload() {
    let result = run(&Shape {
        in_flight: |t| 2.0 + 4.0 * t,
        ..Shape::default()
    });
    assert_eq!(result.verdict.word, Word::Overloaded);
    assert!(rules(&result).contains(&"backlog"));
}

#[test]
fn a_busy_client_or_a_missed_schedule_is_client_bound() {
    let busy = run(&Shape {
        load_cpu_share: 0.9,
        ..Shape::default()
    });
    assert_eq!(
        (busy.verdict.word, rules(&busy)),
        (Word::ClientBound, vec!["V4"])
    );
    let late = run(&Shape {
        sent: 0.9,
        ..Shape::default()
    });
    assert_eq!(
        (late.verdict.word, rules(&late)),
        (Word::ClientBound, vec!["V1"])
    );
}

#[test]
fn a_program_that_never_waits_is_the_limit() {
    // The mean service time is 2.8 ms at 200 operations per second: 0.56 of a core if the program never waits.
    let word = |engine: &str, other_cpu_share| {
        let shape = Shape {
            other_cpu_share,
            ..Shape::default()
        };
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("run");
        let mut manifest = manifest(plan(shape.rate, shape.seconds));
        manifest.driver.engine = engine.to_owned();
        let mut sink = RunDirSink::create(&dir, manifest).unwrap();
        feed(&mut sink, &shape);
        finish(sink, &shape, PhaseEnd::TimeLimit);
        let result = analyze(&dir).unwrap();
        (result.verdict.word, rules(&result).join(" "))
    };
    let bound = (Word::ClientBound, "V4".to_owned());
    assert_eq!(word("cli:mc", 0.52), bound);
    assert_eq!(word("cli:mc", 0.4).0, Word::Valid);
    assert_eq!(word("native", 0.52).0, Word::Valid);
}

#[test]
fn errors_degrade_and_absent_objects_may_be_expected() {
    let shape = Shape {
        failed_share: 0.05,
        ..Shape::default()
    };
    assert_eq!(rules(&run(&shape)), ["V7"]);
    let absent = Shape {
        failure: ErrorKind::NotFound,
        ..shape
    };
    assert_eq!(rules(&run(&absent)), ["V7"]);
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("run");
    let mut m = manifest(plan(absent.rate, absent.seconds));
    m.plan.not_found_is_failure = false;
    let mut sink = RunDirSink::create(&dir, m).unwrap();
    feed(&mut sink, &absent);
    finish(sink, &absent, PhaseEnd::TimeLimit);
    let result = analyze(&dir).unwrap();
    assert_eq!(result.verdict.word, Word::Valid);
    assert_eq!(
        main_phase(&result).classes[0].errors[0].kind,
        ErrorKind::NotFound
    );
}

#[test]
fn a_killed_run_is_analysed_up_to_its_end() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("run");
    drop(sink(&dir, &Shape::default()));
    // The last line is incomplete.
    let path = dir.join("intervals.jsonl");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 10]).unwrap();
    let result = analyze(&dir).unwrap();
    assert_eq!(
        (result.verdict.word, rules(&result)),
        (Word::Incomplete, vec!["incomplete"])
    );
    assert_eq!(result.run.status, Status::Running);
    assert_eq!(result.damage.torn, ["intervals.jsonl"]);
    let phase = main_phase(&result);
    assert_eq!((phase.end, phase.totals.intervals), (None, 60));
    assert!((phase.rates.ops_per_s.mean - 200.0).abs() < 8.0);
    assert!(phase.classes[0].response.n > 1000);
}

/// Killed during clean-up: the measurement remains valid, and a note informs the reader.
#[test]
fn a_run_killed_after_its_measurement_keeps_it() {
    let shape = Shape::default();
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("run");
    let mut sink = sink(&dir, &shape);
    end(&mut sink, &shape, PhaseEnd::TimeLimit);
    drop(sink);
    let result = analyze(&dir).unwrap();
    assert_eq!(result.verdict.word, Word::Valid);
    assert!(result.verdict.notes[0].contains("may remain in the target"));
    // Missing histograms invalidate it.
    std::fs::remove_file(dir.join("hist/phase-1.hlog")).unwrap();
    let result = analyze(&dir).unwrap();
    assert_eq!(result.verdict.word, Word::Incomplete);
    assert!(result.damage.histograms > 0);
}

#[test]
fn a_run_that_never_measured_is_incomplete() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("run");
    drop(RunDirSink::create(&dir, manifest(plan(100.0, 10))).unwrap());
    let result = analyze(&dir).unwrap();
    assert_eq!(result.verdict.word, Word::Incomplete);
    assert!(result.verdict.reasons[0].measured.contains("main"));
    assert!(result.phases.is_empty());
}

#[test]
fn interruption_and_nothing_but_errors_are_incomplete() {
    let shape = Shape::default();
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("run");
    finish(sink(&dir, &shape), &shape, PhaseEnd::Interrupted);
    assert_eq!(analyze(&dir).unwrap().verdict.word, Word::Incomplete);
    let result = run(&Shape {
        failed_share: 1.0,
        ..Shape::default()
    });
    assert_eq!(result.verdict.word, Word::Incomplete);
}

/// The slowest operations of a run end after its window: they count for its latencies, not for its throughput.
#[test]
fn operations_in_the_drain_count_for_latency_not_for_throughput() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("run");
    let mut sink = RunDirSink::create(&dir, manifest(plan(10.0, 2))).unwrap();
    sink.event(&Event::PhaseStarted { phase: 1, at_ns: 0 });
    for (index, slow) in [(0, false), (1, false), (2, true)] {
        let mut tally = Tally::new();
        let service = if slow { SECOND } else { 1_000_000 };
        (0..10).for_each(|i| tally.record(&record(OpClass::Get, i, service, Outcome::Ok)));
        (tally.offered, tally.issued) = if slow { (0, 0) } else { (15, 15) };
        sink.interval(&Interval {
            phase: 1,
            index,
            start_ns: index * SECOND,
            end_ns: (index + 1) * SECOND,
            tally,
            gauges: Gauges::default(),
        });
    }
    sink.event(&Event::PhaseEnded {
        phase: 1,
        at_ns: 2 * SECOND,
        end: PhaseEnd::TimeLimit,
        drained_ns: 3 * SECOND,
    });
    drop(sink);
    let result = analyze(&dir).unwrap();
    let phase = main_phase(&result);
    assert_eq!(phase.rates.ops_per_s.mean, 10.0);
    assert_eq!(
        (phase.window.intervals, phase.window.end_ns),
        (2, 2 * SECOND)
    );
    assert_eq!(phase.classes[0].response.n, 30);
    assert!(phase.classes[0].response.max_ns > SECOND);
    assert_eq!(phase.offered_until_ns, 2 * SECOND);
}

#[test]
fn sizes_and_popularity_match_the_plan() {
    let result = run(&Shape::default());
    let phase = main_phase(&result);
    let get = &phase.realised[0];
    assert_eq!((get.class, get.share_theory), (OpClass::Get, 0.7));
    assert!((get.share - 0.7).abs() < 4.0 * (0.21f64 / get.sample as f64).sqrt());
    let popularity = get.popularity.as_ref().unwrap();
    assert_eq!((popularity.objects, popularity.n), (1000, get.n));
    for top in &popularity.top {
        let theory = top.theory.unwrap();
        assert!(
            (top.realised - theory).abs() < 4.0 * top.standard_error,
            "{top:?}"
        );
    }
    let theory = popularity.effective_theory.unwrap();
    assert!((popularity.effective / theory - 1.0).abs() < 0.1);
    // Reads have the sizes of the objects, weighted by popularity.
    assert!(get.sizes.as_ref().unwrap().n == get.n);
    let put = &phase.realised[1];
    let sizes = put.sizes.as_ref().unwrap();
    assert_eq!((sizes.ks, sizes.mean_bytes), (0.0, 4096.0));
    assert!(put.popularity.is_none());
}

/// Almost three hours with one interval per second.
#[test]
fn long_runs_have_results_of_bounded_size() {
    let shape = Shape {
        seconds: 10_000,
        rate: 3.0,
        ..Shape::default()
    };
    let result = run(&shape);
    let phase = main_phase(&result);
    assert_eq!(phase.totals.intervals, 10_001);
    assert!(phase.series.t_s.len() <= 2000 && phase.series.t_s.len() > 900);
    for class in &phase.classes {
        assert!(class.over_time.t_s.len() <= 240);
        assert_eq!(class.heat_map.counts.len(), class.over_time.t_s.len());
        assert!(class.response_cdf.value_ns.len() <= 5000);
    }
    let json = serde_json::to_string(&result).unwrap();
    assert!(json.len() < 2_000_000, "{}", json.len());
    let back: RunResult = serde_json::from_str(&json).unwrap();
    assert_eq!(back, result);
}
