//! The grid of the CS597 study (docs/spec/cs597-grid.md): files × sizes × processes, written, read and touched.
//!
//! ```text
//!  Header (rows, processes, scale) ─┐
//!  Record per trial (T_i of every step, floor or measured) ─┴─► GridResult: cells ─► text, csv, page
//! ```
//!
//! Everything is computed from the request ([`Header`]) and the trials ([`Record`]), so an
//! interrupted grid is reported by the same code. [`cell`] has the study's formulas, [`rows`] its rows,
//! [`published`] its corrected results; [`record`] reads a trial's run directory.

pub mod cell;
pub mod csv;
pub mod page;
pub mod published;
pub mod record;
pub mod rows;
pub mod text;

use bucketload_core::verdict::Word;
use serde::{Deserialize, Serialize};

use crate::study::{Study, StudyFiles};
use cell::Figures;
pub use record::{Record, StepRecord};
pub use rows::Row;

/// Version of the JSON format.
pub const SCHEMA: u32 = 1;

/// A cell that takes less than this many times its floor shows the client more than the store
/// (docs/spec/cs597-grid.md section 4).
pub const CLIENT_BOUND_BELOW: f64 = 2.0;
/// If the slowest process takes more than this many times the mean, A_mean and A_slow disagree and the cell
/// is marked as uneven.
pub const SLOW_ABOVE: f64 = 1.2;

/// The kind of study with a grid.
#[derive(Debug)]
pub struct GridStudy;

impl Study for GridStudy {
    const HEADER: &'static str = "grid.json";
    type Header = Header;
    type Record = Record;
}

/// The request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Version of this format, [`SCHEMA`].
    pub schema: u32,
    /// Version of the tool.
    pub version: String,
    /// Description of the target.
    pub target: String,
    /// The driver's settings, as name and value.
    pub settings: Vec<(String, String)>,
    /// Wall-clock start, RFC 3339 in UTC.
    pub started: String,
    /// The rows, in the order of the study.
    pub rows: Vec<Row>,
    /// Rows that were dropped, each with the reason.
    pub dropped: Vec<String>,
    /// Numbers of processes.
    pub processes: Vec<u32>,
    /// Requests that each process has in flight.
    pub streams: u32,
    /// Factor applied to the number of files.
    pub scale: f64,
    /// Trials of each cell.
    pub repetitions: u32,
    /// The command line.
    pub command_line: Vec<String>,
}

impl Header {
    /// The first setting in which this request differs from `other`: its name, the value here and the value
    /// there. `None` if trials of both may be combined.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Option<(&'static str, String, String)> {
        fn json<T: Serialize>(value: &T) -> String {
            serde_json::to_string(value).unwrap_or_default()
        }
        let parts = |header: &Self| {
            [
                ("target", json(&header.target)),
                ("settings", json(&header.settings)),
                ("rows", json(&header.rows)),
                ("processes", json(&header.processes)),
                ("streams", json(&header.streams)),
                ("repetitions", json(&header.repetitions)),
                ("version", json(&header.version)),
            ]
        };
        let pairs = parts(self).into_iter().zip(parts(other));
        let mut different = pairs.filter(|((_, a), (_, b))| a != b);
        different.next().map(|((name, a), (_, b))| (name, a, b))
    }
}

/// One step (write, read, touch, delete) of a cell, aggregated over its trials.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepCell {
    /// `write`, `read`, `touch` or `delete`.
    pub step: String,
    /// Trials.
    pub runs: u64,
    /// The study's figures, each the mean of the trials.
    pub figures: Figures,
    /// Largest deviation of a trial's A_mean (R_mean for steps without bytes) from the mean of the trials,
    /// as a share of that mean.
    pub spread: f64,
    /// Elapsed times of all processes in all trials, seconds.
    pub t_s: Vec<f64>,
    /// Spread of the processes' first starts, seconds: the largest over the trials.
    pub start_skew_s: f64,
    /// Latencies of single files (p50, p90, p99, max), seconds: the means of the trials.
    pub latency_s: [f64; 4],
    /// Operations that failed, in all trials.
    pub failed: u64,
    /// Mean T against the null target, seconds; `None` when no floor was measured.
    pub floor_s: Option<f64>,
    /// Mean T over that of the floor.
    pub floor_ratio: Option<f64>,
    /// Whether the client was the limit: a time below twice the floor, or the verdict of a trial.
    pub client_bound: bool,
    /// Whether one process was much slower than the mean ([`SLOW_ABOVE`]).
    pub uneven: bool,
}

/// One cell: a row with a number of processes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// Name of the row.
    pub row: String,
    /// Files that each process writes.
    pub files: u64,
    /// Size of each, bytes.
    pub size_bytes: u64,
    /// Processes.
    pub processes: u32,
    /// Its steps.
    pub steps: Vec<StepCell>,
}

impl Cell {
    /// The step called `name`.
    #[must_use]
    pub fn step(&self, name: &str) -> Option<&StepCell> {
        self.steps.iter().find(|step| step.step == name)
    }
}

/// The result of a grid.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GridResult {
    /// The request.
    pub header: Header,
    /// The cells that have trials, by row and number of processes.
    pub cells: Vec<Cell>,
    /// Warnings about cells.
    pub warnings: Vec<String>,
    /// The trials, in order.
    pub trials: Vec<Record>,
    /// Unreadable lines of the file of trials.
    pub damaged: u64,
}

