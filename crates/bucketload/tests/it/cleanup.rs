//! Clean-ups that fail, as the user meets them: the result first, then what is left and how to remove it.

use std::path::Path;

use crate::common::{Outcome, Serve, bucketload, call};

/// A run that writes `count` objects into `s3://store/p` of `serve`.
fn put(dir: &Path, serve: &Serve, count: u32, more: &[&str]) -> Outcome {
    let (url, count) = (serve.url(), count.to_string());
    let args = [
        "run",
        "put",
        "--target",
        "s3://store/p",
        "--endpoint-url",
        &url,
        "--create-bucket",
        "--size",
        "1",
        "--ops",
        &count,
        "--workers=2",
        "--threads=1",
        "--no-calibration",
    ];
    call(&mut bucketload(dir, &[&args, more].concat()))
}

/// The command that the last message says.
fn told(outcome: &Outcome) -> Vec<String> {
    let last = outcome.stderr.lines().last().unwrap();
    let (_, command) = last
        .split_once("remove them: bucketload ")
        .unwrap_or_else(|| panic!("the last message names no command: {last}"));
    command.split(' ').map(str::to_owned).collect()
}

/// How many keys `cleanup --dry-run` finds in the bucket, whosesoever they are.
fn keys(dir: &Path, serve: &Serve) -> String {
    let url = serve.url();
    let args = [
        "cleanup",
        "--target",
        "s3://store",
        "--endpoint-url",
        &url,
        "--yes-delete-foreign",
        "--dry-run",
    ];
    let listed = call(&mut bucketload(dir, &args));
    listed.expect(0, &[]);
    listed.stdout
}

#[test]
fn a_clean_up_that_fails_costs_no_result_and_its_command_removes_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    // As often as a deletion is tried; what comes later works.
    let serve = Serve::start(&["--fault", "status=500,op=delete-many,count=5"]);
    let kept = put(dir.path(), &serve, 3, &["--keep", "--out", "kept"]);
    kept.expect(0, &[]);
    let outcome = put(dir.path(), &serve, 40, &["--out", "run"]);
    outcome.expect(
        5,
        &[
            "objects of this run are left below `store/p/bucketload-",
            "500",
        ],
    );
    for words in ["40 operations offered", "Verdict: "] {
        assert!(outcome.stdout.contains(words), "{}", outcome.stdout);
    }
    let report = call(&mut bucketload(dir.path(), &["report", "run"]));
    report.expect(0, &[]);
    assert!(
        report.stdout.contains("bucketload cleanup"),
        "{}",
        report.stdout
    );
    let command = told(&outcome);
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    assert!(!outcome.stderr.contains(crate::common::SECRET_KEY));
    let removed = call(&mut bucketload(dir.path(), &words));
    removed.expect(0, &[]);
    assert!(
        removed.stdout.contains("40 objects deleted"),
        "{}",
        removed.stdout
    );
    // What another run keeps on purpose stays: three objects and their mark.
    let listed = keys(dir.path(), &serve);
    assert!(listed.contains(": 4 objects"), "{listed}");
}

#[test]
fn a_cause_that_ends_the_run_comes_first_and_what_is_left_last() {
    let dir = tempfile::tempdir().unwrap();
    let faults = [
        "--fault",
        "status=500,op=put,contains=00000",
        "--fault",
        "status=500,op=delete-many",
    ];
    let serve = Serve::start(&faults);
    let args = ["--oracle", "--out", "run"];
    let outcome = put(dir.path(), &serve, 40, &args);
    assert_eq!(outcome.code, 1, "{}", outcome.stderr);
    assert!(!told(&outcome).is_empty());
}

#[test]
fn uploads_are_listed_only_where_there_can_be_some() {
    let dir = tempfile::tempdir().unwrap();
    let serve = Serve::start(&["--fault", "status=404,op=list-uploads"]);
    let outcome = put(dir.path(), &serve, 4, &["--out", "run"]);
    outcome.expect(0, &[]);
    assert!(!outcome.stderr.contains("uploads"), "{}", outcome.stderr);
    // What a run that crashed did is unknown: then the listing is tried, and fails without harm.
    put(dir.path(), &serve, 4, &["--keep", "--out", "kept"]).expect(0, &[]);
    let url = serve.url();
    let args = [
        "cleanup",
        "--target",
        "s3://store/p",
        "--endpoint-url",
        &url,
    ];
    let cleaned = call(&mut bucketload(dir.path(), &args));
    cleaned.expect(0, &["multipart uploads", "404"]);
    assert!(
        cleaned.stdout.contains("4 objects deleted"),
        "{}",
        cleaned.stdout
    );
    // The run had made the bucket, and nobody else uses it.
    assert!(cleaned.stdout.contains("the bucket"), "{}", cleaned.stdout);
    let again = call(&mut bucketload(dir.path(), &args));
    assert_ne!(again.code, 0, "the bucket is gone: {}", again.stdout);
}

#[test]
fn a_server_that_fails_at_the_second_page_is_cleaned_up() {
    let dir = tempfile::tempdir().unwrap();
    // The first pages are those of the claim and of the clean-up.
    let serve = Serve::start(&["--fault", "status=500,op=list,after=2"]);
    let outcome = put(dir.path(), &serve, 1100, &["--out", "run"]);
    outcome.expect(0, &["ListObjects (V1)"]);
    assert!(
        outcome.stdout.contains("ListObjects (V1)"),
        "a warning of the result"
    );
}

#[test]
fn a_cleanup_that_stops_halfway_has_its_own_exit_code() {
    let dir = tempfile::tempdir().unwrap();
    let serve = Serve::start(&["--fault", "status=403,op=delete-many"]);
    put(dir.path(), &serve, 4, &["--keep", "--out", "kept"]).expect(0, &[]);
    let url = serve.url();
    let args = [
        "cleanup",
        "--target",
        "s3://store/p",
        "--endpoint-url",
        &url,
    ];
    call(&mut bucketload(dir.path(), &args)).expect(5, &["s3://store/p/", "403", "mark"]);
    let nowhere = ["cleanup", "--target", "s3://absent", "--endpoint-url", &url];
    call(&mut bucketload(dir.path(), &nowhere)).expect(3, &["absent"]);
}

#[test]
fn a_cleanup_tries_again_what_a_server_failed_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let serve = Serve::start(&["--fault", "status=500,op=delete-many,count=2"]);
    put(dir.path(), &serve, 4, &["--keep", "--out", "kept"]).expect(0, &[]);
    let url = serve.url();
    let args = [
        "cleanup",
        "--target",
        "s3://store/p",
        "--endpoint-url",
        &url,
    ];
    let cleaned = call(&mut bucketload(dir.path(), &args));
    cleaned.expect(0, &[]);
    assert!(
        cleaned.stdout.contains("4 objects deleted"),
        "{}",
        cleaned.stdout
    );
}
