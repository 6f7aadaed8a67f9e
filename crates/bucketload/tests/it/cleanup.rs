//! Failing clean-ups from the user's view: the result comes first, then the leftovers and how to remove them.

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

/// The command that the last message suggests.
fn suggested(outcome: &Outcome) -> Vec<String> {
    let last = outcome.stderr.lines().last().unwrap();
    let (_, command) = last
        .split_once("remove them: bucketload ")
        .unwrap_or_else(|| panic!("the last message names no command: {last}"));
    command.split(' ').map(str::to_owned).collect()
}

/// The number of keys that `cleanup --dry-run` finds in the bucket, including foreign ones.
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
fn a_failing_clean_up_keeps_the_result_and_the_suggested_command_removes_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    // Fails as often as a deletion is tried; later deletions succeed.
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
    for words in ["40 operations offered", "0 failed"] {
        assert!(outcome.stdout.contains(words), "{}", outcome.stdout);
    }
    let report = call(&mut bucketload(dir.path(), &["report", "run"]));
    report.expect(0, &[]);
    assert!(
        report.stdout.contains("bucketload cleanup"),
        "{}",
        report.stdout
    );
    let command = suggested(&outcome);
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    assert!(!outcome.stderr.contains(crate::common::SECRET_KEY));
    let removed = call(&mut bucketload(dir.path(), &words));
    removed.expect(0, &[]);
    assert!(
        removed.stdout.contains("40 objects deleted"),
        "{}",
        removed.stdout
    );
    // Objects that another run keeps on purpose stay: three objects and their marker.
    let listed = keys(dir.path(), &serve);
    assert!(listed.contains(": 4 objects"), "{listed}");
}

#[test]
fn the_failure_of_the_run_is_printed_first_and_the_leftovers_last() {
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
    assert!(!suggested(&outcome).is_empty());
}

#[test]
fn uploads_are_listed_only_if_there_can_be_any() {
    let dir = tempfile::tempdir().unwrap();
    let serve = Serve::start(&["--fault", "status=404,op=list-uploads"]);
    let outcome = put(dir.path(), &serve, 4, &["--out", "run"]);
    outcome.expect(0, &[]);
    assert!(!outcome.stderr.contains("uploads"), "{}", outcome.stderr);
    // What a crashed run did is unknown, so the listing is tried; its failure is harmless.
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
    // The run created the bucket, and nobody else uses it.
    assert!(cleaned.stdout.contains("the bucket"), "{}", cleaned.stdout);
    let again = call(&mut bucketload(dir.path(), &args));
    assert_ne!(again.code, 0, "the bucket is gone: {}", again.stdout);
}

#[test]
fn a_server_that_fails_at_the_second_page_is_cleaned_up() {
    let dir = tempfile::tempdir().unwrap();
    // The first pages belong to the claim and to the clean-up.
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
fn a_cleanup_retries_requests_that_a_server_failed() {
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
