//! OSSperf's six steps, bucket provisioning and clean-up of buckets from the user's view.

use std::fs;
use std::path::Path;

use crate::common::agents::wait_for;
use crate::common::{Outcome, Serve, bucketload, call};

fn run(dir: &Path, url: &str, args: &[&str]) -> Outcome {
    let target = [
        "--target",
        "s3://bench/t",
        "--create-bucket",
        "--endpoint-url",
        url,
        "--no-calibration",
    ];
    call(&mut bucketload(dir, &[&["run"], args, &target].concat()))
}

/// Directories and objects below the store of a server over a directory.
fn buckets(store: &Path) -> Vec<String> {
    let entries = fs::read_dir(store).unwrap().map(|entry| entry.unwrap());
    let mut names: Vec<String> = entries
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    names
}

#[test]
fn six_steps_are_timed_and_a_line_is_appended() {
    let (dir, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let posix = format!("posix:{}", store.path().display());
    let server = Serve::start(&["--store", &posix]);
    for (number, (files, size, parallel)) in
        [("10", "1MiB", "8"), ("3", "0", "1"), ("5", "5001", "2")]
            .into_iter()
            .enumerate()
    {
        let args = [
            "ossperf",
            "--objects",
            files,
            "--size",
            size,
            "--parallel",
            parallel,
            "--output",
            "json",
        ];
        let outcome = run(dir.path(), &server.url(), &args);
        outcome.expect(0, &["appended a line to results.csv"]);
        let result = outcome.json();
        let steps = result["ossperf"]["steps"].as_array().unwrap();
        let ok: Vec<u64> = steps
            .iter()
            .map(|step| step["ok"].as_u64().unwrap())
            .collect();
        let n: u64 = files.parse().unwrap();
        assert_eq!(ok, [1, n, 1, n, n, 1]);
        // Every step is a phase with latencies per request.
        let phases = result["phases"].as_array().unwrap();
        let classes: Vec<&str> = phases
            .iter()
            .flat_map(|phase| phase["classes"].as_array().unwrap())
            .map(|class| class["class"].as_str().unwrap())
            .collect();
        let six = [
            "make-bucket",
            "put",
            "list",
            "get",
            "delete",
            "delete-bucket",
        ];
        assert_eq!(classes, six);
        let text = fs::read_to_string(dir.path().join("results.csv")).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), number + 2, "{text}");
        assert!(lines[0].starts_with("DATE TIME NUM_FILES SIZE_FILES TIME_CREATE_BUCKET"));
        let columns: Vec<&str> = lines[number + 1].split(' ').collect();
        let bytes = if size == "1MiB" { "1048576" } else { size };
        assert_eq!((columns.len(), columns[2], columns[3]), (13, files, bytes));
        // The sum of the steps, and the bandwidth from the time as printed.
        let milli = |text: &str| (text.parse::<f64>().unwrap() * 1000.0).round();
        let times: f64 = columns[4..10].iter().map(|text| milli(text)).sum();
        assert_eq!(times, milli(columns[10]));
        let (size, time) = (
            bytes.parse::<f64>().unwrap(),
            columns[5].parse::<f64>().unwrap(),
        );
        if size * time > 0.0 {
            let exact = size * files.parse::<f64>().unwrap() * 8.0 / time / 1e6;
            let printed: f64 = columns[11].parse().unwrap();
            assert!(
                printed <= exact && exact - printed < 0.003,
                "{printed} {exact}"
            );
        }
    }
    assert!(
        buckets(store.path()).is_empty(),
        "{:?}",
        buckets(store.path())
    );
    // To another file, and with a workload without such steps.
    let args = [
        "ossperf",
        "--objects",
        "1",
        "--size",
        "1",
        "--results-csv",
        "mine.csv",
    ];
    run(dir.path(), &server.url(), &args).expect(0, &["appended a line to mine.csv"]);
    assert_eq!(
        fs::read_to_string(dir.path().join("mine.csv"))
            .unwrap()
            .lines()
            .count(),
        2
    );
    run(
        dir.path(),
        &server.url(),
        &["smoke", "--results-csv", "mine.csv"],
    )
    .expect(2, &["--results-csv", "six steps"]);
}

#[test]
fn a_flipped_byte_is_found_and_no_line_is_appended() {
    let dir = tempfile::tempdir().unwrap();
    let server = Serve::start(&["--store", "memory", "--fault", "corrupt,every=4,count=1"]);
    let args = [
        "ossperf",
        "--objects",
        "10",
        "--size",
        "100KB",
        "--parallel",
        "3",
    ];
    let outcome = run(dir.path(), &server.url(), &args);
    outcome.expect(1, &["appended no line", "download did 9 of 10"]);
    assert!(outcome.stdout.contains("corrupt"), "{}", outcome.stdout);
    assert!(!dir.path().join("results.csv").exists());
    // The later steps were performed, and nothing is left.
    assert!(
        outcome.stdout.contains("[6] erase the bucket"),
        "{}",
        outcome.stdout
    );
    let again = run(dir.path(), &server.url(), &args);
    again.expect(0, &["appended"]);
}

