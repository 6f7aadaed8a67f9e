//! Scenarios and PerfKit-like tests of the whole program: gates, cold reads, labels.

use crate::common::{Serve, bucketload, call};

#[test]
fn a_test_with_too_many_failures_fails() {
    let dir = tempfile::tempdir().unwrap();
    // Every 10th GET fails, twice as many as the test allows. PUTs do not fail.
    for (fault, code) in [
        ("status=503,op=get,every=10", 1),
        ("status=503,op=get,every=25", 0),
    ] {
        let server = Serve::start(&["--store", "memory", "--fault", fault]);
        let out = format!("out{code}");
        let url = server.url();
        let args = [
            "run",
            "one-byte",
            "--target",
            "s3://gate/t",
            "--create-bucket",
            "--endpoint-url",
            &url,
            "--no-calibration",
            "--out",
            &out,
        ];
        let outcome = call(&mut bucketload(dir.path(), &args));
        outcome.expect(code, &[]);
        let text = &outcome.stdout;
        assert_eq!(
            text.contains("FAILED: share of failed operations 10.0 %"),
            code == 1,
            "{text}"
        );
        assert!(
            text.contains("passed: share of failed operations 0.0 %"),
            "{text}"
        );
        assert!(text.contains("net with gaps"), "{text}");
    }
}

#[test]
fn cold_reads_find_what_an_earlier_run_kept() {
    let dir = tempfile::tempdir().unwrap();
    let server = Serve::start(&["--store", "memory"]);
    let url = server.url();
    let run = |workload: &str, more: &[&str]| {
        let target = [
            "--target",
            "s3://cold/t",
            "--endpoint-url",
            &url,
            "--create-bucket",
            "--no-calibration",
            "--output",
            "json",
        ];
        call(&mut bucketload(
            dir.path(),
            &[&["run", workload], more, &target].concat(),
        ))
    };
    let small = [
        "--objects",
        "40",
        "--ops",
        "40",
        "--size",
        "uniform(1B, 20KiB)",
        "--seed",
        "9",
    ];
    run("redownload", &[&small[..], &["--out", "gone"]].concat()).expect(0, &[]);
    run(
        "redownload",
        &[&small[..], &["--keep", "--out", "old"]].concat(),
    )
    .expect(0, &[]);

    run("cold-read", &[]).expect(2, &["--objects-of"]);
    run("get", &["--objects-of", "old"]).expect(2, &["creates its own objects"]);
    run("cold-read", &["--objects-of", "gone"]).expect(2, &["--keep"]);
    run("cold-read", &["--objects-of", "old"]).expect(2, &["less than --min-age 72.0 h"]);
    let young = ["--objects-of", "old", "--min-age", "0s"];
    // Verification succeeds: names, sizes and content are those of the earlier run, although this workload has another
    // seed and other sizes.
    let outcome = run(
        "cold-read",
        &[&young[..], &["--verify", "--out", "cold"]].concat(),
    );
    outcome.expect(0, &[]);
    let result = outcome.json();
    let phase = &result["phases"]
        .as_array()
        .unwrap()
        .iter()
        .find(|phase| phase["kind"] == "run")
        .unwrap();
    assert_eq!(phase["totals"]["ok"], 40, "{phase}");
    assert!(phase["totals"]["bytes"].as_u64().unwrap() > 40 * 5_000);
    let note = result["run"]["data_note"].as_str().unwrap();
    assert!(note.contains("40 objects of run"), "{note}");
    // Only the new run's marker was deleted, so the objects can be read again.
    run("cold-read", &[&young[..], &["--out", "again"]].concat()).expect(0, &[]);
    // Another prefix does not contain them.
    let elsewhere = [
        "run",
        "cold-read",
        "--objects-of",
        "old",
        "--min-age",
        "0s",
        "--target",
        "s3://cold/other",
        "--endpoint-url",
        &url,
        "--no-calibration",
    ];
    call(&mut bucketload(dir.path(), &elsewhere)).expect(2, &["does not hold the objects"]);
}

#[test]
fn compat_results_are_labelled() {
    let dir = tempfile::tempdir().unwrap();
    let args = [
        "run",
        "file-backup",
        "--profile-name",
        "compat-ostorebench",
        "--ops",
        "20000",
        "--size",
        "1KiB",
        "--target",
        "null:",
        "--fact",
        "durability=3 copies",
        "--out",
        "out",
    ];
    let outcome = call(&mut bucketload(dir.path(), &args));
    outcome.expect(0, &[]);
    assert!(
        outcome.stdout.contains("compat: ostorebench"),
        "{}",
        outcome.stdout
    );
    assert!(
        outcome.stdout.contains("durability: 3 copies"),
        "{}",
        outcome.stdout
    );
    let page = std::fs::read_to_string(dir.path().join("out/report.html")).unwrap();
    assert!(page.contains("3 copies"));
    assert!(page.contains("Compat ostorebench"));
    let csv = call(&mut bucketload(
        dir.path(),
        &["report", "out", "--output", "csv"],
    ));
    assert!(csv.stdout.contains(",ostorebench,"), "{}", csv.stdout);
}
