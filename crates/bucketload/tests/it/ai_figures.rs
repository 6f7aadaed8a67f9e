//! Figures of training, checkpoints and caches in studies, sweeps and objectives: two stores, one of them
//! slower by a known law.

use std::fs;
use std::path::Path;

use crate::common::{Outcome, Serve, bucketload, call};

/// Reading a sample takes 600 ms on the slow store, computing 300: one reader keeps the accelerator half busy.
const MODELS: &str = "[small]\nformat = \"npz\"\nrecord = 4000\nbatch = 1\nreaders = 1\nprefetch = 1\n\
                      [small.accelerators]\nx1 = { computation = \"300ms\" }\n";

const STUDY: &str = r#"
name = "pair"
repetitions = 1
recovery = "0s"
settle = "0s"
[[experiment]]
name = "training"
command = "train"
options = { models = "models.toml", model = "small", accelerator = "x1", epochs = 1, steps = 6, objects = 6, scale = "1/2", no-calibration = true }
[[experiment.table]]
kind = "mlperf"
[[experiment.figure]]
kind = "bars"
metric = "au"
[[experiment]]
name = "saving"
command = "checkpoint"
options = { scale = "1/100000", count = 2, pause = "0s", no-calibration = true }
[[experiment.table]]
kind = "mlperf"
[[experiment.table]]
kind = "ladder"
metric = "checkpoint-write-time"
[[experiment]]
name = "cache"
command = "kvcache"
workload = "conversations"
options = { bytes-per-token = 1, speed = 60, window = "0s-100s", lookup = "index", no-calibration = true }
[[experiment.table]]
kind = "mlperf"
[[experiment.table]]
kind = "ladder"
metric = "load-p50"
[[target]]
name = "unused"
url = "null:"
"#;

fn run(dir: &Path, line: &str) -> Outcome {
    let words: Vec<&str> = line.split_whitespace().collect();
    call(&mut bucketload(dir, &words))
}

fn begun() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("models.toml"), MODELS).unwrap();
    fs::write(dir.path().join("pair.toml"), STUDY).unwrap();
    dir
}

