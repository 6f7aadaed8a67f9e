//! Ranks on several agents: the same operations as a single process, one agreed count after the stonewall, and no
//! hang if an agent dies while others wait for its ranks.

use std::fs;
use std::path::Path;

use bucketload_core::agent::AgentState;
use bucketload_core::ranks::PhaseRanks;
use bucketload_core::sink::Event;
use bucketload_results::rundir::RunDir;

use crate::common::agents::{Agent, agents_of, background, end_of, wait_for};
use crate::common::{Serve, bucketload, call, operations};

const TOKEN: &str = "a-token-of-the-tests-0002";

/// The work of the ranks in phase `name`.
fn ranks_of(out: &Path, name: &str) -> PhaseRanks {
    let run = RunDir::open(out).unwrap();
    let phases = &run.manifest().plan.phases;
    let index = phases.iter().position(|phase| phase.name == name).unwrap();
    let (events, _) = run.events().unwrap();
    let mut of_phase = events.into_iter().filter_map(|event| match event {
        Event::Ranks(ranks) if usize::from(ranks.phase) == index => Some(ranks),
        _ => None,
    });
    let found = of_phase
        .next()
        .unwrap_or_else(|| panic!("{name} has no ranks"));
    assert_eq!(of_phase.next(), None, "{name}: one event for all agents");
    found
}

/// Every phase of IO500 with small counts, `--ranks 5`.
fn small<'a>(url: &'a str, out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec![
        "io500",
        "--ranks",
        "5",
        "--op-log",
        "--out",
        out,
        "--target",
        "s3://bench/x",
        "--create-bucket",
        "--endpoint-url",
        url,
    ];
    for set in [
        "global.timestamp-datadir=FALSE",
        "debug.stonewall-time=60",
        "ior-rnd4K-easy-read.run=FALSE",
        "ior-easy.transferSize=64k",
        "ior-easy.blockSize=256k",
        "ior-hard.segmentCount=7",
        "mdtest-easy.n=20",
        "mdtest-hard.n=103",
    ] {
        args.extend(["--set", set]);
    }
    args.extend(more);
    args
}

#[test]
fn agents_perform_the_operations_of_one_process() {
    let dir = tempfile::tempdir().unwrap();
    let server = Serve::start(&["--store", "memory"]);
    let url = server.url();
    let agents =
        ["first", "second", "third"].map(|name| Agent::start(dir.path(), name, Some(TOKEN)));
    let addresses: Vec<&str> = agents.iter().map(|agent| agent.address.as_str()).collect();
    let addresses = addresses.join(",");
    call(&mut bucketload(dir.path(), &small(&url, "one", &[]))).expect(0, &[]);
    let mut several = bucketload(dir.path(), &small(&url, "three", &["--agents", &addresses]));
    call(several.env("BUCKETLOAD_AGENT_TOKEN", TOKEN)).expect(0, &[]);
    let whats = |out: &str| -> Vec<_> {
        let all = operations(&dir.path().join(out)).into_iter();
        all.map(|(what, _)| what).collect()
    };
    let (one, three) = (whats("one"), whats("three"));
    assert!(one.len() > 2_000, "{} operations", one.len());
    assert!(one == three, "the operations differ");
    let out = dir.path().join("three");
    for (name, steps) in [("ior-hard-read", 7), ("mdtest-hard-delete", 103)] {
        let ranks = ranks_of(&out, name);
        let all: Vec<_> = ranks
            .ranks
            .iter()
            .map(|r| (r.rank, r.steps, r.failed))
            .collect();
        assert_eq!(all, [0, 1, 2, 3, 4].map(|rank| (rank, steps, 0)), "{name}");
    }
    let text = fs::read_to_string(out.join("result.txt")).unwrap();
    assert!(text.contains("procs           = 5\n"), "{text}");
    // Of 0 to 102, only 101 contains 01. Times use the coordinator's clock, whichever agent searches.
    assert!(text.contains("found           = 5\n"), "{text}");
    for agent in agents_of(&out).unwrap().agents {
        assert_eq!(agent.state, AgentState::Finished);
        assert!(agent.totals.ok > 0, "{agent:?}");
    }
}

