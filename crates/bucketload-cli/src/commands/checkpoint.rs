//! `bucketload checkpoint`: flags become a workload, which runs as any other.

use std::fmt::Write as _;
use std::path::Path;

use bucketload_core::plan::checkpoint::{
    CheckpointAction, CheckpointPart, CheckpointPlan, LanguageModel,
};
use bucketload_results::result::RunResult;
use bucketload_results::rundir::RunDir;
use bucketload_results::units;
use bucketload_workload::resolve::{Field, Override, Overrides, ResolveContext, resolve};
use bucketload_workload::spec::{WorkloadFile, closest, known_models, language_models};
use serde_json::json;

use crate::cli::GlobalArgs;
use crate::cli::checkpoint::{CheckpointArgs, CheckpointOptions};
use crate::cli::run::OutputFormat;
use crate::commands::docs::print;
use crate::commands::run;
use crate::connection::target_of;
use crate::cosbench::Loaded;
use crate::exit::{Exit, Failure, OrFail};
use crate::files;
use crate::target::{Api, Target};

/// Prints the plan, writes the workload, or runs it.
pub(crate) fn execute(
    args: &CheckpointArgs,
    global: &GlobalArgs,
    color: bool,
) -> Result<Exit, Failure> {
    let target = target_of(&args.target, None)?;
    let options = &match &args.checkpoint.read_from {
        Some(dir) => of_earlier_run(&args.checkpoint, dir)?,
        None => args.checkpoint.clone(),
    };
    let bare = workload(options, &target, Vec::new())?;
    let text = workload(options, &target, settings(options))?;
    let file = WorkloadFile::parse("checkpoint", &bare).or_usage()?;
    let resolved =
        |context: &ResolveContext| resolve(&file, &overrides(options), context).or_usage();
    if let Some(path) = &args.write_workload {
        resolved(&ResolveContext::default())?;
        files::write(path, &text)?;
        return Ok(Exit::Ok);
    }
    if args.plan {
        let resolved = resolved(&ResolveContext::default())?;
        let mut works = resolved.plan.phases.iter().flat_map(|phase| &phase.works);
        let plan = works.find_map(|work| work.model.checkpoint());
        let plan = plan.ok_or_else(|| Failure::aborted("the workload has no checkpoint"))?;
        return match args.output.output {
            OutputFormat::Text => print(plan_text(plan).as_bytes()),
            OutputFormat::Json => print(format!("{}\n", plan_json(plan)).as_bytes()),
            OutputFormat::Jsonl | OutputFormat::Csv => {
                Err(Failure::usage("--plan: use --output text or json"))
            }
        };
    }
    let loaded = || {
        Ok(Loaded {
            resolved: resolved(&target.resolve_context())?,
            source: text,
            target_args: args.target.clone(),
            target: target.clone(),
            triggers: Vec::new(),
        })
    };
    let summary = |result: &RunResult| match (&args.dlio_summary, &result.checkpoint) {
        (Some(path), Some(checkpoint)) => {
            let text = serde_json::to_string_pretty(&checkpoint.dlio_summary()).or_aborted()?;
            files::write(path, text + "\n")
        }
        _ => Ok(()),
    };
    run::execute_loaded(&args.as_run(), global, color, loaded, summary)
}

/// The options with what the run in `dir` wrote: its model, ranks, scale, names, seed and number of checkpoints.
fn of_earlier_run(options: &CheckpointOptions, dir: &Path) -> Result<CheckpointOptions, Failure> {
    let refuse = |why: String| Failure::usage(format!("--read-from {}: {why}", dir.display()));
    let given = [
        ("--model", options.model.is_some()),
        ("--models", options.models.is_some()),
        ("--scale", options.scale.is_some()),
        ("--ranks", options.ranks.is_some()),
        ("--subset", options.subset.is_some()),
        ("--extension", options.extension.is_some()),
        ("--seed", options.seed.is_some()),
        ("--part-size", options.part_size.is_some()),
        ("--parts-in-flight", options.parts_in_flight.is_some()),
        ("--latest", options.latest || options.conditional_latest),
        ("--keep", options.keep),
    ];
    if let Some((flag, _)) = given.into_iter().find(|(_, given)| *given) {
        return Err(refuse(format!(
            "{flag} is a matter of the run that wrote the checkpoints; remove it"
        )));
    }
    if options
        .phase
        .as_deref()
        .is_some_and(|phase| phase != "read")
    {
        return Err(refuse("it only reads; write --phase read".to_owned()));
    }
    let run = RunDir::open(dir).map_err(|e| refuse(e.to_string()))?;
    let plan = &run.manifest().plan;
    let works = plan.phases.iter().flat_map(|phase| &phase.works);
    let written: Vec<&CheckpointPlan> = works
        .filter_map(|work| work.model.checkpoint())
        .filter(|checkpoint| checkpoint.action == CheckpointAction::Write)
        .collect();
    let Some(first) = written.first() else {
        return Err(refuse("that run wrote no checkpoints".to_owned()));
    };
    Ok(CheckpointOptions {
        earlier: Some(first.model.clone()),
        phase: Some("read".to_owned()),
        existing: Some("true".to_owned()),
        count: options
            .count
            .clone()
            .or_else(|| Some(written.len().to_string())),
        scale: Some(format!("{}/{}", first.scale.parts, first.scale.of)),
        subset: Some(first.ranks.to_string()),
        extension: Some(first.extension.clone()),
        seed: Some(plan.seed.to_string()),
        ..options.clone()
    })
}

