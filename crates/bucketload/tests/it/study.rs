//! `bucketload study` from the user's view: plan, cells, the state after a kill, and refusals. Plan and journal
//! themselves are tested in their crate.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::common::agents::wait_for;
use crate::common::{Outcome, Serve, bucketload, call};
use bucketload_study::journal::{End, State, read};
use bucketload_study::model::{JournalLine, Plan, TargetFacts};

const STUDY: &str = r#"
name = "tiny"
title = "Tiny"
seed = 3
repetitions = 3
recovery = "0s"
settle = "0s"
[[target]]
name = "nothing"
url = "null:"
[[target]]
name = "files"
url = "file://{dir}"
[[experiment]]
name = "writes"
workload = "put"
estimate = "1s"
field = "workers"
values = [1, 2]
options = { ops = 20, size = "1KiB", no-calibration = true, threads = 1 }
[[experiment.table]]
kind = "summary"
"#;

fn run(dir: &Path, args: &[&str]) -> Outcome {
    call(&mut bucketload(dir, args))
}

fn written(study: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("tiny.toml"), study).unwrap();
    dir
}

fn plan(dir: &Path) -> Plan {
    serde_json::from_str(&fs::read_to_string(dir.join("plan.json")).unwrap()).unwrap()
}

/// The directories of measured cells, by cell.
fn measured(dir: &Path) -> BTreeMap<String, String> {
    let state = State::of(&read(dir).unwrap());
    let ends = state
        .cells
        .into_iter()
        .filter_map(|(cell, known)| match known.end {
            Some(End::Finished { dir, .. }) => Some((cell, dir)),
            _ => None,
        });
    ends.collect()
}

#[test]
fn every_cell_is_a_run_directory_and_a_second_call_repeats_none() {
    let dir = written(STUDY);
    let args = ["study", "tiny.toml", "--dir", "s"];
    let outcome = run(dir.path(), &args);
    outcome.expect(0, &["[12/12] writes on ", "repetition 3"]);
    assert!(outcome.stdout.contains("writes"), "{}", outcome.stdout);
    let study = dir.path().join("s");
    let cells = measured(&study);
    assert_eq!(cells.len(), 12);
    assert!(study.join("study.toml").is_file());
    for dir in cells.values() {
        let result = bucketload_results::analyze(&study.join(dir)).unwrap();
        assert_eq!(result.run.workload, "put");
        assert!(study.join(dir).join("output.log").is_file());
    }
    let facts = fs::read_to_string(study.join("targets/files.json")).unwrap();
    let facts: TargetFacts = serde_json::from_str(&facts).unwrap();
    assert_eq!(facts.versions["bucketload"], env!("CARGO_PKG_VERSION"));
    assert!(!facts.machine["kernel"].is_empty());

    let before = read(&study).unwrap().len();
    run(dir.path(), &args).expect(0, &["continuing the study"]);
    let lines = read(&study).unwrap();
    let begun = lines[before..]
        .iter()
        .filter(|line| matches!(line, JournalLine::Started { .. }));
    assert_eq!(begun.count(), 0);

    // Another study in the same directory is refused, and the difference is named.
    let other = [&args[..], &["--seed", "4"]].concat();
    run(dir.path(), &other).expect(2, &["another seed", "--dir s"]);
    let other = [&args[..], &["--target", "nothing"]].concat();
    run(dir.path(), &other).expect(2, &["other targets"]);
    run(dir.path(), &["study", "report", "s"]).expect(0, &[]);
    run(dir.path(), &["study", "report", "."]).expect(2, &["not the directory of a study"]);
}

