//! The command line of Bucketload.
//!
//! `cli` defines the command line; `commands` has a module per command. The other modules:
//!
//! - One run: `target`, `named`, `drivers`, `dialect` and `connection` find and open the target, `embedded` starts our own
//!   server as a child process, `setup` and `job` take a run from plan to report. `live`, `metrics` with `prometheus`, `oplog` and
//!   `sinks` follow it, `signals` stops it. `olddata` reads the objects of an earlier run, `caches` empties the
//!   machine's caches, `leftover` says how to remove what clean-up left, `advice` what to do about a
//!   target that cannot be used.
//! - Kinds of runs: `cosbench` for workloads in XML, `io500` and `mdworkbench` with plans of `rank_plan`, `distributed`
//!   for a run on many hosts, `drill` for a run during which something breaks on purpose.
//! - Several runs: a `campaign` measures on one prepared data set, an `experiment` is a directory of trials with one
//!   report, `hpc` has the rows of `s3-hpc`, a `study` is a matrix of runs as child processes.
//! - `bundle` packs directories together with the proof of their figures; `placement` asks stores where objects are.

mod advice;
mod bundle;
mod caches;
mod calibrations;
mod campaign;
mod cli;
mod commands;
mod confine;
mod connection;
mod cosbench;
mod dialect;
mod distributed;
mod drill;
mod drivers;
mod embedded;
mod environment;
mod exit;
mod experiment;
mod files;
mod hpc;
mod io500;
mod job;
mod kept;
mod kvcache;
mod leftover;
mod live;
mod mdworkbench;
mod memory;
mod metrics;
mod named;
mod olddata;
mod oplog;
mod placement;
mod prometheus;
mod rank_calls;
mod rank_plan;
mod room;
mod setup;
mod signals;
mod sinks;
mod study;
mod target;

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::process::ExitCode;

use bucketload_target::Registry;
use clap::FromArgMatches as _;

use cli::manage::ConfigCommand;
use cli::{Cli, Command};
use exit::{Exit, Failure};

/// Runs the command that the command line names, with the drivers of `registry`.
#[must_use]
pub fn main(registry: &'static Registry) -> ExitCode {
    memory::keep_large_blocks_apart();
    drivers::register(registry);
    if std::env::args_os()
        .nth(1)
        .is_some_and(|verb| verb == drill::line::VERB)
    {
        // A child of this program, not a command for users.
        return match drill::line::serve() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("bucketload: fault line: {error}");
                ExitCode::FAILURE
            }
        };
    }
    let cli = match parse() {
        Ok(cli) => cli,
        Err(exit) => return exit,
    };
    match dispatch(&cli) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            eprintln!("bucketload: {}", failure.message);
            failure.exit.into()
        }
    }
}

/// Reads the command line. Otherwise prints help or what is wrong, and returns the exit code.
fn parse() -> Result<Cli, ExitCode> {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    if words.is_empty() || words == ["-h"] {
        let printed = commands::docs::print(cli::help::overview().as_bytes());
        return Err(match (printed, words.is_empty()) {
            (Ok(_), false) => Exit::Ok.into(),
            _ => Exit::Usage.into(),
        });
    }
    let words: Vec<_> = std::env::args_os().collect();
    let mut command = cli::help::command();
    command.build();
    let (words, note) = match with_variables(&command, &words) {
        Ok(understood) => understood,
        Err(message) => {
            eprintln!("bucketload: {message}");
            return Err(Exit::Usage.into());
        }
    };
    let parsed = command
        .try_get_matches_from(&words)
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let quiet = parsed.as_ref().is_ok_and(|cli| cli.global.quiet);
    if let (Some(note), false) = (note, quiet) {
        eprintln!("bucketload: flags from the environment: {note}");
    }
    cli::variables::remember(&words);
    parsed.map_err(|error| match cli::help::hint(&error) {
        Some(hint) => {
            eprintln!("bucketload: {hint}");
            Exit::Usage.into()
        }
        None => error.exit(),
    })
}

