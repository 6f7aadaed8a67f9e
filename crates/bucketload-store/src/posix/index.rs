//! Ordered indexes of directories, so that listing a prefix costs what its keys cost, not what the directory holds.
//!
//! The first listing of a directory builds an index if it meets more than [`INDEX_FROM`] entries, the second
//! if there are more than [`SMALL`]. inotify keeps the index current: it reports the changes of all processes on
//! this machine before the system call that makes them returns. An event only says which name to check; the
//! state of the name is read from the directory before the index is used, so neither the order nor the kind of the
//! events matters. If events may be missing (file systems that other machines change, a full event queue),
//! there is no index, and the directory is read. The numbers of indexes and of their entries are bounded; the
//! least recently used indexes are dropped.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::mem::MaybeUninit;
use std::ops::Bound;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::fs::{self, FileType};
use rustix::io::{Errno, Result};

use super::beneath;
use super::entries::{self, Kind};
use super::escape::{Name, read_name};
use super::gather::Gathering;

/// Number of entries above which a directory gets an index at once.
pub(super) const INDEX_FROM: usize = 4096;
/// Number of entries up to which reading a directory costs no more than asking its index.
pub(super) const SMALL: usize = 16;
/// Maximum number of indexes, and of directories that are remembered as listed. The second must not be larger: a
/// walk over more directories than can have an index would build each anew.
const MAX_INDEXES: usize = 1024;
/// Events that a buffer of this size has room for, however long their names.
const EVENT_BUFFER_BYTES: usize = 16 << 10;
const EVENTS_THAT_FIT: usize = EVENT_BUFFER_BYTES / (16 + 256);

/// Types (`statfs`) of file systems that only this kernel changes: ext2 to ext4, XFS, Btrfs, tmpfs,
/// F2FS, ZFS, bcachefs, overlayfs.
const LOCAL: [u64; 8] = [
    0xef53,
    0x5846_5342,
    0x9123_683e,
    0x0102_1994,
    0xf2f5_2010,
    0x2fc1_2fc1,
    0xca45_1a4e,
    0x794c_7630,
];

/// The kind of an index entry. A directory has two entries: one under its plain name, because it may
/// hold the object of that name, and one under the name with `/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NameKind {
    File,
    SelfObject,
    Subtree,
}

/// Device and inode of a directory.
type Identity = (u64, u64);

#[derive(Debug)]
struct Index {
    watch: i32,
    names: BTreeMap<Box<[u8]>, NameKind>,
    /// Directories that continue long names, by their names on disk.
    continued: BTreeSet<Box<[u8]>>,
    /// Names that changed since the index was last used.
    changed: HashSet<Box<[u8]>>,
    used: u64,
}

#[derive(Debug, Default)]
struct State {
    inotify: Option<OwnedFd>,
    by_directory: HashMap<Identity, Index>,
    by_watch: HashMap<i32, Identity>,
    /// Directories that were listed without an index.
    listed: HashSet<Identity>,
    /// Directories that cannot be indexed.
    refused: HashSet<Identity>,
    clock: u64,
}

/// All indexes of a store.
#[derive(Debug)]
pub(super) struct Indexes {
    max_entries: usize,
    state: Mutex<State>,
}

