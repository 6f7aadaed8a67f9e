//! Runs on several agents: the same operations as a single process, one result, and no hang whichever process dies.

use std::collections::BTreeMap;
use std::path::Path;

use bucketload_core::agent::{AgentState, AgentsFile};
use bucketload_core::histogram::Histogram;
use bucketload_results::oplog;
use bucketload_results::rundir::RunDir;

use crate::common::agents::{Agent, agents_of, background, end_of, wait_for};
use crate::common::{Serve, What, bucketload, call, operations};

const TOKEN: &str = "a-token-of-the-tests-0001";

/// Response times by class, from the intervals of a run directory and from its operation log.
fn responses(out: &Path) -> [BTreeMap<String, Histogram>; 2] {
    let run = RunDir::open(out).unwrap();
    let mut merged: BTreeMap<String, Histogram> = BTreeMap::new();
    let mut intervals = run.intervals().unwrap();
    while let Some(interval) = intervals.next_interval().unwrap() {
        for cell in interval.tally.cells.iter().filter(|cell| cell.ok > 0) {
            let class = cell.class.name().to_owned();
            merged.entry(class).or_default().merge(&cell.response);
        }
    }
    let mut logged: BTreeMap<String, Histogram> = BTreeMap::new();
    oplog::read(out, &["class", "due_ns", "done_ns", "outcome"], |rows| {
        for i in 0..rows.len {
            let c = &rows.columns;
            if c[3].text(i) == Some("ok") {
                let ns = c[2].int(i).unwrap() - c[1].int(i).unwrap();
                let class = c[0].text(i).unwrap().to_owned();
                logged.entry(class).or_default().record(ns as u64);
            }
        }
    })
    .unwrap();
    [merged, logged]
}

#[test]
fn agents_that_do_not_answer_are_named_while_the_coordinator_waits() {
    let dir = tempfile::tempdir().unwrap();
    // Nobody listens at a port that was just given back.
    let address = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let agent = address.to_string();
    let args = [
        "run",
        "put",
        "--target",
        "mem:",
        "--agents",
        &agent,
        "--agents-wait",
        "3s",
        "--out",
        "r",
    ];
    let mut command = bucketload(dir.path(), &args);
    let outcome = call(command.env("BUCKETLOAD_AGENT_TOKEN", TOKEN));
    outcome.expect(
        4,
        &[&format!("waiting for agents: {agent} (connection refused)")],
    );
    assert!(
        outcome.stderr.contains("could not be reached within 3 s"),
        "{}",
        outcome.stderr
    );
    assert!(!dir.path().join("r").exists());
}

#[test]
fn agents_perform_the_operations_of_one_process_and_percentiles_cover_all_operations() {
    let dir = tempfile::tempdir().unwrap();
    let server = Serve::start(&["--store", "memory"]);
    let url = server.url();
    for (name, load) in [
        ("open", ["--rate", "300", "--duration", "2s", "--seed", "7"]),
        ("closed", ["--workers", "6", "--ops", "600", "--seed", "8"]),
    ] {
        let run = |out: &str, extra: &[&str]| {
            let mut args = vec![
                "run",
                "mixed",
                "--target",
                "s3://bench/x",
                "--create-bucket",
                "--endpoint-url",
                &url,
                "--objects",
                "60",
                "--size",
                "4KiB",
                "--no-calibration",
                "--op-log",
                "--output",
                "json",
                "--out",
                out,
            ];
            args.extend(load);
            args.extend(extra);
            let outcome = call(&mut bucketload(dir.path(), &args));
            outcome.expect(0, &[]);
            dir.path().join(out)
        };
        let alone = run(&format!("{name}-1"), &["--threads", "1"]);
        let three = run(&format!("{name}-3"), &["--launch", "local:3"]);
        let (one, all) = (operations(&alone), operations(&three));
        let open = name == "open";
        assert!(one.len() > 300, "{} operations", one.len());
        let whats = |all: &[(What, i64)]| all.iter().map(|(w, _)| w.clone()).collect::<Vec<_>>();
        assert!(whats(&one) == whats(&all), "{name}: the operations differ");
        if open {
            // Arrivals are a function of the plan: due times match to the nanosecond on any agent.
            let due = |all: &[(What, i64)]| -> Vec<i64> {
                let run = all.iter().filter(|((phase, ..), _)| phase != "prepare");
                run.map(|(_, due)| *due).collect()
            };
            assert_eq!(due(&one), due(&all));
        }
        let [merged, logged] = responses(&three);
        assert!(merged.len() >= 2, "{merged:?}");
        assert_eq!(merged, logged, "{name}");
        let agents = agents_of(&three).unwrap();
        assert_eq!(agents.agents.len(), 3);
        let ok: u64 = agents.agents.iter().map(|a| a.totals.ok).sum();
        assert_eq!(
            ok,
            all.len() as u64,
            "the sum of the agents is that of the run"
        );
        for agent in &agents.agents {
            assert_eq!(agent.state, AgentState::Finished, "{agent:?}");
            assert!(agent.totals.ok > 0 && agent.clock_bound_ns > 0, "{agent:?}");
        }
    }
}

