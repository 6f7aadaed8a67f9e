//! `bucketload study`: a matrix of runs in one directory.
//!
//! ```text
//! cli ─ choose (targets, experiments) ─ check (every command line) ─ bucketload_study::plan ─► plan.json
//! execute: server ─ pause ─ child process per cell ─ journal ─► summary, report
//! ```
//!
//! The crate `bucketload-study` defines studies; this module starts servers and processes. Each cell is a call of this
//! program, so that a crash of one cell does not affect others. Every cell is an ordinary run directory.

mod carried;
mod check;
mod child;
mod choose;
pub(crate) mod cores;
mod execute;
mod library;
mod placement;
mod programs;
mod script;
mod servers;
mod settle;
mod summary;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bucketload_study::model::{Cell, Plan, SCHEMA, Study};
use bucketload_study::plan::{PlanOptions, plan};
use bucketload_study::{conversations, layout, spec};

use crate::cli::GlobalArgs;
use crate::cli::study::{StudyArgs, StudyCommand};
use crate::commands::docs::print;
use crate::exit::{Exit, Failure, OrFail};
use crate::files;

/// Plans, measures and reports a study, or runs a subcommand.
pub(crate) fn execute(args: &StudyArgs, global: &GlobalArgs) -> Result<Exit, Failure> {
    match &args.command {
        Some(StudyCommand::List) => list(),
        Some(StudyCommand::Show { name }) => match spec::builtin(name) {
            Some(text) => print(text.as_bytes()),
            None if name == conversations::NAME => print(conversations::trace().as_bytes()),
            None => Err(unknown(name)),
        },
        Some(StudyCommand::Report { dir }) => report(dir, global.quiet),
        None => measure(args, global),
    }
}

fn list() -> Result<Exit, Failure> {
    let mut out = String::new();
    for (name, text) in spec::BUILTIN_STUDIES {
        let study = spec::parse(name, text, false).or_aborted()?;
        out.push_str(&format!("{name:16}  {}\n", study.title));
        out.push_str(&format!("{:16}  {}\n", "", study.description));
    }
    print(out.as_bytes())
}

fn unknown(name: &str) -> Failure {
    let names: Vec<&str> = spec::BUILTIN_STUDIES
        .iter()
        .map(|(name, _)| *name)
        .collect();
    Failure::usage(format!(
        "{name}: there is neither a study of this name nor such a file; studies: {}",
        names.join(", ")
    ))
}

fn measure(args: &StudyArgs, global: &GlobalArgs) -> Result<Exit, Failure> {
    let study = wanted(args)?;
    let options = PlanOptions {
        budget_ns: args
            .time
            .map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
        repetitions: args.repetitions,
    };
    let targets = study.targets.clone();
    let mut plan = plan(&study, options, env!("CARGO_PKG_VERSION"), |cell| {
        let target = targets.iter().find(|target| target.name == cell.target);
        target.map_or(Ok(0), |target| check::estimate(cell, target))
    })?;
    let servers = script::Scripts::find(args.servers.as_deref(), &study)?;
    if args.dry_run {
        let written = written(&plan)?;
        return print(summary::plan(&study, &plan, &written).as_bytes());
    }
    let dir = match &args.dir {
        Some(dir) => dir.clone(),
        None => default_dir(&study, &plan)?,
    };
    servers.ready()?;
    let existed = dir.exists();
    let begun = !layout::is_study(&dir);
    if !begun {
        let known = same(&dir, &study, &plan)?;
        if !global.quiet {
            eprintln!("bucketload: continuing the study in {}", dir.display());
        }
        plan = known;
    } else {
        begin(&dir, &study, &plan)?;
    }
    let fresh = begun.then_some(existed);
    execute::execute(
        &dir,
        &study,
        &plan,
        servers,
        args.retry,
        fresh,
        global.quiet,
    )
}

/// Bytes that cells write to each target, by name, as far as that is known: all together, and the most of one cell.
fn written(plan: &Plan) -> Result<BTreeMap<String, (u64, u64)>, Failure> {
    // Repetitions and targets write the same.
    let mut known: BTreeMap<(&str, &str), Option<u64>> = BTreeMap::new();
    let mut all = BTreeMap::new();
    for cell in &plan.cells {
        let key = (cell.experiment.as_str(), cell.value.as_str());
        let bytes = match known.get(&key) {
            Some(bytes) => *bytes,
            None => *known.entry(key).or_insert(check::written(cell)?),
        };
        if let Some(bytes) = bytes {
            let (sum, most): &mut (u64, u64) = all.entry(cell.target.clone()).or_default();
            *sum = sum.saturating_add(bytes);
            *most = bytes.max(*most);
        }
    }
    Ok(all)
}

