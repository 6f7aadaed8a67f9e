//! `bucketload drill` against the embedded server: known faults are found where they are, and mended whatever happens.
//!
//! The machine of the tests is busy, so any verdict on the baseline is accepted where the figures do not depend on it.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;

use bucketload_results::oplog;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::agents::{background, end_of, wait_for};
use crate::common::{Outcome, Serve, bucketload, call};

const ANY: &str = "--accept=degraded,unsteady,overloaded,client-bound";

/// Stages of a few seconds, and a load that is light enough for any machine.
fn file(dir: &Path, faults: &str) {
    let text = format!(
        "name = \"d\"\n[drill]\nwarm = \"500ms\"\nsteady = \"6s\"\nrecover = \"4s\"\nhold = \"1s\"\n\
         interval = \"100ms\"\n[keysets.o]\ncount = 50\nsize = \"1KiB\"\n[phases.run]\nrate = \"250/s\"\n\
         arrival = \"constant\"\n[phases.run.mix]\nget = {{ weight = 70, keyset = \"o\", keys = \"uniform\" }}\n\
         put = {{ weight = 30, keyset = \"o\", keys = \"uniform\" }}\n{faults}\n"
    );
    fs::write(dir.join("d.toml"), text).unwrap();
}

fn args<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let all = [
        "drill",
        "d.toml",
        "--out",
        "out",
        "--output",
        "json",
        "--quiet",
        "--no-calibration",
    ];
    [&all[..], more].concat()
}

fn drill(dir: &Path, faults: &str, more: &[&str]) -> Outcome {
    file(dir, faults);
    call(&mut bucketload(dir, &args(&[&[ANY], more].concat())))
}

/// The figures of a drill that broke what it should.
#[track_caller]
fn figures(outcome: &Outcome) -> Value {
    outcome.expect(0, &[]);
    let drill = outcome.json()["drill"].clone();
    assert_eq!(drill["valid"], true, "{drill}");
    drill
}

fn number(value: &Value, field: &str) -> f64 {
    value[field]
        .as_f64()
        .unwrap_or_else(|| panic!("no {field} in {value}"))
}

/// Start of the first fault and end of the last one, seconds since the load began.
fn span(drill: &Value) -> (f64, f64) {
    let faults = drill["faults"].as_array().unwrap();
    let (first, last) = (&faults[0], &faults[faults.len() - 1]);
    (number(first, "from_s"), number(last, "to_s"))
}

/// Start, end and outcome of each operation of the measured phase, seconds since the load began.
fn operations(out: &Path) -> Vec<(f64, f64, bool)> {
    let journal = fs::read_to_string(out.join("drill.jsonl")).unwrap();
    let began = journal
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let began = began
        .into_iter()
        .find(|entry| entry["entry"] == "began")
        .unwrap();
    let began = began["at_ns"].as_i64().unwrap();
    let mut all = Vec::new();
    oplog::read(out, &["phase", "due_ns", "done_ns", "outcome"], |rows| {
        for i in 0..rows.len {
            if rows.columns[0].text(i) != Some("run") {
                continue;
            }
            let s = |column: usize| (rows.columns[column].int(i).unwrap() - began) as f64 / 1e9;
            all.push((s(1), s(2), rows.columns[3].text(i) == Some("ok")));
        }
    })
    .unwrap();
    all
}

#[test]
fn latency_is_found_at_its_instant_and_so_is_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let fault = "[[fault]]\nwhat = \"latency\"\nfor = \"2s\"\ndelay = \"uniform(395ms, 405ms)\"";
    let drill = figures(&drill(dir.path(), fault, &[]));
    let (from, to) = span(&drill);
    assert!((to - from - 2.0).abs() < 0.1, "{from} {to}");
    // Where the machine alone delays one operation in a hundred as much, nothing can be told apart.
    if number(&drill, "p99_ns") < 200e6 {
        // The first answers that are late arrive one delay after the fault.
        assert!(
            number(&drill["detect"], "from_s") <= 0.6,
            "{}",
            drill["detect"]
        );
        assert!(number(&drill, "p50_ratio") > 3.0, "{}", drill["p50_ratio"]);
    }
    let recover = &drill["recover"];
    assert!(
        recover.is_null() || number(recover, "s") <= 3.0,
        "{recover}"
    );
    assert!(number(&drill["line"], "bytes") > 1e6, "{}", drill["line"]);
    let page = fs::read_to_string(dir.path().join("out/report.html")).unwrap();
    assert!(page.contains("Offered, answered and failed") && page.contains("fault: latency"));
}

