//! Keeps to the schedule of a drill while the run measures: judges the baseline, breaks, mends. It mends whatever is broken
//! when the load ends, however it ends.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use bucketload_core::drill::{DrillPlan, Entry, Fault, JUDGE_NS, What};
use bucketload_core::sink::{Event, RunSink};
use bucketload_core::tally::Interval;
use bucketload_core::verdict::Word;
use bucketload_faultline::Order;
use bucketload_results::drill::judge_baseline;
use bucketload_results::rundir::redact;
use bucketload_run::{StopHandle, StopLevel, now_ns};

use super::hooks::{Around, run, until_ok};
use super::journal::Journal;
use super::line::FaultLine;

/// How often the stage looks whether the run is to end.
const LOOK: Duration = Duration::from_millis(50);

/// Everything that the stage needs.
pub(crate) struct Setting {
    pub(crate) drill: DrillPlan,
    pub(crate) seed: u64,
    pub(crate) endpoints: Vec<String>,
    /// The target in words, for hooks.
    pub(crate) target: String,
    /// The run directory.
    pub(crate) out: PathBuf,
    /// Verdicts on the baseline with which things are broken all the same.
    pub(crate) accept: Vec<Word>,
    /// The highest quantile that matters, which the baseline has to be long enough for.
    pub(crate) quantile: f64,
    /// Index of the measured phase.
    pub(crate) phase: u16,
}

/// How a drill went, besides its figures.
#[derive(Debug, Default)]
pub(crate) struct Course {
    /// Why nothing was broken.
    pub(crate) refused: Option<String>,
    /// What went wrong while breaking and mending.
    pub(crate) troubles: Vec<String>,
}

enum Edge {
    Began(u64),
    Ended,
}

/// Tells the stage when the measured phase begins and ends.
pub(crate) struct Watch {
    edges: Sender<Edge>,
    phase: u16,
}

impl RunSink for Watch {
    fn event(&mut self, event: &Event) {
        // A stage that is gone has said why.
        let _ = match event {
            Event::PhaseStarted { phase, at_ns } if *phase == self.phase => {
                self.edges.send(Edge::Began(*at_ns))
            }
            Event::PhaseEnded { phase, .. } if *phase == self.phase => self.edges.send(Edge::Ended),
            _ => return,
        };
    }

    fn interval(&mut self, _: &Interval) {}
}

/// Starts the stage. It stops the run by `stop` if the baseline allows nothing to be broken.
///
/// # Errors
/// When the kernel gives no thread.
pub(crate) fn start(
    setting: Setting,
    line: Option<FaultLine>,
    stop: StopHandle,
) -> Result<(Watch, JoinHandle<Course>), String> {
    let (edges, receiver) = channel();
    let watch = Watch {
        edges,
        phase: setting.phase,
    };
    let thread = std::thread::Builder::new().name("drill".to_owned());
    let thread = thread.spawn(move || {
        let mut stage = Stage {
            setting: Arc::new(setting),
            line,
            edges: receiver,
            stop,
            course: Course::default(),
            broken: Vec::new(),
            hooks: Vec::new(),
        };
        if let Err(why) = stage.carry_out() {
            // Without a journal nothing may be broken; the run ends, because it is not the drill that was asked for.
            stage.course.troubles.push(why);
            stage.stop.stop();
        }
        // Audit and clean-up go through the fault line too: it stays until the run is over.
        while stage.edges.recv().is_ok() {}
        stage.course
    });
    Ok((watch, thread.map_err(|e| format!("drill: {e}"))?))
}

/// A thread that runs the commands of a hook.
struct Hook {
    fault: usize,
    thread: JoinHandle<Vec<String>>,
}

struct Stage {
    setting: Arc<Setting>,
    line: Option<FaultLine>,
    edges: Receiver<Edge>,
    stop: StopHandle,
    course: Course,
    /// Faults that are on, with how often they came before.
    broken: Vec<(usize, u32)>,
    hooks: Vec<Hook>,
}

