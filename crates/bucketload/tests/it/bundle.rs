//! Evidence bundles from the user's view. Measured results verify. Changed results do not, even with matching
//! checksums, because every figure is computed again.

use std::fs;
use std::path::Path;

use crate::common::agents::wait_for;
use crate::common::evidence::{pack, refuted, run, with_change};
use crate::common::{SECRET_KEY, bucketload};

/// A short run in `dir`/run.
fn measured(dir: &Path, more: &[&str]) {
    let args = [
        "run",
        "mixed",
        "--objects",
        "20",
        "--size",
        "1KiB",
        "--ops",
        "400",
        "--workers",
        "2",
        "--no-calibration",
        "--quiet",
        "--out",
        "run",
    ];
    run(dir, &[&args[..], more].concat()).expect(0, &[]);
}

#[test]
fn a_run_verifies_and_every_change_of_a_figure_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    measured(dir, &["--op-log=csv.zst"]);
    let outcome = run(dir, &["bundle", "run"]);
    outcome.expect(0, &[]);
    assert!(
        outcome.stdout.contains("run.bundle.tar.zst"),
        "{}",
        outcome.stdout
    );
    let verified = run(dir, &["verify-bundle", "run.bundle.tar.zst"]);
    verified.expect(0, &[]);
    assert!(
        verified.stdout.contains("verified: every checksum matches"),
        "{}",
        verified.stdout
    );
    // The same directory gives the same bytes, and nothing is replaced.
    pack(dir, "run", "again").expect(0, &[]);
    let bytes = fs::read(dir.join("again")).unwrap();
    assert_eq!(bytes, fs::read(dir.join("run.bundle.tar.zst")).unwrap());
    run(dir, &["bundle", "run"]).expect(2, &["run.bundle.tar.zst", "exists"]);
    // Change single bytes of the file: a dense sample here, every byte in the tests of the format.
    for at in (0..bytes.len())
        .step_by(bytes.len() / 12 + 1)
        .chain([bytes.len() - 1])
    {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        fs::write(dir.join("changed"), changed).unwrap();
        run(dir, &["verify-bundle", "changed"]).expect(1, &["was changed after it was written"]);
    }
    // Change figures, with matching checksums.
    let made = run(dir, &["report", "run", "--output", "json"]);
    fs::write(dir.join("run/result.json"), &made.stdout).unwrap();
    let made = run(dir, &["report", "run", "--output", "csv"]);
    fs::write(dir.join("run/result.csv"), &made.stdout).unwrap();
    pack(dir, "run", "own").expect(0, &[]);
    run(dir, &["verify-bundle", "own"]).expect(0, &[]);
    let at = |name: &str| dir.join("run").join(name);
    let forged = |words: &[&str]| {
        pack(dir, "run", "forged").expect(0, &["does not follow from the data"]);
        refuted(dir, "forged", words);
    };
    let totals = "\"issued\": 400,\n        \"ok\": 40";
    let (stored, changed) = (format!("{totals}0"), format!("{totals}1"));
    with_change(&at("result.json"), "\"ok\": 400", "\"ok\": 401", || {
        forged(&["result.json: summary.ok: stored 401, computed 400"]);
    });
    with_change(&at("result.json"), &stored, &changed, || {
        forged(&[
            "result.json: phases[",
            "].totals.ok: stored 401, computed 400",
            "NOT verified",
        ]);
    });
    let csv = fs::read_to_string(at("result.csv")).unwrap();
    let figure = csv
        .lines()
        .nth(1)
        .unwrap()
        .split(',')
        .find(|cell| cell.parse::<f64>().is_ok_and(|x| x > 1.0))
        .unwrap();
    with_change(
        &at("result.csv"),
        &format!(",{figure},"),
        ",123456789,",
        || {
            forged(&[
                "result.csv: line ",
                "column `",
                "stored 123456789, computed ",
            ]);
        },
    );
    let page = fs::read_to_string(at("report.html")).unwrap();
    // A table cell: digits and a unit.
    let mut cells = page.split("<td>").filter_map(|cell| cell.split('<').next());
    let cell = cells.find(|text| {
        let number = text
            .strip_suffix(" ms")
            .or_else(|| text.strip_suffix(" µs"));
        number.is_some_and(|number| number.parse::<f64>().is_ok())
    });
    let cell = cell.expect("a time in a table of the report");
    with_change(
        &at("report.html"),
        &format!("<td>{cell}</td>"),
        "<td>0.1 ns</td>",
        || {
            forged(&["report.html: Latency / ", "stored 0.1 ns, computed "]);
        },
    );
    // Raw data without the derived reports.
    with_change(
        &at("intervals.jsonl"),
        "\"retries\":0",
        "\"retries\":7",
        || {
            forged(&["result.json: phases[0]", "retries: stored 0, computed 7"]);
        },
    );
    with_change(&at("run.json"), "\"seed\": 1,", "\"seed\": 2,", || {
        forged(&["run.json: ", "seed"]);
    });
    let word =
        serde_json::from_str::<serde_json::Value>(&fs::read_to_string(at("run.json")).unwrap())
            .unwrap();
    let word = word["verdict"]["word"].as_str().unwrap().to_owned();
    let other = if word == "VALID" {
        "OVERLOADED"
    } else {
        "VALID"
    };
    with_change(
        &at("run.json"),
        &format!("\"word\": \"{word}\""),
        &format!("\"word\": \"{other}\""),
        || {
            forged(&["run.json: verdict.word: stored "]);
        },
    );
}