#[test]
fn a_black_hole_is_as_long_as_the_gap_and_its_arrivals_wait_for_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let fault = "[[fault]]\nwhat = \"black-hole\"\nfor = \"2s\"";
    let outcome = drill(dir.path(), fault, &["--op-log=csv.zst"]);
    let drill = figures(&outcome);
    let gap = &drill["longest_gap"];
    let (low, high) = (number(gap, "from_s"), number(gap, "to_s"));
    let (from, to) = span(&drill);
    // What was held arrives in a burst, of which a busy machine takes a while to answer the first.
    let length = to - from;
    assert!(
        low <= length + 1.0 && high >= length - 0.05 && high - low <= 0.25,
        "{gap} {length}"
    );
    let waits = operations(&dir.path().join("out"));
    let inside = waits
        .iter()
        .filter(|(due, ..)| *due > from + 0.1 && *due < to - 0.1);
    let inside: Vec<_> = inside.collect();
    assert!(inside.len() > 300, "{}", inside.len());
    assert!(inside.iter().all(|(_, end, ok)| *ok && *end >= to - 0.001));
    assert!(number(&drill, "backlog") > 300.0, "{}", drill["backlog"]);
    assert!(!drill["worked_off"].is_null());
}

#[test]
fn availability_is_the_share_of_the_operation_log() {
    let dir = tempfile::tempdir().unwrap();
    // The latency keeps two dozen connections in use, of which resets strike some.
    let fault = "[[fault]]\nwhat = \"latency\"\ndelay = \"100ms\"\nfor = \"2500ms\"\n\
                 [[fault]]\nwhat = \"reset\"\nat = \"500ms\"\nshare = \"30%\"\nafter = \"20ms\"\nfor = \"2s\"";
    let outcome = drill(
        dir.path(),
        fault,
        &[
            "--op-log=csv.zst",
            "--oracle",
            "--set",
            "drill.deadline=20s",
        ],
    );
    let result = outcome.json();
    let drill = figures(&outcome);
    let (from, _) = span(&drill);
    let all = operations(&dir.path().join("out"));
    // The interval of the first break begins up to 100 ms earlier; nothing fails then.
    let since: Vec<_> = all.iter().filter(|(_, end, _)| *end >= from).collect();
    let failed = since.iter().filter(|(.., ok)| !ok).count();
    assert!(failed > 0, "nothing was reset");
    let available = &drill["available_since"];
    assert_eq!(
        number(available, "of") - number(available, "good"),
        failed as f64,
        "{available}"
    );
    let share = 1.0 - failed as f64 / since.len() as f64;
    assert!(
        (number(available, "share") - share).abs() < 0.01,
        "{available} {share}"
    );
    // Writes whose answers were lost are unknown, never lost.
    let oracle = &result["oracle"];
    assert!(oracle["found"].as_object().unwrap().is_empty(), "{oracle}");
}

#[test]
fn forged_answers_are_as_frequent_as_asked() {
    let dir = tempfile::tempdir().unwrap();
    let fault = "[[fault]]\nwhat = \"answer\"\nstatus = 503\nshare = \"10%\"\nfor = \"4s\"";
    let drill = figures(&drill(dir.path(), fault, &[]));
    let errors = drill["errors"].as_array().unwrap();
    assert_eq!(errors.len(), 1, "{errors:?}");
    // 1000 operations in 4 s, six standard deviations of a binomial.
    let count = number(&errors[0], "count");
    assert!((43.0..=160.0).contains(&count), "{errors:?}");
}

#[test]
fn nothing_is_broken_on_a_baseline_that_cannot_be_believed() {
    let dir = tempfile::tempdir().unwrap();
    let hook = "[[fault]]\nwhat = \"hook\"\nfor = \"1s\"\nbreak = \"touch broken\"\nmend = \"touch mended\"";
    let outcome = drill(dir.path(), hook, &["--rate", "20/s"]);
    outcome.expect(1, &["nothing was broken", "p99 needs 1000", "help:"]);
    assert!(!dir.path().join("broken").exists() && !dir.path().join("mended").exists());
}

