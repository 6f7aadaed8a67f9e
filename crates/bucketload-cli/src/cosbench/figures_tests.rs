//! Tests of [`super`] on figures made by hand.

use bucketload_core::histogram::Histogram;
use bucketload_core::plan::crews::Pins;
use bucketload_core::rows::{PhaseRows, RowLatencies, RowSums, WorkerRow, WorkerSpan};
use bucketload_cosbench::artifacts::{DriverRecord, StageRecord};
use bucketload_cosbench::parse;

use super::{MeasuredStage, fill, legacy_percentiles, percentiles};
use crate::cosbench::overrides::Settings;
use crate::cosbench::plan::plan;

const SECOND: u64 = 1_000_000_000;

/// docs/spec/cosbench.md section 4: one sample of 1.23 s gives 10 ms for all but 100 %.
#[test]
fn legacy_percentiles_round_the_rank_down() {
    assert_eq!(
        legacy_percentiles(&[(123, 1)]),
        Some([10.0, 10.0, 10.0, 10.0, 10.0, 1240.0])
    );
    let hundred = [(0, 60), (1, 20), (4, 19), (9, 1)];
    assert_eq!(
        legacy_percentiles(&hundred),
        Some([10.0, 20.0, 50.0, 50.0, 50.0, 100.0])
    );
    assert_eq!(legacy_percentiles(&[]), None);
}

#[test]
fn b4_percentiles_of_few_samples_are_samples() {
    let bucket = Histogram::index_of(1_230_000_000) as u32;
    let found = percentiles(&[(bucket, 1)]).unwrap();
    assert!(
        found.iter().all(|ms| (1229.0..=1232.0).contains(ms)),
        "{found:?}"
    );
}

/// Two workers share 20 operations: one does 10 in 1 s, the other 10 in 2 s. One operation of the second straddles an
/// edge of the window.
fn on(drivers: usize, strict: bool) -> (StageRecord, Vec<DriverRecord>) {
    let text = "<workload name=\"w\"><workflow><workstage name=\"m\"><work name=\"x\" workers=\"2\" totalOps=\"20\">\
                <operation type=\"read\" config=\"containers=c(1);objects=c(1)\"/></work></workstage></workflow></workload>";
    let workload = parse(text).unwrap().workload;
    let plan = plan(&workload, &Settings::default(), strict, &mut Vec::new()).unwrap();
    let sums = |n: u64| RowSums {
        samples: n,
        ok: n,
        bytes: 1000 * n,
        response_ms: 99 * n,
        transfer_ms: 9 * n,
        response_ns: 99_500_000 * n,
        transfer_ns: 9_250_000 * n,
    };
    let row = |worker, finished, inside| WorkerRow {
        work: 0,
        entry: 0,
        worker,
        finished: sums(finished),
        inside: sums(inside),
    };
    let span = |worker, last_ns| WorkerSpan {
        work: 0,
        worker,
        first_ns: 0,
        last_ns,
    };
    let rows = PhaseRows {
        phase: 0,
        workers: vec![row(0, 10, 10), row(1, 10, 9)],
        spans: vec![span(0, SECOND), span(1, 2 * SECOND)],
        latencies: vec![RowLatencies {
            work: 0,
            entry: 0,
            legacy: vec![(9, 19)],
            fine: vec![(Histogram::index_of(99_500_000) as u32, 20)],
        }],
    };
    let mut out = StageRecord::default();
    let mut drivers = vec![DriverRecord::default(); drivers];
    let measured = MeasuredStage {
        plan: &plan,
        phase: 0,
        rows: &rows,
        pins: &Pins::new(),
    };
    fill(&mut out, &mut drivers, &workload.stages[0], &measured);
    (out, drivers)
}

fn stage(strict: bool) -> StageRecord {
    let (out, drivers) = on(1, strict);
    assert_eq!(drivers[0].lines[0].figures, out.rows[0].figures);
    out
}

/// The figures of drivers add up, in both modes.
#[test]
fn drivers_have_the_figures_of_their_workers() {
    for strict in [false, true] {
        let (out, drivers) = on(2, strict);
        let figures = |driver: usize| &drivers[driver].lines[0].figures;
        assert_eq!(figures(0).ops, 10);
        assert_eq!(figures(1).ops, if strict { 9 } else { 10 });
        let all = &out.rows[0].figures;
        assert_eq!(figures(0).bytes + figures(1).bytes, all.bytes);
        assert_eq!(
            figures(0).throughput + figures(1).throughput,
            all.throughput
        );
    }
    // Two workers leave the third driver without a mission.
    let (_, drivers) = on(3, false);
    assert_eq!(drivers[2].lines, []);
}

#[test]
fn b2_b5_rates_are_totals_over_the_wall_clock_and_no_operation_vanishes() {
    let ours = stage(false);
    let figures = &ours.rows[0].figures;
    assert_eq!((figures.ops, figures.bytes), (20, 20_000));
    assert_eq!((figures.throughput, figures.bandwidth), (10.0, 10_000.0));
    assert_eq!((figures.response_ms, figures.processing_ms), (99.5, 90.25));
    assert_eq!(ours.workers.len(), 2);
}

/// `--compat strict` leaves out straddling operations, adds the rates of the workers, each over the worker's own time,
/// counts whole milliseconds, and uses bucket edges as percentiles.
#[test]
fn strict_reproduces_the_legacy_numbers() {
    let legacy = stage(true);
    let row = &legacy.rows[0];
    assert_eq!((row.figures.ops, row.figures.bytes), (19, 19_000));
    assert_eq!(row.figures.throughput, 10.0 / 1.0 + 9.0 / 2.0);
    assert_eq!(row.figures.bandwidth, 10_000.0 / 1.0 + 9_000.0 / 2.0);
    assert_eq!(
        (row.figures.response_ms, row.figures.processing_ms),
        (99.0, 90.0)
    );
    assert_eq!(row.percentiles, Some([100.0; 6]));
    assert_eq!(row.histogram, [(9, 19)]);
}
