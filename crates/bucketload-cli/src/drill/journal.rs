//! The journal of a drill, `drill.jsonl` in the run directory: what broke and when, and what is owed.
//!
//! The process that runs the drill holds a lock on it, so nobody mends a drill that is still running.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use bucketload_core::drill::Entry;
use bucketload_results::drill::{JOURNAL, read_journal};

use super::hooks::{Around, run};
use crate::exit::{Exit, Failure, OrFail};

/// A journal that is being written.
pub(crate) struct Journal {
    file: Mutex<File>,
    path: PathBuf,
}

impl Journal {
    /// Opens the journal in the run directory `dir`, and locks it.
    ///
    /// # Errors
    /// When it cannot be written, or another process has it.
    pub(crate) fn open(dir: &Path) -> Result<Self, String> {
        let path = dir.join(JOURNAL);
        let failed = |why: String| format!("{}: {why}", path.display());
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let file = file.map_err(|e| failed(e.to_string()))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(failed("the drill is still running".to_owned()));
            }
            Err(TryLockError::Error(e)) => return Err(failed(e.to_string())),
        }
        Ok(Self {
            file: Mutex::new(file),
            path,
        })
    }

    /// Adds an entry; it is on disk when this returns.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn add(&self, entry: &Entry) -> Result<(), String> {
        let failed = |e: std::io::Error| format!("{}: {e}", self.path.display());
        let mut line = serde_json::to_vec(entry).map_err(|e| failed(e.into()))?;
        line.push(b'\n');
        // A thread that panicked while it wrote leaves at most a torn line, which readers skip.
        let mut file = self.file.lock().unwrap_or_else(|held| held.into_inner());
        file.write_all(&line)
            .and_then(|()| file.sync_data())
            .map_err(failed)
    }
}

/// A command that mends and has not succeeded yet.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Debt {
    fault: usize,
    mend: String,
    limit_ns: u64,
}

/// What the entries owe.
fn owed(entries: &[Entry]) -> Vec<Debt> {
    let mut debts: Vec<Debt> = Vec::new();
    for entry in entries {
        match entry {
            Entry::Owed {
                fault,
                mend,
                limit_ns,
            } => {
                debts.retain(|debt| debt.fault != *fault);
                debts.push(Debt {
                    fault: *fault,
                    mend: mend.clone(),
                    limit_ns: *limit_ns,
                });
            }
            Entry::Ran {
                fault,
                hook,
                outcome,
                ..
            } if hook == "mend" && outcome == "ok" => {
                debts.retain(|debt| debt.fault != *fault);
            }
            _ => {}
        }
    }
    debts
}

/// Runs what the drill in `dir` owes. Returns the number of commands.
///
/// # Errors
/// When the directory has no journal, the drill is still running, or a command fails.
fn settle(dir: &Path) -> Result<usize, Failure> {
    let journal = Journal::open(dir).or_usage()?;
    let entries = read_journal(dir).or_usage()?;
    let debts = owed(&entries);
    let (name, endpoints) = entries
        .iter()
        .find_map(|entry| match entry {
            Entry::Plan {
                drill, endpoints, ..
            } => Some((drill.faults.clone(), endpoints.clone())),
            _ => None,
        })
        .unwrap_or_default();
    for debt in &debts {
        let fault = name
            .get(debt.fault)
            .map(|fault| fault.name.as_str())
            .unwrap_or_default();
        eprintln!("bucketload: mending {fault}: {}", debt.mend);
        let around = Around {
            fault,
            hook: "mend",
            target: "",
            endpoints: &endpoints,
            run: dir,
        };
        let outcome = run(&debt.mend, Duration::from_nanos(debt.limit_ns), &around);
        let said = outcome
            .as_ref()
            .map_or_else(String::clone, |()| "ok".to_owned());
        journal
            .add(&Entry::Ran {
                fault: debt.fault,
                hook: "mend".to_owned(),
                outcome: said,
                at_ns: bucketload_run::now_ns(),
            })
            .or_aborted()?;
        if let Err(why) = outcome {
            return Err(Failure::leftovers(format!(
                "the command that mends {fault} failed: {why}\n  help: mend the store by hand, or repeat \
                 bucketload drill --mend {}",
                dir.display()
            )));
        }
    }
    Ok(debts.len())
}

/// `bucketload drill --mend DIR`.
///
/// # Errors
/// As [`settle`].
pub(crate) fn mend(dir: &Path, quiet: bool) -> Result<Exit, Failure> {
    if !dir.join(JOURNAL).is_file() {
        return Err(Failure::usage(format!(
            "--mend {}: there is no {JOURNAL}; name the run directory of a drill",
            dir.display()
        )));
    }
    let count = settle(dir)?;
    if !quiet {
        match count {
            0 => eprintln!("bucketload: the drill owes nothing"),
            count => eprintln!("bucketload: {count} commands run"),
        }
    }
    Ok(Exit::Ok)
}

/// Runs what killed drills owe whose run directories are in `runs`. Drills that are still running are left alone.
///
/// # Errors
/// When a command fails.
pub(crate) fn settle_all(runs: &Path) -> Result<(), Failure> {
    for entry in runs.read_dir().into_iter().flatten().flatten() {
        let dir = entry.path();
        let debts = read_journal(&dir)
            .map(|entries| owed(&entries))
            .unwrap_or_default();
        if !debts.is_empty() && Journal::open(&dir).is_ok() {
            settle(&dir)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use bucketload_core::drill::Entry;

    use super::{Journal, owed, settle};

    fn debt(fault: usize, mend: &str) -> Entry {
        Entry::Owed {
            fault,
            mend: mend.to_owned(),
            limit_ns: 5_000_000_000,
        }
    }

    fn ran(fault: usize, hook: &str, outcome: &str) -> Entry {
        Entry::Ran {
            fault,
            hook: hook.to_owned(),
            outcome: outcome.to_owned(),
            at_ns: 1,
        }
    }

    #[test]
    fn only_a_mend_that_succeeded_settles() {
        assert_eq!(owed(&[debt(0, "x"), ran(0, "mend", "ok")]), []);
        assert_eq!(owed(&[debt(0, "x"), ran(0, "break", "ok")]).len(), 1);
        assert_eq!(
            owed(&[debt(0, "x"), ran(0, "mend", "exit status: 1")]).len(),
            1
        );
        assert_eq!(
            owed(&[
                debt(0, "x"),
                debt(1, "y"),
                ran(0, "mend", "ok"),
                debt(0, "x")
            ])
            .len(),
            2
        );
    }

    #[test]
    fn debts_are_settled_once_and_never_while_the_drill_runs() {
        let dir = tempfile::tempdir().unwrap();
        let mended = dir.path().join("mended");
        let journal = Journal::open(dir.path()).unwrap();
        journal
            .add(&debt(0, &format!("echo x >> {}", mended.display())))
            .unwrap();
        assert!(
            settle(dir.path())
                .unwrap_err()
                .message
                .contains("still running")
        );
        drop(journal);
        assert_eq!(settle(dir.path()).unwrap(), 1);
        assert_eq!(settle(dir.path()).unwrap(), 0);
        assert_eq!(std::fs::read_to_string(mended).unwrap(), "x\n");
    }
}
