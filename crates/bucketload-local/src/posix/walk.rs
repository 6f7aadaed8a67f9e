//! Listings: the keys below a directory tree in byte order, in pages, in bounded memory.
//!
//! Directories are not sorted. Each level of the walk therefore reads its directory, keeps the smallest
//! [`MOST`] names after the last one it returned, and reads the directory again when those are used up:
//!
//! ```text
//!   bucket/            [a-b  a/  a0 ...]     a directory sorts as its name with a slash:
//!        a/            [x  y/ ...]           the order of names is then the order of keys
//!          y/          [...]
//! ```
//!
//! With the delimiter `/` a directory is one entry and is not read, so a listing reads one directory like
//! `readdir`. It then includes empty directories, which an object store does not have.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, openat, statat};
use rustix::io::Errno;

use super::blocking::c_path;
use super::errors::Failure;
use super::path::is_reserved;

/// Most names that a level keeps.
const MOST: usize = 16 * 1024;
/// Bytes of directory entries fetched at a time.
pub(super) const ROOM: usize = 32 * 1024;

/// Passes the objects and directories in a directory to `f`: each name, and whether it is a directory. Skips
/// other file types and the driver's own files.
pub(super) fn scan(
    root: BorrowedFd<'_>,
    path: &CStr,
    room: &mut [MaybeUninit<u8>],
    mut f: impl FnMut(&[u8], bool),
) -> Result<(), Failure> {
    entries(root, path, room, |name, kind| match kind {
        FileType::Directory => f(name, true),
        FileType::RegularFile if !is_reserved(name) => f(name, false),
        _ => {}
    })
}

/// Passes the name and type of every entry of a directory to `f`, except `.` and `..`.
pub(super) fn entries(
    root: BorrowedFd<'_>,
    path: &CStr,
    room: &mut [MaybeUninit<u8>],
    mut f: impl FnMut(&[u8], FileType),
) -> Result<(), Failure> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory =
        openat(root, path, flags, Mode::empty()).map_err(|e| Failure::new("open", e))?;
    let mut entries = RawDir::new(&directory, room);
    while let Some(entry) = entries.next() {
        let entry = entry.map_err(|e| Failure::new("getdents", e))?;
        let name = entry.file_name();
        let kind = match entry.file_type() {
            // Some file systems do not report the type.
            FileType::Unknown => match statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                Err(Errno::NOENT) => continue,
                Err(errno) => return Err(Failure::new("stat", errno)),
            },
            kind => kind,
        };
        let name = name.to_bytes();
        if name != b"." && name != b".." {
            f(name, kind);
        }
    }
    Ok(())
}

/// Entries of a page.
#[derive(Debug, Default)]
pub(super) struct Page {
    text: Vec<u8>,
    /// End of each entry in `text`, and whether it is a group of keys.
    ends: Vec<(usize, bool)>,
    /// Whether more entries follow.
    pub(super) more: bool,
}

impl Page {
    /// The entries, and whether each is a group of keys.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&str, bool)> {
        let mut from = 0;
        self.ends.iter().map(move |&(end, group)| {
            // `fill` keeps only names in UTF-8.
            let text = std::str::from_utf8(&self.text[from..end]).unwrap_or_default();
            from = end;
            (text, group)
        })
    }

    /// Number of entries.
    pub(super) const fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
        self.more = false;
    }

    /// Adds the key of file `name` in the directory `parent`.
    pub(super) fn push(&mut self, parent: &[u8], name: &[u8]) {
        self.text.extend_from_slice(parent);
        self.push_entry(name, false);
    }

    fn push_entry(&mut self, key: &[u8], group: bool) {
        self.text.extend_from_slice(key);
        self.ends.push((self.text.len(), group));
    }
}

/// A directory on the current path.
#[derive(Debug, Default)]
struct Level {
    /// Bytes of the walk's path that name the directory.
    path: usize,
    names: Vec<u8>,
    /// Ranges of `names`, in order.
    entries: Vec<(usize, usize)>,
    next: usize,
    /// Whether the directory has further names.
    more: bool,
    /// The last name returned, when the level is filled again.
    last: Vec<u8>,
}

/// An unfinished listing. The next listing reuses its memory.
#[derive(Debug)]
pub(super) struct Walk {
    /// Directory of the current level, below the root, with a trailing slash.
    path: Vec<u8>,
    /// Bytes of `path` that name the bucket.
    bucket: usize,
    prefix: Vec<u8>,
    after: Vec<u8>,
    delimiter: Vec<u8>,
    levels: Vec<Level>,
    depth: usize,
    /// The last entry found, and whether it is a group of keys.
    key: Vec<u8>,
    is_group: bool,
    /// Whether `key` belongs to the next page.
    held: bool,
    /// The last group returned.
    group: Vec<u8>,
    /// Whether the walk has read nothing yet.
    fresh: bool,
    room: Vec<MaybeUninit<u8>>,
    name: Vec<u8>,
    spare: Vec<u8>,
    most: usize,
}

