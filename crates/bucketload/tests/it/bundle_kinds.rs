//! Evidence of every kind of directory: capacity searches, grids, the rows of `s3-hpc`, extended IO500. Measured
//! results verify, and changed numbers are found anywhere. Placements are in `placement.rs`.

use std::path::Path;

use crate::common::evidence::{every_change_is_found, pack, refuted, run, with_change};

/// Checks that the directory `from` verifies with the expected number of runs.
#[track_caller]
fn verifies(dir: &Path, from: &str, words: &str) {
    pack(dir, from, "b").expect(0, &[]);
    let verified = run(dir, &["verify-bundle", "b"]);
    verified.expect(0, &[]);
    assert!(verified.stdout.contains(words), "{}", verified.stdout);
}

#[test]
fn a_capacity_search() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path();
    let line = "capacity get --objects 10 --target null: --slo get.p50<10s --start-rate 40/s --max-rate 40/s \
                --trial-duration 1s --confirm 1 --quick --no-calibration --quiet --out search";
    let words: Vec<&str> = line.split_whitespace().collect();
    let outcome = run(dir, &words);
    // On a busy machine, the client may be the limit, which is a valid result too.
    assert!(outcome.code <= 1, "{}", outcome.stderr);
    verifies(dir, "search", "trials of ");
    every_change_is_found(dir, "search", "result.json", 3);
    every_change_is_found(dir, "search", "trials.jsonl", 2);
}

#[test]
fn a_grid() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path();
    let line = "study-grid --rows touch,3x10,2x5000 --processes 1,2 --repetitions 1 --target mem: \
                --no-calibration --quiet --out grid";
    let words: Vec<&str> = line.split_whitespace().collect();
    run(dir, &words).expect(0, &[]);
    verifies(dir, "grid", "trials of ");
    every_change_is_found(dir, "grid", "cells.csv", 2);
    every_change_is_found(dir, "grid", "result.json", 2);
    every_change_is_found(dir, "grid", "trials.jsonl", 2);
}

#[test]
fn the_rows_of_s3_hpc() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path();
    let line = "s3-hpc --root objects --rows posix,http --sizes 1KiB,20KiB --objects 5 --repetitions 1 --quiet \
                --out ways";
    let words: Vec<&str> = line.split_whitespace().collect();
    run(dir, &words).expect(0, &[]);
    verifies(dir, "ways", "trials of ");
    every_change_is_found(dir, "ways", "result.json", 3);
    every_change_is_found(dir, "ways", "trials.jsonl", 2);
}

#[test]
fn extended_io500() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path();
    let mut args: Vec<&str> =
        "io500 --ranks 2 --mode extended --target mem: --op-log=csv.zst --quiet --out io500"
            .split(' ')
            .collect();
    for set in [
        "debug.stonewall-time=1",
        "ior-easy.transferSize=64k",
        "ior-easy.blockSize=128k",
        "ior-hard.segmentCount=2",
        "mdtest-easy.n=4",
        "mdtest-hard.n=4",
        "mdworkbench.filesPerProc=4",
        "mdworkbench.precreatePerSet=4",
    ] {
        args.extend(["--set", set]);
    }
    let outcome = run(dir, &args);
    let result = std::fs::read_to_string(dir.join("io500/result.txt")).unwrap_or_default();
    for phase in ["[mdworkbench-bench]", "[find-easy]", "[find-hard]"] {
        assert!(
            result.contains(phase),
            "{phase}\n{result}\n{}",
            outcome.stderr
        );
    }
    verifies(dir, "io500", "run of 1 run(s)");
    every_change_is_found(dir, "io500", "result.txt", 3);
    let summary = dir.join("io500/result_summary.txt");
    let (from, to) = ("[SCORE ] Bandwidth ", "[SCORE ] Bandwidth 9");
    with_change(&summary, from, to, || {
        pack(dir, "io500", "forged").expect(0, &["result_summary.txt"]);
        refuted(dir, "forged", &["result_summary.txt: line "]);
    });
    every_change_is_found(dir, "io500", "mdtest-easy-write.csv", 1);
}
