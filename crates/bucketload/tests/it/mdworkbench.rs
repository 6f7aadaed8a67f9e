//! MD-Workbench from the user's view: the working set keeps its size, and quantiles match the operation log.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::common::{Outcome, Serve, bucketload, call};
use bucketload_results::oplog::{Column, read};

fn run(dir: &Path, args: &str) -> Outcome {
    let words: Vec<&str> = std::iter::once("md-workbench")
        .chain(args.split_whitespace())
        .collect();
    call(&mut bucketload(dir, &words))
}

/// Sorted times of the successful operations in seconds, by phase and class.
fn timings(dir: &Path) -> BTreeMap<(String, String), Vec<f32>> {
    let mut all: BTreeMap<(String, String), Vec<f32>> = BTreeMap::new();
    let columns = ["phase", "class", "taken_ns", "done_ns", "outcome"];
    read(dir, &columns, |rows| {
        let text = |at: usize, row: usize| match &rows.columns[at] {
            Column::Texts(texts) => texts[row].clone().unwrap_or_default(),
            Column::Ints(_) => panic!("column {at}"),
        };
        let int = |at: usize, row: usize| match &rows.columns[at] {
            Column::Ints(ints) => ints[row].unwrap_or(0),
            Column::Texts(_) => panic!("column {at}"),
        };
        for row in 0..rows.len {
            assert_eq!(text(4, row), "ok");
            let seconds = (int(3, row) - int(2, row)) as f64 / 1e9;
            all.entry((text(0, row), text(1, row)))
                .or_default()
                .push(seconds as f32);
        }
    })
    .unwrap();
    all.values_mut()
        .for_each(|values| values.sort_by(f32::total_cmp));
    all
}

/// The values in the parentheses after `name`.
fn vector(line: &str, name: &str) -> Vec<f64> {
    let rest = line.split(&format!(" {name}(")).nth(1).unwrap();
    let inside = rest.split(')').next().unwrap();
    inside
        .split(", ")
        .map(|value| value.trim_end_matches('s').parse().unwrap())
        .collect()
}

#[test]
fn the_working_set_keeps_its_size_and_quantiles_match_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let outcome = run(
        dir.path(),
        "--ranks 3 -D 2 -P 20 -I 15 -R 2 -X --target mem: --op-log csv.zst --out out -L lat --process-reports",
    );
    outcome.expect(0, &[]);
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert!(
        lines[1].starts_with("MD-Workbench total objects: 300 workingset size: 0.446 MiB"),
        "{}",
        lines[1]
    );
    let of = |start: &str| -> Vec<&str> {
        lines
            .iter()
            .copied()
            .filter(|line| line.starts_with(start))
            .collect()
    };
    // 3 ranks, 2 sets, 20 objects: as many as before, although 2 x 15 of each set were replaced.
    assert_eq!(of("audit"), ["audit objects:120 expected:120"]);
    let benchmarks = of("benchmark process");
    assert_eq!(benchmarks.len(), 2);
    let timings = timings(&dir.path().join("out"));
    let classes = [
        ("read", "get"),
        ("stat", "head"),
        ("create", "put"),
        ("delete", "delete"),
    ];
    for (iteration, line) in benchmarks.iter().enumerate() {
        assert!(
            line.contains(" objects:90 ") && line.contains("(0 errs)"),
            "{line}"
        );
        for (name, class) in classes {
            let phase = format!("benchmark-{iteration}-0.0000");
            let values = &timings[&(phase, class.to_owned())];
            assert_eq!(values.len(), 90);
            let at = |q: f64| f64::from(values[(q * 89.0 + 0.49).round() as usize]);
            let median = (f64::from(values[44]) + f64::from(values[45])) / 2.0;
            let wanted = [
                at(0.0),
                at(0.25),
                median,
                at(0.75),
                at(0.9),
                at(0.99),
                at(1.0),
            ];
            for (got, wanted) in vector(line, name).into_iter().zip(wanted) {
                assert!(
                    (got - wanted).abs() <= 1e-4 * wanted,
                    "{name}: {got} {wanted}"
                );
            }
        }
    }
    assert!(
        of("precreate process")[0].contains("objects:120 "),
        "{lines:?}"
    );
    assert!(of("cleanup process")[0].contains("objects:120 "));
    assert_eq!(of("2: benchmark process").len(), 2);
    // Nothing is left for the run's clean-up.
    let events = fs::read_to_string(dir.path().join("out/events.jsonl")).unwrap();
    assert!(events.contains("\"ranks\""));
    let latencies = fs::read_to_string(dir.path().join("lat-0.00-1-read.csv")).unwrap();
    let rows: Vec<&str> = latencies.lines().collect();
    assert_eq!((rows[0], rows.len()), ("time,runtime", 31));
    assert!(dir.path().join("lat-0.00-2-cleanup.csv").is_file());
    let page = fs::read_to_string(dir.path().join("out/report.html")).unwrap();
    assert!(page.contains("Latency density"));
}

