//! Runs the cells of a plan one after another, with a line in the journal before and after each.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::time::Instant;

use bucketload_results::journal::Journal;
use bucketload_run::{StopHandle, StopLevel};
use bucketload_study::conversations;
use bucketload_study::journal::{self, End, State};
use bucketload_study::layout;
use bucketload_study::model::{Cell, Experiment, JournalLine, Plan, Study};
use bucketload_study::report;

use super::child::{self, CellRun, Outcome};
use super::placement::PlacementLookup;
use super::programs::Programs;
use super::script::Scripts;
use super::servers::{ReadyTarget, own_dir, ready};
use super::{check, settle, summary};
use crate::commands::docs::print;
use crate::exit::{Exit, Failure, OrFail};
use crate::experiment::command_line;
use crate::job::{forget_hollow, unix_ns};
use crate::signals;

/// Advice if a target could not be used.
const SKIPPED_TARGETS: &str = "bucketload: some targets were skipped, see above. Install what they need and repeat the \
    command with --retry; or measure a store that already runs with --target NAME=s3://BUCKET --endpoint-url URL and \
    credentials in the environment";
/// Files of a study of which nothing was measured.
const KNOWN: [&str; 6] = [
    layout::STUDY,
    layout::PLAN,
    layout::JOURNAL,
    conversations::FILE,
    layout::OUTPUT,
    LOCK,
];
const LOCK: &str = "lock";
/// Note on a cell whose run exits with 5.
pub(super) const LEFTOVERS: &str = "clean-up left objects in the target";