#[test]
fn foreign_files_are_not_packed_and_secrets_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    measured(dir, &[]);
    fs::write(dir.join("run/notes.txt"), "mine").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", dir.join("run/agents.json")).unwrap();
    let outcome = pack(dir, "run", "b");
    outcome.expect(0, &["not packed: notes.txt", "not packed: agents.json"]);
    run(dir, &["verify-bundle", "b"]).expect(0, &[]);
    let file = dir.join("run/events.jsonl");
    let mut text = fs::read_to_string(&file).unwrap();
    text += &format!("{{\"warning\":\"{SECRET_KEY}\"}}\n");
    fs::write(&file, text).unwrap();
    let outcome = pack(dir, "run", "c");
    outcome.expect(2, &["events.jsonl", "AWS_SECRET_ACCESS_KEY"]);
    assert!(!outcome.stderr.contains(SECRET_KEY));
    assert!(!dir.join("c").exists() && !dir.join("c.part").exists());
    run(dir, &["bundle", "."]).expect(2, &["neither a run directory"]);
    fs::write(dir.join("text"), "x".repeat(200)).unwrap();
    run(dir, &["verify-bundle", "text"]).expect(2, &["not an evidence bundle"]);
    run(dir, &["verify-bundle", "b", "--max-size", "1KiB"]).expect(2, &["--max-size"]);
}

/// The bundle of a killed run says that the run did not finish.
#[test]
fn a_killed_run_verifies_as_incomplete() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let args = [
        "run",
        "get",
        "--objects",
        "5",
        "--size",
        "1KiB",
        "--duration",
        "100s",
        "--workers",
        "1",
        "--target",
        "null:",
        "--no-calibration",
        "--quiet",
        "--out",
        "run",
    ];
    let mut child = bucketload(dir, &args).spawn().unwrap();
    wait_for("three intervals", || {
        let text = fs::read_to_string(dir.join("run/intervals.jsonl")).ok()?;
        (text.lines().count() >= 3).then_some(())
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let outcome = pack(dir, "run", "b");
    outcome.expect(0, &[]);
    assert!(
        outcome.stdout.contains("did not finish"),
        "{}",
        outcome.stdout
    );
    let verified = run(dir, &["verify-bundle", "b"]);
    verified.expect(0, &[]);
    assert!(
        verified.stdout.contains("incomplete: run ") && verified.stdout.contains("is running"),
        "{}",
        verified.stdout
    );
    // The directory itself is unchanged.
    assert!(!dir.join("run/report.html").exists() && !dir.join("run/result.json").exists());
}

/// Trials, tables and page of several runs. A changed record is found through the trial's run directory, even if
/// everything derived from the record was changed as well.
#[test]
fn several_runs_verify_down_to_the_trials() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let args = [
        "sweep",
        "mixed",
        "--objects",
        "10",
        "--size",
        "1KiB",
        "--ops",
        "60",
        "--workers",
        "2",
        "--over",
        "workers=1,2",
        "--repetitions",
        "1",
        "--target",
        "null:",
        "--no-calibration",
        "--quiet",
        "--out",
        "study",
    ];
    run(dir, &args).expect(0, &[]);
    pack(dir, "study", "b").expect(0, &[]);
    let verified = run(dir, &["verify-bundle", "b"]);
    verified.expect(0, &[]);
    assert!(
        verified.stdout.contains("trials of 2 run(s)"),
        "{}",
        verified.stdout
    );
    let trials = dir.join("study/trials.jsonl");
    with_change(&trials, "\"n\":60", "\"n\":61", || {
        run(dir, &["report", "study"]).expect(0, &[]);
        pack(dir, "study", "forged").expect(0, &[]);
        refuted(
            dir,
            "forged",
            &["trials.jsonl: line 1.n: stored 61, computed 60"],
        );
    });
    run(dir, &["report", "study"]).expect(0, &[]);
    with_change(
        &dir.join("study/result.json"),
        "\"n\":60",
        "\"n\":59",
        || {
            pack(dir, "study", "forged").expect(0, &[]);
            refuted(
                dir,
                "forged",
                &["result.json: ", ".n: stored 59, computed 60"],
            );
        },
    );
    let inner = fs::read_dir(dir.join("study"))
        .unwrap()
        .map(|e| e.unwrap().path());
    let inner = inner
        .filter(|path| path.join("run.json").is_file())
        .min()
        .unwrap();
    with_change(&inner.join("report.html"), "<title>", "<title>x", || {
        pack(dir, "study", "forged").expect(0, &[]);
        refuted(dir, "forged", &["report.html: ", "stored x"]);
    });
}

