//! The files of objects: finding, publishing and removing them in a tree that other threads and
//! processes change at the same time.
//!
//! A file and a directory cannot share a name, but `a` and `a/b` can both be keys. The directory then
//! gets the name, and object `a` is the file `%self` in it. When `a/b` arrives while `a` is a file, an
//! atomic exchange replaces the file with a directory that holds a hard link to it as `%self` (`room`),
//! so object `a` always exists. Directories that become empty are removed, and a writer whose directory
//! was removed creates it again.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, MutexGuard};

use rustix::fs::{self, AtFlags, FileType, RenameFlags, Stat};
use rustix::io::Errno;

use super::anchors::{Anchor, Anchors};
use super::beneath;
use super::escape::{ObjectPath, SELF};
use super::metadata::{Metadata, Version};
use super::session::Session;
use super::stripes::Stripes;
use super::temporary::Scratch;
use crate::error::{Result, StoreError};
use crate::etag::ETag;
use crate::types::{Condition, ObjectInfo};

/// Maximum number of attempts of an operation whose directories vanish concurrently.
const ATTEMPTS: u32 = 1000;

/// The error for a key whose directory cannot be made, because this store follows no links.
pub(super) const BLOCKED: StoreError = StoreError::InvalidArgument(
    "the path of the key leads through a symbolic link or a special file",
);

#[derive(Debug)]
pub(super) struct Tree {
    pub(super) session: Arc<Session>,
    pub(super) metadata: Metadata,
    anchors: Anchors,
    keys: Stripes,
    /// Locks for uploads. A completion holds one while it locks its key.
    pub(super) uploads: Stripes,
    /// Whether to write directory changes to the medium before returning.
    pub(super) sync_directories: bool,
}

