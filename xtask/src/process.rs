//! Background processes of a task: started, asked for their address, and ended when dropped.

use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::Outcome;
use crate::sh::{Result, ensure, show};

/// A child process; ended when dropped.
pub(crate) struct Process {
    /// The child itself.
    pub(crate) child: Child,
    shown: String,
    begun: Instant,
    /// True if the child ends with its standard input; dropping then waits for it.
    ends_with_input: bool,
}

impl Process {
    /// Starts a command with the standard streams set on it.
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let shown = show(command);
        eprintln!("$ {shown} &");
        let child = command.spawn().map_err(|e| format!("{shown}: {e}"))?;
        Ok(Self {
            child,
            shown,
            begun: Instant::now(),
            ends_with_input: false,
        })
    }

    /// Starts a command whose outputs [`Process::end`] returns.
    pub(crate) fn recorded(command: &mut Command) -> Result<Self> {
        Self::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()))
    }

    /// Starts a command of ours with `--announce`, which ends with its standard input, and waits until it reports the
    /// address that it listens on.
    pub(crate) fn announced(command: &mut Command) -> Result<(Self, String)> {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Self::start(piped)?;
        let stdout = process.child.stdout.take();
        let (line, _) = process.first_line(stdout)?;
        let said: Value = serde_json::from_str(&line).unwrap_or_default();
        let address = said["listening"].as_str().map(str::to_owned);
        let address = address
            .ok_or_else(|| format!("{}: ended before it listened: {line}", process.shown))?;
        Ok((process, address))
    }

    /// The first line of one of its outputs, and a reader of the rest.
    pub(crate) fn first_line<R: Read>(
        &self,
        output: Option<R>,
    ) -> Result<(String, Option<BufReader<R>>)> {
        let (mut line, mut rest) = (String::new(), output.map(BufReader::new));
        if let Some(rest) = &mut rest {
            let read = rest.read_line(&mut line);
            read.map_err(|e| format!("{}: {e}", self.shown))?;
        }
        Ok((line, rest))
    }

    /// Lets the process end by itself when its standard input closes, and waits for it on drop.
    pub(crate) fn ending_with_input(mut self) -> Self {
        self.ends_with_input = true;
        self
    }

    /// Fails with its output if the process has ended.
    pub(crate) fn still_runs(&mut self) -> Result {
        let status = self.child.try_wait().map_err(|e| self.at(&e))?;
        let Some(status) = status else { return Ok(()) };
        let pipes = [
            drain(self.child.stdout.take()),
            drain(self.child.stderr.take()),
        ];
        let said = pipes.map(|pipe| pipe.join().unwrap_or_default()).concat();
        Err(format!(
            "{}: ended too early ({status}): {said}",
            self.shown
        ))
    }

    /// Kills the process.
    pub(crate) fn kill(&mut self) -> Result {
        self.child.kill().map_err(|e| self.at(&e))?;
        self.child.wait().map(drop).map_err(|e| self.at(&e))
    }

    /// Sends a signal to the process.
    pub(crate) fn signal(&self, signal: libc::c_int) -> Result {
        // SAFETY: sends a signal to a child of ours that has not been waited for; touches no memory.
        let sent = unsafe { libc::kill(self.child.id().cast_signed(), signal) };
        ensure(sent == 0, || self.at(&std::io::Error::last_os_error()))
    }

    /// Waits for the process to end. One that runs longer than `deadline` is killed and reported.
    pub(crate) fn end(mut self, deadline: Duration) -> Result<Outcome> {
        let (stdout, stderr) = (
            drain(self.child.stdout.take()),
            drain(self.child.stderr.take()),
        );
        let status = loop {
            if let Some(status) = self.child.try_wait().map_err(|e| self.at(&e))? {
                break status;
            }
            if self.begun.elapsed() > deadline {
                self.kill()?;
                let said = stderr.join().unwrap_or_default();
                let s = deadline.as_secs();
                return Err(format!("{}: hung for {s} s: {said}", self.shown));
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        Ok(Outcome {
            shown: self.shown.clone(),
            code: status.code().unwrap_or(-1),
            stdout: stdout.join().unwrap_or_default(),
            stderr: stderr.join().unwrap_or_default(),
            took: self.begun.elapsed(),
        })
    }

    fn at(&self, error: &std::io::Error) -> String {
        format!("{}: {error}", self.shown)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        match self.ends_with_input {
            true => drop(self.child.stdin.take()),
            // It may have ended already.
            false => drop(self.child.kill()),
        }
        let _ = self.child.wait();
    }
}

/// What the kernel accounts to a process that has ended.
pub(crate) struct Used {
    pub(crate) cpu_s: f64,
    /// The most memory that was resident.
    pub(crate) rss_bytes: u64,
}

/// Runs a command to its end; it must exit with code 0. Returns its standard output and what it used (wait4(2)).
pub(crate) fn accounted(command: &mut Command) -> Result<(String, Used)> {
    let shown = show(command);
    eprintln!("$ {shown}");
    let at = |e: std::io::Error| format!("{shown}: {e}");
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(at)?;
    let said = drain(child.stdout.take()).join().unwrap_or_default();
    let mut status = 0;
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both places are valid for writing, zeros are a valid value of `rusage`, and nobody else waits for the child.
    let usage = unsafe {
        if libc::wait4(
            child.id().cast_signed(),
            &raw mut status,
            0,
            usage.as_mut_ptr(),
        ) < 0
        {
            return Err(at(std::io::Error::last_os_error()));
        }
        usage.assume_init()
    };
    ensure(status == 0, || {
        format!("{shown}: wait status {status:#x} instead of 0\n{said}")
    })?;
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    let used = Used {
        cpu_s: seconds(usage.ru_utime) + seconds(usage.ru_stime),
        rss_bytes: usage.ru_maxrss.unsigned_abs() << 10,
    };
    Ok((said, used))
}

/// Reads a pipe to its end in a thread, because the child would block on a full pipe.
fn drain(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = Vec::new();
        // If reading fails, the checks on the text do.
        let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut text));
        String::from_utf8_lossy(&text).into_owned()
    })
}

/// A memory field such as `VmRSS` of `/proc/PID/status` (proc(5)), in bytes; `None` once the process has ended.
pub(crate) fn status_bytes(pid: u32, field: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let mut lines = text.lines();
    let value = lines.find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    let kib: u64 = value.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib << 10)
}

/// Waits until `ready` returns true, for at most `patience`; `what` names the condition in the error.
pub(crate) fn wait_until(
    what: &str,
    patience: Duration,
    mut ready: impl FnMut() -> Result<bool>,
) -> Result {
    let begun = Instant::now();
    while !ready()? {
        ensure(begun.elapsed() < patience, || {
            format!("{what}: not in {} s", patience.as_secs())
        })?;
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}
