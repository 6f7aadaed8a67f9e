//! `bucketload io500`: runs and scores all phases, or verifies a result.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use bucketload_core::plan::Plan;
use bucketload_results::io500::verify::verify;
use bucketload_results::io500::{phases, text};

use crate::cli::GlobalArgs;
use crate::cli::io500::Io500Args;
use crate::commands::agent;
use crate::commands::docs::print;
use crate::connection::Connection;
use crate::distributed::fleet;
use crate::exit::{Exit, Failure, OrFail};
use crate::io500::{Config, locate, pause, plan, write};
use crate::job::Job;
use crate::target::Target;
use crate::{files, rank_calls, room, setup, signals};

/// Runs, or verifies.
pub(crate) fn execute(args: &Io500Args, global: &GlobalArgs) -> Result<Exit, Failure> {
    if args.list {
        let names: String = phases(args.mode.as_deref() == Some("extended"))
            .iter()
            .map(|phase| format!("{}\n", phase.name))
            .collect();
        print(names.as_bytes())?;
        return Ok(Exit::Ok);
    }
    if let Some(file) = &args.verify {
        return verified(file, args.config.as_deref());
    }
    let original = args.config.as_deref().map(files::read).transpose()?;
    let name = args.config.as_ref().map(|path| path.display().to_string());
    let mut config =
        Config::read(name.as_deref().zip(original.as_deref()), &args.set).or_usage()?;
    let flags = [
        ("ranks", &args.ranks),
        ("mapping", &args.mapping),
        ("mode", &args.mode),
    ];
    for (name, value) in flags {
        if let Some(value) = value {
            config.replace(name, value);
        }
    }
    let mut notes = config.notes().or_usage()?;
    if args.config_hash {
        print(format!("{}\n", config.hash()).as_bytes())?;
        return Ok(Exit::Ok);
    }
    let launched = match agent::coordinates(&args.agents, &args.load, global.quiet)? {
        ControlFlow::Continue(launched) => launched,
        ControlFlow::Break(exit) => return Ok(exit),
    };
    let agents = fleet::number(&args.agents, launched.as_ref());
    let started = time::OffsetDateTime::now_utc();
    let mut location = locate(&config, &args.target, started, &mut notes).or_usage()?;
    let ranks = setup::default_ranks(agents);
    let planned = plan(&config, &location, ranks, args.keep, &mut notes).or_usage()?;
    setup::check_ranks(&planned.plan, agents).or_usage()?;
    let mut load = args.load.clone();
    let transfer = config.easy().or_usage()?.0;
    let flags = (&mut location.args, &mut load);
    rank_calls::choose(&planned.plan, &location.target, agents, transfer, flags);
    notes.extend(
        planned
            .skipped
            .iter()
            .map(|(name, why)| format!("{name} is skipped: {why}")),
    );
    if args.load.dry_run {
        let phases = planned
            .plan
            .phases
            .iter()
            .map(|phase| format!("{}\n", phase.name));
        notes.extend(volume(args, &planned.plan, &location.target)?);
        print(phases.collect::<String>().as_bytes())?;
        notes
            .iter()
            .for_each(|note| eprintln!("bucketload: {note}"));
        return Ok(Exit::Ok);
    }
    if let (Target::Files(root), None) = (&location.target, &args.target.target) {
        // Creates `datadir`, as IO500 does.
        std::fs::create_dir_all(root)
            .map_err(|e| Failure::usage(format!("datadir {}: {e}", root.display())))?;
    }
    notes.extend(volume(args, &planned.plan, &location.target)?);
    let out = directory(args, &config, &location.timestamp)?;
    setup::refuse_used(&out, "--out")?;
    let connection = Connection::open(location.target, &location.args, &load)?;
    let run_id = setup::new_run_id(started)?;
    let mut options = setup::options(&load, &run_id, &connection);
    // As IOR's backend does. The run deletes a bucket that it created.
    options.create_bucket |= args.target.target.is_none();
    let (plan, ini) = (planned.plan, config.ini());
    let mut job = Job::new(plan, &ini, &run_id, options, &connection, out.clone())?;
    job.op_log = args.op_log;
    job.quiet = global.quiet;
    job.notes = notes;
    let flags = (&connection, &location.args);
    fleet::distribute(&mut job, &args.agents, &load, launched.as_ref(), flags)?;
    let stop = signals::watched()?;
    if let Some(dir) = config.pause_dir() {
        let extended = config.extended().or_usage()?;
        job.options.at_edges = Some(pause::hook(dir, &job.plan, extended, stop.clone()));
    }
    let (done, exit) = job.execute(&connection.driver, &stop)?;
    drop(connection);
    let report = write(&out)?;
    if let Some(original) = &original {
        files::write(out.join("config-orig.ini"), crate::io500::redact(original))?;
    }
    print(text::summary(&report).as_bytes())?;
    if !global.quiet {
        eprintln!("bucketload: verdict: {}", done.result.verdict.word.name());
        eprintln!("bucketload: {}", out.join("result.txt").display());
    }
    done.print_notes(global.quiet);
    Ok(exit)
}

/// How much the run is going to write, in words. A dry run measures no rate.
///
/// # Errors
/// When the target's file system has no room for it.
fn volume(args: &Io500Args, plan: &Plan, target: &Target) -> Result<Option<String>, Failure> {
    // Nothing is stored, or as much as fits into memory.
    if matches!(target, Target::Null | Target::Memory) {
        return Ok(None);
    }
    let rate = args.expect_rate;
    let measured = !args.load.dry_run || rate.is_some();
    let root = room::root(target).filter(|_| measured);
    crate::io500::room::check(plan, root, rate).or_usage()
}

/// The run directory.
fn directory(args: &Io500Args, config: &Config, timestamp: &str) -> Result<PathBuf, Failure> {
    if let Some(out) = &args.out {
        return Ok(out.clone());
    }
    let mut out = PathBuf::from(config.text("global", "resultdir").0);
    if config.truth("global", "timestamp-resultdir").or_usage()? {
        out.push(timestamp);
    }
    Ok(setup::unused(out))
}

/// Verifies a result: a file, or a result directory together with its configuration. The exit code is 0 if the result is
/// consistent and valid, else 1.
fn verified(path: &Path, config: Option<&Path>) -> Result<Exit, Failure> {
    let (mut file, mut config) = (path.to_owned(), config.map(Path::to_owned));
    if path.is_dir() {
        file = path.join("result.txt");
        config = config.or_else(|| Some(path.join("config.ini")));
    }
    let config = config.as_deref().map(files::read).transpose()?;
    let text = files::read(&file)?;
    let verified = verify(&text, config.as_deref())
        .map_err(|e| Failure::usage(format!("{}: {e}", file.display())))?;
    for problem in &verified.problems {
        eprintln!("bucketload: {}: {problem}", file.display());
    }
    let (line, exit) = match (verified.agrees(), verified.valid) {
        (false, _) => (
            "[ERROR] the result does not agree with itself\n",
            Exit::GateFailed,
        ),
        (true, false) => ("[OK] But this is an invalid run!\n", Exit::GateFailed),
        (true, true) => ("[OK]\n", Exit::Ok),
    };
    print(line.as_bytes())?;
    Ok(exit)
}