pub(super) fn is_file(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

pub(super) fn is_directory(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

impl Tree {
    pub(super) fn new(session: Arc<Session>, metadata: Metadata, sync_directories: bool) -> Self {
        Self {
            session,
            metadata,
            anchors: Anchors::default(),
            keys: Stripes::new(),
            uploads: Stripes::new(),
            sync_directories,
        }
    }

    /// Locks the file at `path` against changes by other threads.
    pub(super) fn lock(&self, path: &[u8]) -> MutexGuard<'_, ()> {
        self.keys.lock(path)
    }

    /// Writes the entries of a directory to the medium, if configured.
    pub(super) fn sync_if_wanted(&self, directory: impl AsFd) -> Result<()> {
        if !self.sync_directories {
            return Ok(());
        }
        beneath::sync_directory(directory)
            .map_err(StoreError::during("writing a directory to the medium"))
    }

    /// Opens the file of a key, if there is one.
    pub(super) fn open(&self, object: &ObjectPath) -> Result<Option<(OwnedFd, Stat)>> {
        let failed = StoreError::during("opening an object");
        let absent = |e| match e {
            // A component is missing, a file, a symbolic link, or a socket.
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO => Ok(None),
            error => Err(failed(error)),
        };
        let fd = match self.session.root.open_for_reading(object.path()) {
            Ok(fd) => fd,
            Err(error) => return absent(error),
        };
        let stat = fs::fstat(&fd).map_err(failed)?;
        if is_file(&stat) {
            return Ok(Some((fd, stat)));
        }
        if !is_directory(&stat) {
            return Ok(None);
        }
        let fd = match beneath::open_entry(&fd, SELF.as_bytes()) {
            Ok(fd) => fd,
            Err(error) => return absent(error),
        };
        let stat = fs::fstat(&fd).map_err(failed)?;
        Ok(is_file(&stat).then_some((fd, stat)))
    }

    /// Opens the file of a key and loads its information.
    pub(super) fn open_with_info(
        &self,
        object: &ObjectPath,
    ) -> Result<Option<(OwnedFd, ObjectInfo)>> {
        for _ in 0..ATTEMPTS {
            let Some((fd, stat)) = self.open(object)? else {
                return Ok(None);
            };
            if let Some(info) = self.metadata.load(&fd, &stat)? {
                return Ok(Some((fd, info)));
            }
        }
        Err(StoreError::Corrupt(
            "an object names a metadata file that does not exist".to_owned(),
        ))
    }

    fn current_tag(&self, object: &ObjectPath) -> Result<Option<ETag>> {
        Ok(self.open_with_info(object)?.map(|(_, info)| info.etag))
    }

    /// The version whose sidecar must be removed when the key is written.
    fn version_to_discard(&self, object: &ObjectPath) -> Result<Option<Version>> {
        if !self.metadata.has_sidecars() {
            return Ok(None);
        }
        Ok(self.open(object)?.map(|(_, stat)| Version::of(&stat)))
    }

    /// The directory of a key, if it exists. Fails if the bucket does not exist, or if a symbolic link
    /// leads to the directory.
    pub(super) fn parent(&self, bucket: &str, object: &ObjectPath) -> Result<Option<Anchor>> {
        match self.anchor(object) {
            Ok((parent, _)) => Ok(Some(parent)),
            Err(error) => {
                super::buckets::check(self, bucket)?;
                match error {
                    Errno::LOOP => Err(BLOCKED),
                    _ => Ok(None),
                }
            }
        }
    }

    /// The directory of a key, and whether it comes from the cache and may be gone.
    fn anchor(&self, object: &ObjectPath) -> rustix::io::Result<(Anchor, bool)> {
        if let Some(cached) = self.anchors.get(object.parent()) {
            return Ok((cached, true));
        }
        let opened = self.session.root.anchor(object.parent())?;
        Ok((self.anchors.keep(object.parent(), opened), false))
    }

    /// The directory at `path` if it was opened recently. It may have been removed since.
    pub(super) fn cached(&self, path: &[u8]) -> Option<Anchor> {
        self.anchors.get(path)
    }

    /// Caches a directory that was just opened.
    pub(super) fn cache(&self, path: &[u8], directory: OwnedFd) {
        self.anchors.keep(path, directory);
    }

    /// Drops a removed directory from the cache.
    pub(super) fn forget(&self, path: &[u8]) {
        self.anchors.forget(path);
    }

    /// Moves a finished temporary file to its key, if the condition holds. `parent` is the directory
    /// of the key, if it is already open.
    pub(super) fn publish(
        &self,
        object: &ObjectPath,
        mut file: Scratch,
        mut parent: Option<Anchor>,
        condition: &Condition,
    ) -> Result<()> {
        let failed = StoreError::during("publishing an object");
        for _ in 0..ATTEMPTS {
            let parent = match parent
                .take()
                .map_or_else(|| self.anchor(object).map(|(parent, _)| parent), Ok)
            {
                Ok(parent) => parent,
                Err(Errno::NOENT | Errno::NOTDIR) => Arc::new(self.make_directories(object)?),
                Err(Errno::LOOP) => return Err(BLOCKED),
                Err(error) => return Err(failed(error)),
            };
            let guard = self.lock(object.path());
            if *condition != Condition::None {
                condition.check(self.current_tag(object)?)?;
            }
            let replaced = self.version_to_discard(object)?;
            // The kernel then makes sure that no other process creates the object first.
            let exclusive = *condition == Condition::Absent;
            match self.rename_into(&file, &parent, object.name(), exclusive) {
                Ok(()) => {}
                // The directory was removed, or another process replaced the entry.
                Err(Errno::NOENT | Errno::NOTDIR) => {
                    self.anchors.forget(object.parent());
                    continue;
                }
                Err(Errno::EXIST) => return Err(StoreError::PreconditionFailed),
                Err(error) => return Err(failed(error)),
            }
            file.published();
            if let Some(version) = replaced {
                self.metadata.discard(version);
            }
            drop(guard);
            return self.sync_if_wanted(&parent);
        }
        Err(failed(Errno::BUSY))
    }

    fn rename_into(
        &self,
        file: &Scratch,
        parent: &OwnedFd,
        name: &[u8],
        exclusive: bool,
    ) -> rustix::io::Result<()> {
        let scratch = file.directory();
        let rename = |to: BorrowedFd<'_>, name: &[u8]| {
            if exclusive {
                match fs::renameat_with(scratch, file.name(), to, name, RenameFlags::NOREPLACE) {
                    // Not supported by the file system; the lock still protects within this process.
                    Err(Errno::INVAL | Errno::NOSYS) => {}
                    result => return result,
                }
            }
            fs::renameat(scratch, file.name(), to, name)
        };
        match rename(parent.as_fd(), name) {
            Err(Errno::ISDIR) => {}
            Err(Errno::EXIST) => {
                if !is_directory(&beneath::stat_entry(parent, name)?) {
                    return Err(Errno::EXIST);
                }
            }
            result => return result,
        }
        let directory = beneath::anchor_entry(parent, name)?;
        rename(directory.as_fd(), SELF.as_bytes())?;
        if self.sync_directories {
            beneath::sync_directory(&directory)?;
        }
        Ok(())
    }

    /// Creates the directories above a key. Objects with the name of a directory move into it.
    fn make_directories(&self, object: &ObjectPath) -> Result<OwnedFd> {
        let failed = StoreError::during("creating the directories of a key");
        let mut names = object.parent().split(|b| *b == b'/');
        let bucket = names.next().unwrap_or_default();
        'again: for _ in 0..ATTEMPTS {
            let mut at = self.session.root.anchor(bucket).map_err(|e| match e {
                Errno::NOENT | Errno::NOTDIR => StoreError::NoSuchBucket,
                error => failed(error),
            })?;
            let mut end = bucket.len();
            for name in names.clone() {
                end += 1 + name.len();
                let created = match beneath::ensure_directory(&at, name) {
                    Ok(created) => created,
                    // The directory was removed because it was empty.
                    Err(Errno::NOENT) => continue 'again,
                    Err(error) => return Err(failed(error)),
                };
                if created {
                    self.sync_if_wanted(&at)?;
                }
                at = match beneath::anchor_entry(&at, name) {
                    Ok(next) => next,
                    Err(Errno::NOENT) => continue 'again,
                    Err(Errno::NOTDIR) => {
                        self.turn_into_directory(&at, name, &object.path()[..end])?;
                        continue 'again;
                    }
                    Err(error) => return Err(failed(error)),
                };
            }
            return Ok(at);
        }
        Err(failed(Errno::BUSY))
    }

    /// Removes a key, if the condition holds. Returns whether it existed.
    pub(super) fn remove(&self, object: &ObjectPath, condition: &Condition) -> Result<bool> {
        let failed = StoreError::during("deleting an object");
        let guard = self.lock(object.path());
        if *condition != Condition::None {
            condition.check(self.current_tag(object)?)?;
        }
        let (parent, cached) = match self.anchor(object) {
            Ok(anchor) => anchor,
            Err(error) if beneath::is_absent(error) => return Ok(false),
            Err(error) => return Err(failed(error)),
        };
        let stat = match beneath::stat_entry(&parent, object.name()) {
            Ok(stat) => stat,
            Err(Errno::NOENT) if cached => {
                // The cached directory may have been replaced.
                self.anchors.forget(object.parent());
                drop(guard);
                return self.remove(object, condition);
            }
            Err(Errno::NOENT) => return Ok(false),
            Err(error) => return Err(failed(error)),
        };
        let (directory, name, stat) = if is_directory(&stat) {
            let directory = match beneath::anchor_entry(&parent, object.name()) {
                Ok(directory) => directory,
                Err(Errno::NOENT | Errno::NOTDIR) => return Ok(false),
                Err(error) => return Err(failed(error)),
            };
            match beneath::stat_entry(&directory, SELF.as_bytes()) {
                Ok(stat) => (Arc::new(directory), SELF.as_bytes(), stat),
                Err(Errno::NOENT) => return Ok(false),
                Err(error) => return Err(failed(error)),
            }
        } else {
            (parent, object.name(), stat)
        };
        if !is_file(&stat) {
            return Ok(false);
        }
        match fs::unlinkat(&directory, name, AtFlags::empty()) {
            Ok(()) => {}
            Err(Errno::ISDIR) => {
                // Another process has just replaced the file with a directory.
                drop(guard);
                return self.remove(object, condition);
            }
            Err(Errno::NOENT) => return Ok(false),
            Err(error) => return Err(failed(error)),
        }
        self.metadata.discard(Version::of(&stat));
        drop(guard);
        self.sync_if_wanted(&directory)?;
        let emptied = if name == SELF.as_bytes() {
            object.path()
        } else {
            object.parent()
        };
        self.prune(emptied);
        Ok(true)
    }

    /// Removes the directory `path` and the directories above it while they are empty, but never a
    /// bucket.
    pub(super) fn prune(&self, path: &[u8]) {
        let mut path = path;
        while let Some(slash) = path.iter().rposition(|b| *b == b'/') {
            let (above, name) = (&path[..slash], &path[slash + 1..]);
            let removed = self
                .session
                .root
                .anchor(above)
                .and_then(|at| fs::unlinkat(at, name, AtFlags::REMOVEDIR));
            if removed.is_err() {
                return;
            }
            path = above;
        }
    }
}
