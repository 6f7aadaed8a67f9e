//! `capacity`, `sweep` and `study-grid` from the user's view: several runs, one directory, a result that can be read
//! again. Other tests check the figures without a clock; here they only have to exist.

use std::fs;
use std::path::Path;

use crate::common::{Outcome, Serve, bucketload, call};
use serde_json::Value;

fn run(dir: &Path, args: &[&str]) -> Outcome {
    call(&mut bucketload(dir, args))
}

/// Number of lines in the file of trials.
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
    // On a busy machine, the client may be the limit, which is not an error of the search.
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
    // The directory leads to the same result, complete or after a loss.
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
    // The directory is never overwritten.
    run(dir.path(), &args).expect(2, &["the directory is not empty"]);
}

#[test]
fn a_sweep_measures_all_values_and_cleans_up() {
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
    // Sizes need another data set, workers do not, endpoints need another connection.
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
            &["--rate: capacity sets the load itself"],
        ),
        (
            &["--slo", "p99<5ms", "--start-rate", "0"],
            &["the rate must be above 0"],
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
        ("endpoints=1,2", &["this target has no endpoints"]),
    ] {
        run(dir.path(), &[&sweep[..], &["--over", over]].concat()).expect(2, words);
    }
    assert!(!dir.path().join("study").exists());
}

#[test]
fn a_grid_measures_every_cell_and_its_floor() {
    let dir = tempfile::tempdir().unwrap();
    // Every PUT takes at least 3 ms, so a process with F files takes at least F times that.
    let server = Serve::start(&["--store", "memory", "--fault", "delay,time=3ms,op=put"]);
    let url = server.url();
    let args = [
        "study-grid",
        "--rows",
        "touch,g1,20x5000,g6",
        "--scale",
        "0.002",
        "--processes",
        "1,2",
        "--repetitions",
        "2",
        "--max-bytes",
        "10MiB",
        "--verify",
        "--target",
        "s3://bench/t",
        "--create-bucket",
        "--endpoint-url",
        &url,
        "--no-calibration",
        "--out",
        "grid",
    ];
    let outcome = run(dir.path(), &[&args[..], &["--output", "json"]].concat());
    outcome.expect(0, &["report: grid/report.html"]);
    let result = outcome.json();
    let cells = result["cells"].as_array().unwrap();
    let names: Vec<String> = cells
        .iter()
        .map(|cell| format!("{}x{}", cell["row"].as_str().unwrap(), cell["processes"]))
        .collect();
    assert_eq!(
        names,
        [
            "touchx1",
            "touchx2",
            "g1x1",
            "g1x2",
            "20x5000x1",
            "20x5000x2"
        ]
    );
    let left_out = result["header"]["dropped"][0].as_str().unwrap();
    assert!(
        left_out.contains("g6") && left_out.contains("--max-bytes"),
        "{left_out}"
    );
    // Each cell is measured twice, its floor once.
    assert_eq!(trials(&dir.path().join("grid")), 6 * 2 + 6);
    for cell in cells {
        let step = |name: &str| {
            let steps = cell["steps"].as_array().unwrap().iter();
            steps
                .clone()
                .find(|step| step["step"] == name)
                .unwrap()
                .clone()
        };
        let touch = cell["row"] == "touch";
        let write = step(if touch { "touch" } else { "write" });
        let files = cell["files"].as_f64().unwrap();
        let figure = |name: &str| write["figures"][name].as_f64().unwrap();
        for t in write["t_s"].as_array().unwrap() {
            assert!(t.as_f64().unwrap() >= files * 0.003, "{cell}");
        }
        let n = cell["processes"].as_f64().unwrap();
        assert!(figure("r_mean") <= n * files / (files * 0.003), "{cell}");
        let unit = if touch { "r" } else { "a" };
        let of = |name: &str| figure(&format!("{unit}_{name}"));
        // The inequalities hold for each trial, so they hold for the means over trials too.
        let slack = 1.0 + 1e-12;
        assert!(
            of("wall") <= of("slow") * slack && of("slow") <= of("mean") * slack,
            "{cell}"
        );
        assert!(
            of("mean") <= of("sum") * slack && of("wall") > 0.0,
            "{cell}"
        );
        assert!(write["floor_ratio"].as_f64().unwrap() > 2.0, "{cell}");
        assert_eq!(write["failed"], 0);
        assert_eq!(step("read")["runs"], 2);
        assert_eq!(step("delete")["failed"], 0);
    }
    let table = fs::read_to_string(dir.path().join("grid/cells.csv")).unwrap();
    assert_eq!(table.lines().count(), 1 + 6 * 3, "{table}");
    let page = fs::read_to_string(dir.path().join("grid/report.html")).unwrap();
    assert!(page.contains("CephFS-64") && page.contains("Four definitions"));
    // The directory leads to the same report, as text.
    let text = run(dir.path(), &["report", "grid"]);
    text.expect(0, &[]);
    for words in [
        "20 x 1024",
        "20 x 5000",
        "P=2",
        "dropped: g6",
        "Touch, files/s",
    ] {
        assert!(text.stdout.contains(words), "{words}\n{}", text.stdout);
    }
}