#[test]
fn a_killed_study_continues_with_exactly_the_missing_cells() {
    // A worker that writes for 400 ms leaves time for a kill in the middle of a cell.
    let dir = written(
        &STUDY
            .replace("ops = 20", "duration = \"400ms\"")
            .replace("[1, 2]", "[1]"),
    );
    let args = ["study", "tiny.toml", "--dir", "s"];
    let study = dir.path().join("s");
    let mut child = bucketload(dir.path(), &args)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let running = wait_for("the third cell", || {
        let lines = read(&study).unwrap_or_default();
        let finished = lines
            .iter()
            .filter(|line| matches!(line, JournalLine::Finished { .. }))
            .count();
        // The third cell is running if its line is the last one.
        match (finished, lines.last()) {
            (2, Some(JournalLine::Started { cell, .. })) => Some(cell.clone()),
            _ => None,
        }
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let before = measured(&study);
    assert_eq!(before.len(), 2);

    run(dir.path(), &args).expect(0, &["continuing the study"]);
    let after = measured(&study);
    let all: BTreeSet<String> = plan(&study).cells.into_iter().map(|cell| cell.id).collect();
    assert_eq!(after.keys().cloned().collect::<BTreeSet<_>>(), all);
    for (cell, dir) in &before {
        assert_eq!(after[cell], *dir, "a finished cell was repeated");
    }
    assert_eq!(after[&running], format!("cells/{running}.2"));
    let lines = read(&study).unwrap();
    let begun = lines
        .iter()
        .filter(|line| matches!(line, JournalLine::Started { .. }))
        .count();
    assert_eq!(begun, all.len() + 1, "only the killed cell was begun twice");
}

#[test]
fn a_cell_that_fails_does_not_end_the_study() {
    // No server runs at this address.
    let broken = STUDY.replace(
        "url = \"null:\"",
        "url = \"s3://bucket\"\nendpoint = \"http://127.0.0.1:1\"",
    );
    let dir = written(&broken);
    let args = ["study", "tiny.toml", "--dir", "s", "--repetitions", "1"];
    let outcome = run(dir.path(), &args);
    outcome.expect(1, &["failed: "]);
    assert!(
        outcome.stdout.contains("writes on nothing 1: "),
        "{}",
        outcome.stdout
    );
    let state = State::of(&read(&dir.path().join("s")).unwrap());
    let ends: Vec<bool> = state
        .cells
        .values()
        .map(|cell| matches!(cell.end, Some(End::Failed { exit: Some(3), .. })))
        .collect();
    assert_eq!(
        (ends.len(), ends.iter().filter(|failed| **failed).count()),
        (4, 2)
    );
    assert_eq!(measured(&dir.path().join("s")).len(), 2);
    // Failed cells are measured again on request.
    run(dir.path(), &[&args[..], &["--retry"]].concat()).expect(1, &["[", "failed: "]);
}

#[test]
fn an_interrupted_study_can_be_continued() {
    let dir = written(
        &STUDY
            .replace("ops = 20", "duration = \"60s\"")
            .replace("[1, 2]", "[1]"),
    );
    let args = ["study", "tiny.toml", "--dir", "s", "--repetitions", "1"];
    let study = dir.path().join("s");
    let child = bucketload(dir.path(), &args)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    wait_for("the first run", || {
        let lines = read(&study).unwrap_or_default();
        let Some(JournalLine::Started { dir, .. }) = lines.last() else {
            return None;
        };
        study.join(dir).join("run.json").is_file().then_some(())
    });
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("repeat the command to continue"), "{said}");
    assert_eq!(measured(&study).len(), 0);
    let lines = read(&study).unwrap();
    assert!(
        matches!(lines.last(), Some(JournalLine::Ended { reason, .. }) if reason == "interrupted")
    );
}

#[test]
fn a_dry_run_prints_the_plan_and_a_budget_limits_its_length() {
    let dir = written(STUDY);
    let outcome = run(
        dir.path(),
        &["study", "tiny.toml", "--dry-run", "--time", "20s"],
    );
    outcome.expect(0, &[]);
    assert!(
        outcome
            .stdout
            .contains("the budget of 20s holds 2 repetitions"),
        "{}",
        outcome.stdout
    );
    assert!(
        outcome.stdout.contains("no confidence interval"),
        "{}",
        outcome.stdout
    );
    assert!(!dir.path().join("bucketload-studies").exists());
    for name in [
        "ossperf",
        "cosbench",
        "s3-hpc",
        "distributed-grid",
        "clients",
        "ostorebench",
    ] {
        let targets = [
            "study",
            name,
            "--target",
            "null:",
            "--target",
            "minio=mem:",
            "--dry-run",
            "--quick",
        ];
        run(dir.path(), &targets).expect(0, &[]);
    }
    let list = run(dir.path(), &["study", "list"]).stdout;
    assert!(
        list.contains("ossperf") && list.contains("ostorebench"),
        "{list}"
    );
}

#[test]
fn a_grid_is_shown_by_the_mean_of_its_processes_and_by_the_clock() {
    let head = STUDY.split("[[target]]").next().unwrap();
    let grid = r#"
[[target]]
name = "files"
url = "file://{dir}"
[[experiment]]
name = "grid"
command = "study-grid"
field = "rows"
values = ["20x5000"]
estimate = "1s"
options = { processes = "1,8", repetitions = 1, no-floor = true, no-calibration = true }
[[experiment.table]]
kind = "grid"
metric = "bandwidth"
[[experiment.table]]
kind = "grid"
metric = "wall-bandwidth"
[[experiment.figure]]
kind = "efficiency"
metric = "wall-throughput"
phase = "write"
"#;
    let dir = written(&format!("{head}{grid}"));
    run(dir.path(), &["study", "tiny.toml", "--dir", "s"]).expect(0, &[]);
    // Measured by the wall clock, nothing is faster than by the mean over processes.
    let rows = |metric: &str| -> Vec<f64> {
        let tables = dir.path().join("s/tables");
        let text =
            fs::read_to_string(tables.join(format!("grid-grid-{metric}-write.csv"))).unwrap();
        let mut lines = text.lines();
        let head: Vec<&str> = lines.next().unwrap().split(',').collect();
        let row: Vec<&str> = lines.next().unwrap().split(',').collect();
        let of = |n| {
            head.iter()
                .position(|h| h.starts_with(&format!("files_{n}_")))
        };
        [1, 8].map(|n| row[of(n).unwrap()].parse().unwrap()).into()
    };
    let (mean, wall) = (rows("bytes-per-s"), rows("wall-bytes-per-s"));
    assert!((mean[0] / wall[0] - 1.0).abs() < 1e-6, "{mean:?} {wall:?}");
    assert!(wall[1] <= mean[1] && wall[1] > 0.0, "{mean:?} {wall:?}");
    let page = fs::read_to_string(dir.path().join("s/report.html")).unwrap();
    for words in [
        "A_wall, MiB/s",
        "A_mean, MiB/s",
        "the throughput from first start to last end per unit",
    ] {
        assert!(page.contains(words), "{words}");
    }
}

#[test]
fn mistakes_are_refused_before_anything_is_measured() {
    let dir = written(&STUDY.replace("ops = 20", "opps = 20"));
    run(dir.path(), &["study", "tiny.toml", "--dir", "s"])
        .expect(2, &["experiment writes", "--opps"]);
    fs::write(dir.path().join("tiny.toml"), STUDY.replace("1KiB", "1Qib")).unwrap();
    run(dir.path(), &["study", "tiny.toml", "--dir", "s"])
        .expect(2, &["experiment writes", "--size 1Qib"]);
    fs::write(
        dir.path().join("tiny.toml"),
        STUDY.replace("seed = 3", "sead = 3"),
    )
    .unwrap();
    run(dir.path(), &["study", "tiny.toml", "--dir", "s"])
        .expect(2, &["tiny.toml:4:1: sead: ", "seed"]);
    assert!(!dir.path().join("s").exists());
    run(dir.path(), &["study", "osperf"]).expect(2, &["neither a study of this name", "ossperf"]);
    let none = [
        "study",
        "cosbench",
        "--dry-run",
        "--target",
        "server:none-such",
    ];
    run(dir.path(), &none).expect(2, &["target none-such", "none-such.sh", "--servers"]);
    fs::create_dir(dir.path().join("full")).unwrap();
    fs::write(dir.path().join("full/mine"), "").unwrap();
    fs::write(dir.path().join("tiny.toml"), STUDY).unwrap();
    run(dir.path(), &["study", "tiny.toml", "--dir", "full"]).expect(2, &["not empty"]);
}

/// A script like those of `servers/`: it starts `bucketload serve`, prints its lines, and stops it.
const SCRIPT: &str = r#"#!/bin/sh
# VERSION below is read as that of the other scripts.
VERSION=${FAKE_VERSION:-1.2.3}
state="$HOME/$3"
case "$1" in
start)
  echo start >>"$HOME/calls"
  mkdir -p "$state"
  BUCKETLOAD_SERVE_ACCESS_KEY=fakeaccesskey1 BUCKETLOAD_SERVE_SECRET_KEY=fakesecretkey00001 \
    "$FAKE_PROGRAM" serve --listen 127.0.0.1:0 --announce >"$state/line" 2>/dev/null &
  echo $! >"$state/pid"
  while ! grep -q listening "$state/line"; do kill -0 $! || exit 1; sleep 0.05; done
  address=$(sed 's/.*"listening":"\([^"]*\)".*/\1/' "$state/line")
  echo "AWS_ENDPOINT_URL=http://$address"
  echo AWS_ACCESS_KEY_ID=fakeaccesskey1
  echo AWS_SECRET_ACCESS_KEY=fakesecretkey00001
  ;;
