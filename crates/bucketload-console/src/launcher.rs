//! The process of a job: `bucketload run …`, first as a check, then as the run.
//!
//! The controller uses a [`Launcher`]; [`ProcessLauncher`] starts this program again. No load runs inside the
//! controller. When the controller exits, its run exits too, because its standard input closes.

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

use crate::queue::ProcessExit;
use crate::queue::data_dir::open_private;

/// A boxed future, for trait objects.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Time limit of a workload check.
const CHECK_LIMIT: Duration = Duration::from_secs(60);
/// Maximum amount of stored output of a check, bytes.
const CHECK_OUTPUT: u64 = 256 << 10;
/// Maximum number of notes of a check, and maximum length of a note, characters.
const MAX_NOTES: usize = 30;
const MAX_NOTE: usize = 500;
/// Environment variables of the controller that are removed for its children.
const OWN_VARIABLES: [&str; 1] = ["BUCKETLOAD_TOKEN"];
/// Environment variable that tells a run to take no flags from the environment if it is `off`.
pub const FLAG_VARIABLES: &str = "BUCKETLOAD_VARIABLES";
/// Name of the run directory inside a job's directory.
pub(crate) const RUN: &str = "run";
/// Name of the file with the process's output.
pub(crate) const LOG: &str = "output.log";

/// A run to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Directory of the job; the process's working directory.
    pub dir: PathBuf,
    /// Name of the workload file in that directory, or of a built-in workload.
    pub workload: String,
    /// Further checked arguments.
    pub arguments: Vec<String>,
    /// For XML workloads: directory of COSBench's archive, and the number of the workload in it.
    pub archive: Option<(PathBuf, u64)>,
}

/// The result of a successful check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckResult {
    /// Name of the workload.
    pub name: String,
    /// Remarks on the accepted workload, such as ignored attributes.
    pub notes: Vec<String>,
}

/// Starts the processes of jobs.
pub trait Launcher: Send + Sync + 'static {
    /// Checks that a task can be run.
    ///
    /// The error is the program's message for the user.
    fn check<'a>(&'a self, task: &'a Task) -> BoxFuture<'a, Result<CheckResult, String>>;

    /// Starts the task.
    ///
    /// # Errors
    /// When it cannot be started.
    fn start(&self, task: &Task) -> io::Result<Box<dyn RunningProcess>>;

    /// Waits until no process of an earlier controller uses the job's directory.
    fn wait_until_unused<'a>(&'a self, dir: &'a Path) -> BoxFuture<'a, ()>;
}

/// A running process.
pub trait RunningProcess: Send {
    /// Waits for the process to exit.
    fn wait(&mut self) -> BoxFuture<'_, io::Result<ProcessExit>>;

    /// Asks the process to stop, to clean up and to keep its measurements.
    fn interrupt(&mut self);

    /// Kills the process.
    fn kill(&mut self);
}

/// Starts this program.
#[derive(Clone, Debug)]
pub struct ProcessLauncher {
    /// The program.
    pub program: PathBuf,
    /// Arguments of every run, such as the agents.
    pub common: Vec<OsString>,
}

impl ProcessLauncher {
    /// Makes a launcher of the current executable.
    ///
    /// # Errors
    /// When the path of the executable is unknown.
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
            // The task says itself what to do.
            .env(FLAG_VARIABLES, "off")
            // Terminal signals are for the controller, which stops its run itself.
            .process_group(0);
        for name in OWN_VARIABLES {
            command.env_remove(name);
        }
        command
    }
}

impl Launcher for ProcessLauncher {
    fn check<'a>(&'a self, task: &'a Task) -> BoxFuture<'a, Result<CheckResult, String>> {
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
                return Ok(CheckResult {
                    name: name.to_owned(),
                    notes: notes(&String::from_utf8_lossy(&err)),
                });
            }
            let text = String::from_utf8_lossy(&err);
            let text = text.trim();
            let text = text.strip_prefix("bucketload: ").unwrap_or(text);
            Err(if text.is_empty() {
                format!("the check exited: {status}")
            } else {
                text.to_owned()
            })
        })
    }

    fn start(&self, task: &Task) -> io::Result<Box<dyn RunningProcess>> {
        let log = open_private(&task.dir.join(LOG))?;
        // The lock is held as long as the process or a child has the file open. It tells a later controller when all of
        // them have exited.
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

    fn wait_until_unused<'a>(&'a self, dir: &'a Path) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let Ok(log) = open_private(&dir.join(LOG)) else {
                return;
            };
            while flock(&log, FlockOperation::NonBlockingLockExclusive).is_err() {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        })
    }
}

/// A started run.
struct Process {
    child: Child,
    /// Kept open: the run stops when it closes.
    _stdin: Option<ChildStdin>,
}

impl Process {
    /// Sends a signal, unless the process has been waited for: its id could belong to another process by then.
    fn signal(&self, signal: Signal) {
        let pid = self
            .child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // The process may have exited a moment ago.
            let _ = kill_process(pid, signal);
        }
    }
}

impl RunningProcess for Process {
    fn wait(&mut self) -> BoxFuture<'_, io::Result<ProcessExit>> {
        Box::pin(async move { self.child.wait().await.map(exit_of) })
    }

    fn interrupt(&mut self) {
        self.signal(Signal::INT);
    }

    fn kill(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// Extracts the notes from a check's output, without secrets.
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

fn exit_of(status: ExitStatus) -> ProcessExit {
    match status.code() {
        Some(code) => ProcessExit::Code(code),
        None => ProcessExit::Signal(status.signal().unwrap_or(0)),
    }
}

/// The last messages in a job's output, which explain how it ended.
pub(crate) fn last_messages(dir: &Path) -> String {
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
