//! Listings: the keys below a directory tree in byte order, in pages, in bounded memory.
//!
//! Directories come in no order. Each level of the walk therefore reads its directory, keeps the
//! smallest [`MOST`] names behind the last one it gave out, and reads it again when those are used up:
//!
//! ```text
//!   bucket/            [a-b  a/  a0 ...]     a directory sorts as its name with a slash:
//!        a/            [x  y/ ...]           the order of names is then the order of keys
//!          y/          [...]
//! ```
//!
//! With the delimiter `/` a directory is one entry and is not read: a listing of one directory, as
//! `readdir` gives it. It then shows empty directories too, which an object store does not know.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, openat, statat};
use rustix::io::Errno;

use super::blocking::c_path;
use super::errors::Failure;
use super::path::is_reserved;

/// Names that a level keeps.
const MOST: usize = 16 * 1024;
/// Bytes of directory entries fetched at a time.
const ROOM: usize = 32 * 1024;

/// Shows the names in a directory, and whether each is a directory. Other things than files and
/// directories, and our own files, are left out.
pub(super) fn scan(
    root: BorrowedFd<'_>,
    path: &CStr,
    room: &mut [MaybeUninit<u8>],
    mut f: impl FnMut(&[u8], bool),
) -> Result<(), Failure> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory =
        openat(root, path, flags, Mode::empty()).map_err(|e| Failure::new("open", e))?;
    let mut entries = RawDir::new(&directory, room);
    while let Some(entry) = entries.next() {
        let entry = entry.map_err(|e| Failure::new("getdents", e))?;
        let name = entry.file_name();
        let kind = match entry.file_type() {
            // Some file systems do not say.
            FileType::Unknown => match statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                Err(Errno::NOENT) => continue,
                Err(errno) => return Err(Failure::new("stat", errno)),
            },
            kind => kind,
        };
        let name = name.to_bytes();
        match kind {
            FileType::Directory if name != b"." && name != b".." => f(name, true),
            FileType::RegularFile if !is_reserved(name) => f(name, false),
            _ => {}
        }
    }
    Ok(())
}

/// Entries of a page.
#[derive(Debug, Default)]
pub(super) struct Page {
    text: Vec<u8>,
    /// End of each entry in `text`, and whether it stands for several keys.
    ends: Vec<(usize, bool)>,
    /// Whether there are entries behind these.
    pub(super) more: bool,
}

impl Page {
    /// The entries, and whether each stands for several keys.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&str, bool)> {
        let mut from = 0;
        self.ends.iter().map(move |&(end, group)| {
            // Only names in UTF-8 were kept.
            let text = std::str::from_utf8(&self.text[from..end]).unwrap_or_default();
            from = end;
            (text, group)
        })
    }

    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
        self.more = false;
    }

    fn push(&mut self, key: &[u8], group: bool) {
        self.text.extend_from_slice(key);
        self.ends.push((self.text.len(), group));
    }
}

/// One directory on the way.
#[derive(Debug, Default)]
struct Level {
    /// Bytes of the walk's path that name the directory.
    path: usize,
    names: Vec<u8>,
    /// Ranges of `names`, in order.
    entries: Vec<(usize, usize)>,
    next: usize,
    /// Whether the directory has names behind these.
    more: bool,
    /// The name that was given out last, when the level is filled again.
    last: Vec<u8>,
}

/// A listing under way. Its memory is used again by the next one.
#[derive(Debug)]
pub(super) struct Walk {
    /// Directory of the present level, below the root, with a slash at its end.
    path: Vec<u8>,
    /// Bytes of `path` that name the bucket.
    bucket: usize,
    prefix: Vec<u8>,
    after: Vec<u8>,
    delimiter: Vec<u8>,
    levels: Vec<Level>,
    depth: usize,
    /// The entry found last, and whether it stands for several keys.
    key: Vec<u8>,
    is_group: bool,
    /// `key` was found but is of the next page.
    held: bool,
    /// The group that was given out last.
    group: Vec<u8>,
    /// Nothing was read yet.
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

    /// Begins the listing of the keys in `bucket` that begin with `prefix` and come after `after`.
    /// The directory of the prefix is at `directory` (with a NUL); `None` where no key can begin so.
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

    /// Whether the listing of these keys stopped exactly behind `after`.
    pub(super) fn continues(&self, bucket: &str, prefix: &str, after: &str) -> bool {
        // What is held is the first key behind those that were given out.
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
            page.push(&self.key, self.is_group);
            // For whoever wants to go on from here.
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
        // There is nothing below the prefix; is there a bucket?
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
            // A directory that has gone meanwhile holds nothing.
            if self.fill(root, at + 1, false)? {
                self.depth = at + 2;
            }
        }
        Ok(false)
    }

    /// Whether `key` is an entry of its own, or the first of its group: then it becomes the group.
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

    /// Reads the names of level `at`, whose directory is `path`; `again` for those behind the last
    /// one. Returns `false` when there is no such directory.
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
        // What the names must begin with and come after, as far as this directory decides it.
        let directory = &self.path[self.bucket..];
        let prefix = self.prefix.get(directory.len()..).unwrap_or_default();
        let after = match self.after.strip_prefix(directory) {
            Some(rest) => rest,
            // Everything here comes before, or nothing does.
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

/// Keeps the smallest names of those that are offered.
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

    /// Sorts, and drops all but the smallest.
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

    /// What a listing of an object store shows of `keys`.
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

    /// Keys of which none lies below another, made of characters around the slash.
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
        fn listings_are_those_of_an_object_store(
            keys in keys(), prefix in "([-.0a]{0,2}|[0a]{1,2}/[-.0a]{0,2})",
            delimiter in prop::sample::select(vec!["", "/", "0", "-a", "/0"]),
            page_size in 1usize..7, most in 1usize..9,
        ) {
            let (_dir, root) = tree(&keys);
            let all = expected(&keys, &prefix, delimiter);
            prop_assert_eq!(&listed(&root, (&prefix, "", delimiter), page_size, most), &all);
            if delimiter.is_empty() {
                // From any key on, be it there or not.
                for after in all.iter().map(|(key, _)| key.as_str()).chain(["-", "a/0", "a0/", "zz"]) {
                    let rest: Vec<_> = all.iter().filter(|(key, _)| key.as_str() > after).cloned().collect();
                    prop_assert_eq!(listed(&root, (&prefix, after, ""), page_size, most), rest);
                }
            }
        }
    }

    #[test]
    fn what_is_no_object_is_not_shown() {
        let keys = BTreeSet::from(["d/k".to_owned()]);
        let (dir, root) = tree(&keys);
        let b = dir.path().join("b");
        std::fs::create_dir(b.join("empty")).unwrap();
        std::fs::write(b.join("d/.bucketload-posix-tmp-1-1"), b"").unwrap();
        std::os::unix::fs::symlink("d/k", b.join("link")).unwrap();
        let all = |delimiter| listed(&root, ("", "", delimiter), 10, 10);
        assert_eq!(all(""), [("d/k".to_owned(), false)]);
        // A directory counts without being read.
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
