//! The process of a job: `bucketload run …`, checked before and run once.
//!
//! [`Launcher`] is what the controller knows; [`ProcessLauncher`] starts this very program. Nothing of the
//! load runs inside the controller, and a run ends by itself when the controller does, because its
//! standard input closes.

use std::ffi::OsString;
use std::future::Future;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, ChildStdin, Command};

use crate::queue::Ended;
use crate::queue::store::private;

/// A future of a trait object.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Longest check of a workload.
const CHECK_LIMIT: Duration = Duration::from_secs(60);
/// Most bytes of output that are kept of a check.
const CHECK_OUTPUT: u64 = 256 << 10;
/// Most notes of a check that are kept, and most characters of one.
const MAX_NOTES: usize = 30;
const MAX_NOTE: usize = 500;
/// Environment variables of the controller that its children do not need.
const OWN_VARIABLES: [&str; 1] = ["BUCKETLOAD_TOKEN"];
/// Name of the run directory inside a job's directory.
pub(crate) const RUN: &str = "run";
/// Name of the file with what the process printed.
pub(crate) const LOG: &str = "output.log";

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Directory of the job, in which the process runs.
    pub dir: PathBuf,
    /// Name of the workload file in it, or of a built-in workload.
    pub workload: String,
    /// Further arguments, checked.
    pub arguments: Vec<String>,
    /// For workloads in XML: directory of COSBench's archive, and the number of the workload in it.
    pub archive: Option<(PathBuf, u64)>,
}

/// What the check of a task found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Name of its workload.
    pub name: String,
    /// What should be known of it although it can be run, such as attributes that are ignored.
    pub notes: Vec<String>,
}

/// Starts the processes of jobs.
pub trait Launcher: Send + Sync + 'static {
    /// Checks that a task could be run.
    ///
    /// The error is what the program says, for the user.
    fn check<'a>(&'a self, task: &'a Task) -> Boxed<'a, Result<Checked, String>>;

    /// Starts the task.
    ///
    /// # Errors
    /// When it cannot be started.
    fn start(&self, task: &Task) -> io::Result<Box<dyn Running>>;

    /// Waits until no process of an earlier controller works in the job's directory any more.
    fn settled<'a>(&'a self, dir: &'a Path) -> Boxed<'a, ()>;
}

/// A process that was started.
pub trait Running: Send {
    /// Waits for its end.
    fn wait(&mut self) -> Boxed<'_, io::Result<Ended>>;

    /// Asks it to stop, to clean up and to keep what it measured.
    fn interrupt(&mut self);

    /// Ends it at once.
    fn kill(&mut self);
}

/// Runs this very program.
#[derive(Clone, Debug)]
pub struct ProcessLauncher {
    /// The program.
    pub program: PathBuf,
    /// Arguments that every run gets, such as the agents.
    pub common: Vec<OsString>,
}

impl ProcessLauncher {
    /// Starts the program that runs now.
    ///
    /// # Errors
    /// When it is not known which one that is.
    pub fn this_program(common: Vec<OsString>) -> io::Result<Self> {
        Ok(Self {
            program: std::env::current_exe()?,
            common,
        })
    }

    fn command(&self, task: &Task) -> Command {
        let mut command = Command::new(&self.program);
        command
            .arg("run")
            .args(["--color", "never"])
            .args(&self.common)
            .args(&task.arguments)
            .current_dir(&task.dir)
            // Signals of the terminal are for the controller, which tells its run.
            .process_group(0);
        for name in OWN_VARIABLES {
            command.env_remove(name);
        }
        command
    }
}

impl Launcher for ProcessLauncher {
    fn check<'a>(&'a self, task: &'a Task) -> Boxed<'a, Result<Checked, String>> {
        Box::pin(async move {
            let mut child = self
                .command(task)
                .args(["--dry-run", "--output", "json", "--"])
                .arg(&task.workload)
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .kill_on_drop(true)
                .spawn()
                .map_err(|e| format!("the check could not be started: {e}"))?;
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
            let finished = async {
                let read_out = async {
                    if let Some(stream) = stdout {
                        let _ = stream.take(CHECK_OUTPUT).read_to_end(&mut out).await;
                    }
                };
                let read_err = async {
                    if let Some(stream) = stderr {
                        let _ = stream.take(CHECK_OUTPUT).read_to_end(&mut err).await;
                    }
                };
                tokio::join!(read_out, read_err);
                child.wait().await
            };
            let status = tokio::time::timeout(CHECK_LIMIT, finished)
                .await
                .map_err(|_| format!("the check took longer than {} s", CHECK_LIMIT.as_secs()))?
                .map_err(|e| format!("the check failed: {e}"))?;
            if status.success() {
                let outlook: serde_json::Value = serde_json::from_slice(&out).unwrap_or_default();
                let name = outlook["workload"].as_str().unwrap_or(&task.workload);
                return Ok(Checked {
                    name: name.to_owned(),
                    notes: notes(&String::from_utf8_lossy(&err)),
                });
            }
            let text = String::from_utf8_lossy(&err);
            let text = text.trim();
            let text = text.strip_prefix("bucketload: ").unwrap_or(text);
            Err(if text.is_empty() {
                format!("the check ended with {status}")
            } else {
                text.to_owned()
            })
        })
    }