stop)
  [ -f "$state/pid" ] || exit 0
  echo stop >>"$HOME/calls"
  kill "$(cat "$state/pid")"
  rm -r "$state"
  ;;
esac
"#;

fn script(dir: &Path, name: &str, text: &str) {
    let servers = dir.join("servers");
    fs::create_dir_all(&servers).unwrap();
    fs::write(servers.join("common.sh"), "").unwrap();
    let path = servers.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn servers_are_started_and_stopped_and_skipped_targets_are_named() {
    let dir = written(
        &STUDY
            .replace(
                "url = \"null:\"",
                "server = \"fake\"\nsettings = { COLOUR = \"blue\" }",
            )
            .replace(
                "url = \"file://{dir}\"",
                "server = \"fake\"\nrequires = \"no-such-program\"",
            ),
    );
    script(dir.path(), "fake.sh", SCRIPT);
    let mut command = bucketload(
        dir.path(),
        &["study", "tiny.toml", "--dir", "s", "--repetitions", "2"],
    );
    let outcome = call(command.env("FAKE_PROGRAM", env!("CARGO_BIN_EXE_bucketload")));
    outcome.expect(0, &["skipped: no-such-program is not on the PATH"]);
    assert!(
        outcome.stdout.contains("skipped: no-such-program"),
        "{}",
        outcome.stdout
    );
    let study = dir.path().join("s");
    assert_eq!(measured(&study).len(), 4);
    let calls = fs::read_to_string(dir.path().join("calls")).unwrap();
    // There are two blocks; the other target may or may not be measured between them.
    assert!(
        calls == "start\nstop\n" || calls == "start\nstop\nstart\nstop\n",
        "{calls}"
    );
    let facts = |name: &str| -> TargetFacts {
        let text = fs::read_to_string(study.join(format!("targets/{name}.json"))).unwrap();
        assert!(!text.contains("fakesecretkey"), "{text}");
        serde_json::from_str(&text).unwrap()
    };
    let known = facts("nothing");
    assert_eq!(known.versions["fake"], "1.2.3");
    assert_eq!(known.settings["COLOUR"], "blue");
    assert!(
        known.endpoint.starts_with("http://127.0.0.1:"),
        "{}",
        known.endpoint
    );
    assert!(facts("files").skipped.contains("no-such-program"));
    // The directory contains no secret.
    let everything = call(
        std::process::Command::new("grep")
            .args(["-rl", "fakesecretkey"])
            .arg(&study),
    );
    assert_eq!((everything.code, everything.stdout.as_str()), (1, ""));
}

#[test]
fn a_server_that_does_not_start_is_skipped_with_its_message() {
    let dir = written(&STUDY.replace("url = \"null:\"", "server = \"fake\""));
    script(
        dir.path(),
        "fake.sh",
        "#!/bin/sh\n[ $1 = start ] || exit 0\necho fake: no disk >&2\nexit 1\n",
    );
    let args = ["study", "tiny.toml", "--dir", "s", "--repetitions", "1"];
    let outcome = run(dir.path(), &args);
    outcome.expect(0, &["fake: no disk"]);
    assert_eq!(measured(&dir.path().join("s")).len(), 2);
}

#[test]
fn a_study_whose_cells_are_all_refused_leaves_no_directory_behind() {
    let server = Serve::start(&["--store", "memory"]);
    let target = format!("url = \"s3://absent/x\"\nendpoint = \"{}\"", server.url());
    let study = STUDY.replace("url = \"null:\"", &target);
    let files = study.find("[[target]]\nname = \"files\"").unwrap();
    let experiment = study.find("[[experiment]]").unwrap();
    let dir = written(&format!("{}{}", &study[..files], &study[experiment..]));
    let args = ["study", "tiny.toml", "--dir", "s", "--repetitions", "1"];
    let outcome = run(dir.path(), &args);
    outcome.expect(3, &["--create-bucket"]);
    assert!(!dir.path().join("s").exists(), "{}", outcome.stderr);
    // A directory that was there before stays, empty.
    fs::create_dir(dir.path().join("s")).unwrap();
    run(dir.path(), &args).expect(3, &[]);
    assert_eq!(fs::read_dir(dir.path().join("s")).unwrap().count(), 0);
}

#[test]
fn every_study_can_be_planned_with_the_program_alone() {
    let dir = tempfile::tempdir().unwrap();
    for (name, _) in bucketload_study::spec::BUILTIN_STUDIES {
        let outcome = run(dir.path(), &["study", name, "--quick", "--dry-run"]);
        outcome.expect(0, &[]);
        assert!(
            outcome.stdout.contains("cells, pauses of"),
            "{name}: {}",
            outcome.stdout
        );
    }
    // Planning writes nothing, neither studies nor scripts.
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_study_outside_a_clone_measures_what_it_can_and_says_how_to_add_targets() {
    let dir = tempfile::tempdir().unwrap();
    let study = bucketload_study::spec::builtin("ossperf").unwrap();
    let short = one_size(study);
    fs::write(dir.path().join("short.toml"), short).unwrap();
    // Without Go on the PATH, the script of MinIO is called and names what is missing.
    let bin = dir.path().join("bin");
    fs::create_dir(&bin).unwrap();
    for program in [
        "bash", "env", "dirname", "mkdir", "cat", "flock", "awk", "sed", "cut", "rm",
    ] {
        let at = ["/usr/bin", "/bin"].map(|dir| Path::new(dir).join(program));
        let found = at.iter().find(|path| path.exists()).unwrap();
        std::os::unix::fs::symlink(found, bin.join(program)).unwrap();
    }
    let args = [
        "study",
        "short.toml",
        "--quick",
        "--dir",
        "s",
        "--repetitions",
        "1",
    ];
    let mut command = bucketload(dir.path(), &args);
    let outcome = call(command.env("PATH", &bin));
    outcome.expect(
        0,
        &[
            "minio: needs go on PATH",
            "--retry",
            "--target NAME=s3://BUCKET",
        ],
    );
    let study = dir.path().join("s");
    let cells = measured(&study);
    assert_eq!(cells.len(), 2, "{}", outcome.stderr);
    assert!(
        cells.keys().all(|cell| cell.contains("embedded")),
        "{cells:?}"
    );
    assert!(study.join("report.html").is_file());
    let cache = dir.path().join(".cache/bucketload-servers");
    let carried = fs::read_dir(cache).unwrap().flatten();
    let mut names = carried.map(|entry| entry.file_name().into_string().unwrap());
    assert!(names.any(|name| name.starts_with("scripts-")));
}

/// The study, reduced to one size.
fn one_size(text: &str) -> String {
    let all = text
        .split_once("values = [")
        .unwrap()
        .1
        .split_once(']')
        .unwrap()
        .0;
    text.replace(all, "\"512B\"")
}
