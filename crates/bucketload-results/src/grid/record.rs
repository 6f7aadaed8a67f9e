//! The measurements of one trial of the grid, read from its run directory.

use std::path::Path;

use bucketload_core::plan::PhaseKind;
use bucketload_core::sink::{Event, StreamSum};
use bucketload_core::verdict::Word;
use serde::{Deserialize, Serialize};

use crate::error::ResultsError;
use crate::result::RunResult;
use crate::rundir::RunDir;

/// The measurements of one trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Name of the row.
    pub row: String,
    /// Processes.
    pub processes: u32,
    /// Number of the trial in its cell, from 0.
    pub repetition: u32,
    /// Whether it is the floor: the same work on the null target.
    pub floor: bool,
    /// The run directory, inside the study's.
    pub dir: String,
    /// Its steps, in order.
    pub steps: Vec<StepRecord>,
}

/// One step of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepRecord {
    /// `write`, `read`, `touch` or `delete`.
    pub step: String,
    /// T_i by process: from its first request to the end of its last, nanoseconds.
    pub t_ns: Vec<u64>,
    /// Latest end minus earliest start, nanoseconds.
    pub wall_ns: u64,
    /// Spread of the processes' first starts, nanoseconds.
    pub start_skew_ns: u64,
    /// Files that were moved.
    pub ok: u64,
    /// Operations that failed.
    pub failed: u64,
    /// Bytes that were moved.
    pub bytes: u64,
    /// Response times of single files: p50, p90, p99 and the largest, nanoseconds.
    pub latency_ns: [u64; 4],
    /// The verdict on the step.
    pub verdict: Word,
}

impl StepRecord {
    /// T_i in seconds.
    #[must_use]
    pub fn t_s(&self) -> Vec<f64> {
        self.t_ns.iter().map(|t| *t as f64 / 1e9).collect()
    }

    /// Latest end minus earliest start, seconds.
    #[must_use]
    pub fn wall_s(&self) -> f64 {
        self.wall_ns as f64 / 1e9
    }

    /// Builds the step called `step` from its streams. Stream `w` belongs to process `w mod processes`.
    #[must_use]
    pub fn of_streams(step: &str, processes: u32, streams: &[StreamSum]) -> Self {
        let mut spans: Vec<Option<(u64, u64)>> = vec![None; processes as usize];
        for stream in streams {
            let span = &mut spans[(stream.worker % processes.max(1)) as usize];
            let (from, to) = span.unwrap_or((u64::MAX, 0));
            *span = Some((from.min(stream.first_start_ns), to.max(stream.last_stop_ns)));
        }
        let spans: Vec<(u64, u64)> = spans.into_iter().flatten().collect();
        let starts = || spans.iter().map(|(from, _)| *from);
        let (first, last) = (starts().min().unwrap_or(0), starts().max().unwrap_or(0));
        let end = spans.iter().map(|(_, to)| *to).max().unwrap_or(0);
        Self {
            step: step.to_owned(),
            t_ns: spans
                .iter()
                .map(|(from, to)| to.saturating_sub(*from))
                .collect(),
            wall_ns: end.saturating_sub(first),
            start_skew_ns: last - first,
            ok: streams.iter().map(|s| s.ops).sum(),
            failed: streams.iter().map(|s| s.failed).sum(),
            bytes: streams.iter().map(|s| s.bytes).sum(),
            latency_ns: [0; 4],
            verdict: Word::Incomplete,
        }
    }
}

impl Record {
    /// Reads the trial in directory `dir`, which the study knows as `name` and whose result is `result`.
    /// The writing step of a row that touches is called `touch`.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn read(
        (row, touch): (&str, bool),
        processes: u32,
        repetition: u32,
        floor: bool,
        (dir, name): (&Path, String),
        result: &RunResult,
    ) -> Result<Self, ResultsError> {
        let run = RunDir::open(dir)?;
        let (events, _) = run.events()?;
        let mut steps = Vec::new();
        for (index, phase) in run.manifest().plan.phases.iter().enumerate() {
            if phase.kind != PhaseKind::Run {
                continue;
            }
            let streams = events.iter().find_map(|event| match event {
                Event::Streams { phase, streams } if usize::from(*phase) == index => Some(streams),
                _ => None,
            });
            let Some(streams) = streams else { continue };
            let name = match phase.name.as_str() {
                "write" if touch => "touch",
                name => name,
            };
            let mut step = StepRecord::of_streams(name, processes, streams);
            if let Some(found) = result.phases.iter().find(|p| usize::from(p.index) == index) {
                step.verdict = found.verdict.as_ref().map_or(Word::Incomplete, |v| v.word);
                if let Some(class) = found.classes.first() {
                    let at = |q: f64| class.response.percentile(q).map_or(0, |p| p.value_ns);
                    step.latency_ns = [at(0.5), at(0.9), at(0.99), class.response.max_ns];
                }
            }
            steps.push(step);
        }
        Ok(Self {
            row: row.to_owned(),
            processes,
            repetition,
            floor,
            dir: name,
            steps,
        })
    }
}
