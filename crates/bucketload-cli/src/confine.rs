//! What a run may do that others have submitted: its target is no directory of this machine, unless below an allowed root.

use std::io;
use std::path::{Component, Path, PathBuf};

use crate::exit::Failure;
use crate::target::Target;

/// Checks the target of a submitted run. `roots` are the directories below which targets may lie.
///
/// # Errors
/// When the target is a directory of this machine outside of them, with the remedy for whoever runs the controller.
pub(crate) fn check(target: &Target, roots: &[PathBuf]) -> Result<(), Failure> {
    let (Target::Files(path) | Target::Directory(path)) = target else {
        return Ok(());
    };
    let refused = |why: &str| {
        Err(Failure::usage(format!(
            "target {}: {why}; ask whoever runs the controller to start it with --allow-root DIR, where DIR contains \
             the target, or name a storage service",
            path.display()
        )))
    };
    if roots.is_empty() {
        return refused(
            "the controller was started without --allow-root, so no directory of its machine may be a target",
        );
    }
    let real = match real(path) {
        Ok(real) => real,
        Err(e) => return refused(&format!("the directory cannot be looked up ({e})")),
    };
    let inside = |root: &PathBuf| root.canonicalize().is_ok_and(|root| real.starts_with(root));
    match roots.iter().any(inside) {
        true => Ok(()),
        false => refused("the directory is outside the roots of the controller"),
    }
}

/// The path without symbolic links and `..`, also if its last parts do not exist yet.
fn real(path: &Path) -> io::Result<PathBuf> {
    let mut missing = Vec::new();
    let mut known = path;
    loop {
        match known.canonicalize() {
            Ok(mut real) => {
                real.extend(missing.iter().rev());
                return Ok(real);
            }
            // A dangling link counts as existing: the run would follow it.
            Err(e) if known.symlink_metadata().is_ok() => return Err(e),
            Err(e) => {
                let (Some(Component::Normal(last)), Some(parent)) =
                    (known.components().next_back(), known.parent())
                else {
                    return Err(e);
                };
                missing.push(last);
                known = parent;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::check;
    use crate::target::Target;

    #[test]
    fn directories_are_targets_only_below_an_allowed_root() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        std::fs::create_dir(&root).unwrap();
        std::os::unix::fs::symlink("/etc", root.join("link")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("gone"), root.join("dangling")).unwrap();
        let roots = [dir.path().join("other"), root.clone()];
        let refusal = |target: &Target, roots: &[PathBuf]| {
            check(target, roots).map_err(|failure| failure.message)
        };
        for good in ["", "a", "a/b/c", "./a"] {
            let at = root.join(good);
            assert_eq!(refusal(&Target::Files(at.clone()), &roots), Ok(()));
            assert_eq!(refusal(&Target::Directory(at), &roots), Ok(()));
        }
        for bad in [
            "..",
            "../rootless",
            "a/../../x",
            "link",
            "link/x",
            "dangling",
            "dangling/x",
            "/etc",
        ] {
            let target = Target::Files(root.join(bad));
            let refused = refusal(&target, &roots).unwrap_err();
            assert!(refused.contains("--allow-root"), "{bad}: {refused}");
            let unlimited = refusal(&target, &[]).unwrap_err();
            assert!(
                unlimited.contains("started without --allow-root"),
                "{unlimited}"
            );
        }
        assert_eq!(refusal(&Target::Memory, &[]), Ok(()));
        assert_eq!(refusal(&Target::parse("s3://b").unwrap(), &[]), Ok(()));
    }
}
