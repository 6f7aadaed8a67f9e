//! Versions, locks, encryption and storage classes from the user's view.

use std::path::Path;

use serde_json::Value;

use crate::common::{Outcome, Serve, bucketload, call, workload};

const VERSIONS: &str = r#"
name = "versions"
not-found = "expected"
ORACLE

[keysets.data]
count = 40
size = "uniform(1, 20KiB)"
versions = 3

[phases.run]
ops = 1500
workers = 4
keyset = "data"
mix = { get-version = 40, put = { weight = 20, keys = "uniform" }, delete-version = { weight = 20, keys = "uniform" }, list-versions = 10, get = 10 }
"#;

const LOCKS: &str = r#"
name = "locks"
not-found = "expected"

[keysets.data]
count = 20
size = "1KiB"

[phases.lock]
ops = 40
workers = 1
keyset = "data"
mix = { put-retention = { keys = "sequential", days = 3 }, put-legal-hold = { keys = "sequential" } }

[phases.run]
ops = 300
workers = 2
keyset = "data"
mix = { get-retention = 1, get-legal-hold = 1, get-acl = 1, put-acl = 1, get-attributes = 1, head = 1 }
"#;

fn run(dir: &Path, server: &Serve, text: &str, more: &[&str]) -> Outcome {
    let file = workload(dir, text);
    let (file, url) = (file.to_string_lossy().into_owned(), server.url());
    let args = [
        "run",
        &file,
        "--target",
        "s3://versioned/p",
        "--endpoint-url",
        &url,
        "--no-calibration",
        "--threads",
        "2",
        "--output",
        "json",
    ];
    call(&mut bucketload(dir, &[&args, more].concat()))
}

/// Whether the server still has the bucket of the runs.
fn has_bucket(dir: &Path, server: &Serve) -> bool {
    let url = server.url();
    let args = [
        "cleanup",
        "--target",
        "s3://versioned/p",
        "--endpoint-url",
        &url,
    ];
    match call(&mut bucketload(dir, &args)) {
        Outcome { code: 0, .. } => true,
        other => {
            other.expect(3, &["versioned"]);
            false
        }
    }
}

/// The number of operations of each class that worked.
fn done(result: &Value, class: &str) -> u64 {
    let text = result.to_string();
    assert!(text.contains(&format!("\"{class}\"")), "{class}: {text}");
    let phases = result["phases"].as_array().unwrap();
    let classes = phases
        .iter()
        .flat_map(|phase| phase["classes"].as_array().unwrap());
    let of_class = classes.filter(|row| row["class"] == class);
    of_class.map(|row| row["ok"].as_u64().unwrap()).sum()
}

#[test]
fn versions_are_read_removed_and_judged() {
    let dir = tempfile::tempdir().unwrap();
    let server = Serve::start(&["--store", "memory"]);
    let text = VERSIONS.replace("ORACLE", "oracle = true");
    let outcome = run(dir.path(), &server, &text, &["--create-bucket"]);
    outcome.expect(0, &[]);
    let result = outcome.json();
    for class in ["get-version", "delete-version", "list-versions", "put"] {
        assert!(done(&result, class) > 50, "{class}");
    }
    let oracle = &result["oracle"];
    assert_eq!(oracle["found"], serde_json::json!({}), "{oracle}");
    // The versions that are left are audited as well as the objects.
    assert!(
        oracle["summary"]["audited"].as_u64().unwrap() > 0,
        "{oracle}"
    );
    assert!(!has_bucket(dir.path(), &server));
    // Without the oracle, every byte is compared on request.
    let verified = run(
        dir.path(),
        &server,
        &VERSIONS.replace("ORACLE", ""),
        &[
            "--create-bucket",
            "--set",
            "phases.run.mix={get-version=1}",
            "--verify",
        ],
    );
    verified.expect(0, &[]);
    assert_eq!(done(&verified.json(), "get-version"), 1500);
}

#[test]
fn wrong_versions_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let text = VERSIONS.replace("ORACLE", "oracle = true");
    for (fault, kind) in [
        ("corrupt,op=get,contains=/data/,count=20", "corrupt"),
        ("status=404,op=get,contains=/data/,count=20", "lost"),
    ] {
        let server = Serve::start(&["--store", "memory", "--fault", fault]);
        let set = "phases.run.mix={get-version=1}";
        let outcome = run(
            dir.path(),
            &server,
            &text,
            &["--create-bucket", "--set", set],
        );
        outcome.expect(1, &[]);
        let found = outcome.json()["oracle"]["found"].clone();
        assert!(
            found[kind]["answers"].as_u64().unwrap_or(0) > 0,
            "{fault}: {found}"
        );
    }
}

