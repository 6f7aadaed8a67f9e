//! `bucketload s3-hpc`: the same cell on each row, one after another. Each trial is a run of this program in its own
//! process, because a C library reads its settings once per process.

use std::path::Path;
use std::process::{Command, Stdio};

use bucketload_core::units::parse_size;
use bucketload_results::RunResult;
use bucketload_results::error::ResultsError;
use bucketload_results::hpc::{
    Header, HpcResult, HpcStudy, Record, SCHEMA, StepRecord, page, text,
};
use bucketload_results::study::StudyFiles;
use bucketload_run::{StopHandle, StopLevel};

use crate::cli::GlobalArgs;
use crate::cli::hpc::{HpcArgs, HpcOptions};
use crate::exit::{Exit, Failure, OrFail};
use crate::experiment::{self, Experiment, Measured, Session};
use crate::hpc::floor;
use crate::hpc::rows::{RowCommand, RowSetup, Rows};

/// Name of the verb, and of the workload that a cell runs.
const WORKLOAD: &str = "s3-hpc";

impl Experiment for HpcStudy {
    type Result = HpcResult;

    fn result(files: StudyFiles<Self>) -> HpcResult {
        HpcResult::new(files)
    }

    fn text(result: &HpcResult, _with_trials: bool) -> String {
        text::text(result)
    }

    fn page(result: &HpcResult) -> String {
        page::html(result)
    }

    fn run_directory(record: &Record) -> &str {
        &record.dir
    }

    fn record_again(
        header: &Header,
        old: &Record,
        trial: &Measured,
    ) -> Result<Option<Record>, ResultsError> {
        Ok(Some(Record {
            steps: steps(&trial.result, is_floor(header, old)),
            ..old.clone()
        }))
    }

    fn is_own_data(header: &Header, record: &Record) -> bool {
        record.dir.is_empty() && is_floor(header, record)
    }
}

fn is_floor(header: &Header, record: &Record) -> bool {
    let mut rows = header.rows.iter();
    rows.any(|row| row.name == record.row && row.floor)
}

/// The steps of a run. A floor stores nothing, so it has nothing to list.
fn steps(result: &RunResult, floor: bool) -> Vec<StepRecord> {
    let mut steps = StepRecord::of_run(result);
    steps.retain(|step| !floor || step.step != "list");
    steps
}

#[derive(Clone, Copy)]
struct Cell {
    size: u64,
    objects: u64,
    processes: u32,
}

/// Measures, analyses and prints.
pub(crate) fn execute(args: &HpcArgs, global: &GlobalArgs) -> Result<Exit, Failure> {
    let options = &args.hpc;
    let cells = cells(options)?;
    let session = Session::new(WORKLOAD, "rows", &args.output, global.quiet)?;
    let rows = Rows::open(options)?;
    let mut sizes: Vec<(u64, u64)> = cells.iter().map(|cell| (cell.size, cell.objects)).collect();
    sizes.dedup();
    let header = Header {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        root: options.root.display().to_string(),
        started: experiment::now(),
        rows: rows.all.iter().map(|setup| setup.row.clone()).collect(),
        objects: sizes.iter().map(|(_, objects)| *objects).collect(),
        sizes: sizes.into_iter().map(|(size, _)| size).collect(),
        processes: options.processes.clone(),
        repetitions: options.repetitions,
        command_line: experiment::command_line(),
    };
    let mut journal = session.create::<HpcStudy>(&header)?;
    let mut measure = || -> Result<(), Failure> {
        for repetition in 0..options.repetitions {
            for &cell in &cells {
                // The rows of a cell follow each other, so that other activity on the machine affects all of them.
                // Every other repetition goes backwards, so that no row is always first.
                let mut rows: Vec<&RowSetup> = rows.all.iter().collect();
                if repetition % 2 == 1 {
                    rows.reverse();
                }
                for row in rows {
                    let record = trial(row, cell, repetition, options, &session)?;
                    journal.append(&record, &text::trial_line(&record))?;
                }
            }
        }
        Ok(())
    };
    let ended = measure();
    session.finish::<HpcStudy>(ended, Ok(()))
}