/// Arguments of a run of a minute on `agents`.
fn long_run<'a>(url: &'a str, agents: &'a str, timeout: &'a str) -> Vec<&'a str> {
    vec![
        "run",
        "get",
        "--target",
        "s3://bench/x",
        "--create-bucket",
        "--endpoint-url",
        url,
        "--objects",
        "20",
        "--size",
        "1KiB",
        "--rate",
        "50",
        "--duration",
        "60s",
        "--no-calibration",
        "--agents",
        agents,
        "--agent-timeout",
        timeout,
        "--out",
        "out",
    ]
}

/// Waits until both agents have sent an interval of the measuring phase.
fn measuring(dir: &Path) -> AgentsFile {
    wait_for("intervals of all agents", || {
        let agents = agents_of(&dir.join("out"))?;
        let measured = |phase: u16| {
            move |a: &bucketload_core::agent::AgentRecord| {
                a.last_interval
                    .is_some_and(|i| i.phase >= phase && i.index >= 1)
            }
        };
        // Phases: init, prepare, run.
        agents.agents.iter().all(measured(2)).then_some(agents)
    })
}

#[test]
fn a_killed_agent_makes_the_run_incomplete_and_keeps_what_it_sent() {
    let dir = tempfile::tempdir().unwrap();
    let server = Serve::start(&["--store", "memory"]);
    let mut first = Agent::start(dir.path(), "first", Some(TOKEN));
    let second = Agent::start(dir.path(), "second", Some(TOKEN));
    let (url, agents) = (
        server.url(),
        format!("{},{}", first.address, second.address),
    );
    let args = long_run(&url, &agents, "10s");
    let mut run = bucketload(dir.path(), &args);
    let run = background(run.env("BUCKETLOAD_AGENT_TOKEN", TOKEN));
    measuring(dir.path());
    first.child.kill().unwrap();
    let outcome = end_of(run);
    outcome.expect(4, &["agent 0", "lost"]);
    assert!(outcome.stdout.contains("INCOMPLETE"), "{}", outcome.stdout);
    let agents = agents_of(&dir.path().join("out")).unwrap();
    assert_eq!(agents.agents[0].state, AgentState::Lost);
    assert_eq!(agents.agents[1].state, AgentState::Finished);
    assert!(agents.agents[0].totals.ok > 0, "what it sent is kept");
    let report = call(&mut bucketload(dir.path(), &["report", "out"]));
    report.expect(0, &[]);
    assert!(report.stdout.contains("INCOMPLETE"), "{}", report.stdout);
}

#[test]
fn an_interrupted_agent_finishes_its_run_and_a_second_signal_aborts_it() {
    use rustix::process::{Pid, Signal, kill_process};
    let dir = tempfile::tempdir().unwrap();
    let server = Serve::start(&["--store", "memory"]);
    let mut agents = ["first", "second"].map(|name| Agent::start(dir.path(), name, None));
    let (url, list) = (
        server.url(),
        format!("{},{}", agents[0].address, agents[1].address),
    );
    let run = background(&mut bucketload(dir.path(), &long_run(&url, &list, "10s")));
    measuring(dir.path());
    let first = &mut agents[0];
    let pid = Pid::from_child(&first.child);
    kill_process(pid, Signal::INT).unwrap();
    wait_for("the agent's word", || {
        first.said().contains("stopping when run").then_some(())
    });
    let known = agents_of(&dir.path().join("out")).unwrap();
    let interval = |file: &AgentsFile| file.agents[0].last_interval.map(|i| i.index);
    wait_for("another interval of the agent", || {
        let later = agents_of(&dir.path().join("out"))?;
        (interval(&later) > interval(&known)).then_some(())
    });
    assert!(first.child.try_wait().unwrap().is_none(), "it still serves");
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(first.child.wait().unwrap().code(), Some(130));
    let outcome = end_of(run);
    outcome.expect(4, &["agent 0", "lost"]);
    assert!(outcome.stdout.contains("INCOMPLETE"), "{}", outcome.stdout);
}