/// Measures the open cells of the study in `dir`, and writes the report. `fresh` says of a directory that this session
/// made whether it existed before, empty: if every cell was refused, nothing remains of it, and the next attempt starts
/// anew.
///
/// # Errors
/// When the directory cannot be written, or another process uses it.
pub(super) fn execute(
    dir: &Path,
    study: &Study,
    plan: &Plan,
    scripts: Scripts,
    retry: bool,
    fresh: Option<bool>,
    quiet: bool,
) -> Result<Exit, Failure> {
    let lock = File::create(dir.join(LOCK)).map_err(|e| failed(dir, &e))?;
    if rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_err() {
        return Err(Failure::usage(format!(
            "--dir {}: another process is measuring this study; wait for it, or name another directory",
            dir.display()
        )));
    }
    let stop = signals::watched()?;
    let mut execution = Execution {
        dir,
        study,
        plan,
        scripts,
        quiet,
        stop,
        journal: journal::open(dir).or_aborted()?,
        state: State::of(&journal::read(dir).or_aborted()?),
        started: Instant::now(),
        ready: None,
        unusable: BTreeMap::new(),
        programs: Programs::default(),
    };
    execution.note(JournalLine::Session {
        at_unix_ns: unix_ns(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command_line: command_line(),
    })?;
    execution.programs = execution.find_programs(retry);
    let interrupted = execution.cells(retry)?;
    // Stops the servers before writing the report.
    execution.ready = None;
    let reason = if interrupted {
        "interrupted"
    } else {
        "complete"
    };
    execution.note(JournalLine::Ended {
        at_unix_ns: unix_ns(),
        reason: reason.to_owned(),
    })?;
    let unusable = !execution.unusable.is_empty();
    if let (Some(existed), false) = (fresh, interrupted)
        && plan.cells.iter().all(|cell| execution.refused(cell))
    {
        print(summary::text(study, plan, &execution.state).as_bytes())?;
        drop(execution);
        let facts = study
            .targets
            .iter()
            .map(|target| format!("{}.json", target.name));
        let facts: Vec<String> = facts.collect();
        let known: Vec<&str> = KNOWN
            .into_iter()
            .chain(facts.iter().map(String::as_str))
            .collect();
        forget_hollow(dir, existed, &known).or_aborted()?;
        if unusable && !quiet {
            eprintln!("{SKIPPED_TARGETS}");
        }
        return Ok(Exit::Target);
    }
    drop(execution);
    let exit = conclude(dir, study, plan, quiet)?;
    if unusable && !quiet {
        eprintln!("{SKIPPED_TARGETS}");
    }
    if interrupted {
        eprintln!("bucketload: interrupted; repeat the command to continue the study");
        return Ok(Exit::Interrupted);
    }
    Ok(exit)
}

/// Whether the study in `dir` has cells that did not finish.
pub(super) fn is_unfinished(dir: &Path, plan: &Plan) -> bool {
    let state = journal::read(dir)
        .map(|lines| State::of(&lines))
        .unwrap_or_default();
    plan.cells.iter().any(|cell| state.is_open(&cell.id, false))
}

/// Prints a summary of the cells, and writes the report.
///
/// # Errors
/// When the directory cannot be read or written.
pub(super) fn conclude(
    dir: &Path,
    study: &Study,
    plan: &Plan,
    quiet: bool,
) -> Result<Exit, Failure> {
    let state = State::of(&journal::read(dir).or_aborted()?);
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

struct Execution<'a> {
    dir: &'a Path,
    study: &'a Study,
    plan: &'a Plan,
    scripts: Scripts,
    quiet: bool,
    stop: StopHandle,
    journal: Journal<JournalLine>,
    state: State,
    started: Instant,
    /// Name and handle of the current target.
    ready: Option<(String, ReadyTarget)>,
    /// Targets that could not be started in this session, with the reasons.
    unusable: BTreeMap<String, String>,
    programs: Programs,
}

impl Execution<'_> {
    /// Whether the cell was skipped, or refused before anything was measured.
    fn refused(&self, cell: &Cell) -> bool {
        match self.state.end_of(&cell.id) {
            Some(End::Skipped { .. }) => true,
            Some(End::Failed { exit, .. }) => [Exit::Usage, Exit::Target]
                .map(|e| i32::from(e.code()))
                .contains(&exit.unwrap_or(0)),
            Some(End::Finished { .. }) | None => false,
        }
    }

    /// Appends a line to the journal, and updates the state as a later session would when it reads the line.
    fn note(&mut self, line: JournalLine) -> Result<(), Failure> {
        self.journal.append(&line).or_aborted()?;
        for (id, news) in State::of(&[line]).cells {
            let cell = self.state.cells.entry(id).or_default();
            cell.attempts += news.attempts;
            cell.end = news.end;
        }
        Ok(())
    }

    /// Looks for the client programs of the open cells.
    fn find_programs(&self, retry: bool) -> Programs {
        let open = |cell: &&Cell| self.state.is_open(&cell.id, retry);
        let cells: Vec<&Cell> = self.plan.cells.iter().filter(open).collect();
        Programs::find(self.study, &cells, &self.scripts, |text| {
            self.progress(text, true);
        })
    }

    /// Runs all open cells in order. Returns whether the user interrupted them.
    fn cells(&mut self, retry: bool) -> Result<bool, Failure> {
        let earlier_ns = self.state.active_ns;
        for (index, cell) in self.plan.cells.iter().enumerate() {
            if !self.state.is_open(&cell.id, retry) {
                continue;
            }
            if self.stop.level() != StopLevel::Run {
                return Ok(true);
            }
            let used = earlier_ns + nanos(self.started);
            if let Some(budget) = self.plan.budget_ns
                && used.saturating_add(cell.estimate_ns) > budget
            {
                let reason = format!(
                    "does not fit into the time budget of {}",
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

    /// Switches to the cell's target, after stopping the previous one.
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
            &format!("{}: skipped: {reason}", self.label(index, cell)),
            true,
        );
        self.note(JournalLine::Skipped {
            at_unix_ns: unix_ns(),
            cell: cell.id.clone(),
            reason,
        })
    }

    fn cell(&mut self, index: usize, cell: &Cell) -> Result<Outcome, Failure> {
        let label = self.label(index, cell);
        self.progress(&format!("{label} …{}", self.remaining(index)), false);
        let pause = settle::pause(self.study.recovery_ns, self.study.settle_ns, &self.stop);
        if self.stop.level() != StopLevel::Run {
            return Ok(Outcome::Interrupted);
        }
        let relative = self.state.next_dir(cell);
        self.note(JournalLine::Started {
            at_unix_ns: unix_ns(),
            cell: cell.id.clone(),
            dir: relative.clone(),
            pause_ns: pause.took_ns,
            busy: pause.busy,
        })?;
        let begun = Instant::now();
        let lookup = self.lookup(cell);
        let (mut args, env) = self.args(cell);
        if lookup.is_some_and(PlacementLookup::needs_objects) {
            args.push("--keep".to_owned());
        }
        let nothing = BTreeMap::new();
        let call = CellRun {
            cell,
            args,
            dir: self.dir.join(&relative),
            env: env.unwrap_or(&nothing),
        };
        let outcome = child::run(&call, &self.stop).map_err(|e| failed(&call.dir, &e))?;
        let mut unplaced = None;
        if let (Some(lookup), Outcome::Measured { .. }) = (lookup, &outcome) {
            unplaced = lookup.look_up(&call, &self.stop).err();
            if self.stop.level() != StopLevel::Run {
                return Ok(Outcome::Interrupted);
            }
        }
        if let Some(reason) = unplaced {
            self.progress(&format!("{label}: no placement: {reason}"), true);
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
                    ("", 5) => format!("done; {LEFTOVERS}"),
                    (verdict, 5) => format!("{verdict}; {LEFTOVERS}"),
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
        self.note(line)?;
        let took = summary::tenths(took_ns);
        self.progress(
            &format!("{label}: {said}, {took}{}", self.remaining(index + 1)),
            true,
        );
        Ok(outcome)
    }

    /// The lookup of object placement on the current target, if the report shows the load of its nodes.
    fn lookup(&self, cell: &Cell) -> Option<&PlacementLookup> {
        let experiments = self.study.experiments.iter();
        let shown = experiments
            .filter(|e| e.name == cell.experiment)
            .any(Experiment::shows_balance);
        let (_, ready) = self.ready.as_ref().filter(|_| shown)?;
        ready.lookup.as_ref()
    }

    /// The cell's arguments on the current target, and the target's variables.
    fn args(&self, cell: &Cell) -> (Vec<String>, Option<&BTreeMap<String, String>>) {
        let own = own_dir(self.dir, &cell.target);
        let mut args: Vec<String> = cell.args.iter().map(|arg| check::fill(arg, &own)).collect();
        if let Some(at) = args.iter().position(|arg| *arg == check::OWN_TRACE) {
            let trace = self.dir.join(conversations::FILE);
            let trace = std::path::absolute(&trace).unwrap_or(trace);
            args[at] = format!("--trace={}", trace.display());
        }
        let ready = self.ready.as_ref().map(|(_, ready)| ready);
        if let Some(ready) = ready.filter(|_| cell.command.takes_target()) {
            args.extend(ready.args.iter().cloned());
        }
        (args, ready.map(|ready| &ready.env))
    }

    fn label(&self, index: usize, cell: &Cell) -> String {
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

    /// The remaining time from cell `index` on, based on finished cells of the same kind, else on the plan.
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

    /// Prints a line on standard error. A line that is not `done` is overwritten on a terminal and omitted elsewhere.
    fn progress(&self, text: &str, done: bool) {
        if self.quiet {
            return;
        }
        let mut stderr = std::io::stderr();
        let terminal = stderr.is_terminal();
        // Progress that cannot be printed is not an error.
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
