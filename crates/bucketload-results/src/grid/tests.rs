//! The formulas checked against the study's own figures, and the marks for a slow process.

use bucketload_core::sink::StreamSum;
use bucketload_core::verdict::Word;

use super::cell::Figures;
use super::published::published;
use super::{GridResult, Header, Record, Row, SCHEMA, StepRecord};
use crate::study::StudyFiles;

/// docs/spec/cs597-grid.md section 6: single-node seconds of S3 and S3FS (write and read), and section 5's sizes.
/// The slowdowns that the study reports follow from these times.
#[test]
fn single_node_times_give_the_studys_rates() {
    // Row, files, bytes, S3 write seconds, S3 read seconds.
    let rows = [
        ("g1", 10_000.0, 1_024, 54.5, 263.5),
        ("g4", 1_000.0, 1_024_000, 17.5, 30.9),
        ("g8", 1.0, 10_240_000_000, 134.1, 233.1),
    ];
    for (row, files, bytes, write, read) in rows {
        for t in [write, read] {
            let f = Figures::of(files, bytes, &[t], t);
            let expected = files * bytes as f64 / t / 1_048_576.0;
            assert!((f.a_mean / expected - 1.0).abs() < 1e-12, "{row}");
            assert_eq!(
                (f.a_mean, f.a_mean, f.a_mean),
                (f.a_slow, f.a_wall, f.a_sum)
            );
            assert_eq!((f.cv, f.max_over_mean), (0.0, 1.0));
        }
    }
    // Section 6: touch of HDFS-4, 4 nodes with 1000 names: the slowest took 10.336 s, 387 files/s.
    let touch = Figures::of(1_000.0, 0, &[8.1, 7.0, 7.0, 10.336], 10.336);
    assert!((touch.r_slow - 387.0).abs() < 0.1, "{touch:?}");
    // CephFS-16: mean time 5.47 s, F = 10 000.
    let ceph = Figures::of(10_000.0, 0, &[5.47; 16], 5.47);
    assert!((ceph.r_mean / 29_239.1 - 1.0).abs() < 1e-3, "{ceph:?}");
    // Section 3: HDFS-16 writing 1-GB files: one node took 426 s, 15 nodes about 116 s.
    let mut nodes = vec![116.0; 15];
    nodes.push(426.0);
    let hdfs = Figures::of(10.0, 1_024_000_000, &nodes, 426.0);
    assert!((hdfs.a_slow - 367.0).abs() < 1.0, "{hdfs:?}");
    assert!(
        (hdfs.a_mean / published("write", "g7").unwrap()[1] - 1.0).abs() < 0.02,
        "{hdfs:?}"
    );
}

/// The figures of the corrected table, converted to times, must come out of the formulas unchanged.
#[test]
fn times_of_the_corrected_tables_reproduce_them() {
    let rows = Row::parse_list("g1..g8").unwrap();
    for step in ["write", "read"] {
        for row in &rows {
            let figures = published(step, &row.name).unwrap();
            for (column, nodes) in [4usize, 16, 64].into_iter().cycle().take(12).enumerate() {
                let total = nodes as f64 * row.files as f64 * row.size_bytes as f64 / 1_048_576.0;
                let mean = total / figures[column];
                // Spread evenly about the mean.
                let t: Vec<f64> = (0..nodes)
                    .map(|i| mean * (0.9 + 0.2 * i as f64 / (nodes - 1) as f64))
                    .collect();
                let f = Figures::of(row.files as f64, row.size_bytes, &t, mean * 1.15);
                assert!(
                    (f.a_mean / figures[column] - 1.0).abs() < 1e-9,
                    "{step} {}",
                    row.name
                );
                assert!(f.a_wall < f.a_slow && f.a_slow < f.a_mean && f.a_mean < f.a_sum);
            }
        }
    }
}

fn stream(worker: u32, from: u64, to: u64, ops: u64, failed: u64) -> StreamSum {
    StreamSum {
        worker,
        first_start_ns: from * 1_000_000,
        last_stop_ns: to * 1_000_000,
        ops,
        failed,
        bytes: ops * 1024,
        ..StreamSum::default()
    }
}

#[test]
fn streams_of_a_process_make_one_time() {
    // Two processes with two streams each.
    let streams = [
        stream(0, 100, 400, 5, 0),
        stream(1, 120, 300, 5, 0),
        stream(2, 90, 500, 5, 0),
        stream(3, 130, 260, 4, 1),
    ];
    let step = StepRecord::of_streams("write", 2, &streams);
    assert_eq!(step.t_ns, [410_000_000, 180_000_000]);
    assert_eq!(
        (step.wall_ns, step.start_skew_ns),
        (410_000_000, 30_000_000)
    );
    assert_eq!((step.ok, step.failed, step.bytes), (19, 1, 19 * 1024));
    let idle = StepRecord::of_streams("write", 3, &streams[..1]);
    assert_eq!(idle.t_ns.len(), 1);
}

