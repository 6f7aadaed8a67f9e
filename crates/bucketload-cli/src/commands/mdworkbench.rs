//! `bucketload md-workbench`: precreation, benchmark and cleanup, all of them or a part.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::Path;

use bucketload_core::plan::ranks::RankMapping;
use bucketload_results::mdworkbench::{Kind, Stage, StageKind, latency, stages, text};
use time::macros::format_description;

use crate::cli::GlobalArgs;
use crate::cli::mdworkbench::{WorkbenchArgs, WorkbenchOptions};
use crate::commands::agent;
use crate::commands::docs::print;
use crate::connection::{Connection, target_of};
use crate::distributed::fleet;
use crate::exit::{Exit, Failure, OrFail};
use crate::job::Job;
use crate::mdworkbench::{Info, PROFILE, Parts, plan};
use crate::target::Target;
use crate::{files, rank_calls, setup, signals};

/// Name of the file with the output lines in the run directory.
pub(crate) const LINES: &str = "md-workbench.txt";

/// Runs and prints the lines.
pub(crate) fn execute(args: &WorkbenchArgs, global: &GlobalArgs) -> Result<Exit, Failure> {
    let launched = match agent::coordinates(&args.agents, &args.load, global.quiet)? {
        ControlFlow::Continue(launched) => launched,
        ControlFlow::Break(exit) => return Ok(exit),
    };
    let agents = fleet::number(&args.agents, launched.as_ref());
    let options = &args.workbench;
    let parts = Parts::of(options);
    let target = target_of(&args.target, None)?;
    if !parts.all() && target == Target::Memory {
        return Err(Failure::usage(
            "-1, -2, -3: the embedded server keeps objects in memory and ends with the command; use \
             another --target, or run all parts at once",
        ));
    }
    let started = time::OffsetDateTime::now_utc();
    let known = match parts.precreate {
        true => None,
        false => Some(Info::read(&options.run_info_file).or_usage()?),
    };
    let position = options
        .start_item
        .unwrap_or(known.as_ref().map_or(0, |info| info.position));
    let run_id = match &known {
        Some(info) => info.run_id.clone(),
        None => setup::new_run_id(started)?,
    };
    let ranks = options
        .ranks
        .unwrap_or_else(|| setup::default_ranks(agents));
    let seed = options.seed.unwrap_or_else(|| {
        // All parts of a run use the same data.
        run_id.bytes().fold(0i32, |hash, b| {
            hash.wrapping_mul(31).wrapping_add(i32::from(b))
        })
    });
    let mapping = match target {
        Target::Files(_) => RankMapping::Files,
        _ => RankMapping::Native,
    };
    let plan = plan(options, parts, ranks, position, seed, mapping).or_usage()?;
    setup::check_ranks(&plan, agents).or_usage()?;
    let header = header(options, ranks, started);
    if args.load.dry_run {
        print(header.as_bytes())?;
        return Ok(Exit::Ok);
    }
    let out = setup::run_directory(args.out.as_deref(), PROFILE, started)?;
    if let (Target::Files(root), true) = (&target, parts.precreate) {
        // As MD-Workbench does.
        std::fs::create_dir_all(root)
            .map_err(|e| Failure::usage(format!("--target {}: {e}", root.display())))?;
    }
    let (mut flags, mut load) = (args.target.clone(), args.load.clone());
    let both = (&mut flags, &mut load);
    rank_calls::choose(&plan, &target, agents, options.object_size, both);
    let connection = Connection::open(target, &flags, &load)?;
    let run_options = setup::options(&load, &run_id, &connection);
    let mut job = Job::new(plan, "", &run_id, run_options, &connection, out.clone())?;
    job.op_log = Some(args.op_log);
    job.quiet = global.quiet;
    if options.obj_per_proc > options.precreate_per_set && parts.benchmark {
        let note = "-I is larger than -P: objects may be consumed before they exist";
        job.notes.push(note.to_owned());
    }
    print(header.as_bytes())?;
    let flags = (&connection, &flags);
    fleet::distribute(&mut job, &args.agents, &load, launched.as_ref(), flags)?;
    let stop = signals::watched()?;
    let (done, exit) = job.execute(&connection.driver, &stop)?;
    drop(connection);
    let steps = report(&out, options)?;
    if !parts.cleanup {
        let info = Info {
            position: position + if options.read_only { 0 } else { steps },
            run_id,
        };
        info.write(&options.run_info_file).or_aborted()?;
    }
    let ended = time::OffsetDateTime::now_utc();
    let seconds = (ended - started).whole_seconds();
    print(format!("Total runtime: {seconds}s time: {}\n", instant(ended)).as_bytes())?;
    done.print_notes(global.quiet);
    Ok(exit)
}

