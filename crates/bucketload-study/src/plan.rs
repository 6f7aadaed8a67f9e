//! Plans a study: its cells in order.
//!
//! A block is one repetition of everything. With [`Order::Random`], blocks are randomised complete blocks, so drift
//! over time affects all cells alike. Servers that the study starts cannot run side by side, as they would compete
//! for the processors; a block then goes target by target: targets in random order, the cells of each in random
//! order. [`Order::Abba`] alternates one random order forwards and backwards, which cancels a linear drift (Box,
//! Hunter and Hunter, Statistics for Experimenters, ch. 4).

use bucketload_core::generate::rng::mix64;
use bucketload_core::units::format_duration;

use crate::model::{
    Cell, Command, Experiment, MIN_FOR_INTERVAL, OptionValue, Options, Order, Plan, SCHEMA, Study,
    Target,
};

/// Limit on the repetitions with which a budget is filled.
const MAX_FILLED: u32 = 20;
/// Time of a cell besides its run: process start, calibration, analysis.
const PER_CELL_NS: u64 = 1_500_000_000;
/// Time to start and stop a server, per block.
const PER_SERVER_NS: u64 = 8_000_000_000;

/// Settings of a plan that are not part of the study.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlanOptions {
    /// Time for everything, nanoseconds.
    pub budget_ns: Option<u64>,
    /// Repetitions of every cell, overriding the study.
    pub repetitions: Option<u32>,
}

/// Plans `study`. `estimate` gives the expected duration of a cell in nanoseconds, or the reason why the cell is impossible.
///
/// # Errors
/// The first error of `estimate`.
pub fn plan<E>(
    study: &Study,
    options: PlanOptions,
    version: &str,
    mut estimate: impl FnMut(&Cell) -> Result<u64, E>,
) -> Result<Plan, E> {
    let mut once = one_of_each(study);
    for (experiment, cell) in &mut once {
        cell.estimate_ns = match study.experiments[*experiment].estimate_ns {
            0 => estimate(cell)?,
            given => {
                // An impossible cell is refused even if its duration is given.
                estimate(cell)?;
                given
            }
        };
    }
    let mut notes = Vec::new();
    let repetitions = fit(study, &once, options, &mut notes);
    let most = repetitions.iter().copied().max().unwrap_or(0);
    let by_target = study.targets.iter().any(|target| !target.server.is_empty());
    let mut cells = Vec::new();
    for block in 1..=most {
        for index in order(study, &once, block, by_target) {
            let (experiment, cell) = &once[index];
            if block <= repetitions[*experiment] {
                cells.push(numbered(study.seed, cell, block, cells.len()));
            }
        }
    }
    notes.insert(0, order_note(study.order, by_target, most));
    Ok(Plan {
        schema: SCHEMA,
        study: study.name.clone(),
        version: version.to_owned(),
        seed: study.seed,
        order: study.order,
        budget_ns: options.budget_ns,
        estimate_ns: total(study, &once, &repetitions),
        notes,
        cells,
    })
}

fn order_note(order: Order, by_target: bool, blocks: u32) -> String {
    let inside = match (order, by_target) {
        (Order::Random, false) => "the cells of each in random order",
        (Order::Random, true) => {
            "in each, the targets one after another in random order, and the cells of each target in random order"
        }
        (Order::Abba, false) => "one random order, alternating forwards and backwards",
        (Order::Abba, true) => {
            "one random order of targets and their cells, alternating forwards and backwards"
        }
    };
    let plural = if blocks == 1 { "block" } else { "blocks" };
    format!("{blocks} complete {plural}, {inside}")
}

/// Every cell of a block, with the index of its experiment.
fn one_of_each(study: &Study) -> Vec<(usize, Cell)> {
    let mut cells = Vec::new();
    for (index, experiment) in study.experiments.iter().enumerate() {
        let values = match experiment.field.is_empty() {
            true => vec![String::new()],
            false => experiment.values.clone(),
        };
        for target in &study.targets {
            if !experiment.targets.is_empty() && !experiment.targets.contains(&target.name) {
                continue;
            }
            for value in &values {
                cells.push((index, cell(experiment, target, value)));
            }
        }
    }
    cells
}

