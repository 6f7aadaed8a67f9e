//! `bucketload run`: from the command line to a [`Job`].

use std::ops::ControlFlow;
use std::path::Path;

use bucketload_console::outcome;
use bucketload_results::result::{RunResult, ossperf};
use bucketload_workload::resolve::{DryRun, Resolved, resolve};
use bucketload_workload::spec::WorkloadFile;

use crate::cli::GlobalArgs;
use crate::cli::run::{OutputFormat, RunArgs};
use crate::cli::target::TargetArgs;
use crate::cli::workload::WorkloadArgs;
use crate::commands::agent;
use crate::commands::docs::print;
use crate::commands::gates;
use crate::commands::report::{print_result, text_options};
use crate::commands::workloads::load;
use crate::confine;
use crate::connection::{Connection, flags_of, target_of};
use crate::cosbench;
use crate::cosbench::Loaded;
use crate::distributed::fleet;
use crate::drivers;
use crate::exit::{Exit, Failure, OrFail};
use crate::job::{Ceiling, Done, Job, unix_ns};
use crate::kept::Kept;
use crate::olddata::{self, OldData};
use crate::target::Target;
use crate::{room, setup, signals};

/// Runs, analyses and prints.
pub(crate) fn execute(args: &RunArgs, global: &GlobalArgs, color: bool) -> Result<Exit, Failure> {
    execute_loaded(args, global, color, || load_any(args), |_| Ok(()))
}

/// As [`execute`], with a workload that comes from elsewhere. Calls `then` with the result once it is printed.
pub(crate) fn execute_loaded(
    args: &RunArgs,
    global: &GlobalArgs,
    color: bool,
    loaded: impl FnOnce() -> Result<Loaded, Failure>,
    then: impl FnOnce(&RunResult) -> Result<(), Failure>,
) -> Result<Exit, Failure> {
    // Available only while the process has a single thread.
    let local = time::UtcOffset::current_local_offset().unwrap_or(time::UtcOffset::UTC);
    args.output.check()?;
    let mut agents = args.agents.clone();
    agents
        .allow_local_writes
        .clone_from(&args.cosbench.allow_local_writes);
    let place = match agent::coordinates(&agents, &args.load, global.quiet)? {
        ControlFlow::Continue(place) => place,
        ControlFlow::Break(exit) => return Ok(exit),
    };
    let Loaded {
        mut resolved,
        source,
        target,
        target_args,
        triggers,
    } = loaded()?;
    if args.confined {
        confine::check(&target, &args.allow_root)?;
    }
    gates::check(&args.gates, &resolved.plan)?;
    if let Some(precision) = args.until_precise {
        gates::until_precise(&mut resolved.plan, precision)?;
    }
    let steps = resolved.plan.phases.iter().map(|phase| phase.name.as_str());
    let measured: Vec<&str> = steps.filter(|name| ossperf::STEPS.contains(name)).collect();
    if args.output.results_csv.is_some() && measured != ossperf::STEPS {
        return Err(Failure::usage(format!(
            "--results-csv: the workload {} does not have OSSperf's six steps; use the workload ossperf",
            resolved.plan.workload
        )));
    }
    let old = olddata::apply(&mut resolved, &args.data, &target, unix_ns())?;
    let kept = Kept::of(&args.data, &resolved.plan, &target)?;
    let announced = room::announced(&resolved.plan, &target, kept.as_ref(), args.expect_rate);
    if args.load.dry_run {
        let outlook = dry_run(&resolved, args.output.output, global.quiet)?;
        let possible = announced.and_then(|_| unchecked(&target, &target_args, global.quiet));
        return match possible {
            // A controller accepts what its check accepts.
            Err(refused) if args.confined => Err(refused),
            Err(refused) => {
                eprintln!(
                    "bucketload: the run itself would be refused: {}",
                    refused.message
                );
                Ok(outlook)
            }
            Ok(()) => Ok(outlook),
        };
    }
    if let Some(said) = announced?.filter(|_| !global.quiet) {
        eprintln!("bucketload: {said}");
    }
    if let (Some(archive), Some(number)) = (
        &args.cosbench.cosbench_artifacts,
        args.cosbench.cosbench_number,
    ) {
        cosbench::artifacts::check_number(archive, number)?;
    }
    let connection = Connection::open(target, &target_args, &args.load)?;
    let mut job = job(args, global, resolved, &source, &connection, (old, kept))?;
    if !triggers.is_empty() {
        job.options.at_edges = Some(cosbench::triggers::hook(triggers, &job.out));
    }
    let flags = (&connection, &target_args);
    fleet::distribute(&mut job, &agents, &args.load, place.as_ref(), flags)?;
    let stop = signals::watched()?;
    if args.exit_with_stdin {
        signals::stop_with_stdin(stop.clone()).or_aborted()?;
    }
    let (done, exit) = job.execute(&connection.driver, &stop)?;
    drop(connection);
    // A run that only prepared has no result to read; programs get it all the same.
    if !(args.data.prepare_only && args.output.output == OutputFormat::Text) {
        let options = text_options(color, args.output.explain);
        print_result(&done.result, args.output.output, options)?;
    }
    then(&done.result)?;
    if args.confined {
        // For the pages of the controller that started this run. Without it they lack figures; the run is what it is.
        if let Err(e) = outcome::write(&done.out, &done.result) {
            eprintln!("bucketload: {}: {e}", done.out.display());
        }
    }
    let exit = gates::judge(&args.gates, &done.result, args.output.output, exit);
    ossperf_line(
        &done,
        args.output.results_csv.as_deref(),
        local,
        global.quiet,
    )?;
    if let Some(archive) = &args.cosbench.cosbench_artifacts {
        let offset = i64::from(local.whole_seconds());
        let number = args.cosbench.cosbench_number;
        let dir = cosbench::artifacts::write(&done.out, &done.result, archive, number, offset)?;
        if !global.quiet {
            eprintln!("bucketload: COSBench's artifacts: {}", dir.display());
        }
    }
    done.print_notes(global.quiet);
    Ok(exit)
}

