//! COSBench's known bugs (specification of COSBench compatibility, section 7), and the tests that they do not recur:
//!
//! | bug | what COSBench does | tested |
//! |---|---|---|
//! | B1 | a worker that is busy too long hangs the run for ever | `b1_…` here; agents: `agents.rs`, `a_killed_agent_…`, and `bucketload-agents/tests/it/access.rs`, `agents_that_do_not_come_…` |
//! | B2 | rates are sums of workers' rates | `bucketload::cosbench::artifacts` tests, `b2_…` |
//! | B3 | fewer operations than workers never end, remainders are lost | `b3_…` here |
//! | B4 | percentiles are edges of 10-ms buckets | `bucketload::cosbench::artifacts` tests, `b4_…` |
//! | B5 | operations that straddle the window vanish | `bucketload_run::rows` tests, `bucketload::cosbench::artifacts` `b2_b5_…` |
//! | B6 | failures count as success | `b6_…` here |
//! | B7 | an operation that never succeeds hides behind others | `b7_…` here |
//! | B8 | the timeline does not add up to the totals, columns shift | `cosbench.rs`, the archive; `bucketload-cosbench/tests/it/artifacts.rs` |
//! | B9 | the driver's clock is set | measured instead: `bucketload_agents::clock` and `bucketload_agents::rows` tests, `…_instants_move_to_the_other_clock` |
//! | B10 | init and dispose have no samples, a stage lasts seconds more | `b10_…` here |
//! | B11 | the client costs more than the store, content repeats | `bucketload-run/tests/cost.rs`, `bucketload_core::payload` |
//! | B12 | one unusual error ends everything | `b12_…` here |
//! | B13 | a delay stage ends the workload as terminated | `b13_b14_…` here |
//! | B14 | a closuredelay hides that the stage failed | `b13_b14_…` here |
//! | B15 | mistakes show when the stage starts | `b15_…` here, `bucketload-cosbench/tests/it/samples.rs` |
//! | B16 | sequences repeat, and miss combinations | `bucketload_core::generate::named` tests |
//! | B17 | numbers of workloads repeat, commas break tables | `b17_…` here, `bucketload-cosbench/tests/it/artifacts.rs`; drivers that are dead: `agents.rs`, `a_killed_agent_…` |
//! | B18 | memory and handles leak | `bucketload-run/tests/cost.rs`, `bucketload-agents/tests/it/course.rs`; controller: a day's run in `cargo xtask conformance console` |
//! | B19 | start scripts break | none: one program without scripts |

use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::{ACCESS_KEY, Outcome, SECRET_KEY, Serve, bucketload, call};

/// A workload on `serve` that writes four objects, runs `main`, and ends with `last`.
fn workload(serve: &Serve, main: &str, last: &str) -> String {
    format!(
        "<workload name=\"w\"><storage type=\"s3\" config=\"accesskey={ACCESS_KEY};secretkey={SECRET_KEY};\
         endpoint=http://{};path_style_access=true;timeout=2000\"/><workflow config=\"cprefix=bug-;containers=r(1,1)\">\
         <workstage name=\"init\"><work type=\"init\" workers=\"1\"/></workstage>\
         <workstage name=\"prepare\"><work type=\"prepare\" workers=\"1\" config=\"objects=r(1,4);sizes=c(1)KB\"/></workstage>\
         {main}{last}</workflow></workload>",
        serve.address
    )
}

const CLEAN: &str = "<workstage name=\"cleanup\"><work type=\"cleanup\" workers=\"1\" config=\"objects=r(1,4)\"/></workstage>\
     <workstage name=\"dispose\"><work type=\"dispose\" workers=\"1\"/></workstage>";

fn run(dir: &Path, text: &str) -> Outcome {
    std::fs::write(dir.join("w.xml"), text).unwrap();
    let args = [
        "run",
        "w.xml",
        "--no-calibration",
        "--threads",
        "1",
        "--output",
        "json",
        "--out",
        "run",
        "--cosbench-artifacts",
        "archive",
        "--quiet",
    ];
    call(&mut bucketload(dir, &args))
}