#[test]
fn parts_are_connected_by_the_run_info_file() {
    let (dir, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let posix = format!("posix:{}", store.path().display());
    let server = Serve::start(&["--store", &posix]);
    let target = format!(
        "--ranks 2 -D 1 -P 10 -I 4 -R 1 --target s3://bench --create-bucket --endpoint-url {}",
        server.url()
    );
    run(dir.path(), &format!("-2 {target}")).expect(2, &["md-workbench.status", "-1"]);
    run(dir.path(), &format!("-1 --out one {target}")).expect(0, &[]);
    let status = || fs::read_to_string(dir.path().join("md-workbench.status")).unwrap();
    assert!(status().starts_with("pos: 0\nrun: "));
    for (turn, out) in ["two", "three"].iter().enumerate() {
        let outcome = run(dir.path(), &format!("-2 --out {out} {target}"));
        outcome.expect(0, &[]);
        assert!(
            outcome.stdout.contains("audit objects:20 expected:20"),
            "{}",
            outcome.stdout
        );
        assert!(status().starts_with(&format!("pos: {}\n", 4 * (turn + 1))));
    }
    let reading = run(dir.path(), &format!("-2 --read-only --out four {target}"));
    reading.expect(0, &[]);
    assert!(status().starts_with("pos: 8\n"));
    let outcome = run(dir.path(), &format!("-3 --out five {target}"));
    outcome.expect(0, &[]);
    assert!(outcome.stdout.contains("objects:20 "), "{}", outcome.stdout);
    assert!(
        !store.path().join("bench").exists(),
        "the bucket was made by the run"
    );
}

#[test]
fn waiting_and_stonewall() {
    let dir = tempfile::tempdir().unwrap();
    let outcome = run(
        dir.path(),
        "--ranks 2 -D 1 -P 10 -I 1000000000 -R 1 -w 1 -W --waiting-time 0.5 --target null: --op-log csv.zst --out out",
    );
    outcome.expect(0, &["-I is larger than -P"]);
    let line = outcome
        .stdout
        .lines()
        .find(|l| l.starts_with("benchmark"))
        .unwrap();
    assert!(
        line.contains(" waiting_factor:0.50 ") && line.contains(" stonewall-iter:"),
        "{line}"
    );
    assert!(
        outcome.stdout.contains("stonewall wear out 1.0s ("),
        "{}",
        outcome.stdout
    );
    run(dir.path(), "-w 1 --target null:").expect(2, &["--stonewall-wear-out"]);
    run(dir.path(), "-1 --target mem:").expect(2, &["--target"]);
}

/// As the original does.
#[test]
fn a_missing_directory_is_created_by_precreation_alone() {
    let dir = tempfile::tempdir().unwrap();
    let target = format!(
        "--target file://{}/a/b --ranks 2 -D 1 -P 3 -I 2",
        dir.path().display()
    );
    run(dir.path(), &format!("{target} -2 --start-item 0")).expect(2, &[]);
    assert!(!dir.path().join("a").exists());
    run(dir.path(), &target).expect(0, &[]);
    assert!(dir.path().join("a/b").is_dir());
}

#[test]
fn ranks_on_files_make_plain_calls_in_a_directory_per_set() {
    let (dir, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let shape = format!(
        "--ranks 3 -D 2 -P 5 -I 4 -R 1 --target file://{}",
        data.path().display()
    );
    run(dir.path(), &format!("-1 --out one {shape}")).expect(0, &[]);
    let manifest = fs::read(dir.path().join("one/run.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(manifest["client"]["threads"], 3);
    let engine = serde_json::json!({ "name": "engine", "value": "sync", "source": "default" });
    let settings = manifest["settings"].as_array().unwrap();
    assert!(settings.contains(&engine), "{settings:?}");
    let below = |path: &Path| -> Vec<std::path::PathBuf> {
        let entries = fs::read_dir(path).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    let status = fs::read_to_string(dir.path().join("md-workbench.status")).unwrap();
    let run_id = status.split("run: ").nth(1).unwrap().trim().to_owned();
    let sets = data
        .path()
        .join(format!("bucketload/bucketload-{run_id}/md"));
    assert_eq!(below(&sets).len(), 6, "{}", sets.display());
    assert!(sets.join("2_1/file-4").is_file());
    let outcome = run(dir.path(), &format!("-2 --out two {shape}"));
    outcome.expect(0, &[]);
    let audit = "audit objects:30 expected:30";
    assert!(outcome.stdout.contains(audit), "{}", outcome.stdout);
    let outcome = run(dir.path(), &format!("-3 --out three {shape}"));
    outcome.expect(0, &[]);
    assert!(outcome.stdout.contains("objects:30 "), "{}", outcome.stdout);
    assert!(!sets.exists());
}