/// Appends the line of a run of OSSperf's six steps to `results.csv`, here and in the run directory. A run with
/// failures has no such line.
fn ossperf_line(
    done: &Done,
    file: Option<&Path>,
    local: time::UtcOffset,
    quiet: bool,
) -> Result<(), Failure> {
    let Some(run) = &done.result.ossperf else {
        return Ok(());
    };
    let ended = i128::from(done.result.run.ended_unix_ns);
    let ended = time::OffsetDateTime::from_unix_timestamp_nanos(ended).or_aborted()?;
    let file = file.unwrap_or_else(|| Path::new("results.csv"));
    let Some(line) = run.line(ended.to_offset(local)) else {
        eprintln!(
            "bucketload: appended no line to {}: {}",
            file.display(),
            run.incomplete
        );
        return Ok(());
    };
    for path in [file, &done.out.join("results.csv")] {
        ossperf::append(path, &line).or_aborted()?;
    }
    if !quiet {
        eprintln!("bucketload: appended a line to {}", file.display());
    }
    Ok(())
}

/// The workload of the command line, in either language.
fn load_any(args: &RunArgs) -> Result<Loaded, Failure> {
    if cosbench::is_workload(&args.workload) {
        return cosbench::load(
            &args.workload,
            &args.cosbench,
            &args.target,
            &args.workload_args,
            cosbench::RunMode {
                dry_run: args.load.dry_run,
                agents: args.agents.is_distributed(),
            },
        );
    }
    if let Some(flag) = args.cosbench.given() {
        return Err(Failure::usage(format!(
            "{flag} is for COSBench workloads, which {} is not; remove it",
            args.workload
        )));
    }
    load_file(args, load(&args.workload)?)
}

/// A run of the workload `file`.
pub(crate) fn load_file(args: &RunArgs, file: WorkloadFile) -> Result<Loaded, Failure> {
    let mut workload_args = args.workload_args.clone();
    workload_args.keep |= args.data.keeps();
    let (resolved, file, target) = resolve_file(file, &args.target, &workload_args)?;
    let target_args = flags_of(&args.target, file.spec().target.as_ref())?;
    Ok(Loaded {
        resolved,
        source: file.text().to_owned(),
        target,
        target_args,
        triggers: Vec::new(),
    })
}

