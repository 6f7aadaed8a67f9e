//! `bucketload run`: from the command line to a job on a driver.

use std::path::PathBuf;
use std::sync::Arc;

use bucketload_core::plan::PhaseKind;
use bucketload_core::resolve::{DryRun, EMBEDDED_MEMORY_BUDGET, ResolveContext, Resolved, resolve};
use bucketload_core::spec::{TargetSpec, WorkloadFile};
use bucketload_drivers::null::NullDriver;
use bucketload_drivers::s3::S3Driver;
use bucketload_results::rundir::{ClientFacts, Manifest, host::HostFacts};
use bucketload_run::{Cores, Pacing, RunOptions};

use crate::cli::GlobalArgs;
use crate::cli::run::{self as cli, OpLogForm, OutputFormat, RunArgs};
use crate::cli::target::TargetArgs;
use crate::cli::values::CoreList;
use crate::cli::workload::WorkloadArgs;
use crate::commands::report::print_result;
use crate::commands::workloads::load;
use crate::embedded::{EmbeddedServer, random_hex};
use crate::exit::{Exit, Failure};
use crate::job::{Done, Job};
use crate::live::Live;
use crate::s3;
use crate::target::Target;

/// Runs, analyses and prints.
pub(crate) fn execute(args: &RunArgs, global: &GlobalArgs, color: bool) -> Result<Exit, Failure> {
    let (resolved, file, target) =
        resolve_workload(&args.workload, &args.target, &args.workload_args)?;
    if args.load.dry_run {
        return dry_run(&resolved, args.output.output, global.quiet);
    }
    let embedded = match &target {
        Target::S3 { .. } => None,
        Target::Null => {
            s3::refuse_service_flags(&args.target, "null:")?;
            None
        }
        Target::Memory => Some(start_embedded("memory", args)?),
        Target::Directory(path) => {
            Some(start_embedded(&format!("posix:{}", path.display()), args)?)
        }
    };
    let (done, exit) = match (&target, &embedded) {
        (Target::Null, _) => job(args, global, resolved, &file, &target, &[])?
            .execute(Arc::new(NullDriver::new()))?,
        (_, Some(server)) => on_s3(
            args,
            global,
            resolved,
            &file,
            &target,
            s3::embedded(server, &args.target)?,
        )?,
        (_, None) => on_s3(
            args,
            global,
            resolved,
            &file,
            &target,
            s3::config(&args.target)?,
        )?,
    };
    drop(embedded);
    print_result(&done.result, args.output.output, color)?;
    if !global.quiet {
        eprintln!(
            "bucketload: report: {}",
            done.out.join("report.html").display()
        );
    }
    Ok(exit)
}

fn on_s3(
    args: &RunArgs,
    global: &GlobalArgs,
    resolved: Resolved,
    file: &WorkloadFile,
    target: &Target,
    config: bucketload_drivers::s3::S3Config,
) -> Result<(Done, Exit), Failure> {
    let hosts: Vec<String> = config
        .endpoints
        .iter()
        .map(|endpoint| endpoint.url())
        .collect();
    let driver = S3Driver::new(config).map_err(|e| Failure::usage(e.to_string()))?;
    job(args, global, resolved, file, target, &hosts)?.execute(Arc::new(driver))
}

/// Workload, settings and target of a command line, resolved.
pub(crate) fn resolve_workload(
    name: &str,
    target_args: &TargetArgs,
    workload_args: &WorkloadArgs,
) -> Result<(Resolved, WorkloadFile, Target), Failure> {
    let usage = |e: bucketload_core::spec::SpecError| Failure::usage(e.to_string());
    let file = load(name)?;
    let target = target_of(target_args, file.spec().target.as_ref())?;
    let context = ResolveContext {
        memory_budget: (target == Target::Memory).then_some(EMBEDDED_MEMORY_BUDGET),
    };
    let overrides = workload_args.overrides().map_err(usage)?;
    let resolved = resolve(&file, &overrides, &context).map_err(usage)?;
    Ok((resolved, file, target))
}

/// The target of the flags, else of the workload, else the embedded server over memory.
pub(crate) fn target_of(args: &TargetArgs, spec: Option<&TargetSpec>) -> Result<Target, Failure> {
    let text = args.target.as_deref().or_else(|| spec?.url.as_deref());
    match text {
        Some(text) => Target::parse(text).map_err(|e| Failure::usage(format!("--target: {e}"))),
        None => {
            s3::refuse_service_flags(args, "mem: (the default)")?;
            Ok(Target::Memory)
        }
    }
}

fn start_embedded(store: &str, args: &RunArgs) -> Result<EmbeddedServer, Failure> {
    s3::refuse_service_flags(&args.target, "an embedded server")?;
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut server = vec!["--store".to_owned(), store.to_owned()];
    // The client takes the first half of the cores (see RunOptions::local_target).
    let threads = (cores / 2).max(1);
    server.extend(["--threads".to_owned(), threads.to_string()]);
    if cores > 1 && args.load.cores.is_none() && args.load.threads.is_none() {
        server.extend([
            "--cores".to_owned(),
            format!("{}-{}", cores - threads, cores - 1),
        ]);
    }
    EmbeddedServer::start(&server).map_err(Failure::target)
}

