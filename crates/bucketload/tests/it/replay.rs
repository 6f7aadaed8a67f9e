//! Replays of traces and fits of models from the user's view.

use std::fmt::Write as _;
use std::path::Path;

use crate::common::{bucketload, call};

/// A trace of two seconds in which objects are written, read and deleted, and some existed before.
fn trace(dir: &Path) {
    let mut text = String::new();
    for i in 0..200u64 {
        let ms = 10 * i;
        let _ = match i % 5 {
            0 => writeln!(text, "{ms} REST.PUT.OBJECT {i:016x} 1000"),
            1 => writeln!(text, "{ms} REST.GET.OBJECT {:016x} 1000 0 999", i - 1),
            2 => writeln!(
                text,
                "{ms} REST.GET.OBJECT {:016x} 5000 1000 1999",
                i % 7 + 900
            ),
            3 => writeln!(text, "{ms} REST.HEAD.OBJECT {:016x} 5000", i % 7 + 900),
            _ => writeln!(text, "{ms} REST.DELETE.OBJECT {:016x}", i - 4),
        };
    }
    text += "oops\n";
    std::fs::write(dir.join("cos.txt"), text).unwrap();
}

#[test]
fn a_trace_is_described_without_being_replayed() {
    let dir = tempfile::tempdir().unwrap();
    trace(dir.path());
    let outcome = call(&mut bucketload(
        dir.path(),
        &["replay", "cos.txt", "--dry-run"],
    ));
    // One unreadable line out of 201 exceeds the limit of 0.1 %.
    outcome.expect(
        2,
        &["1 bad-timestamp", "--lenient", "bucketload-unparsable.txt"],
    );
    let side = std::fs::read_to_string(dir.path().join("bucketload-unparsable.txt")).unwrap();
    assert!(side.contains("cos.txt:201: bad-timestamp: oops"), "{side}");
    let args = [
        "replay",
        "cos.txt",
        "--dry-run",
        "--lenient",
        "--output",
        "json",
    ];
    let outcome = call(&mut bucketload(dir.path(), &args));
    outcome.expect(0, &[]);
    let json = outcome.json();
    assert_eq!(json["trace"]["requests"], 200);
    assert_eq!(json["trace"]["preload_objects"], 7);
    assert_eq!(json["trace"]["files"][0]["format"], "ibm-cos");
    assert!(!dir.path().join("bucketload-runs").exists());
}

#[test]
fn a_trace_is_replayed_in_two_laps_without_a_missing_object() {
    let dir = tempfile::tempdir().unwrap();
    trace(dir.path());
    let args = [
        "replay",
        "cos.txt",
        "--lenient",
        "--speed",
        "2",
        "--laps",
        "2",
        "--out",
        "out",
        "--output",
        "json",
    ];
    let outcome = call(&mut bucketload(dir.path(), &args));
    outcome.expect(0, &[]);
    let result = outcome.json();
    let phases = result["phases"].as_array().unwrap();
    let phase = phases
        .iter()
        .find(|phase| phase["name"] == "replay")
        .unwrap();
    assert_eq!(phase["totals"]["ok"], 400, "{phase}");
    assert_eq!(phase["totals"]["failed"], 0, "{phase}");
    assert_eq!(result["run"]["trace"]["summary"]["requests"], 200);
    let report = std::fs::read_to_string(dir.path().join("out/report.html")).unwrap();
    assert!(report.contains("must exist") && report.contains("ibm-cos"));
    // A prepared trace is replayed unchanged, and cannot be prepared again.
    let args = [
        "replay",
        "cos.txt",
        "--lenient",
        "--dry-run",
        "--save",
        "kept",
    ];
    call(&mut bucketload(dir.path(), &args)).expect(0, &[]);
    let args = ["replay", "kept", "--target", "null:", "--asap", "4"];
    let outcome = call(&mut bucketload(dir.path(), &args));
    outcome.expect(0, &[]);
    assert!(outcome.stdout.contains("replay-kept") && outcome.stdout.contains("must exist"));
    let args = ["replay", "kept", "--dry-run", "--sample", "50%"];
    call(&mut bucketload(dir.path(), &args)).expect(2, &["prepared trace"]);
}

#[test]
fn messages_about_mistakes_name_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    trace(dir.path());
    std::fs::write(dir.path().join("notes.txt"), "nothing\nof the kind\n").unwrap();
    for (args, words) in [
        (
            &["notes.txt"][..],
            &["no format matches", "--format", "cloudtrail"][..],
        ),
        (&["absent.log"], &["absent.log"]),
        (&["cos.txt", "--lenient", "--laps", "auto"], &["--duration"]),
        (&["cos.txt", "--format", "csv"], &["--map"]),
        (
            &["cos.txt", "--lenient", "--map-bucket", "x=y"],
            &["no bucket \"x\""],
        ),
        (
            &["cos.txt", "--lenient", "--size-factor", "1000000"],
            &["--sample", "512"],
        ),
        (
            &["cos.txt", "--lenient", "--only-ops", "LIST"],
            &["filtered-op"],
        ),
    ] {
        let args: Vec<&str> = ["replay"].iter().chain(args).copied().collect();
        call(&mut bucketload(dir.path(), &args)).expect(2, words);
    }
}

#[test]
fn a_model_of_a_trace_runs_and_reproduces_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut text = "ts_ns,op,bucket,key,size,off,len,client,status\n".to_owned();
    for i in 0..3000u64 {
        let hash = bucketload_core::generate::rng::mix64(i);
        let (op, key, size) = match hash % 10 {
            0..3 => ("PUT", format!("n{i}"), 4096),
            _ => ("GET", format!("o{}", (hash >> 8) % 100), 65_536),
        };
        let _ = writeln!(text, "{},{op},b,{key},{size},0,-1,c,200", i * 1_000_000);
    }
    std::fs::write(dir.path().join("t.csv"), &text).unwrap();
    let args = [
        "model",
        "t.csv",
        "--write",
        "fitted.toml",
        "--output",
        "json",
    ];
    let outcome = call(&mut bucketload(dir.path(), &args));
    outcome.expect(0, &[]);
    let model = outcome.json();
    assert_eq!(model["arrivals"]["law"], "constant(1000/s)", "{model}");
    assert_eq!(model["reads"]["law"], "uniform", "{model}");
    let share = |json: &serde_json::Value, name: &str| -> f64 {
        let rows = json["mix"].as_array().unwrap();
        rows.iter().find(|row| row[0] == name).unwrap()[1]
            .as_f64()
            .unwrap()
    };
    assert!((share(&model, "get") - 0.7).abs() < 0.03);
    let args = [
        "run",
        "fitted.toml",
        "--target",
        "null:",
        "--no-calibration",
        "--out",
        "out",
        "--output",
        "json",
    ];
    let outcome = call(&mut bucketload(dir.path(), &args));
    outcome.expect(0, &[]);
    let result = outcome.json();
    let phases = result["phases"].as_array().unwrap();
    let phase = phases.iter().find(|phase| phase["name"] == "run").unwrap();
    let classes = phase["classes"].as_array().unwrap();
    let n = |name: &str| -> f64 {
        let class = classes.iter().find(|class| class["class"] == name).unwrap();
        class["ok"].as_f64().unwrap()
    };
    // With 3000 operations, four standard errors of a share are 0.034.
    let share = n("get") / (n("get") + n("put"));
    assert!((share - 0.7).abs() < 0.04, "{share}");
    assert!((n("get") + n("put") - 3000.0).abs() <= 1.0);
}
