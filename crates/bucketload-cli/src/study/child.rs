//! Runs a cell as a child process of this program, stops it on request, and judges its outcome.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::Duration;

use bucketload_results::analyze;
use bucketload_run::{StopHandle, StopLevel};
use bucketload_study::layout::OUTPUT;
use bucketload_study::model::{self, Cell};
use rustix::process::{Pid, Signal, kill_process};

use crate::cli::variables::SWITCH;
use crate::hpc::gateway::VARIABLES;

/// How often to check on a running child.
const POLL: Duration = Duration::from_millis(20);

/// How to run a cell.
pub(super) struct CellRun<'a> {
    pub(super) cell: &'a Cell,
    /// Arguments after the command's name: those of the cell and of the target.
    pub(super) args: Vec<String>,
    /// The cell's directory, which does not exist yet.
    pub(super) dir: PathBuf,
    /// Variables of the server: endpoints and credentials, which must not appear in a process list.
    pub(super) env: &'a BTreeMap<String, String>,
}

/// The outcome of a cell.
#[derive(Debug, PartialEq)]
pub(super) enum Outcome {
    /// The cell was measured: exit code 0, 1 or 5.
    Measured {
        /// Exit code.
        exit: i32,
        /// Verdict; empty if the command has none.
        verdict: String,
    },
    /// The cell was not measured.
    Failed {
        /// Exit code; `None` if a signal ended the child.
        exit: Option<i32>,
        /// The child's last message.
        reason: String,
    },
    /// The user stopped the cell.
    Interrupted,
}

/// Runs the cell to its end. The first request to stop is passed on, so that the child cleans up; the second aborts the
/// child.
///
/// # Errors
/// When the child cannot be started.
pub(super) fn run(run: &CellRun<'_>, stop: &StopHandle) -> io::Result<Outcome> {
    // The child refuses a directory that is not empty, so its output goes beside the directory until the child ends.
    let log = with_suffix(&run.dir, ".log");
    let answer = with_suffix(&run.dir, ".json");
    let mut command = command(run, &log, &answer)?;
    let mut child = command.spawn()?;
    let status = wait(&mut child, stop)?;
    let reason = last_words(&std::fs::read_to_string(&log).unwrap_or_default());
    let verdict = verdict(run, &answer);
    std::fs::create_dir_all(&run.dir)?;
    std::fs::rename(&log, run.dir.join(OUTPUT))?;
    // The run directory contains the same information.
    for suffix in [".json", ".csv", ".status"] {
        let _ = std::fs::remove_file(with_suffix(&run.dir, suffix));
    }
    Ok(judge(
        status,
        verdict,
        reason,
        stop.level() != StopLevel::Run,
    ))
}

fn judge(status: ExitStatus, verdict: String, reason: String, stopped: bool) -> Outcome {
    match status.code() {
        Some(130) => Outcome::Interrupted,
        None if stopped => Outcome::Interrupted,
        // Leftovers of clean-up do not affect the result.
        Some(exit @ (0 | 1 | 5)) => Outcome::Measured { exit, verdict },
        Some(exit) => Outcome::Failed {
            exit: Some(exit),
            reason,
        },
        None => Outcome::Failed {
            exit: None,
            reason: format!(
                "killed by signal {}; {reason}",
                status.signal().unwrap_or(0)
            ),
        },
    }
}

/// Runs another command of this program for a cell that was measured. Its output is appended to the cell's.
///
/// # Errors
/// The last message of the command, if it failed.
pub(super) fn follow_up(
    dir: &Path,
    args: &[String],
    env: &BTreeMap<String, String>,
    stop: &StopHandle,
) -> Result<(), String> {
    let failed = |e: io::Error| e.to_string();
    let log = dir.join(OUTPUT);
    let before = std::fs::metadata(&log).map_or(0, |log| log.len());
    let said = File::options()
        .append(true)
        .create(true)
        .open(&log)
        .map_err(failed)?;
    let mut command = this_program(env, &said).map_err(failed)?;
    command.args(args).stdout(said);
    let status = command
        .spawn()
        .and_then(|mut child| wait(&mut child, stop))
        .map_err(failed)?;
    match status.success() {
        true => Ok(()),
        false => {
            let bytes = std::fs::read(&log).unwrap_or_default();
            let from = usize::try_from(before).unwrap_or(0).min(bytes.len());
            Err(last_words(&String::from_utf8_lossy(&bytes[from..])))
        }
    }
}