fn dry_run(resolved: &Resolved, format: OutputFormat, quiet: bool) -> Result<Exit, Failure> {
    let outlook = DryRun::new(&resolved.plan).map_err(|e| Failure::usage(e.to_string()))?;
    match format {
        OutputFormat::Text => print!("{outlook}"),
        OutputFormat::Json | OutputFormat::Jsonl => {
            println!("{}", serde_json::to_string(&outlook).unwrap_or_default());
        }
        OutputFormat::Csv => {
            return Err(Failure::usage(
                "--output csv: a dry run has no table of results; use text or json",
            ));
        }
    }
    if !quiet {
        resolved
            .notes
            .iter()
            .for_each(|note| eprintln!("bucketload: {note}"));
    }
    Ok(Exit::Ok)
}

fn job(
    args: &RunArgs,
    global: &GlobalArgs,
    resolved: Resolved,
    file: &WorkloadFile,
    target: &Target,
    endpoints: &[String],
) -> Result<Job, Failure> {
    let started = time::OffsetDateTime::now_utc();
    let mut out: PathBuf = args.output.run_directory(&resolved.plan.workload, started);
    if args.output.out.is_none() {
        // Two runs in one second.
        let named = out.clone();
        let mut n = 1;
        while out.exists() {
            n += 1;
            out = named.with_extension(n.to_string());
        }
    }
    if out
        .read_dir()
        .is_ok_and(|mut entries| entries.next().is_some())
    {
        return Err(Failure::usage(format!(
            "--out {}: it holds something already; choose another directory",
            out.display()
        )));
    }
    let run_id = format!(
        "{}-{}",
        started.unix_timestamp(),
        random_hex(4).map_err(Failure::aborted)?
    );
    let local = target.is_embedded() || endpoints.iter().any(|url| is_local(url));
    let options = options(args, &run_id, target, local);
    let mut manifest = Manifest::new(run_id, env!("CARGO_PKG_VERSION"), resolved.plan.clone());
    // The note begins with the scale, which results show by themselves.
    let scale_note = resolved
        .notes
        .iter()
        .find_map(|note| note.strip_prefix("scale ")?.split_once(": "));
    manifest.scale_note = scale_note
        .map(|(_, note)| note.to_owned())
        .unwrap_or_default();
    manifest.target = describe(target, endpoints);
    manifest.client = ClientFacts {
        threads: options
            .load_threads()
            .map_err(|e| Failure::usage(e.to_string()))? as u32,
        spinning: args.load.busy_poll,
        interval_ns: 1_000_000_000,
    };
    manifest.host = HostFacts::collect();
    manifest.command_line = std::env::args().collect();
    manifest.workload_source = file.text().to_owned();
    let live = Live::new(&resolved.plan, global.quiet);
    Ok(Job {
        options,
        manifest,
        out,
        calibrate: (!args.load.no_calibration)
            .then(|| {
                resolved
                    .plan
                    .phases
                    .iter()
                    .position(|phase| phase.kind == PhaseKind::Run)
            })
            .flatten(),
        op_log: args.output.op_log.map(OpLogForm::format),
        prometheus: args.output.prometheus,
        live,
        notes: resolved.notes,
        plan: resolved.plan,
    })
}

fn options(args: &RunArgs, run_id: &str, target: &Target, local: bool) -> RunOptions {
    RunOptions {
        run_id: run_id.to_owned(),
        bucket: target.bucket().to_owned(),
        prefix: target.run_prefix(run_id),
        threads: args.load.threads.map(usize::from),
        cores: match &args.load.cores {
            None => Cores::First,
            Some(CoreList::None) => Cores::Unpinned,
            Some(CoreList::These(list)) => Cores::List(list.clone()),
        },
        local_target: local,
        pacing: match (args.load.busy_poll, args.load.pacing) {
            (true, _) => Pacing::BusyPoll,
            (false, cli::Pacing::Timer) => Pacing::Timer,
            (false, cli::Pacing::Precise) => Pacing::Precise,
        },
        create_bucket: args.load.create_bucket || !matches!(target, Target::S3 { .. }),
        ..RunOptions::default()
    }
}

/// Whether a URL names this machine, so that the target needs cores of its own.
fn is_local(url: &str) -> bool {
    let host = url.split("://").nth(1).unwrap_or(url);
    host.starts_with("127.") || host.starts_with("localhost") || host.starts_with("[::1]")
}

fn describe(target: &Target, endpoints: &[String]) -> String {
    match target {
        Target::Memory => "the embedded server (memory)".to_owned(),
        Target::Directory(path) => format!("the embedded server ({})", path.display()),
        Target::Null => "the null target".to_owned(),
        Target::S3 { bucket, prefix } => {
            let at = endpoints
                .first()
                .map_or_else(String::new, |url| format!(" at {url}"));
            let more = if endpoints.len() > 1 {
                " and others"
            } else {
                ""
            };
            format!("s3://{bucket}/{prefix}{at}{more}")
        }
    }
}
