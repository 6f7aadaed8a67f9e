//! COSBench's triggers: scripts around the workload and its stages, only where the user allows it and on this host.
//!
//! `trigger="NAME(ARGUMENT,…)"` starts DIR/NAME with the arguments before the stage, and DIR/NAME -k after it. The run
//! waits for the first call for a moment only, because it may be a monitor that runs as long as the stage. What still
//! runs after `-k` is killed. All output goes to scripts.log in the run directory.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use bucketload_cosbench::Workload;
use bucketload_run::{EdgeHook, PhaseEdge};
use rustix::process::{Pid, Signal, kill_process_group};

use super::RunMode;
use super::plan::stage_phases;
use crate::cli::cosbench::CosbenchArgs;

/// Longest wait for a script before its stage; it may go on during the stage.
const START_LIMIT: Duration = Duration::from_secs(10);
/// Longest run of a script with `-k`.
const STOP_LIMIT: Duration = Duration::from_secs(60);
/// Time between two looks at a script that runs.
const LOOK: Duration = Duration::from_millis(10);
/// File in the run directory with the output of all scripts.
const LOG: &str = "scripts.log";

/// A script and the phases around which it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trigger {
    script: PathBuf,
    arguments: Vec<String>,
    /// The first phase of its stage.
    first: usize,
    /// The last phase of its stage; `None` for the workload, whose script ends with the run.
    last: Option<usize>,
}

/// The triggers of a workload; none, with a note, if they are not allowed.
///
/// # Errors
/// When a script does not exist in the allowed directory or cannot be run, with its stage.
pub(super) fn triggers(
    workload: &Workload,
    args: &CosbenchArgs,
    mode: RunMode,
    notes: &mut Vec<String>,
) -> Result<Vec<Trigger>, String> {
    let phases = stage_phases(workload);
    let mut named = Vec::new();
    if let Some(text) = &workload.trigger {
        named.push(("the workload".to_owned(), text, 0, None));
    }
    for (index, stage) in workload.stages.iter().enumerate() {
        let first = phases.iter().position(|phase| phase.stage == index);
        let last = phases.iter().rposition(|phase| phase.stage == index);
        if let (Some(text), Some(first)) = (&stage.trigger, first) {
            named.push((format!("stage `{}`", stage.name), text, first, last));
        }
    }
    if named.is_empty() {
        return Ok(Vec::new());
    }
    let Some(dir) = &args.allow_triggers else {
        notes.push(
            "triggers are not run, because they are commands from a file; allow the scripts of a directory with \
             --allow-triggers DIR"
                .to_owned(),
        );
        return Ok(Vec::new());
    };
    if mode.agents {
        notes.push("triggers run on this machine only, not on the agents".to_owned());
    }
    let found = named.into_iter().map(|(place, text, first, last)| {
        let (script, arguments) =
            parse(text, dir).map_err(|e| format!("trigger of {place}: {e}"))?;
        Ok(Trigger {
            script,
            arguments,
            first,
            last,
        })
    });
    found.collect()
}

/// Reads `NAME(ARGUMENT,…)`.
fn parse(text: &str, dir: &Path) -> Result<(PathBuf, Vec<String>), String> {
    use std::os::unix::fs::PermissionsExt as _;

    let text = text.trim();
    let (name, arguments) = match text.split_once('(') {
        None => (text, ""),
        Some((name, rest)) => match rest.strip_suffix(')') {
            Some(arguments) => (name, arguments),
            None => {
                return Err(format!(
                    "`{text}` has no closing parenthesis; write NAME(ARGUMENT,ARGUMENT)"
                ));
            }
        },
    };
    let name = name.trim();
    if name.is_empty() || name.contains('/') || name.starts_with('.') {
        return Err(format!(
            "`{name}` is not the name of a script; write its name without a directory"
        ));
    }
    let script = dir.join(name);
    let at = |why: &str| format!("{}: {why}", script.display());
    let about = script.metadata().map_err(|e| {
        at(&format!(
            "{e}; put the script there, or name its directory with --allow-triggers"
        ))
    })?;
    if !about.is_file() || about.permissions().mode() & 0o111 == 0 {
        return Err(at("this file is not executable; make it so with chmod +x"));
    }
    let script = std::path::absolute(&script).map_err(|e| at(&e.to_string()))?;
    let arguments = arguments.split(',').map(|a| a.trim().to_owned());
    Ok((script, arguments.filter(|a| !a.is_empty()).collect()))
}