impl Default for Walk {
    fn default() -> Self {
        Self {
            path: Vec::new(),
            bucket: 0,
            prefix: Vec::new(),
            after: Vec::new(),
            delimiter: Vec::new(),
            levels: Vec::new(),
            depth: 0,
            key: Vec::new(),
            is_group: false,
            held: false,
            group: Vec::new(),
            fresh: false,
            room: Vec::new(),
            name: Vec::new(),
            spare: Vec::new(),
            most: MOST,
        }
    }
}

fn set(out: &mut Vec<u8>, bytes: &[u8]) {
    out.clear();
    out.extend_from_slice(bytes);
}

impl Walk {
    /// Room for directory entries.
    pub(super) fn room(&mut self) -> &mut [MaybeUninit<u8>] {
        self.room.resize(ROOM, MaybeUninit::uninit());
        &mut self.room
    }

    /// Starts a listing of the keys in `bucket` that begin with `prefix` and come after `after`. `directory` is
    /// the NUL-terminated path of the prefix's directory; `None` if no key can begin with `prefix`.
    pub(super) fn begin(
        &mut self,
        bucket: &str,
        directory: Option<&[u8]>,
        (prefix, after, delimiter): (&str, &str, &str),
    ) {
        self.bucket = bucket.len() + 1;
        set(&mut self.path, bucket.as_bytes());
        self.depth = 0;
        if let Some(directory) = directory {
            set(
                &mut self.path,
                directory.strip_suffix(b"\0").unwrap_or(directory),
            );
            self.depth = 1;
        }
        self.path.push(b'/');
        set(&mut self.prefix, prefix.as_bytes());
        set(&mut self.after, after.as_bytes());
        set(&mut self.delimiter, delimiter.as_bytes());
        self.held = false;
        self.group.clear();
        self.fresh = true;
    }

    /// Whether this walk lists these keys and its last page ended with `after`.
    pub(super) fn continues(&self, bucket: &str, prefix: &str, after: &str) -> bool {
        // The held key is the first one after the last page.
        self.held
            && self.after == after.as_bytes()
            && self.prefix == prefix.as_bytes()
            && self.delimiter.is_empty()
            && self.path.get(..self.bucket) == Some(&[bucket.as_bytes(), b"/"].concat()[..])
    }

    /// Fetches the next `most` entries into `page`.
    pub(super) fn page(
        &mut self,
        root: BorrowedFd<'_>,
        most: usize,
        page: &mut Page,
    ) -> Result<(), Failure> {
        page.clear();
        if std::mem::take(&mut self.fresh) {
            self.start(root)?;
        }
        loop {
            let found = std::mem::take(&mut self.held) || self.advance(root)?;
            if !found {
                return Ok(());
            }
            if page.ends.len() == most {
                self.held = true;
                page.more = true;
                return Ok(());
            }
            page.push_entry(&self.key, self.is_group);
            // Lets `continues` recognise the end of the page.
            std::mem::swap(&mut self.after, &mut self.key);
        }
    }