/// After the stonewall, the ranks of all agents continue to the highest count of any rank, which later phases use.
#[test]
fn all_agents_continue_to_the_highest_count() {
    let dir = tempfile::tempdir().unwrap();
    let mut args = vec![
        "io500", "--ranks", "4", "--launch", "local:3", "--target", "null:", "--out", "out",
    ];
    for set in [
        "debug.stonewall-time=1",
        "ior-easy.run=FALSE",
        "ior-hard.run=FALSE",
        "mdtest-hard.run=FALSE",
        "find.run=FALSE",
        "mdtest-easy.n=1000000000",
    ] {
        args.extend(["--set", set]);
    }
    call(&mut bucketload(dir.path(), &args)).expect(0, &[]);
    let out = dir.path().join("out");
    let written = ranks_of(&out, "mdtest-easy-write");
    let most = written.ranks.iter().map(|rank| rank.steps).max().unwrap();
    assert!(most > 0 && written.ranks.len() == 4);
    for rank in &written.ranks {
        assert_eq!(rank.steps, most, "{rank:?}");
        assert!(rank.wall_ns > 0 && rank.wall_good <= most, "{rank:?}");
    }
    assert!(
        written.ranks.iter().any(|rank| rank.wall_good == most),
        "{written:?}"
    );
    for name in ["mdtest-easy-stat", "mdtest-easy-delete"] {
        for rank in ranks_of(&out, name).ranks {
            assert_eq!(rank.steps, most, "{name}: {rank:?}");
        }
    }
}

#[test]
fn the_working_set_of_several_agents_keeps_its_size() {
    let dir = tempfile::tempdir().unwrap();
    let line = "md-workbench --ranks 5 --launch local:2 -D 2 -P 20 -I 6 -R 2 -X --target mem: --out out -L lat";
    let args: Vec<&str> = line.split_whitespace().collect();
    let outcome = call(&mut bucketload(dir.path(), &args));
    outcome.expect(0, &[]);
    let lines = outcome.stdout.lines();
    let audit: Vec<&str> = lines
        .clone()
        .filter(|line| line.starts_with("audit"))
        .collect();
    assert_eq!(audit, ["audit objects:200 expected:200"]);
    for line in lines.filter(|line| line.starts_with("benchmark process")) {
        assert!(
            line.contains(" objects:60 ") && line.contains("(0 errs)"),
            "{line}"
        );
    }
    // Rank 0 created 2 x 6 objects in each iteration, whatever the workers of other agents are called.
    let latencies = fs::read_to_string(dir.path().join("lat-0.00-1-create.csv")).unwrap();
    assert_eq!(latencies.lines().count(), 1 + 12);
}

/// The ranks of the second agent pass the stonewall, and then wait for those of the first.
#[test]
fn an_agent_that_dies_ends_the_wait_of_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let agents = ["first", "second"].map(|name| Agent::start(dir.path(), name, Some(TOKEN)));
    let addresses = format!("{},{}", agents[0].address, agents[1].address);
    let args = [
        "io500",
        "--ranks",
        "4",
        "--agents",
        &addresses,
        "--target",
        "null:",
        "--out",
        "out",
        "--set",
        "debug.stonewall-time=3600",
        "--set",
        "ior-easy.run=FALSE",
        "--set",
        "mdtest-easy.n=1000000000000",
    ];
    let mut run = bucketload(dir.path(), &args);
    let run = background(run.env("BUCKETLOAD_AGENT_TOKEN", TOKEN));
    wait_for("intervals of both agents", || {
        let known = agents_of(&dir.path().join("out"))?.agents;
        known
            .iter()
            .all(|agent| agent.last_interval.is_some())
            .then_some(())
    });
    let [mut first, _second] = agents;
    first.child.kill().unwrap();
    let outcome = end_of(run);
    outcome.expect(4, &["agent 0", "lost"]);
    assert!(outcome.stdout.contains("[INVALID]"), "{}", outcome.stdout);
    let text = fs::read_to_string(dir.path().join("out/result.txt")).unwrap();
    let phase = text.split("[mdtest-easy-write]").nth(1).unwrap();
    let phase = phase.split("\n\n").next().unwrap();
    assert!(
        phase.contains("; ERROR INVALID Stopped before its end"),
        "{phase}"
    );
    assert!(
        text.contains("; ERROR INVALID Not run to completion"),
        "{text}"
    );
    let states: Vec<_> = agents_of(&dir.path().join("out"))
        .unwrap()
        .agents
        .iter()
        .map(|a| a.state)
        .collect();
    assert_eq!(states, [AgentState::Lost, AgentState::Finished]);
}
