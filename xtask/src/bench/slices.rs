//! Runs two programs in turn, a tenth of a second each, so that they can be compared on a machine whose speed changes
//! from second to second.
//!
//! Both programs stay alive; signals pause and resume them. The kernel's accounts say what each one did: CPU time,
//! and either `/proc/PID/io` (bytes to or from a disk, or bytes moved by system calls) or its sockets
//! ([`sockets`](super::sockets)).

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::sockets::{Counter, Sockets};
use crate::files;
use crate::process::status_bytes;
use crate::sh::{Result, show};

/// Length of a slice.
const SLICE: Duration = Duration::from_millis(100);
/// How long a resumed program runs before its slice begins.
const SETTLE: Duration = Duration::from_millis(30);
/// Longest wait for a program to move data.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the kernel counts for a program.
#[derive(Clone, Copy, Debug)]
pub(super) enum Moved {
    /// Bytes read from a disk.
    FromDisk,
    /// Bytes written to a disk.
    ToDisk,
    /// Bytes read by system calls, also from the page cache.
    ByReadCalls,
    /// Bytes written by system calls, also to the page cache.
    ByWriteCalls,
    /// Traffic of the TCP sockets that are open when the first slice begins.
    Over(Counter),
}

/// What a program did in a slice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice {
    /// Length, nanoseconds.
    pub(super) wall_ns: f64,
    /// CPU time of all its threads, nanoseconds.
    pub(super) cpu_ns: f64,
    /// Amount moved: bytes, or answers.
    pub(super) moved: f64,
}

/// A program that runs only during its slices; killed when dropped.
pub(super) struct Sliced {
    child: Child,
    shown: String,
    moved: Moved,
    /// Set once the program is paused for its first slice.
    sockets: Option<Sockets>,
    /// The process's CPU time clock.
    clock: libc::clockid_t,
}

impl Sliced {
    /// Starts `command` and pauses it once it has moved more than `beginning`. Traffic over sockets is counted on
    /// those that are open at that moment.
    pub(super) fn start(command: &mut Command, moved: Moved, beginning: u64) -> Result<Self> {
        let shown = show(command);
        eprintln!("$ {shown}");
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        // A paused program would outlive us however we end, hence PR_SET_PDEATHSIG. A shell makes its background
        // processes ignore SIGINT, hence the reset.
        // SAFETY: only prctl and signal are called between fork and exec.
        unsafe {
            command.pre_exec(|| {
                libc::signal(libc::SIGINT, libc::SIG_DFL);
                match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            });
        }
        let child = command.spawn().map_err(|e| format!("{shown}: {e}"))?;
        let mut clock = 0;
        // SAFETY: the pointer is to a live local, the process our own child, which nobody has waited for.
        let found = unsafe { libc::clock_getcpuclockid(child.id().cast_signed(), &raw mut clock) };
        let mut sliced = Self {
            child,
            shown,
            moved,
            sockets: None,
            clock,
        };
        if found != 0 {
            let error = std::io::Error::from_raw_os_error(found);
            return Err(format!("{}: its CPU time: {error}", sliced.shown));
        }
        let started = Instant::now();
        while sliced.moved()? <= beginning {
            if let Ok(Some(status)) = sliced.child.try_wait() {
                return Err(format!("{}: ended early: {status}", sliced.shown));
            }
            if started.elapsed() > PATIENCE {
                return Err(format!("{}: moves no data", sliced.shown));
            }
            std::thread::sleep(SETTLE);
        }
        if let Moved::Over(_) = moved {
            sliced.sockets = Some(Sockets::of(sliced.child.id())?);
        }
        sliced.signal(libc::SIGSTOP)?;
        Ok(sliced)
    }

