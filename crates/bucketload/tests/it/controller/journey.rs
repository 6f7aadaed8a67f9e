//! A run from submission to report, a refusal, and the state after the controller is killed.

use super::support::Controller;
use crate::common::agents::wait_for;
use crate::common::{bucketload, call, workload};

#[test]
fn a_workload_is_run_and_reported_and_a_killed_controller_leaves_a_readable_run() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    // On other addresses than loopback, the controller needs a token, and TLS unless that is waived.
    let listen = ["controller", "--listen", "0.0.0.0:0", "--data", "data"];
    call(&mut bucketload(dir, &listen)).expect(2, &["needs a token"]);
    std::fs::write(dir.join("token"), "a-token-of-the-console\n").unwrap();
    let plain = [&listen[..], &["--token-file", "token"]].concat();
    call(&mut bucketload(dir, &plain)).expect(2, &["--tls-cert"]);
    let controller = Controller::start(dir, &[]);
    let url = controller.url.clone();
    let submit = |args: &[&str]| {
        let line = [&["submit", "--controller", &url], args].concat();
        call(&mut bucketload(dir, &line))
    };
    // A mistake is reported at once, with its place.
    let wrong = workload(dir, "name = \"x\"\nsede = 3\n");
    submit(&[&wrong.to_string_lossy()]).expect(2, &["workload.toml:2", "sede"]);
    submit(&["get", "--", "--out", "/tmp/x"]).expect(2, &["is not allowed"]);
    let accepted = submit(&[
        "get",
        "--",
        "--ops=50",
        "--objects=10",
        "--size",
        "1KiB",
        "--no-calibration",
    ]);
    accepted.expect(0, &[]);
    let first = accepted
        .stdout
        .trim()
        .strip_prefix("Accepted with ID: ")
        .unwrap()
        .to_owned();
    controller.until(dir, &first, |job| job["ended_ms"] != 0);
    let job = controller.job(dir, &first);
    assert!(
        ["finished", "failed"].contains(&job["state"].as_str().unwrap()),
        "{job}"
    );
    assert!(job["verdict"].is_string(), "{job}");
    let run = dir.join("data/jobs").join(&first).join("run");
    assert!(run.join("report.html").is_file());
    // The controller is killed during a long run.
    let accepted = submit(&[
        "get",
        "--",
        "--duration=300s",
        "--objects=10",
        "--size=1KiB",
        "--no-calibration",
    ]);
    accepted.expect(0, &[]);
    let second = accepted
        .stdout
        .trim()
        .strip_prefix("Accepted with ID: ")
        .unwrap()
        .to_owned();
    let run = dir.join("data/jobs").join(&second).join("run");
    wait_for("two intervals", || {
        let text = std::fs::read_to_string(run.join("intervals.jsonl")).ok()?;
        (text.lines().count() >= 2).then_some(())
    });
    drop(controller);
    // The run ends with its controller, cleans up, and records how it ended.
    wait_for("the end of the run", || {
        let text = std::fs::read_to_string(run.join("run.json")).ok()?;
        let manifest: serde_json::Value = serde_json::from_str(&text).ok()?;
        (manifest["status"] == "interrupted").then_some(())
    });
    call(&mut bucketload(dir, &["report", &run.to_string_lossy()])).expect(0, &[]);
    let top = call(&mut bucketload(dir, &["top", &run.to_string_lossy()]));
    top.expect(0, &[]);
    assert!(top.stdout.contains("interrupted"), "{}", top.stdout);
    let again = Controller::start(dir, &[]);
    again.until(dir, &second, |job| job["state"] == "terminated");
    let job = again.job(dir, &second);
    assert!(
        job["message"].as_str().unwrap().contains("is kept"),
        "{job}"
    );
}

#[test]
fn submitted_targets_are_no_directories_of_the_machine_unless_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let root = dir.join("root");
    std::fs::create_dir_all(root.join("x")).unwrap();
    let inside = format!("file://{}/x", root.display());
    let closed = Controller::start(dir, &[]);
    let toml = workload(
        dir,
        "name = \"x\"\n[target]\nurl = \"file:///etc\"\n[keysets.data]\ncount = 2\nsize = \"1KiB\"\n[phases.run]\nmix = { get = 1 }\nworkers = 1\nops = 1\n",
    );
    let toml = toml.to_string_lossy();
    let refused = ["without --allow-root", "start it with --allow-root DIR"];
    for args in [
        &["get", "--", "--target=file:///etc"][..],
        &["get", "--", "--target=/etc"],
        &["get", "--", "--target=serve:///etc"],
        &["get", "--", "--target", &inside],
        &[&toml],
    ] {
        closed.submit(dir, args).expect(2, &refused);
    }
    let bare = [
        "get",
        "--",
        "--target=s3://b",
        "--endpoint-url=localhost:9000",
    ];
    closed
        .submit(dir, &bare)
        .expect(2, &["write http://localhost:9000"]);
    drop(closed);
    let open = Controller::start(dir, &["--allow-root", "root"]);
    open.submit(dir, &["get", "--", "--target=file:///etc"])
        .expect(2, &["outside the roots"]);
    let small = ["--ops=5", "--objects=2", "--size=1KiB", "--no-calibration"];
    let args = [&["get", "--", "--target", &inside], &small[..]].concat();
    open.submit(dir, &args).expect(0, &[]);
    let job = open.over(dir, "w1");
    assert!(
        ["finished", "failed"].contains(&job["state"].as_str().unwrap()),
        "{job}"
    );
    assert!(job["figures"]["ops_per_s"].is_array(), "{job}");
}