fn cell(experiment: &Experiment, target: &Target, value: &str) -> Cell {
    let mut args = Vec::new();
    if experiment.command == Command::Kvcache {
        args.push(format!("--trace={}", experiment.workload));
    } else if experiment.command.takes_workload() {
        args.push(experiment.workload.clone());
    }
    let mut options = experiment.options.clone();
    if experiment.command.takes_target() {
        options.extend(target.options.clone());
    }
    if let Some(more) = experiment.value_options.get(value) {
        options.extend(more.clone());
    }
    if experiment.shows_balance() && experiment.field != "op-log" {
        // The operations' keys determine which requests went to which node.
        let logged = options
            .entry("op-log".to_owned())
            .or_insert(OptionValue::Switch(true));
        if *logged == OptionValue::Switch(false) {
            *logged = OptionValue::Switch(true);
        }
    }
    // The swept field comes last because it is the most specific.
    options.remove(&experiment.field);
    render(&options, &mut args);
    if experiment.field.contains('.') {
        args.push("--set".to_owned());
        args.push(format!("{}={value}", experiment.field));
    } else if !experiment.field.is_empty() {
        args.push(format!("--{}={value}", experiment.field));
    }
    Cell {
        id: String::new(),
        experiment: experiment.name.clone(),
        target: target.name.clone(),
        command: experiment.command,
        workload: experiment.workload.clone(),
        field: experiment.field.clone(),
        value: value.to_owned(),
        repetition: 0,
        block: 0,
        args,
        estimate_ns: 0,
    }
}

/// Appends options as command-line arguments.
pub fn render(options: &Options, args: &mut Vec<String>) {
    for (name, value) in options {
        match value {
            OptionValue::Switch(false) => {}
            OptionValue::Switch(true) => args.push(format!("--{name}")),
            OptionValue::Number(n) => args.push(format!("--{name}={n}")),
            OptionValue::Float(n) => args.push(format!("--{name}={n}")),
            OptionValue::Text(text) => args.push(format!("--{name}={text}")),
            OptionValue::Several(texts) => {
                args.extend(texts.iter().map(|text| format!("--{name}={text}")));
            }
        }
    }
}

/// The cell as part of a block.
fn numbered(seed: u64, cell: &Cell, block: u32, position: usize) -> Cell {
    let mut cell = cell.clone();
    cell.block = block;
    cell.repetition = block;
    let mut parts = vec![
        format!("{:03}", position + 1),
        cell.experiment.clone(),
        cell.target.clone(),
    ];
    if !cell.value.is_empty() {
        let safe = cell.value.chars().take(24).map(|c| match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '.' => c,
            _ => '-',
        });
        parts.push(safe.collect());
    }
    parts.push(format!("r{block}"));
    cell.id = parts.join("-");
    if cell.command.is_run() || matches!(cell.command, Command::Capacity | Command::StudyGrid) {
        // The same schedule on every target, but a different one in each repetition: repetitions with a common schedule
        // would share its luck.
        let drawn = mix64(seed ^ (u64::from(block) << 32)) >> 33;
        cell.args.push(format!("--seed={drawn}"));
    }
    cell
}

