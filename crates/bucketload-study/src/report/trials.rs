//! Cells that are studies of several trials themselves: the grid of files, and the access paths.

use std::path::Path;

use bucketload_core::ai::AiFigures;
use bucketload_core::verdict::Word;
use bucketload_results::grid::cell::Figures as GridFigures;
use bucketload_results::grid::{CLIENT_BOUND_BELOW, GridStudy, Record, StepRecord};
use bucketload_results::hpc::HpcStudy;
use bucketload_results::study;

use super::digest::{Figures, Run, Slot};
use super::groups::Group;
use super::read::Files;
use crate::model::{Cell, Command};

/// Adds one group per row (and number of processes) of the cells' trials to `out`; adds `group` itself if none was
/// measured.
pub(super) fn expand(
    files: &Files,
    command: Command,
    mut group: Group,
    cells: &[&Cell],
    out: &mut Vec<Group>,
) {
    let first = out.len();
    for cell in cells {
        let mut groups = Groups {
            cell,
            group: &group,
            first,
            out,
        };
        let read = files.measured(cell).and_then(|dir| {
            let read = match command {
                Command::StudyGrid => grid(&dir, &mut groups),
                _ => hpc(&dir, &mut groups),
            };
            read.map_err(|why| format!("failed: {why}"))
        });
        if let Err(why) = read {
            group.missing.push((cell.id.clone(), why));
        }
    }
    if out.len() == first || !group.missing.is_empty() {
        group.planned = group.missing.len();
        out.push(group);
    }
}

/// Collects the trials of a cell in the groups from `first` on, which are derived from `group`.
struct Groups<'a> {
    cell: &'a Cell,
    group: &'a Group,
    first: usize,
    out: &'a mut Vec<Group>,
}

impl Groups<'_> {
    /// Adds a trial as a run of the group with the key of `like`; adds `like` as a new group if necessary.
    fn put(
        &mut self,
        like: Group,
        repetition: u32,
        word: Word,
        rules: Vec<String>,
        slots: Vec<Slot>,
    ) {
        let same = |g: &Group| {
            (&g.target, &g.value, g.processes) == (&like.target, &like.value, like.processes)
        };
        let at = match self.out[self.first..].iter().position(same) {
            Some(at) => self.first + at,
            None => {
                self.out.push(like);
                self.out.len() - 1
            }
        };
        let group = &mut self.out[at];
        group.planned += 1;
        group.runs.push(Run {
            ai: AiFigures::new(),
            cell: self.cell.id.clone(),
            repetition: (self.cell.repetition.max(1) - 1) + repetition + 1,
            word,
            rules,
            slots,
        });
    }

    /// The common part of a cell's groups.
    fn blank(&self) -> Group {
        Group {
            target: self.group.target.clone(),
            label: self.group.label.clone(),
            look: self.group.look,
            ..Group::default()
        }
    }
}

fn grid(dir: &Path, groups: &mut Groups<'_>) -> Result<(), String> {
    let files = study::read::<GridStudy>(dir).map_err(|e| e.to_string())?;
    let floor = |row: &str, processes: u32, step: &str| -> Option<f64> {
        let of_cell = |t: &&Record| t.floor && t.row == row && t.processes == processes;
        let steps = files.trials.iter().filter(of_cell).flat_map(|t| &t.steps);
        let of_step = steps.filter(|s| s.step == step);
        let times: Vec<f64> = of_step.flat_map(StepRecord::t_s).collect();
        (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64)
    };
    for trial in files.trials.iter().filter(|trial| !trial.floor) {
        let Some(row) = files.header.rows.iter().find(|row| row.name == trial.row) else {
            continue;
        };
        let mut like = Group {
            value: trial.row.clone(),
            number: Some(row.size_bytes as f64),
            processes: trial.processes,
            ..groups.blank()
        };
        like.extra.files = Some((row.files, row.size_bytes));
        let mut word = Word::Valid;
        let mut rules = Vec::new();
        let slots = trial.steps.iter().map(|step| {
            let bytes = match step.step.as_str() {
                "write" | "read" => row.size_bytes,
                _ => 0,
            };
            let of_each = step.ok as f64 / f64::from(trial.processes.max(1));
            let figures = GridFigures::of(of_each, bytes, &step.t_s(), step.wall_s());
            word = word.max(step.verdict);
            let floor = floor(&trial.row, trial.processes, &step.step);
            if floor.is_some_and(|floor| figures.mean_s < CLIENT_BOUND_BELOW * floor) {
                word = word.max(Word::ClientBound);
                rules = vec!["floor".to_owned()];
            }
            let [p50, _, p99, max] = step.latency_ns.map(|ns| ns as f64);
            slot(
                &step.step,
                Figures {
                    ok: step.ok,
                    failed: step.failed,
                    ops_per_s: figures.r_mean,
                    bytes_per_s: figures.a_mean * 1_048_576.0,
                    wall_ops_per_s: Some(figures.r_wall),
                    wall_bytes_per_s: Some(figures.a_wall * 1_048_576.0),
                    max_ns: max,
                    quantiles_ns: [Some(p50), None, Some(p99), None],
                    ..Figures::default()
                },
            )
        });
        let slots: Vec<Slot> = slots.collect();
        groups.put(like, trial.repetition, word, rules, slots);
    }
    Ok(())
}

fn hpc(dir: &Path, groups: &mut Groups<'_>) -> Result<(), String> {
    let files = study::read::<HpcStudy>(dir).map_err(|e| e.to_string())?;
    for trial in &files.trials {
        let mut rows = files.header.rows.iter();
        let like = Group {
            target: trial.row.clone(),
            label: trial.row.clone(),
            look: rows.position(|row| row.name == trial.row).unwrap_or(0),
            value: bucketload_results::units::bytes(trial.size_bytes as f64),
            number: Some(trial.size_bytes as f64),
            processes: trial.processes,
            ..groups.blank()
        };
        let (word, rules) = match trial.steps.iter().any(|step| step.failed > 0) {
            true => (Word::Degraded, vec!["V7".to_owned()]),
            false => (Word::Valid, Vec::new()),
        };
        let slots = trial.steps.iter().map(|step| {
            let time = |ns: u64| (ns > 0).then_some(ns as f64);
            slot(
                &step.step,
                Figures {
                    ok: step.ok,
                    failed: step.failed,
                    ops_per_s: step.rate(step.ok),
                    bytes_per_s: step.rate(step.bytes),
                    quantiles_ns: [time(step.p50_ns), None, time(step.p99_ns), None],
                    ..Figures::default()
                },
            )
        });
        groups.put(like, trial.repetition, word, rules, slots.collect());
    }
    Ok(())
}

/// The figures of a step, as a phase.
fn slot(step: &str, figures: Figures) -> Slot {
    Slot {
        phase: step.to_owned(),
        class: String::new(),
        figures,
    }
}
