//! Two programs that are both under way, of which one goes on at a time, for a tenth of a second: what a machine
//! whose speed changes from second to second lets one compare.
//!
//! Both are stopped and continued by signals. What they move is read from the kernel's account of each
//! (`/proc/PID/io`): bytes that go to or come from a disk, or those that system calls moved.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::sh::{Result, show};

/// Length of a slice.
const SLICE: Duration = Duration::from_millis(100);
/// How long a program that goes on again is let alone before.
const SETTLE: Duration = Duration::from_millis(30);
/// How long a program may take until it moves data.
const PATIENCE: Duration = Duration::from_secs(60);

/// What of the account is read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Moved {
    /// From a disk.
    Read,
    /// To a disk.
    Written,
    /// By system calls, out of the page cache.
    Got,
    /// By system calls, into the page cache.
    Put,
}

/// A program that goes on during its slices only; ended when dropped.
pub(super) struct Sliced {
    child: Child,
    shown: String,
    moved: Moved,
}

impl Sliced {
    /// Starts `command` and stops it once it has moved more than `beginning` bytes.
    pub(super) fn start(command: &mut Command, moved: Moved, beginning: u64) -> Result<Self> {
        let shown = show(command);
        eprintln!("$ {shown}");
        command.stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        // A stopped program would outlive us otherwise, whatever ends us.
        // SAFETY: only prctl is called between fork and exec.
        unsafe {
            command.pre_exec(
                || match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                },
            );
        }
        let child = command.spawn().map_err(|e| format!("{shown}: {e}"))?;
        let mut sliced = Self {
            child,
            shown,
            moved,
        };
        let started = Instant::now();
        while sliced.bytes()? <= beginning {
            if let Ok(Some(status)) = sliced.child.try_wait() {
                return Err(format!("{}: ended early: {status}", sliced.shown));
            }
            if started.elapsed() > PATIENCE {
                return Err(format!("{}: moves no data", sliced.shown));
            }
            std::thread::sleep(SETTLE);
        }
        sliced.signal(libc::SIGSTOP)?;
        Ok(sliced)
    }

    /// Lets the program go on for a slice; bytes per second that it moved. A slice in which nothing moves, as while the
    /// kernel holds writers back or others have the core, goes on until something does.
    pub(super) fn slice(&self) -> Result<f64> {
        self.signal(libc::SIGCONT)?;
        std::thread::sleep(SETTLE);
        let (began, before) = (Instant::now(), self.bytes()?);
        let (time, bytes) = loop {
            std::thread::sleep(SLICE);
            let (time, bytes) = (began.elapsed(), self.bytes()? - before);
            if bytes > 0 {
                break (time, bytes);
            }
            if time > PATIENCE {
                return Err(format!("{}: moves no data any more", self.shown));
            }
        };
        self.signal(libc::SIGSTOP)?;
        Ok(bytes as f64 / time.as_secs_f64())
    }

    fn signal(&self, signal: i32) -> Result {
        // SAFETY: the process is our child, and not waited for yet.
        match unsafe { libc::kill(self.child.id().cast_signed(), signal) } {
            0 => Ok(()),
            _ => Err(format!(
                "{}: {}",
                self.shown,
                std::io::Error::last_os_error()
            )),
        }
    }

    fn bytes(&self) -> Result<u64> {
        let path = format!("/proc/{}/io", self.child.id());
        let text = std::fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
        let name = match self.moved {
            Moved::Read => "read_bytes: ",
            Moved::Written => "write_bytes: ",
            Moved::Got => "rchar: ",
            Moved::Put => "wchar: ",
        };
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.parse().ok())
            .ok_or_else(|| format!("{path} has no {name}"))
    }
}

impl Drop for Sliced {
    fn drop(&mut self) {
        // It has ended already, or ends now.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
