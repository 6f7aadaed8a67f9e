//! Listings: all files below a bucket whose key begins with a prefix, in order, page by page.
//!
//! ```text
//!  frames (one per directory on the current path) ──▶ next entry ──▶ key
//!      └── page after page from a `Lister` (WebHDFS, RPC)
//! ```
//!
//! A name node sorts the names in a directory by their bytes as signed numbers (bytes from 0x80 on come
//! first). A walk returns whole keys in that order: a directory `a` comes after the file `a-b`, because
//! its keys begin with `a/`. A walk keeps one page of each directory on the current path in memory,
//! however many entries there are. A listing that a new walk continues starts over and skips the keys
//! already shown.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::future::Future;

use bucketload_core::error::{ErrorKind, OpResult};
use bucketload_core::record::Probe;

/// An entry of a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Name within the directory; empty for the listed path itself, when that is a file.
    pub(crate) name: String,
    pub(crate) is_dir: bool,
}

/// A source of directory entries.
pub(crate) trait Lister {
    /// The position in a directory.
    type Cursor: Default;

    /// Appends the next entries of the directory `dir` (a key prefix: empty, or with a trailing slash) to
    /// `into`, in the name node's order; returns whether more follow. With a new cursor, the listing
    /// starts after the name `after` (empty: at the beginning). A lister may ignore `after`.
    fn page(
        &mut self,
        bucket: &str,
        dir: &str,
        after: &str,
        cursor: &mut Self::Cursor,
        into: &mut VecDeque<Entry>,
        probe: &mut Probe,
    ) -> impl Future<Output = OpResult<bool>>;
}

/// A directory on the current path.
struct Frame<C> {
    /// Common prefix of the directory's keys.
    dir: String,
    cursor: C,
    after: String,
    entries: VecDeque<Entry>,
    more: bool,
    /// Directories to enter after the entries that begin with their name and a byte below `/`.
    waiting: Vec<String>,
}

/// One result of a walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The key of a file.
    Key(String),
    /// A directory, with a trailing slash, in walks that do not enter directories.
    Group(String),
}

/// An unfinished listing.
pub(crate) struct Walk<C> {
    bucket: String,
    prefix: String,
    /// Length of the prefix's directory part.
    base: usize,
    /// Whether the walk returns directories instead of entering them.
    flat: bool,
    /// The last key returned; empty at the start.
    shown: String,
    frames: Vec<Frame<C>>,
}

impl<C: Default> Walk<C> {
    /// A listing of the keys of `bucket` that begin with `prefix` and come after `shown`.
    pub(crate) fn new(bucket: &str, prefix: &str, shown: &str, flat: bool) -> Self {
        let base = prefix.rfind('/').map_or(0, |at| at + 1);
        let first = Frame {
            dir: prefix[..base].to_owned(),
            cursor: C::default(),
            after: just_before(&prefix[base..]),
            entries: VecDeque::new(),
            more: true,
            waiting: Vec::new(),
        };
        Self {
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
            base,
            flat,
            shown: shown.to_owned(),
            frames: vec![first],
        }
    }

    /// Whether this walk is a listing of `bucket` and `prefix` that continues after `key`.
    pub(crate) fn continues(&self, bucket: &str, prefix: &str, key: &str) -> bool {
        (
            self.bucket.as_str(),
            self.prefix.as_str(),
            self.shown.as_str(),
        ) == (bucket, prefix, key)
    }

