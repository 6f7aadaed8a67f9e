//! One process from start to exit. Its standard output is read line by line, the end of its standard error
//! is kept, and an abandoned operation kills it.

use std::process::{Command, ExitStatus, Stdio};

use bucketload_core::error::{ErrorKind, OpError, OpResult};
use bucketload_core::record::Probe;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Longest line in bytes; a longer one is passed on in pieces.
const MAX_LINE: usize = 64 * 1024;
/// Most bytes kept of standard error.
const MAX_STDERR: usize = 16 * 1024;

/// Exit status and error output of a process.
#[derive(Debug)]
pub(crate) struct ProcessOutcome {
    pub(crate) status: ExitStatus,
    /// The end of standard error.
    pub(crate) stderr: String,
}

/// Kills the process group of an abandoned process, which may have started others.
struct ProcessGroup {
    /// Process ID until the process has been waited for; the system may reuse the ID afterwards.
    pid: Option<u32>,
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(pid) = self.pid.and_then(|pid| i32::try_from(pid).ok()) {
            // SAFETY: a system call without pointers. The group belongs to our child, its leader. The
            // child has not been waited for, so the system cannot have reused its ID.
            unsafe { libc::kill(-pid, libc::SIGKILL) };
        }
    }
}

/// Runs `command` to its exit. Marks `started` just before it starts the process, and `first byte` and
/// `done` once the process has exited and its output has been read. What happens in between is not
/// visible, so the whole service time counts as waiting.
///
/// # Errors
/// When the process cannot be started or waited for.
pub(crate) async fn run(
    mut command: Command,
    probe: &mut Probe,
    line: &mut dyn FnMut(&str),
) -> OpResult<ProcessOutcome> {
    use std::os::unix::process::CommandExt as _;
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A signal from the terminal must not reach the child: abandoned operations kill it.
        .process_group(0);
    let mut command = tokio::process::Command::from(command);
    command.kill_on_drop(true);
    let broken = |what: &str, e: &std::io::Error| {
        OpError::new(ErrorKind::Connect, format!("the client {what}: {e}"))
    };
    probe.started();
    let mut child = command
        .spawn()
        .map_err(|e| broken("cannot be started", &e))?;
    let mut group = ProcessGroup { pid: child.id() };
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let wait = async {
        let status = child.wait().await;
        group.pid = None;
        status
    };
    let (status, (), stderr) = tokio::join!(wait, read_lines(stdout, line), read_end(stderr));
    probe.first_byte_and_done();
    Ok(ProcessOutcome {
        status: status.map_err(|e| broken("cannot be waited for", &e))?,
        stderr,
    })
}

async fn read_lines(stream: Option<impl AsyncRead + Unpin>, line: &mut dyn FnMut(&str)) {
    let Some(mut stream) = stream else { return };
    let mut held = Vec::new();
    loop {
        let n = stream.read_buf(&mut held).await.unwrap_or(0);
        let mut from = 0;
        while let Some(len) = held[from..].iter().position(|&b| b == b'\n') {
            line(String::from_utf8_lossy(&held[from..from + len]).trim_end_matches('\r'));
            from += len + 1;
        }
        held.drain(..from);
        if !held.is_empty() && (n == 0 || held.len() > MAX_LINE) {
            line(&String::from_utf8_lossy(&held));
            held.clear();
        }
        if n == 0 {
            return;
        }
    }
}

async fn read_end(stream: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut stream) = stream else {
        return String::new();
    };
    let mut held = Vec::new();
    while stream.read_buf(&mut held).await.unwrap_or(0) > 0 {
        if held.len() > 2 * MAX_STDERR {
            held.drain(..held.len() - MAX_STDERR);
        }
    }
    String::from_utf8_lossy(&held).into_owned()
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::process::Command;
    use std::time::{Duration, Instant};

    use bucketload_core::record::Probe;

    use super::run;

    /// Timeout of every wait, long enough that only a hang reaches it.
    const PATIENCE: Duration = Duration::from_secs(60);

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
            .block_on(future)
    }

    fn script(text: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", text]);
        command
    }

    #[test]
    fn lines_error_output_and_exit_code_are_returned() {
        block_on(async {
            let mut probe = Probe::new(|| 5);
            let mut lines = Vec::new();
            let command = script("printf 'one\\r\\ntwo\\nrest'; echo wrong >&2; exit 7");
            let outcome = run(command, &mut probe, &mut |line| lines.push(line.to_owned()))
                .await
                .unwrap();
            assert_eq!(lines, ["one", "two", "rest"]);
            assert_eq!(
                (outcome.status.code(), outcome.stderr.as_str()),
                (Some(7), "wrong\n")
            );
            assert_eq!(
                (probe.started_ns(), probe.done_ns(), probe.requests()),
                (5, 5, 1)
            );
        });
    }

    #[test]
    fn the_end_of_long_error_output_is_kept() {
        block_on(async {
            let command = script(
                "i=0; while [ $i -lt 3000 ]; do echo 0123456789abcdef >&2; i=$((i+1)); done; echo last >&2",
            );
            let outcome = run(command, &mut Probe::untimed(), &mut |_| {})
                .await
                .unwrap();
            assert!(outcome.stderr.len() <= 2 * super::MAX_STDERR);
            assert!(outcome.stderr.ends_with("last\n"));
        });
    }

    #[test]
    fn an_abandoned_process_dies_with_its_children() {
        block_on(async {
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join("pid");
            // The shell waits for a child of its own.
            let command = script(&format!(
                "sleep 600 & echo $! > {0}.new; mv {0}.new {0}; wait",
                file.display()
            ));
            let mut probe = Probe::untimed();
            let mut ignore = |_: &str| {};
            let running = run(command, &mut probe, &mut ignore);
            let begun = Instant::now();
            let started = async {
                while begun.elapsed() < PATIENCE {
                    if let Ok(text) = std::fs::read_to_string(&file) {
                        return text.trim().parse::<i32>().unwrap();
                    }
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                panic!("the shell's child does not start");
            };
            let pid = tokio::select! {
                pid = started => pid,
                _ = running => unreachable!("the shell waits"),
            };
            let status = format!("/proc/{pid}/stat");
            let begun = Instant::now();
            // Gone, or a zombie that has not been waited for yet.
            while std::fs::read_to_string(&status).is_ok_and(|text| !text.contains(") Z ")) {
                assert!(begun.elapsed() < PATIENCE, "process {pid} lives on");
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
    }
}
