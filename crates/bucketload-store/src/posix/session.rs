//! The hidden area of the root, `.bucketload`, and the session of one opened store in it.
//!
//! ```text
//! .bucketload/format            layout version and place of the metadata, fixed at creation
//! .bucketload/lock              serialises opening
//! .bucketload/tmp/SESSION/      temporary files of one process, those of further threads in directories of their own;
//!                               `lock` is locked while it lives
//! .bucketload/uploads/BUCKET/   multipart uploads
//! .bucketload/meta/             metadata records that do not fit into extended attributes
//! ```
//!
//! The name cannot be a bucket, so that buckets hold objects only and `rmdir` alone decides whether
//! a bucket is empty. Everything unfinished lives in the session's directory; when its lock is free,
//! the process is dead, and the next opening removes it.

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
use super::metadata::MetadataPlace;
use super::temporary::Stock;
use crate::error::{Result, StoreError};
use crate::multipart::new_upload_id;

/// Name of the hidden area.
pub(super) const HIDDEN: &str = ".bucketload";
const LAYOUT: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
struct Format {
    layout: u32,
    metadata: MetadataPlace,
}

/// One opened store.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) root: Beneath,
    pub(super) uploads: OwnedFd,
    pub(super) meta: OwnedFd,
    /// Where this session keeps what is unfinished.
    own: OwnedFd,
    tmp: OwnedFd,
    name: String,
    next: AtomicU64,
    /// What temporary files can be made of.
    pub(super) stock: Stock,
    /// The file `lock`, for what one thread of all processes does at a time.
    global: Mutex<OwnedFd>,
    _lock: OwnedFd,
}

/// While it lives, no other thread of any process has one.
pub(super) struct Alone<'a>(MutexGuard<'a, OwnedFd>);

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        // Fails only for a descriptor that is not open.
        let _ = fs::flock(&*self.0, FlockOperation::Unlock);
    }
}

/// What opening found.
pub(super) struct Opened {
    pub(super) session: Session,
    pub(super) metadata: MetadataPlace,
    /// A session ended without closing.
    pub(super) unclean: bool,
    /// Sessions of other processes that live.
    pub(super) alive: HashSet<String>,
}

fn failed(context: &'static str) -> impl FnOnce(Errno) -> StoreError {
    move |error| StoreError::system(context, error)
}

impl Session {
    /// Opens or creates the hidden area below `root`, which is created if absent.
    pub(super) fn open(root: &Path, wanted: MetadataPlace) -> Result<Opened> {
        std::fs::create_dir_all(root)
            .map_err(|e| StoreError::system("creating the root directory", e))?;
        let fd =
            File::open(root).map_err(|e| StoreError::system("opening the root directory", e))?;
        let root = Beneath::new(fd.into());
        let subdirectory = |parent: BorrowedFd<'_>, name: &str| {
            beneath::ensure_directory(parent, name.as_bytes())
                .and_then(|_| beneath::anchor_entry(parent, name.as_bytes()))
                .map_err(failed("creating the hidden area"))
        };
        let hidden = subdirectory(root.fd(), HIDDEN)?;
        let tmp = subdirectory(hidden.as_fd(), "tmp")?;
        let uploads = subdirectory(hidden.as_fd(), "uploads")?;
        let meta = subdirectory(hidden.as_fd(), "meta")?;

        let opening = lock_file(hidden.as_fd(), FlockOperation::LockExclusive)
            .map_err(failed("locking the hidden area"))?;
        let (alive, unclean) = bury_the_dead(&tmp).map_err(failed("removing temporary files"))?;
        let name = new_upload_id();
        let own = subdirectory(tmp.as_fd(), &name)?;
        let lock = lock_file(own.as_fd(), FlockOperation::NonBlockingLockExclusive)
            .map_err(failed("locking the session"))?;
        let metadata = agree_on_format(hidden.as_fd(), own.as_fd(), &lock, wanted)?;
        fs::flock(&opening, FlockOperation::Unlock).map_err(failed("unlocking the hidden area"))?;
        let session = Self {
            root,
            uploads,
            meta,
            own,
            tmp,
            name,
            next: AtomicU64::new(0),
            stock: Stock::new(),
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

    /// The directory for unfinished things.
    pub(super) fn scratch(&self) -> BorrowedFd<'_> {
        self.own.as_fd()
    }

    /// Waits until no other thread of any process is between this and the end of what it returns.
    pub(super) fn alone(&self) -> rustix::io::Result<Alone<'_>> {
        let guard = self.global.lock().unwrap_or_else(PoisonError::into_inner);
        lock(&guard, FlockOperation::LockExclusive)?;
        Ok(Alone(guard))
    }

    /// A name that is new in [`scratch`](Self::scratch).
    pub(super) fn scratch_name(&self) -> String {
        let mut rest = self.next.fetch_add(1, Ordering::Relaxed);
        // In reverse, by hand: a write of a small object makes one, and the machinery of formatting
        // costs as much as a short system call.
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
        // What remains is found by the next opening.
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

/// Removes the directories of sessions whose process is gone; returns those that live and whether
/// any was dead.
fn bury_the_dead(tmp: &OwnedFd) -> rustix::io::Result<(HashSet<String>, bool)> {
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
            // Its process is just closing it.
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error),
        }
    }
    Ok((alive, unclean))
}

/// Reads the format, or fixes it when the store is new.
fn agree_on_format(
    hidden: BorrowedFd<'_>,
    scratch: BorrowedFd<'_>,
    probe: &OwnedFd,
    wanted: MetadataPlace,
) -> Result<MetadataPlace> {
    match beneath::open_entry(hidden, b"format") {
        Ok(fd) => {
            let mut text = String::new();
            File::from(fd)
                .read_to_string(&mut text)
                .map_err(|e| StoreError::system("reading .bucketload/format", e))?;
            let format: Format = serde_json::from_str(&text)
                .map_err(|e| StoreError::Corrupt(format!(".bucketload/format: {e}")))?;
            if format.layout != LAYOUT {
                return Err(StoreError::Corrupt(format!(
                    ".bucketload/format: layout {} is not known to this version",
                    format.layout
                )));
            }
            if wanted != MetadataPlace::Auto && wanted != format.metadata {
                return Err(StoreError::InvalidArgument(
                    "the directory was created with another place for metadata",
                ));
            }
            Ok(format.metadata)
        }
        Err(Errno::NOENT) => {
            let able = super::metadata::probe_xattr(probe);
            let metadata = match wanted {
                MetadataPlace::Xattr if !able => {
                    return Err(StoreError::InvalidArgument(
                        "the file system has no user extended attributes; use sidecar files",
                    ));
                }
                MetadataPlace::Auto if able => MetadataPlace::Xattr,
                MetadataPlace::Auto => MetadataPlace::Sidecar,
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
            write().map_err(|e| StoreError::system("writing .bucketload/format", e))?;
            Ok(metadata)
        }
        Err(error) => Err(StoreError::system("opening .bucketload/format", error)),
    }
}