    /// The next result; `None` at the end. A missing directory counts as empty.
    ///
    /// # Errors
    /// The cluster's error.
    pub(crate) async fn next<L: Lister<Cursor = C>>(
        &mut self,
        lister: &mut L,
        probe: &mut Probe,
    ) -> OpResult<Option<Found>> {
        loop {
            let Some(frame) = self.frames.last_mut() else {
                return Ok(None);
            };
            if frame.entries.is_empty() && frame.more {
                let page = lister.page(
                    &self.bucket,
                    &frame.dir,
                    &frame.after,
                    &mut frame.cursor,
                    &mut frame.entries,
                    probe,
                );
                frame.more = match page.await {
                    Ok(more) => more,
                    Err(error) if error.kind == ErrorKind::NotFound => false,
                    Err(error) => return Err(error),
                };
                continue;
            }
            let bottom = self.frames.len() == 1;
            let Some(frame) = self.frames.last_mut() else {
                return Ok(None);
            };
            let waits = match (frame.entries.front(), frame.waiting.last()) {
                (Some(entry), Some(dir)) => !comes_before(&entry.name, dir),
                (None, Some(_)) => true,
                (_, None) => false,
            };
            if waits && let Some(name) = frame.waiting.pop() {
                let dir = format!("{}{name}/", frame.dir);
                if let Some(group) = self.enter(dir) {
                    return Ok(Some(group));
                }
                continue;
            }
            let Some(entry) = frame.entries.pop_front() else {
                self.frames.pop();
                continue;
            };
            if entry.name.is_empty() {
                continue;
            }
            if bottom {
                let wanted = &self.prefix[self.base..];
                if !entry.name.starts_with(wanted) {
                    if compare(entry.name.as_bytes(), wanted.as_bytes()) == Ordering::Greater {
                        frame.entries.clear();
                        frame.more = false;
                    }
                    continue;
                }
            }
            if entry.is_dir {
                frame.waiting.push(entry.name);
                continue;
            }
            let key = format!("{}{}", frame.dir, entry.name);
            if self.is_new(&key) {
                self.shown.clone_from(&key);
                return Ok(Some(Found::Key(key)));
            }
        }
    }

    fn is_new(&self, key: &str) -> bool {
        self.shown.is_empty() || compare(key.as_bytes(), self.shown.as_bytes()) == Ordering::Greater
    }

    /// Enters `dir`, unless all its keys were returned already; returns it in flat walks.
    fn enter(&mut self, dir: String) -> Option<Found> {
        if !self.is_new(&dir) && !self.shown.starts_with(&dir) {
            return None;
        }
        if self.flat {
            return Some(Found::Group(dir));
        }
        self.frames.push(Frame {
            dir,
            cursor: C::default(),
            after: String::new(),
            entries: VecDeque::new(),
            more: true,
            waiting: Vec::new(),
        });
        None
    }
}

/// The name node's order of names: bytes as signed numbers.
fn compare(a: &[u8], b: &[u8]) -> Ordering {
    match a.iter().zip(b).find(|(a, b)| a != b) {
        Some((&a, &b)) => (a as i8).cmp(&(b as i8)),
        None => a.len().cmp(&b.len()),
    }
}

/// Whether the entry `name` comes before the keys of the directory `dir`, although the name node lists
/// `dir` first.
fn comes_before(name: &str, dir: &str) -> bool {
    let next = name.strip_prefix(dir).and_then(|rest| rest.bytes().next());
    next.is_some_and(|byte| (byte as i8) < b'/' as i8)
}