/// The rows of a table: the cells by the keys of the columns.
fn table(dir: &Path, name: &str) -> Vec<std::collections::BTreeMap<String, String>> {
    let path = dir.join("tables").join(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut lines = text.lines();
    let head: Vec<String> = lines
        .next()
        .unwrap()
        .split(',')
        .map(str::to_owned)
        .collect();
    let row = |line: &str| {
        let cells = line.split(',').map(str::to_owned);
        head.iter().cloned().zip(cells).collect()
    };
    lines.map(row).collect()
}

#[test]
fn a_study_shows_in_the_benchmarks_columns_which_store_is_slower() {
    let dir = begun();
    let fast = Serve::start(&["--store", "memory"]);
    let slow = Serve::start(&[
        "--store",
        "memory",
        "--fault",
        "delay,ms=600,op=get",
        "--fault",
        "delay,ms=500,op=put",
    ]);
    let targets = format!(
        "--create-bucket --target fast=s3://bench/x --target slow=s3://bench/x --endpoint-url fast={} --endpoint-url slow={}",
        fast.url(),
        slow.url()
    );
    let line = format!("study pair.toml --dir s {targets}");
    let planned = run(dir.path(), &format!("{line} --dry-run"));
    planned.expect(0, &[]);
    // Six objects of 2,498 bytes, three times a hundred-thousandth of 105 GiB, and the blocks of 100 s.
    for target in ["fast", "slow"] {
        let said = format!("cached blocks on {target}: ");
        assert!(planned.stdout.contains(&said), "{}", planned.stdout);
    }
    assert!(!dir.path().join("s").exists());
    let done = run(dir.path(), &line);
    done.expect(0, &[]);
    let study = dir.path().join("s");
    let training = table(&study, "training-mlperf.csv");
    let number = |row: &std::collections::BTreeMap<String, String>, key: &str| -> f64 {
        let text = row.get(key).unwrap_or_else(|| panic!("no {key}: {row:?}"));
        text.parse().unwrap_or_else(|_| panic!("{key}: {row:?}"))
    };
    assert_eq!(training[0]["target"], "fast");
    assert_eq!(training[1]["target"], "slow");
    // Half of the time goes into reading from the slow store. Other work on the machine lowers both.
    let au = |row: usize| number(&training[row], "au_share");
    assert!(au(1) < 0.55 && au(0) > au(1) + 0.1, "{training:?}");
    assert_eq!(training[1]["passes"], "0 of 1");
    assert_eq!(training[0]["model"], "small-x1");
    // A rank writes two objects, one after another: at least a second.
    let saving = table(&study, "saving-mlperf.csv");
    let time = |row: usize| number(&saving[row], "checkpoint_write_ns");
    assert!(time(1) >= 1e9 && time(1) > time(0), "{saving:?}");
    assert!(number(&saving[1], "dlio_write_ns") <= time(1), "{saving:?}");
    assert_eq!(saving[0]["ranks"], "8");
    let cache = table(&study, "cache-mlperf.csv");
    assert!(number(&cache[1], "load_p50_ns") >= 6e8, "{cache:?}");
    assert!(
        number(&cache[0], "load_p50_ns") < number(&cache[1], "load_p50_ns"),
        "{cache:?}"
    );
    let page = fs::read_to_string(study.join("report.html")).unwrap();
    for words in [
        "not comparable with published results",
        "I/O rate",
        "time of reads (DLIO)",
        "within target",
    ] {
        assert!(page.contains(words), "{words}");
    }
    // What is finished is not repeated, and the bundle proves the figures.
    run(dir.path(), &line).expect(0, &[]);
    run(dir.path(), "bundle s --out s.tar.zst --quiet").expect(0, &[]);
    run(dir.path(), "verify-bundle s.tar.zst").expect(0, &[]);
}

#[test]
fn sweeps_show_the_figures_of_the_application() {
    let dir = begun();
    let slow = Serve::start(&["--store", "memory", "--fault", "delay,ms=600,op=get"]);
    let shown = run(
        dir.path(),
        "train --models models.toml --model small --accelerator x1 --objects 8 --epochs 1 --steps 6 --show",
    );
    shown.expect(0, &[]);
    fs::write(dir.path().join("small.toml"), &shown.stdout).unwrap();
    let swept = run(
        dir.path(),
        &format!(
            "sweep small.toml --over phases.train.train.readers=1,4 --repetitions 1 --no-calibration --out sweep \
             --create-bucket --target s3://bench/x --endpoint-url {} --output json",
            slow.url()
        ),
    );
    swept.expect(0, &[]);
    let au = |value: usize| {
        swept.json()["points"][value]["ai"]["au"]["mean"]
            .as_f64()
            .unwrap()
    };
    assert!(
        (au(0) - 0.5).abs() < 0.03 && au(1) > 0.9,
        "{} {}",
        au(0),
        au(1)
    );
    let page = fs::read_to_string(dir.path().join("sweep/report.html")).unwrap();
    assert!(page.contains("Accelerator utilisation"));
    let reported = run(dir.path(), "report sweep");
    assert!(
        reported.stdout.contains("accelerator utilisation"),
        "{}",
        reported.stdout
    );
}

#[test]
fn a_figure_that_a_run_does_not_have_is_refused_with_the_reason() {
    let dir = begun();
    let refused = |line: &str, words: &[&str]| {
        let outcome = run(dir.path(), line);
        outcome.expect(2, &[]);
        for word in words {
            assert!(outcome.stderr.contains(word), "{word}: {}", outcome.stderr);
        }
    };
    refused(
        "run get --target mem: --slo hit-ratio>=40%",
        &["has no cache of a language model", "`kvcache`"],
    );
    refused(
        "checkpoint --scale 1/100000 --phase write --target mem: --slo checkpoint-read-time<5s",
        &["reads no checkpoints", "--phase read or both"],
    );
    refused(
        "checkpoint --target mem: --scale 1/100000 --slo au>=90%",
        &["has no accelerators"],
    );
    refused(
        "train --model unet3d --accelerator h100 --scale 1/10000 --target mem: --slo samples<5/s",
        &["samples is limited with >"],
    );
    let wrong = STUDY.replace("metric = \"au\"", "metric = \"hit-ratio\"");
    fs::write(dir.path().join("wrong.toml"), wrong).unwrap();
    refused(
        "study wrong.toml --dry-run",
        &[
            "wrong.toml:",
            "hit-ratio is a metric of the cache",
            "command = \"kvcache\"",
        ],
    );
    let wrong = STUDY
        .replace("command = \"checkpoint\"", "workload = \"put\"")
        .replace("scale = \"1/100000\", count = 2, pause = \"0s\", ", "");
    fs::write(dir.path().join("wrong.toml"), wrong).unwrap();
    refused(
        "study wrong.toml --dry-run",
        &[
            "mlperf is a table of the commands",
            "checkpoint-write-time is a metric of checkpoints",
        ],
    );
    // Each checkpoint is judged by itself.
    let met = run(
        dir.path(),
        "checkpoint --scale 1/100000 --count 2 --pause 0s --no-calibration --target mem: --slo checkpoint-write-time<1h,checkpoint-read>1KiB/s",
    );
    met.expect(0, &[]);
    for objective in ["checkpoint-write-time<1h", "checkpoint-read>1KiB/s"] {
        assert!(met.stdout.contains(objective), "{}", met.stdout);
    }
    let missed = run(
        dir.path(),
        "checkpoint --scale 1/100000 --count 1 --pause 0s --no-calibration --target mem: --slo checkpoint-write-time<1ns",
    );
    missed.expect(1, &[]);
}
