//! Conformance: our driver against servers we did not write, our server against clients we did not
//! write, and the whole program as a user meets it. Everything is installed by the scripts of
//! `servers/`; what cannot be had fails the run.

mod agents;
mod azure;
mod bad_places;
mod browser;
mod capacity;
mod clients;
mod compare;
mod console;
mod cosbench;
mod delays;
mod devtools;
mod engines;
mod files;
mod gateway;
mod hdfs;
mod io500;
pub(crate) mod libs3;
mod matrix;
mod mdworkbench;
mod oplog;
mod oracle;
mod ossperf;
mod packages;
mod replay;
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
use crate::sh::{Result, step};

type Part = (&'static str, fn() -> Result);

/// Parts that take minutes each, or a cluster, or another hundred thousand lines to compile: they run when
/// they are named or with `--all`, before a release, not on each change.
const LONG: &[&str] = &[
    "traces",
    "compare",
    "capacity",
    "scenarios",
    "cosbench",
    "programs",
    "engines",
    "files",
    "gateway",
    "gcs",
    "azure",
    "swift",
    "hdfs",
    "seaweedfs",
    "agents",
    "agents-scale",
    "slurm",
    "mpi",
    "k8s",
    "console",
    "io500",
    "md-workbench",
    "libs3",
    "packages",
    "examples",
];

/// Parts that run on every change and check no times: two of them run at once, beside other steps of CI. They wait
/// for servers and for runs of fixed length more than they compute.
const BESIDE: &[&str] = &[
    "oracle",
    "browser",
    "clients",
    "oplog",
    "servers",
    "small-servers",
    "study",
];

const PARTS: &[Part] = &[
    ("truth", || undisturbed("truth", 2, truth::stall)),
    ("replay", replay::instants),
    ("traces", traces::constant_memory),
    ("backlog", || undisturbed("backlog", 2, truth::backlog)),
    ("oracle", oracle::all),
    ("compare", compare::words),
    ("delays", delays::all),
    ("capacity", capacity::all),
    ("browser", browser::all),
    ("clients", clients::all),
    ("programs", engines::programs),
    ("engines", engines::libraries),
    ("oplog", oplog::all),
    ("scenarios", scenarios::all),
    ("cosbench", cosbench::fuzz),
    ("servers", servers::all),
    ("small-servers", small_servers::all),
    ("study", study::study),
    ("files", files::all),
    ("gateway", gateway::all),
    ("gcs", servers::gcs),
    ("azure", azure::all),
    ("swift", swift::all),
    ("hdfs", hdfs::all),
    ("seaweedfs", seaweedfs::all),
    ("agents", agents::all),
    ("agents-scale", schedulers::scale),
    ("slurm", schedulers::slurm),
    ("mpi", schedulers::mpi),
    ("k8s", schedulers::kubernetes),
    ("console", console::all),
    ("io500", io500::all),
    ("md-workbench", mdworkbench::all),
    ("libs3", libs3::all),
    ("packages", packages::all),
    ("examples", crate::examples::all),
];

/// All parts but the long ones, or those that are named, or with `--all` all; then the table of what
/// works where, and what could not be judged.
///
/// # Errors
/// What failed. What others' load on the machine left open is an error where it was asked for by name or by `--all`,
/// for then somebody waits for the answer; a change may land without it, and says so.
pub(crate) fn all(args: &[String]) -> Result {
    let (flags, names): (Vec<_>, Vec<_>) = args.iter().partition(|arg| *arg == "--all");
    if let Some(unknown) = names
        .iter()
        .find(|arg| !PARTS.iter().any(|(name, _)| name == **arg))
    {
        let names: Vec<&str> = PARTS.iter().map(|(name, _)| *name).collect();
        return Err(format!(
            "conformance has no part {unknown:?}; its parts: {}; --all runs every one",
            names.join(", ")
        ));
    }
    if args.is_empty() {
        let failures = [beside(), alone()].into_iter().filter_map(Result::err);
        return all_or(failures.collect());
    }
    let chosen = |name: &str| !flags.is_empty() || names.iter().any(|arg| arg.as_str() == name);
    let mut failures = in_turn(chosen);
    failures.extend(summary());
    all_or(failures)
}

/// The parts that run on every change and check no times, two at once.
///
/// # Errors
/// What failed.
pub(crate) fn beside() -> Result {
    let queue = Mutex::new(PARTS.iter().filter(|(name, _)| BESIDE.contains(name)));
    let next = || queue.lock().ok()?.next();
    let lane = || {
        let mut failures = Vec::new();
        while let Some((name, body)) = next() {
            failures.extend(step(name, body).err());
        }
        failures
    };
    let failures = std::thread::scope(|scope| {
        let lanes = [scope.spawn(lane), scope.spawn(lane)];
        let ends = lanes.map(|lane| lane.join().unwrap_or_else(|_| vec!["panicked".to_owned()]));
        ends.concat()
    });
    all_or(failures)
}

/// The other parts that run on every change, one after another; then the table and what could not be judged.
///
/// # Errors
/// What failed.
pub(crate) fn alone() -> Result {
    let failures = in_turn(|name| !LONG.contains(&name) && !BESIDE.contains(&name));
    summary();
    all_or(failures)
}

/// What failed of the chosen parts; one failure does not hide the next.
fn in_turn(chosen: impl Fn(&str) -> bool) -> Vec<String> {
    let parts = PARTS.iter().filter(|(name, _)| chosen(name));
    parts
        .filter_map(|(name, body)| step(name, body).err())
        .collect()
}

/// Prints what works where, and returns what could not be judged.
fn summary() -> Vec<String> {
    matrix::print();
    let lines = take_not_judged().into_iter();
    let lines = lines.map(|line| format!("NOT JUDGED: {line}"));
    lines.inspect(|line| eprintln!("{line}")).collect()
}

fn all_or(failures: Vec<String>) -> Result {
    match failures.is_empty() {
        true => Ok(()),
        false => Err(failures.join("\n")),
    }
}