#[test]
fn an_interrupted_grid_continues() {
    let dir = tempfile::tempdir().unwrap();
    let server = Serve::start(&["--store", "memory"]);
    let url = server.url();
    let grid = |rows: &'static str, more: &[&str]| {
        let args = [
            "study-grid",
            "--rows",
            rows,
            "--repetitions",
            "2",
            "--target",
            "s3://bench/t",
            "--create-bucket",
            "--endpoint-url",
            &url,
            "--no-calibration",
            "--out",
            "grid",
        ];
        run(dir.path(), &[&args, more].concat())
    };
    grid("3x10,4x20", &[]).expect(0, &[]);
    let place = dir.path().join("grid");
    let whole = fs::read_to_string(place.join("trials.jsonl")).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    assert_eq!(lines.len(), 2 * 2 + 2);
    // The state that a killed process leaves: three trials, half a line, and the directory of a fourth trial.
    let torn = format!("{}\n{}", lines[..3].join("\n"), &lines[3][..20]);
    fs::write(place.join("trials.jsonl"), torn).unwrap();
    grid("3x10,4x20", &[]).expect(2, &["--out"]);
    grid("3x10,5x20", &["--resume"]).expect(2, &["--resume", "other rows"]);
    let outcome = grid("3x10,4x20", &["--resume", "--output", "json"]);
    outcome.expect(0, &[]);
    let after = fs::read_to_string(place.join("trials.jsonl")).unwrap();
    let kept: Vec<&str> = after.lines().take(3).collect();
    assert_eq!(kept, lines[..3], "what was measured stays");
    let result = outcome.json();
    assert_eq!(result["damaged"], 0);
    assert_eq!(result["trials"].as_array().unwrap().len(), 6);
    for cell in result["cells"].as_array().unwrap() {
        let steps = cell["steps"].as_array().unwrap();
        assert!(steps.iter().all(|step| step["runs"] == 2), "{cell}");
        assert!(
            steps.iter().all(|step| step["floor_s"].is_number()),
            "{cell}"
        );
    }
    // Nothing is left to measure.
    grid("3x10,4x20", &["--resume"]).expect(0, &[]);
    assert_eq!(
        fs::read_to_string(place.join("trials.jsonl")).unwrap(),
        after
    );
    let nowhere = run(dir.path(), &["study-grid", "--resume"]);
    nowhere.expect(2, &["--resume", "--out"]);
}

#[test]
fn a_grid_that_cannot_be_measured_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for (more, words) in [
        (&["--rows", "g9"][..], &["--rows", "g0 to g8"][..]),
        (&["--scale", "0"], &["--scale 0", "must be above 0"]),
        (
            &["--max-bytes", "1B", "--rows", "g1"],
            &["--max-bytes", "no row is left"],
        ),
        (&["--max-bytes", "much"], &["--max-bytes much"]),
        (&["--verify"], &["verification"]),
        (&["--dry-run"], &["--dry-run"]),
    ] {
        let args = [
            "study-grid",
            "--target",
            "null:",
            "--out",
            "grid",
            "--repetitions",
            "1",
        ];
        let outcome = run(dir.path(), &[&args[..], more].concat());
        outcome.expect(2, words);
        let _ = fs::remove_dir_all(dir.path().join("grid"));
    }
}