fn record(repetition: u32, floor: bool, streams: &[StreamSum], verdict: Word) -> Record {
    let mut step = StepRecord::of_streams("write", 4, streams);
    step.verdict = verdict;
    Record {
        row: "g1".into(),
        processes: 4,
        repetition,
        floor,
        dir: "d".into(),
        steps: vec![step],
    }
}

fn result(trials: Vec<Record>) -> GridResult {
    let rows = Row::parse_list("g1").unwrap();
    GridResult::new(StudyFiles {
        header: Header {
            schema: SCHEMA,
            version: String::new(),
            target: "t".into(),
            settings: Vec::new(),
            started: String::new(),
            rows: rows.into_iter().map(|row| row.scaled(0.01)).collect(),
            dropped: vec!["g9: too large".into()],
            processes: vec![4],
            streams: 1,
            scale: 0.01,
            repetitions: 2,
            command_line: Vec::new(),
        },
        trials,
        damaged: 0,
    })
}

/// docs/spec/cs597-grid.md section 7.3: a cell with a slow process shows A_mean > A_slow and the warning.
#[test]
fn a_slow_process_raises_a_warning() {
    let even = [0, 1, 2, 3].map(|w| stream(w, 0, 1000, 100, 0));
    let mut slow = even;
    slow[3] = stream(3, 0, 4000, 100, 0);
    let calm = result(vec![record(0, false, &even, Word::Valid)]);
    assert!(calm.warnings.is_empty() && !calm.cells[0].steps[0].uneven);
    let seen = result(vec![record(0, false, &slow, Word::Valid)]);
    let step = &seen.cells[0].steps[0];
    assert!(step.figures.a_mean > 2.0 * step.figures.a_slow, "{step:?}");
    assert!(
        step.uneven && seen.warnings[0].contains("slowest process took 2.29 times"),
        "{:?}",
        seen.warnings
    );
    let text = super::text::text(&seen);
    assert!(
        text.contains("caution: g1 write with 4 processes") && text.contains('!'),
        "{text}"
    );
}

#[test]
fn cells_below_twice_their_floor_are_client_bound() {
    let of = |ms: u64| [0, 1, 2, 3].map(|w| stream(w, 0, ms, 100, 0));
    let cell = |measured: u64, floor: u64, verdict: Word| {
        let trials = vec![
            record(0, false, &of(measured), verdict),
            record(0, true, &of(floor), Word::Valid),
        ];
        result(trials).cells[0].steps[0].clone()
    };
    let near = cell(1000, 600, Word::Valid);
    assert!(near.client_bound && (near.floor_ratio.unwrap() - 1000.0 / 600.0).abs() < 1e-9);
    assert!(!cell(1000, 400, Word::Valid).client_bound);
    // The verdict of a run, which sees CPU time, suffices too.
    assert!(cell(1000, 400, Word::ClientBound).client_bound);
}

#[test]
fn figures_are_means_over_the_trials_and_failures_are_not_moved() {
    let of = |ms: u64, ops: u64, failed: u64| [0, 1, 2, 3].map(|w| stream(w, 0, ms, ops, failed));
    let both = result(vec![
        record(0, false, &of(1000, 100, 0), Word::Valid),
        record(1, false, &of(3000, 100, 0), Word::Valid),
    ]);
    let step = &both.cells[0].steps[0];
    // 400 files of 1 KiB in 1 s, and in 3 s.
    let first = 400.0 * 1024.0 / 1_048_576.0;
    assert!((step.figures.a_mean - (first + first / 3.0) / 2.0).abs() < 1e-9);
    assert!((step.spread - 0.5).abs() < 1e-9);
    assert_eq!((both.measured(), both.wanted()), (2, 2));
    let failed = result(vec![record(0, false, &of(1000, 50, 50), Word::Degraded)]);
    let step = &failed.cells[0].steps[0];
    assert!((step.figures.a_mean - first / 2.0).abs() < 1e-9);
    assert!(failed.warnings[0].contains("200 operations failed"));
    let text = super::text::text(&failed);
    assert!(
        text.contains("dropped: g9") && text.contains("interrupted: 1 of 2"),
        "{text}"
    );
    let csv = super::csv::csv(&both);
    let columns: Vec<usize> = csv.lines().map(|line| line.split(',').count()).collect();
    assert_eq!(columns, [31, 31], "{csv}");
    let page = super::page::html(&both);
    assert!(page.contains("CephFS-64") && page.contains("100 x 1024"));
}
