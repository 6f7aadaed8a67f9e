//! Targets named in a workload file, and flags that override them.

use crate::common::{Serve, bucketload, call, workload};

const WORKLOAD: &str = r#"
name = "own"

[target]
TARGET

[keysets.data]
count = 4
size = "1KiB"
prepare = false

[phases.run]
ops = 8
workers = 1
mix.put = { keys = "sequential" }
"#;

#[test]
fn a_workload_may_name_the_endpoint_of_its_target() {
    let dir = tempfile::tempdir().unwrap();
    let server = Serve::start(&["--store", "memory"]);
    let url = server.url();
    let target = format!("url = \"s3://of-its-own/p\"\nendpoint-url = \"{url}\"");
    let file = workload(dir.path(), &WORKLOAD.replace("TARGET", &target));
    let file = file.to_string_lossy().into_owned();
    let run = |more: &[&str]| {
        let base = ["run", file.as_str(), "--create-bucket", "--no-calibration"];
        call(&mut bucketload(dir.path(), &[&base, more].concat()))
    };
    let outcome = run(&["--output", "json"]);
    outcome.expect(0, &[]);
    let at = format!("s3://of-its-own/p at {url}");
    assert_eq!(outcome.json()["run"]["target"], at.as_str());
    // Flags override it: single settings, or the whole target.
    run(&["--endpoint-url", "http://127.0.0.1:1"]).expect(3, &["127.0.0.1:1"]);
    run(&["--target", "mem:"]).expect(0, &[]);
    let shown = call(&mut bucketload(dir.path(), &["config", "show", &file]));
    shown.expect(0, &[]);
    let line = shown.stdout.lines().find(|line| line.contains(&url));
    assert!(
        line.is_some_and(|line| line.contains("target.endpoint-url")),
        "{}",
        shown.stdout
    );
}

#[test]
fn an_endpoint_without_a_bucket_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let target = "endpoint-url = \"http://127.0.0.1:1\"";
    let file = workload(dir.path(), &WORKLOAD.replace("TARGET", target));
    let args = ["run", &*file.to_string_lossy()];
    call(&mut bucketload(dir.path(), &args)).expect(2, &["target.endpoint-url", "add target.url"]);
}