/// A name shortly before all names that begin with `start`. Starting there avoids reading a large
/// directory up to that point. Empty if there is no such name.
fn just_before(start: &str) -> String {
    match start.as_bytes().last() {
        // Only names that begin with the returned name lie between it and `start`.
        Some(&last @ 0x21..=0x7e) => {
            let mut name = start[..start.len() - 1].to_owned();
            let byte = if last - 1 == b'/' { last - 2 } else { last - 1 };
            name.push(char::from(byte));
            name
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, VecDeque};
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use bucketload_core::error::{ErrorKind, OpError, OpResult};
    use bucketload_core::record::Probe;
    use proptest::prelude::*;

    use super::{Entry, Found, Lister, Walk, compare};

    /// A tree in memory, listed two entries at a time as a name node would.
    struct Tree {
        keys: BTreeSet<String>,
        pages: usize,
    }

    impl Tree {
        fn of<'a>(keys: impl IntoIterator<Item = &'a str>) -> Self {
            Self {
                keys: keys.into_iter().map(str::to_owned).collect(),
                pages: 0,
            }
        }
    }

    impl Lister for Tree {
        type Cursor = Option<String>;

        async fn page(
            &mut self,
            _bucket: &str,
            dir: &str,
            after: &str,
            cursor: &mut Self::Cursor,
            into: &mut VecDeque<Entry>,
            _probe: &mut Probe,
        ) -> OpResult<bool> {
            self.pages += 1;
            let mut names: Vec<Entry> = Vec::new();
            for rest in self.keys.iter().filter_map(|key| key.strip_prefix(dir)) {
                let (name, is_dir) = match rest.split_once('/') {
                    Some((name, _)) => (name, true),
                    None => (rest, false),
                };
                let entry = Entry {
                    name: name.to_owned(),
                    is_dir,
                };
                if !names.contains(&entry) {
                    names.push(entry);
                }
            }
            if names.is_empty() && !dir.is_empty() {
                return Err(OpError::new(ErrorKind::NotFound, "no directory"));
            }
            names.sort_by(|a, b| compare(a.name.as_bytes(), b.name.as_bytes()));
            let from = cursor.clone().unwrap_or_else(|| after.to_owned());
            let left: Vec<Entry> = names
                .into_iter()
                .filter(|e| from.is_empty() || compare(e.name.as_bytes(), from.as_bytes()).is_gt())
                .collect();
            into.extend(left.iter().take(2).cloned());
            if let Some(last) = left.iter().take(2).next_back() {
                *cursor = Some(last.name.clone());
            }
            Ok(left.len() > 2)
        }
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => value,
            Poll::Pending => panic!("the tree in memory never waits"),
        }
    }

    fn list(tree: &mut Tree, prefix: &str, after: &str, flat: bool) -> Vec<String> {
        let mut walk = Walk::new("b", prefix, after, flat);
        let mut out = Vec::new();
        while let Some(found) = block_on(walk.next(tree, &mut Probe::untimed())).unwrap() {
            match found {
                Found::Key(name) | Found::Group(name) => out.push(name),
            }
        }
        out
    }

    #[test]
    fn keys_are_in_order_of_whole_keys() {
        let mut tree = Tree::of(["a/x", "a-b", "a0", "a/b/c", "a-/y", "b", "\u{e4}"]);
        assert_eq!(
            list(&mut tree, "", "", false),
            ["\u{e4}", "a-/y", "a-b", "a/b/c", "a/x", "a0", "b"]
        );
        assert_eq!(
            list(&mut tree, "", "", true),
            ["\u{e4}", "a-/", "a-b", "a/", "a0", "b"]
        );
    }

    #[test]
    fn a_prefix_selects_its_keys() {
        let mut tree = Tree::of(["p/a 1", "p/a 2", "p/a/3", "p/b", "pq", "q/x"]);
        assert_eq!(
            list(&mut tree, "p/a", "", false),
            ["p/a 1", "p/a 2", "p/a/3"]
        );
        assert_eq!(list(&mut tree, "p/a ", "", false), ["p/a 1", "p/a 2"]);
        assert_eq!(list(&mut tree, "p", "", true), ["p/", "pq"]);
        assert!(list(&mut tree, "p/none", "", false).is_empty());
        assert!(list(&mut tree, "absent/dir/", "", false).is_empty());
    }

    #[test]
    fn a_prefix_does_not_read_the_whole_directory() {
        let keys: Vec<String> = (0..1000).map(|i| format!("d/{i:04}")).collect();
        let mut tree = Tree::of(keys.iter().map(String::as_str));
        assert_eq!(list(&mut tree, "d/0500", "", false), ["d/0500"]);
        assert!(tree.pages <= 2, "{} pages", tree.pages);
    }

    proptest! {
        #[test]
        fn a_listing_can_continue_after_any_key(
            keys in prop::collection::btree_set("[ab\u{e4}.0-]{1,3}(/[ab-]{1,2}){0,2}", 1..25),
            at in any::<prop::sample::Index>(),
        ) {
            // A key cannot be below another one.
            let keys: BTreeSet<String> = keys
                .iter()
                .filter(|key| !keys.iter().any(|k| k.starts_with(&format!("{key}/"))))
                .cloned()
                .collect();
            let mut tree = Tree { keys: keys.clone(), pages: 0 };
            let all = list(&mut tree, "", "", false);
            let mut sorted: Vec<String> = keys.into_iter().collect();
            sorted.sort_by(|a, b| compare(a.as_bytes(), b.as_bytes()));
            prop_assert_eq!(&all, &sorted);
            let i = at.index(all.len());
            let rest = list(&mut tree, "", &all[i], false);
            prop_assert_eq!(&rest[..], &all[i + 1..]);
            let prefix: String = all[i].chars().take(2).collect();
            let wanted: Vec<&String> = all.iter().filter(|k| k.starts_with(&prefix)).collect();
            let got = list(&mut tree, &prefix, "", false);
            prop_assert_eq!(got.iter().collect::<Vec<_>>(), wanted);
        }
    }
}