#[test]
fn buckets_and_targets_without_versions_are_refused_before_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let server = Serve::start(&["--store", "memory"]);
    let text = VERSIONS.replace("ORACLE", "");
    // A bucket of somebody else is left as it is.
    let keep = [
        "--create-bucket",
        "--keep",
        "--set",
        "keysets.data.versions=1",
    ];
    let put = run(
        dir.path(),
        &server,
        &text,
        &[&keep[..], &["--set", "phases.run.mix={put=1}"]].concat(),
    );
    put.expect(0, &[]);
    let again = run(dir.path(), &server, &text, &["--create-bucket"]);
    again.expect(
        3,
        &["keeps no versions", "enable versioning", "--create-bucket"],
    );
    let locks = run(dir.path(), &server, LOCKS, &[]);
    locks.expect(3, &["keeps no versions"]);
    let file = workload(dir.path(), &text);
    let files = format!("file://{}", dir.path().join("files").display());
    std::fs::create_dir(dir.path().join("files")).unwrap();
    let args = ["run", &*file.to_string_lossy(), "--target", &files];
    let refused = call(&mut bucketload(dir.path(), &args));
    refused.expect(
        2,
        &["cannot perform delete-version, get-version, list-versions"],
    );
    let many = run(
        dir.path(),
        &server,
        &text,
        &["--create-bucket", "--set", "keysets.data.count=400000"],
    );
    many.expect(
        2,
        &["key set `data`", "1048576", "lower `count` or `versions`"],
    );
    let appends = ["--create-bucket", "--set", "phases.run.mix={append=1}"];
    let appends = run(dir.path(), &server, &text, &appends);
    appends.expect(2, &["an append makes no version", "use put"]);
}

#[test]
fn locked_objects_are_removed_at_the_end_or_by_cleanup() {
    let dir = tempfile::tempdir().unwrap();
    let server = Serve::start(&["--store", "memory"]);
    let outcome = run(dir.path(), &server, LOCKS, &["--create-bucket"]);
    outcome.expect(0, &[]);
    let result = outcome.json();
    for class in [
        "put-retention",
        "put-legal-hold",
        "get-retention",
        "get-legal-hold",
    ] {
        assert!(done(&result, class) > 10, "{class}");
    }
    assert!(!has_bucket(dir.path(), &server));
    run(dir.path(), &server, LOCKS, &["--create-bucket", "--keep"]).expect(0, &[]);
    assert!(has_bucket(dir.path(), &server));
    assert!(!has_bucket(dir.path(), &server));
}

#[test]
fn objects_are_kept_as_the_flags_ask_and_no_key_is_shown() {
    const KEY: &str = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=";
    let dir = tempfile::tempdir().unwrap();
    let server = Serve::start(&["--store", "memory"]);
    let file = dir.path().join("key");
    std::fs::write(&file, format!("{KEY}\n")).unwrap();
    let text = VERSIONS
        .replace("ORACLE", "verify = true")
        .replace("versions = 3\n", "");
    let set = ["--create-bucket", "--set", "phases.run.mix={get=1,head=1}"];
    let sse_c = [
        "--sse-c",
        "key",
        "--storage-class",
        "REDUCED_REDUNDANCY",
        "--out",
        "kept",
    ];
    let outcome = run(dir.path(), &server, &text, &[&set[..], &sse_c].concat());
    outcome.expect(0, &[]);
    let shown = outcome.json()["run"].to_string();
    assert!(
        shown.contains("REDUCED_REDUNDANCY") && shown.contains("customer's key ***"),
        "{shown}"
    );
    for entry in std::fs::read_dir(dir.path().join("kept")).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&bytes).contains(&KEY[..20]));
    }
    assert!(!format!("{}{}", outcome.stdout, outcome.stderr).contains(&KEY[..20]));
    let url = server.url();
    let config = [
        "config",
        "show",
        "--target",
        "s3://b",
        "--endpoint-url",
        &url,
    ];
    let mut with_key = bucketload(dir.path(), &config);
    let shown = call(with_key.env("BUCKETLOAD_SSE_C_KEY", KEY));
    shown.expect(0, &[]);
    assert!(
        shown.stdout.contains("BUCKETLOAD_SSE_C_KEY"),
        "{}",
        shown.stdout
    );
    assert!(!shown.stdout.contains(&KEY[..20]), "{}", shown.stdout);
    for (flags, words) in [
        (&["--sse", "AES128"][..], "AES256, aws:kms"),
        (&["--sse-c", "absent"], "absent: the file cannot be read"),
        (&["--sse", "AES256", "--sse-c", "key"], "one encryption"),
        (&["--storage-class", "a b"], "STANDARD_IA"),
        (
            &["--sse", "AES256", "--engine", "cli:s3cmd"],
            "native client",
        ),
    ] {
        run(dir.path(), &server, &text, &[&set[..], flags].concat()).expect(2, &[words]);
    }
    // The server knows no key service, and says so before the load.
    let kms = run(
        dir.path(),
        &server,
        &text,
        &[&set[..], &["--sse", "aws:kms"]].concat(),
    );
    assert_ne!(kms.code, 0);
    let doctor = [
        "doctor",
        "s3://b",
        "--endpoint-url",
        &url,
        "--sse",
        "AES256",
    ];
    call(&mut bucketload(dir.path(), &doctor))
        .expect(2, &["--sse: doctor writes objects without it"]);
}
