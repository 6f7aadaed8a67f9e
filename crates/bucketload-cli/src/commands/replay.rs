//! `bucketload replay`: from log files to a [`Job`] that replays them.

use std::sync::Arc;

use bucketload_core::payload::PayloadKind;
use bucketload_core::plan::replay::{ReplayRequest, plan};
use bucketload_core::plan::{LatePolicy, OnAbsent, Plan, ReplayPart, ReplayPlan, ReplayTiming};
use bucketload_core::trace::TraceOp;
use bucketload_core::units;
use bucketload_results::rundir::TraceInput;
use bucketload_trace::{Replay, SourceOptions, Summary};
use bucketload_workload::resolve::EMBEDDED_MEMORY_BUDGET;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::cli::GlobalArgs;
use crate::cli::gates::GateArgs;
use crate::cli::replay::{Laps, Late, ReplayArgs};
use crate::cli::run::{LoadArgs, OutputArgs, OutputFormat};
use crate::commands::docs::print;
use crate::commands::gates;
use crate::commands::report::{print_result, text_options};
use crate::commands::trace::{facts, failure, name_of, prepared};
use crate::connection::{Connection, target_of};
use crate::exit::{Exit, Failure};
use crate::job::{Ceiling, Job};
use crate::target::Target;
use crate::{setup, signals};

/// Prepares, replays, analyses and prints.
pub(crate) fn execute(
    args: &ReplayArgs,
    global: &GlobalArgs,
    color: bool,
) -> Result<Exit, Failure> {
    args.output.check()?;
    let target = target_of(&args.target, None)?;
    let errors = args.absent.replay_errors;
    let prepared = prepared(&args.trace, args.shape.seed, errors, global.quiet)?;
    let summary = prepared.trace.summary().clone();
    let options = source_options(args, &prepared.trace)?;
    let identity = identity(&prepared.identity, &options);
    let replay = Replay::new(prepared.trace.clone(), options).map_err(failure)?;
    let plan = plan(&request(args, &replay, identity));
    let input = TraceInput {
        facts: all_facts(args, &replay, &plan),
        summary: serde_json::to_value(&summary).unwrap_or_default(),
    };
    if args.load.dry_run {
        return dry_run(&input, args.output.output);
    }
    refuse_too_large(args, &target, &replay)?;
    let connection = Connection::open(target, &args.target, &args.load)?;
    let job = job(
        (&args.load, &args.gates, &args.output),
        global,
        plan,
        replay,
        input,
        &connection,
    )?;
    let stop = signals::watched()?;
    let (done, exit) = job.execute(&connection.driver, &stop)?;
    drop((connection, prepared));
    let options = text_options(color, args.output.explain);
    print_result(&done.result, args.output.output, options)?;
    let exit = gates::judge(&args.gates, &done.result, args.output.output, exit);
    done.print_notes(global.quiet);
    Ok(exit)
}

fn source_options(
    args: &ReplayArgs,
    trace: &bucketload_trace::CanonicalTrace,
) -> Result<SourceOptions, Failure> {
    let shape = &args.shape;
    let mut options = SourceOptions {
        laps: 1,
        lap_keys: shape.lap_keys,
        copies: shape.copies,
        size_factor: shape.size_factor,
        size_bounds: (
            shape.min_size.unwrap_or(0),
            shape.max_size.unwrap_or(u64::MAX),
        ),
        rename: shape.map_bucket.iter().cloned().collect(),
        seed: shape.seed,
    };
    if options.size_bounds.0 > options.size_bounds.1 {
        return Err(Failure::usage(
            "--min-size is larger than --max-size; lower it, or raise --max-size",
        ));
    }
    options.laps = match (shape.laps, args.timing.duration) {
        (Laps::Count(n), _) => n,
        (Laps::Auto, None) => {
            return Err(Failure::usage(
                "--laps auto needs --duration; add it, or give a number of laps",
            ));
        }
        (Laps::Auto, Some(_)) if args.timing.asap.is_some() => {
            return Err(Failure::usage(
                "--laps auto cannot predict the speed of --asap; give a number of laps",
            ));
        }
        (Laps::Auto, Some(duration_ns)) => {
            let once = Replay::new(trace.clone(), options.clone()).map_err(failure)?;
            let lap_ns = once.lap_ns() as f64 / speed(args, trace.summary());
            let laps = (duration_ns as f64 / lap_ns).ceil().max(1.0);
            if laps > 1e6 {
                return Err(Failure::usage(format!(
                    "--laps auto: the trace is so short that it would take {laps:.0} laps; give a number of laps"
                )));
            }
            laps as u32
        }
    };
    Ok(options)
}

