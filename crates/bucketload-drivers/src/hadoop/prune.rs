//! Removal of empty directories.
//!
//! In an object store a directory disappears with its last key; in HDFS it stays. Removing a bucket, or
//! the keys under a prefix that the session listed, therefore also removes the empty directories: one by
//! one, deepest first, and never recursively, so a file that appears meanwhile stays.

use std::collections::VecDeque;
use std::future::Future;

use bucketload_core::driver::{ErrorKind, OpError, OpResult, Probe};

use super::listing::Listed;
use super::path;
use super::walk::{Entry, Lister};
use crate::http::control::ignore_missing;

/// A session of an HDFS driver, as a tree of files and directories.
pub(crate) trait Tree: Lister {
    /// The session's last listing for the control plane.
    fn listed(&mut self) -> &mut Listed<Self::Cursor>;

    /// Removes the file or the empty directory `key` of `bucket` (empty: the bucket itself).
    ///
    /// # Errors
    /// `Conflict` for a directory that is not empty, `NotFound` when the path does not exist.
    fn unlink(
        &mut self,
        bucket: &str,
        key: &str,
        probe: &mut Probe,
    ) -> impl Future<Output = OpResult<()>>;
}

/// Removes `dir` (empty: the bucket itself) and its subdirectories, if none of them contains a file.
/// Returns whether it removed them.
///
/// # Errors
/// The cluster's error.
pub(crate) async fn remove_empty<T: Tree>(tree: &mut T, bucket: &str, dir: &str) -> OpResult<bool> {
    let probe = &mut Probe::untimed();
    // Parents before their children.
    let mut dirs = vec![dir.to_owned()];
    let mut at = 0;
    while let Some(dir) = dirs.get(at).cloned() {
        let mut cursor = T::Cursor::default();
        let mut page: VecDeque<Entry> = VecDeque::new();
        loop {
            let more = match tree
                .page(bucket, &dir, "", &mut cursor, &mut page, probe)
                .await
            {
                Ok(more) => more,
                Err(error) if error.kind == ErrorKind::NotFound => false,
                Err(error) => return Err(error),
            };
            for entry in page.drain(..) {
                if !entry.is_dir {
                    return Ok(false);
                }
                dirs.push(format!("{dir}{}/", entry.name));
            }
            if !more {
                break;
            }
        }
        at += 1;
    }
    for dir in dirs.iter().rev() {
        match tree.unlink(bucket, dir, probe).await {
            Ok(()) => {}
            Err(error) if error.kind == ErrorKind::NotFound => {}
            Err(error) if error.kind == ErrorKind::Conflict => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// Removes the directory of a bucket.
///
/// # Errors
/// `Conflict` when it is not empty.
pub(crate) async fn remove_bucket<T: Tree>(tree: &mut T, bucket: &str) -> OpResult<()> {
    match remove_empty(tree, bucket, "").await? {
        true => Ok(()),
        false => Err(OpError::new(
            ErrorKind::Conflict,
            format!("the directory `{bucket}` is not empty"),
        )),
    }
}

/// Deletes `keys`, and the directories that are empty then below the prefix that the session listed: other
/// directories may not belong to the run. Missing keys are no error.
///
/// # Errors
/// The cluster's error.
pub(crate) async fn delete_keys<T: Tree>(
    tree: &mut T,
    bucket: &str,
    keys: &[String],
) -> OpResult<()> {
    for key in keys {
        path::check(bucket, key)?;
        ignore_missing(tree.unlink(bucket, key, &mut Probe::untimed()).await)?;
    }
    let listed = tree.listed();
    if listed.bucket != bucket {
        return Ok(());
    }
    let prefix = listed.prefix.clone();
    after_deleting(tree, bucket, &prefix, keys).await
}

/// Removes the directories of the deleted `keys` that are now empty and below the directory of `prefix`,
/// and that directory itself, but never the bucket.
///
/// # Errors
/// The cluster's error.
async fn after_deleting<T: Tree>(
    tree: &mut T,
    bucket: &str,
    prefix: &str,
    keys: &[String],
) -> OpResult<()> {
    let base = &prefix[..prefix.rfind('/').map_or(0, |at| at + 1)];
    let mut done: Vec<&str> = Vec::new();
    for key in keys {
        let mut dir = path::parent(key);
        while let Some(name) = dir {
            if done.contains(&name) || !format!("{name}/").starts_with(base) {
                break;
            }
            done.push(name);
            if !remove_empty(tree, bucket, &format!("{name}/")).await? {
                break;
            }
            dir = path::parent(name);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, VecDeque};
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use bucketload_core::error::{ErrorKind, OpError, OpResult};
    use bucketload_core::record::Probe;

    use super::{Entry, Listed, Lister, Tree, after_deleting, remove_empty};

    /// Paths below a bucket; directories end with a slash.
    struct Paths(BTreeSet<String>);

    impl Lister for Paths {
        type Cursor = ();

        async fn page(
            &mut self,
            _bucket: &str,
            dir: &str,
            _after: &str,
            _cursor: &mut (),
            into: &mut VecDeque<Entry>,
            _probe: &mut Probe,
        ) -> OpResult<bool> {
            let inside = self.0.iter().filter_map(|path| path.strip_prefix(dir));
            into.extend(inside.filter_map(|rest| {
                let name = rest.strip_suffix('/').unwrap_or(rest);
                (!name.is_empty() && !name.contains('/')).then(|| Entry {
                    name: name.to_owned(),
                    is_dir: rest.ends_with('/'),
                })
            }));
            Ok(false)
        }
    }

    impl Tree for Paths {
        fn listed(&mut self) -> &mut Listed<()> {
            unreachable!("only the control plane lists keys")
        }

        async fn unlink(&mut self, _bucket: &str, dir: &str, _probe: &mut Probe) -> OpResult<()> {
            let full = self.0.iter().any(|p| p.starts_with(dir) && p != dir);
            match (full, self.0.remove(dir) || dir.is_empty()) {
                (true, _) => Err(OpError::new(ErrorKind::Conflict, "not empty")),
                (false, true) => Ok(()),
                (false, false) => Err(OpError::new(ErrorKind::NotFound, "gone")),
            }
        }
    }

    fn paths(all: &[&str]) -> Paths {
        Paths(all.iter().map(|&p| p.to_owned()).collect())
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => value,
            Poll::Pending => panic!("nothing waits here"),
        }
    }

    #[test]
    fn only_empty_trees_are_removed() {
        let mut tree = paths(&["a/", "a/b/", "a/c/", "d/", "d/file"]);
        assert!(block_on(remove_empty(&mut tree, "b", "a/")).unwrap());
        assert!(!block_on(remove_empty(&mut tree, "b", "d/")).unwrap());
        assert!(!block_on(remove_empty(&mut tree, "b", "")).unwrap());
        assert_eq!(tree.0.into_iter().collect::<Vec<_>>(), ["d/", "d/file"]);
    }

    #[test]
    fn directories_outside_the_prefix_stay() {
        let all = ["p/", "p/run/", "p/run/x/", "p/run/x/y/", "p/other/"];
        let keys = ["p/run/x/y/1".to_owned(), "p/run/2".to_owned()];
        let left = |prefix: &str| {
            let mut tree = paths(&all);
            block_on(after_deleting(&mut tree, "b", prefix, &keys)).unwrap();
            tree.0.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(left("p/run/"), ["p/", "p/other/"]);
        assert_eq!(left("p/run/x/"), ["p/", "p/other/", "p/run/"]);
        assert_eq!(
            left("p/other/"),
            ["p/", "p/other/", "p/run/", "p/run/x/", "p/run/x/y/"]
        );
    }

    #[test]
    fn directories_with_files_stay() {
        let mut tree = paths(&["p/", "p/run/", "p/run/foreign"]);
        block_on(after_deleting(&mut tree, "b", "", &["p/run/1".to_owned()])).unwrap();
        assert_eq!(tree.0.len(), 3);
    }
}
