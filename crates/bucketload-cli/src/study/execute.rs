//! The cells of a plan, one after the other, each written down before and after.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::time::Instant;

use bucketload_run::{StopHandle, StopLevel};
use bucketload_study::journal::{self, End, Journal, JournalError, State};
use bucketload_study::layout;
use bucketload_study::model::{Cell, Experiment, JournalLine, Plan, Study};
use bucketload_study::report;

use super::child::{self, Call, Outcome};
use super::placement::Oracle;
use super::programs::Programs;
use super::script::Scripts;
use super::servers::{Ready, own_dir, ready};
use super::{check, settle, summary};
use crate::commands::docs::print;
use crate::exit::{Exit, Failure, OrFail};
use crate::experiment::command_line;
use crate::job::unix_ns;
use crate::signals;

/// What is said where a target could not be used.
const OTHERS: &str = "bucketload: targets were left out, as said above: with what they need on this machine, the same \
    command with --retry measures them; a store that runs already is measured with \
    --target NAME=s3://BUCKET --endpoint-url URL and credentials in the environment";
/// Beside a result whose run exits with 5.
pub(super) const LEFT: &str = "its clean-up left something in the target";

/// Measures what the study in `dir` lacks and reports it.
///
/// # Errors
/// When the directory cannot be written, or another process works in it.
pub(super) fn execute(
    dir: &Path,
    study: &Study,
    plan: &Plan,
    scripts: Scripts,
    retry: bool,
    quiet: bool,
) -> Result<Exit, Failure> {
    let lock = File::create(dir.join("lock")).map_err(|e| failed(dir, &e))?;
    if rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_err() {
        return Err(Failure::usage(format!(
            "--dir {}: another process measures this study; wait for it, or name another directory",
            dir.display()
        )));
    }
    let stop = signals::watched()?;
    let mut course = Course {
        dir,
        study,
        plan,
        scripts,
        quiet,
        stop,
        journal: Journal::open(dir).map_err(journal_failed)?,
        state: State::of(&journal::read(dir).map_err(journal_failed)?),
        begun: Instant::now(),
        ready: None,
        unusable: BTreeMap::new(),
        programs: Programs::default(),
    };
    course.note(JournalLine::Session {
        at_unix_ns: unix_ns(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command_line: command_line(),
    })?;
    course.programs = course.find_programs(retry);
    let interrupted = course.cells(retry)?;
    // Servers end before the report is made.
    course.ready = None;
    let reason = if interrupted {
        "interrupted"
    } else {
        "complete"
    };
    course.note(JournalLine::Ended {
        at_unix_ns: unix_ns(),
        reason: reason.to_owned(),
    })?;
    let unusable = !course.unusable.is_empty();
    drop(course);
    let exit = conclude(dir, study, plan, quiet)?;
    if unusable && !quiet {
        eprintln!("{OTHERS}");
    }
    if interrupted {
        eprintln!("bucketload: interrupted; the same command goes on with the study");
        return Ok(Exit::Interrupted);
    }
    Ok(exit)
}

/// Whether the study in `dir` has cells that did not end.
pub(super) fn is_unfinished(dir: &Path, plan: &Plan) -> bool {
    let state = journal::read(dir)
        .map(|lines| State::of(&lines))
        .unwrap_or_default();
    plan.cells.iter().any(|cell| state.is_open(&cell.id, false))
}

/// Prints what became of the cells, and makes the report.
///
/// # Errors
/// When the directory cannot be read or written.
pub(super) fn conclude(
    dir: &Path,
    study: &Study,
    plan: &Plan,
    quiet: bool,
) -> Result<Exit, Failure> {
    let state = State::of(&journal::read(dir).map_err(journal_failed)?);
    print(summary::text(study, plan, &state).as_bytes())?;
    let page = report::write(dir).or_aborted()?;
    if !quiet {
        eprintln!("bucketload: cells: {}", dir.join(layout::CELLS).display());
        eprintln!("bucketload: report: {}", page.display());
    }
    let ends = plan.cells.iter().filter_map(|cell| state.end_of(&cell.id));
    let (mut finished, mut bad, mut left) = (0, 0, false);
    for end in ends {
        match end {
            End::Finished { exit, .. } => {
                finished += 1;
                bad += u32::from(!matches!(exit, 0 | 5));
                left |= *exit == 5;
            }
            End::Failed { .. } => bad += 1,
            End::Skipped { .. } => {}
        }
    }
    Ok(match (finished, bad) {
        (0, _) => Exit::Target,
        (_, 0) => Exit::Ok.or_leftovers(left),
        _ => Exit::GateFailed,
    })
}

fn failed(dir: &Path, error: &std::io::Error) -> Failure {
    Failure::aborted(format!("{}: {error}", dir.display()))
}

fn journal_failed(error: JournalError) -> Failure {
    Failure::aborted(error.to_string())
}

struct Course<'a> {
    dir: &'a Path,
    study: &'a Study,
    plan: &'a Plan,
    scripts: Scripts,
    quiet: bool,
    stop: StopHandle,
    journal: Journal,
    state: State,
    begun: Instant,
    /// The target in use.
    ready: Option<(String, Ready)>,
    /// Targets that could not be made ready in this session, and why.
    unusable: BTreeMap<String, String>,
    /// Programs of engines.
    programs: Programs,
}

