//! COSBench workloads on several agents: the same operations and artifacts as a single process, drivers, pins.

use std::collections::BTreeMap;
use std::path::Path;

use bucketload_core::sink::Event;
use bucketload_results::rundir::RunDir;

use crate::common::agents::Agent;
use crate::common::{ACCESS_KEY, Outcome, SECRET_KEY, Serve, bucketload, call, operations};

/// Every kind of work, with random, divided and sequential selectors.
fn workload(storage: &str) -> String {
    let stage = |name: &str, works: &str| format!("<workstage name=\"{name}\">{works}</workstage>");
    let special = |kind: &str, workers: u32, more: &str| {
        let work = format!(
            "<work type=\"{kind}\" workers=\"{workers}\" config=\"cprefix=many-;containers=r(1,3){more}\"/>"
        );
        stage(kind, &work)
    };
    let operation = |kind: &str, ratio: u32, more: &str| {
        format!(
            "<operation type=\"{kind}\" ratio=\"{ratio}\" config=\"cprefix=many-;containers=u(1,3);{more}\"/>"
        )
    };
    let main = format!(
        "<work name=\"mixed\" workers=\"6\" totalOps=\"301\">{}{}</work>\
         <work name=\"rest\" workers=\"3\" totalOps=\"90\" division=\"object\">{}{}</work>",
        operation("read", 70, "objects=u(1,17)"),
        operation("write", 30, "objects=s(18,40);sizes=u(1,3)KB"),
        operation("head", 60, "objects=r(1,17)"),
        operation("list", 40, "objects=u(1,9)"),
    );
    format!(
        "<workload name=\"w\">{storage}<workflow>{}{}{}{}{}</workflow></workload>",
        special("init", 2, ""),
        special("prepare", 5, ";objects=r(1,17);sizes=c(1)KB"),
        stage("main", &main),
        special("cleanup", 3, ";objects=r(1,40)"),
        special("dispose", 1, ""),
    )
}

fn run(dir: &Path, args: &[&str]) -> Outcome {
    let mut all = vec!["run", "w.xml", "--no-calibration"];
    all.extend(args);
    let mut command = bucketload(dir, &all);
    // The workload has the credentials, and agents get them from it.
    for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"] {
        command.env_remove(name);
    }
    call(&mut command)
}

/// The cells of a file of the archive without its header.
fn table(dir: &Path, name: &str) -> Vec<Vec<String>> {
    let path = dir.join("archive").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let lines = text.lines().skip(1);
    lines
        .map(|line| line.split(',').map(str::to_owned).collect())
        .collect()
}

/// The columns that do not depend on time.
fn counts(table: &[Vec<String>], columns: std::ops::Range<usize>) -> Vec<Vec<String>> {
    let rows = table.iter().filter(|row| row.len() > columns.end);
    rows.map(|row| row[columns.clone()].to_vec()).collect()
}

/// Successes per type of operation.
fn sums(table: &[Vec<String>]) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for row in table {
        *sums.entry(row[0].clone()).or_default() += row[2].parse::<u64>().unwrap();
    }
    sums
}