/// The factor that recorded times are divided by.
fn speed(args: &ReplayArgs, summary: &Summary) -> f64 {
    match args.timing.rate {
        Some(rate) => rate / recorded_rate(summary),
        None => args.timing.speed,
    }
}

fn recorded_rate(summary: &Summary) -> f64 {
    // n requests span n - 1 gaps.
    let gaps = summary.requests.max(2) - 1;
    gaps as f64 / (summary.span_ns.max(1) as f64 / 1e9)
}

/// The identity of the replayed requests, in 16 hexadecimal digits.
fn identity(trace: &str, options: &SourceOptions) -> String {
    short_hash(&format!("{trace} {options:?}"))
}

/// A hash of `text` in 16 hexadecimal digits.
pub(crate) fn short_hash(text: &str) -> String {
    let digest = Sha256::digest(text);
    digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn request(args: &ReplayArgs, replay: &Replay, identity: String) -> ReplayRequest {
    let summary = replay.trace().summary();
    let (timing, absent) = (&args.timing, &args.absent);
    let shaped = timing.cap_rate.is_some() || timing.cap_bytes.is_some();
    ReplayRequest {
        name: format!("replay-{}", name_of(&args.trace.files[0])),
        replay: ReplayPlan {
            trace: identity,
            part: ReplayPart::Requests,
            timing: match (timing.asap, timing.rate) {
                (Some(_), _) => ReplayTiming::Asap,
                (None, Some(ops_per_s)) => ReplayTiming::Rate {
                    ops_per_s,
                    recorded_ops_per_s: recorded_rate(summary),
                },
                (None, None) if shaped => ReplayTiming::Capped {
                    speed: timing.speed,
                    ops_per_s: timing.cap_rate.unwrap_or(0.0),
                    bytes_per_s: timing.cap_bytes.unwrap_or(0) as f64,
                },
                (None, None) => ReplayTiming::Original {
                    speed: timing.speed,
                },
            },
            late: match timing.late {
                Late::Issue => LatePolicy::Issue,
                Late::Drop(after_ns) => LatePolicy::Drop { after_ns },
            },
            per_key: timing.per_key.unwrap_or(summary.changes_population),
            on_absent: absent.on_absent,
            max_in_flight: timing.asap.unwrap_or(timing.max_in_flight),
            // Bucket names are part of the keys.
            buckets: Vec::new(),
        },
        ops: summary
            .ops
            .keys()
            .filter_map(|name| TraceOp::from_name(name))
            .collect(),
        preload: absent.on_absent != OnAbsent::Expect && summary.preload_objects > 0,
        preload_workers: absent.preload_workers,
        duration_ns: timing.duration.unwrap_or(0),
        timeout_ns: absent.timeout,
        keep: absent.keep,
        payload: PayloadKind::Random,
        seed: args.shape.seed,
    }
}

/// The trace and how it is replayed, line by line.
fn all_facts(args: &ReplayArgs, replay: &Replay, plan: &Plan) -> Vec<(String, String)> {
    let mut rows = facts(replay.trace().summary());
    let mut row = |name: &str, text: String| rows.push((name.to_owned(), text));
    let shape = &args.shape;
    let timing = match (args.timing.asap, args.timing.rate) {
        (Some(n), _) => format!("as soon as possible, {n} in flight (closed loop)"),
        (None, Some(rate)) => format!("mean {}", units::format_rate(rate)),
        (None, None) => format!("recorded times / {}", args.timing.speed),
    };
    row("timing", timing);
    if let Some(fraction) = args.trace.sample {
        let summary = replay.trace().summary();
        row(
            "sample",
            format!(
                "{} of the {}s; {:.2} % of all requests are on those of the ten most requested keys that were kept",
                units::format_share(fraction),
                format!("{:?}", args.trace.sample_by).to_lowercase(),
                100.0 * summary.top10_kept
            ),
        );
    }
    if shape.size_factor != 1.0 || shape.min_size.is_some() || shape.max_size.is_some() {
        row("sizes", format!("times {}", shape.size_factor));
    }
    let seconds = replay.span_ns() as f64 / 1e9 / speed(args, replay.trace().summary());
    let planned = match args.timing.asap {
        Some(_) => format!("{} requests", replay.requests()),
        None => format!("{} requests over {seconds:.3} s", replay.requests()),
    };
    row("replayed", planned);
    row("scenario", plan.scenario_hash());
    rows
}

/// Prints the trace and what would be done.
pub(crate) fn dry_run(input: &TraceInput, format: OutputFormat) -> Result<Exit, Failure> {
    let text = match format {
        OutputFormat::Text => {
            let line = |(name, text): &(String, String)| format!("{name:<14} {text}\n");
            input.facts.iter().map(line).collect::<String>()
        }
        OutputFormat::Json | OutputFormat::Jsonl => {
            json!({ "facts": input.facts, "trace": input.summary }).to_string() + "\n"
        }
        OutputFormat::Csv => {
            return Err(Failure::usage(
                "--output csv: a dry run has no table of results; use text or json",
            ));
        }
    };
    print(text.as_bytes())?;
    Ok(Exit::Ok)
}

/// Refuses a trace whose objects do not fit into the embedded server's memory.
fn refuse_too_large(args: &ReplayArgs, target: &Target, replay: &Replay) -> Result<(), Failure> {
    let summary = replay.trace().summary();
    let bytes =
        summary.preload_bytes as f64 * f64::from(args.shape.copies) * args.shape.size_factor;
    if *target == Target::Memory && bytes > EMBEDDED_MEMORY_BUDGET as f64 {
        return Err(Failure::usage(format!(
            "the objects that must exist take {}, but the embedded server over memory has room for {}; \
             keep fewer keys with --sample, shrink objects with --size-factor, or use another \
             --target",
            units::format_size_f64(bytes),
            units::format_size(EMBEDDED_MEMORY_BUDGET)
        )));
    }
    Ok(())
}

/// The job of a verb that follows a trace.
pub(crate) fn job(
    (load, gates, output): (&LoadArgs, &GateArgs, &OutputArgs),
    global: &GlobalArgs,
    plan: Plan,
    replay: Replay,
    input: TraceInput,
    connection: &Connection,
) -> Result<Job, Failure> {
    let started = time::OffsetDateTime::now_utc();
    let out = setup::run_directory(output.out.as_deref(), &plan.workload, started)?;
    let run_id = setup::new_run_id(started)?;
    let mut options = setup::options(load, &run_id, connection);
    options.trace = Some(Arc::new(replay));
    let ceiling = Ceiling::of(&plan, load);
    let mut job = Job::new(plan, "", &run_id, options, connection, out)?;
    job.ceiling = ceiling;
    job.op_log = output.op_log;
    job.prometheus = output.prometheus;
    job.quiet = global.quiet;
    job.manifest.slo.clone_from(&gates.slo);
    let notes = input.facts.iter().filter(|row| row.0 == "note");
    job.notes = notes.map(|row| row.1.clone()).collect();
    job.notes.extend(connection.warnings());
    job.manifest.trace = Some(input);
    Ok(job)
}