#[test]
fn a_dry_run_prints_the_commands_and_wrong_drills_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    file(
        dir.path(),
        "[[fault]]\nwhat = \"hook\"\nfor = \"1s\"\nbreak = \"touch broken\"",
    );
    let dry = [
        "drill",
        "d.toml",
        "--hook",
        "mend=touch mended",
        "--dry-run",
    ];
    let outcome = call(&mut bucketload(dir.path(), &dry));
    outcome.expect(0, &[]);
    for words in [
        "break, at most 30s: touch broken",
        "mend, at most 30s: touch mended",
    ] {
        assert!(outcome.stdout.contains(words), "{}", outcome.stdout);
    }
    let without = call(&mut bucketload(
        dir.path(),
        &["drill", "d.toml", "--dry-run"],
    ));
    without.expect(2, &["d.toml:18", "fault.mend", "--hook"]);
    assert!(!dir.path().join("broken").exists());
    let stray = "[[fault]]\nwhat = \"black-hole\"\nfor = \"1s\"\nendpoints = [\"http://h:1\"]";
    drill(dir.path(), stray, &[]).expect(
        2,
        &[
            "d.toml:20",
            "no endpoint",
            "its endpoints are http://127.0.0.1",
        ],
    );
    drill(dir.path(), stray, &["--target", "file:///tmp/x"]).expect(2, &["no connections"]);
    let run = call(&mut bucketload(dir.path(), &["run", "d.toml"]));
    run.expect(2, &["bucketload drill"]);
}

#[test]
fn writes_that_the_store_forgot_are_lost_and_those_without_an_answer_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let server = Serve::start(&["--fault", "lost,op=put,after=60,every=40"]);
    let (url, target) = (
        server.url(),
        [
            "--target",
            "s3://bench/p",
            "--create-bucket",
            "--oracle",
            "--endpoint-url",
        ],
    );
    let fault = "[[fault]]\nwhat = \"half-open\"\nshare = \"50%\"\nfor = \"1s\"";
    let outcome = drill(dir.path(), fault, &[&target[..], &[url.as_str()]].concat());
    assert_eq!(outcome.code, 1, "{}", outcome.stderr);
    let result = outcome.json();
    assert_eq!(result["drill"]["valid"], true, "{}", result["drill"]["why"]);
    let found = &result["oracle"]["found"]["lost"]["findings"];
    let data = &result["drill"]["data"];
    assert!(
        found.as_u64() > Some(0) && data["audited"] == true,
        "{data}"
    );
    let staged = data["by_stage"].as_array().unwrap();
    let lost = staged.iter().filter(|row| row["kind"] == "lost");
    assert!(lost.clone().all(|row| row["shown"] == "audit"), "{data}");
    let sum: u64 = lost.map(|row| row["count"].as_u64().unwrap()).sum();
    assert_eq!(Some(sum), found.as_u64());
    let report = call(&mut bucketload(dir.path(), &["report", "out"]));
    report.expect(0, &[]);
    for words in [
        "lost: ",
        "acknowledged ",
        "shown in the audit",
        "write request ",
    ] {
        assert!(report.stdout.contains(words), "{words}: {}", report.stdout);
    }
}

#[test]
fn tls_passes_unopened_and_the_name_of_the_host_is_still_checked() {
    let dir = tempfile::tempdir().unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let names = vec!["localhost".to_owned()];
    let cert = rcgen::CertificateParams::new(names).unwrap();
    let cert = cert.self_signed(&key).unwrap();
    fs::write(dir.path().join("cert.pem"), cert.pem()).unwrap();
    fs::write(dir.path().join("key.pem"), key.serialize_pem()).unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (pem, key) = (path("cert.pem"), path("key.pem"));
    let server = Serve::start(&["--store", "memory", "--tls-cert", &pem, "--tls-key", &key]);
    let port = server.address.rsplit(':').next().unwrap();
    let through = |host: &str, fault: &str| {
        let _ = fs::remove_dir_all(dir.path().join("out"));
        let line = format!(
            "--target s3://bench/p --create-bucket --ca-bundle {pem} --endpoint-url https://{host}:{port}"
        );
        drill(dir.path(), fault, &line.split(' ').collect::<Vec<_>>())
    };
    let slow = "[[fault]]\nwhat = \"latency\"\nfor = \"1s\"\ndelay = \"50ms\"";
    // The certificate names localhost, not the fault line's address.
    let figures = figures(&through("localhost", slow));
    let line = &figures["line"];
    assert!(number(line, "connections") >= 1.0, "{line}");
    assert!(number(line, "cpu_s_per_gib") > 0.0, "{line}");
    through("127.0.0.1", slow).expect(3, &["certificate"]);
    let answer = "[[fault]]\nwhat = \"answer\"\nstatus = 503\nfor = \"1s\"";
    through("localhost", answer).expect(2, &["plain HTTP only", "help:"]);
}