    fn start(&self, task: &Task) -> io::Result<Box<dyn Running>> {
        let log = private(&task.dir.join(LOG))?;
        // The lock lives as long as anybody has this description open: the process and its children. A
        // later controller sees by it that they have ended.
        flock(&log, FlockOperation::NonBlockingLockExclusive)?;
        let mut command = self.command(task);
        command.args(["--quiet", "--exit-with-stdin", "--out", RUN]);
        if let Some((archive, number)) = &task.archive {
            command.arg("--cosbench-artifacts").arg(archive);
            command.args(["--cosbench-number", &number.to_string()]);
        }
        let mut child = command
            .arg("--")
            .arg(&task.workload)
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let stdin = child.stdin.take();
        Ok(Box::new(Process {
            child,
            _stdin: stdin,
        }))
    }

    fn settled<'a>(&'a self, dir: &'a Path) -> Boxed<'a, ()> {
        Box::pin(async move {
            let Ok(log) = private(&dir.join(LOG)) else {
                return;
            };
            while flock(&log, FlockOperation::NonBlockingLockExclusive).is_err() {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        })
    }
}

/// A run under way.
struct Process {
    child: Child,
    /// Held open: the run ends when it closes.
    _stdin: Option<ChildStdin>,
}

impl Process {
    /// Sends a signal, unless the process was waited for already: its number could be another's then.
    fn signal(&self, signal: Signal) {
        let pid = self
            .child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // It may have ended a moment ago.
            let _ = kill_process(pid, signal);
        }
    }
}

impl Running for Process {
    fn wait(&mut self) -> Boxed<'_, io::Result<Ended>> {
        Box::pin(async move { self.child.wait().await.map(ended) })
    }

    fn interrupt(&mut self) {
        self.signal(Signal::INT);
    }

    fn kill(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// What a check that succeeded said, without secrets.
fn notes(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| line.strip_prefix("bucketload: "))
        .map(|line| {
            let line: String = line.chars().take(MAX_NOTE).collect();
            bucketload_results::rundir::redact::text(&line)
        })
        .take(MAX_NOTES)
        .collect()
}

fn ended(status: ExitStatus) -> Ended {
    match status.code() {
        Some(code) => Ended::Code(code),
        None => Ended::Signal(status.signal().unwrap_or(0)),
    }
}

/// The last lines of a job's output, for the reason why it ended.
pub(crate) fn last_words(dir: &Path) -> String {
    use std::io::{Read as _, Seek as _, SeekFrom};

    const TAIL: u64 = 4096;
    let read = || -> io::Result<String> {
        let mut file = std::fs::File::open(dir.join(LOG))?;
        let len = file.metadata()?.len();
        file.seek(SeekFrom::Start(len.saturating_sub(TAIL)))?;
        let mut bytes = Vec::new();
        file.take(TAIL).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = read().unwrap_or_default();
    let mut lines: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("bucketload: "))
        .collect();
    let from = lines.len().saturating_sub(3);
    lines.drain(..from);
    bucketload_results::rundir::redact::text(&lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::{MAX_NOTES, notes};

    #[test]
    fn notes_of_a_check_are_bounded_and_hold_no_secrets() {
        let text = "bucketload: line 3: `Runtime` is ignored; is `runtime` meant?\nsomething else\n\
                    bucketload: endpoint http://user:hidden@host\n";
        let found = notes(text);
        assert_eq!(found.len(), 2);
        assert!(found[0].starts_with("line 3"));
        assert!(!found[1].contains("hidden"), "{found:?}");
        let many = "bucketload: x\n".repeat(1000) + "bucketload: " + &"y".repeat(10_000);
        assert_eq!(notes(&many).len(), MAX_NOTES);
    }
}
