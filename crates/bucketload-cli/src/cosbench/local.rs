//! COSBench's `localwrite`, which writes files on this machine: only where the user allows it, and without replacing
//! existing files.

use std::path::{Path, PathBuf};

use bucketload_core::plan::buckets::MOST_BUCKETS;
use bucketload_cosbench::{Operation, OperationKind, Selector, Workload};

use super::{RunMode, refuse};
use crate::cli::cosbench::CosbenchArgs;

/// The directory that the workload's `localwrite` operations write to, after creating the directories of its
/// containers. `None` if there is no such operation.
///
/// # Errors
/// When the directory is not allowed, lies elsewhere, or holds files that would be replaced. Errors name the place in the
/// workload.
pub(super) fn files(
    workload: &Workload,
    args: &CosbenchArgs,
    mode: RunMode,
) -> Result<Option<PathBuf>, String> {
    let works = workload.stages.iter().flat_map(|stage| &stage.works);
    let all: Vec<&Operation> = works
        .flat_map(|work| &work.operations)
        .filter(|operation| operation.kind == OperationKind::LocalWrite)
        .collect();
    let Some(first) = all.first() else {
        return Ok(None);
    };
    let skip = "or skip it with --skip-operations localwrite";
    // Before the permission, which would not help.
    if mode.agents {
        let problem = "agents cannot perform localwrite: it writes files on the machine that runs the workload, and no \
                       agent has been allowed to do that";
        return Err(refuse(
            &first.location,
            problem,
            &format!("run it without --agents and --launch, {skip}"),
        ));
    }
    let Some(allowed) = &args.allow_local_writes else {
        return Err(refuse(
            &first.location,
            "localwrite writes files on this machine, which is not allowed",
            &format!("allow it below a directory with --allow-local-writes DIR, {skip}"),
        ));
    };
    let root = first.target.files.clone().unwrap_or_default();
    for operation in all {
        let wrong = |problem: &str, remedy: &str| Err(refuse(&operation.location, problem, remedy));
        let target = &operation.target;
        if target.files.as_ref() != Some(&root) || root.is_empty() {
            return wrong(
                "localwrite needs a directory `files`, the same one in the whole workload",
                &format!("add files=/data/files to its config, {skip}"),
            );
        }
        let names = [
            &target.cprefix,
            &target.csuffix,
            &target.oprefix,
            &target.osuffix,
        ];
        if names.iter().any(|name| name.contains(['/', '\0'])) {
            return wrong(
                "file names cannot contain `/`",
                "choose prefixes and suffixes without it",
            );
        }
        let inside = || -> std::io::Result<bool> {
            Ok(Path::new(&root)
                .canonicalize()?
                .starts_with(allowed.canonicalize()?))
        };
        match inside() {
            Ok(true) => {}
            Ok(false) => {
                let problem = format!("files={root} is not inside {}", allowed.display());
                return wrong(
                    &problem,
                    "name a directory that contains it with --allow-local-writes DIR",
                );
            }
            Err(e) => return wrong(&format!("files={root}: {e}"), "create the directory"),
        }
        containers(Path::new(&root), operation, args, mode)?;
    }
    Ok(Some(PathBuf::from(root)))
}

/// Creates the directories of an operation's containers.
fn containers(
    root: &Path,
    operation: &Operation,
    args: &CosbenchArgs,
    mode: RunMode,
) -> Result<(), String> {
    let target = &operation.target;
    let Some((lo, hi)) = target.containers.as_ref().and_then(bounds) else {
        return Ok(());
    };
    if u64::from(hi - lo) >= MOST_BUCKETS {
        let problem = format!("localwrite cannot write into more than {MOST_BUCKETS} directories");
        return Err(refuse(
            &operation.location,
            &problem,
            "name fewer containers",
        ));
    }
    for number in lo..=hi {
        let dir = root.join(format!("{}{number}{}", target.cprefix, target.csuffix));
        let failed = |e: std::io::Error| {
            let problem = format!("{}: {e}", dir.display());
            refuse(&operation.location, &problem, "name another directory")
        };
        let held = match std::fs::read_dir(&dir) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
            Err(e) => return Err(failed(e)),
            Ok(entries) => entries.filter_map(Result::ok).find(|entry| {
                entry
                    .file_name()
                    .as_encoded_bytes()
                    .starts_with(target.oprefix.as_bytes())
            }),
        };
        if let Some(entry) = held.filter(|_| !args.delete_named) {
            let problem = format!(
                "localwrite could replace {}, which exists already",
                entry.path().display()
            );
            return Err(refuse(
                &operation.location,
                &problem,
                "choose other names, or allow it with --delete-named",
            ));
        }
        if !mode.dry_run {
            std::fs::create_dir_all(&dir).map_err(failed)?;
        }
    }
    Ok(())
}

/// The smallest and the largest number of a selector.
fn bounds(selector: &Selector) -> Option<(u32, u32)> {
    super::entry::numbers(selector).bounds()
}
