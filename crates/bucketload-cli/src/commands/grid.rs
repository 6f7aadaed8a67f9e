//! `bucketload study-grid`: the cells of the grid are trials of one campaign, their floors trials of
//! another one on the null target.

use std::path::Path;

use bucketload_core::op::OpClass;
use bucketload_core::units::parse_size;
use bucketload_results::error::ResultsError;
use bucketload_results::grid::{
    GridResult, GridStudy, Header, Record, Row, SCHEMA, csv, page, text,
};
use bucketload_results::study::{StudyFiles, is_study, read};
use bucketload_workload::resolve::{EMBEDDED_MEMORY_BUDGET, Field, Override};
use bucketload_workload::spec::WorkloadFile;

use crate::campaign::Campaign;
use crate::cli::GlobalArgs;
use crate::cli::grid::{GridArgs, GridOptions};
use crate::cli::run::LoadArgs;
use crate::cli::target::TargetArgs;
use crate::cli::workload::WorkloadArgs;
use crate::commands::sweep::order;
use crate::connection::{Connection, target_of};
use crate::exit::{Exit, Failure, OrFail, first_failure};
use crate::experiment::{self, Experiment, Journal, Measured, Session};
use crate::target::Target;

/// Name of the verb, and of the workload that a cell runs.
const WORKLOAD: &str = "study-grid";
/// Largest object of a single PUT; larger files are written in parts of `PART`.
const MAX_SINGLE_PUT: u64 = 5 << 30;
const PART: &str = "64MiB";

impl Experiment for GridStudy {
    type Result = GridResult;

    fn result(files: StudyFiles<Self>) -> GridResult {
        GridResult::new(files)
    }

    fn text(result: &GridResult, _with_trials: bool) -> String {
        text::text(result)
    }

    fn page(result: &GridResult) -> String {
        page::html(result)
    }

    fn table(result: &GridResult) -> Option<String> {
        Some(csv::csv(result))
    }

    fn run_directory(record: &Record) -> &str {
        &record.dir
    }

    fn record_again(
        header: &Header,
        old: &Record,
        trial: &Measured,
    ) -> Result<Option<Record>, ResultsError> {
        let mut rows = header.rows.iter();
        let touch = rows.any(|row| row.name == old.row && row.touch);
        Record::read(
            (&old.row, touch),
            old.processes,
            old.repetition,
            old.floor,
            (&trial.dir, old.dir.clone()),
            &trial.result,
        )
        .map(Some)
    }
}

/// Measures, analyses and prints.
pub(crate) fn execute(args: &GridArgs, global: &GlobalArgs) -> Result<Exit, Failure> {
    let options = &args.grid;
    experiment::refuse(
        WORKLOAD,
        "has no dry run",
        &[("--dry-run", args.load.dry_run)],
    )?;
    let target = target_of(&args.target, None)?;
    let (rows, dropped) = rows(options, &target)?;
    let file = WorkloadFile::builtin(WORKLOAD).or_usage()?;
    let mut session = Session::new(WORKLOAD, "cs597", &args.output, global.quiet)?;
    let earlier = match options.resume {
        true => Some(interrupted_grid(args.output.out.as_deref())?),
        false => None,
    };
    session.resumes = earlier.is_some();
    let connection = Connection::open(target, &args.target, &args.load)?;
    let touches = connection
        .driver
        .capabilities()
        .classes
        .contains(&OpClass::Touch);
    let settings = connection.driver.facts().settings;
    let described = connection.describe();
    let workload = workload_args(options, options.verify);
    let open = |dir: &Path, workload: &WorkloadArgs, connection: Connection, load: &LoadArgs| {
        session.campaign(dir, &file, workload, connection, load)
    };
    let mut campaigns = Campaigns {
        measured: open(&session.dir, &workload, connection, &args.load)?,
        floor: match options.no_floor {
            true => None,
            false => {
                let null = Connection::open(Target::Null, &TargetArgs::default(), &args.load)?;
                // The null target returns no bytes to compare.
                let load = LoadArgs {
                    check_writes: false,
                    ..args.load.clone()
                };
                let workload = workload_args(options, false);
                Some(open(&session.dir.join("floor"), &workload, null, &load)?)
            }
        },
    };
    // Cells that the workload refuses are refused before anything is measured.
    for row in &rows {
        for &processes in &options.processes {
            let settings = cell(row, processes, options, touches);
            campaigns.measured.plan(&settings)?;
        }
    }
    let header = Header {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        target: described,
        settings,
        started: experiment::now(),
        rows,
        dropped,
        processes: options.processes.clone(),
        streams: options.streams,
        scale: options.scale,
        repetitions: options.repetitions,
        command_line: experiment::command_line(),
    };
    let seed = options.seed.unwrap_or(1);
    let settings = |row: &Row, processes: u32| cell(row, processes, options, touches);
    let mut journal = match earlier {
        None => session.create(&header)?,
        Some(earlier) => {
            check_same_grid(&earlier.header, &header, &session.dir)?;
            session.resume(earlier.trials)?
        }
    };
    let ended = measure(
        &session,
        &mut campaigns,
        &mut journal,
        &header,
        &settings,
        seed,
    );
    let floor = campaigns.floor.map(Campaign::close);
    let closed = first_failure(campaigns.measured.close(), floor.unwrap_or(Ok(())));
    session.finish::<GridStudy>(ended, closed)
}