/// The files of IO500 and MD-Workbench and the load of the data nodes are derived files too.
#[test]
fn the_files_of_other_benchmarks_are_verified_too() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let mut args = vec![
        "io500",
        "--ranks",
        "2",
        "--op-log=csv.zst",
        "--target",
        "mem:",
        "--out",
        "io500",
    ];
    for set in [
        "debug.stonewall-time=1",
        "ior-easy.transferSize=64k",
        "ior-easy.blockSize=128k",
        "ior-hard.segmentCount=2",
        "mdtest-easy.n=4",
        "mdtest-hard.n=4",
        "ior-rnd4K-easy-read.run=FALSE",
    ] {
        args.extend(["--set", set]);
    }
    let outcome = run(dir, &args);
    assert!(dir.join("io500/result.txt").is_file(), "{}", outcome.stderr);
    pack(dir, "io500", "b").expect(0, &[]);
    run(dir, &["verify-bundle", "b"]).expect(0, &[]);
    with_change(
        &dir.join("io500/result.txt"),
        "SCORE           = ",
        "SCORE           = 9",
        || {
            pack(dir, "io500", "forged").expect(0, &["result.txt"]);
            refuted(dir, "forged", &["result.txt: line "]);
        },
    );
    let words =
        "md-workbench --ranks 2 -D 1 -P 4 -I 3 -S 100 --process-reports --target mem: --out md";
    let words: Vec<&str> = words.split(' ').collect();
    run(dir, &words).expect(0, &[]);
    pack(dir, "md", "b").expect(0, &[]);
    run(dir, &["verify-bundle", "b"]).expect(0, &[]);
    with_change(&dir.join("md/md-workbench.txt"), "rate:", "rate:9", || {
        pack(dir, "md", "forged").expect(0, &["md-workbench.txt"]);
        refuted(dir, "forged", &["md-workbench.txt: line "]);
    });
}

const STUDY: &str = r#"
name = "tiny"
title = "Tiny"
seed = 3
repetitions = 1
recovery = "0s"
settle = "0s"
[[target]]
name = "nothing"
url = "null:"
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

/// Tables, figures and page of a study follow from its cells.
#[test]
fn a_study_verifies_down_to_its_tables() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::write(dir.join("tiny.toml"), STUDY).unwrap();
    run(dir, &["study", "tiny.toml", "--dir", "s"]).expect(0, &[]);
    pack(dir, "s", "b").expect(0, &[]);
    let verified = run(dir, &["verify-bundle", "b"]);
    assert!(
        verified.stdout.contains("study of 2 run(s)"),
        "{}",
        verified.stdout
    );
    verified.expect(0, &[]);
    let tables = fs::read_dir(dir.join("s/tables")).unwrap();
    let tables = tables.map(|entry| entry.unwrap().path());
    let table = tables
        .filter(|path| path.extension().is_some_and(|end| end == "csv"))
        .min()
        .unwrap();
    let text = fs::read_to_string(&table).unwrap();
    let figure = text
        .lines()
        .last()
        .unwrap()
        .split(',')
        .rfind(|cell| cell.parse::<f64>().is_ok_and(|x| x > 2.0))
        .unwrap();
    with_change(&table, &format!(",{figure}"), ",987654321", || {
        pack(dir, "s", "forged").expect(0, &["does not follow from the data"]);
        refuted(dir, "forged", &["tables/", "stored 987654321, computed "]);
    });
}