impl Stage {
    fn carry_out(&mut self) -> Result<(), String> {
        let Ok(Edge::Began(began)) = self.edges.recv() else {
            return Ok(());
        };
        let setting = Arc::clone(&self.setting);
        let drill = &setting.drill;
        let journal = Arc::new(Journal::open(&setting.out)?);
        let endpoints = setting
            .endpoints
            .iter()
            .map(|url| redact::text(url))
            .collect();
        let seed = setting.seed;
        journal.add(&Entry::Plan {
            drill: drill.clone(),
            seed,
            endpoints,
        })?;
        journal.add(&Entry::Began { at_ns: began })?;
        // What was spent on preparing objects is not the load's.
        self.note_cost(&journal)?;
        let baseline = began + drill.baseline_end_ns();
        // The intervals of the baseline are written soon after its end.
        if !self.until(baseline + JUDGE_NS / 4) {
            return Ok(());
        }
        let verdict = judge_baseline(&setting.out, &setting.accept, setting.quantile);
        let carried = self.line.as_mut().map(FaultLine::cost).transpose()?;
        let verdict = match carried {
            Some((_, _, 0)) => Err("no connection goes through the fault line: this client does not use the endpoints \
                 of the target"
                .to_owned()),
            _ => verdict,
        };
        let (valid, why) = match verdict {
            Ok(why) => (true, why),
            Err(why) => (false, why),
        };
        journal.add(&Entry::Baseline {
            at_ns: now_ns(),
            valid,
            why: why.clone(),
        })?;
        if !valid {
            self.course.refused = Some(why);
            self.stop.stop();
            return Ok(());
        }
        let first = (baseline + JUDGE_NS).max(now_ns());
        let done = self.play(first, &journal);
        self.mend_all(&journal);
        done
    }

    /// Waits until `at`; false if the load has ended or is to end. What is broken would hold up operations that are still
    /// in flight then, so it is mended at once.
    fn until(&self, at: u64) -> bool {
        loop {
            if self.stop.level() != StopLevel::Run {
                return false;
            }
            let left = Duration::from_nanos(at.saturating_sub(now_ns()));
            match self.edges.recv_timeout(left.min(LOOK)) {
                Err(RecvTimeoutError::Timeout) if left <= LOOK => return true,
                Err(RecvTimeoutError::Timeout) => {}
                _ => return false,
            }
        }
    }

    /// Breaks and mends as planned, counted from `first`, then waits for the end of the load.
    fn play(&mut self, first: u64, journal: &Arc<Journal>) -> Result<(), String> {
        let mut acts = Vec::new();
        for (index, fault) in self.setting.drill.faults.iter().enumerate() {
            for (round, (from, to)) in (0..).zip(fault.rounds()) {
                acts.push((from, true, index, round));
                acts.push((to, false, index, round));
            }
        }
        // What ends goes before what begins at the same instant.
        acts.sort_unstable();
        for (at, breaks, index, round) in acts {
            if !self.until(first + at) {
                return Ok(());
            }
            match breaks {
                true => self.break_one(index, round, journal)?,
                false => self.mend_one(index, round, journal)?,
            }
        }
        // Until the load ends; a sender that is gone is an end too.
        let _ = self.edges.recv();
        Ok(())
    }

    fn break_one(
        &mut self,
        index: usize,
        round: u32,
        journal: &Arc<Journal>,
    ) -> Result<(), String> {
        let fault = &self.setting.drill.faults[index];
        match &fault.what {
            What::Hook { mend, limit_ns, .. } => {
                let (mend, limit_ns) = (mend.clone(), *limit_ns);
                journal.add(&Entry::Owed {
                    fault: index,
                    mend,
                    limit_ns,
                })?;
                self.broken.push((index, round));
                journal.add(&Entry::Broke {
                    fault: index,
                    round,
                    at_ns: now_ns(),
                })?;
                self.spawn(index, true, journal)
            }
            _ => {
                let Some(line) = &mut self.line else {
                    return Ok(());
                };
                let at_ns = line.order(Order::Break {
                    fault: index,
                    round,
                })?;
                self.broken.push((index, round));
                journal.add(&Entry::Broke {
                    fault: index,
                    round,
                    at_ns,
                })
            }
        }
    }

