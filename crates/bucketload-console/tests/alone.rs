//! Memory of the monitor of a day-long run. A separate program, so that other tests do not count.

use bucketload_console::monitor::RunMonitor;
use bucketload_core::op::OpClass;
use bucketload_core::sink::RunSink as _;
use bucketload_core::tally::{Gauges, Interval, Tally};
use bucketload_results::rundir::Manifest;
use bucketload_workload::resolve::{Overrides, ResolveContext, resolve};
use bucketload_workload::spec::WorkloadFile;

/// A second, nanoseconds.
const S: u64 = 1_000_000_000;
/// A day, seconds.
const DAY: u64 = 86_400;
/// Maximum growth, bytes.
const MAX_GROWTH: u64 = 50_000_000;

/// Resident memory of this process, bytes.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = text.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

#[test]
fn the_monitor_of_a_day_stays_small() {
    let file = WorkloadFile::builtin("get").unwrap();
    let context = ResolveContext {
        memory_budget: None,
    };
    let plan = resolve(&file, &Overrides::default(), &context)
        .unwrap()
        .plan;
    let phase = (plan.phases.len() - 1) as u16;
    let mut monitor = RunMonitor::new(&Manifest::new("run", "0", plan));
    // Every 256th second has latencies over five decades, which a long run would have in every second.
    let second = |latencies: &[u64]| {
        let mut tally = Tally::new();
        for &class in &OpClass::ALL[..8] {
            let cell = tally.cell_mut(0, class);
            cell.ok = 10;
            latencies.iter().for_each(|&ns| cell.response.record(ns));
        }
        Interval {
            phase,
            index: 0,
            start_ns: 0,
            end_ns: S,
            tally,
            gauges: Gauges::default(),
        }
    };
    let wide: Vec<u64> = (0..300).map(|n| 20_000 + n * n * n * 37).collect();
    let (mut few, mut rich) = (second(&[1_000_000, 1_010_000]), second(&wide));
    let before = resident();
    for index in 0..DAY {
        let now = if index % 256 == 0 {
            &mut rich
        } else {
            &mut few
        };
        (now.index, now.start_ns, now.end_ns) = (index, index * S, (index + 1) * S);
        monitor.interval(now);
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < MAX_GROWTH, "{grown} bytes");
    assert_eq!(monitor.run().phases[usize::from(phase)].ok, 80 * DAY);
}
