//! The programs that the benchmark compares: ours, foreign tools and the floor clients. Each runs only during its
//! slices and reports at its end how much it believes it did.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::slices::{Moved, Slice, Sliced};
use super::sockets::Counter;
use crate::files::TempDir;
use crate::program::{self, Serve, bucketload, bucketload_with_engines, clean_call, run_phase};
use crate::sh::{Result, words};

/// Core that clients are pinned to; servers run on the next one.
pub(super) const CLIENT_CORE: usize = 0;
/// Run time given to every program, in seconds; each is stopped long before.
pub(super) const ENOUGH_S: u32 = 3600;
/// Largest relative difference between a program's own count and the kernel's count for its sockets. A program does
/// not count what it does after it is interrupted, nor what it did before it started counting.
const TOLERANCE: f64 = 0.05;

/// A program to measure.
pub(super) enum Candidate {
    /// Ours: arguments after `run`.
    Ours(String),
    /// Ours with another client engine: arguments after `run`.
    Engine(String),
    /// Another build of ours, with the same arguments.
    Before(PathBuf, String),
    /// wrk with these arguments.
    Wrk(String),
    /// iperf3 client with these arguments.
    Iperf(String),
    /// One of the floor clients.
    Floor(String),
}

/// A started candidate.
pub(super) struct Running<'a> {
    candidate: &'a Candidate,
    sliced: Sliced,
    counter: Counter,
    /// Run directory of our program.
    _dir: TempDir,
}

impl Candidate {
    /// Starts the program and pauses it once it does the work to be measured.
    pub(super) fn start(&self, counter: Counter, server: &Serve) -> Result<Running<'_>> {
        /// More than our program does to prepare, and than any program needs to get going.
        const ANSWERS: u64 = 30_000;
        const BYTES: u64 = 1 << 30;
        let dir = TempDir::new(&format!("bench-{:p}", &raw const *self))?;
        let mut command = self.command(&dir.file("run"), server)?;
        let beginning = match counter {
            Counter::Answers => ANSWERS,
            Counter::Sent | Counter::Received => BYTES,
        };
        Ok(Running {
            candidate: self,
            sliced: Sliced::start(&mut command, Moved::Over(counter), beginning)?,
            counter,
            _dir: dir,
        })
    }

    /// The command of the program; ours writes its run directory to `out`.
    pub(super) fn command(&self, out: &str, server: &Serve) -> Result<Command> {
        // A paused program must not count its requests as late.
        let ours = |program: &dyn Fn(&str) -> Result<Command>, args: &str| {
            let mut command = program(&format!(
                "run {args} --duration {ENOUGH_S}s --threads 1 --cores {CLIENT_CORE} --timeout {ENOUGH_S}s \
                 --out {out} --output json --quiet"
            ))?;
            command.envs(server.aws_env());
            Ok(command)
        };
        let foreign = |program: &str, line: &str| {
            let mut command = pinned(program, CLIENT_CORE);
            command.args(words(line));
            Ok(command)
        };
        match self {
            Self::Ours(args) => ours(&bucketload, args),
            Self::Engine(args) => ours(&bucketload_with_engines, args),
            Self::Before(program, args) => ours(&|line| Ok(clean_call(program, line)), args),
            Self::Wrk(args) => foreign("wrk", &format!("{args} -d {ENOUGH_S}s --timeout 10s")),
            Self::Iperf(args) => foreign("iperf3", &format!("{args} -J -t {ENOUGH_S}")),
            Self::Floor(args) => {
                let program = program::example("floor")?;
                foreign(&program.to_string_lossy(), &format!("{args} {ENOUGH_S}"))
            }
        }
    }

    /// Number of correctly answered requests, read from the program's output. `None` for programs that print no
    /// count: the floor clients, which stop at the first wrong answer, and iperf3.
    fn answered(&self, text: &str) -> Result<Option<f64>> {
        match self {
            Self::Ours(_) | Self::Engine(_) | Self::Before(..) => {
                let result: Value =
                    serde_json::from_str(text).map_err(|e| format!("bucketload: {e}: {text}"))?;
                let totals = &run_phase(&result)?["totals"];
                match (totals["ok"].as_f64(), totals["failed"].as_f64()) {
                    (Some(ok), Some(0.0)) => Ok(Some(ok)),
                    _ => Err(format!("bucketload: requests failed: {totals}")),
                }
            }
            Self::Wrk(_) => {
                if text.contains("Non-2xx") || text.contains("Socket errors") {
                    return Err(format!("wrk met errors: {text}"));
                }
                // "  241234 requests in 2.00s, 1.05GB read"
                text.lines()
                    .find(|line| line.contains(" requests in "))
                    .and_then(|line| line.split_whitespace().next()?.parse().ok())
                    .map(Some)
                    .ok_or_else(|| format!("wrk: {text}"))
            }
            Self::Iperf(_) | Self::Floor(_) => Ok(None),
        }
    }
}

impl Running<'_> {
    /// Resumes the program for one slice.
    pub(super) fn slice(&self) -> Result<Slice> {
        self.sliced.slice()
    }

    /// Ends the program.
    ///
    /// # Errors
    /// Requests failed, or the program's count differs from the kernel's.
    pub(super) fn finish(self) -> Result {
        let (text, moved) = self.sliced.finish()?;
        let answered = self.candidate.answered(&text)?;
        let (Some(answered), Counter::Answers) = (answered, self.counter) else {
            return Ok(());
        };
        let moved = moved as f64;
        if (answered / moved - 1.0).abs() > TOLERANCE {
            return Err(format!(
                "the kernel counted {moved} answer segments, the program {answered} answers: {text}"
            ));
        }
        Ok(())
    }
}

/// A command whose process is pinned to `core`.
pub(super) fn pinned(program: &str, core: usize) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    // SAFETY: only sched_setaffinity is called between fork and exec, with a mask on the stack.
    unsafe {
        command.pre_exec(move || {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(core, &mut set);
            match libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    command
}