/// Workload, settings and target of a command line, resolved.
pub(crate) fn resolve_workload(
    name: &str,
    target_args: &TargetArgs,
    workload_args: &WorkloadArgs,
) -> Result<(Resolved, WorkloadFile, Target), Failure> {
    resolve_file(load(name)?, target_args, workload_args)
}

fn resolve_file(
    file: WorkloadFile,
    target_args: &TargetArgs,
    workload_args: &WorkloadArgs,
) -> Result<(Resolved, WorkloadFile, Target), Failure> {
    let target = target_of(target_args, file.spec().target.as_ref())?;
    let overrides = workload_args.overrides().or_usage()?;
    let resolved = resolve(&file, &overrides, &target.resolve_context()).or_usage()?;
    Ok((resolved, file, target))
}

fn dry_run(resolved: &Resolved, format: OutputFormat, quiet: bool) -> Result<Exit, Failure> {
    let outlook = DryRun::new(&resolved.plan).or_usage()?;
    let text = match format {
        OutputFormat::Text => outlook.to_string(),
        OutputFormat::Json | OutputFormat::Jsonl => {
            format!("{}\n", serde_json::to_string(&outlook).unwrap_or_default())
        }
        OutputFormat::Csv => {
            return Err(Failure::usage(
                "--output csv: a dry run has no table of results; use text or json",
            ));
        }
    };
    print(text.as_bytes())?;
    if !quiet {
        resolved
            .notes
            .iter()
            .for_each(|note| eprintln!("bucketload: {note}"));
    }
    Ok(Exit::Ok)
}

/// Says what a dry run does not check.
///
/// # Errors
/// When the target's flags, files or credentials would not do.
fn unchecked(target: &Target, args: &TargetArgs, quiet: bool) -> Result<(), Failure> {
    let opened = drivers::ask(target, &args.settings, None, |driver, request| {
        (driver.open)(request)
    })?;
    if opened.is_some() && !quiet {
        eprintln!(
            "bucketload: nothing was sent to the target: whether it can be reached, accepts the credentials and has \
             room for the objects is not checked"
        );
    }
    Ok(())
}

fn job(
    args: &RunArgs,
    global: &GlobalArgs,
    resolved: Resolved,
    source: &str,
    connection: &Connection,
    (old, kept): (Option<OldData>, Option<Kept>),
) -> Result<Job, Failure> {
    let started = time::OffsetDateTime::now_utc();
    let out = setup::run_directory(args.output.out.as_deref(), &resolved.plan.workload, started)?;
    let run_id = match kept.as_ref().and_then(|kept| kept.run_id.clone()) {
        Some(run_id) => run_id,
        None => setup::new_run_id(started)?,
    };
    let mut options = setup::options(&args.load, &run_id, connection);
    options.change_existing = args.cosbench.delete_named;
    let Resolved { plan, notes, .. } = resolved;
    let mut ceiling = Ceiling::of(&plan, &args.load);
    if !args.no_calibration_cache {
        ceiling = ceiling.or_cached();
    }
    let mut job = Job::new(plan, source, &run_id, options, connection, out)?;
    job.manifest.scale_note = setup::scale_note(&notes);
    job.manifest.facts.clone_from(&args.output.facts);
    job.manifest.slo.clone_from(&args.gates.slo);
    if let Some(old) = old {
        job.options.data = Some(old.data);
        job.manifest.data_note = old.note;
    }
    job.ceiling = ceiling;
    if let Some(kept) = kept {
        if kept.phases.is_some() {
            job.ceiling = Ceiling::Skip;
        }
        job.manifest.prepare_only = kept.phases.is_some();
        job.options.phases = kept.phases;
        job.options.data_set = Some(kept.set);
        job.manifest.data_note = kept.note;
    }
    job.op_log = args.output.op_log;
    job.prometheus = args.output.prometheus;
    job.quiet = global.quiet;
    job.notes = notes;
    job.notes.extend(connection.warnings());
    Ok(job)
}
