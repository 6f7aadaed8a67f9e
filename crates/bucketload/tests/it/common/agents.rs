//! Agents as separate processes, and runs with a deadline.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bucketload_core::agent::AgentsFile;

use super::{Outcome, bucketload};

/// Deadline of every wait, long enough that only a hang reaches it.
pub const DEADLINE: Duration = Duration::from_secs(120);

#[track_caller]
pub fn wait_for<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(value) = ready() {
            return value;
        }
        assert!(begun.elapsed() < DEADLINE, "waited for {what} in vain");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// An agent that waits for runs; killed when dropped.
pub struct Agent {
    pub child: Child,
    pub address: String,
    errors: PathBuf,
}

impl Agent {
    pub fn start(dir: &Path, name: &str, token: Option<&str>) -> Self {
        let errors = dir.join(format!("{name}.err"));
        let mut command = bucketload(dir, &["agent", "--listen", "127.0.0.1:0", "--announce"]);
        command
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&errors).unwrap());
        // The agent must get everything about the target from the coordinator.
        for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"] {
            command.env_remove(name);
        }
        if let Some(token) = token {
            command.env("BUCKETLOAD_AGENT_TOKEN", token);
        }
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let announced: serde_json::Value = serde_json::from_str(&line).expect("an announcement");
        Self {
            child,
            address: announced["listening"].as_str().unwrap().to_owned(),
            errors,
        }
    }

    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.errors).unwrap_or_default()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn agents_of(out: &Path) -> Option<AgentsFile> {
    let text = std::fs::read(out.join("agents.json")).ok()?;
    serde_json::from_slice(&text).ok()
}

/// A run in the background.
pub fn background(command: &mut Command) -> Child {
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[track_caller]
pub fn end_of(child: Child) -> Outcome {
    let waiter = std::thread::spawn(move || child.wait_with_output().unwrap());
    wait_for("the end of the run", || waiter.is_finished().then_some(()));
    let out = waiter.join().unwrap();
    Outcome {
        code: out.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&out.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&out.stderr).into_owned(),
    }
}
