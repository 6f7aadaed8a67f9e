//! What is compared: our program, foreign tools and the floor clients, each as a program that goes on during its

//! slices and tells at its end what it believes to have done.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::slices::{Moved, Slice, Sliced};
use super::sockets::Counter;
use crate::files::TempDir;
use crate::own::{self, Serve, bucketload, bucketload_with_engines, clean_call, run_phase};
use crate::sh::{Result, words};

/// Core that clients are pinned to; servers take the next one.
pub(super) const CLIENT_CORE: usize = 0;
/// How long each would go on if it were not ended, seconds.
const ENOUGH_S: u32 = 3600;
/// How far what a program counts may lie from what the kernel counts for its sockets: what it counts no more when it
/// is ended, and what it did before it began to count.
const TOLERANCE: f64 = 0.05;

/// A program to measure.
pub(super) enum Candidate {
    /// Ours: arguments after `run`.
    Own(String),
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

/// A candidate that has been started.
pub(super) struct Running<'a> {
    candidate: &'a Candidate,
    sliced: Sliced,
    counter: Counter,
    /// Of our program's run directory.
    _dir: TempDir,
}

impl Candidate {
    /// Starts it, and stops it when it does what is to be measured.
    pub(super) fn start(&self, counter: Counter, server: &Serve) -> Result<Running<'_>> {
        /// More than our program prepares, and than anything takes to be under way.
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

    fn command(&self, out: &str, server: &Serve) -> Result<Command> {
        // What is stopped is not late.
        let own = |program: &dyn Fn(&str) -> Result<Command>, args: &str| {
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
            Self::Own(args) => own(&bucketload, args),
            Self::Engine(args) => own(&bucketload_with_engines, args),
            Self::Before(program, args) => own(&|line| Ok(clean_call(program, line)), args),
            Self::Wrk(args) => foreign("wrk", &format!("{args} -d {ENOUGH_S}s --timeout 10s")),
            Self::Iperf(args) => foreign("iperf3", &format!("{args} -J -t {ENOUGH_S}")),
            Self::Floor(args) => {
                let program = own::example("floor")?;
                foreign(&program.to_string_lossy(), &format!("{args} {ENOUGH_S}"))
            }
        }
    }

    /// The requests that were answered as they should be, from what the program printed; none where it tells nothing,
    /// as the floor clients do, which end at the first wrong answer.
    fn answered(&self, text: &str) -> Result<Option<f64>> {
        match self {
            Self::Own(_) | Self::Engine(_) | Self::Before(..) => {
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
    /// Lets it go on for a slice.
    pub(super) fn slice(&self) -> Result<Slice> {
        self.sliced.slice()
    }

    /// Ends it.
    ///
    /// # Errors
    /// Requests failed, or what it counted is not what the kernel counted.
    pub(super) fn finish(self) -> Result {
        let (text, moved) = self.sliced.finish()?;
        let answered = self.candidate.answered(&text)?;
        let (Some(answered), Counter::Answers) = (answered, self.counter) else {
            return Ok(());
        };
        let moved = moved as f64;
        if (answered / moved - 1.0).abs() > TOLERANCE {
            return Err(format!(
                "{moved} segments of answers came, but {answered} requests were answered: {text}"
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
