//! COSBench's `localwrite`, which writes files on the machine that performs the operation: only where its user allows
//! it, and without replacing existing files. Agents look at their own file systems.

use std::path::{Path, PathBuf};

use bucketload_core::op::OpClass;
use bucketload_core::plan::Plan;
use bucketload_core::plan::buckets::MOST_BUCKETS;
use bucketload_core::plan::named::NamePattern;
use bucketload_cosbench::{Operation, OperationKind, Workload};

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
    // The agents have permissions of their own.
    if args.allow_local_writes.is_none() && !mode.agents {
        return Err(refuse(
            &first.location,
            "localwrite writes files on this machine, which is not allowed",
            &format!("allow it below a directory with --allow-local-writes DIR, {skip}"),
        ));
    }
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
        if let (Some(allowed), false) = (&args.allow_local_writes, mode.agents) {
            let at = |(problem, remedy): Refusal| refuse(&operation.location, &problem, remedy);
            check_inside(Path::new(&root), allowed).map_err(at)?;
            let containers = target.containers.as_ref().map(|numbers| NamePattern {
                prefix: target.cprefix.clone(),
                suffix: target.csuffix.clone(),
                numbers: super::entry::numbers(numbers),
                divided: false,
            });
            let look = Look {
                root: Path::new(&root),
                replace: args.delete_named,
                create: !mode.dry_run,
            };
            look.containers(containers.as_ref(), &target.oprefix)
                .map_err(at)?;
        }
    }
    Ok(Some(PathBuf::from(root)))
}

/// Makes the directories of the `localwrite` operations of `plan` below `root` on this machine, for an agent whose user
/// allows that below `allowed`. Existing files may only be replaced with `replace`.
///
/// # Errors
/// When the directory is not allowed or missing, or holds files that would be replaced.
pub(crate) fn allow(
    root: &Path,
    allowed: Option<&Path>,
    plan: &Plan,
    replace: bool,
) -> Result<(), String> {
    let say = |(problem, remedy): Refusal| format!("{problem}; {remedy}");
    let Some(allowed) = allowed else {
        return Err(
            "localwrite writes files on the agent's machine, which its user has not allowed; start the agent with \
             --allow-local-writes DIR, or skip it with --skip-operations localwrite"
                .to_owned(),
        );
    };
    check_inside(root, allowed).map_err(say)?;
    let look = Look {
        root,
        replace,
        create: true,
    };
    let works = plan.phases.iter().flat_map(|phase| &phase.works);
    for work in works {
        let entries = work.model.named().into_iter().flat_map(|n| &n.entries);
        for (mix, entry) in work.mix.iter().zip(entries) {
            if mix.class == OpClass::LocalWrite {
                let object = entry.object.as_ref().map_or("", |object| &object.prefix);
                look.containers(Some(&entry.bucket), object).map_err(say)?;
            }
        }
    }
    Ok(())
}

/// What is wrong, and what to do about it.
type Refusal = (String, &'static str);

/// Refuses a directory outside of `allowed`.
fn check_inside(root: &Path, allowed: &Path) -> Result<(), Refusal> {
    let name = root.display();
    let inside = || -> std::io::Result<bool> {
        Ok(root.canonicalize()?.starts_with(allowed.canonicalize()?))
    };
    match inside() {
        Ok(true) => Ok(()),
        Ok(false) => Err((
            format!("files={name} is not inside {}", allowed.display()),
            "name a directory that contains it with --allow-local-writes DIR",
        )),
        Err(e) => Err((format!("files={name}: {e}"), "create the directory")),
    }
}

/// How to look at the directories of containers.
struct Look<'a> {
    root: &'a Path,
    /// Whether existing files may be replaced.
    replace: bool,
    /// Whether to create the directories.
    create: bool,
}

impl Look<'_> {
    /// Creates the directories of an operation's `containers`, whose files begin with `object`.
    fn containers(&self, containers: Option<&NamePattern>, object: &str) -> Result<(), Refusal> {
        let bounds = containers.and_then(|c| Some((c, c.numbers.bounds()?)));
        let Some((containers, (lo, hi))) = bounds else {
            return Ok(());
        };
        if u64::from(hi - lo) >= MOST_BUCKETS {
            let problem =
                format!("localwrite cannot write into more than {MOST_BUCKETS} directories");
            return Err((problem, "name fewer containers"));
        }
        let mut name = String::new();
        for number in lo..=hi {
            containers.render(number, &mut name);
            let dir = self.root.join(&name);
            let failed =
                |e: std::io::Error| (format!("{}: {e}", dir.display()), "name another directory");
            let held = match std::fs::read_dir(&dir) {
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
                Err(e) => return Err(failed(e)),
                Ok(entries) => entries.filter_map(Result::ok).find(|entry| {
                    let name = entry.file_name();
                    name.as_encoded_bytes().starts_with(object.as_bytes())
                }),
            };
            if let Some(entry) = held.filter(|_| !self.replace) {
                let file = entry.path();
                return Err((
                    format!(
                        "localwrite could replace {}, which exists already",
                        file.display()
                    ),
                    "choose other names, or allow it with --delete-named",
                ));
            }
            if self.create {
                std::fs::create_dir_all(&dir).map_err(failed)?;
            }
        }
        Ok(())
    }
}
