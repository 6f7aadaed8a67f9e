//! Calls of the program, and embedded servers as child processes.
#![allow(unreachable_pub, reason = "a program has nobody to reach it from")]

pub mod agents;
pub mod evidence;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use bucketload_core::sink::Event;
use bucketload_results::oplog;
use bucketload_results::rundir::RunDir;

pub const ACCESS_KEY: &str = "testaccesskey0001";
pub const SECRET_KEY: &str = "testsecretkey00000000000000000000001";

/// A call of the program with the credentials of [`Serve`], and nothing else in the environment that could change its
/// behaviour.
pub fn bucketload(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bucketload"));
    command
        .args(args)
        .current_dir(dir)
        .env_clear()
        .env("HOME", dir)
        // No test meets what another one left.
        .env("XDG_CACHE_HOME", "/dev/null/cache")
        .env("PATH", "/usr/bin:/bin")
        .env("AWS_ACCESS_KEY_ID", ACCESS_KEY)
        .env("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
        .env("AWS_REGION", "us-east-1")
        .stdin(Stdio::null());
    command
}

pub struct Outcome {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    /// Panics unless the exit code is `code` and standard error contains each of `words`.
    #[track_caller]
    pub fn expect(&self, code: i32, words: &[&str]) {
        let all = format!(
            "exit code {}\n--- stdout\n{}\n--- stderr\n{}",
            self.code, self.stdout, self.stderr
        );
        assert_eq!(self.code, code, "{all}");
        for word in words {
            assert!(
                self.stderr.contains(word),
                "the message does not say {word:?}\n{all}"
            );
        }
    }

    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|e| panic!("{e}\n{}\n--- stderr\n{}", self.stdout, self.stderr))
    }
}

/// Runs to the end.
pub fn call(command: &mut Command) -> Outcome {
    let out = command.output().expect("the program runs");
    Outcome {
        code: out.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&out.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&out.stderr).into_owned(),
    }
}

/// `bucketload serve` as a child process; ended when dropped.
pub struct Serve {
    child: Child,
    pub address: String,
}

impl Serve {
    pub fn start(args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_bucketload"))
            .args([
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--announce",
                "--exit-with-stdin",
            ])
            .args(args)
            .env("BUCKETLOAD_SERVE_ACCESS_KEY", ACCESS_KEY)
            .env("BUCKETLOAD_SERVE_SECRET_KEY", SECRET_KEY)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let announced: serde_json::Value = serde_json::from_str(&line).expect("an announcement");
        let address = announced["listening"].as_str().unwrap().to_owned();
        Self { child, address }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes a workload file.
pub fn workload(dir: &Path, text: &str) -> PathBuf {
    let path = dir.join("workload.toml");
    std::fs::File::create(&path)
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    path
}

/// An operation without its time and worker.
pub type What = (
    String,
    String,
    String,
    i64,
    String,
    Option<i64>,
    Option<i64>,
);

/// Every operation of a run directory, with its due time from the start of its phase.
pub fn operations(out: &Path) -> Vec<(What, i64)> {
    let run = RunDir::open(out).unwrap();
    let run_id = run.manifest().run_id.clone();
    let phases: Vec<String> = run
        .manifest()
        .plan
        .phases
        .iter()
        .map(|p| p.name.clone())
        .collect();
    let mut starts = BTreeMap::new();
    for event in run.events().unwrap().0 {
        if let Event::PhaseStarted { phase, at_ns } = event {
            starts.insert(phases[usize::from(phase)].clone(), at_ns as i64);
        }
    }
    let names = [
        "phase",
        "work",
        "class",
        "seq",
        "key",
        "range_offset",
        "size",
        "due_ns",
    ];
    let mut all = Vec::new();
    oplog::read(out, &names, |rows| {
        let columns = &rows.columns;
        for i in 0..rows.len {
            let text = |c: usize| columns[c].text(i).unwrap_or_default().to_owned();
            let int = |c: usize| columns[c].int(i);
            let what = (
                text(0),
                text(1),
                text(2),
                int(3).unwrap(),
                text(4).replace(&run_id, "RUN"),
                int(5),
                int(6),
            );
            all.push((what, int(7).unwrap() - starts[&text(0)]));
        }
    })
    .unwrap();
    all.sort();
    all
}