impl Indexes {
    /// Indexes with at most `max_entries` entries in total; 0 for no indexes.
    pub(super) fn new(max_entries: usize) -> Self {
        Self {
            max_entries,
            state: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of entries above which a listing of this directory should build an index. Remembers that the
    /// directory was listed.
    pub(super) fn limit(&self, directory: &OwnedFd) -> Result<usize> {
        if self.max_entries == 0 {
            return Ok(usize::MAX);
        }
        let Some(identity) = identity(directory)? else {
            return Ok(usize::MAX);
        };
        let mut state = self.lock();
        if state.refused.contains(&identity) {
            return Ok(usize::MAX);
        }
        let first = note(&mut state.listed, identity);
        Ok(if first { INDEX_FROM } else { SMALL })
    }

    /// Adds candidates from the index of a directory, if it has one and still exists, and returns its directories that
    /// continue long names.
    pub(super) fn list(
        &self,
        directory: &OwnedFd,
        stands_for: &str,
        gathering: &mut Gathering<'_>,
    ) -> Result<Option<Vec<Vec<u8>>>> {
        if self.max_entries == 0 {
            return Ok(None);
        }
        let mut state = self.lock();
        if state.by_directory.is_empty() {
            return Ok(None);
        }
        let Some(identity) = identity(directory)? else {
            return Ok(None);
        };
        state.read_events();
        state.clock += 1;
        let clock = state.clock;
        let Some(index) = state.by_directory.get_mut(&identity) else {
            return Ok(None);
        };
        index.used = clock;
        index.refresh(directory)?;
        index.feed(stands_for, gathering);
        Ok(Some(
            index.continued.iter().map(|name| name.to_vec()).collect(),
        ))
    }

    /// Builds an index of a directory, if possible. Returns whether there is one.
    pub(super) fn build(&self, directory: &OwnedFd) -> Result<bool> {
        if self.max_entries == 0 {
            return Ok(false);
        }
        let Some(identity) = identity(directory)? else {
            return Ok(false);
        };
        let mut guard = self.lock();
        let state = &mut *guard;
        if state.by_directory.contains_key(&identity) {
            return Ok(true);
        }
        let Some(watch) = state.watch(directory) else {
            note(&mut state.refused, identity);
            return Ok(false);
        };
        // inotify reports every change from here on.
        let mut index = Index {
            watch,
            names: BTreeMap::new(),
            continued: BTreeSet::new(),
            changed: HashSet::new(),
            used: state.clock,
        };
        let again = beneath::open_entry(directory, b".")?;
        let mut fits = true;
        entries::for_each(&again, |name, kind| {
            index.insert(name, kind);
            fits = index.names.len() <= self.max_entries;
            fits
        })?;
        if !fits {
            state.unwatch(watch);
            note(&mut state.refused, identity);
            return Ok(false);
        }
        state.by_watch.insert(watch, identity);
        state.by_directory.insert(identity, index);
        state.make_room(self.max_entries, identity);
        Ok(true)
    }
}

/// The identity of a directory, unless it has been removed.
fn identity(directory: &OwnedFd) -> Result<Option<Identity>> {
    let stat = fs::fstat(directory)?;
    // A removed directory that is still open keeps its watch.
    Ok((stat.st_nlink > 0).then_some((stat.st_dev, stat.st_ino)))
}

/// Adds to a set that is only a hint and must not grow without bound. Returns whether the directory is new in it.
fn note(set: &mut HashSet<Identity>, identity: Identity) -> bool {
    if set.len() >= MAX_INDEXES {
        set.clear();
    }
    set.insert(identity)
}

impl State {
    fn watch(&mut self, directory: &OwnedFd) -> Option<i32> {
        let kind = fs::fstatfs(directory).ok()?.f_type as u64;
        if !LOCAL.contains(&kind) {
            return None;
        }
        if self.inotify.is_none() {
            let flags = CreateFlags::NONBLOCK | CreateFlags::CLOEXEC;
            self.inotify = inotify::init(flags).ok();
        }
        // inotify needs a path; this one leads to the open directory, whatever its name.
        let path = format!("/proc/self/fd/{}", directory.as_raw_fd());
        let changes = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::ONLYDIR;
        inotify::add_watch(self.inotify.as_ref()?, path, changes).ok()
    }

    fn unwatch(&mut self, watch: i32) {
        if let Some(inotify) = &self.inotify {
            // Fails if the directory is gone, and the watch with it.
            let _ = inotify::remove_watch(inotify, watch);
        }
        if let Some(identity) = self.by_watch.remove(&watch) {
            self.by_directory.remove(&identity);
        }
    }

    /// Records the names that inotify reports.
    fn read_events(&mut self) {
        let Some(inotify) = &self.inotify else { return };
        let mut lost = Vec::new();
        let mut overflow = false;
        let mut buffer = [MaybeUninit::uninit(); EVENT_BUFFER_BYTES];
        let mut reader = Reader::new(inotify, &mut buffer);
        let mut of_one_read = 0;
        loop {
            if reader.is_buffer_empty() {
                if (1..EVENTS_THAT_FIT).contains(&of_one_read) {
                    // There was room for more, so there were no more.
                    break;
                }
                of_one_read = 0;
            }
            of_one_read += 1;
            match reader.next() {
                Ok(event) => {
                    overflow |= event.events().contains(ReadFlags::QUEUE_OVERFLOW);
                    if event.events().contains(ReadFlags::IGNORED) {
                        lost.push(event.wd());
                    }
                    let index = self
                        .by_watch
                        .get(&event.wd())
                        .and_then(|identity| self.by_directory.get_mut(identity));
                    if let (Some(index), Some(name)) = (index, event.file_name()) {
                        index.changed.insert(name.to_bytes().into());
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => {
                    overflow = true;
                    break;
                }
            }
        }
        if overflow {
            lost.extend(self.by_watch.keys());
        }
        for watch in lost {
            self.unwatch(watch);
        }
        let busy: Vec<i32> = self
            .by_directory
            .values()
            .filter(|index| index.changed.len() > (4 * SMALL).max(index.names.len() / 2))
            .map(|index| index.watch)
            .collect();
        for watch in busy {
            // Reading the directory again is cheaper than checking every name.
            self.unwatch(watch);
        }
    }

    /// Drops the least recently used indexes except `keep` until the rest fits.
    fn make_room(&mut self, max_entries: usize, keep: Identity) {
        loop {
            let indexes = self.by_directory.values();
            let total: usize = indexes.map(|index| index.names.len()).sum();
            let full = total > max_entries || self.by_directory.len() > MAX_INDEXES;
            let oldest = self
                .by_directory
                .iter()
                .filter(|(identity, _)| **identity != keep)
                .min_by_key(|(_, index)| index.used)
                .map(|(_, index)| index.watch);
            match oldest {
                Some(watch) if full => self.unwatch(watch),
                _ => return,
            }
        }
    }
}

impl Index {
    fn insert(&mut self, name: &[u8], kind: Kind) {
        match (read_name(name, ""), kind) {
            (Name::Component(component), Kind::File) => {
                self.names
                    .insert(component.into_bytes().into(), NameKind::File);
            }
            (Name::Component(component), Kind::Directory) => {
                let subtree = [component.as_bytes(), b"/"].concat();
                self.names
                    .insert(component.into_bytes().into(), NameKind::SelfObject);
                self.names.insert(subtree.into(), NameKind::Subtree);
            }
            (Name::Continued(_), Kind::Directory) => {
                self.continued.insert(name.into());
            }
            _ => {}
        }
    }

    fn remove(&mut self, name: &[u8]) {
        if let Name::Component(component) = read_name(name, "") {
            self.names.remove(component.as_bytes());
            self.names
                .remove(&[component.as_bytes(), b"/"].concat()[..]);
        }
        self.continued.remove(name);
    }

    /// Updates the names that changed.
    fn refresh(&mut self, directory: &OwnedFd) -> Result<()> {
        for name in std::mem::take(&mut self.changed) {
            self.remove(&name);
            match beneath::stat_entry(directory, &name) {
                Ok(stat) => self.insert(&name, Kind::of(FileType::from_raw_mode(stat.st_mode))),
                Err(Errno::NOENT) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Adds the smallest relevant names to `gathering`.
    fn feed(&self, stands_for: &str, gathering: &mut Gathering<'_>) {
        let mut from = gathering.start_in(stands_for);
        'seek: loop {
            let range = (Bound::Included(&from[..]), Bound::Unbounded);
            for (name, meaning) in self.names.range::<[u8], _>(range) {
                let Ok(component) = std::str::from_utf8(name) else {
                    continue;
                };
                let common = match meaning {
                    NameKind::File => gathering.add_file(stands_for, component),
                    NameKind::SelfObject => {
                        gathering.add_self_object(stands_for, component);
                        None
                    }
                    NameKind::Subtree => {
                        gathering.add_subtree([stands_for, component].concat());
                        None
                    }
                };
                if gathering.cut_behind_last() || gathering.is_behind(stands_for, component) {
                    return;
                }
                if let Some(behind) = common {
                    // Skip the rest of the common prefix: it adds nothing.
                    from = behind[stands_for.len().min(behind.len())..].to_vec();
                    continue 'seek;
                }
            }
            return;
        }
    }
}
