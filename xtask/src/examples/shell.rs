//! Shell commands: run to their end within a deadline, or started as servers and ended later.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::sh::Result;

/// The program's messages once it serves.
const SERVING: [&str; 4] = ["serving S3 at", "agent at", "console:", "gateway to"];

/// Time limit for a server to start, and to end.
const SOON: Duration = Duration::from_secs(20);

/// Directory and environment of commands.
pub(super) struct Shell<'a> {
    /// Directory of the page.
    pub(super) dir: &'a Path,
    /// Variables; `PATH` begins with the program's directory.
    pub(super) env: &'a [(String, String)],
}

/// How a command ended.
pub(super) struct Ended {
    /// Exit code; `None` when it was killed at its deadline or by a signal.
    pub(super) code: Option<i32>,
    /// Standard output; standard error follows.
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Shell<'_> {
    /// Starts the command in its own process group, with its outputs in files.
    fn spawn(&self, line: &str, name: &str) -> Result<Child> {
        let at = |e: std::io::Error| format!("{line}: {e}");
        let log = |end: &str| File::create(self.dir.join(format!("{name}.{end}"))).map_err(at);
        Command::new("bash")
            .args(["-o", "pipefail", "-c", line])
            .current_dir(self.dir)
            .env_remove("BUCKETLOAD_TOKEN")
            // `init` saves targets there, not among the user's.
            .env("XDG_CONFIG_HOME", self.dir)
            .env("XDG_CACHE_HOME", self.dir.join(".cache"))
            .envs(self.env.iter().map(|(k, v)| (k, v)))
            .stdin(Stdio::null())
            .stdout(log("stdout")?)
            .stderr(log("stderr")?)
            .process_group(0)
            .spawn()
            .map_err(at)
    }

    /// Runs the command to its end, or kills it at the deadline.
    pub(super) fn run(&self, line: &str, deadline: Duration) -> Result<Ended> {
        let mut child = self.spawn(line, ".example")?;
        let code = wait(&mut child, deadline)?;
        if code.is_none() {
            signal(&child, Signal::KILL);
            let _ = child.wait();
        }
        let read = |end: &str| {
            let bytes = std::fs::read(self.dir.join(format!(".example.{end}")));
            String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
        };
        Ok(Ended {
            code,
            stdout: read("stdout"),
            stderr: read("stderr"),
        })
    }

    /// Starts a server and waits until it says that it serves. `name` distinguishes its output files.
    pub(super) fn serve(&self, line: &str, name: &str) -> Result<Served> {
        let name = format!(".{name}");
        let child = self.spawn(line, &name)?;
        let mut served = Served {
            child,
            line: line.to_owned(),
            said: String::new(),
        };
        let log = self.dir.join(format!("{name}.stderr"));
        let end = Instant::now() + SOON;
        loop {
            served.said = std::fs::read_to_string(&log).unwrap_or_default();
            if SERVING.iter().any(|word| served.said.contains(word)) || line.contains(" top") {
                return Ok(served);
            }
            let ended = served.child.try_wait().map_err(|e| e.to_string())?;
            if ended.is_some() || Instant::now() > end {
                return Err(format!("{line}: does not serve\n{}", served.said));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A running server; killed when dropped.
pub(super) struct Served {
    child: Child,
    line: String,
    said: String,
}

impl Served {
    /// The `HOST:PORT` that the server printed.
    pub(super) fn address(&self) -> Result<&str> {
        let start = self
            .said
            .find("127.0.0.")
            .ok_or("the server printed no address")?;
        let rest = &self.said[start..];
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ':');
        Ok(&rest[..end.unwrap_or(rest.len())])
    }

    /// Ends the server with SIGTERM.
    ///
    /// # Errors
    /// The server ended before, did not end, or ended with a failure.
    pub(super) fn end(mut self) -> Result {
        let line = self.line.clone();
        if let Some(status) = self.child.try_wait().map_err(|e| e.to_string())? {
            return Err(format!("{line}: ended early: {status}"));
        }
        signal(&self.child, Signal::TERM);
        match wait(&mut self.child, SOON)? {
            Some(0 | 130 | 143) => Ok(()),
            Some(code) => Err(format!("{line}: exit code {code} on SIGTERM")),
            None => Err(format!("{line}: ignores SIGTERM")),
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        signal(&self.child, Signal::KILL);
        let _ = self.child.wait();
    }
}

/// Sends a signal to the process group of a child that has not been waited for.
fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        let _ = kill_process_group(pid, signal);
    }
}

/// The exit code of a child, or 128 plus the signal's number as in a shell; `None` if it does not end in time.
fn wait(child: &mut Child, deadline: Duration) -> Result<Option<i32>> {
    let end = Instant::now() + deadline;
    loop {
        if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
            let by_signal = std::os::unix::process::ExitStatusExt::signal(&status);
            return Ok(status.code().or(by_signal.map(|signal| 128 + signal)));
        }
        if Instant::now() > end {
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
