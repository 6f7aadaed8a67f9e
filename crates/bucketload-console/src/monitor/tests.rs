//! Monitors of long and unusual runs.

use bucketload_core::op::OpClass;
use bucketload_core::plan::{PhaseKind, Plan};
use bucketload_core::sink::{Event, PhaseEnd, RunSink as _};
use bucketload_core::tally::{Gauges, Interval, Tally};
use bucketload_results::rundir::Manifest;
use bucketload_workload::resolve::{Overrides, ResolveContext, resolve};
use bucketload_workload::spec::WorkloadFile;

use super::series::{KEPT_POINTS, LIVE_BINS};
use super::view::PhaseState;
use super::{KEPT_PHASES, RunMonitor};
use crate::web::events::SentPoints;

/// A second, nanoseconds.
const S: u64 = 1_000_000_000;

fn plan() -> Plan {
    let file = WorkloadFile::builtin("get").unwrap();
    let context = ResolveContext {
        memory_budget: None,
    };
    resolve(&file, &Overrides::default(), &context)
        .unwrap()
        .plan
}

fn monitor(phases: usize) -> RunMonitor {
    let mut plan = plan();
    let run = plan
        .phases
        .iter()
        .find(|p| p.kind == PhaseKind::Run)
        .unwrap()
        .clone();
    plan.phases = vec![run; phases];
    RunMonitor::new(&Manifest::new("run", "0", plan))
}

/// A second of a phase: 10 operations per class with these latencies, one failure.
fn interval(phase: u16, index: u64, classes: &[OpClass], latencies: &[u64]) -> Interval {
    let mut tally = Tally::new();
    tally.offered = 11;
    for &class in classes {
        let cell = tally.cell_mut(0, class);
        cell.ok = 10;
        cell.bytes = 10 << 10;
        cell.failed[0] = 1;
        latencies.iter().for_each(|&ns| cell.response.record(ns));
    }
    Interval {
        phase,
        index,
        start_ns: index * S,
        end_ns: (index + 1) * S,
        tally,
        gauges: Gauges::default(),
    }
}

#[test]
fn a_day_long_run_fits_on_a_page() {
    const DAY: u64 = 86_400;
    let classes = &OpClass::ALL[..8];
    let mut monitor = monitor(1);
    // Every 256th second has latencies over five decades, which a long run would have in every second.
    let wide: Vec<u64> = (0..300).map(|n| 20_000 + n * n * n * 37).collect();
    let few = [1_000_000, 1_010_000];
    let mut template = interval(0, 0, classes, &few);
    let mut rich = interval(0, 0, classes, &wide);
    let mut sent = SentPoints::default();
    let mut messages = 0;
    for index in 0..DAY {
        let now = if index % 256 == 0 {
            &mut rich
        } else {
            &mut template
        };
        (now.index, now.start_ns, now.end_ns) = (index, index * S, (index + 1) * S);
        monitor.interval(now);
        // A browser that gets an update now and then.
        if index % 600 == 0 {
            let part = sent.next(&monitor, None);
            messages = messages.max(serde_json::to_vec(&part).unwrap().len());
        }
    }
    assert!(messages < 2 << 20, "{messages} bytes in one message");
    let view = monitor.view(None);
    let points = &view.series.points;
    assert!(points.len() as u64 <= LIVE_BINS && points.len() as u64 > LIVE_BINS / 2);
    assert_eq!(view.run.phases[0].ok, 80 * DAY, "sums are exact");
    // Rates are per second of measured time whatever the width.
    for point in &points[..points.len() - 1] {
        let class = point.classes[0].unwrap();
        assert!((class.ops_per_s - 10.0).abs() < 0.001);
        assert!((class.failed_per_s - 1.0).abs() < 0.001);
        assert_eq!(class.max_ns, *wide.last().unwrap());
    }
    let page = serde_json::to_vec(&view).unwrap().len();
    assert!(page < 2 << 20, "{page} bytes for a page");
}

#[test]
fn percentiles_of_wide_bins_cover_all_their_operations() {
    let mut monitor = monitor(1);
    // 1 ms for ninety seconds, then 100 ms for ten: the p99 of the hundred is 100 ms, whatever the bins.
    for index in 0..LIVE_BINS * 4 {
        let slow = index % 100 >= 90;
        let ns = if slow { 100_000_000 } else { 1_000_000 };
        monitor.interval(&interval(0, index, &[OpClass::Get], &[ns; 10]));
    }
    monitor.event(&Event::PhaseEnded {
        phase: 0,
        at_ns: 0,
        end: PhaseEnd::TimeLimit,
        drained_ns: LIVE_BINS * 4 * S,
    });
    let series = monitor.series(0, 0, 0);
    assert!(series.points.len() as u64 <= KEPT_POINTS);
    assert!(series.width_s >= 12.0);
    let worst = |q: fn(&super::view::ClassPoint) -> u64| {
        series
            .points
            .iter()
            .map(|p| q(&p.classes[0].unwrap()))
            .max()
            .unwrap()
    };
    assert!((97_000_000..=103_500_000).contains(&worst(|c| c.p99_ns)));
    let medians: Vec<u64> = series
        .points
        .iter()
        .map(|p| p.classes[0].unwrap().p50_ns)
        .collect();
    assert!(medians.iter().filter(|&&p50| p50 < 1_100_000).count() > medians.len() / 2);
}

