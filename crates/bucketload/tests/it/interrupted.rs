//! Signals from the terminal, which reach the whole process group: a run finishes its operations, prints its result,
//! cleans up, and stops its server last.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Child;

use crate::common::agents::{background, end_of, wait_for};
use crate::common::bucketload;
use rustix::process::{Pid, Signal, kill_process_group};

/// Processes whose parent is `parent`.
fn children(parent: u32) -> Vec<u32> {
    let of = |pid: u32| -> Option<u32> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name, in parentheses, may contain anything.
        let (_, rest) = stat.rsplit_once(')')?;
        rest.split_whitespace().nth(1)?.parse().ok()
    };
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|&pid| of(pid) == Some(parent)).collect()
}

/// Whether the process has ended. A zombie has ended.
fn is_gone(pid: u32) -> bool {
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Err(_) => true,
        Ok(stat) => stat.contains(") Z "),
    }
}

/// Index of the measuring phase.
fn run_phase(out: &Path) -> Option<u64> {
    let text = fs::read_to_string(out.join("run.json")).ok()?;
    let manifest: serde_json::Value = serde_json::from_str(&text).ok()?;
    let phases = manifest["plan"]["phases"].as_array()?;
    let index = phases.iter().position(|phase| phase["name"] == "run")?;
    u64::try_from(index).ok()
}

/// Starts a run of a minute in a new process group, and waits until it measures. Returns the run and the process id
/// of its server.
fn measuring(dir: &Path, target: &str) -> (Child, u32) {
    let args = "run mixed --objects 50 --size 4KiB --workers 4 --duration 60s --out out \
                --no-calibration --output json --target";
    let mut args: Vec<&str> = args.split_whitespace().collect();
    args.push(target);
    let child = background(bucketload(dir, &args).process_group(0));
    let out = dir.join("out");
    wait_for("a second of measurement", || {
        let phase = run_phase(&out)?;
        let intervals = fs::read_to_string(out.join("intervals.jsonl")).ok()?;
        let begins = format!("{{\"phase\":{phase},");
        intervals
            .lines()
            .any(|line| line.starts_with(&begins))
            .then_some(())
    });
    let servers = children(child.id());
    assert_eq!(servers.len(), 1, "{servers:?}");
    (child, servers[0])
}

/// Ends the run by `signal` to its group.
fn interrupted(signal: Signal, target: &str, dir: &Path) {
    let (child, server) = measuring(dir, target);
    kill_process_group(Pid::from_child(&child), signal).unwrap();
    let outcome = end_of(child);
    outcome.expect(130, &["stopping; what was measured is kept"]);
    assert!(!outcome.stderr.contains("left"), "{}", outcome.stderr);
    assert!(is_gone(server));
    let result = outcome.json();
    assert_eq!(result["verdict"]["word"], "INCOMPLETE");
    let phases = result["phases"].as_array().unwrap();
    let run = phases.iter().find(|phase| phase["name"] == "run").unwrap();
    assert!(
        run["totals"]["ok"].as_u64().unwrap() > 0,
        "{}",
        run["totals"]
    );
    assert_eq!(run["totals"]["failed"], 0, "{}", run["totals"]);
    let events = fs::read_to_string(dir.join("out/events.jsonl")).unwrap();
    let mut cleaned = events.lines().filter(|line| line.contains("phase-ended"));
    let last = cleaned.next_back().unwrap();
    assert!(last.contains("\"complete\""), "the clean-up: {last}");
    assert!(!events.contains("\"failure\""), "{events}");
}

#[test]
fn a_signal_to_the_group_ends_the_run_before_its_server() {
    let dir = tempfile::tempdir().unwrap();
    interrupted(Signal::TERM, "mem:", dir.path());
}

#[test]
fn nothing_is_left_in_the_directory_of_an_interrupted_run() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    fs::create_dir(&store).unwrap();
    interrupted(
        Signal::INT,
        &format!("serve://{}", store.display()),
        dir.path(),
    );
    let entries = fs::read_dir(&store).unwrap().flatten();
    let left: Vec<_> = entries
        .map(|entry| entry.file_name())
        // A file of the store itself.
        .filter(|name| name != ".bucketload")
        .collect();
    assert!(left.is_empty(), "{left:?}");
}
