//! Conformance: our drivers against third-party servers, our server against third-party clients, and the whole
//! program as a user sees it. The scripts of `servers/` install everything; a program that cannot be installed fails
//! the run.

mod agents;
mod azure;
mod bad_places;
pub(crate) mod browser;
mod capacity;
mod clients;
mod compare;
mod console;
mod cosbench;
pub(crate) mod delays;
mod devtools;
mod doctor;
mod drills;
mod engines;
mod files;
mod first_hour;
mod gateway;
mod hdfs;
mod io500;
pub(crate) mod libs3;
mod matrix;
mod mdworkbench;
mod mint;
mod netns;
mod oplog;
mod oracle;
mod ossperf;
mod packages;
mod replay;
mod s3_tests;
mod scenarios;
mod schedulers;
mod seaweedfs;
mod servers;
mod small_servers;
mod study;
mod swift;
mod traces;
mod truth;

use std::sync::Mutex;

use crate::machine::{take_not_judged, undisturbed};
use crate::sh::{Result, none_of, step};

/// When a part runs without being named.
#[derive(Clone, Copy, PartialEq)]
enum Runs {
    /// On every change, alone, because the part bounds times.
    Alone,
    /// On every change, two at a time and beside other steps of CI: the part checks no times, and waits for servers
    /// and runs of fixed length more than it computes.
    Beside,
    /// With `--all`, before a release: the part takes minutes, needs a cluster, or compiles another hundred thousand
    /// lines.
    Long,
}

/// A part: its name, when it runs, and its function.
type Part = (&'static str, Runs, fn() -> Result);

use Runs::{Alone, Beside, Long};

const PARTS: &[Part] = &[
    ("truth", Alone, || undisturbed("truth", 2, truth::stall)),
    ("replay", Alone, replay::instants),
    ("traces", Long, traces::constant_memory),
    ("backlog", Alone, || {
        undisturbed("backlog", 2, truth::backlog)
    }),
    ("oracle", Beside, oracle::all),
    ("compare", Long, compare::words),
    ("delays", Alone, delays::all),
    ("capacity", Long, capacity::all),
    ("browser", Beside, browser::all),
    ("clients", Beside, clients::all),
    ("programs", Long, engines::programs),
    ("engines", Long, engines::libraries),
    ("oplog", Beside, oplog::all),
    ("drills", Long, drills::known),
    ("drills-stores", Long, drills::stores),
    ("scenarios", Long, scenarios::all),
    ("cosbench", Long, cosbench::fuzz),
    ("servers", Beside, servers::all),
    ("s3-tests", Long, s3_tests::all),
    ("mint", Long, mint::all),
    ("small-servers", Beside, small_servers::all),
    ("more-servers", Long, small_servers::more),
    ("first-hour", Long, first_hour::all),
    ("study", Beside, study::study),
    ("files", Long, files::all),
    ("gateway", Long, gateway::all),
    ("gcs", Long, servers::gcs),
    ("azure", Long, azure::all),
    ("swift", Long, swift::all),
    ("hdfs", Long, hdfs::all),
    ("seaweedfs", Long, seaweedfs::all),
    ("agents", Long, agents::all),
    ("agents-scale", Long, schedulers::scale),
    ("slurm", Long, schedulers::slurm),
    ("mpi", Long, schedulers::mpi),
    ("k8s", Long, schedulers::kubernetes),
    ("console", Long, console::all),
    ("io500", Long, io500::all),
    ("md-workbench", Long, mdworkbench::all),
    ("libs3", Long, libs3::all),
    ("packages", Long, packages::all),
    ("examples", Long, crate::examples::all),
];

/// Runs the named parts, all of them with `--all`, or by default all but the long ones. Prints the table of working
/// operations and the parts that could not be judged.
///
/// # Errors
/// All failures. A part that could not be judged, because others used the machine, counts as a failure if it
/// was requested by name or by `--all`: somebody waits for the answer. Otherwise it is only reported, and a change
/// may land.
pub(crate) fn all(args: &[String]) -> Result {
    let (flags, names): (Vec<_>, Vec<_>) = args.iter().partition(|arg| *arg == "--all");
    if let Some(unknown) = names
        .iter()
        .find(|arg| !PARTS.iter().any(|(name, ..)| name == **arg))
    {
        let names: Vec<&str> = PARTS.iter().map(|(name, ..)| *name).collect();
        return Err(format!(
            "conformance has no part {unknown:?}; its parts: {}; --all runs every one",
            names.join(", ")
        ));
    }
    if args.is_empty() {
        let failures = [beside(), alone()].into_iter().filter_map(Result::err);
        return none_of(&failures.collect::<Vec<_>>());
    }
    let chosen = |name: &str| !flags.is_empty() || names.iter().any(|arg| arg.as_str() == name);
    let mut failures = in_turn(|part| chosen(part.0));
    failures.extend(summary());
    none_of(&failures)
}

/// Runs the parts of every change that check no times, two at a time.
///
/// # Errors
/// All failures.
pub(crate) fn beside() -> Result {
    let queue = Mutex::new(PARTS.iter().filter(|part| part.1 == Beside));
    let next = || queue.lock().ok()?.next();
    let lane = || {
        let mut failures = Vec::new();
        while let Some((name, _, body)) = next() {
            failures.extend(step(name, body).err());
        }
        failures
    };
    let failures = std::thread::scope(|scope| {
        let lanes = [scope.spawn(lane), scope.spawn(lane)];
        let ends = lanes.map(|lane| lane.join().unwrap_or_else(|_| vec!["panicked".to_owned()]));
        ends.concat()
    });
    none_of(&failures)
}

/// Runs the other parts of every change, one after another; then prints the table and the parts that could not be
/// judged.
///
/// # Errors
/// All failures.
pub(crate) fn alone() -> Result {
    let failures = in_turn(|part| part.1 == Alone);
    summary();
    none_of(&failures)
}

/// Runs the chosen parts and returns their failures; one failure does not hide the next.
fn in_turn(chosen: impl Fn(&Part) -> bool) -> Vec<String> {
    let parts = PARTS.iter().filter(|part| chosen(part));
    parts
        .filter_map(|(name, _, body)| step(name, body).err())
        .collect()
}

/// Prints the table of working operations, and returns the parts that could not be judged.
fn summary() -> Vec<String> {
    matrix::print();
    let lines = take_not_judged().into_iter();
    let lines = lines.map(|line| format!("NOT JUDGED: {line}"));
    lines.inspect(|line| eprintln!("{line}")).collect()
}