/// Succeeded and failed operations of the stage.
fn counts(outcome: &Outcome, stage: &str) -> (u64, u64) {
    let result = outcome.json();
    let phases = result["phases"].as_array().unwrap().clone();
    let phase = phases.iter().find(|phase| phase["name"] == stage).unwrap();
    let count = |what: &str| phase["totals"][what].as_u64().unwrap();
    (count("ok"), count("failed"))
}

/// The states of the stages, from the archive.
fn states(dir: &Path) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(dir.join("archive/w1-w/w1-w.csv")).unwrap();
    let rows = text.lines().skip(1).map(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        (cells[0].to_owned(), cells[16].to_owned())
    });
    rows.collect()
}

#[test]
fn b1_a_store_that_never_answers_does_not_hang_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let serve = Serve::start(&["--fault", "delay,time=3600s,op=get"]);
    let main = "<workstage name=\"main\"><work name=\"m\" workers=\"2\" totalOps=\"2\">\
                <operation type=\"read\" config=\"objects=u(1,4)\"/></work></workstage>";
    let begun = Instant::now();
    let outcome = run(dir.path(), &workload(&serve, main, CLEAN));
    assert!(begun.elapsed() < Duration::from_secs(60));
    outcome.expect(1, &[]);
    assert_eq!(counts(&outcome, "main"), (0, 2));
    // Like COSBench, the run continues after a failed stage.
    assert_eq!(counts(&outcome, "dispose"), (1, 0));
}

#[test]
fn b3_remainders_of_operations_are_not_lost_and_too_few_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let serve = Serve::start(&[]);
    let main = |ops: u32| {
        format!(
            "<workstage name=\"main\"><work name=\"m\" workers=\"3\" totalOps=\"{ops}\">\
             <operation type=\"read\" config=\"objects=u(1,4)\"/></work></workstage>"
        )
    };
    let outcome = run(dir.path(), &workload(&serve, &main(2), CLEAN));
    outcome.expect(2, &["line 1, column", "3 workers share 2 operations"]);
    let outcome = run(dir.path(), &workload(&serve, &main(11), CLEAN));
    outcome.expect(0, &[]);
    assert_eq!(counts(&outcome, "main"), (11, 0));
}

#[test]
fn b6_failed_deletions_and_closed_ports_are_failures() {
    let dir = tempfile::tempdir().unwrap();
    let serve = Serve::start(&["--fault", "status=500,op=delete"]);
    let outcome = run(dir.path(), &workload(&serve, "", CLEAN));
    outcome.expect(1, &[]);
    assert_eq!(counts(&outcome, "cleanup"), (0, 4));
    let closed = tempfile::tempdir().unwrap();
    let gone = Serve::start(&[]);
    let text = workload(&gone, "", CLEAN);
    drop(gone);
    run(closed.path(), &text).expect(3, &[]);
}

#[test]
fn b7_an_operation_that_never_succeeds_fails_its_stage() {
    let dir = tempfile::tempdir().unwrap();
    let serve = Serve::start(&[]);
    // The number of failures is acceptable, but not that every read fails.
    let main = "<workstage name=\"main\"><work name=\"m\" workers=\"1\" totalOps=\"40\" afr=\"1000000\">\
                <operation type=\"read\" ratio=\"50\" config=\"objects=c(9)\"/>\
                <operation type=\"write\" ratio=\"50\" config=\"objects=u(1,4);sizes=c(1)KB\"/></work></workstage>";
    let outcome = run(dir.path(), &workload(&serve, main, CLEAN));
    outcome.expect(1, &[]);
    let all = states(dir.path());
    let main: Vec<_> = all.iter().filter(|(stage, _)| stage == "s3-main").collect();
    assert!(
        !main.is_empty() && main.iter().all(|(_, state)| state == "failed"),
        "{all:?}"
    );
}

#[test]
fn b10_init_has_samples_and_stages_last_no_longer_than_their_work() {
    let dir = tempfile::tempdir().unwrap();
    let serve = Serve::start(&[]);
    let outcome = run(dir.path(), &workload(&serve, "", CLEAN));
    outcome.expect(0, &[]);
    assert_eq!(counts(&outcome, "init"), (1, 0));
    let result = outcome.json();
    let ns = |what: &str, phase: &serde_json::Value| phase[what].as_u64().unwrap();
    let phases = result["phases"].as_array().unwrap();
    let first = phases.iter().map(|p| ns("started_ns", p)).min().unwrap();
    let last = phases.iter().map(|p| ns("drained_ns", p)).max().unwrap();
    // COSBench's four stages take at least interval + 2.5 s each: 30 s.
    assert!(last - first < 15_000_000_000, "{} ns", last - first);
}