    fn start(&mut self, root: BorrowedFd<'_>) -> Result<(), Failure> {
        self.room();
        if self.levels.is_empty() {
            self.levels.push(Level::default());
        }
        self.levels[0].path = self.path.len();
        if self.depth == 1 && self.fill(root, 0, false)? {
            return Ok(());
        }
        // Nothing is below the prefix; check that the bucket exists.
        self.depth = 0;
        let end = self.bucket - 1;
        let mut bucket = self.path[..end].to_vec();
        bucket.push(0);
        let stat = statat(root, c_path(&bucket), AtFlags::empty());
        let stat = stat.map_err(|e| Failure::new("stat", e))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Ok(()),
            _ => Err(Failure::new("stat", Errno::NOENT)),
        }
    }

    /// Finds the next entry into `key`.
    fn advance(&mut self, root: BorrowedFd<'_>) -> Result<bool, Failure> {
        while let Some(at) = self.depth.checked_sub(1) {
            let level = &mut self.levels[at];
            self.path.truncate(level.path);
            let Some(&(from, to)) = level.entries.get(level.next) else {
                if !level.more || !self.fill(root, at, true)? {
                    self.depth = at;
                }
                continue;
            };
            level.next += 1;
            let name = &level.names[from..to];
            set(&mut self.key, &self.path[self.bucket..]);
            self.key.extend_from_slice(name);
            if !name.ends_with(b"/") {
                if self.is_new() {
                    return Ok(true);
                }
                continue;
            }
            if self.delimiter == b"/" && self.key.len() > self.prefix.len() {
                self.is_group = true;
                return Ok(true);
            }
            self.path.extend_from_slice(name);
            if self.levels.len() == at + 1 {
                self.levels.push(Level::default());
            }
            self.levels[at + 1].path = self.path.len();
            // A directory deleted meanwhile counts as empty.
            if self.fill(root, at + 1, false)? {
                self.depth = at + 2;
            }
        }
        Ok(false)
    }

    /// Whether `key` is a single entry or the first of its group. In a group, replaces `key` with the group.
    fn is_new(&mut self) -> bool {
        self.is_group = false;
        let delimiter = &self.delimiter[..];
        if delimiter.is_empty() || delimiter == b"/" {
            return true;
        }
        let rest = &self.key[self.prefix.len().min(self.key.len())..];
        let Some(at) = rest.windows(delimiter.len()).position(|w| w == delimiter) else {
            return true;
        };
        let end = self.key.len() - rest.len() + at + delimiter.len();
        self.key.truncate(end);
        self.is_group = true;
        let is_new = self.key != self.group;
        set(&mut self.group, &self.key);
        is_new
    }

    /// Reads the names of level `at`, whose directory is `path`; with `again` those after the last one. Returns
    /// `false` if the directory does not exist.
    fn fill(&mut self, root: BorrowedFd<'_>, at: usize, again: bool) -> Result<bool, Failure> {
        let level = &mut self.levels[at];
        if again {
            let (from, to) = level.entries.last().copied().unwrap_or_default();
            set(&mut level.last, &level.names[from..to]);
        } else {
            level.last.clear();
        }
        level.names.clear();
        level.entries.clear();
        level.next = 0;
        level.more = false;
        // The parts of prefix and `after` that apply to the names in this directory.
        let directory = &self.path[self.bucket..];
        let prefix = self.prefix.get(directory.len()..).unwrap_or_default();
        let after = match self.after.strip_prefix(directory) {
            Some(rest) => rest,
            // Either all names here come before `after`, or none does.
            None if self.after.as_slice() > directory => return Ok(true),
            None => b"",
        };
        let mut candidate = Candidates {
            level,
            spare: &mut self.spare,
            most: self.most,
            cutoff: None,
        };
        let name = &mut self.name;
        self.path.push(0);
        let scanned = scan(
            root,
            c_path(&self.path),
            &mut self.room,
            |bytes, is_directory| {
                set(name, bytes);
                if is_directory {
                    name.push(b'/');
                }
                let on_the_way = |to: &[u8]| is_directory && to.starts_with(name);
                let begins = name.starts_with(prefix) || on_the_way(prefix);
                let behind = name.as_slice() > after || on_the_way(after);
                if begins && behind && std::str::from_utf8(name).is_ok() {
                    candidate.offer(name);
                }
            },
        );
        self.path.pop();
        candidate.cut();
        match scanned {
            Ok(()) => Ok(true),
            Err(Failure {
                errno: Errno::NOENT | Errno::NOTDIR | Errno::LOOP,
                ..
            }) => Ok(false),
            Err(failure) => Err(failure),
        }
    }
}

/// Keeps the smallest of the offered names.
struct Candidates<'a> {
    level: &'a mut Level,
    spare: &'a mut Vec<u8>,
    most: usize,
    /// The largest name that can still be among the smallest.
    cutoff: Option<Vec<u8>>,
}

