//! Temporary files of a session, which hold content until it becomes an object.
//!
//! Names are reused, because the kernel resolves a known name much faster than a new one. Idle threads
//! can create files in advance ([`Temporary::prepare`]), because creating one takes a fifth of the write
//! of a small object. Concurrent writers use different directories ([`Lane`]), because creating, renaming
//! or removing a file locks its directory.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{self, AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::beneath;
use super::session::Session;
use crate::error::{Result, StoreError};

/// Maximum number of spare names, and of spare files, per lane: enough for the usual number of
/// concurrent uploads.
const MAX_SPARES: usize = 64;
/// How long a spare file is usable. Others may share the file system; if something happens to the
/// file, its user could not distinguish that from a failed write.
const MAX_AGE: Duration = Duration::from_secs(1);
/// A thread that creates a spare file delays a request that arrives meanwhile. That is worth a few
/// microseconds, but not the time of a file system that searches for a free inode. On such a file
/// system, files are created when needed, so the write itself takes the time, not the next request.
const SLOW: Duration = Duration::from_micros(20);
/// How many opportunities to skip after creating a file was slow.
const SKIPS: u32 = 256;

/// Maximum number of lanes of a session; more threads than this hardly contend.
const LANES: usize = 16;

/// The lanes of a session.
#[derive(Debug)]
pub(super) struct Lanes(Box<[Lane]>);

/// A directory for temporary files, with its spares.
#[derive(Debug, Default)]
struct Lane {
    /// Created for the first file. `None` means the session's directory: for the first lane, and if
    /// creating the directory failed.
    directory: OnceLock<Option<OwnedFd>>,
    spares: Mutex<Spares>,
}

/// Spare names and files of a lane.
#[derive(Debug, Default)]
struct Spares {
    names: Vec<String>,
    files: Vec<SpareFile>,
    /// Opportunities to create a file that are still to be skipped.
    skips: u32,
}

impl Spares {
    /// Whether to create a spare file now.
    const fn wants_file(&mut self) -> bool {
        if self.skips > 0 {
            self.skips -= 1;
            return false;
        }
        self.files.len() < MAX_SPARES
    }

    /// Records how long it took to create a file.
    const fn took(&mut self, time: Duration) {
        if time.as_nanos() > SLOW.as_nanos() {
            self.skips = SKIPS;
        }
    }
}

/// An empty file.
#[derive(Debug)]
struct SpareFile {
    name: String,
    file: File,
    created: Instant,
}

impl Lanes {
    /// Lanes for as many threads as can run at a time.
    pub(super) fn new() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self((0..cores.min(LANES)).map(|_| Lane::default()).collect())
    }

    /// The lane of this thread. Threads are assigned lanes in turn.
    fn lane(&self) -> usize {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static MINE: usize = NEXT.fetch_add(1, Ordering::Relaxed);
        }
        MINE.with(|mine| mine % self.0.len())
    }

    fn spares(&self, lane: usize) -> MutexGuard<'_, Spares> {
        let spares = self.0[lane].spares.lock();
        spares.unwrap_or_else(PoisonError::into_inner)
    }
}

/// The directory of lane `lane`.
fn directory(session: &Session, lane: usize) -> BorrowedFd<'_> {
    let directory = session.lanes.0[lane].directory.get_or_init(|| {
        if lane == 0 {
            return None;
        }
        let name = format!("lane{lane}");
        beneath::create_directory(session.scratch(), name.as_bytes()).ok()?;
        beneath::anchor_entry(session.scratch(), name.as_bytes()).ok()
    });
    directory
        .as_ref()
        .map_or(session.scratch(), |directory| directory.as_fd())
}

/// The name of a temporary file. Dropping it removes the file, unless it was published.
#[derive(Debug)]
pub(super) struct Scratch {
    session: Arc<Session>,
    lane: usize,
    name: String,
    published: bool,
}

impl Scratch {
    fn new(session: &Arc<Session>) -> Self {
        let lane = session.lanes.lane();
        let spare = session.lanes.spares(lane).names.pop();
        let name = spare.unwrap_or_else(|| session.scratch_name());
        Self::named(session, lane, name)
    }

    fn named(session: &Arc<Session>, lane: usize, name: String) -> Self {
        Self {
            session: Arc::clone(session),
            lane,
            name,
            published: false,
        }
    }

    /// The directory of the file.
    pub(super) fn directory(&self) -> BorrowedFd<'_> {
        directory(&self.session, self.lane)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Moves the file to `name` in the directory `to`, replacing a file with that name.
    pub(super) fn rename(&mut self, to: impl AsFd, name: &str) -> rustix::io::Result<()> {
        fs::renameat(self.directory(), self.name(), to, name)?;
        self.published();
        Ok(())
    }