/// Repetitions of each experiment.
fn fit(
    study: &Study,
    once: &[(usize, Cell)],
    options: PlanOptions,
    notes: &mut Vec<String>,
) -> Vec<u32> {
    let own = |repetitions: u32, filled: bool| -> Vec<u32> {
        let experiments = study.experiments.iter();
        experiments
            .map(
                |experiment| match (options.repetitions, experiment.repetitions) {
                    (Some(requested), _) => requested.min(repetitions),
                    (None, 0) => repetitions,
                    (None, own) if filled => own.min(repetitions),
                    (None, own) => own,
                },
            )
            .collect()
    };
    let Some(budget) = options.budget_ns else {
        let repetitions = own(options.repetitions.unwrap_or(study.repetitions), false);
        few(&repetitions, notes);
        return repetitions;
    };
    let most = options
        .repetitions
        .unwrap_or(MAX_FILLED.max(study.repetitions));
    let fits = |n: &u32| total(study, once, &own(*n, true)) <= budget;
    let chosen = (1..=most).rev().find(fits);
    let repetitions = own(chosen.unwrap_or(1), true);
    let took = format_minutes(total(study, once, &repetitions));
    notes.push(match chosen {
        Some(n) => format!(
            "the budget of {} holds {n} repetition{} (estimated {took})",
            format_minutes(budget),
            if n == 1 { "" } else { "s" },
        ),
        None => format!(
            "one repetition is estimated at {took}, more than the budget of {}: cells that cannot start in time are \
             skipped and listed",
            format_minutes(budget)
        ),
    });
    few(&repetitions, notes);
    repetitions
}

/// Notes that some cells will have no interval.
fn few(repetitions: &[u32], notes: &mut Vec<String>) {
    if repetitions.iter().any(|n| *n < MIN_FOR_INTERVAL) {
        notes.push(format!(
            "cells with fewer than {MIN_FOR_INTERVAL} repetitions have no confidence interval"
        ));
    }
}

/// Expected duration of everything, nanoseconds.
fn total(study: &Study, once: &[(usize, Cell)], repetitions: &[u32]) -> u64 {
    let cells: u64 = once
        .iter()
        .map(|(experiment, cell)| {
            let each = cell.estimate_ns + study.recovery_ns + PER_CELL_NS;
            each.saturating_mul(u64::from(repetitions[*experiment]))
        })
        .fold(0, u64::saturating_add);
    let servers = study
        .targets
        .iter()
        .filter(|target| !target.server.is_empty())
        .count() as u64;
    let blocks = u64::from(repetitions.iter().copied().max().unwrap_or(0));
    cells.saturating_add(servers * blocks * PER_SERVER_NS)
}

/// The indices of `once` in the order of `block`.
fn order(study: &Study, once: &[(usize, Cell)], block: u32, by_target: bool) -> Vec<usize> {
    let draw = match study.order {
        Order::Random => block,
        Order::Abba => 1,
    };
    let mut random = Random::new(study.seed, draw);
    let mut order: Vec<usize> = (0..once.len()).collect();
    random.shuffle(&mut order);
    if by_target {
        let mut targets: Vec<&str> = study
            .targets
            .iter()
            .map(|target| target.name.as_str())
            .collect();
        random.shuffle(&mut targets);
        // A stable sort keeps the random order inside each target.
        order.sort_by_key(|index| {
            let name = once[*index].1.target.as_str();
            targets.iter().position(|target| *target == name)
        });
    }
    if study.order == Order::Abba && block.is_multiple_of(2) {
        order.reverse();
    }
    order
}

/// Random numbers that depend only on seed and block.
struct Random {
    state: u64,
}

impl Random {
    fn new(seed: u64, block: u32) -> Self {
        Self {
            state: mix64(seed ^ mix64(u64::from(block))),
        }
    }

    /// Fisher and Yates's shuffle (Knuth, vol. 2, 3.4.2 P).
    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            // The odd constant of Steele, Lea and Flood's SplitMix64 steps the counter.
            self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let drawn = mix64(self.state);
            // The bias of this multiplication is below 2^-50 for all realistic list lengths.
            let other = (u128::from(drawn) * (last as u128 + 1)) >> 64;
            items.swap(last, usize::try_from(other).unwrap_or(last));
        }
    }
}

/// A duration in whole seconds, as `1m 30s`.
fn format_minutes(ns: u64) -> String {
    format_duration(ns / 1_000_000_000 * 1_000_000_000)
}

#[cfg(test)]
mod tests;