#[test]
fn agents_are_refused_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    for flag in [["--agents", "h1:7400"], ["--launch", "local:2"]] {
        let line = [&["drill", "slow-link"], &flag[..]].concat();
        call(&mut bucketload(dir.path(), &line)).expect(2, &["--agents", "fault line", "help:"]);
    }
}

#[test]
fn repeated_drills_have_medians_and_compare() {
    let dir = tempfile::tempdir().unwrap();
    file(
        dir.path(),
        "[[fault]]\nwhat = \"black-hole\"\nfor = \"500ms\"",
    );
    let line = [
        "drill",
        "d.toml",
        "--repeat",
        "2",
        "--out",
        "out",
        "--no-calibration",
        "--quiet",
        ANY,
    ];
    let outcome = call(&mut bucketload(dir.path(), &line));
    outcome.expect(0, &["drill 2 of 2"]);
    assert!(
        outcome.stdout.contains("time to recover") && outcome.stdout.contains("2 of 2"),
        "{}",
        outcome.stdout
    );
    let compare = ["compare", "out/1", "out/2", "--allow-different", "verdict"];
    let outcome = call(&mut bucketload(dir.path(), &compare));
    if outcome.code == 2 {
        // What limits the client on a busy machine says nothing about a store, and is not compared.
        return outcome.expect(2, &["it says nothing about the store"]);
    }
    outcome.expect(0, &[]);
    for words in [
        "longest time without a success",
        "availability since the first break",
        "failed since the first break",
        "retries per operation since the first break",
    ] {
        assert!(outcome.stdout.contains(words), "{}", outcome.stdout);
    }
}

/// Starts a drill whose hook breaks for a minute, and waits until it is broken.
fn broken(dir: &Path) -> std::process::Child {
    let hook = "[[fault]]\nwhat = \"hook\"\nfor = \"60s\"\nbreak = \"touch broken\"\nmend = \"echo x >> mended\"\n\
                [[fault]]\nwhat = \"black-hole\"\nfor = \"60s\"\nshare = \"1%\"";
    file(dir, hook);
    let mut command = bucketload(dir, &args(&[ANY]));
    let child = background(command.process_group(0));
    wait_for("the break", || dir.join("broken").exists().then_some(()));
    child
}

/// Processes of the fault line below `parent`.
fn lines_of(parent: u32) -> Vec<u32> {
    let of = |pid: u32| -> Option<bool> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, rest) = stat.rsplit_once(')')?;
        let ours = rest.split_whitespace().nth(1)?.parse() == Ok(parent);
        let words = fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
        Some(ours && words.contains("fault-line"))
    };
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| of(*pid) == Some(true)).collect()
}

#[test]
fn a_drill_that_is_terminated_mends() {
    let dir = tempfile::tempdir().unwrap();
    let child = broken(dir.path());
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    end_of(child).expect(130, &[]);
    assert_eq!(
        fs::read_to_string(dir.path().join("mended")).unwrap(),
        "x\n"
    );
    let again = call(&mut bucketload(dir.path(), &["drill", "--mend", "out"]));
    again.expect(0, &["owes nothing"]);
}

#[test]
fn a_drill_that_is_killed_leaves_no_proxy_and_the_next_command_mends() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = broken(dir.path());
    let lines = lines_of(child.id());
    assert_eq!(lines.len(), 1, "{lines:?}");
    let early = call(&mut bucketload(dir.path(), &["drill", "--mend", "out"]));
    early.expect(2, &["still running"]);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for("the end of the fault line", || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", lines[0]));
        stat.map_or(true, |stat| stat.contains(") Z "))
            .then_some(())
    });
    assert!(!dir.path().join("mended").exists());
    let mend = call(&mut bucketload(dir.path(), &["drill", "--mend", "out"]));
    mend.expect(0, &["mending hook", "1 commands run"]);
    assert_eq!(
        fs::read_to_string(dir.path().join("mended")).unwrap(),
        "x\n"
    );
    let report = call(&mut bucketload(
        dir.path(),
        &["report", "out", "--output", "json"],
    ));
    report.expect(0, &[]);
    assert_eq!(report.json()["drill"]["valid"], true);
}
