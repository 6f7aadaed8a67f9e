//! The consistency oracle from the user's view: every injected fault is found and classified. A correct store has no
//! findings, whatever happens to the connections.

use std::io::{Read, Write};
use std::path::Path;

use crate::common::{Outcome, Serve, bucketload, call, workload};
use serde_json::Value;

/// A busy key set, and a key set for each kind of fault.
const WORKLOAD: &str = include_str!("../workloads/consistency.toml");

/// Faults of connections and answers on the busy key set, none of which makes the store inconsistent. They spare the
/// preparation.
const TROUBLE: [&str; 4] = [
    "reset,contains=/mixed/,after=30,prob=0.02",
    "truncate,contains=/mixed/,after=30,prob=0.02",
    "status=503,contains=/mixed/,after=30,prob=0.02",
    "delay,time=2500ms,contains=/mixed/,after=30,every=150",
];

/// Runs the workload. Returns its outcome, and how often the server applied each fault.
fn run(dir: &Path, store: &str, faults: &[&str], out: &str) -> (Outcome, Vec<u64>) {
    let mut args = vec!["--store", store, "--stats-page"];
    for fault in TROUBLE.iter().chain(faults) {
        args.extend(["--fault", fault]);
    }
    let server = Serve::start(&args);
    let file = workload(dir, WORKLOAD);
    let outcome = call(&mut bucketload(
        dir,
        &[
            "run",
            &file.to_string_lossy(),
            "--target",
            "s3://bench/t",
            "--create-bucket",
            "--endpoint-url",
            &server.url(),
            "--threads",
            "2",
            "--no-calibration",
            "--out",
            out,
            "--output",
            "json",
        ],
    ));
    let mut stream = std::net::TcpStream::connect(&server.address).unwrap();
    let request = "GET /-/bucketload/stats HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    let stats: Value = serde_json::from_str(body).unwrap();
    let faults = stats["faults"].as_array().unwrap().iter();
    let injected = faults.map(|fault| fault["injected"].as_u64().unwrap());
    (outcome, injected.collect())
}

fn found(result: &Value) -> Vec<(String, u64, u64)> {
    let found = result["oracle"]["found"].as_object().unwrap();
    found
        .iter()
        .map(|(kind, count)| {
            let n = |name: &str| count[name].as_u64().unwrap();
            (kind.clone(), n("findings"), n("answers"))
        })
        .collect()
}

#[test]
fn every_injected_fault_is_found_and_classified() {
    let dir = tempfile::tempdir().unwrap();
    let faults = [
        "stale,contains=/stale/,every=2,count=100",
        "lost,contains=/lost/,count=100",
        "torn,contains=/torn/,count=100",
        "resurrect,contains=/dead/,count=100",
    ];
    let (outcome, injected) = run(dir.path(), "memory", &faults, "out");
    assert_eq!(injected[TROUBLE.len()..], [100; 4]);
    assert!(injected[..TROUBLE.len()].iter().all(|&n| n > 0));
    outcome.expect(1, &[]);
    let result = outcome.json();
    let found = found(&result);
    let kinds: Vec<&str> = found.iter().map(|(kind, ..)| kind.as_str()).collect();
    assert_eq!(kinds, ["lost", "resurrected", "stale", "torn"], "{found:?}");
    for (kind, findings, answers) in &found {
        // Each stale answer is one finding; other faults are states that may be observed several times.
        let n = if kind == "stale" { answers } else { findings };
        assert_eq!(*n, 100, "{kind}: {found:?}");
    }
    let evidence = std::fs::read_to_string(dir.path().join("out/oracle.jsonl")).unwrap();
    assert!(evidence.lines().count() >= 300);
    for line in evidence.lines() {
        let finding: Value = serde_json::from_str(line).unwrap();
        let kind = finding["kind"].as_str().unwrap();
        let key = finding["key"].as_str().unwrap();
        let set = match kind {
            "resurrected" => "/dead/",
            other => &format!("/{other}/"),
        };
        assert!(key.contains(set), "{line}");
        assert!(finding["start_ns"].as_u64().unwrap() > 0, "{line}");
        assert_eq!(finding["offset"].is_u64(), kind == "torn", "{line}");
        if kind != "torn" {
            assert!(finding["missed"]["acknowledged_ns"].is_u64(), "{line}");
        }
    }
    assert!(dir.path().join("out/report.html").is_file());
}

#[test]
fn listings_that_lag_behind_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let lag = "stale-list,lag=1s,contains=/mixed/,every=2";
    let (outcome, injected) = run(dir.path(), "memory", &[lag], "out");
    outcome.expect(1, &[]);
    assert!(injected[TROUBLE.len()] > 0);
    let found = found(&outcome.json());
    assert!(!found.is_empty());
    for (kind, findings, _) in &found {
        let of_listings = matches!(kind.as_str(), "list-missing" | "list-ghost");
        assert!(of_listings && *findings > 0, "{found:?}");
    }
}

#[test]
fn a_correct_store_has_no_finding_whatever_happens_to_its_connections() {
    for store in ["memory", "posix"] {
        let dir = tempfile::tempdir().unwrap();
        let root = format!("posix:{}", dir.path().join("store").display());
        std::fs::create_dir(dir.path().join("store")).unwrap();
        let store = if store == "posix" { &root } else { store };
        let (outcome, injected) = run(dir.path(), store, &[], "out");
        assert!(injected.iter().all(|&n| n > 0), "{injected:?}");
        outcome.expect(0, &[]);
        let result = outcome.json();
        assert_eq!(found(&result), [], "{result}");
        let summary = &result["oracle"]["summary"];
        let n = |name: &str| summary[name].as_u64().unwrap();
        assert_eq!((n("keys"), n("unaudited")), (524, 0), "{summary}");
        assert_eq!(summary["share"], 1.0);
        assert!(n("reads") > 500 && n("lists") > 5, "{summary}");
        assert!(n("mutations") > 700 && n("unknown") > 0, "{summary}");
        assert_eq!(n("audited"), 524, "{summary}");
    }
}

/// A key that the audit cannot read is counted with the reason.
#[test]
fn the_audit_says_why_it_could_not_read() {
    const PUTS: &str = "name = \"puts\"\noracle = true\n[keysets.data]\ncount = 20\nsize = \"1KiB\"\n\
                        [phases.run]\nworkers = 2\nops = 40\nmix.put = { keyset = \"data\" }\n";
    let dir = tempfile::tempdir().unwrap();
    let server = Serve::start(&["--fault", "status=403,op=get,contains=/data/"]);
    let file = workload(dir.path(), PUTS);
    let args = [
        "run",
        &file.to_string_lossy(),
        "--target",
        "s3://bench/t",
        "--create-bucket",
        "--endpoint-url",
        &server.url(),
        "--no-calibration",
        "--out",
        "out",
    ];
    let outcome = call(&mut bucketload(dir.path(), &args));
    let line = outcome
        .stdout
        .lines()
        .find(|line| line.contains("audit:"))
        .unwrap_or_else(|| panic!("{}\n{}", outcome.stdout, outcome.stderr));
    assert!(line.contains("40 could not be read: 40 auth"), "{line}");
    let json = call(&mut bucketload(
        dir.path(),
        &["report", "out", "--output", "json"],
    ));
    assert_eq!(
        json.json()["oracle"]["summary"]["unaudited_why"]["auth"],
        40
    );
}