#[test]
fn agents_perform_the_operations_of_one_process_and_the_archive_is_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let serve = Serve::start(&["--region", "eu-north-7"]);
    let storage = format!(
        "<storage type=\"s3\" config=\"accesskey={ACCESS_KEY};secretkey={SECRET_KEY};\
         endpoint=http://{};path_style_access=true;aws_region=eu-north-7\"/>",
        serve.address
    );
    std::fs::write(dir.path().join("w.xml"), workload(&storage)).unwrap();
    let common = ["--seed", "5", "--op-log", "--cosbench-artifacts", "archive"];
    for (out, more) in [
        ("one", ["--threads", "1"]),
        ("four", ["--launch", "local:4"]),
    ] {
        let args = [&common[..], &["--out", out], &more].concat();
        run(dir.path(), &args).expect(0, &["COSBench's artifacts: archive/w"]);
    }
    let whats = |out: &str| -> Vec<_> {
        let all = operations(&dir.path().join(out));
        all.into_iter().map(|(what, _)| what).collect()
    };
    let (one, four) = (whats("one"), whats("four"));
    assert!(one.len() > 550, "{} operations", one.len());
    assert!(one == four, "the operations differ");

    let of = |number: u32, name: &str| table(dir.path(), &format!("w{number}-w/{name}"));
    let rows = |number: u32| of(number, &format!("w{number}-w.csv"));
    assert_eq!(counts(&rows(1), 0..5), counts(&rows(2), 0..5));
    assert!(
        rows(2).iter().all(|row| row[16] == "completed"),
        "{:?}",
        rows(2)
    );
    for stage in [
        "s1-init",
        "s2-prepare",
        "s3-main",
        "s4-cleanup",
        "s5-dispose",
    ] {
        let worker = format!("{stage}-worker.csv");
        let (one, four) = (of(1, &worker), of(2, &worker));
        assert_eq!(counts(&one, 0..4), counts(&four, 0..4), "{stage}");
    }
    // The shares of the drivers add up to the total.
    let mut drivers = BTreeMap::new();
    for number in 1..=4 {
        for (kind, n) in sums(&of(2, &format!("driver{number}.csv"))) {
            *drivers.entry(kind).or_default() += n;
        }
    }
    assert_eq!(drivers, sums(&of(1, "driver1.csv")));
    let named: Vec<String> = of(2, "all-drivers.csv")
        .iter()
        .map(|r| r[0].clone())
        .collect();
    assert_eq!(named, ["driver1", "driver2", "driver3", "driver4"]);
    assert!(!dir.path().join("archive/w1-w/all-drivers.csv").exists());
    // Five workers over four drivers; then the workers of `mixed` from driver 1 on, those of `rest` from 3 on.
    let lines: Vec<usize> = (1..=4)
        .map(|n| of(2, &format!("driver{n}.csv")).len())
        .collect();
    assert_eq!(lines.iter().sum::<usize>(), 2 + 4 + 2 * 4 + 2 * 3 + 3 + 1);
    let log = std::fs::read_to_string(dir.path().join("archive/w2-w/workload.log")).unwrap();
    assert!(log.contains("mission: M12, driver: driver4"), "{log}");
    // One worker disposes of the containers.
    assert!(log.contains("mission: M17, driver: driver1"), "{log}");
    assert!(!log.contains("mission: M18"), "{log}");

    // Workers' spans use the clock of the run, as their phase's start and end do.
    let (events, _) = RunDir::open(dir.path().join("four"))
        .unwrap()
        .events()
        .unwrap();
    let mut bounds: BTreeMap<u16, (u64, u64)> = BTreeMap::new();
    for event in &events {
        match event {
            Event::PhaseStarted { phase, at_ns } => drop(bounds.insert(*phase, (*at_ns, 0))),
            Event::PhaseEnded {
                phase, drained_ns, ..
            } => {
                bounds.get_mut(phase).unwrap().1 = *drained_ns;
            }
            _ => {}
        }
    }
    let mut spans = 0;
    for event in &events {
        let Event::Rows(rows) = event else { continue };
        let (from, to) = bounds[&rows.phase];
        for span in &rows.spans {
            spans += 1;
            // On one machine, clock offsets are known to a fraction of a millisecond, or a few if it is busy.
            let slack = 100_000_000;
            assert!(
                span.first_ns + slack >= from && span.last_ns <= to + slack,
                "{span:?} not in {from}..{to}"
            );
        }
    }
    assert_eq!(spans, 2 + 5 + 6 + 3 + 3 + 1);
}