fn cells(options: &HpcOptions) -> Result<Vec<Cell>, Failure> {
    let most =
        parse_size(&options.max_bytes).map_err(|e| Failure::usage(format!("--max-bytes: {e}")))?;
    let largest = options.processes.iter().copied().max().unwrap_or(1);
    let mut cells = Vec::new();
    for text in &options.sizes {
        let size = parse_size(text).map_err(|e| Failure::usage(format!("--sizes: {e}")))?;
        let objects = options
            .objects
            .min(most / size.max(1))
            .max(u64::from(largest));
        cells.extend(options.processes.iter().map(|&processes| Cell {
            size,
            objects,
            processes,
        }));
    }
    Ok(cells)
}

/// Measures a cell on a row once.
fn trial(
    setup: &RowSetup,
    cell: Cell,
    repetition: u32,
    options: &HpcOptions,
    session: &Session<'_>,
) -> Result<Record, Failure> {
    if session.stop.level() != StopLevel::Run {
        return Err(Failure::interrupted());
    }
    let Cell {
        size,
        objects,
        processes,
    } = cell;
    let name = format!("{}-{size}B-p{processes}-{}", setup.row.name, repetition + 1);
    let (steps, inside) = match &setup.command {
        None => {
            let steps = floor::measure(size, objects, processes);
            (
                steps.map_err(|e| Failure::aborted(format!("floor measurement: {e}")))?,
                String::new(),
            )
        }
        Some(command) => {
            let inside = format!("runs/{name}");
            let result = child(
                command,
                cell,
                &session.dir.join(&inside),
                options.verify && !setup.row.floor,
                &session.stop,
            )
            .map_err(|failure| Failure {
                message: format!("{name}: {}", failure.message),
                ..failure
            })?;
            (steps(&result, setup.row.floor), inside)
        }
    };
    Ok(Record {
        row: setup.row.name.clone(),
        size_bytes: size,
        processes,
        repetition,
        dir: inside,
        steps,
    })
}

/// Runs `bucketload run s3-hpc` on a row.
fn child(
    row: &RowCommand,
    cell: Cell,
    out: &Path,
    verify: bool,
    stop: &StopHandle,
) -> Result<RunResult, Failure> {
    let Cell {
        size,
        objects,
        processes,
    } = cell;
    let mut command = Command::new(std::env::current_exe().or_aborted()?);
    command.args([
        "run",
        WORKLOAD,
        "--quiet",
        "--output",
        "json",
        "--no-calibration",
        "--create-bucket",
        "--out",
    ]);
    command.arg(out);
    command.args([
        "--size",
        &size.to_string(),
        "--objects",
        &objects.to_string(),
    ]);
    command.args(["--workers", &processes.to_string(), "--threads", "1"]);
    if processes > 1 {
        command.args(["--launch", &format!("local:{processes}")]);
    }
    // The usual bound, plus the time that an object takes at 10 MB/s.
    command.args(["--timeout", &format!("{}s", 30 + size / 10_000_000)]);
    if verify {
        command.arg("--verify");
    }
    row.apply(&mut command, size);
    let output = command.stdin(Stdio::null()).output().or_aborted()?;
    let said = || String::from_utf8_lossy(&output.stderr).trim().to_owned();
    match (output.status.code(), serde_json::from_slice(&output.stdout)) {
        _ if stop.level() != StopLevel::Run => Err(Failure::interrupted()),
        // A failed gate is a result too: the figures say how many operations failed.
        (Some(0 | 1 | 5), Ok(result)) => Ok(result),
        (Some(2), _) => Err(Failure::usage(said())),
        (Some(3), _) => Err(Failure::target(said())),
        (Some(130), _) => Err(Failure::interrupted()),
        (code, _) => Err(Failure::aborted(format!(
            "the run ended with {}: {}",
            code.map_or("a signal".to_owned(), |code| format!("exit code {code}")),
            said()
        ))),
    }
}
