//! `bucketload study-grid`: the cells of the grid as trials of a campaign, their floors as trials of
//! another one on the null target.

use std::path::Path;

use bucketload_core::op::OpClass;
use bucketload_core::units::parse_size;
use bucketload_results::grid::{GridStudy, Header, Record, Row, SCHEMA, text::trial_line};
use bucketload_results::study::{StudyFiles, StudyWriter, is_study, read};
use bucketload_workload::resolve::{EMBEDDED_MEMORY_BUDGET, Field, Override};
use bucketload_workload::spec::WorkloadFile;

use crate::campaign::Campaign;
use crate::cli::GlobalArgs;
use crate::cli::grid::{GridArgs, GridOptions};
use crate::cli::run::LoadArgs;
use crate::cli::target::TargetArgs;
use crate::cli::workload::WorkloadArgs;
use crate::commands::study;
use crate::commands::sweep::order;
use crate::connection::{Connection, target_of};
use crate::exit::{Exit, Failure, OrFail, also};
use crate::signals;
use crate::target::Target;

/// Name of the workload that a cell is.
const WORKLOAD: &str = "study-grid";
/// Largest object of one PUT; larger files are written in parts of `PART`.
const MAX_SINGLE_PUT: u64 = 5 << 30;
const PART: &str = "64MiB";

/// Measures, analyses and prints.
pub(crate) fn execute(args: &GridArgs, global: &GlobalArgs) -> Result<Exit, Failure> {
    let options = &args.grid;
    study::refuse(
        WORKLOAD,
        "performs what it measures",
        &[("--dry-run", args.load.dry_run)],
    )?;
    let target = target_of(&args.target, None)?;
    let (rows, dropped) = rows(options, &target)?;
    let file = WorkloadFile::builtin(WORKLOAD).or_usage()?;
    let dir = study::directory(&args.output, WORKLOAD, "cs597");
    let earlier = match options.resume {
        true => Some(Earlier::read(args.output.out.as_deref())?),
        false => None,
    };
    let stop = signals::watched()?;
    let connection = Connection::open(target, &args.target, &args.load)?;
    let touches = connection
        .driver
        .capabilities()
        .classes
        .contains(&OpClass::Touch);
    let settings = connection.driver.facts().settings;
    let described = connection.describe();
    let workload = workload_args(options, options.verify);
    let resumes = earlier.is_some();
    let open = |dir: &Path, workload: &WorkloadArgs, connection: Connection, load: &LoadArgs| {
        let resumed = resumes.then(|| trials_in(dir));
        let how = (global.quiet, &stop);
        study::resumed_campaign(dir, &file, workload, connection, load, how, resumed)
    };
    let mut stores = Stores {
        measured: open(&dir, &workload, connection, &args.load)?,
        floor: match options.no_floor {
            true => None,
            false => {
                let null = Connection::open(Target::Null, &TargetArgs::default(), &args.load)?;
                // The null target has no bytes to compare.
                let load = LoadArgs {
                    check_writes: false,
                    ..args.load.clone()
                };
                let workload = workload_args(options, false);
                Some(open(&dir.join("floor"), &workload, null, &load)?)
            }
        },
    };
    // Cells that the workload refuses are refused before anything is measured.
    for row in &rows {
        for &processes in &options.processes {
            stores
                .measured
                .plan(&cell(row, processes, options, touches))?;
        }
    }
    let header = Header {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        target: described,
        settings,
        started: study::now(),
        rows,
        dropped,
        processes: options.processes.clone(),
        streams: options.streams,
        scale: options.scale,
        repetitions: options.repetitions,
        command_line: study::command_line(),
    };
    let seed = options.seed.unwrap_or(1);
    let settings = |row: &Row, processes: u32| cell(row, processes, options, touches);
    let (writer, done) = match earlier {
        None => (StudyWriter::create(&dir, &header), Vec::new()),
        Some(earlier) => {
            earlier.admits(&header, &dir)?;
            (StudyWriter::resume(&dir), earlier.files.trials)
        }
    };
    let book = Book {
        writer: writer.or_aborted()?,
        done,
    };
    let ended = measure(
        &mut stores,
        book,
        &header,
        &settings,
        seed,
        &dir,
        global.quiet,
    );
    let closed = stores.measured.close();
    let closed = also(closed, stores.floor.map_or(Ok(()), Campaign::close));
    let (exit, _) = study::finish(&dir, &args.output, global.quiet, ended, closed)?;
    Ok(exit)
}

