//! The command line of a cell: its arguments, whether the program accepts them, and how long it will take.

use std::path::Path;

use bucketload_core::plan::{PhaseKind, Plan};
use bucketload_study::conversations;
use bucketload_study::model::{Cell, Target};
use clap::Parser as _;

use super::library;
use crate::cli::target::TargetArgs;
use crate::cli::workload::WorkloadArgs;
use crate::cli::{Cli, Command};
use crate::commands::run::resolve_workload;
use crate::commands::{checkpoint, kvcache, train};
use crate::cosbench;
use crate::drivers::registry;
use crate::exit::{Failure, OrFail};
use crate::files;

/// Assumed duration of a command whose duration is unknown, in nanoseconds.
const UNKNOWN_NS: u64 = 30_000_000_000;
/// Assumed duration of a phase without a time limit, which ends with its objects, in nanoseconds.
const ONCE_NS: u64 = 500_000_000;
/// Placeholder address of a server that is not started yet.
const NOWHERE: &str = "http://127.0.0.1:1";

/// The argument of cells that use the trace of studies.
pub(super) const OWN_TRACE: &str = "--trace=conversations";

/// Bucket that the study uses on servers that it starts.
pub(super) const BUCKET: &str = "bucketload-study";

/// The options for reaching a server.
pub(super) fn server_args(target: &Target, endpoint: &str) -> Vec<String> {
    let api = if target.api.is_empty() {
        "s3"
    } else {
        &target.api
    };
    let scheme = match api {
        "azure" => "az",
        other => other,
    };
    let mut args = vec![
        format!("--target={scheme}://{BUCKET}/{}", target.name),
        "--create-bucket".to_owned(),
    ];
    // The other APIs find the address in the environment that the script prints.
    if matches!(api, "s3" | "seaweedfs" | "webhdfs") {
        args.push(format!("--endpoint-url={endpoint}"));
    }
    args
}

/// The options for reaching a target that is not started by the study. `own` is a directory for its data.
pub(super) fn target_args(target: &Target, own: &Path) -> Vec<String> {
    if library::mode_of(&target.url).is_some() {
        return library::args();
    }
    let mut args = vec![format!("--target={}", fill(&target.url, own))];
    if !target.endpoint.is_empty() {
        args.push(format!("--endpoint-url={}", target.endpoint));
    }
    args
}

/// Replaces `{dir}` with the directory `own`.
pub(super) fn fill(text: &str, own: &Path) -> String {
    text.replace("{dir}", &own.display().to_string())
}

/// Expected duration of the cell without pauses, in nanoseconds.
///
/// # Errors
/// When the program would refuse its command line.
pub(super) fn estimate(cell: &Cell, target: &Target) -> Result<u64, Failure> {
    let own = Path::new("/nonexistent");
    let mut line = vec!["bucketload".to_owned(), cell.command.name().to_owned()];
    line.extend(cell.args.iter().map(|arg| fill(arg, own)));
    if cell.command.takes_target() {
        line.extend(match target.server.is_empty() {
            true => target_args(target, own),
            false => server_args(target, NOWHERE),
        });
    }
    let refused = |message: &str| {
        let value = match cell.value.is_empty() {
            true => String::new(),
            false => format!(", {} {}", cell.field, cell.value),
        };
        Failure::usage(format!(
            "experiment {} on {}{value}: {}",
            cell.experiment,
            cell.target,
            message.trim_start_matches("error: ").trim_end()
        ))
    };
    let parsed = Cli::try_parse_from(&line).map_err(|e| {
        let text = e.to_string();
        refused(text.split("\n\n").next().unwrap_or_default())
    })?;
    let phases = |workload: &str, target: &TargetArgs, settings: &WorkloadArgs| {
        if cosbench::is_workload(workload) {
            return Ok(UNKNOWN_NS);
        }
        let (resolved, ..) =
            resolve_workload(workload, target, settings).map_err(|e| refused(&e.message))?;
        Ok(duration(&resolved.plan))
    };
    match &parsed.command {
        Command::Run(args) => phases(&args.workload, &args.target, &args.workload_args),
        Command::Capacity(args) => {
            // A search has about ten trials and some confirmations.
            phases(&args.workload, &args.target, &args.workload_args)
                .map(|one| one.saturating_mul(15))
        }
        _ => Ok(UNKNOWN_NS),
    }
}

