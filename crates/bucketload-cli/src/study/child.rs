//! A cell as a child process of this program: begun, asked to end, judged.

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

use crate::hpc::gateway::VARIABLES;

/// How often a running child is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Where a cell goes, and with what.
pub(super) struct Call<'a> {
    /// The cell.
    pub(super) cell: &'a Cell,
    /// Arguments behind the command's name: those of cell and target.
    pub(super) args: Vec<String>,
    /// Its directory, which does not exist.
    pub(super) dir: PathBuf,
    /// Variables of the server: endpoints and credentials. They never stand in a process list.
    pub(super) env: &'a BTreeMap<String, String>,
}

/// What became of a cell.
#[derive(Debug, PartialEq)]
pub(super) enum Outcome {
    /// It was measured: exit code 0 or 1.
    Measured {
        /// Exit code.
        exit: i32,
        /// Verdict; empty where the command has none.
        verdict: String,
    },
    /// It was not.
    Failed {
        /// Exit code; `None` where a signal ended it.
        exit: Option<i32>,
        /// Why, in the child's words.
        reason: String,
    },
    /// The user stopped it.
    Interrupted,
}

/// Runs the cell to its end. The first request to stop is passed on, so that the child cleans up; the second one
/// aborts it.
///
/// # Errors
/// When there can be no child.
pub(super) fn run(call: &Call<'_>, stop: &StopHandle) -> io::Result<Outcome> {
    // The child refuses a directory that holds something: its words go beside it until it has ended.
    let log = with_suffix(&call.dir, ".log");
    let answer = with_suffix(&call.dir, ".json");
    let mut command = command(call, &log, &answer)?;
    let mut child = command.spawn()?;
    let status = wait(&mut child, stop)?;
    let reason = last_words(&std::fs::read_to_string(&log).unwrap_or_default());
    let verdict = verdict(call, &answer);
    std::fs::create_dir_all(&call.dir)?;
    std::fs::rename(&log, call.dir.join(OUTPUT))?;
    // Its run directory has all that they say.
    for suffix in [".json", ".csv", ".status"] {
        let _ = std::fs::remove_file(with_suffix(&call.dir, suffix));
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
        // What a clean-up left takes nothing from the result.
        Some(exit @ (0 | 1 | 5)) => Outcome::Measured { exit, verdict },
        Some(exit) => Outcome::Failed {
            exit: Some(exit),
            reason,
        },
        None => Outcome::Failed {
            exit: None,
            reason: format!("ended by signal {}; {reason}", status.signal().unwrap_or(0)),
        },
    }
}

/// Calls this program once more for a cell that was measured, to its end; what it says goes behind the cell's words.
///
/// # Errors
/// Why it did not do what it should.
pub(super) fn more(
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
    let mut command = own(env, &said).map_err(failed)?;
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

/// A call of this program without arguments.
fn own(env: &BTreeMap<String, String>, log: &File) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    if VARIABLES.iter().any(|name| env.contains_key(*name)) {
        // The user's own say where other objects are.
        for name in VARIABLES {
            command.env_remove(name);
        }
    }
    command
        .envs(env)
        .stdin(Stdio::null())
        .stderr(log.try_clone()?)
        // Ctrl-C reaches this process alone, which passes it on once.
        .process_group(0);
    let server = env.keys().any(|name| name != "PATH");
    if server && !env.contains_key("AWS_CA_BUNDLE") {
        // The user's certificates concern other servers.
        command.env_remove("AWS_CA_BUNDLE");
    }
    // SAFETY: prctl is one system call; it neither allocates nor takes a lock.
    unsafe {
        command.pre_exec(|| {
            // A study that is killed takes its cell along, which then still cleans up.
            match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGINT) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        });
    }
    Ok(command)
}

fn command(call: &Call<'_>, log: &Path, answer: &Path) -> io::Result<Command> {
    let log = File::create(log)?;
    let mut command = own(call.env, &log)?;
    command
        .arg(call.cell.command.name())
        .args(&call.args)
        .arg(format!("--out={}", call.dir.display()))
        .args(["--quiet", "--color=never"]);
    match call.cell.command {
        model::Command::Run => {
            command.arg("--output=json").stdout(File::create(answer)?);
            if call.cell.workload == "ossperf" {
                // Not into the user's results.csv.
                command.arg(format!(
                    "--results-csv={}",
                    with_suffix(&call.dir, ".csv").display()
                ));
            }
        }
        model::Command::MdWorkbench => {
            let info = with_suffix(&call.dir, ".status");
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

/// Waits for the child and passes requests to stop on, each once.
fn wait(child: &mut Child, stop: &StopHandle) -> io::Result<ExitStatus> {
    let mut told = StopLevel::Run;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        let level = stop.level();
        if level != told {
            told = level;
            // Its number is its own as long as nobody has waited for its end.
            if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                let _ = kill_process(pid, Signal::INT);
            }
        }
        sleep(LOOK);
    }
}

/// The verdict of a run; empty where there is none.
fn verdict(call: &Call<'_>, answer: &Path) -> String {
    let word = |value: &serde_json::Value| {
        let word = value
            .pointer("/verdict/word")
            .and_then(serde_json::Value::as_str);
        word.map(str::to_owned)
    };
    let found = match call.cell.command {
        model::Command::Run => {
            let text = std::fs::read(answer).unwrap_or_default();
            serde_json::from_slice(&text)
                .ok()
                .and_then(|value| word(&value))
        }
        model::Command::Io500 | model::Command::MdWorkbench => {
            let result = analyze(&call.dir).ok();
            result
                .and_then(|result| serde_json::to_value(&result).ok())
                .and_then(|value| word(&value))
        }
        _ => None,
    };
    found.unwrap_or_default()
}

/// What a program said last: from its last line that begins with its name.
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
        true => "it said nothing".to_owned(),
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
    fn the_reason_is_what_was_said_last() {
        let log =
            "note\nbucketload: first\nbucketload: the target cannot be used\n  help: start it\n\n";
        assert_eq!(
            last_words(log),
            "the target cannot be used;   help: start it"
        );
        assert_eq!(last_words(""), "it said nothing");
        assert_eq!(last_words("a\nb"), "b");
    }

    #[test]
    fn exit_codes_are_those_of_the_program() {
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
        assert_eq!(of(9, false), failed(None, "ended by signal 9; why"));
        assert_eq!(of(130 << 8, false), Outcome::Interrupted);
        assert_eq!(of(9, true), Outcome::Interrupted);
        // What ended by itself before the request reached it was measured.
        assert_eq!(of(0, true), measured(0));
    }
}