fn instant(at: time::OffsetDateTime) -> String {
    let form = format_description!("[year]-[month]-[day] [hour]:[minute]:[second]");
    at.format(form).unwrap_or_default()
}

/// The lines that are printed before the run.
fn header(options: &WorkbenchOptions, ranks: u32, started: time::OffsetDateTime) -> String {
    let args: Vec<String> = std::env::args().collect();
    let args = bucketload_results::rundir::redact::args(&args).join("\" \"");
    let (sets, objects) = (u64::from(options.data_sets), options.precreate_per_set);
    let set = sets * objects * u64::from(ranks);
    let steps = options.obj_per_proc * u64::from(options.iterations);
    let total = sets * (steps + objects) * u64::from(ranks);
    let mib = (set * options.object_size) as f64 / 1_048_576.0;
    format!(
        "Args: \"{args}\"\nMD-Workbench total objects: {total} workingset size: {mib:.3} MiB (version: bucketload \
         {}) time: {}\n",
        env!("CARGO_PKG_VERSION"),
        instant(started)
    )
}

/// Prints the lines of all phases and writes the latency files. Returns the steps of the benchmark.
fn report(dir: &Path, options: &WorkbenchOptions) -> Result<u64, Failure> {
    let (mut steps, mut iteration, mut factor) = (0, 0u32, None);
    let mut written: Result<(), Failure> = Ok(());
    let flags = (options.process_reports, options.print_detailed_stats);
    let (out, missing) = lines(dir, flags, |stage| {
        if stage.kind == StageKind::Benchmark {
            steps += stage
                .ranks
                .ranks
                .iter()
                .map(|rank| rank.steps)
                .max()
                .unwrap_or(0);
            // Each iteration starts with the first factor.
            let first = *factor.get_or_insert(stage.plan.waiting);
            if stage.plan.waiting == first && steps > 0 {
                iteration += 1;
            }
        }
        if let Some(prefix) = &options.latency {
            let number = match stage.kind {
                StageKind::Precreate => 0,
                StageKind::Benchmark => iteration.saturating_sub(1),
                _ => options.iterations,
            };
            for (name, text) in latency::files(stage, number, options.latency_all) {
                if let Err(failure) = files::write(format!("{prefix}{name}"), text) {
                    written = Err(failure);
                }
            }
        }
    })?;
    written?;
    if missing > 0 {
        eprintln!(
            "bucketload: the operation log lacks {missing} operations, so the lines do not count them: the disk of \
             the run directory is too slow"
        );
    }
    print(out.as_bytes())?;
    files::write(dir.join(LINES), &out)?;
    Ok(steps)
}

/// The lines of all phases, if asked for with the lines of ranks and with details, and the number of operations that
/// the log lacks. `each` is called for every phase.
pub(crate) fn lines(
    dir: &Path,
    (ranks, details): (bool, bool),
    mut each: impl FnMut(&Stage),
) -> Result<(String, u64), Failure> {
    let mut out = String::new();
    let missing = stages(dir, |stage| {
        each(stage);
        if stage.kind == StageKind::Benchmark
            && let Some(wall) = wear_out(stage)
        {
            let _ = writeln!(out, "{wall}");
        }
        if ranks && stage.kind != StageKind::Audit {
            out.push_str(&text::rank_lines(stage));
        }
        let _ = writeln!(out, "{}", text::line(stage));
        if details && stage.kind != StageKind::Audit {
            out.push_str(&detailed(stage));
        }
    })
    .or_aborted()?;
    Ok((out, missing))
}

/// The line about the stonewall, if the iteration reached it.
fn wear_out(stage: &Stage) -> Option<String> {
    let ranks = &stage.ranks.ranks;
    let wall = ranks
        .iter()
        .filter(|rank| rank.wall_ns > 0)
        .map(|rank| rank.wall_good)
        .max()?;
    let seconds = stage.plan.stonewall_ns as f64 / 1e9;
    Some(format!("stonewall wear out {seconds:.1}s ({wall} iter)"))
}

/// Times and counters of a phase, separated by tabs.
fn detailed(stage: &Stage) -> String {
    let mut out = String::from("phase\trank\ttime\tread\tstat\tcreate\tdelete\terrors\n");
    for (at, rank) in stage.ranks.ranks.iter().enumerate() {
        let _ = write!(
            out,
            "{}\t{}\t{:.6}",
            stage.name, rank.rank, stage.times_s[at]
        );
        for kind in Kind::ALL {
            let own = stage
                .samples
                .iter()
                .filter(|s| s.rank == rank.rank && s.kind == kind);
            let _ = write!(out, "\t{}", own.count());
        }
        let _ = writeln!(out, "\t{}", rank.failed);
    }
    out
}
