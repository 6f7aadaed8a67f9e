//! `bucketload compare` from the user's view. The verdict depends on how busy the machine is, so these tests check what
//! holds for any verdict. Verdicts are tested by simulation and by `cargo xtask conformance compare`.

use std::path::Path;

use crate::common::{Serve, bucketload, call};

fn files(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).map(|entries| {
        entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect()
    });
    let mut names: Vec<String> = entries.unwrap_or_default();
    names.sort();
    names
}

fn manifest(dir: &Path) -> serde_json::Value {
    serde_json::from_str(&std::fs::read_to_string(dir.join("run.json")).unwrap()).unwrap()
}

#[test]
fn two_targets_are_measured_alternately_with_the_same_operations_and_left_empty() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    std::fs::create_dir(&store).unwrap();
    let server = Serve::start(&["--store", &format!("posix:{}", store.display())]);
    let url = server.url();
    let b_with = format!("--endpoint-url {url}");
    let args = [
        "compare",
        "mem:",
        "s3://bench/t",
        "--workload",
        "online-service",
        "--rate",
        "100/s",
        "--duration",
        "2s",
        "--objects",
        "50",
        "--runs",
        "2",
        "--pause",
        "0s",
        "--b-with",
        &b_with,
        "--create-bucket",
        "--allow-different",
        "verdict",
        "--scale",
        "1",
        "--set",
        "phases.run.steady-state=false",
        "--out",
        "out",
        "--output",
        "json",
    ];
    let outcome = call(&mut bucketload(dir.path(), &args));
    let all = format!("{}\n{}", outcome.stdout, outcome.stderr);
    assert!(all.contains("ABBA (AB BA)"), "{all}");
    // Everything that both sides created is deleted, including the bucket.
    assert!(
        !store.join("bench").exists(),
        "{:?}\n{all}",
        files(&store.join("bench"))
    );
    let out = dir.path().join("out");
    let trials = |side: &str| -> Vec<std::path::PathBuf> {
        let names = files(&out.join(side));
        names.iter().map(|name| out.join(side).join(name)).collect()
    };
    let (a, b) = (trials("a"), trials("b"));
    assert!(
        a[0].ends_with("001-pair-01") && !b.is_empty(),
        "{a:?} {b:?}\n{all}"
    );
    let offered = |trial: &std::path::PathBuf| -> i64 {
        let text = std::fs::read_to_string(trial.join("intervals.jsonl")).unwrap();
        let parse = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
        text.lines()
            .map(|line| parse(line)["offered"].as_i64().unwrap())
            .sum()
    };
    let (hash, first) = (manifest(&a[0])["scenario_hash"].clone(), offered(&a[0]));
    assert!(first > 100, "{first}");
    for trial in a.iter().chain(&b) {
        assert_eq!(manifest(trial)["scenario_hash"], hash, "{trial:?}");
        assert_eq!(offered(trial), first, "{trial:?}");
    }
    if outcome.code == 0 || outcome.stdout.contains("\"decision\"") {
        let comparison = outcome.json();
        assert_eq!(comparison["method"], "paired");
        assert_eq!(comparison["a"]["runs"].as_array().unwrap().len(), 2);
        assert!(out.join("report.html").is_file() && out.join("compare.json").is_file());
    } else {
        // The machine is too busy for a comparison.
        outcome.expect(1, &["pairs are usable"]);
    }
}

#[test]
fn runs_that_are_not_valid_are_not_compared() {
    let dir = tempfile::tempdir().unwrap();
    // Every fifth read fails, far more than a comparison allows.
    let server = Serve::start(&["--store", "memory", "--fault", "status=503,every=5,op=get"]);
    let b_with = format!("--endpoint-url {}", server.url());
    let args = [
        "compare",
        "mem:",
        "s3://bench/t",
        "--workload",
        "get",
        "--rate",
        "100/s",
        "--duration",
        "1s",
        "--objects",
        "10",
        "--runs",
        "2",
        "--pause",
        "0s",
        "--b-with",
        &b_with,
        "--create-bucket",
        "--no-calibration",
        "--set",
        "phases.run.steady-state=false",
        "--out",
        "out",
    ];
    let outcome = call(&mut bucketload(dir.path(), &args));
    outcome.expect(1, &["0 of 2 pairs are usable", "measuring the pair again"]);
    assert!(
        !files(&dir.path().join("out/b")).is_empty(),
        "the trials are kept"
    );
    assert!(!dir.path().join("out/report.html").exists());
}

#[test]
fn different_workloads_must_be_allowed_before_anything_runs() {
    let dir = tempfile::tempdir().unwrap();
    let flags = [
        "--a-with",
        "--workers 2",
        "--b-with",
        "--workers 4",
        "--target",
        "null:",
        "--out",
        "out",
    ];
    let refused = call(&mut bucketload(
        dir.path(),
        &[&["compare", "get"], &flags[..]].concat(),
    ));
    refused.expect(
        2,
        &[
            "A and B did not measure the same thing",
            "workers of phase run: 2 vs 4",
            "--allow-different",
        ],
    );
    assert!(!dir.path().join("out").exists());
    let leave = [
        "--allow-different",
        "workload",
        "--dry-run",
        "--order",
        "random",
        "--order-seed",
        "7",
    ];
    let allowed = call(&mut bucketload(
        dir.path(),
        &[&["compare", "get"], &flags[..], &leave[..]].concat(),
    ));
    allowed.expect(0, &[]);
    assert!(
        allowed.stdout.contains("random pairs, seed 7"),
        "{}",
        allowed.stdout
    );
    assert!(
        allowed.stdout.contains("allowed difference"),
        "{}",
        allowed.stdout
    );
    assert!(!dir.path().join("out").exists());
}

#[test]
fn run_directories_of_different_scenarios_are_refused_with_the_field() {
    let dir = tempfile::tempdir().unwrap();
    let run = |out: &str, size: &str| {
        let args = [
            "run",
            "put",
            "--target",
            "null:",
            "--ops",
            "200",
            "--size",
            size,
            "--no-calibration",
            "--out",
            out,
            "--quiet",
            "--output",
            "csv",
        ];
        let outcome = call(&mut bucketload(dir.path(), &args));
        assert!([0, 1].contains(&outcome.code), "{}", outcome.stderr);
    };
    run("one", "4KiB");
    run("two", "8KiB");
    let refused = call(&mut bucketload(dir.path(), &["compare", "one", "two"]));
    refused.expect(2, &["keysets.data.size", "4096", "8192"]);
    let twice = call(&mut bucketload(
        dir.path(),
        &["compare", "--a", "one", "--b", "one"],
    ));
    twice.expect(2, &["appears twice"]);
    let flags = call(&mut bucketload(
        dir.path(),
        &["compare", "one", "two", "--workers", "3"],
    ));
    flags.expect(2, &["workload options have no effect"]);
    let nowhere = call(&mut bucketload(dir.path(), &["compare", "one", "absent"]));
    nowhere.expect(2, &["both must be of the same kind"]);
}
