//! `capacity` and `sweep` as a user meets them: several runs, one directory, a result that can be read
//! again. What the figures mean is tested without a clock elsewhere; here they only have to be there.

mod common;

use std::fs;
use std::path::Path;

use common::{Outcome, Serve, bucketload, call};
use serde_json::Value;

fn run(dir: &Path, args: &[&str]) -> Outcome {
    call(&mut bucketload(dir, args))
}

/// Lines of a study's file of trials.
fn trials(dir: &Path) -> usize {
    fs::read_to_string(dir.join("trials.jsonl"))
        .unwrap()
        .lines()
        .count()
}

#[test]
fn a_search_leaves_its_trials_and_can_be_reported_again() {
    let dir = tempfile::tempdir().unwrap();
    let args = [
        "capacity",
        "get",
        "--objects",
        "10",
        "--target",
        "null:",
        "--slo",
        "get.p50<10s",
        "--start-rate",
        "40/s",
        "--max-rate",
        "40/s",
        "--trial-duration",
        "1s",
        "--confirm",
        "1",
        "--quick",
        "--no-calibration",
        "--out",
        "study",
        "--output",
        "json",
    ];
    let outcome = run(dir.path(), &args);
    let result = outcome.json();
    // A machine that is busy elsewhere makes a client limit of it, which is no error of the search.
    let limit = result["outcome"]["limit"].as_str().unwrap().to_owned();
    let low = result["outcome"]["low"]["rate"].as_f64();
    match (limit.as_str(), low) {
        ("max-rate", Some(rate)) => {
            assert_eq!(rate, 40.0);
            outcome.expect(0, &["report: study/report.html"]);
        }
        ("client", None) => outcome.expect(1, &["CLIENT"]),
        ("client", Some(_)) => outcome.expect(0, &["CLIENT"]),
        other => panic!("{other:?}"),
    }
    let study = dir.path().join("study");
    let listed = result["trials"].as_array().unwrap();
    assert_eq!(listed.len(), trials(&study));
    for trial in listed {
        let run = study.join(trial["dir"].as_str().unwrap());
        assert!(run.join("report.html").is_file(), "{}", run.display());
    }
    // The same from the directory, as a whole and after a loss.
    let again = run(dir.path(), &["report", "study", "--output", "json"]);
    again.expect(0, &[]);
    assert_eq!(again.json(), result);
    let file = study.join("trials.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, &text[..text.len() - 20]).unwrap();
    let torn = run(dir.path(), &["report", "study"]);
    torn.expect(0, &[]);
    assert!(torn.stdout.contains("interrupted after"), "{}", torn.stdout);
    run(dir.path(), &["report", "study", "--output", "csv"]).expect(2, &["text or json"]);
    // Never written over.
    run(dir.path(), &args).expect(2, &["it holds something already"]);
}

#[test]
fn a_sweep_goes_through_all_values_and_cleans_up() {
    let (dir, server) = (
        tempfile::tempdir().unwrap(),
        Serve::start(&["--store", "memory", "--stats-page"]),
    );
    let both = format!(
        "{},{}",
        server.url(),
        server.url().replace("127.0.0.1", "localhost")
    );
    let sweep = |over: &str, out: &str| {
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
            over,
            "--repetitions",
            "2",
            "--target",
            "s3://bench/t",
            "--create-bucket",
            "--endpoint-url",
            &both,
            "--no-calibration",
            "--output",
            "json",
            "--out",
            out,
        ];
        let outcome = run(dir.path(), &args);
        outcome.expect(0, &[]);
        assert_eq!(trials(&dir.path().join(out)), 4);
        outcome.json()
    };
    let names = |result: &Value| -> Vec<String> {
        let points = result["points"].as_array().unwrap();
        points
            .iter()
            .map(|p| format!("{}×{}", p["value"].as_str().unwrap(), p["runs"]))
            .collect()
    };
    // Sizes change the data set, workers do not, endpoints change the connection.
    assert_eq!(
        names(&sweep("size=1KiB,2KiB", "size")),
        ["1KiB×2", "2KiB×2"]
    );
    assert_eq!(names(&sweep("workers=1,2", "workers")), ["1×2", "2×2"]);
    let result = sweep("endpoints=1,2", "endpoints");
    assert_eq!(names(&result), ["1×2", "2×2"]);
    let efficiency = result["efficiency"].as_array().unwrap();
    assert!(efficiency.is_empty() || efficiency[0]["efficiency"] == 1.0);
    assert!(dir.path().join("endpoints/endpoints-2").is_dir());
    let text = run(dir.path(), &["report", "workers"]);
    text.expect(0, &[]);
    assert!(text.stdout.contains("workers"), "{}", text.stdout);
}

#[test]
fn mistakes_are_refused_before_anything_is_measured() {
    let dir = tempfile::tempdir().unwrap();
    let capacity = ["capacity", "get", "--target", "null:", "--out", "study"];
    for (more, words) in [
        (&["--slo", "p99=5ms"][..], &["--slo", "p99=5ms", "<"][..]),
        (&["--slo", "put.p99<5ms"], &["performs no put"]),
        (
            &["--slo", "p99<5ms", "--rate", "5"],
            &["--rate: capacity sets the load by itself"],
        ),
        (
            &["--slo", "p99<5ms", "--start-rate", "0"],
            &["the rate is 0"],
        ),
        (
            &["--slo", "p99<5ms", "--start-rate", "9", "--max-rate", "8"],
            &["--max-rate", "below"],
        ),
        (
            &["--slo", "p99<5ms", "--trial-duration", "10ms"],
            &["at least 1s"],
        ),
    ] {
        run(dir.path(), &[&capacity[..], more].concat()).expect(2, words);
    }
    let sweep = ["sweep", "get", "--target", "null:", "--out", "study"];
    for (over, words) in [
        ("workers", &["--over workers", "no `=`"][..]),
        ("speed=1,2", &["no field `speed`"]),
        ("workers=1,0", &["--workers 0"]),
        ("endpoints=1,2", &["this target has none"]),
    ] {
        run(dir.path(), &[&sweep[..], &["--over", over]].concat()).expect(2, words);
    }
    assert!(!dir.path().join("study").exists());
}
