//! Clients other than the native one. The command-line client is a script that keeps objects in a directory, because
//! these tests cover what the engine does around a process.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::common::{Serve, bucketload, call};

/// A stand-in for s3cmd, which logs its arguments to `log` and keeps objects below `store`.
const STAND_IN: &str = r#"#!/bin/sh
here=$(dirname "$0")
[ "$1" = --version ] && { echo "s3cmd version 9.9"; exit 0; }
echo "$@" >> "$here/log"
config=$2
shift 3
verb=$1
shift
name() { echo "${1#s3://}" | tr / _; }
case $verb in
  put) cp "$1" "$here/store/$(name "$2")" ;;
  get) shift; from="$here/store/$(name "$1")"
       [ -f "$from" ] || { echo "ERROR: S3 error: 404 (NoSuchKey)" >&2; exit 12; }
       cp "$from" "$2"
       [ -f "$here/flip" ] && printf X | dd of="$2" bs=1 seek=100 conv=notrunc 2>/dev/null
       grep -q "secret_key" "$config" ;;
  *) echo "ERROR: $verb" >&2; exit 64 ;;
esac
"#;

fn stand_in(dir: &Path) {
    fs::create_dir_all(dir.join("store")).unwrap();
    let path = dir.join("s3cmd");
    fs::write(&path, STAND_IN).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// `bucketload run get` with the stand-in.
fn get(dir: &Path, more: &[&str]) -> crate::common::Outcome {
    let base = [
        "run",
        "get",
        "--engine",
        "cli:s3cmd",
        "--objects",
        "4",
        "--size",
        "5KiB",
        "--workers",
        "2",
        "--ops",
        "12",
        "--no-calibration",
        "--verify",
        "--output",
        "json",
    ];
    let path = format!("{}:/usr/bin:/bin", dir.display());
    let args = [&base, more].concat();
    call(bucketload(dir, &args).env("PATH", path).env("TMPDIR", dir))
}

#[test]
fn a_command_line_client_is_measured_and_its_content_verified() {
    let dir = tempfile::tempdir().unwrap();
    stand_in(dir.path());
    let outcome = get(dir.path(), &["--out", "run"]);
    outcome.expect(0, &[]);
    let result = outcome.json();
    let phases = result["phases"].as_array().unwrap();
    let run = phases.iter().find(|p| p["kind"] == "run").unwrap();
    assert_eq!(
        (&run["totals"]["ok"], &run["totals"]["failed"]),
        (&12.into(), &0.into())
    );
    let header = fs::read_to_string(dir.path().join("run/run.json")).unwrap();
    for word in ["cli:s3cmd", "s3cmd version 9.9", "not visible"] {
        assert!(header.contains(word), "{word} is not in {header}");
    }
    // Secrets are not in any arguments, and the files that held them are deleted.
    let log = fs::read_to_string(dir.path().join("log")).unwrap();
    assert_eq!(log.lines().filter(|l| l.contains(" put ")).count(), 4);
    assert_eq!(log.lines().filter(|l| l.contains(" get ")).count(), 12);
    let left = fs::read_dir(dir.path()).unwrap();
    let left = left.map(|e| e.unwrap().file_name().into_string().unwrap());
    assert_eq!(
        left.filter(|n| n.starts_with("bucketload-client")).count(),
        0
    );

    fs::write(dir.path().join("flip"), "").unwrap();
    let outcome = get(dir.path(), &["--out", "flipped"]);
    outcome.expect(1, &[]);
    assert!(outcome.stdout.contains("corrupt"), "{}", outcome.stdout);
}

#[test]
fn operations_that_an_engine_lacks_are_refused_with_a_reason() {
    let (dir, server) = (
        tempfile::tempdir().unwrap(),
        Serve::start(&["--store", "memory"]),
    );
    stand_in(dir.path());
    let refused = |args: &[&str], words: &[&str]| {
        let path = format!("{}:/nowhere", dir.path().display());
        let base = ["run", "put", "--ops", "1", "--size", "1KiB"];
        call(bucketload(dir.path(), &[&base, args].concat()).env("PATH", path)).expect(2, words);
    };
    refused(
        &["--engine", "cli:rclone"],
        &["no program `rclone`", "apt-get install"],
    );
    refused(&["--engine", "minio"], &["cli:PROGRAM"]);
    refused(&["--engine-retries", "2"], &["the workload's `retry`"]);
    for target in ["null:", "file:///nowhere/x", "gs://b"] {
        let args = ["--engine", "cli:s3cmd", "--target", target];
        refused(&args, &["--engine: ", " targets; ", "`native`"]);
    }
    refused(
        &["--engine", "cli:s3cmd", "--checksum", "crc32"],
        &["--checksum"],
    );
    let url = server.url();
    let s3 = [
        "--target",
        "s3://b/p",
        "--endpoint-url",
        &url,
        "--create-bucket",
    ];
    refused(
        &[
            &s3[..],
            &["--engine", "cli:s3cmd", "--source-address", "127.0.0.1"],
        ]
        .concat(),
        &["--source-address"],
    );
    // The workload has an operation for which the client has no command.
    let base = [
        "run",
        "range-get",
        "--engine",
        "cli:s3cmd",
        "--ops",
        "1",
        "--no-calibration",
    ];
    let path = format!("{}:/usr/bin:/bin", dir.path().display());
    call(bucketload(dir.path(), &[&base[..], &s3].concat()).env("PATH", path))
        .expect(2, &["range-get"]);
}

#[cfg(not(feature = "engine-aws-sdk"))]
#[test]
fn a_library_that_is_not_built_in_is_refused_with_the_command_that_builds_it() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["run", "put", "--ops", "1", "--engine", "aws-sdk"];
    call(&mut bucketload(dir.path(), &args))
        .expect(2, &["not part of this build", "--features engine-aws-sdk"]);
}