/// Bytes that the checkpoints of the flags write, with those that are only read.
///
/// # Errors
/// When the flags describe no checkpoint.
pub(crate) fn written(args: &CheckpointArgs) -> Result<u64, Failure> {
    if args.checkpoint.read_from.is_some() {
        return Ok(0);
    }
    let bare = workload(&args.checkpoint, &Target::Memory, Vec::new())?;
    let file = WorkloadFile::parse("checkpoint", &bare).or_usage()?;
    let overrides = overrides(&args.checkpoint);
    let resolved = resolve(&file, &overrides, &ResolveContext::default()).or_usage()?;
    let works = resolved.plan.phases.iter().flat_map(|phase| &phase.works);
    let plans = works.filter_map(|work| work.model.checkpoint());
    let writes = plans.filter(|plan| plan.action == CheckpointAction::Write);
    Ok(writes.map(|plan| plan.total().1).sum())
}

/// Every setting that was given: its path in the workload, its value, and the flag.
fn settings(options: &CheckpointOptions) -> Vec<(&'static str, String, String)> {
    let all = [
        ("checkpoint.phase", "phase", &options.phase),
        ("checkpoint.existing", "read-from", &options.existing),
        ("checkpoint.count", "count", &options.count),
        ("checkpoint.pause", "pause", &options.pause),
        ("checkpoint.scale", "scale", &options.scale),
        ("checkpoint.ranks", "ranks", &options.ranks),
        ("checkpoint.subset", "subset", &options.subset),
        ("checkpoint.rank-shift", "rank-shift", &options.rank_shift),
        ("checkpoint.part-size", "part-size", &options.part_size),
        (
            "checkpoint.parts-in-flight",
            "parts-in-flight",
            &options.parts_in_flight,
        ),
        ("checkpoint.range-size", "range-size", &options.range_size),
        (
            "checkpoint.ranges-in-flight",
            "ranges-in-flight",
            &options.ranges_in_flight,
        ),
        ("checkpoint.extension", "extension", &options.extension),
        ("checkpoint.interval", "interval", &options.interval),
        ("seed", "seed", &options.seed),
        ("timeout", "timeout", &options.timeout),
    ];
    let given = all.into_iter().filter_map(|(path, flag, value)| {
        let value = value.as_ref()?;
        Some((path, value.clone(), format!("--{flag} {value}")))
    });
    let mut given: Vec<_> = given.collect();
    let switches = [
        ("checkpoint.latest", options.latest, "plain", "--latest"),
        (
            "checkpoint.latest",
            options.conditional_latest,
            "conditional",
            "--conditional-latest",
        ),
        ("verify", options.no_verify, "false", "--no-verify"),
        ("keep", options.keep, "true", "--keep"),
    ];
    for (path, _, value, flag) in switches.into_iter().filter(|switch| switch.1) {
        given.push((path, value.to_owned(), flag.to_owned()));
    }
    given
}

/// The same settings, so that a mistake is explained with the flag that has it.
fn overrides(options: &CheckpointOptions) -> Overrides {
    let settings = settings(options)
        .into_iter()
        .map(|(path, value, flag)| Override::typed(Field::Path(path.to_owned()), &value, &flag));
    Overrides {
        profile: None,
        settings: settings.collect(),
    }
}

/// The workload with the model and the target that the flags name, and with `settings`, as TOML.
fn workload(
    options: &CheckpointOptions,
    target: &Target,
    settings: Vec<(&str, String, String)>,
) -> Result<String, Failure> {
    let mut head = format!("name = \"checkpoint-{}\"\n", options.name());
    let mut table = format!("\n[checkpoint]\n{}", model(options)?);
    // Only S3 takes several parts of an upload at the same time.
    let is_s3 = match target {
        Target::Memory | Target::Directory(_) | Target::Null => true,
        Target::Files(_) => false,
        Target::Service { api, .. } => *api == Api::s3(),
    };
    if *target == Target::Null && !options.no_verify {
        // It has nothing to compare.
        head.push_str("verify = false\n");
    }
    if !is_s3 && options.parts_in_flight.is_none() {
        // The default of workloads is that of S3.
        table.push_str("parts-in-flight = 1\n");
    }
    for (path, value, _) in settings {
        let plain = value.parse::<u64>().is_ok() || matches!(value.as_str(), "true" | "false");
        let value = match plain {
            true => value,
            // JSON's escapes are among those of TOML.
            false => json!(value).to_string(),
        };
        match path.strip_prefix("checkpoint.") {
            Some(field) => writeln!(table, "{field} = {value}"),
            None => writeln!(head, "{path} = {value}"),
        }
        .or_aborted()?;
    }
    Ok(head + &table)
}

