//! The main user journeys: a run without configuration, a killed run, verification, clean-up among foreign objects.

use std::io::Read;
use std::time::{Duration, Instant};

use crate::common::{Serve, bucketload, call};

#[test]
fn a_closed_pipe_is_not_an_error() {
    let dir = tempfile::tempdir().unwrap();
    for args in [
        &["workloads"][..],
        &["show", "smoke"],
        &["schema"],
        &["run", "smoke", "--dry-run", "--quiet"],
        &["config", "show", "smoke"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let out = bucketload(dir.path(), args)
            .stdout(writer)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(
            out.status.success() && !said.contains("panicked"),
            "{args:?}: {said}"
        );
    }
}

#[test]
fn a_run_without_any_configuration_ends_with_a_verdict_and_a_report() {
    let dir = tempfile::tempdir().unwrap();
    let args = [
        "run",
        "online-service",
        "--duration",
        "4s",
        "--objects",
        "200",
        "--rate",
        "150/s",
        "--out",
        "out",
        "--output",
        "json",
        "--op-log=csv.zst",
    ];
    let outcome = call(&mut bucketload(dir.path(), &args));
    outcome.expect(0, &[]);
    let result = outcome.json();
    assert!(result["verdict"]["word"].is_string(), "{result}");
    let phases = result["phases"].as_array().unwrap();
    let ended: u64 = phases
        .iter()
        .flat_map(|phase| ["ok", "failed", "cancelled"].map(|k| phase["totals"][k].as_u64()))
        .map(Option::unwrap)
        .sum();
    let log = &result["run"]["op_log"];
    assert_eq!(log["complete"], true, "{log}");
    let logged = log["rows"].as_u64().unwrap() + log["dropped"].as_u64().unwrap();
    assert_eq!(
        logged, ended,
        "every operation is logged or counted as dropped"
    );
    let main = phases.iter().find(|phase| phase["kind"] == "run").unwrap();
    let slowest = &main["slowest"]["top"][0];
    assert!(slowest["local_port"].as_u64().unwrap() > 0, "{slowest}");
    assert!(slowest["request_id"].is_string(), "{slowest}");
    let report = std::fs::read_to_string(dir.path().join("out/report.html")).unwrap();
    assert!(report.contains("online-service"));
    for file in [
        "run.json",
        "intervals.jsonl",
        "events.jsonl",
        "slowest.jsonl",
        "ops-00000.csv.zst",
    ] {
        assert!(dir.path().join("out").join(file).is_file(), "{file}");
    }
}

#[test]
fn a_killed_run_leaves_a_readable_directory_and_no_server() {
    let dir = tempfile::tempdir().unwrap();
    let args = [
        "run",
        "online-service",
        "--duration",
        "60s",
        "--objects",
        "100",
        "--out",
        "out",
        "--quiet",
    ];
    let mut child = bucketload(dir.path(), &args).spawn().unwrap();
    let intervals = dir.path().join("out/intervals.jsonl");
    let deadline = Instant::now() + Duration::from_secs(60);
    // Kills the run as soon as three seconds of the measured phase are on disk.
    while std::fs::read_to_string(&intervals)
        .unwrap_or_default()
        .matches("\"phase\":2")
        .count()
        < 3
    {
        assert!(Instant::now() < deadline, "no intervals appeared");
        assert!(
            child.try_wait().unwrap().is_none(),
            "the run ended by itself"
        );
        std::thread::yield_now();
    }
    let servers = children_of(child.id());
    assert_eq!(servers.len(), 1, "the embedded server is a child process");
    child.kill().unwrap();
    child.wait().unwrap();
    while servers.iter().any(|&pid| alive(pid)) {
        assert!(
            Instant::now() < deadline,
            "the embedded server outlived its parent"
        );
        std::thread::yield_now();
    }
    let outcome = call(&mut bucketload(
        dir.path(),
        &["report", "out", "--output", "json"],
    ));
    outcome.expect(0, &[]);
    assert_eq!(outcome.json()["verdict"]["word"], "INCOMPLETE");
    assert!(dir.path().join("out/report.html").is_file());
}

fn children_of(pid: u32) -> Vec<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let mut text = String::new();
    std::fs::File::open(path)
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    text.split_whitespace()
        .map(|pid| pid.parse().unwrap())
        .collect()
}

fn alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

#[test]
fn verification_finds_every_injected_corruption_and_none_without() {
    let dir = tempfile::tempdir().unwrap();
    for (fault, found) in [(Some("corrupt,every=100,count=1000"), 1000), (None, 0)] {
        let mut serve = vec!["--store", "memory"];
        serve.extend(fault.iter().flat_map(|rule| ["--fault", rule]));
        let server = Serve::start(&serve);
        let out = format!("out{found}");
        let url = server.url();
        let args = [
            "run",
            "get",
            "--verify",
            "--objects",
            "500",
            "--size",
            "1KiB",
            "--ops",
            "100000",
            "--workers",
            "16",
            // Everything counts, however slow the machine is: no warm-up is cut off, and no time limit applies.
            "--duration",
            "1h",
            "--set",
            "phases.run.steady-state=false",
            "--target",
            "s3://bench/v",
            "--create-bucket",
            "--endpoint-url",
            &url,
            "--out",
            &out,
            "--output",
            "json",
        ];
        let outcome = call(&mut bucketload(dir.path(), &args));
        outcome.expect(i32::from(found > 0), &[]);
        let result = outcome.json();
        assert_eq!(corrupt(&result), found, "{result}");
    }
}

/// Corrupt operations over all classes of the measured phase.
fn corrupt(result: &serde_json::Value) -> u64 {
    let list = |value: &serde_json::Value| value.as_array().cloned().unwrap_or_default();
    let phases = list(&result["phases"]);
    let run = phases.iter().find(|phase| phase["kind"] == "run").unwrap();
    list(&run["classes"])
        .iter()
        .flat_map(|class| list(&class["errors"]))
        .filter(|error| error["kind"] == "corrupt")
        .filter_map(|error| error["count"].as_u64())
        .sum()
}

#[test]
fn cleaning_up_leaves_foreign_objects_alone() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    std::fs::create_dir(&store).unwrap();
    let server = Serve::start(&["--store", &format!("posix:{}", store.display())]);
    let url = server.url();
    let put = |out: &str, more: &[&str]| {
        let base = [
            "run",
            "put",
            "--size",
            "1KiB",
            "--workers",
            "4",
            "--ops",
            "300",
            "--target",
            "s3://shared/t",
            "--endpoint-url",
            &url,
            "--output",
            "json",
            "--out",
            out,
        ];
        call(&mut bucketload(dir.path(), &[&base, more].concat())).expect(0, &[]);
    };
    // The objects that the first run keeps are foreign to the second.
    put("out1", &["--create-bucket", "--keep"]);
    let before = files(&store);
    assert!(before >= 300, "{before} files");
    put("out2", &[]);
    assert_eq!(files(&store), before);
}

fn files(dir: &std::path::Path) -> usize {
    std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| {
            if entry.file_type().unwrap().is_dir() {
                files(&entry.path())
            } else {
                1
            }
        })
        .sum()
}