#[test]
fn b12_unusual_errors_end_no_worker() {
    let dir = tempfile::tempdir().unwrap();
    let serve = Serve::start(&[
        "--fault",
        "reset,every=3,op=get",
        "--fault",
        "status=418,every=5,op=get",
    ]);
    let main = "<workstage name=\"main\"><work name=\"m\" workers=\"2\" totalOps=\"60\" afr=\"1000000\">\
                <operation type=\"read\" config=\"objects=u(1,4)\"/></work></workstage>";
    let outcome = run(dir.path(), &workload(&serve, main, CLEAN));
    outcome.expect(0, &[]);
    let (ok, failed) = counts(&outcome, "main");
    assert_eq!(ok + failed, 60);
    assert!(ok > 0 && failed > 10, "{ok} and {failed}");
}

#[test]
fn b13_b14_delays_neither_end_a_workload_nor_hide_a_failure() {
    let dir = tempfile::tempdir().unwrap();
    let serve = Serve::start(&[]);
    let main = "<workstage name=\"main\" closuredelay=\"1\"><work name=\"m\" workers=\"1\" totalOps=\"4\">\
                <operation type=\"read\" config=\"objects=c(9)\"/></work></workstage>\
                <workstage name=\"delay\" closuredelay=\"1\"><work type=\"delay\"/></workstage>";
    run(dir.path(), &workload(&serve, main, CLEAN)).expect(1, &[]);
    let all = states(dir.path());
    let of = |stage: &str| all.iter().find(|(s, _)| s == stage).unwrap().1.clone();
    assert_eq!(of("s3-main"), "failed");
    assert_eq!(of("delay"), "completed");
    assert_eq!(of("s5-cleanup"), "completed");
    let history = std::fs::read_to_string(dir.path().join("archive/run-history.csv")).unwrap();
    // All stages ran, one failed: neither finished nor terminated.
    assert_eq!(
        history.lines().nth(1).unwrap().split(',').nth(6),
        Some("failed")
    );
}

#[test]
fn b15_mistakes_are_refused_before_anything_is_sent() {
    let dir = tempfile::tempdir().unwrap();
    let serve = Serve::start(&[]);
    let main = |division: &str, config: &str| {
        format!(
            "<workstage name=\"main\"><work name=\"m\" workers=\"8\" totalOps=\"8\" division=\"{division}\">\
             <operation type=\"read\" config=\"{config}\"/></work></workstage>"
        )
    };
    for (division, config, words) in [
        (
            "object",
            "objects=u(1,4)",
            "cannot be divided among 8 workers",
        ),
        (
            "container",
            "objects=u(1,4)",
            "cannot be divided among 8 workers",
        ),
        ("none", "objects=f(1,4)", "there is no selector `f"),
        ("none", "oprefix=x", "no such key defined: objects"),
        ("rows", "objects=u(1,4)", "there is no division `rows`"),
    ] {
        let outcome = run(
            dir.path(),
            &workload(&serve, &main(division, config), CLEAN),
        );
        outcome.expect(2, &["line 1, column", words]);
    }
    // Nothing was created: the same names are still free.
    run(dir.path(), &workload(&serve, "", CLEAN)).expect(0, &[]);
}

#[test]
fn b17_no_number_is_given_twice() {
    let dir = tempfile::tempdir().unwrap();
    let archive = dir.path().join("archive");
    std::fs::create_dir_all(archive.join("w5-other")).unwrap();
    std::fs::write(archive.join(".meta"), "4").unwrap();
    let serve = Serve::start(&[]);
    run(dir.path(), &workload(&serve, "", CLEAN)).expect(0, &[]);
    assert!(archive.join("w6-w").is_dir());
    assert_eq!(std::fs::read_to_string(archive.join(".meta")).unwrap(), "6");
}