/// A command that calls this program, still without arguments.
fn this_program(env: &BTreeMap<String, String>, log: &File) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    if VARIABLES.iter().any(|name| env.contains_key(*name)) {
        // The user's own values point to other objects.
        for name in VARIABLES {
            command.env_remove(name);
        }
    }
    command
        .envs(env)
        // A study says itself what its runs do.
        .env(SWITCH, "off")
        .stdin(Stdio::null())
        .stderr(log.try_clone()?)
        // Ctrl-C reaches this process only, which passes it on once.
        .process_group(0);
    let server = env.keys().any(|name| name != "PATH");
    if server && !env.contains_key("AWS_CA_BUNDLE") {
        // The user's certificates are for other servers.
        command.env_remove("AWS_CA_BUNDLE");
    }
    // SAFETY: prctl is one system call; it neither allocates nor takes a lock.
    unsafe {
        command.pre_exec(|| {
            // If the study is killed, its cell is interrupted too, and still cleans up.
            match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGINT) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        });
    }
    Ok(command)
}

fn command(run: &CellRun<'_>, log: &Path, answer: &Path) -> io::Result<Command> {
    let log = File::create(log)?;
    let mut command = this_program(run.env, &log)?;
    command
        .arg(run.cell.command.name())
        .args(&run.args)
        .arg(format!("--out={}", run.dir.display()))
        .args(["--quiet", "--color=never"]);
    match run.cell.command {
        asked if asked.is_run() => {
            command.arg("--output=json").stdout(File::create(answer)?);
            if run.cell.workload == "ossperf" {
                // Keeps the line out of the user's results.csv.
                command.arg(format!(
                    "--results-csv={}",
                    with_suffix(&run.dir, ".csv").display()
                ));
            }
        }
        model::Command::MdWorkbench => {
            let info = with_suffix(&run.dir, ".status");
            command
                .arg(format!("--run-info-file={}", info.display()))
                .stdout(log);
        }
        _ => {
            command.stdout(log);
        }
    }
    Ok(command)
}

/// Waits for the child, and passes on each request to stop once.
fn wait(child: &mut Child, stop: &StopHandle) -> io::Result<ExitStatus> {
    let mut told = StopLevel::Run;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        let level = stop.level();
        if level != told {
            told = level;
            // The process id stays valid until its end is waited for.
            if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                let _ = kill_process(pid, Signal::INT);
            }
        }
        sleep(POLL);
    }
}

/// The verdict of a run; empty if there is none.
fn verdict(run: &CellRun<'_>, answer: &Path) -> String {
    let word = |value: &serde_json::Value| {
        let word = value
            .pointer("/verdict/word")
            .and_then(serde_json::Value::as_str);
        word.map(str::to_owned)
    };
    let found = match run.cell.command {
        asked if asked.is_run() => {
            let text = std::fs::read(answer).unwrap_or_default();
            serde_json::from_slice(&text)
                .ok()
                .and_then(|value| word(&value))
        }
        model::Command::Io500 | model::Command::MdWorkbench => {
            let result = analyze(&run.dir).ok();
            result
                .and_then(|result| serde_json::to_value(&result).ok())
                .and_then(|value| word(&value))
        }
        _ => None,
    };
    found.unwrap_or_default()
}

/// The last message of a program: from the last line that starts with its name to the end.
fn last_words(log: &str) -> String {
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    let from = lines
        .iter()
        .rposition(|line| line.starts_with("bucketload: ") || line.starts_with("error: "));
    let words = lines[from.unwrap_or(lines.len().saturating_sub(1))..].join("; ");
    let words = words
        .trim_start_matches("bucketload: ")
        .trim_start_matches("error: ");
    let short: String = words.chars().take(400).collect();
    match short.is_empty() {
        true => "it printed no message".to_owned(),
        false => short,
    }
}

fn with_suffix(dir: &Path, suffix: &str) -> PathBuf {
    let mut name = dir.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use super::{Outcome, judge, last_words};

    #[test]
    fn the_reason_is_the_last_message() {
        let log =
            "note\nbucketload: first\nbucketload: the target cannot be used\n  help: start it\n\n";
        assert_eq!(
            last_words(log),
            "the target cannot be used;   help: start it"
        );
        assert_eq!(last_words(""), "it printed no message");
        assert_eq!(last_words("a\nb"), "b");
    }

    #[test]
    fn exit_codes_are_classified() {
        let of = |raw: i32, stopped: bool| {
            judge(
                ExitStatus::from_raw(raw),
                "VALID".to_owned(),
                "why".to_owned(),
                stopped,
            )
        };
        let measured = |exit| Outcome::Measured {
            exit,
            verdict: "VALID".to_owned(),
        };
        assert_eq!(
            (of(0, false), of(1 << 8, false)),
            (measured(0), measured(1))
        );
        assert_eq!(of(5 << 8, false), measured(5));
        let failed = |exit, reason: &str| Outcome::Failed {
            exit,
            reason: reason.to_owned(),
        };
        assert_eq!(of(3 << 8, false), failed(Some(3), "why"));
        assert_eq!(of(9, false), failed(None, "killed by signal 9; why"));
        assert_eq!(of(130 << 8, false), Outcome::Interrupted);
        assert_eq!(of(9, true), Outcome::Interrupted);
        // A child that ended before the request reached it was measured.
        assert_eq!(of(0, true), measured(0));
    }
}
