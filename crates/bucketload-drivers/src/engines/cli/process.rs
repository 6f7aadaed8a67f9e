//! One process from start to exit: its output is read line by line, of what it complains the end is
//! kept, and it dies with the operation.

use std::process::{Command, ExitStatus, Stdio};

use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::record::Probe;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Longest line that is looked at, in bytes; what is longer is passed on in pieces.
const MAX_LINE: usize = 64 * 1024;
/// Most bytes kept of what the process complains.
const MAX_COMPLAINT: usize = 16 * 1024;

/// How a process ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// The end of its standard error.
    pub(crate) complaint: String,
}

/// Kills the process group of an abandoned process: it may have started others.
struct Group {
    /// Process id, as long as nobody has waited for it: afterwards it may be another's.
    pid: Option<u32>,
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(pid) = self.pid.and_then(|pid| i32::try_from(pid).ok()) {
            // SAFETY: a system call without pointers. The group is our own child's: it was made
            // its leader, and as it was not waited for its number cannot have been given away.
            unsafe { libc::kill(-pid, libc::SIGKILL) };
        }
    }
}

/// Runs `command` to its end. `started` is marked just before the process is made, `first byte` and
/// `done` when it has ended and its output is read: nobody sees what comes when before that, so the
/// whole service time is waiting.
///
/// # Errors
/// When the process cannot be made or waited for.
pub(crate) async fn run(
    mut command: Command,
    probe: &mut Probe,
    line: &mut dyn FnMut(&str),
) -> Result<Ended, OpError> {
    use std::os::unix::process::CommandExt as _;
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A signal from the terminal is for us: we end the children of operations cut short.
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
    let mut group = Group { pid: child.id() };
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let wait = async {
        let status = child.wait().await;
        group.pid = None;
        status
    };
    let (status, (), complaint) = tokio::join!(wait, read_lines(stdout, line), read_end(stderr));
    probe.first_byte_and_done();
    Ok(Ended {
        status: status.map_err(|e| broken("cannot be waited for", &e))?,
        complaint,
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
        if held.len() > 2 * MAX_COMPLAINT {
            held.drain(..held.len() - MAX_COMPLAINT);
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

    /// Bound of everything that is waited for: far beyond what it takes, so that only a hang meets it.
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
    fn lines_complaint_and_exit_code_come_back() {
        block_on(async {
            let mut probe = Probe::new(|| 5);
            let mut lines = Vec::new();
            let command = script("printf 'one\\r\\ntwo\\nrest'; echo wrong >&2; exit 7");
            let ended = run(command, &mut probe, &mut |line| lines.push(line.to_owned()))
                .await
                .unwrap();
            assert_eq!(lines, ["one", "two", "rest"]);
            assert_eq!(
                (ended.status.code(), ended.complaint.as_str()),
                (Some(7), "wrong\n")
            );
            assert_eq!(
                (probe.started_ns(), probe.done_ns(), probe.requests()),
                (5, 5, 1)
            );
        });
    }

    #[test]
    fn long_complaints_keep_their_end() {
        block_on(async {
            let command = script(
                "i=0; while [ $i -lt 3000 ]; do echo 0123456789abcdef >&2; i=$((i+1)); done; echo last >&2",
            );
            let ended = run(command, &mut Probe::untimed(), &mut |_| {})
                .await
                .unwrap();
            assert!(ended.complaint.len() <= 2 * super::MAX_COMPLAINT);
            assert!(ended.complaint.ends_with("last\n"));
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
            // Gone, or a zombie that nobody has collected yet.
            while std::fs::read_to_string(&status).is_ok_and(|text| !text.contains(") Z ")) {
                assert!(begun.elapsed() < PATIENCE, "process {pid} lives on");
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
    }
}