    /// Resumes the program for a slice and returns what it did. If nothing moves, because the kernel holds writers
    /// back or others have the core, the slice lasts until something does.
    pub(super) fn slice(&self) -> Result<Slice> {
        self.signal(libc::SIGCONT)?;
        std::thread::sleep(SETTLE);
        let (began, cpu, before) = (Instant::now(), self.cpu_ns()?, self.moved()?);
        let slice = loop {
            std::thread::sleep(SLICE);
            let slice = Slice {
                wall_ns: began.elapsed().as_nanos() as f64,
                cpu_ns: (self.cpu_ns()? - cpu) as f64,
                moved: (self.moved()? - before) as f64,
            };
            if slice.moved > 0.0 {
                break slice;
            }
            if began.elapsed() > PATIENCE {
                return Err(format!("{}: stopped moving data", self.shown));
            }
        };
        self.signal(libc::SIGSTOP)?;
        Ok(slice)
    }

    /// Ends the program as Ctrl-C would. Returns its output and the total that it moved.
    pub(super) fn finish(mut self) -> Result<(String, u64)> {
        let moved = self.moved()?;
        // Our duplicates must not keep connections open.
        self.sockets = None;
        self.signal(libc::SIGCONT)?;
        self.interrupt()?;
        let mut text = String::new();
        if let Some(mut stdout) = self.child.stdout.take() {
            let read = stdout.read_to_string(&mut text);
            read.map_err(|e| format!("{}: {e}", self.shown))?;
        }
        let ended = self.child.wait();
        ended.map_err(|e| format!("{}: {e}", self.shown))?;
        Ok((text, moved))
    }

    /// What the sockets that were open at the first slice have carried.
    pub(super) fn traffic(&self, counter: Counter) -> u64 {
        self.sockets
            .as_ref()
            .map_or(0, |sockets| sockets.sum(counter))
    }

    /// The most memory that the program has had resident so far, in bytes; `None` once it has ended.
    pub(super) fn peak_bytes(&self) -> Option<u64> {
        status_bytes(self.child.id(), "VmHWM")
    }

    fn signal(&self, signal: i32) -> Result {
        // SAFETY: the process is our child, and not waited for yet.
        self.done(unsafe { libc::kill(self.child.id().cast_signed(), signal) }.into())
    }

    /// Sends SIGINT to the main thread: wrk sleeps there, and keeps sleeping if another thread takes the signal.
    fn interrupt(&self) -> Result {
        let id = self.child.id().cast_signed();
        // SAFETY: as above; a process's main thread has its number.
        self.done(unsafe { libc::syscall(libc::SYS_tgkill, id, id, libc::SIGINT) })
    }

    /// Turns the return value of a system call on the program into a result.
    fn done(&self, returned: i64) -> Result {
        match returned {
            0 => Ok(()),
            _ => {
                let error = std::io::Error::last_os_error();
                Err(format!("{}: {error}", self.shown))
            }
        }
    }

    fn cpu_ns(&self) -> Result<u64> {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: `time` outlives the call.
        self.done(unsafe { libc::clock_gettime(self.clock, &raw mut time) }.into())?;
        Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
    }

    fn moved(&self) -> Result<u64> {
        let path = format!("/proc/{}/io", self.child.id());
        let text = files::read(&path)?;
        let name = match self.moved {
            Moved::FromDisk => "read_bytes: ",
            Moved::ToDisk => "write_bytes: ",
            Moved::ByReadCalls => "rchar: ",
            Moved::ByWriteCalls => "wchar: ",
            Moved::Over(counter) => {
                return match &self.sockets {
                    Some(sockets) => Ok(sockets.sum(counter)),
                    None => Ok(Sockets::of(self.child.id())?.sum(counter)),
                };
            }
        };
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.parse().ok())
            .ok_or_else(|| format!("{path} has no {name}"))
    }
}

/// Runs both sides `times` times in turn, ours first every other time.
pub(super) fn alternating<T>(
    times: u32,
    ours: impl Fn() -> Result<T>,
    theirs: impl Fn() -> Result<T>,
) -> Result<Vec<(T, T)>> {
    (0..times)
        .map(|time| {
            if time % 2 == 0 {
                let a = ours()?;
                Ok((a, theirs()?))
            } else {
                let b = theirs()?;
                Ok((ours()?, b))
            }
        })
        .collect()
}

impl Drop for Sliced {
    fn drop(&mut self) {
        // The program may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