impl GridResult {
    /// Computes the result from the request and the trials.
    #[must_use]
    pub fn new(files: StudyFiles<GridStudy>) -> Self {
        let StudyFiles {
            header,
            trials,
            damaged,
        } = files;
        let mut cells = Vec::new();
        for row in &header.rows {
            for &processes in &header.processes {
                let of_cell =
                    |trial: &&Record| trial.row == row.name && trial.processes == processes;
                let trials: Vec<&Record> = trials.iter().filter(of_cell).collect();
                cells.extend(cell(row, processes, &trials));
            }
        }
        let warnings = warnings(&cells);
        Self {
            header,
            cells,
            warnings,
            trials,
            damaged,
        }
    }

    /// The cell of a row with a number of processes.
    #[must_use]
    pub fn cell(&self, row: &str, processes: u32) -> Option<&Cell> {
        self.cells
            .iter()
            .find(|cell| cell.row == row && cell.processes == processes)
    }

    /// Number of trials that the request has, not counting floors.
    #[must_use]
    pub fn wanted(&self) -> usize {
        self.header.rows.len() * self.header.processes.len() * self.header.repetitions as usize
    }

    /// Number of trials that ran, not counting floors.
    #[must_use]
    pub fn measured(&self) -> usize {
        self.trials.iter().filter(|trial| !trial.floor).count()
    }
}

fn cell(row: &Row, processes: u32, trials: &[&Record]) -> Option<Cell> {
    let measured: Vec<&&Record> = trials.iter().filter(|trial| !trial.floor).collect();
    let names = &measured.first()?.steps;
    let steps = names
        .iter()
        .filter_map(|first| {
            let of = |trial: &Record| trial.steps.iter().find(|s| s.step == first.step).cloned();
            let runs: Vec<StepRecord> = measured.iter().filter_map(|trial| of(trial)).collect();
            let floors: Vec<StepRecord> = trials
                .iter()
                .filter(|trial| trial.floor)
                .filter_map(|trial| of(trial))
                .collect();
            step(row, processes, &runs, &floors)
        })
        .collect();
    Some(Cell {
        row: row.name.clone(),
        files: row.files,
        size_bytes: row.size_bytes,
        processes,
        steps,
    })
}

fn step(row: &Row, processes: u32, runs: &[StepRecord], floors: &[StepRecord]) -> Option<StepCell> {
    let bytes = match runs.first()?.step.as_str() {
        "write" | "read" => row.size_bytes,
        _ => 0,
    };
    // Failed operations moved no files: they count only in the times.
    let of = |run: &StepRecord| {
        let files = run.ok as f64 / f64::from(processes);
        Figures::of(files, bytes, &run.t_s(), run.wall_s())
    };
    // A run in which a process did nothing has no figures.
    let complete = |run: &&StepRecord| run.t_ns.len() == processes as usize;
    let each: Vec<Figures> = runs.iter().filter(complete).map(of).collect();
    let figures = Figures::mean(&each)?;
    let rate = |f: &Figures| if bytes > 0 { f.a_mean } else { f.r_mean };
    let spread = each
        .iter()
        .map(|f| (rate(f) / rate(&figures) - 1.0).abs())
        .fold(0.0, f64::max);
    let floor: Vec<f64> = floors.iter().flat_map(StepRecord::t_s).collect();
    let floor_s = (!floor.is_empty()).then(|| floor.iter().sum::<f64>() / floor.len() as f64);
    let floor_ratio = floor_s
        .filter(|floor| *floor > 0.0)
        .map(|floor| figures.mean_s / floor);
    let mean = |i: usize| {
        let all = runs.iter().map(|run| run.latency_ns[i] as f64 / 1e9);
        all.sum::<f64>() / runs.len() as f64
    };
    Some(StepCell {
        step: runs[0].step.clone(),
        runs: each.len() as u64,
        spread,
        t_s: runs.iter().flat_map(StepRecord::t_s).collect(),
        start_skew_s: runs
            .iter()
            .map(|run| run.start_skew_ns as f64 / 1e9)
            .fold(0.0, f64::max),
        latency_s: [mean(0), mean(1), mean(2), mean(3)],
        failed: runs.iter().map(|run| run.failed).sum(),
        floor_s,
        floor_ratio,
        client_bound: floor_ratio.is_some_and(|ratio| ratio < CLIENT_BOUND_BELOW)
            || runs.iter().any(|run| run.verdict == Word::ClientBound),
        uneven: figures.max_over_mean > SLOW_ABOVE,
        figures,
    })
}

fn warnings(cells: &[Cell]) -> Vec<String> {
    let mut warnings = Vec::new();
    for cell in cells {
        let place = |step: &StepCell| {
            let processes = crate::units::processes(cell.processes);
            format!("{} {} with {processes}", cell.row, step.step)
        };
        for step in &cell.steps {
            if step.failed > 0 {
                warnings.push(format!(
                    "{}: {} operations failed; rates count only the files that were moved, times include all operations",
                    place(step),
                    step.failed
                ));
            }
            if step.uneven {
                warnings.push(format!(
                    "{}: the slowest process took {:.2} times the mean, so A_mean is {:.2} times A_slow",
                    place(step),
                    step.figures.max_over_mean,
                    step.figures.mean_over_slow()
                ));
            }
        }
    }
    warnings
}

#[cfg(test)]
mod tests;