impl Course<'_> {
    fn note(&mut self, line: JournalLine) -> Result<(), Failure> {
        self.journal.append(&line).map_err(journal_failed)
    }

    /// Looks for the programs of the cells that are to be done.
    fn find_programs(&self, retry: bool) -> Programs {
        let open = |cell: &&Cell| self.state.is_open(&cell.id, retry);
        let cells: Vec<&Cell> = self.plan.cells.iter().filter(open).collect();
        Programs::find(self.study, &cells, &self.scripts, |text| {
            self.progress(text, true);
        })
    }

    /// All open cells in order. Returns whether the user stopped them.
    fn cells(&mut self, retry: bool) -> Result<bool, Failure> {
        let earlier_ns = self.state.active_ns;
        for (index, cell) in self.plan.cells.iter().enumerate() {
            if !self.state.is_open(&cell.id, retry) {
                continue;
            }
            if self.stop.level() != StopLevel::Run {
                return Ok(true);
            }
            let used = earlier_ns + nanos(self.begun);
            if let Some(budget) = self.plan.budget_ns
                && used.saturating_add(cell.estimate_ns) > budget
            {
                let reason = format!(
                    "the budget of {} does not hold it",
                    summary::seconds(budget)
                );
                self.skip(index, cell, reason)?;
                continue;
            }
            if let Some(reason) = check::lacks(cell).or_else(|| self.programs.lacks(cell)) {
                self.skip(index, cell, reason)?;
                continue;
            }
            if let Err(reason) = self.make_ready(cell)? {
                if self.stop.level() != StopLevel::Run {
                    return Ok(true);
                }
                self.skip(index, cell, reason)?;
                continue;
            }
            if self.cell(index, cell)? == Outcome::Interrupted {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Turns to the cell's target; the one in use before ends first.
    fn make_ready(&mut self, cell: &Cell) -> Result<Result<(), String>, Failure> {
        if self
            .ready
            .as_ref()
            .is_some_and(|(name, _)| *name == cell.target)
        {
            return Ok(Ok(()));
        }
        if let Some(reason) = self.unusable.get(&cell.target) {
            return Ok(Err(reason.clone()));
        }
        self.ready = None;
        let Some(target) = self
            .study
            .targets
            .iter()
            .find(|target| target.name == cell.target)
        else {
            return Ok(Err(format!("the study has no target {}", cell.target)));
        };
        if !target.server.is_empty() {
            self.progress(
                &format!("starting {} for {}", target.server, target.name),
                false,
            );
        }
        let begun = Instant::now();
        match ready(target, self.dir, &self.scripts, &self.stop) {
            Ok(mut made) => {
                if let Some(path) = self.programs.path() {
                    made.env.insert("PATH".to_owned(), path);
                }
                self.ready = Some((target.name.clone(), made));
                let took_ns = if target.server.is_empty() {
                    0
                } else {
                    nanos(begun)
                };
                self.note(JournalLine::Ready {
                    at_unix_ns: unix_ns(),
                    target: target.name.clone(),
                    took_ns,
                })?;
                Ok(Ok(()))
            }
            Err(reason) => {
                self.unusable.insert(target.name.clone(), reason.clone());
                Ok(Err(reason))
            }
        }
    }

    fn skip(&mut self, index: usize, cell: &Cell, reason: String) -> Result<(), Failure> {
        self.progress(
            &format!("{}: left out: {reason}", self.place(index, cell)),
            true,
        );
        let line = JournalLine::Skipped {
            at_unix_ns: unix_ns(),
            cell: cell.id.clone(),
            reason,
        };
        self.note(line.clone())?;
        self.learn(line);
        Ok(())
    }

    fn cell(&mut self, index: usize, cell: &Cell) -> Result<Outcome, Failure> {
        let place = self.place(index, cell);
        self.progress(&format!("{place} …{}", self.remaining(index)), false);
        let pause = settle::pause(self.study.recovery_ns, self.study.settle_ns, &self.stop);
        if self.stop.level() != StopLevel::Run {
            return Ok(Outcome::Interrupted);
        }
        let relative = self.state.next_dir(cell);
        let started = JournalLine::Started {
            at_unix_ns: unix_ns(),
            cell: cell.id.clone(),
            dir: relative.clone(),
            pause_ns: pause.took_ns,
            busy: pause.busy,
        };
        self.note(started.clone())?;
        self.learn(started);
        let begun = Instant::now();
        let oracle = self.oracle(cell);
        let (mut args, env) = self.args(cell);
        if oracle.is_some_and(Oracle::needs_objects) {
            args.push("--keep".to_owned());
        }
        let nothing = BTreeMap::new();
        let call = Call {
            cell,
            args,
            dir: self.dir.join(&relative),
            env: env.unwrap_or(&nothing),
        };
        let outcome = child::run(&call, &self.stop).map_err(|e| failed(&call.dir, &e))?;
        let mut unplaced = None;
        if let (Some(oracle), Outcome::Measured { .. }) = (oracle, &outcome) {
            unplaced = oracle.look_up(&call, &self.stop).err();
            if self.stop.level() != StopLevel::Run {
                return Ok(Outcome::Interrupted);
            }
        }
        if let Some(reason) = unplaced {
            self.progress(&format!("{place}: no placement: {reason}"), true);
            self.note(JournalLine::Unplaced {
                at_unix_ns: unix_ns(),
                cell: cell.id.clone(),
                reason,
            })?;
        }
        let took_ns = nanos(begun);
        let (line, said) = match &outcome {
            Outcome::Interrupted => return Ok(outcome),
            Outcome::Measured { exit, verdict } => (
                JournalLine::Finished {
                    at_unix_ns: unix_ns(),
                    cell: cell.id.clone(),
                    dir: relative,
                    exit: *exit,
                    verdict: verdict.clone(),
                    took_ns,
                },
                match (verdict.as_str(), *exit) {
                    ("", 0) => "done".to_owned(),
                    (verdict, 0) => verdict.to_owned(),
                    ("", 5) => format!("done; {LEFT}"),
                    (verdict, 5) => format!("{verdict}; {LEFT}"),
                    ("", _) => "done; a gate failed".to_owned(),
                    (verdict, _) => format!("{verdict}; a gate failed"),
                },
            ),
            Outcome::Failed { exit, reason } => (
                JournalLine::Failed {
                    at_unix_ns: unix_ns(),
                    cell: cell.id.clone(),
                    dir: relative,
                    exit: *exit,
                    reason: reason.clone(),
                },
                format!("failed: {reason}"),
            ),
        };
        self.note(line.clone())?;
        self.learn(line);
        let took = summary::tenths(took_ns);
        self.progress(
            &format!("{place}: {said}, {took}{}", self.remaining(index + 1)),
            true,
        );
        Ok(outcome)
    }

    /// Who knows where the objects of the target in use lie, if the report shows the load of its nodes.
    fn oracle(&self, cell: &Cell) -> Option<&Oracle> {
        let experiments = self.study.experiments.iter();
        let shown = experiments
            .filter(|e| e.name == cell.experiment)
            .any(Experiment::shows_balance);
        let (_, ready) = self.ready.as_ref().filter(|_| shown)?;
        ready.oracle.as_ref()
    }

    /// The arguments of the cell on the target in use, and its variables.
    fn args(&self, cell: &Cell) -> (Vec<String>, Option<&BTreeMap<String, String>>) {
        let own = own_dir(self.dir, &cell.target);
        let mut args: Vec<String> = cell.args.iter().map(|arg| check::fill(arg, &own)).collect();
        let ready = self.ready.as_ref().map(|(_, ready)| ready);
        if let Some(ready) = ready.filter(|_| cell.command.takes_target()) {
            args.extend(ready.args.iter().cloned());
        }
        (args, ready.map(|ready| &ready.env))
    }

    /// Takes a line into account as a later session would.
    fn learn(&mut self, line: JournalLine) {
        let known = State::of(&[line]);
        for (id, news) in known.cells {
            let cell = self.state.cells.entry(id).or_default();
            cell.attempts += news.attempts;
            cell.end = news.end;
        }
    }

    fn place(&self, index: usize, cell: &Cell) -> String {
        let value = match cell.value.is_empty() {
            true => String::new(),
            false => format!(" {} {}", cell.field, cell.value),
        };
        format!(
            "[{}/{}] {} on {}{value}, repetition {}",
            index + 1,
            self.plan.cells.len(),
            cell.experiment,
            cell.target,
            cell.repetition
        )
    }

    /// The time that the cells from `index` on will take: as long as their like took, else as planned.
    fn remaining(&self, index: usize) -> String {
        let mut known: BTreeMap<(&str, &str, &str), (u64, u64)> = BTreeMap::new();
        for cell in &self.plan.cells {
            if let Some(End::Finished { took_ns, .. }) = self.state.end_of(&cell.id) {
                let (sum, count) = known
                    .entry((&cell.experiment, &cell.target, &cell.value))
                    .or_default();
                *sum += took_ns;
                *count += 1;
            }
        }
        let open = self.plan.cells[index..]
            .iter()
            .filter(|cell| self.state.is_open(&cell.id, false));
        let open: Vec<&Cell> = open
            .filter(|cell| !self.unusable.contains_key(&cell.target))
            .collect();
        if open.is_empty() {
            return String::new();
        }
        let each = open.iter().map(|cell| {
            let like = known.get(&(
                cell.experiment.as_str(),
                cell.target.as_str(),
                cell.value.as_str(),
            ));
            self.study.recovery_ns
                + like.map_or(cell.estimate_ns + 2_000_000_000, |(sum, count)| sum / count)
        });
        let left: u64 = each.fold(0, u64::saturating_add);
        format!("; about {} left", summary::seconds(left))
    }

    /// A line on standard error; one that is not `done` is drawn over on a terminal and left out elsewhere.
    fn progress(&self, text: &str, done: bool) {
        if self.quiet {
            return;
        }
        let mut stderr = std::io::stderr();
        let terminal = stderr.is_terminal();
        // Nothing depends on whether it can be shown.
        let _ = match (terminal, done) {
            (true, true) => writeln!(stderr, "\r\x1b[K{text}"),
            (true, false) => write!(stderr, "\r\x1b[K{text}").and_then(|()| stderr.flush()),
            (false, true) => writeln!(stderr, "{text}"),
            (false, false) => Ok(()),
        };
    }
}

fn nanos(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
