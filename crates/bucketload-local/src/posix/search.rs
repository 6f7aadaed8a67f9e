//! Searches: the keys below a directory in the order in which the file system returns them.
//!
//! A listing sorts its keys, and for that reads a large directory several times ([`super::walk`]). An observer that
//! does not need the order gets it for one reading of each directory, as `find` does.

use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, openat, statat};
use rustix::io::Errno;

use super::blocking::c_path;
use super::errors::Failure;
use super::path::is_reserved;
use super::walk::{Page, ROOM};

/// An unfinished search. The next one reuses its memory.
#[derive(Debug, Default)]
pub(super) struct Search {
    /// Bytes of a path that name the bucket, with the slash.
    bucket: usize,
    /// Directories to read, below the root, each with a trailing slash.
    ahead: Vec<Vec<u8>>,
    /// The directory being read, and its path.
    reading: Option<OwnedFd>,
    path: Vec<u8>,
    /// Whether the search has read nothing yet.
    fresh: bool,
    room: Vec<MaybeUninit<u8>>,
}

impl Search {
    /// Starts a search of the keys in `bucket` below `directory`, the NUL-terminated path of a directory.
    pub(super) fn begin(&mut self, bucket: &str, directory: &[u8]) {
        self.end();
        self.bucket = bucket.len() + 1;
        let mut first = directory.strip_suffix(b"\0").unwrap_or(directory).to_vec();
        first.push(b'/');
        self.ahead.push(first);
        self.fresh = true;
    }

    /// Closes what is open.
    pub(super) fn end(&mut self) {
        self.reading = None;
        self.ahead.clear();
    }

    /// Fetches at least `most` further entries into `page`, and no more than one call returns beyond that, or all that
    /// are left.
    pub(super) fn page(
        &mut self,
        root: BorrowedFd<'_>,
        most: usize,
        page: &mut Page,
    ) -> Result<(), Failure> {
        page.clear();
        self.room.resize(ROOM, MaybeUninit::uninit());
        while page.len() < most {
            if self.reading.is_none() && !self.open(root)? {
                return Ok(());
            }
            self.read(most, page)?;
        }
        page.more = self.reading.is_some() || !self.ahead.is_empty();
        Ok(())
    }

    /// Opens the next directory. Returns `false` if none is left.
    fn open(&mut self, root: BorrowedFd<'_>) -> Result<bool, Failure> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        while let Some(path) = self.ahead.pop() {
            self.path = path;
            let first = std::mem::take(&mut self.fresh);
            self.path.push(0);
            let opened = openat(root, c_path(&self.path), flags, Mode::empty());
            self.path.pop();
            match opened {
                Ok(directory) => {
                    self.reading = Some(directory);
                    return Ok(true);
                }
                // Deleted meanwhile, or nothing is below the prefix; but the bucket must exist.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if first => self.check(root)?,
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(errno) => return Err(Failure::new("open", errno)),
            }
        }
        Ok(false)
    }

    /// Checks that the bucket exists.
    fn check(&self, root: BorrowedFd<'_>) -> Result<(), Failure> {
        let mut bucket = self.path[..self.bucket - 1].to_vec();
        bucket.push(0);
        let stat = statat(root, c_path(&bucket), AtFlags::empty());
        let stat = stat.map_err(|e| Failure::new("stat", e))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Ok(()),
            _ => Err(Failure::new("stat", Errno::NOENT)),
        }
    }

    /// Reads on in the open directory, and closes it at its end.
    fn read(&mut self, most: usize, page: &mut Page) -> Result<(), Failure> {
        let Self {
            bucket,
            ahead,
            reading,
            path,
            room,
            ..
        } = self;
        let Some(directory) = reading.as_ref() else {
            return Ok(());
        };
        let parent = &path[*bucket..];
        let mut entries = RawDir::new(directory, room);
        // What one call returned is taken whole: the next call goes on after it.
        while page.len() < most || !entries.is_buffer_empty() {
            let Some(entry) = entries.next() else {
                *reading = None;
                return Ok(());
            };
            let entry = entry.map_err(|e| Failure::new("getdents", e))?;
            let name = entry.file_name();
            let kind = match entry.file_type() {
                // Some file systems do not report the type.
                FileType::Unknown => match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                    Err(Errno::NOENT) => continue,
                    Err(errno) => return Err(Failure::new("stat", errno)),
                },
                kind => kind,
            };
            let name = name.to_bytes();
            match kind {
                _ if name == b"." || name == b".." || std::str::from_utf8(name).is_err() => {}
                FileType::Directory => ahead.push([&path[..], name, b"/"].concat()),
                FileType::RegularFile if !is_reserved(name) => page.push(parent, name),
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs::{self, File};
    use std::os::fd::{AsFd, OwnedFd};
    use std::path::Path;

    use rustix::io::Errno;

    use super::{Page, Search};

    fn keys(root: &Path, directory: &[u8], most: usize) -> (Vec<String>, usize) {
        let root = OwnedFd::from(File::open(root).unwrap());
        let (mut search, mut page) = (Search::default(), Page::default());
        search.begin("b", directory);
        let (mut all, mut pages) = (Vec::new(), 0);
        loop {
            search.page(root.as_fd(), most, &mut page).unwrap();
            pages += 1;
            all.extend(page.entries().map(|(key, group)| {
                assert!(!group);
                key.to_owned()
            }));
            if !page.more {
                return (all, pages);
            }
        }
    }

    #[test]
    fn every_key_comes_once_whatever_the_pages() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("b/p/q/r");
        fs::create_dir_all(&deep).unwrap();
        fs::create_dir(dir.path().join("b/p/empty")).unwrap();
        let mut expected = BTreeSet::new();
        for i in 0..5000 {
            let (at, key) = match i % 3 {
                0 => (dir.path().join("b/p"), "p/"),
                1 => (dir.path().join("b/p/q"), "p/q/"),
                _ => (deep.clone(), "p/q/r/"),
            };
            File::create(at.join(format!("file-{i}"))).unwrap();
            expected.insert(format!("{key}file-{i}"));
        }
        // Neither the driver's own files nor other kinds are keys.
        File::create(deep.join(".bucketload-posix-tmp-1")).unwrap();
        std::os::unix::fs::symlink("q", dir.path().join("b/p/link")).unwrap();
        for most in [1, 700, 1_000_000] {
            let (found, pages) = keys(dir.path(), b"b/p\0", most);
            assert_eq!(found.len(), expected.len(), "{most}");
            assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected);
            assert_eq!(pages > 1, most < 5000, "{most}: {pages}");
        }
        let below = keys(dir.path(), b"b/p/q/r\0", 10).0;
        assert_eq!(below.len(), 1666);
    }

    #[test]
    fn a_missing_directory_is_empty_and_a_missing_bucket_an_error() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("b")).unwrap();
        assert_eq!(keys(dir.path(), b"b/none\0", 10), (Vec::new(), 1));
        fs::remove_dir(dir.path().join("b")).unwrap();
        let root = OwnedFd::from(File::open(dir.path()).unwrap());
        let mut search = Search::default();
        search.begin("b", b"b/none\0");
        let failure = search.page(root.as_fd(), 10, &mut Page::default());
        assert_eq!(failure.unwrap_err().errno, Errno::NOENT);
    }
}