/// Bytes that the cell writes to its target; `None` if that is not known before it runs.
///
/// # Errors
/// When its command line or its trace cannot be read.
pub(super) fn written(cell: &Cell) -> Result<Option<u64>, Failure> {
    if !cell.command.is_ai() {
        return Ok(None);
    }
    let mut line = vec!["bucketload".to_owned(), cell.command.name().to_owned()];
    line.extend(cell.args.iter().cloned());
    let parsed = Cli::try_parse_from(&line).map_err(|e| Failure::usage(e.to_string()))?;
    match &parsed.command {
        Command::Train(args) => train::written(&args.train).map(Some),
        Command::Checkpoint(args) => checkpoint::written(args).map(Some),
        Command::Kvcache(args) if cell.args.iter().any(|arg| arg == OWN_TRACE) => {
            let dir = tempfile::tempdir().or_aborted()?;
            let path = dir.path().join(conversations::FILE);
            files::write(&path, conversations::trace())?;
            let mut args = args.clone();
            args.trace.files = vec![path];
            kvcache::written(&args)
        }
        Command::Kvcache(args) => kvcache::written(args),
        _ => Ok(None),
    }
}

/// The engine that the cell asks for, if any.
pub(super) fn engine(cell: &Cell) -> Option<&str> {
    let mut args = cell.args.iter();
    args.find_map(|arg| arg.strip_prefix("--engine="))
}

/// Why this build cannot run the cell, if it lacks the cell's engine. Other clients are optional, so their absence is
/// not a failure.
pub(super) fn lacks(cell: &Cell) -> Option<String> {
    let engine = engine(cell)?;
    let mut absent = registry().absent_engines.iter();
    let (_, feature) = absent.find(|(name, _)| *name == engine)?;
    Some(format!(
        "the engine is not part of this build; build with --features {feature}"
    ))
}

/// Whether a program of this name is on the PATH.
pub(super) fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

fn duration(plan: &Plan) -> u64 {
    let measured = plan
        .phases
        .iter()
        .filter(|phase| phase.kind == PhaseKind::Run);
    measured
        .map(|phase| match phase.limits.duration_ns {
            0 => ONCE_NS,
            limit => limit,
        })
        .fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use bucketload_study::model::{Cell, Command, Target};

    use super::{estimate, lacks, server_args, target_args};

    fn cell(args: &[&str]) -> Cell {
        Cell {
            id: String::new(),
            experiment: "e".to_owned(),
            target: "t".to_owned(),
            command: Command::Run,
            workload: "get".to_owned(),
            field: String::new(),
            value: String::new(),
            repetition: 1,
            block: 1,
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            estimate_ns: 0,
        }
    }

    #[test]
    fn the_duration_of_a_cell_follows_from_its_workload() {
        let target = Target {
            url: "null:".to_owned(),
            ..Target::default()
        };
        assert_eq!(
            estimate(&cell(&["get", "--duration=7s"]), &target).unwrap(),
            7_000_000_000
        );
        let refused = estimate(&cell(&["get", "--duration=7"]), &target).unwrap_err();
        assert!(
            refused.message.contains("experiment e on t: --duration 7"),
            "{}",
            refused.message
        );
    }

    #[test]
    fn a_missing_optional_client_is_reported_as_lacking() {
        assert_eq!(lacks(&cell(&["get"])), None);
        assert_eq!(lacks(&cell(&["get", "--engine=native"])), None);
        let sdk = lacks(&cell(&["get", "--engine=aws-sdk"]));
        assert_eq!(
            sdk.is_none(),
            !super::registry()
                .absent_engines
                .iter()
                .any(|(name, _)| *name == "aws-sdk")
        );
    }

    #[test]
    fn targets_become_options() {
        let mut target = Target {
            name: "t".to_owned(),
            url: "file://{dir}".to_owned(),
            ..Target::default()
        };
        assert_eq!(
            target_args(&target, Path::new("/x")),
            ["--target=file:///x"]
        );
        target.url = "gateway:{dir}".to_owned();
        let args = target_args(&target, Path::new("/x"));
        assert_eq!(args[0], "--target=libs3://bucketload");
        assert!(args[1].starts_with("--libs3-library="), "{args:?}");
        target.api = "swift".to_owned();
        // Swift's address and login are in the environment.
        let args = ["--target=swift://bucketload-study/t", "--create-bucket"];
        assert_eq!(server_args(&target, "http://a"), args);
        target.api.clear();
        assert_eq!(
            server_args(&target, "http://a")[2],
            "--endpoint-url=http://a"
        );
    }
}