/// The command line with the flags that variables stand for, and these in words. A command line that is wrong by itself
/// stays as it is.
fn with_variables(
    command: &clap::Command,
    words: &[OsString],
) -> Result<(Vec<OsString>, Option<String>), String> {
    let Ok(matches) = command.clone().try_get_matches_from(words) else {
        return Ok((words.to_vec(), None));
    };
    let added = cli::variables::added(command, &matches, |name| std::env::var_os(name))?;
    let names: Vec<&str> = added.iter().map(|(name, _)| name.as_str()).collect();
    let note = (!names.is_empty()).then(|| names.join(", "));
    Ok((cli::variables::inserted(words, &added), note))
}

fn dispatch(cli: &Cli) -> Result<Exit, Failure> {
    let variable = |name: &str| std::env::var(name).ok();
    let color = cli.global.color.applies(
        std::io::stdout().is_terminal(),
        variable("NO_COLOR").as_deref(),
        variable("CLICOLOR_FORCE").as_deref(),
    );
    match &cli.command {
        Command::Run(args) => commands::run::execute(args, &cli.global, color),
        Command::Agent(args) => commands::agent::execute(args, &cli.global),
        Command::K8s(args) => commands::render::kubernetes(args),
        Command::Slurm(args) => commands::render::slurm(args),
        Command::Drill(args) => commands::drill::execute(args, &cli.global, color),
        Command::Replay(args) => commands::replay::execute(args, &cli.global, color),
        Command::Model(args) => commands::model::execute(args, &cli.global),
        Command::Convert(args) => commands::convert::execute(args, &cli.global),
        Command::Compare(args) => commands::compare::execute(args, &cli.global, color),
        Command::Capacity(args) => commands::capacity::execute(args, &cli.global),
        Command::Sweep(args) => commands::sweep::execute(args, &cli.global),
        Command::Study(args) => study::execute(args, &cli.global),
        Command::S3Hpc(args) => commands::hpc::execute(args, &cli.global),
        Command::StudyGrid(args) => commands::grid::execute(args, &cli.global),
        Command::Io500(args) => commands::io500::execute(args, &cli.global),
        Command::MdWorkbench(args) => commands::mdworkbench::execute(args, &cli.global),
        Command::Kvcache(args) => commands::kvcache::execute(args, &cli.global, color),
        Command::Checkpoint(args) => commands::checkpoint::execute(args, &cli.global, color),
        Command::Train(args) => commands::train::execute(args, &cli.global, color),
        Command::Init(args) => commands::init::execute(args),
        Command::Workloads(_) => commands::workloads::list(),
        Command::Show(args) => commands::workloads::show(&args.name),
        Command::Report(args) => commands::report::execute(args, color),
        Command::Bundle(args) => bundle::execute(args, &cli.global),
        Command::VerifyBundle(args) => bundle::verify(args, &cli.global),
        Command::Placement(args) => placement::execute(args),
        Command::Serve(args) => commands::serve::execute(args),
        Command::Gateway(args) => commands::gateway::execute(args),
        Command::Controller(args) => commands::controller::execute(args, &cli.global),
        Command::Submit(args) => commands::controller::submit(args),
        Command::Cancel(args) => commands::controller::cancel(args),
        Command::Info(args) => commands::controller::info(args),
        Command::Top(args) => commands::controller::top(args),
        Command::Doctor(args) => commands::doctor::execute(args),
        Command::Cleanup(args) => commands::cleanup::execute(args),
        Command::Config(args) => match &args.command {
            ConfigCommand::Show {
                workload,
                target,
                workload_args,
            } => commands::config::show(workload.as_deref(), target, workload_args),
        },
        Command::Schema(_) => commands::workloads::schema(),
        Command::Man(args) => commands::docs::man(args.out.as_deref(), args.markdown),
        Command::Completions(args) => commands::docs::completions(args.shell),
        Command::Help(args) => commands::docs::print(cli::help::explain(&args.topic)?.as_bytes()),
    }
}