#[test]
fn a_pinned_work_runs_on_its_driver() {
    let dir = tempfile::tempdir().unwrap();
    let work = |name: &str, driver: &str| {
        format!(
            "<work name=\"{name}\" workers=\"4\" totalOps=\"40\" driver=\"{driver}\"><operation type=\"write\" \
             config=\"cprefix=pin-;containers=c(1);oprefix={name};objects=s(1,40);sizes=c(1)KB\"/></work>"
        )
    };
    let file = |works: &str| {
        let text = format!(
            "<workload name=\"w\"><storage type=\"mock\"/><workflow><workstage name=\"init\"><work \
             type=\"init\" workers=\"1\" config=\"cprefix=pin-;containers=r(1,1)\"/></workstage><workstage \
             name=\"main\">{works}</workstage></workflow></workload>"
        );
        std::fs::write(dir.path().join("w.xml"), text).unwrap();
    };
    file(
        &[
            work("a", "driver2"),
            work("b", "none"),
            work("c", "somewhere"),
        ]
        .concat(),
    );
    let args = [
        "--launch",
        "local:3",
        "--cosbench-artifacts",
        "archive",
        "--out",
        "out",
    ];
    run(dir.path(), &args).expect(0, &["no agent has the driver name `somewhere`", "driver3"]);
    let writes = |driver: u32| -> Vec<String> {
        let table = table(dir.path(), &format!("w1-w/driver{driver}.csv"));
        let writes = table.into_iter().filter(|row| row[0] == "write");
        writes.map(|row| row[2].clone()).collect()
    };
    assert_eq!(writes(1), ["20", "20"]);
    assert_eq!(writes(2), ["40"]);
    assert_eq!(writes(3), ["20", "20"]);
    // The archive that `report` writes later is the same.
    let report = ["report", "out", "--cosbench-artifacts", "archive"];
    call(&mut bucketload(dir.path(), &report)).expect(0, &["archive/w2-w"]);
    for name in [
        "driver1.csv",
        "driver2.csv",
        "all-drivers.csv",
        "s2-main-worker.csv",
    ] {
        let of = |number: u32| table(dir.path(), &format!("w{number}-w/{name}"));
        assert_eq!(of(1), of(2), "{name}");
    }
    // No agent is left for `c`.
    file(&[work("a", "driver1"), work("b", "driver2"), work("c", "")].concat());
    let args = ["--launch", "local:2", "--out", "refused"];
    run(dir.path(), &args).expect(2, &["stage `main`", "no agent is left for work `c`"]);
    assert!(!dir.path().join("refused").exists());
    // A single machine runs all works, and says so.
    run(dir.path(), &["--threads", "1", "--out", "alone"]).expect(0, &["not pinned", "--launch"]);
}

/// Each agent writes on its own file system, where its user allows that.
#[test]
fn agents_write_local_files_where_they_are_allowed_to() {
    let dir = tempfile::tempdir().unwrap();
    let files = dir.path().join("its files");
    std::fs::create_dir(&files).unwrap();
    let serve = Serve::start(&[]);
    let text = format!(
        "<workload name=\"w\"><storage type=\"s3\" config=\"accesskey={ACCESS_KEY};secretkey={SECRET_KEY};\
         endpoint=http://{};path_style_access=true\"/><workflow><workstage name=\"local\"><work name=\"l\" \
         workers=\"3\" totalOps=\"24\" division=\"object\"><operation type=\"localwrite\" config=\"containers=r(1,2);\
         objects=r(1,12);sizes=c(2)KB;files={}\"/></work></workstage></workflow></workload>",
        serve.address,
        files.display()
    );
    std::fs::write(dir.path().join("w.xml"), text).unwrap();
    let stranger = Agent::start(dir.path(), "stranger", None);
    // The coordinator's permission is for its own machine.
    let args = [
        "--agents",
        &stranger.address,
        "--allow-local-writes",
        ".",
        "--out",
        "refused",
    ];
    run(dir.path(), &args).expect(2, &["its user has not allowed", "--allow-local-writes DIR"]);
    assert_eq!(std::fs::read_dir(&files).unwrap().count(), 0);
    let out = |out: &str, more: &[&str]| {
        let args = ["--launch", "local:3", "--out", out, "--output", "json"];
        run(dir.path(), &[&args, more].concat())
    };
    out("none", &[]).expect(2, &["has not allowed"]);
    let outcome = out("all", &["--allow-local-writes", "."]);
    outcome.expect(0, &["each agent writes files below"]);
    assert_eq!(outcome.json()["phases"][0]["totals"]["ok"], 24);
    for container in 1..=2 {
        let written = std::fs::read_dir(files.join(format!("mycontainers{container}"))).unwrap();
        let sizes = written.map(|file| file.unwrap().metadata().unwrap().len());
        assert_eq!(sizes.collect::<Vec<_>>(), [2000; 12]);
    }
    out("again", &["--allow-local-writes", "."]).expect(2, &["could replace", "--delete-named"]);
    out("replaced", &["--allow-local-writes", ".", "--delete-named"]).expect(0, &[]);
    let outside = ["--allow-local-writes", "archive", "--delete-named"];
    std::fs::create_dir(dir.path().join("archive")).unwrap();
    out("outside", &outside).expect(2, &["is not inside"]);
}