/// The hook that runs `triggers` during a run with the directory `out`.
pub(crate) fn hook(triggers: Vec<Trigger>, out: &Path) -> EdgeHook {
    let mut scripts = Scripts {
        triggers,
        log: out.join(LOG),
        started: Vec::new(),
    };
    let hook: Box<dyn FnMut(PhaseEdge) -> Result<(), String>> =
        Box::new(move |edge| scripts.at(edge));
    hook.into()
}

/// The scripts of a run. Those that still run are killed on drop.
struct Scripts {
    triggers: Vec<Trigger>,
    log: PathBuf,
    /// The processes of scripts before their stages, by number of the trigger.
    started: Vec<(usize, Child)>,
}

impl Scripts {
    fn at(&mut self, edge: PhaseEdge) -> Result<(), String> {
        let affected = |trigger: &Trigger| match edge {
            PhaseEdge::Begin(phase) => trigger.first == phase,
            PhaseEdge::End(phase) => trigger.last == Some(phase),
            PhaseEdge::RunEnd => true,
        };
        let chosen: Vec<usize> = (0..self.triggers.len())
            .filter(|&i| affected(&self.triggers[i]))
            .collect();
        match edge {
            PhaseEdge::Begin(_) => chosen.into_iter().try_for_each(|i| self.start(i)),
            // Also after a stage that broke off; every script is stopped, and the first error told.
            _ => chosen
                .into_iter()
                .map(|i| self.stop(i))
                .fold(Ok(()), Result::and),
        }
    }

    fn start(&mut self, index: usize) -> Result<(), String> {
        let trigger = &self.triggers[index];
        let arguments = trigger.arguments.clone();
        let mut child = self.spawn(index, &arguments)?;
        let ended = wait(&mut child, START_LIMIT);
        // Noted even if it failed, so that `-k` undoes what it did.
        self.started.push((index, child));
        self.check(index, ended, "")
    }

    fn stop(&mut self, index: usize) -> Result<(), String> {
        let Some(at) = self.started.iter().position(|(known, _)| *known == index) else {
            return Ok(());
        };
        let (_, mut started) = self.started.remove(at);
        let ended = self.spawn(index, &["-k".to_owned()]).and_then(|mut child| {
            let ended = wait(&mut child, STOP_LIMIT);
            let late = matches!(ended, Ok(None));
            kill(&mut child);
            match late {
                true => Err(format!(
                    "the trigger {} -k took longer than {} s and was killed",
                    self.triggers[index].script.display(),
                    STOP_LIMIT.as_secs()
                )),
                false => self.check(index, ended, " -k"),
            }
        });
        kill(&mut started);
        ended
    }

    fn check(
        &self,
        index: usize,
        ended: io::Result<Option<ExitStatus>>,
        flag: &str,
    ) -> Result<(), String> {
        let script = self.triggers[index].script.display();
        let log = self.log.display();
        match ended {
            Ok(Some(status)) if !status.success() => Err(format!(
                "the trigger {script}{flag} failed ({status}); its output is in {log}"
            )),
            Ok(_) => Ok(()),
            Err(e) => Err(format!("the trigger {script}{flag}: {e}")),
        }
    }

