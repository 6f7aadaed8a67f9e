//! COSBench's `localwrite`: files of this machine, written only where the user allows it, beside what is there.

use std::path::{Path, PathBuf};

use bucketload_core::plan::buckets::MOST_BUCKETS;
use bucketload_cosbench::{Operation, OperationKind, Selector, Workload};

use super::{Course, refuse};
use crate::cli::cosbench::CosbenchArgs;

/// The directory that the workload's operations `localwrite` write to, with the directories of its containers
/// made; `None` where there is no such operation.
///
/// # Errors
/// When it is not allowed, lies elsewhere, or holds what would be replaced: with the place in the file.
pub(super) fn files(
    workload: &Workload,
    args: &CosbenchArgs,
    course: Course,
) -> Result<Option<PathBuf>, String> {
    let works = workload.stages.iter().flat_map(|stage| &stage.works);
    let all: Vec<&Operation> = works
        .flat_map(|work| &work.operations)
        .filter(|operation| operation.kind == OperationKind::LocalWrite)
        .collect();
    let Some(first) = all.first() else {
        return Ok(None);
    };
    let skip = "or leave it out: --skip-operations localwrite";
    let Some(allowed) = &args.allow_local_writes else {
        return Err(refuse(
            &first.location,
            "localwrite writes files of this machine, which is not allowed",
            &format!("allow it below a directory: --allow-local-writes DIR, {skip}"),
        ));
    };
    if course.agents {
        let problem = "localwrite is performed by this machine only, not by agents";
        return Err(refuse(
            &first.location,
            problem,
            &format!("run it without agents, {skip}"),
        ));
    }
    let root = first.target.files.clone().unwrap_or_default();
    for operation in all {
        let wrong = |problem: &str, remedy: &str| Err(refuse(&operation.location, problem, remedy));
        let target = &operation.target;
        if target.files.as_ref() != Some(&root) || root.is_empty() {
            return wrong(
                "localwrite needs one directory `files`, the same in the whole workload",
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
                "files cannot have such names: they hold `/`",
                "name them without",
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
                let problem = format!("files={root}: it does not lie in {}", allowed.display());
                return wrong(
                    &problem,
                    "name the directory that may be written to: --allow-local-writes DIR",
                );
            }
            Err(e) => return wrong(&format!("files={root}: {e}"), "make the directory"),
        }
        containers(Path::new(&root), operation, args, course)?;
    }
    Ok(Some(PathBuf::from(root)))
}

/// Makes the directories of an operation's containers.
fn containers(
    root: &Path,
    operation: &Operation,
    args: &CosbenchArgs,
    course: Course,
) -> Result<(), String> {
    let target = &operation.target;
    let Some((lo, hi)) = target.containers.as_ref().and_then(bounds) else {
        return Ok(());
    };
    if u64::from(hi - lo) >= MOST_BUCKETS {
        let problem = format!("localwrite into more than {MOST_BUCKETS} directories");
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
                "localwrite could replace {}, which is there already",
                entry.path().display()
            );
            return Err(refuse(
                &operation.location,
                &problem,
                "name others, or allow it: --delete-named",
            ));
        }
        if !course.dry_run {
            std::fs::create_dir_all(&dir).map_err(failed)?;
        }
    }
    Ok(())
}

/// The smallest and the largest number of a selector.
fn bounds(selector: &Selector) -> Option<(u32, u32)> {
    super::entry::numbers(selector).bounds()
}