/// Reads the grid that `--resume` continues.
fn interrupted_grid(dir: Option<&Path>) -> Result<StudyFiles<GridStudy>, Failure> {
    let Some(dir) = dir else {
        return Err(Failure::usage(
            "--resume: name the directory of the interrupted grid with --out",
        ));
    };
    if !is_study::<GridStudy>(dir) {
        return Err(Failure::usage(format!(
            "--resume: {} holds no grid; leave out --resume to start a new one",
            dir.display()
        )));
    }
    read::<GridStudy>(dir).or_usage()
}

/// Refuses to mix trials of different grids.
fn check_same_grid(there: &Header, here: &Header, dir: &Path) -> Result<(), Failure> {
    match there.difference(here) {
        None => Ok(()),
        Some((what, there, here)) => Err(Failure::usage(format!(
            "--resume: the grid in {} was started with other {what}: {there}, not {here}; repeat its \
             options, or start a new grid",
            dir.display()
        ))),
    }
}

/// The campaign on the target, and the one on the null target.
struct Campaigns {
    measured: Campaign,
    floor: Option<Campaign>,
}

fn workload_args(options: &GridOptions, verify: bool) -> WorkloadArgs {
    WorkloadArgs {
        verify,
        seed: options.seed.map(|seed| seed.to_string()),
        timeout: options.timeout.clone(),
        ..WorkloadArgs::default()
    }
}

/// The rows with scaled numbers of files, and the rows that were left out, each with the reason.
fn rows(options: &GridOptions, target: &Target) -> Result<(Vec<Row>, Vec<String>), Failure> {
    let named =
        Row::parse_list(&options.rows).map_err(|e| Failure::usage(format!("--rows: {e}")))?;
    if !(options.scale.is_finite() && options.scale > 0.0) {
        return Err(Failure::usage(format!(
            "--scale {}: the scale must be above 0; 1 writes as many files as the study",
            options.scale
        )));
    }
    let budget = match (&options.max_bytes, target) {
        (Some(text), _) => Some(parse_size(text).map_err(|e| {
            Failure::usage(format!("--max-bytes {text}: {}; {}", e.message, e.remedy))
        })?),
        (None, Target::Memory) => Some(EMBEDDED_MEMORY_BUDGET),
        (None, _) => None,
    };
    let most = options.processes.iter().copied().max().unwrap_or(1);
    let (mut rows, mut dropped) = (Vec::new(), Vec::new());
    for row in named.into_iter().map(|row| row.scaled(options.scale)) {
        match budget {
            Some(budget) if row.bytes(most) > budget => dropped.push(format!(
                "{}: {} bytes with {most} processes exceed the limit of {budget} (--max-bytes)",
                row.name,
                row.bytes(most)
            )),
            _ => rows.push(row),
        }
    }
    if rows.is_empty() {
        return Err(Failure::usage(format!(
            "--max-bytes: no row is left: {}",
            dropped.join("; ")
        )));
    }
    Ok((rows, dropped))
}

/// The workload settings of a cell.
fn cell(row: &Row, processes: u32, options: &GridOptions, touches: bool) -> Vec<Override> {
    let path = |path: &str, value: &str| Override::new(Field::Path(path.to_owned()), value);
    let files = row.files * u64::from(processes);
    let mut settings = vec![
        Override::new(Field::Objects, &files.to_string()),
        Override::new(Field::Size, &row.size_bytes.to_string()),
        Override::new(Field::Workers, &(processes * options.streams).to_string()),
    ];
    if options.timeout.is_none() {
        // The usual bound, plus the time that a large file takes at 10 MB/s.
        let seconds = 30 + row.size_bytes / 10_000_000;
        settings.push(Override::new(Field::Timeout, &format!("{seconds}s")));
    }
    if row.touch && touches {
        settings.push(path("phases.write.mix.put.op", OpClass::Touch.name()));
    }
    if row.size_bytes > MAX_SINGLE_PUT {
        settings.push(path(
            "phases.write.mix.put.op",
            OpClass::MultipartPut.name(),
        ));
        settings.push(path("phases.write.mix.put.part-size", PART));
    }
    settings
}

fn measure(
    session: &Session<'_>,
    campaigns: &mut Campaigns,
    journal: &mut Journal<GridStudy>,
    header: &Header,
    settings_of: &dyn Fn(&Row, u32) -> Vec<Override>,
    seed: u64,
) -> Result<(), Failure> {
    let cells: Vec<(&Row, u32)> = header
        .rows
        .iter()
        .flat_map(|row| {
            header
                .processes
                .iter()
                .map(move |&processes| (row, processes))
        })
        .collect();
    for repetition in 0..header.repetitions {
        for index in order(cells.len(), seed, repetition) {
            let (row, processes) = cells[index];
            let settings = settings_of(row, processes);
            let name = format!("{}-p{processes}", row.name);
            // The client's own time varies little: one floor per cell is enough.
            let floor = campaigns.floor.as_mut().filter(|_| repetition == 0);
            for (campaign, is_floor) in [(Some(&mut campaigns.measured), false), (floor, true)] {
                let Some(campaign) = campaign else { continue };
                let same = |r: &Record| {
                    r.row == row.name
                        && (r.processes, r.repetition, r.floor) == (processes, repetition, is_floor)
                };
                if journal.earlier.iter().any(same) {
                    continue;
                }
                let done = campaign.trial(&name, &settings)?;
                let inside = session.relative(&done.dir);
                let record = Record::read(
                    (&row.name, row.touch),
                    processes,
                    repetition,
                    is_floor,
                    (&done.dir, inside),
                    &done.result,
                )
                .or_aborted()?;
                journal.append(&record, &text::trial_line(&record, row))?;
            }
        }
    }
    Ok(())
}