/// The line of the model: its name, or its numbers if it comes from a file.
fn model(options: &CheckpointOptions) -> Result<String, Failure> {
    if let Some(model) = &options.earlier {
        return Ok(format!("model = {}\n", inline(model)));
    }
    let name = options.name();
    let known = known_models().or_aborted()?;
    let mut names: Vec<String> = known.iter().map(|model| model.name.clone()).collect();
    if let Some(path) = &options.models {
        let text = files::read(path)?;
        let own = language_models(&path.display().to_string(), &text).or_usage()?;
        if let Some(model) = own.iter().find(|model| model.name == name) {
            return Ok(format!("model = {}\n", inline(model)));
        }
        names.extend(own.into_iter().map(|model| model.name));
    }
    if known.iter().any(|model| model.name == name) {
        return Ok(format!("model = \"{name}\"\n"));
    }
    let close = closest(name, names.iter().map(String::as_str));
    let close = close.map_or(String::new(), |name| format!("did you mean {name}? "));
    Err(Failure::usage(format!(
        "--model {name}: unknown model; {close}known: {}; --models FILE adds models by their numbers",
        names.join(", ")
    )))
}

/// The numbers of a model as a table in one line.
fn inline(m: &LanguageModel) -> String {
    format!(
        "{{ name = {}, layers = {}, hidden = {}, ffn = {}, heads = {}, kv-heads = {}, vocabulary = {}, tensor = {}, \
         pipeline = {}, data = {}, zero = {}, weight-bytes = {}, optimizer-bytes = {} }}",
        json!(m.name),
        m.layers,
        m.hidden,
        m.ffn,
        m.heads,
        m.kv_heads,
        m.vocabulary,
        m.tensor,
        m.pipeline,
        m.data,
        m.zero,
        m.weight_bytes,
        m.optimizer_bytes
    )
}

/// Names and sizes of the objects of a rank.
fn objects(plan: &CheckpointPlan, rank: u32) -> Vec<(String, &'static str, u64)> {
    let named = plan.objects(rank).map(|object| {
        let mut name = String::new();
        plan.model
            .push_name(u64::from(rank), object.part, &mut name);
        name.push('.');
        name.push_str(&plan.extension);
        let kind = match object.part {
            CheckpointPart::Optimizer => "optimizer",
            CheckpointPart::Weights | CheckpointPart::Layer(_) => "weights",
        };
        (name, kind, object.bytes)
    });
    named.collect()
}

fn plan_text(plan: &CheckpointPlan) -> String {
    let model = &plan.model;
    let (count, bytes) = plan.total();
    let weights: u64 = (0..plan.ranks).map(|rank| plan.bytes(rank).0).sum();
    let mut out = format!(
        "model       {}: {} parameters, ZeRO {}, tensor {} x pipeline {} x data {} = {} ranks\n\
         scale       {}/{}\n\
         ranks       {}\n\
         objects     {count}\n\
         weights     {weights} bytes\n\
         optimizer   {} bytes\n\
         total       {bytes} bytes, {}\n\n",
        model.name,
        model.params(),
        model.zero,
        model.tensor,
        model.pipeline,
        model.data,
        model.ranks(),
        plan.scale.parts,
        plan.scale.of,
        plan.ranks,
        bytes - weights,
        units::bytes(bytes as f64),
    );
    out.push_str("rank  bytes            object\n");
    for rank in 0..plan.ranks {
        for (name, _, bytes) in objects(plan, rank) {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{rank:<5} {bytes:<16} {name}");
        }
    }
    out
}

fn plan_json(plan: &CheckpointPlan) -> serde_json::Value {
    let (count, bytes) = plan.total();
    let ranks: Vec<_> = (0..plan.ranks)
        .map(|rank| {
            let (weights, optimizer) = plan.bytes(rank);
            let objects: Vec<_> = objects(plan, rank)
                .into_iter()
                .map(|(name, kind, bytes)| json!({ "name": name, "kind": kind, "bytes": bytes }))
                .collect();
            json!({
                "rank": rank, "weights_bytes": weights, "optimizer_bytes": optimizer, "objects": objects,
            })
        })
        .collect();
    // A number beyond 2^53 would be rounded by many readers.
    json!({
        "model": plan.model,
        "params": plan.model.params().to_string(),
        "scale": [plan.scale.parts, plan.scale.of],
        "objects": count,
        "bytes": bytes,
        "ranks": ranks,
    })
}
