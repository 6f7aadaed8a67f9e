//! A queue whose workloads run on agents.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use super::support::Controller;
use crate::common::agents::wait_for;
use crate::common::bucketload;

/// An agent; killed when dropped.
struct Agent(Child);

impl Agent {
    /// Starts an agent. Returns it with its address.
    fn start(dir: &Path) -> (Self, String) {
        let args = [
            "agent",
            "--listen",
            "127.0.0.1:0",
            "--announce",
            "--token-file",
            "token",
        ];
        let mut child = bucketload(dir, &args)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let announced: serde_json::Value = serde_json::from_str(&line).unwrap();
        let address = announced["listening"].as_str().unwrap().to_owned();
        (Self(child), address)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn workloads_run_on_the_controllers_agents() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::write(dir.join("token"), "a-token-of-the-agents-01\n").unwrap();
    let (first, a) = Agent::start(dir);
    let (_second, b) = Agent::start(dir);
    let both = format!("{a},{b}");
    let flags = ["--agents", &both, "--agent-token-file", "token"];
    let controller = Controller::start(dir, &flags);
    let standings =
        || -> serde_json::Value { serde_json::from_str(&controller.get("/api/agents").1).unwrap() };
    let until = |done: &dyn Fn(&serde_json::Value) -> bool| {
        wait_for("the agents' health", || {
            Some(standings()).filter(|now| done(now))
        })
    };
    let ready = until(&|now| now[0]["health"] == "ready" && now[1]["health"] == "ready");
    for agent in ready.as_array().unwrap() {
        assert_eq!(agent["version"], env!("CARGO_PKG_VERSION"));
        // All processes use the same clock.
        let offset = agent["clock_offset_ns"].as_i64().unwrap();
        assert!(
            offset.unsigned_abs() <= agent["clock_bound_ns"].as_u64().unwrap(),
            "{agent}"
        );
    }
    let (_, drivers) = controller.get("/controller/cli/index.action");
    assert!(
        drivers.starts_with(&format!(
            "Drivers:\ndriver1\t{a}\ndriver2\t{b}\nTotal: 2 drivers\n"
        )),
        "{drivers}"
    );
    let options = [
        "get",
        "--",
        "--ops=60",
        "--objects=10",
        "--size=1KiB",
        "--no-calibration",
    ];
    controller.submit(dir, &options).expect(0, &[]);
    let job = controller.over(dir, "w1");
    assert!(
        ["finished", "failed"].contains(&job["state"].as_str().unwrap()),
        "{job}"
    );
    let (_, page) = controller.get("/agents");
    assert_eq!(page.matches("> finished</span>").count(), 2, "{page}");
    let (status, told) = controller.get("/jobs/w1/files/agents.json");
    assert_eq!(status, 200, "{told}");
    // COSBench workloads run on agents too; the archive has a file for each driver.
    controller
        .submit(dir, &[&super::xml::good(dir)])
        .expect(0, &[]);
    let job = controller.over(dir, "w2");
    assert_eq!(job["state"], "finished", "{job}");
    for name in ["driver1.csv", "driver2.csv", "w2-demo%20one.csv"] {
        let path = format!("/jobs/w2/files/{name}");
        assert_eq!(controller.get(&path).0, 200, "{path}");
    }
    // One agent ends: the console shows which, and which workload needs it.
    drop(first);
    let gone = until(&|now| now[0]["health"] == "absent");
    assert!(
        gone[0]["reason"].as_str().unwrap().contains("connect"),
        "{gone}"
    );
    assert_eq!(gone[1]["health"], "ready");
}