/// The study with the changes of the command line.
fn wanted(args: &StudyArgs) -> Result<Study, Failure> {
    let name = args.study.as_deref().unwrap_or_default();
    let parsed = match spec::builtin(name) {
        Some(text) => spec::parse(&format!("{name}.toml"), text, args.quick),
        None if name.ends_with(".toml") || Path::new(name).is_file() => {
            spec::parse(name, &files::read(name)?, args.quick)
        }
        None => return Err(unknown(name)),
    };
    let mut study = parsed.or_usage()?;
    study.seed = args.seed.unwrap_or(study.seed);
    if let Some(repetitions) = args.repetitions {
        study.repetitions = repetitions;
        study
            .experiments
            .iter_mut()
            .for_each(|experiment| experiment.repetitions = 0);
    }
    choose::experiments(&mut study, &args.only)?;
    choose::targets(&mut study, &args.target, &args.endpoint_url)?;
    if args.create_bucket {
        choose::create_buckets(&mut study, &args.target);
    }
    Ok(study)
}

/// The first of `bucketload-studies/NAME`, `NAME-2`, … that is free or contains this study, unfinished.
fn default_dir(study: &Study, plan: &Plan) -> Result<PathBuf, Failure> {
    let base = Path::new("bucketload-studies");
    let name = format!("{}{}", study.name, if study.quick { "-quick" } else { "" });
    for number in 1..10_000 {
        let dir = base.join(match number {
            1 => name.clone(),
            _ => format!("{name}-{number}"),
        });
        if !dir.exists()
            || same(&dir, study, plan).is_ok_and(|known| execute::is_unfinished(&dir, &known))
        {
            return Ok(dir);
        }
    }
    Err(Failure::usage(
        "bucketload-studies has no free name for this study; name a directory with --dir",
    ))
}

/// The plan of the study in `dir`, if it is the same study.
fn same(dir: &Path, study: &Study, plan: &Plan) -> Result<Plan, Failure> {
    let known = read_study(dir)?;
    let planned = read_plan(dir)?;
    let what = if planned.schema != SCHEMA || planned.version != plan.version {
        "another version of the program started it"
    } else if known.name != study.name || known.quick != study.quick {
        "it is another study"
    } else if known.targets != study.targets {
        "it has other targets"
    } else if known.seed != study.seed {
        "it has another seed"
    } else if known != *study || planned.budget_ns != plan.budget_ns {
        "it has other settings"
    } else {
        return Ok(planned);
    };
    Err(Failure::usage(format!(
        "--dir {}: the directory contains a study, but {what}; repeat its options to continue it, or name another directory",
        dir.display()
    )))
}

fn read_study(dir: &Path) -> Result<Study, Failure> {
    let path = dir.join(layout::STUDY);
    let text = files::read(&path)?;
    toml::from_str(&text).map_err(|e| Failure::usage(format!("{}: {e}", path.display())))
}

fn read_plan(dir: &Path) -> Result<Plan, Failure> {
    let path = dir.join(layout::PLAN);
    let text = files::read(&path)?;
    serde_json::from_str(&text).map_err(|e| Failure::usage(format!("{}: {e}", path.display())))
}

/// Writes the specification and the plan. The plan comes last, because a directory without a plan is not a study.
fn begin(dir: &Path, study: &Study, plan: &Plan) -> Result<(), Failure> {
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |e: std::io::Error| Failure::usage(format!("--dir: {path}: {e}"))
    };
    std::fs::create_dir_all(dir).map_err(failed(dir))?;
    let used = dir.read_dir().map_err(failed(dir))?.flatten();
    let ours = [
        layout::STUDY,
        layout::CELLS,
        layout::TARGETS,
        conversations::FILE,
    ];
    for entry in used {
        // A process that was killed here leaves the first of these files.
        if !ours.iter().any(|name| entry.file_name() == *name) {
            return Err(Failure::usage(format!(
                "--dir {}: the directory is not empty and contains no study; name another one",
                dir.display()
            )));
        }
    }
    for name in [layout::CELLS, layout::TARGETS] {
        std::fs::create_dir_all(dir.join(name)).map_err(failed(dir))?;
    }
    let uses_trace = |cell: &Cell| cell.args.iter().any(|arg| arg == check::OWN_TRACE);
    if plan.cells.iter().any(uses_trace) {
        let text = conversations::trace();
        write_whole(&dir.join(conversations::FILE), text.as_bytes())?;
    }
    let text = toml::to_string(study).or_aborted()?;
    write_whole(&dir.join(layout::STUDY), text.as_bytes())?;
    let text = serde_json::to_string_pretty(plan).or_aborted()?;
    write_whole(&dir.join(layout::PLAN), text.as_bytes())
}

/// Writes a file atomically, so that it is complete or absent whenever the process is killed.
fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let beside = path.with_extension("new");
    let write = || {
        std::fs::write(&beside, bytes)?;
        std::fs::File::open(&beside)?.sync_all()?;
        std::fs::rename(&beside, path)
    };
    write().map_err(|e| Failure::aborted(format!("{}: {e}", path.display())))
}

/// Reports the study in `dir`, finished or not.
fn report(dir: &Path, quiet: bool) -> Result<Exit, Failure> {
    if !layout::is_study(dir) {
        return Err(Failure::usage(format!(
            "{}: this is not the directory of a study (it has no {})",
            dir.display(),
            layout::PLAN
        )));
    }
    let (study, plan) = (read_study(dir)?, read_plan(dir)?);
    execute::conclude(dir, &study, &plan, quiet)
}
