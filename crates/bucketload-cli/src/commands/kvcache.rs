//! `bucketload kvcache`: from a trace of inference requests to a [`Job`](crate::job::Job), or from users to a workload
//! that `run` carries out.

use bucketload_core::plan::{KvcachePlan, Plan};
use bucketload_core::units;
use bucketload_results::rundir::TraceInput;
use bucketload_trace::{
    BlockStatistics, CanonicalTrace, Format, PrepareOptions, Replay, SourceOptions, Ticks,
    block_statistics, prepare,
};
use bucketload_workload::resolve::EMBEDDED_MEMORY_BUDGET;
use bucketload_workload::spec::WorkloadFile;
use tempfile::TempDir;

use crate::cli::GlobalArgs;
use crate::cli::cosbench::CosbenchArgs;
use crate::cli::kvcache::{KvTraceArgs, KvcacheArgs, Preset};
use crate::cli::run::{DataArgs, RunArgs};
use crate::cli::workload::WorkloadArgs;
use crate::commands::docs::print;
use crate::commands::gates;
use crate::commands::replay::{dry_run, job, short_hash};
use crate::commands::report::{print_result, text_options};
use crate::commands::run;
use crate::commands::trace::{bytes_text, facts, failure, identity, name_of};
use crate::connection::{Connection, target_of};
use crate::exit::{Exit, Failure, OrFail};
use crate::kvcache::{CacheOptions, MODEL, Models, is_of_users, plan, workload};
use crate::signals;
use crate::target::Target;

/// Prepares, runs, analyses and prints.
pub(crate) fn execute(
    args: &KvcacheArgs,
    global: &GlobalArgs,
    color: bool,
) -> Result<Exit, Failure> {
    args.output.check()?;
    let models = Models::load(args.cache.models.as_deref()).or_usage()?;
    if let Some(preset) = args.cache.preset.filter(|_| args.trace.files.is_empty()) {
        return of_users(args, preset, &models, global, color);
    }
    if is_of_users(args.cache.preset) {
        return Err(Failure::usage(
            "--preset mlperf-1, mlperf-2 and mlperf-3: their users ask in place of a trace; leave out --trace",
        ));
    }
    if args.agents.is_distributed() {
        return Err(Failure::usage(
            "one index decides what the requests of a trace do, so they cannot be divided over agents; leave out --agents and \
             --launch, or let users ask (--preset mlperf-1), whose clients are independent",
        ));
    }
    let target = target_of(&args.target, None)?;
    models
        .get(args.cache.model.as_deref().unwrap_or(MODEL))
        .or_usage()?;
    let (trace, _temp) = prepared(&args.trace, global.quiet)?;
    let blocks = block_statistics(&trace).map_err(failure)?;
    let options = CacheOptions {
        name: format!("kvcache-{}", name_of(&args.trace.files[0])),
        trace: short_hash(&identity(
            trace.summary(),
            &format!("{:?}", args.trace.window),
        )),
        blocks,
        models: &models,
    };
    let plan = plan(&args.cache, options).or_usage()?;
    let input = TraceInput {
        facts: all_facts(&trace, &blocks, &plan),
        summary: serde_json::json!({ "trace": trace.summary(), "blocks": blocks }),
    };
    if args.load.dry_run {
        return dry_run(&input, args.output.output);
    }
    refuse_too_large(&target, &plan, &blocks)?;
    let connection = Connection::open(target, &args.target, &args.load)?;
    let replay = Replay::new(trace, SourceOptions::default()).map_err(failure)?;
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
    drop(connection);
    let options = text_options(color, args.output.explain);
    print_result(&done.result, args.output.output, options)?;
    let exit = gates::judge(&args.gates, &done.result, args.output.output, exit);
    done.print_notes(global.quiet);
    Ok(exit)
}

/// Lets users ask, or prints their workload.
fn of_users(
    args: &KvcacheArgs,
    preset: Preset,
    models: &Models,
    global: &GlobalArgs,
    color: bool,
) -> Result<Exit, Failure> {
    let (name, text) = workload(preset, &args.cache, &args.users, models).or_usage()?;
    if args.users.show {
        return print(text.as_bytes());
    }
    let file = WorkloadFile::parse(&format!("{name}.toml"), &text).or_aborted()?;
    let run = as_run(args, name);
    let loaded = || run::load_file(&run, file);
    run::execute_loaded(&run, global, color, loaded, |_| Ok(()))
}

/// The flags of the run that carries it out.
fn as_run(args: &KvcacheArgs, workload: String) -> RunArgs {
    let cache = &args.cache;
    RunArgs {
        workload,
        target: args.target.clone(),
        workload_args: WorkloadArgs {
            seed: cache.seed.map(|seed| seed.to_string()),
            verify: cache.verify,
            keep: cache.keep,
            timeout: cache.timeout.map(units::format_duration),
            set: args.users.set.clone(),
            ..WorkloadArgs::default()
        },
        data: DataArgs::default(),
        load: args.load.clone(),
        gates: args.gates.clone(),
        until_precise: None,
        no_calibration_cache: false,
        cosbench: CosbenchArgs::default(),
        agents: args.agents.clone(),
        output: args.output.clone(),
        expect_rate: None,
        exit_with_stdin: false,
        confined: false,
        allow_root: Vec::new(),
    }
}

