//! The hidden area of the root, `.bucketload`, and the session of one open store in it.
//!
//! ```text
//! .bucketload/format            layout version and metadata storage, fixed at creation
//! .bucketload/lock              serialises opening
//! .bucketload/tmp/SESSION/      temporary files of one process, in one directory per lane;
//!                               its `lock` is locked while the process lives
//! .bucketload/uploads/BUCKET/   multipart uploads
//! .bucketload/meta/             metadata records that do not fit into extended attributes
//! ```
//!
//! The name is not a valid bucket name. Buckets therefore hold objects only, and `rmdir` alone decides
//! whether a bucket is empty. Everything unfinished lives in the session's directory. If its lock is
//! free, the process is dead, and the next opening removes the directory.

use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{self, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::beneath::{self, Beneath};
use super::entries::{self, Kind};
use super::metadata::MetadataStorage;
use super::temporary::Lanes;
use crate::error::{Result, StoreError};
use crate::multipart::new_upload_id;

/// Name of the hidden area.
pub(super) const HIDDEN: &str = ".bucketload";
const LAYOUT: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
struct Format {
    layout: u32,
    metadata: MetadataStorage,
}

/// One open store.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) root: Beneath,
    pub(super) uploads: OwnedFd,
    pub(super) meta: OwnedFd,
    /// This session's directory for unfinished work.
    directory: OwnedFd,
    tmp: OwnedFd,
    name: String,
    next: AtomicU64,
    /// Spare temporary files and names.
    pub(super) lanes: Lanes,
    /// The file `lock`, which serialises work across all threads of all processes.
    global: Mutex<OwnedFd>,
    _lock: OwnedFd,
}

/// A lock held by at most one thread of all processes.
pub(super) struct GlobalGuard<'a>(MutexGuard<'a, OwnedFd>);

impl Drop for GlobalGuard<'_> {
    fn drop(&mut self) {
        // Fails only if the descriptor is not open.
        let _ = fs::flock(&*self.0, FlockOperation::Unlock);
    }
}

/// The result of opening a root directory.
pub(super) struct Opened {
    pub(super) session: Session,
    pub(super) metadata: MetadataStorage,
    /// Whether a session ended without closing.
    pub(super) unclean: bool,
    /// The live sessions of other processes.
    pub(super) alive: HashSet<String>,
}

impl Session {
    /// Opens or creates the hidden area below `root`, which is created if missing.
    pub(super) fn open(root: &Path, wanted: MetadataStorage) -> Result<Opened> {
        std::fs::create_dir_all(root).map_err(StoreError::during("creating the root directory"))?;
        let fd = File::open(root).map_err(StoreError::during("opening the root directory"))?;
        let root = Beneath::new(fd.into());
        let subdirectory = |parent: BorrowedFd<'_>, name: &str| {
            beneath::ensure_directory(parent, name.as_bytes())
                .and_then(|_| beneath::anchor_entry(parent, name.as_bytes()))
                .map_err(StoreError::during("creating the hidden area"))
        };
        let hidden = subdirectory(root.fd(), HIDDEN)?;
        let tmp = subdirectory(hidden.as_fd(), "tmp")?;
        let uploads = subdirectory(hidden.as_fd(), "uploads")?;
        let meta = subdirectory(hidden.as_fd(), "meta")?;