    fn spawn(&self, index: usize, arguments: &[String]) -> Result<Child, String> {
        let script = &self.triggers[index].script;
        let spawn = || -> io::Result<Child> {
            let mut log: File = OpenOptions::new()
                .create(true)
                .append(true)
                .open(&self.log)?;
            writeln!(log, "== {} {}", script.display(), arguments.join(" "))?;
            Command::new(script)
                .args(arguments)
                .stdin(Stdio::null())
                .stdout(log.try_clone()?)
                .stderr(log)
                // Signals of the terminal are for the run, which stops its scripts itself.
                .process_group(0)
                .spawn()
        };
        spawn().map_err(|e| format!("the trigger {}: {e}", script.display()))
    }
}

impl Drop for Scripts {
    fn drop(&mut self) {
        self.started.iter_mut().for_each(|(_, child)| kill(child));
    }
}

/// Waits at most `limit`; `None` if the process still runs.
fn wait(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let end = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            return Ok(None);
        }
        std::thread::sleep(LOOK);
    }
}

/// Kills what is left of a script, with the processes that it started.
fn kill(child: &mut Child) {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(group) = group {
        // There may be nothing left.
        let _ = kill_process_group(group, Signal::KILL);
    }
    // A killed process ends at once; one that has ended is only collected.
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use bucketload_run::PhaseEdge;

    use super::{Trigger, hook, parse};

    fn script(dir: &Path, name: &str, text: &str) {
        let path = dir.join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_trigger_names_a_script_of_the_allowed_directory() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        script(dir, "x.sh", "true");
        fs::write(dir.join("plain"), "").unwrap();
        let (found, arguments) = parse("x.sh(a, b c)", dir).unwrap();
        assert_eq!(
            (found.as_path(), arguments),
            (
                dir.join("x.sh").as_path(),
                vec!["a".to_owned(), "b c".to_owned()]
            )
        );
        assert!(parse(" x.sh ", dir).unwrap().1.is_empty());
        for (wrong, remedy) in [
            ("x.sh(a", "closing parenthesis"),
            ("../x.sh", "without a directory"),
            ("/bin/sh", "without a directory"),
            ("absent.sh()", "--allow-triggers"),
            ("plain", "chmod +x"),
            ("(a)", "name of a script"),
        ] {
            let refused = parse(wrong, dir).unwrap_err();
            assert!(refused.contains(remedy), "{wrong}: {refused}");
        }
    }

    #[test]
    fn scripts_run_around_their_stage_and_nothing_is_left_of_them() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let text = "echo called with \"$@\" >> \"$(dirname \"$0\")/trace\"; [ \"$1\" != fail ]";
        script(dir, "quick.sh", text);
        let trigger = |name: &str, argument: &str, first, last| Trigger {
            script: dir.join(name),
            arguments: vec![argument.to_owned()],
            first,
            last,
        };
        let run = hook(
            vec![
                trigger("quick.sh", "workload", 0, None),
                trigger("quick.sh", "stage", 1, Some(2)),
                trigger("quick.sh", "fail", 3, Some(3)),
            ],
            dir,
        );
        let at = |edge| run.borrow_mut()(edge);
        for edge in [
            PhaseEdge::Begin(0),
            PhaseEdge::End(0),
            PhaseEdge::Begin(1),
            PhaseEdge::End(1),
            PhaseEdge::Begin(2),
            PhaseEdge::End(2),
        ] {
            at(edge).unwrap();
        }
        let refused = at(PhaseEdge::Begin(3)).unwrap_err();
        assert!(
            refused.contains("scripts.log") && refused.contains("exit status: 1"),
            "{refused}"
        );
        at(PhaseEdge::RunEnd).unwrap();
        let called = fs::read_to_string(dir.join("trace")).unwrap();
        let called: Vec<&str> = called.lines().map(|line| &line[12..]).collect();
        assert_eq!(called, ["workload", "stage", "-k", "fail", "-k", "-k"]);
        let log = fs::read_to_string(dir.join("scripts.log")).unwrap();
        assert_eq!(log.matches("== ").count(), 6, "{log}");
    }
}