    /// Records that the file was renamed, so the name is free.
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
            match fs::unlinkat(self.directory(), self.name.as_str(), AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                // The file is removed with the session; its name is not free.
                Err(_) => return,
            }
        }
        let mut spares = self.session.lanes.spares(self.lane);
        if spares.names.len() < MAX_SPARES {
            spares.names.push(std::mem::take(&mut self.name));
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
    /// An empty file, from the spares if possible.
    pub(super) fn create(session: &Arc<Session>) -> Result<Self> {
        let lane = session.lanes.lane();
        let spare = session.lanes.spares(lane).files.pop();
        if let Some(spare) = spare {
            let scratch = Scratch::named(session, lane, spare.name);
            if spare.created.elapsed() < MAX_AGE {
                let file = spare.file;
                return Ok(Self { scratch, file });
            }
        }
        Self::make(session)
    }

    /// Creates a spare file, unless there are enough or creating the last one was slow.
    pub(super) fn prepare(session: &Arc<Session>) {
        let lane = session.lanes.lane();
        if !session.lanes.spares(lane).wants_file() {
            return;
        }
        let started = Instant::now();
        // The next write reports the error.
        let Ok(Self { mut scratch, file }) = Self::make(session) else {
            return;
        };
        let created = Instant::now();
        let spare = SpareFile {
            name: std::mem::take(&mut scratch.name),
            file,
            created,
        };
        let mut spares = session.lanes.spares(lane);
        spares.took(created - started);
        spares.files.push(spare);
    }

    fn make(session: &Arc<Session>) -> Result<Self> {
        let mut scratch = Scratch::new(session);
        match beneath::create_file(scratch.directory(), scratch.name().as_bytes()) {
            Ok(fd) => Ok(Self {
                scratch,
                file: fd.into(),
            }),
            Err(error) => {
                // No file was created, and the name may belong to another one.
                scratch.name.clear();
                Err(StoreError::system("creating a temporary file", error))
            }
        }
    }

    /// A hard link to the file `name` of `directory`, if the file system supports it.
    pub(super) fn link(
        session: &Arc<Session>,
        directory: &OwnedFd,
        name: &str,
    ) -> Result<Option<Self>> {
        let failed = StoreError::during("linking a part");
        let fd = fs::openat(
            directory,
            name,
            OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .map_err(failed)?;
        let mut scratch = Scratch::new(session);
        match fs::linkat(
            directory,
            name,
            scratch.directory(),
            scratch.name(),
            AtFlags::empty(),
        ) {
            Ok(()) => {}
            Err(error) => {
                // The name is free: no link was created.
                scratch.published();
                return match error {
                    Errno::PERM | Errno::OPNOTSUPP | Errno::MLINK => Ok(None),
                    error => Err(failed(error)),
                };
            }
        }
        Ok(Some(Self {
            scratch,
            file: fd.into(),
        }))
    }

    /// Closes the file. Network file systems may only now report that bytes were lost.
    pub(super) fn close(self) -> Result<Scratch> {
        let Self { scratch, file } = self;
        // SAFETY: `into_raw_fd` transfers ownership of the descriptor, which is closed only here.
        if unsafe { libc::close(file.into_raw_fd()) } != 0 {
            let error = std::io::Error::last_os_error();
            // After `EINTR` the descriptor is closed all the same.
            if error.kind() != std::io::ErrorKind::Interrupted {
                return Err(StoreError::system("closing an object's file", error));
            }
        }
        Ok(scratch)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::{Arc, Barrier};
    use std::time::Duration;

    use rustix::fs::{AtFlags, fstat, statat};

    use super::{SKIPS, SLOW, Spares, Temporary};
    use crate::posix::metadata::MetadataStorage;
    use crate::posix::session::Session;

    #[test]
    fn a_slow_file_system_gets_few_spare_files() {
        let mut spares = Spares::default();
        spares.took(SLOW);
        assert!(spares.wants_file());
        spares.took(SLOW + Duration::from_nanos(1));
        let skipped = std::iter::from_fn(|| (!spares.wants_file()).then_some(()));
        assert_eq!(skipped.take(SKIPS as usize * 2).count(), SKIPS as usize);
        assert!(spares.wants_file());
    }

    #[test]
    fn concurrent_threads_use_separate_directories() {
        let root = tempfile::tempdir().unwrap();
        let opened = Session::open(root.path(), MetadataStorage::Auto).unwrap();
        let session = Arc::new(opened.session);
        // Threads of other tests are assigned lanes too, but these are so many that they cannot all
        // get the same one.
        let threads = 32;
        let together = Barrier::new(threads);
        let write = || {
            together.wait();
            let temporary = Temporary::create(&session).unwrap();
            let scratch = &temporary.scratch;
            let there = statat(scratch.directory(), scratch.name(), AtFlags::empty()).unwrap();
            assert_eq!(there.st_ino, fstat(&temporary.file).unwrap().st_ino);
            let directory = fstat(scratch.directory()).unwrap().st_ino;
            drop(temporary);
            directory
        };
        let directories: BTreeSet<u64> = std::thread::scope(|scope| {
            let running: Vec<_> = (0..threads).map(|_| scope.spawn(write)).collect();
            running.into_iter().map(|t| t.join().unwrap()).collect()
        });
        let cores = std::thread::available_parallelism().unwrap().get();
        assert!(cores == 1 || directories.len() > 1, "{directories:?}");
        drop(session);
        let tmp = root.path().join(".bucketload/tmp");
        assert_eq!(std::fs::read_dir(tmp).unwrap().count(), 0);
    }
}