    fn mend_one(&mut self, index: usize, round: u32, journal: &Arc<Journal>) -> Result<(), String> {
        self.broken.retain(|(fault, _)| *fault != index);
        if self.setting.drill.faults[index].is_hook() {
            journal.add(&Entry::Mended {
                fault: index,
                round,
                at_ns: now_ns(),
            })?;
            return self.spawn(index, false, journal);
        }
        let Some(line) = &mut self.line else {
            return Ok(());
        };
        let at_ns = line.order(Order::Mend { fault: index })?;
        journal.add(&Entry::Mended {
            fault: index,
            round,
            at_ns,
        })
    }

    /// Runs the commands of a hook in a thread, after those of the same fault that still run.
    fn spawn(&mut self, index: usize, breaks: bool, journal: &Arc<Journal>) -> Result<(), String> {
        let before = self.hooks.iter().position(|hook| hook.fault == index);
        let before = before.map(|at| self.hooks.swap_remove(at).thread);
        let (setting, journal) = (Arc::clone(&self.setting), Arc::clone(journal));
        let thread = std::thread::Builder::new()
            .name("hook".to_owned())
            .spawn(move || {
                let mut troubles = before.map_or_else(Vec::new, joined);
                let fault = &setting.drill.faults[index];
                troubles.extend(commands(fault, index, breaks, &setting, &journal));
                troubles
            });
        let thread = thread.map_err(|e| format!("hook: {e}"))?;
        self.hooks.push(Hook {
            fault: index,
            thread,
        });
        Ok(())
    }

    /// Mends what is still broken, waits for all commands and asks what the fault line cost.
    fn mend_all(&mut self, journal: &Arc<Journal>) {
        for (index, round) in std::mem::take(&mut self.broken) {
            if let Err(why) = self.mend_one(index, round, journal) {
                self.course.troubles.push(why);
            }
        }
        for hook in self.hooks.drain(..) {
            self.course.troubles.extend(joined(hook.thread));
        }
        let noted = self.note_cost(journal);
        self.course.troubles.extend(noted.err());
    }

    /// Notes what the fault line has cost so far.
    fn note_cost(&mut self, journal: &Journal) -> Result<(), String> {
        let Some(line) = &mut self.line else {
            return Ok(());
        };
        let (cpu_ns, bytes, connections) = line.cost()?;
        journal.add(&Entry::Cost {
            cpu_ns,
            bytes,
            connections,
        })
    }
}

fn joined(thread: JoinHandle<Vec<String>>) -> Vec<String> {
    thread
        .join()
        .unwrap_or_else(|_| vec!["hook: its thread panicked".to_owned()])
}

/// Runs the commands that break, or those that mend and check. Returns what went wrong.
fn commands(
    fault: &Fault,
    index: usize,
    breaks: bool,
    setting: &Setting,
    journal: &Journal,
) -> Vec<String> {
    let What::Hook {
        r#break,
        mend,
        check,
        limit_ns,
    } = &fault.what
    else {
        return Vec::new();
    };
    let limit = Duration::from_nanos(*limit_ns);
    let mut troubles = Vec::new();
    let mut ended = |hook: &'static str, call: &dyn Fn(&Around<'_>) -> Result<(), String>| {
        let around = Around {
            fault: &fault.name,
            hook,
            target: &setting.target,
            endpoints: &setting.endpoints,
            run: &setting.out,
        };
        let outcome = call(&around);
        if let Err(why) = &outcome {
            troubles.push(format!(
                "the command `{hook}` of {} failed: {why}",
                fault.name
            ));
        }
        let said = outcome
            .as_ref()
            .map_or_else(String::clone, |()| "ok".to_owned());
        let entry = Entry::Ran {
            fault: index,
            hook: hook.to_owned(),
            outcome: said,
            at_ns: now_ns(),
        };
        troubles.extend(journal.add(&entry).err());
        outcome.is_ok()
    };
    match breaks {
        true => drop(ended("break", &|around| run(r#break, limit, around))),
        false => {
            if ended("mend", &|around| run(mend, limit, around)) && !check.is_empty() {
                ended("check", &|around| until_ok(check, limit, around));
            }
        }
    }
    troubles
}
