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
    let chosen = PARTS.iter().copied().filter(|(name, _)| {
        !flags.is_empty()
            || names.iter().any(|arg| *arg == name)
            || names.is_empty() && !LONG.contains(name)
    });
    // One failure does not hide the next.
    let mut failures: Vec<String> = chosen
        .filter_map(|(name, body)| step(name, body).err())
        .collect();
    matrix::print();
    for line in take_not_judged() {
        let line = format!("NOT JUDGED: {line}");
        eprintln!("{line}");
        if !args.is_empty() {
            failures.push(line);
        }
    }
    if failures.is_empty() {
        Ok(())
    } else {
        Err(failures.join("\n"))
    }
}