        let opening = lock_file(hidden.as_fd(), FlockOperation::LockExclusive)
            .map_err(StoreError::during("locking the hidden area"))?;
        let (alive, unclean) =
            remove_dead_sessions(&tmp).map_err(StoreError::during("removing temporary files"))?;
        let name = new_upload_id();
        let directory = subdirectory(tmp.as_fd(), &name)?;
        let lock = lock_file(directory.as_fd(), FlockOperation::NonBlockingLockExclusive)
            .map_err(StoreError::during("locking the session"))?;
        let metadata = load_or_create_format(hidden.as_fd(), directory.as_fd(), &lock, wanted)?;
        fs::flock(&opening, FlockOperation::Unlock)
            .map_err(StoreError::during("unlocking the hidden area"))?;
        let session = Self {
            root,
            uploads,
            meta,
            directory,
            tmp,
            name,
            next: AtomicU64::new(0),
            lanes: Lanes::new(),
            global: Mutex::new(opening),
            _lock: lock,
        };
        Ok(Opened {
            session,
            metadata,
            unclean,
            alive,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The directory for unfinished work.
    pub(super) fn scratch(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// Takes the lock that at most one thread of all processes holds.
    pub(super) fn lock_globally(&self) -> rustix::io::Result<GlobalGuard<'_>> {
        let guard = self.global.lock().unwrap_or_else(PoisonError::into_inner);
        lock(&guard, FlockOperation::LockExclusive)?;
        Ok(GlobalGuard(guard))
    }

    /// A new, unique name in [`scratch`](Self::scratch).
    pub(super) fn scratch_name(&self) -> String {
        let mut rest = self.next.fetch_add(1, Ordering::Relaxed);
        // Digits in reverse, without `format!`: each write of a small object needs a name, and
        // formatting costs as much as a short system call.
        let mut name = String::with_capacity(20);
        name.push('t');
        loop {
            name.push(char::from(b'0' + (rest % 10) as u8));
            rest /= 10;
            if rest == 0 {
                return name;
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The next opening removes what remains.
        let _ = beneath::remove_tree(self.tmp.as_fd(), self.name.as_bytes());
    }
}

fn lock_file(directory: BorrowedFd<'_>, operation: FlockOperation) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = fs::openat(directory, "lock", flags, Mode::from_raw_mode(0o666))?;
    lock(&file, operation)?;
    Ok(file)
}

fn lock(file: &OwnedFd, operation: FlockOperation) -> rustix::io::Result<()> {
    loop {
        match fs::flock(file, operation) {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

/// Removes the directories of sessions whose process is gone. Returns the live sessions and whether
/// any was dead.
fn remove_dead_sessions(tmp: &OwnedFd) -> rustix::io::Result<(HashSet<String>, bool)> {
    let mut alive = HashSet::new();
    let mut unclean = false;
    let listing = beneath::open_entry(tmp, b".")?;
    for entry in entries::read_all(&listing)? {
        if entry.kind != Kind::Directory {
            continue;
        }
        let Ok(directory) = beneath::anchor_entry(tmp, &entry.name) else {
            continue;
        };
        match lock_file(directory.as_fd(), FlockOperation::NonBlockingLockExclusive) {
            Ok(_lock) => {
                beneath::remove_tree(tmp.as_fd(), &entry.name)?;
                unclean = true;
            }
            Err(Errno::WOULDBLOCK) => {
                alive.insert(String::from_utf8_lossy(&entry.name).into_owned());
            }
            // Its process is closing it right now.
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error),
        }
    }
    Ok((alive, unclean))
}

/// Reads the format file, or creates it if the store is new.
fn load_or_create_format(
    hidden: BorrowedFd<'_>,
    scratch: BorrowedFd<'_>,
    probe: &OwnedFd,
    wanted: MetadataStorage,
) -> Result<MetadataStorage> {
    match beneath::open_entry(hidden, b"format") {
        Ok(fd) => {
            let mut text = String::new();
            File::from(fd)
                .read_to_string(&mut text)
                .map_err(StoreError::during("reading .bucketload/format"))?;
            let format: Format = serde_json::from_str(&text)
                .map_err(|e| StoreError::Corrupt(format!(".bucketload/format: {e}")))?;
            if format.layout != LAYOUT {
                return Err(StoreError::Corrupt(format!(
                    ".bucketload/format: this version does not know layout {}",
                    format.layout
                )));
            }
            if wanted != MetadataStorage::Auto && wanted != format.metadata {
                return Err(StoreError::InvalidArgument(
                    "the directory was created with a different metadata storage",
                ));
            }
            Ok(format.metadata)
        }
        Err(Errno::NOENT) => {
            let has_xattr = super::metadata::probe_xattr(probe);
            let metadata = match wanted {
                MetadataStorage::Xattr if !has_xattr => {
                    return Err(StoreError::InvalidArgument(
                        "the file system has no user extended attributes; use sidecar files",
                    ));
                }
                MetadataStorage::Auto if has_xattr => MetadataStorage::Xattr,
                MetadataStorage::Auto => MetadataStorage::Sidecar,
                chosen => chosen,
            };
            let text = serde_json::to_vec(&Format {
                layout: LAYOUT,
                metadata,
            })
            .expect("the format always serialises");
            let write = || -> std::io::Result<()> {
                let mut file = File::from(beneath::create_file(scratch, b"format")?);
                file.write_all(&text)?;
                file.sync_all()?;
                fs::renameat(scratch, "format", hidden, "format")?;
                Ok(())
            };
            write().map_err(StoreError::during("writing .bucketload/format"))?;
            Ok(metadata)
        }
        Err(error) => Err(StoreError::system("opening .bucketload/format", error)),
    }
}