/// Bytes that a cache without limits writes for the trace; `None` without a trace, because users write as fast as the
/// store lets them.
///
/// # Errors
/// When the trace cannot be read, or the flags contradict each other.
pub(crate) fn written(args: &KvcacheArgs) -> Result<Option<u64>, Failure> {
    if args.trace.files.is_empty() {
        return Ok(None);
    }
    let models = Models::load(args.cache.models.as_deref()).or_usage()?;
    models
        .get(args.cache.model.as_deref().unwrap_or(MODEL))
        .or_usage()?;
    let (trace, _temp) = prepared(&args.trace, true)?;
    let blocks = block_statistics(&trace).map_err(failure)?;
    let options = CacheOptions {
        name: String::new(),
        trace: String::new(),
        blocks,
        models: &models,
    };
    let plan = plan(&args.cache, options).or_usage()?;
    let tokens = blocks.distinct_tokens as f64;
    Ok(Some((tokens * per_token(cache(&plan))) as u64))
}

/// Imports the files.
fn prepared(args: &KvTraceArgs, quiet: bool) -> Result<(CanonicalTrace, TempDir), Failure> {
    let place = args.temp.clone().unwrap_or_else(std::env::temp_dir);
    let temp = tempfile::Builder::new()
        .prefix("bucketload-trace-")
        .tempdir_in(&place)
        .map_err(|e| Failure::usage(format!("--temp {}: {e}", place.display())))?;
    let options = PrepareOptions {
        format: Some(Format::Mooncake),
        // The blocks of a request stay together.
        ticks: Ticks::Burst,
        window: args
            .window
            .map_or((0, i64::MAX), |window| (window.0, window.1)),
        lenient: args.lenient,
        samples: args.unparsable.clone(),
        ..PrepareOptions::new(temp.path().to_owned())
    };
    if !quiet {
        let names: Vec<String> = args.files.iter().map(|f| f.display().to_string()).collect();
        eprintln!("bucketload: reading {}", names.join(", "));
    }
    let out = temp.path().join("trace.bltrace");
    let trace = prepare(&args.files, &options, &out).map_err(|error| {
        let text = error.to_string();
        let malformed = text.contains("malformed");
        let hint = match malformed {
            true => {
                "; kvcache needs a Mooncake trace, JSON lines with timestamp, input_length, output_length and hash_ids. \
                 Other traces of language models (Azure, BurstGPT) do not say which prompts begin alike, so nothing in them \
                 could hit: let users ask in their place (--preset mlperf-1). `bucketload replay` and `model` read other \
                 traces"
            }
            false => "",
        };
        Failure::usage(format!("{text}{hint}"))
    })?;
    Ok((trace, temp))
}

/// The work of the plan.
fn cache(plan: &Plan) -> &KvcachePlan {
    let mut works = plan.phases.iter().flat_map(|phase| &phase.works);
    works
        .find_map(|work| work.model.kvcache())
        .expect("the plan has such a work")
}

/// The trace and what it means for the store, line by line.
fn all_facts(
    trace: &CanonicalTrace,
    blocks: &BlockStatistics,
    plan: &Plan,
) -> Vec<(String, String)> {
    let kept = ["file", "left out", "note"];
    let all = facts(trace.summary()).into_iter();
    let mut rows: Vec<_> = all.filter(|row| kept.contains(&row.0.as_str())).collect();
    let outside = rows.iter_mut().find(|row| row.1.contains("outside-window"));
    if let Some(row) = outside {
        row.1 += "; a request outside the window counts once per block";
    }
    let mut row = |name: &str, text: String| rows.push((name.to_owned(), text));
    let cache = cache(plan);
    let seconds = trace.summary().span_ns as f64 / 1e9;
    let pace = match cache.speed {
        0.0 => "one after another".to_owned(),
        speed => format!("over {:.3} s", seconds / speed),
    };
    row("requests", format!("{} {pace}", blocks.requests));
    row(
        "blocks",
        format!(
            "{} listed, {} distinct, at most {} in a request, of {} tokens",
            blocks.listed, blocks.distinct, blocks.most_blocks, cache.trace_block_tokens
        ),
    );
    row(
        "hit ratio",
        format!(
            "{:.3} % of a cache that keeps everything ({:.3} % before the first miss of a request)",
            100.0 * blocks.hit_ratio(),
            100.0 * blocks.prefix_hits as f64 / blocks.listed.max(1) as f64
        ),
    );
    let bytes = |tokens: u64| bytes_text((tokens as f64 * per_token(cache)) as u64);
    let object = cache.part_bytes(cache.block_bytes, 0);
    row(
        "model",
        format!(
            "{}: {:.0} bytes per token, blocks of {} tokens in {} objects of {}",
            cache.model,
            per_token(cache),
            cache.block_tokens,
            cache.parts(),
            units::format_size(object)
        ),
    );
    row(
        "expected",
        format!(
            "{} written, {} read by a cache that keeps everything",
            bytes(blocks.distinct_tokens),
            bytes(blocks.prefix_hit_tokens)
        ),
    );
    row("scenario", plan.scenario_hash());
    rows
}

fn per_token(cache: &KvcachePlan) -> f64 {
    cache.block_bytes as f64 / cache.block_tokens as f64
}

/// Refuses a cache that does not fit into the embedded server's memory.
fn refuse_too_large(target: &Target, plan: &Plan, blocks: &BlockStatistics) -> Result<(), Failure> {
    let cache = cache(plan);
    let all = blocks.distinct_tokens as f64 * per_token(cache);
    let held = match cache.budget_bytes {
        0 => all,
        budget => all.min(budget as f64),
    };
    if *target == Target::Memory && held > EMBEDDED_MEMORY_BUDGET as f64 {
        return Err(Failure::usage(format!(
            "the cache would hold {}, but the embedded server over memory has room for {}; use fewer bytes \
             (--bytes-per-token), a --budget, a part of the trace (--window), or another --target",
            bytes_text(held as u64),
            units::format_size(EMBEDDED_MEMORY_BUDGET)
        )));
    }
    Ok(())
}
