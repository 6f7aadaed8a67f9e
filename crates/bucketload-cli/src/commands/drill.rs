//! `bucketload drill`: a run during which something breaks on purpose.

use std::time::Duration;

use bucketload_core::drill::{DrillPlan, What};
use bucketload_core::plan::PhaseKind;
use bucketload_core::units::format_duration;
use bucketload_results::drill::highest_quantile;
use bucketload_workload::resolve::{Drill, DrillFlags, DryRun, Resolved, resolve_drill};
use bucketload_workload::spec::WorkloadFile;

use crate::cli::GlobalArgs;
use crate::cli::drill::DrillArgs;
use crate::cli::run::OutputFormat;
use crate::cli::target::TargetArgs;
use crate::commands::docs::print;
use crate::commands::gates;
use crate::commands::report::{print_result, text_options};
use crate::connection::{Connection, flags_of, target_of};
use crate::drill::line::FaultLine;
use crate::drill::{journal, repeat, stage};
use crate::drivers;
use crate::exit::{Exit, Failure, OrFail};
use crate::files;
use crate::job::{Ceiling, Job};
use crate::target::Target;
use crate::{setup, signals};

/// Carries out the drill, or settles what an earlier one owes.
pub(crate) fn execute(args: &DrillArgs, global: &GlobalArgs, color: bool) -> Result<Exit, Failure> {
    let Some(name) = &args.drill else {
        let dir = args.mend.as_deref().unwrap_or(std::path::Path::new(""));
        return journal::mend(dir, global.quiet);
    };
    args.output.check()?;
    if args.agents.is_some() {
        return Err(Failure::usage(
            "--agents: the load of a drill comes from this process, because the fault line stands between it and the \
             store\n  help: for load from many hosts, let `bucketload run --agents` run, and break the store beside it",
        ));
    }
    let file = load(name)?;
    let target = target_of(&args.target, file.spec().target.as_ref())?;
    let overrides = args.workload_args.overrides().or_usage()?;
    let flags = DrillFlags {
        hooks: args.hooks.clone(),
    };
    let resolved =
        resolve_drill(&file, &overrides, &target.resolve_context(), &flags).or_usage()?;
    gates::check(&args.gates, &resolved.plan)?;
    let Some(Drill {
        plan: drill,
        places,
    }) = resolved.drill.clone()
    else {
        return Err(Failure::usage(format!("{name} breaks nothing")));
    };
    if args.load.dry_run {
        return dry_run(&resolved, &drill, args.output.output);
    }
    if let Some(count) = args.repeat {
        return repeat_all(args, count, &resolved.plan.workload);
    }
    let target_args = flags_of(&args.target, file.spec().target.as_ref())?;
    let makes_faults = drill.faults.iter().any(|fault| !fault.is_hook());
    let mut connection = Connection::open(target, &target_args, &args.load)?;
    let endpoints = connection.endpoints().to_vec();
    let line = match makes_faults {
        true => Some(line(&drill, &places, &resolved, &endpoints)?),
        false => None,
    };
    let [engine, _] = drivers::registry().engine;
    if let (Some(line), Some(name)) = (&line, target_args.settings.get(engine))
        && name != "native"
    {
        lead_engine(&mut connection, line, &endpoints, &target_args)?;
    }
    let (mut job, setting) = job(args, global, resolved, &file, &connection, drill, endpoints)?;
    let stop = signals::watched()?;
    if args.exit_with_stdin {
        signals::stop_with_stdin(stop.clone()).or_aborted()?;
    }
    let (watch, thread) = stage::start(setting, line, stop.clone()).or_aborted()?;
    job.watch = Some(Box::new(watch));
    let out = job.out.clone();
    let ran = job.execute(&connection.driver, &stop);
    // The stage mends before it ends, whatever became of the run.
    let course = thread
        .join()
        .map_err(|_| Failure::aborted("drill: its thread panicked"))?;
    for trouble in &course.troubles {
        eprintln!("bucketload: {trouble}");
    }
    let (done, exit) = ran?;
    drop(connection);
    let options = text_options(color, args.output.explain);
    print_result(&done.result, args.output.output, options)?;
    let exit = gates::judge(&args.gates, &done.result, args.output.output, exit);
    done.print_notes(global.quiet);
    if let Some(why) = course.refused {
        return Err(Failure::gate(format!(
            "nothing was broken: {why}\n  help: a drill needs a baseline that can be believed: lower the rate, lengthen \
             [drill] steady, or accept the verdict with --accept"
        )));
    }
    match course.troubles.is_empty() {
        true => Ok(exit),
        false => Err(Failure::aborted(format!(
            "the drill is not what was planned; its journal says what happened: {}",
            out.join(bucketload_results::drill::JOURNAL).display()
        ))),
    }
}

