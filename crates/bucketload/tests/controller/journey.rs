//! The controller with real processes: a run from submission to report, a refusal, and what is left when the
//! controller is killed.

mod common;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use common::{bucketload, call, workload};

/// Longest wait; the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(100);

struct Controller {
    child: Child,
    url: String,
}

impl Controller {
    fn start(dir: &Path) -> Self {
        let args = ["controller", "--listen", "127.0.0.1:0", "--data", "data"];
        let mut child = bucketload(dir, &args)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        let url = line
            .split_whitespace()
            .find(|word| word.starts_with("http://"))
            .unwrap_or_else(|| panic!("{line}"));
        let url = url.trim_end_matches('/').to_owned();
        // Nobody reads on; what it prints must not end it.
        std::thread::spawn(move || lines.lines().for_each(drop));
        Self { child, url }
    }

    /// The state of a job, as `info --json` tells it.
    fn job(&self, dir: &Path, id: &str) -> serde_json::Value {
        let info = call(&mut bucketload(
            dir,
            &["info", id, "--json", "--controller", &self.url],
        ));
        info.expect(0, &[]);
        info.json()[0].clone()
    }

    fn until(&self, dir: &Path, id: &str, done: impl Fn(&serde_json::Value) -> bool) {
        let begin = Instant::now();
        loop {
            let job = self.job(dir, id);
            if done(&job) {
                return;
            }
            assert!(begin.elapsed() < PATIENCE, "{job}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_workload_goes_from_submission_to_report_and_a_killed_controller_leaves_a_readable_run() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let controller = Controller::start(dir);
    let url = controller.url.clone();
    let submit = |args: &[&str]| {
        let line = [&["submit", "--controller", &url], args].concat();
        call(&mut bucketload(dir, &line))
    };
    // A mistake is told at once, with its place.
    let wrong = workload(dir, "name = \"x\"\nsede = 3\n");
    submit(&[&wrong.to_string_lossy()]).expect(2, &["workload.toml:2", "sede"]);
    submit(&["get", "--", "--out", "/tmp/x"]).expect(2, &["cannot be asked for"]);
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
    // A long one, and the controller is killed.
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
    let begin = Instant::now();
    while std::fs::read_to_string(run.join("intervals.jsonl"))
        .unwrap_or_default()
        .lines()
        .count()
        < 2
    {
        assert!(begin.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(200));
    }
    drop(controller);
    // The run ends with its controller, cleans up and says how it ended.
    let begin = Instant::now();
    let status = || {
        let text = std::fs::read_to_string(run.join("run.json")).unwrap_or_default();
        let manifest: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        manifest["status"].as_str().unwrap_or_default().to_owned()
    };
    while status() != "interrupted" {
        assert!(begin.elapsed() < PATIENCE, "{}", status());
        std::thread::sleep(Duration::from_millis(200));
    }
    call(&mut bucketload(dir, &["report", &run.to_string_lossy()])).expect(0, &[]);
    let top = call(&mut bucketload(dir, &["top", &run.to_string_lossy()]));
    top.expect(0, &[]);
    assert!(top.stdout.contains("interrupted"), "{}", top.stdout);
    let again = Controller::start(dir);
    again.until(dir, &second, |job| job["state"] == "terminated");
    let job = again.job(dir, &second);
    assert!(
        job["message"].as_str().unwrap().contains("is kept"),
        "{job}"
    );
}