#[test]
fn agents_stop_when_the_coordinator_is_killed_or_stopped_and_its_directory_is_readable() {
    let dir = tempfile::tempdir().unwrap();
    let server = Serve::start(&["--store", "memory"]);
    let agents = ["first", "second"].map(|name| Agent::start(dir.path(), name, None));
    let (url, list) = (
        server.url(),
        format!("{},{}", agents[0].address, agents[1].address),
    );
    let args = long_run(&url, &list, "2s");
    // Killed: the connection breaks.
    let mut run = background(&mut bucketload(dir.path(), &args));
    measuring(dir.path());
    run.kill().unwrap();
    run.wait().unwrap();
    for agent in &agents {
        wait_for("the agent's word", || {
            agent.said().contains("the load was stopped").then_some(())
        });
    }
    let report = call(&mut bucketload(dir.path(), &["report", "out"]));
    report.expect(0, &[]);
    assert!(report.stdout.contains("INCOMPLETE"), "{}", report.stdout);
    std::fs::remove_dir_all(dir.path().join("out")).unwrap();
    // Stopped: the connection stays open but silent. The agents become free for the next run, too.
    let mut run = background(&mut bucketload(dir.path(), &args));
    measuring(dir.path());
    let pid = rustix::process::Pid::from_child(&run);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    for agent in &agents {
        let said = wait_for("the agent's word", || {
            let said = agent.said();
            said.contains("silent for 2 s").then_some(said)
        });
        assert!(
            said.contains("silent for 2 s; the load was stopped"),
            "{said}"
        );
    }
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    let _ = run.wait();
    let report = call(&mut bucketload(dir.path(), &["report", "out"]));
    assert!(report.stdout.contains("INCOMPLETE"), "{}", report.stdout);
}

#[test]
fn an_agent_tells_unauthorized_coordinators_why_it_refuses() {
    let dir = tempfile::tempdir().unwrap();
    let agent = Agent::start(dir.path(), "agent", Some(TOKEN));
    let run = |extra: &[&str], token: Option<&str>| {
        let mut args = vec![
            "run",
            "get",
            "--objects",
            "1",
            "--duration",
            "1s",
            "--out",
            "out",
        ];
        args.extend(extra);
        let mut command = bucketload(dir.path(), &args);
        if let Some(token) = token {
            command.env("BUCKETLOAD_AGENT_TOKEN", token);
        }
        call(&mut command)
    };
    run(&["--agents", &agent.address], None).expect(2, &["token"]);
    let wrong = run(
        &["--agents", &agent.address],
        Some("a-token-of-the-tests-0002"),
    );
    wrong.expect(2, &["token"]);
    assert!(!wrong.stderr.contains("tests-000"), "{}", wrong.stderr);
    run(&["--agents", &agent.address], Some("short")).expect(2, &["16 visible"]);
    run(&["--agents", "h1.invalid:7400"], None).expect(2, &["embedded server", "--target"]);
    run(&["--launch", "slurm"], None).expect(2, &["srun", "slurm:4"]);
    assert!(!dir.path().join("out").exists(), "nothing was begun");
    let open = ["agent", "--listen", "0.0.0.0:0"];
    call(&mut bucketload(dir.path(), &open)).expect(2, &["token", "certificates"]);
}

#[test]
fn agents_are_started_through_ssh() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    // Stand-in for ssh: drops its options and the host, and runs the command here.
    let ssh = dir.path().join("ssh");
    let script = "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift 2\nexec \"$@\"\n";
    std::fs::write(&ssh, script).unwrap();
    std::fs::set_permissions(&ssh, std::fs::Permissions::from_mode(0o755)).unwrap();
    let server = Serve::start(&["--store", "memory"]);
    let url = server.url();
    let args = [
        "run",
        "get",
        "--target",
        "s3://bench/x",
        "--create-bucket",
        "--endpoint-url",
        &url,
        "--objects",
        "20",
        "--size",
        "1KiB",
        "--rate",
        "100",
        "--duration",
        "1s",
        "--launch",
        "ssh:alpha,beta",
        "--agent-program",
        env!("CARGO_BIN_EXE_bucketload"),
        "--out",
        "out",
    ];
    let outcome = call(bucketload(dir.path(), &args).env("BUCKETLOAD_SSH", &ssh));
    outcome.expect(0, &[]);
    let agents = agents_of(&dir.path().join("out")).unwrap();
    let addresses: Vec<_> = agents.agents.iter().map(|a| a.address.as_str()).collect();
    assert_eq!(addresses, ["alpha", "beta"]);
}