/// Does the drill several times.
fn repeat_all(args: &DrillArgs, count: u32, workload: &str) -> Result<Exit, Failure> {
    if args.output.output != OutputFormat::Text {
        return Err(Failure::usage(
            "--output: the summary of --repeat is text; remove the flag, and read the drills with `bucketload report`",
        ));
    }
    let started = time::OffsetDateTime::now_utc();
    let dir = setup::run_directory(args.output.out.as_deref(), workload, started)?;
    let stop = signals::watched()?;
    let (summary, exit) = repeat::execute(count, &dir, &stop)?;
    print(summary.as_bytes())?;
    Ok(exit)
}

/// The workload `name`: a file if the name looks like one or a file exists, else a built-in drill.
fn load(name: &str) -> Result<WorkloadFile, Failure> {
    let is_file = name.contains('/') || std::path::Path::new(name).is_file();
    if !is_file && !name.ends_with(".toml") {
        return WorkloadFile::drill(name).or_usage();
    }
    match (
        files::read(name),
        name.strip_prefix("drills/")
            .and_then(|name| name.strip_suffix(".toml")),
    ) {
        (Ok(text), _) => WorkloadFile::parse(name, &text).or_usage(),
        // The repository's name of a built-in drill.
        (Err(failure), Some(stem)) => WorkloadFile::drill(stem).map_err(|_| failure),
        (Err(failure), None) => Err(failure),
    }
}

/// Starts the fault line and leads this process's connections to it.
fn line(
    drill: &DrillPlan,
    places: &[String],
    resolved: &Resolved,
    endpoints: &[String],
) -> Result<FaultLine, Failure> {
    if endpoints.is_empty() {
        return Err(Failure::usage(
            "this target has no connections that faults could strike; name a service, or use a drill whose faults are \
             all hooks",
        ));
    }
    if let Some(index) = drill
        .faults
        .iter()
        .position(|fault| matches!(fault.what, What::Answer { .. }))
        && endpoints.iter().any(|url| url.starts_with("https://"))
    {
        return Err(Failure::usage(format!(
            "{}: fault.what: answers can be made for plain HTTP only, and the target has an https:// endpoint\n  help: \
             use an http:// endpoint, or another kind of fault",
            places.get(index).map(String::as_str).unwrap_or_default()
        )));
    }
    let line = FaultLine::start(drill, places, resolved.plan.seed, endpoints).or_usage()?;
    match bucketload_wire::dns::set_detours(line.detours.clone()) {
        true => Ok(line),
        false => Err(Failure::aborted(
            "drill: this process has a fault line already",
        )),
    }
}

/// Leads another client to the fault line, by its address: unlike the native client, it finds hosts by itself.
fn lead_engine(
    connection: &mut Connection,
    line: &FaultLine,
    endpoints: &[String],
    args: &TargetArgs,
) -> Result<(), Failure> {
    let is_s3 = match &connection.target {
        Target::Service { api, .. } => api.scheme() == "s3",
        _ => true,
    };
    if !is_s3 || endpoints.iter().any(|url| url.starts_with("https://")) {
        return Err(Failure::usage(
            "--engine: faults of the network strike other clients only on S3 over plain HTTP, because they check the \
             name of the host that they connect to, or ask a service for addresses\n  help: use an http:// endpoint of \
             S3, the native client, or a drill whose faults are all hooks",
        ));
    }
    let urls = endpoints.iter().filter_map(|url| line.url_before(url));
    connection.lead_through(urls.collect::<Vec<_>>(), args)
}

