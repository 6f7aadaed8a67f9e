//! Gates of a run: objectives, verdicts that are failures, an end once a figure is precise enough.

use serde_json::Value;

use crate::common::{Outcome, Serve, bucketload, call};

/// A closed loop of writes against `server`, with further arguments.
fn put(dir: &std::path::Path, server: &Serve, more: &[&str]) -> Outcome {
    let url = server.url();
    let base = [
        "run",
        "put",
        "--size",
        "1KiB",
        "--workers",
        "2",
        "--no-calibration",
        "--target",
        "s3://bench/t",
        "--create-bucket",
        "--endpoint-url",
        &url,
    ];
    call(&mut bucketload(dir, &[&base, more].concat()))
}

fn summary(outcome: &Outcome) -> Value {
    let document: Value = serde_json::from_str(&outcome.stdout).unwrap();
    document["summary"].clone()
}

#[test]
fn objectives_decide_the_exit_code() {
    let dir = tempfile::tempdir().unwrap();
    let server = Serve::start(&["--store", "memory"]);
    let met = put(
        dir.path(),
        &server,
        &[
            "--ops",
            "200",
            "--slo",
            "p50<1h,errors<0.1%",
            "--output",
            "json",
            "--out",
            "met",
        ],
    );
    met.expect(0, &["--slo: met p50<1h", "--slo: met errors<0.1%"]);
    let s = summary(&met);
    assert_eq!(
        (&s["slo_met"], &s["ok"]),
        (&Value::Bool(true), &Value::from(200))
    );
    assert!(s["put_p50_ns"].as_f64().unwrap() > 0.0 && s["ops_per_s"].as_f64().unwrap() > 0.0);
    let missed = put(
        dir.path(),
        &server,
        &["--ops", "200", "--slo", "put.p50<1ns"],
    );
    missed.expect(1, &[]);
    assert!(
        missed.stdout.contains("objectives MISSED"),
        "{}",
        missed.stdout
    );
    // The objectives are in the run directory: a report computes them again.
    let report = call(&mut bucketload(dir.path(), &["report", "met"]));
    report.expect(0, &[]);
    assert!(
        report.stdout.contains("objectives met"),
        "{}",
        report.stdout
    );
    for (slo, says) in [
        ("get.p99<1s", "performs no get operations"),
        ("p99=1s", "write objectives such as"),
        ("speed<1s", "neither a percentile nor"),
    ] {
        put(dir.path(), &server, &["--ops", "5", "--slo", slo]).expect(2, &[says]);
    }
}

#[test]
fn verdicts_can_be_failures() {
    let dir = tempfile::tempdir().unwrap();
    let server = Serve::start(&[
        "--store",
        "memory",
        "--fault",
        "status=500,op=put,after=20,count=15",
    ]);
    let degraded = put(
        dir.path(),
        &server,
        &[
            "--ops",
            "300",
            "--fail-on",
            "overloaded,degraded",
            "--out",
            "run",
        ],
    );
    degraded.expect(
        1,
        &["--fail-on degraded (V7)", "15 of 300 operations failed"],
    );
    assert!(
        degraded.stdout.contains("15 failed (5.0 %)"),
        "{}",
        degraded.stdout
    );
    put(
        dir.path(),
        &server,
        &["--ops", "100", "--fail-on", "overloaded"],
    )
    .expect(0, &[]);
    put(dir.path(), &server, &["--fail-on", "slow"]).expect(2, &["client-bound", "unsteady"]);
}

#[test]
fn failures_lead_when_nearly_all_operations_fail() {
    let dir = tempfile::tempdir().unwrap();
    let server = Serve::start(&[
        "--store",
        "memory",
        "--fault",
        "status=500,op=put,after=5,count=100000",
    ]);
    let failing = put(dir.path(), &server, &["--ops", "400"]);
    failing.expect(1, &[]);
    let first = failing.stdout.lines().next().unwrap_or_default();
    assert!(first.starts_with("DEGRADED  3"), "{first}");
    assert!(first.contains(" of 400 operations failed (9"), "{first}");
}

#[test]
fn a_phase_ends_once_its_figure_is_precise_enough() {
    let dir = tempfile::tempdir().unwrap();
    let server = Serve::start(&["--store", "memory"]);
    for (precision, says) in [
        ("2%,max", "not a figure with an interval"),
        ("2%,get.p99", "performs these operations"),
        ("0%", "not a margin"),
    ] {
        let args = ["--duration", "5s", "--until-precise", precision];
        put(dir.path(), &server, &args).expect(2, &[says]);
    }
    // Deletes as many objects as there are, however long it takes.
    let args = ["run", "delete", "--target", "mem:", "--until-precise", "2%"];
    call(&mut bucketload(dir.path(), &args)).expect(2, &["--duration"]);
    // Fewer than 30 intervals are never enough: the maximum ends the phase, and the result says so.
    let short = put(
        dir.path(),
        &server,
        &["--duration", "2s", "--until-precise", "90%,mean"],
    );
    short.expect(0, &[]);
    assert!(
        short.stdout.contains("did not reach mean ± 90.0 %"),
        "{}",
        short.stdout
    );
}
