//! `bucketload s3-hpc`: the same cell on each row in turn, each a run of this program in a process of its own, since
//! a library of C reads its settings once per process.

use std::path::Path;
use std::process::{Command, Stdio};

use bucketload_core::units::parse_size;
use bucketload_results::RunResult;
use bucketload_results::hpc::{Header, HpcStudy, Record, SCHEMA, StepRecord, text::trial_line};
use bucketload_results::study::StudyWriter;
use bucketload_run::{StopHandle, StopLevel};

use crate::cli::GlobalArgs;
use crate::cli::hpc::{HpcArgs, HpcOptions};
use crate::commands::study;
use crate::exit::{Exit, Failure, OrFail};
use crate::hpc::floor;
use crate::hpc::rows::{Run, Way, Ways};
use crate::signals;

/// Name of the workload that a cell is.
const WORKLOAD: &str = "s3-hpc";

/// One cell.
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
    let dir = study::directory(&args.output, WORKLOAD, "rows");
    let stop = signals::watched()?;
    let ways = Ways::open(options)?;
    let mut sizes: Vec<(u64, u64)> = cells.iter().map(|cell| (cell.size, cell.objects)).collect();
    sizes.dedup();
    let header = Header {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        root: options.root.display().to_string(),
        started: study::now(),
        rows: ways.all.iter().map(|way| way.row.clone()).collect(),
        objects: sizes.iter().map(|(_, objects)| *objects).collect(),
        sizes: sizes.into_iter().map(|(size, _)| size).collect(),
        processes: options.processes.clone(),
        repetitions: options.repetitions,
        command_line: study::command_line(),
    };
    let mut writer = StudyWriter::<HpcStudy>::create(&dir, &header).or_aborted()?;
    let mut measure = || -> Result<(), Failure> {
        for repetition in 0..options.repetitions {
            for &cell in &cells {
                // Rows of a cell follow each other, so that what else the machine does meets all of them; every
                // other time backwards, so that none is always first.
                let mut ways: Vec<&Way> = ways.all.iter().collect();
                if repetition % 2 == 1 {
                    ways.reverse();
                }
                for way in ways {
                    let record = trial(way, cell, repetition, &dir, options, &stop)?;
                    if !global.quiet {
                        eprintln!("{}", trial_line(&record));
                    }
                    writer.append(&record).or_aborted()?;
                }
            }
        }
        Ok(())
    };
    let ended = measure();
    let (exit, _) = study::finish(&dir, &args.output, global.quiet, ended, Ok(()))?;
    Ok(exit)
}

/// The cells in order.
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

/// One trial of a row.
fn trial(
    way: &Way,
    cell: Cell,
    repetition: u32,
    dir: &Path,
    options: &HpcOptions,
    stop: &StopHandle,
) -> Result<Record, Failure> {
    if stop.level() != StopLevel::Run {
        return Err(study::interrupted());
    }
    let Cell {
        size,
        objects,
        processes,
    } = cell;
    let name = format!("{}-{size}B-p{processes}-{}", way.row.name, repetition + 1);
    let (steps, inside) = match &way.run {
        None => {
            let steps = floor::measure(size, objects, processes);
            (
                steps.map_err(|e| Failure::aborted(format!("the floor: {e}")))?,
                String::new(),
            )
        }
        Some(run) => {
            let inside = format!("runs/{name}");
            let result = child(
                run,
                cell,
                &dir.join(&inside),
                options.verify && !way.row.floor,
                stop,
            )
            .map_err(|failure| Failure {
                message: format!("{name}: {}", failure.message),
                ..failure
            })?;
            let mut steps = StepRecord::of_run(&result);
            if way.row.floor {
                // What keeps nothing has nothing to list.
                steps.retain(|step| step.step != "list");
            }
            (steps, inside)
        }
    };
    Ok(Record {
        row: way.row.name.clone(),
        size_bytes: size,
        processes,
        repetition,
        dir: inside,
        steps,
    })
}

/// `bucketload run s3-hpc` on a row.
fn child(
    run: &Run,
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
    // What an object may take even at 10 MB/s, beside the usual bound.
    command.args(["--timeout", &format!("{}s", 30 + size / 10_000_000)]);
    if verify {
        command.arg("--verify");
    }
    run.apply(&mut command, size);
    let output = command.stdin(Stdio::null()).output().or_aborted()?;
    let said = || String::from_utf8_lossy(&output.stderr).trim().to_owned();
    match (output.status.code(), serde_json::from_slice(&output.stdout)) {
        _ if stop.level() != StopLevel::Run => Err(study::interrupted()),
        // A gate that failed is a result: the figures say how many operations did.
        (Some(0 | 1 | 5), Ok(result)) => Ok(result),
        (Some(2), _) => Err(Failure::usage(said())),
        (Some(3), _) => Err(Failure::target(said())),
        (Some(130), _) => Err(study::interrupted()),
        (code, _) => Err(Failure::aborted(format!(
            "the run ended with {code:?}: {}",
            said()
        ))),
    }
}