#[test]
fn a_failed_step_does_not_keep_the_run_from_cleaning_up() {
    let (dir, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let posix = format!("posix:{}", store.path().display());
    // Every other delete is refused, so step 6 cannot delete the bucket; clean-up does.
    let server = Serve::start(&[
        "--store",
        &posix,
        "--fault",
        "status=503,op=delete,every=2,count=3",
    ]);
    let args = ["ossperf", "--objects", "6", "--size", "1KiB"];
    let outcome = run(dir.path(), &server.url(), &args);
    outcome.expect(1, &["appended no line", "erase-objects did 3 of 6"]);
    assert!(outcome.stdout.contains("conflict"), "{}", outcome.stdout);
    assert!(
        buckets(store.path()).is_empty(),
        "{:?}",
        buckets(store.path())
    );
}

#[test]
fn a_bucket_that_exists_is_left_alone() {
    let (dir, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let posix = format!("posix:{}", store.path().display());
    let server = Serve::start(&["--store", &posix]);
    let exact = |name: &str| {
        let name = format!("keysets.files.buckets.name={name}");
        let args = [
            "ossperf",
            "--objects",
            "2",
            "--size",
            "10",
            "--set",
            &name,
            "--set",
            "keysets.files.buckets.exact=true",
        ];
        run(dir.path(), &server.url(), &args)
    };
    exact("my-own-bucket").expect(0, &["appended"]);
    fs::create_dir(store.path().join("theirs")).unwrap();
    exact("theirs").expect(3, &["`theirs` exists already"]);
    exact("bench").expect(2, &["bucket of the target"]);
    exact("Upper-Case").expect(2, &["upper-case letters"]);
    assert_eq!(buckets(store.path()), ["theirs"]);
}

#[test]
fn provisioning_makes_buckets_with_their_first_objects() {
    let (dir, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let posix = format!("posix:{}", store.path().display());
    let server = Serve::start(&["--store", &posix]);
    let args = ["bucket-provision", "--output", "json"];
    let outcome = run(dir.path(), &server.url(), &args);
    outcome.expect(0, &[]);
    let result = outcome.json();
    let phase = &result["phases"]
        .as_array()
        .unwrap()
        .iter()
        .find(|p| p["name"] == "provision");
    let classes = phase.unwrap()["classes"].as_array().unwrap();
    let counts: Vec<(&str, u64)> = classes
        .iter()
        .map(|c| (c["class"].as_str().unwrap(), c["ok"].as_u64().unwrap()))
        .collect();
    assert_eq!(counts, [("put", 20), ("make-bucket", 20)]);
    assert!(buckets(store.path()).is_empty());
}

#[test]
fn buckets_of_a_killed_run_are_found_by_cleanup() {
    let (dir, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let posix = format!("posix:{}", store.path().display());
    // Deletes never end, so the run is killed in the middle of step 5.
    let server = Serve::start(&["--store", &posix, "--fault", "delay,time=3600s,op=delete"]);
    let url = server.url();
    let args = [
        "run",
        "ossperf",
        "--objects",
        "4",
        "--size",
        "1KiB",
        "--target",
        "s3://bench/t",
        "--create-bucket",
        "--endpoint-url",
        &url,
        "--no-calibration",
        "--timeout",
        "1h",
        "--quiet",
        "--out",
        "killed",
    ];
    let mut child = bucketload(dir.path(), &args).spawn().unwrap();
    let made = || {
        buckets(store.path())
            .into_iter()
            .find(|name| name.starts_with("ossperf-"))
    };
    let files = |bucket: &str| {
        let mut stack = vec![store.path().join(bucket)];
        let mut n = 0;
        while let Some(dir) = stack.pop() {
            for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
                if entry.path().is_dir() {
                    stack.push(entry.path())
                } else {
                    n += 1
                }
            }
        }
        n
    };
    let bucket = wait_for("four files", || {
        assert!(child.try_wait().unwrap().is_none(), "it ended before");
        made().filter(|bucket| files(bucket) >= 4)
    });
    child.kill().unwrap();
    child.wait().unwrap();
    // A foreign bucket with a similar name stays.
    fs::create_dir(store.path().join("ossperf-theirs")).unwrap();
    let cleanup = |more: &[&str]| {
        let args = [
            "cleanup",
            "--target",
            "s3://bench/t",
            "--endpoint-url",
            &url,
        ];
        call(&mut bucketload(dir.path(), &[&args[..], more].concat()))
    };
    let dry = cleanup(&["--dry-run"]);
    dry.expect(0, &[]);
    assert!(
        dry.stdout
            .contains(&format!("s3://{bucket}: 4 objects and the bucket would be")),
        "{}",
        dry.stdout
    );
    assert!(made().is_some());
    let outcome = cleanup(&[]);
    outcome.expect(0, &[]);
    assert!(
        outcome
            .stdout
            .contains(&format!("s3://{bucket}: 4 objects and the bucket deleted")),
        "{}",
        outcome.stdout
    );
    // The target's bucket, which the run created, is empty and deleted as well.
    assert_eq!(buckets(store.path()), ["ossperf-theirs"]);
    // The run directory of the killed run is readable, and says that there is no line.
    let report = call(&mut bucketload(dir.path(), &["report", "killed"]));
    report.expect(0, &[]);
    assert!(
        report.stdout.contains("no line for results.csv"),
        "{}",
        report.stdout
    );
}
