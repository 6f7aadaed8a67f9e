//! The hidden area of the root, `.bucketload`, and the session of one opened store in it.
//!
//! ```text
//! .bucketload/format            layout version and place of the metadata, fixed at creation
//! .bucketload/lock              serialises opening
//! .bucketload/tmp/SESSION/      temporary files of one process; `lock` is locked while it lives
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
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd as _, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{self, AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::beneath::{self, Beneath};
use super::entries::{self, Kind};
use super::metadata::MetadataPlace;
use crate::error::{Result, StoreError};
use crate::multipart::new_upload_id;

/// Name of the hidden area.
pub(super) const HIDDEN: &str = ".bucketload";
const LAYOUT: u32 = 1;
/// Most free names that are kept: as many as uploads go on at a time, if they are not too many.
const FREE_NAMES: usize = 64;

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
    /// Names of temporary files that are free again.
    free: Mutex<Vec<String>>,
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
            free: Mutex::default(),
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

    fn free_names(&self) -> MutexGuard<'_, Vec<String>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
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

/// The name of a temporary file, which is removed when this is dropped before it was published.
///
/// Names are used again: the kernel finds its way to a name that it knows a good deal faster than to a new one.
#[derive(Debug)]
pub(super) struct Scratch {
    session: Arc<Session>,
    name: String,
    published: bool,
}

impl Scratch {
    fn new(session: &Arc<Session>) -> Self {
        let free = session.free_names().pop();
        Self {
            name: free.unwrap_or_else(|| session.scratch_name()),
            session: Arc::clone(session),
            published: false,
        }
    }

    /// It, in the scratch directory.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The name is gone (renamed).
    pub(super) const fn published(&mut self) {
        self.published = true;
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.name.is_empty() {
            return;
        }
        if !self.published {
            let scratch = self.session.scratch();
            match fs::unlinkat(scratch, self.name.as_str(), AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                // What remains is removed with the session; its name is not free.
                Err(_) => return,
            }
        }
        let mut free = self.session.free_names();
        if free.len() < FREE_NAMES {
            free.push(std::mem::take(&mut self.name));
        }
    }
}

/// A temporary file.
#[derive(Debug)]
pub(super) struct Temporary {
    pub(super) scratch: Scratch,
    pub(super) file: File,
}

impl Temporary {
    pub(super) fn create(session: &Arc<Session>) -> Result<Self> {
        let mut scratch = Scratch::new(session);
        match beneath::create_file(session.scratch(), scratch.name().as_bytes()) {
            Ok(fd) => Ok(Self {
                scratch,
                file: fd.into(),
            }),
            Err(error) => {
                // There is no file of ours, and who knows whose the name is.
                scratch.name.clear();
                Err(failed("creating a temporary file")(error))
            }
        }
    }

    /// A second name for the file `name` of `directory`, if the file system has hard links.
    pub(super) fn link(
        session: &Arc<Session>,
        directory: &OwnedFd,
        name: &str,
    ) -> Result<Option<Self>> {
        let context = "linking a part";
        let fd = fs::openat(
            directory,
            name,
            OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .map_err(failed(context))?;
        let mut scratch = Scratch::new(session);
        match fs::linkat(
            directory,
            name,
            session.scratch(),
            scratch.name(),
            AtFlags::empty(),
        ) {
            Ok(()) => {}
            Err(error) => {
                // Nothing has the name.
                scratch.published();
                return match error {
                    Errno::PERM | Errno::OPNOTSUPP | Errno::MLINK => Ok(None),
                    error => Err(failed(context)(error)),
                };
            }
        }
        Ok(Some(Self {
            scratch,
            file: fd.into(),
        }))
    }

    /// Ends the writing of its file. File systems of a network may say only now that bytes were lost.
    pub(super) fn close(self) -> Result<Scratch> {
        let Self { scratch, file } = self;
        // SAFETY: the descriptor is the file's, which is given up here.
        if unsafe { libc::close(file.into_raw_fd()) } != 0 {
            let error = std::io::Error::last_os_error();
            // It is closed all the same.
            if error.kind() != std::io::ErrorKind::Interrupted {
                return Err(StoreError::system("closing an object's file", error));
            }
        }
        Ok(scratch)
    }
}
