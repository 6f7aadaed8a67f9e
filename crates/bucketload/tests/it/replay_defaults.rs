//! Replays with only a trace and a target, as users start.

use std::path::Path;

use crate::common::{bucketload, call};

/// The samples of formats, which are next to their importers.
const SAMPLES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../bucketload-trace/tests/data"
);

/// Replays `sample`. The result must have the client's ceiling, and say how far the load is below it.
fn judged(sample: &str, format: &str, target: Option<&str>) {
    let dir = tempfile::tempdir().unwrap();
    let file = Path::new(SAMPLES).join(sample);
    let mut args = vec!["replay", file.to_str().unwrap()];
    args.extend(target.iter().flat_map(|target| ["--target", target]));
    args.extend(["--output", "json", "--out", "out"]);
    let outcome = call(&mut bucketload(dir.path(), &args));
    outcome.expect(0, &[]);
    let result = outcome.json();
    let trace = &result["run"]["trace"]["summary"];
    assert_eq!(trace["files"][0]["format"], format);
    let calibration = &result["calibration"];
    let figure = |name: &str| calibration[name].as_f64().unwrap_or(0.0);
    // All samples are shorter than a day has busy seconds: one request is the least, all are the most.
    let requests = trace["requests"].as_f64().unwrap();
    let offered = figure("offered_ops_per_s");
    assert!((1.0..=requests).contains(&offered), "{calibration}");
    assert!(figure("null_ops_per_s") > 1_000.0, "{calibration}");
    assert!(figure("null_p99_ns") > 0.0, "{calibration}");
    let verdict = &result["verdict"];
    let headroom = verdict["client"]["headroom"].as_f64();
    assert!(headroom.is_some_and(|times| times > 1.5), "{verdict}");
    let notes = verdict["notes"].to_string();
    assert!(!notes.contains("V5"), "{notes}");
}

#[test]
fn on_the_embedded_server() {
    judged("native.csv", "native", None);
    judged("ibm-cos.txt", "ibm-cos", None);
    judged("s3-access.log", "s3-access", None);
}

#[test]
fn on_the_null_target() {
    judged("rgw.json", "rgw", Some("null:"));
    judged("twitter.csv", "twitter", Some("null:"));
    judged("op-log.csv", "op-log", Some("null:"));
}
