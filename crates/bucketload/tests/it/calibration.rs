//! Calibrations that are kept: a second run starts without one and says so, and a doubtful one is not used again.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{Outcome, bucketload, call};

/// A short run whose cache is in `dir`.
fn run(dir: &Path, args: &[&str]) -> Outcome {
    let base = [
        "run",
        "get",
        "--target",
        "mem:",
        "--objects",
        "5",
        "--size",
        "1KiB",
        "--ops",
        "50",
        "--threads",
        "1",
        "--output",
        "json",
    ];
    let mut command = bucketload(dir, &[&base[..], args].concat());
    call(command.env("XDG_CACHE_HOME", dir.join("cache")))
}

/// The result of a run.
fn result(dir: &Path, args: &[&str]) -> Value {
    let outcome = run(dir, args);
    outcome.expect(0, &[]);
    outcome.json()
}

fn age(result: &Value) -> Option<u64> {
    assert!(result["calibration"]["null_ops_per_s"].as_f64().unwrap() > 0.0);
    result["calibration"]
        .get("age_s")
        .map(|age| age.as_u64().unwrap())
}

/// The files of the cache.
fn kept(dir: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(dir.join("cache/bucketload/calibrations"));
    files
        .into_iter()
        .flatten()
        .map(|file| file.unwrap().path())
        .collect()
}

#[test]
fn a_calibration_is_used_again_for_the_same_run_and_the_verdict_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    assert_eq!(age(&result(dir, &[])), None);
    let files = kept(dir);
    assert_eq!(files.len(), 1);
    let second = result(dir, &[]);
    assert!(age(&second).unwrap() < 3600);
    let notes = second["verdict"]["notes"].to_string();
    assert!(notes.contains("calibration from the cache"), "{notes}");
    let stored =
        |file: &Path| -> Value { serde_json::from_slice(&fs::read(file).unwrap()).unwrap() };
    let first = stored(&files[0]);
    assert_eq!(
        first["calibration"]["null_ops_per_s"],
        second["calibration"]["null_ops_per_s"]
    );
    // Measured again on demand, and for other workloads and thread options.
    assert_eq!(age(&result(dir, &["--no-calibration-cache"])), None);
    assert_eq!(age(&result(dir, &["--workers", "4"])), None);
    assert_eq!(age(&result(dir, &["--cores", "none"])), None);
    assert_eq!(kept(dir).len(), 3);
    run(dir, &["--no-calibration-cache", "--no-calibration"]).expect(2, &["cannot be used with"]);
}

#[test]
fn a_calibration_that_limits_the_verdict_is_measured_again() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    result(dir, &[]);
    let file = kept(dir).remove(0);
    let mut entry: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    entry["calibration"]["null_ops_per_s"] = 1.0.into();
    fs::write(&file, entry.to_string()).unwrap();
    let limited = result(dir, &[]);
    assert!(age(&limited).is_some());
    assert_eq!(
        limited["verdict"]["word"], "CLIENT-BOUND",
        "{}",
        limited["verdict"]
    );
    assert_eq!(kept(dir).len(), 0);
    assert_eq!(age(&result(dir, &[])), None);
    // One that is too old, or of the future, is not used either.
    for shift in [-90_000i64, 90_000] {
        let file = kept(dir).remove(0);
        let mut entry: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        let measured = entry["measured_unix_s"].as_i64().unwrap();
        entry["measured_unix_s"] = (measured + shift).into();
        fs::write(&file, entry.to_string()).unwrap();
        assert_eq!(age(&result(dir, &[])), None, "{shift}");
    }
}