impl Candidates<'_> {
    fn offer(&mut self, name: &[u8]) {
        if name <= self.level.last.as_slice() && !self.level.last.is_empty() {
            return;
        }
        if self.cutoff.as_deref().is_some_and(|cutoff| name > cutoff) {
            self.level.more = true;
            return;
        }
        let from = self.level.names.len();
        self.level.names.extend_from_slice(name);
        self.level.entries.push((from, self.level.names.len()));
        if self.level.entries.len() >= 2 * self.most {
            self.cut();
        }
    }

    /// Sorts the names and drops all but the smallest.
    fn cut(&mut self) {
        let Level {
            names,
            entries,
            more,
            ..
        } = &mut *self.level;
        entries.sort_unstable_by(|a, b| names[a.0..a.1].cmp(&names[b.0..b.1]));
        if entries.len() <= self.most {
            return;
        }
        *more = true;
        entries.truncate(self.most);
        self.spare.clear();
        for entry in entries.iter_mut() {
            let from = self.spare.len();
            self.spare.extend_from_slice(&names[entry.0..entry.1]);
            *entry = (from, self.spare.len());
        }
        std::mem::swap(names, self.spare);
        self.cutoff = entries.last().map(|&(from, to)| names[from..to].to_vec());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::os::fd::AsFd;

    use proptest::prelude::*;

    use super::super::path::set_prefix;
    use super::{Page, Walk};

    /// The listing of `keys` by an object store.
    fn expected(keys: &BTreeSet<String>, prefix: &str, delimiter: &str) -> Vec<(String, bool)> {
        let mut shown = BTreeMap::new();
        for key in keys.iter().filter(|key| key.starts_with(prefix)) {
            let rest = &key[prefix.len()..];
            match rest.find(delimiter).filter(|_| !delimiter.is_empty()) {
                Some(at) => {
                    let end = prefix.len() + at + delimiter.len();
                    shown.insert(key[..end].to_owned(), true)
                }
                None => shown.insert(key.clone(), false),
            };
        }
        shown.into_iter().collect()
    }

    fn listed(
        root: &std::fs::File,
        (prefix, after, delimiter): (&str, &str, &str),
        page_size: usize,
        most: usize,
    ) -> Vec<(String, bool)> {
        let mut walk = Walk {
            most,
            ..Walk::default()
        };
        let mut path = Vec::new();
        let directory = set_prefix(&mut path, "b", prefix).unwrap();
        walk.begin(
            "b",
            directory.map(|_| &path[..]),
            (prefix, after, delimiter),
        );
        let (mut page, mut all) = (Page::default(), Vec::new());
        loop {
            walk.page(root.as_fd(), page_size, &mut page).unwrap();
            all.extend(page.entries().map(|(key, group)| (key.to_owned(), group)));
            assert!(page.entries().count() <= page_size);
            if !page.more {
                return all;
            }
            assert_eq!(page.entries().count(), page_size);
        }
    }

    fn tree(keys: &BTreeSet<String>) -> (tempfile::TempDir, std::fs::File) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("b")).unwrap();
        for key in keys {
            let path = dir.path().join("b").join(key);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, b"").unwrap();
        }
        let root = std::fs::File::open(dir.path()).unwrap();
        (dir, root)
    }

    /// Keys of which none is below another, made of characters around the slash.
    fn keys() -> impl Strategy<Value = BTreeSet<String>> {
        let segment = "[-.0a]{1,3}".prop_filter("dots", |s| s != "." && s != "..");
        let key = prop::collection::vec(segment, 1..4).prop_map(|s| s.join("/"));
        prop::collection::btree_set(key, 0..40).prop_map(|keys| {
            let below = |key: &String| {
                let is_parent = |other: &String| key.starts_with(&format!("{other}/"));
                keys.iter().any(is_parent)
            };
            keys.iter().filter(|key| !below(key)).cloned().collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn listings_match_an_object_store(
            keys in keys(), prefix in "([-.0a]{0,2}|[0a]{1,2}/[-.0a]{0,2})",
            delimiter in prop::sample::select(vec!["", "/", "0", "-a", "/0"]),
            page_size in 1usize..7, most in 1usize..9,
        ) {
            let (_dir, root) = tree(&keys);
            let all = expected(&keys, &prefix, delimiter);
            prop_assert_eq!(&listed(&root, (&prefix, "", delimiter), page_size, most), &all);
            if delimiter.is_empty() {
                // After any key, existing or not.
                for after in all.iter().map(|(key, _)| key.as_str()).chain(["-", "a/0", "a0/", "zz"]) {
                    let rest: Vec<_> = all.iter().filter(|(key, _)| key.as_str() > after).cloned().collect();
                    prop_assert_eq!(listed(&root, (&prefix, after, ""), page_size, most), rest);
                }
            }
        }
    }

    #[test]
    fn listings_leave_out_everything_but_objects() {
        let keys = BTreeSet::from(["d/k".to_owned()]);
        let (dir, root) = tree(&keys);
        let b = dir.path().join("b");
        std::fs::create_dir(b.join("empty")).unwrap();
        std::fs::write(b.join("d/.bucketload-posix-tmp-1-1"), b"").unwrap();
        std::os::unix::fs::symlink("d/k", b.join("link")).unwrap();
        let all = |delimiter| listed(&root, ("", "", delimiter), 10, 10);
        assert_eq!(all(""), [("d/k".to_owned(), false)]);
        // A directory counts even if it is empty.
        assert_eq!(
            all("/"),
            [("d/".to_owned(), true), ("empty/".to_owned(), true)]
        );
        assert_eq!(listed(&root, ("no/such/", "", ""), 10, 10), []);
        assert_eq!(listed(&root, ("no//such", "", ""), 10, 10), []);
        std::fs::remove_dir_all(&b).unwrap();
        let mut walk = Walk::default();
        walk.begin("b", Some(b"b\0"), ("", "", ""));
        let failure = walk
            .page(root.as_fd(), 10, &mut Page::default())
            .unwrap_err();
        assert_eq!(failure.errno, rustix::io::Errno::NOENT);
    }
}