fn job(
    args: &DrillArgs,
    global: &GlobalArgs,
    resolved: Resolved,
    file: &WorkloadFile,
    connection: &Connection,
    drill: DrillPlan,
    endpoints: Vec<String>,
) -> Result<(Job, stage::Setting), Failure> {
    let started = time::OffsetDateTime::now_utc();
    let out = setup::run_directory(args.output.out.as_deref(), &resolved.plan.workload, started)?;
    let run_id = setup::new_run_id(started)?;
    let mut options = setup::options(&args.load, &run_id, connection);
    options.interval = Duration::from_nanos(drill.interval_ns);
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if !options.local_target
        && args.load.threads.is_none()
        && args.load.cores.is_none()
        && cores > 1
    {
        // The last core is the fault line's.
        options.threads = Some(cores - 1);
    }
    let Resolved { plan, notes, .. } = resolved;
    let phase = plan
        .phases
        .iter()
        .position(|phase| phase.kind == PhaseKind::Run)
        .unwrap_or(0);
    let setting = stage::Setting {
        drill,
        seed: plan.seed,
        endpoints,
        target: connection.describe(),
        out: out.clone(),
        accept: args.accept.clone(),
        quantile: highest_quantile(args.gates.slo.as_ref()),
        // A plan has fewer phases.
        phase: phase as u16,
    };
    let ceiling = Ceiling::of(&plan, &args.load);
    let mut job = Job::new(plan, file.text(), &run_id, options, connection, out)?;
    job.manifest.scale_note = setup::scale_note(&notes);
    job.manifest.facts.clone_from(&args.output.facts);
    job.manifest.slo.clone_from(&args.gates.slo);
    job.ceiling = ceiling;
    job.op_log = args.output.op_log;
    job.prometheus = args.output.prometheus;
    job.quiet = global.quiet;
    job.notes = notes;
    job.notes.extend(connection.warnings());
    Ok((job, setting))
}

/// Prints what would break and when, with every command, and what the load would be.
fn dry_run(resolved: &Resolved, drill: &DrillPlan, format: OutputFormat) -> Result<Exit, Failure> {
    if format != OutputFormat::Text {
        return Err(Failure::usage(
            "--output: the dry run of a drill is text; remove the flag",
        ));
    }
    let outlook = DryRun::new(&resolved.plan).or_usage()?;
    let mut out = format!(
        "Drill: warm {}, steady {}, faults {}, recover {}\n",
        format_duration(drill.warm_ns),
        format_duration(drill.steady_ns),
        format_duration(drill.faults_end_ns()),
        format_duration(drill.recover_ns)
    );
    for fault in &drill.faults {
        out += &format!("  {} ({}): ", fault.name, fault.what.word());
        let rounds = fault
            .rounds()
            .map(|(from, to)| format!("{} to {}", format_duration(from), format_duration(to)));
        out += &rounds.take(10).collect::<Vec<_>>().join(", ");
        out += if fault.times > 10 {
            ", and so on\n"
        } else {
            "\n"
        };
        if let What::Hook {
            r#break,
            mend,
            check,
            limit_ns,
        } = &fault.what
        {
            let limit = format_duration(*limit_ns);
            for (hook, command) in [("break", r#break), ("mend", mend), ("check", check)] {
                if !command.is_empty() {
                    out += &format!("    {hook}, at most {limit}: {command}\n");
                }
            }
        }
    }
    print(format!("{out}\n{outlook}").as_bytes())?;
    resolved
        .notes
        .iter()
        .for_each(|note| eprintln!("bucketload: {note}"));
    Ok(Exit::Ok)
}