/// A grid that was interrupted.
struct Earlier {
    files: StudyFiles<GridStudy>,
}

impl Earlier {
    fn read(dir: Option<&Path>) -> Result<Self, Failure> {
        let Some(dir) = dir else {
            return Err(Failure::usage(
                "--resume: name the directory of the interrupted grid with --out",
            ));
        };
        if !is_study::<GridStudy>(dir) {
            return Err(Failure::usage(format!(
                "--resume: {} holds no grid; without --resume a new one begins",
                dir.display()
            )));
        }
        let files = read::<GridStudy>(dir).or_usage()?;
        Ok(Self { files })
    }

    /// Refuses to mix trials of different grids.
    fn admits(&self, header: &Header, dir: &Path) -> Result<(), Failure> {
        match self.files.header.difference(header) {
            None => Ok(()),
            Some((what, there, here)) => Err(Failure::usage(format!(
                "--resume: the grid in {} has other {what}: {there}, not {here}; repeat its options, or \
                 begin a new grid",
                dir.display()
            ))),
        }
    }
}

/// The highest number of a trial's directory in `dir`, also of one that did not end.
fn trials_in(dir: &Path) -> u32 {
    let entries = dir.read_dir().into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| {
        let name = entry.file_name();
        name.to_str()?.split_once('-')?.0.parse().ok()
    });
    numbers.max().unwrap_or(0)
}

/// Where trials are written down, and those that took place before.
struct Book {
    writer: StudyWriter<GridStudy>,
    done: Vec<Record>,
}

impl Book {
    fn has(&self, row: &Row, processes: u32, repetition: u32, floor: bool) -> bool {
        let same = |r: &Record| {
            r.row == row.name
                && (r.processes, r.repetition, r.floor) == (processes, repetition, floor)
        };
        self.done.iter().any(same)
    }
}

/// The campaign on the target and the one on the null target.
struct Stores {
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

/// The rows with their scaled numbers of files, and what was left out and why.
fn rows(options: &GridOptions, target: &Target) -> Result<(Vec<Row>, Vec<String>), Failure> {
    let named =
        Row::parse_list(&options.rows).map_err(|e| Failure::usage(format!("--rows: {e}")))?;
    if !(options.scale.is_finite() && options.scale > 0.0) {
        return Err(Failure::usage(format!(
            "--scale {}: the scale must be greater than 0; write 1 for the files of the study",
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
                "{}: {} bytes with {most} processes are more than {budget} (--max-bytes)",
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

/// The settings that make the workload a cell of the grid.
fn cell(row: &Row, processes: u32, options: &GridOptions, touches: bool) -> Vec<Override> {
    let path = |path: &str, value: &str| Override::new(Field::Path(path.to_owned()), value);
    let files = row.files * u64::from(processes);
    let mut settings = vec![
        Override::new(Field::Objects, &files.to_string()),
        Override::new(Field::Size, &row.size_bytes.to_string()),
        Override::new(Field::Workers, &(processes * options.streams).to_string()),
    ];
    if options.timeout.is_none() {
        // What a large file may take even at 10 MB/s, beside the usual bound.
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
    stores: &mut Stores,
    mut book: Book,
    header: &Header,
    settings_of: &dyn Fn(&Row, u32) -> Vec<Override>,
    seed: u64,
    dir: &Path,
    quiet: bool,
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
            // The client's own time differs little: one floor per cell is enough.
            let floor = stores.floor.as_mut().filter(|_| repetition == 0);
            for (campaign, is_floor) in [(Some(&mut stores.measured), false), (floor, true)] {
                let Some(campaign) = campaign else { continue };
                if book.has(row, processes, repetition, is_floor) {
                    continue;
                }
                let done = campaign.trial(&name, &settings)?;
                let inside = study::relative(dir, &done);
                let record = Record::read(
                    (&row.name, row.touch),
                    processes,
                    repetition,
                    is_floor,
                    (&done.dir, inside),
                    &done.result,
                )
                .or_aborted()?;
                if done.exit == Exit::Interrupted {
                    return Err(study::interrupted());
                }
                if !quiet {
                    eprintln!("{}", trial_line(&record, row));
                }
                book.writer.append(&record).or_aborted()?;
            }
        }
    }
    Ok(())
}