#[test]
fn the_latest_of_many_phases_are_kept() {
    let n = KEPT_PHASES + 30;
    let mut monitor = monitor(n);
    for phase in 0..n as u16 {
        for index in 0..3 {
            monitor.interval(&interval(phase, index, &[OpClass::Get], &[1_000_000]));
        }
    }
    let run = monitor.run();
    assert_eq!(run.current, n - 1);
    let kept = run.phases.iter().filter(|p| p.has_series).count();
    assert!(kept <= KEPT_PHASES + 1, "{kept}");
    assert!(!run.phases[0].has_series && monitor.series(0, 0, 0).points.is_empty());
    assert_eq!(run.phases[0].ok, 30, "sums stay");
    assert_eq!(run.phases[0].state, PhaseState::Done);
}

#[test]
fn a_browser_receives_only_new_points() {
    let mut monitor = monitor(2);
    let mut sent = SentPoints::default();
    let add = |monitor: &mut RunMonitor, phase, index| {
        monitor.interval(&interval(phase, index, &[OpClass::Get], &[1_000_000]));
    };
    (0..5).for_each(|i| add(&mut monitor, 0, i));
    let first = sent.next(&monitor, None);
    assert_eq!((first.from, first.points.len()), (0, 5));
    // A slow browser missed two points; it gets them at once, and the last one again.
    (5..7).for_each(|i| add(&mut monitor, 0, i));
    let second = sent.next(&monitor, None);
    assert_eq!((second.from, second.points.len()), (4, 3));
    // Wider bins: all points are sent again.
    (7..LIVE_BINS + 1).for_each(|i| add(&mut monitor, 0, i));
    let third = sent.next(&monitor, None);
    assert_eq!(third.from, 0);
    assert!(third.width_s > 1.5);
    // The next phase.
    add(&mut monitor, 1, 0);
    let fourth = sent.next(&monitor, None);
    assert_eq!((fourth.phase, fourth.from, fourth.points.len()), (1, 0, 1));
    // An earlier phase, on request.
    let earlier = sent.next(&monitor, Some(0));
    assert_eq!((earlier.phase, earlier.from), (0, 0));
    assert!(!earlier.points.is_empty());
    assert_eq!(monitor.series(99, 3, 1).points.len(), 0);
}

#[test]
fn the_figures_of_a_run_stay_while_its_objects_are_removed() {
    let mut plan = plan();
    let run = plan.phases.iter().position(|p| p.kind == PhaseKind::Run);
    let run = run.unwrap();
    let mut last = plan.phases[run].clone();
    last.kind = PhaseKind::Cleanup;
    plan.phases.push(last);
    let cleanup = plan.phases.len() - 1;
    let mut monitor = RunMonitor::new(&Manifest::new("run", "0", plan));
    for index in 0..3 {
        monitor.interval(&interval(run as u16, index, &[OpClass::Get], &[1_000_000]));
    }
    assert_eq!((monitor.current(), monitor.shown()), (run, run));
    monitor.event(&Event::PhaseStarted {
        phase: cleanup as u16,
        at_ns: 4 * S,
    });
    assert_eq!((monitor.current(), monitor.shown()), (cleanup, run));
    let mut sent = SentPoints::default();
    assert_eq!(sent.next(&monitor, None).points.len(), 3);
    assert_eq!(monitor.view(None).series.phase, run);
}

#[test]
fn warning_signs_have_figures() {
    let mut monitor = monitor(1);
    assert!(monitor.run().signs.is_empty());
    let mut odd = interval(0, 0, &[OpClass::Get], &[1_000_000]);
    odd.tally.capped = 7;
    odd.gauges.backlog_ns = 3 * S;
    odd.gauges.busiest_thread_cpu_ns = S;
    monitor.interval(&odd);
    odd.index = 1;
    (odd.start_ns, odd.end_ns) = (S, 2 * S);
    odd.gauges.busiest_thread_cpu_ns = 2 * S;
    monitor.interval(&odd);
    let signs = monitor.run().signs;
    let names: Vec<&str> = signs.iter().map(|sign| sign.name.as_str()).collect();
    assert_eq!(names, ["failures", "overload", "backlog", "client"]);
    assert!(signs[0].text.contains("2 of 22"), "{}", signs[0].text);
    assert!(signs[3].text.contains("100 %"), "{}", signs[3].text);
    for n in 0..100 {
        monitor.event(&Event::Warning {
            message: format!("{n} {}", "x".repeat(5000)),
        });
    }
    let messages = monitor.run().messages;
    assert!(messages.len() <= 20 && messages.iter().all(|m| m.len() < 1000));
    assert!(messages.last().unwrap().starts_with("99 "));
}
