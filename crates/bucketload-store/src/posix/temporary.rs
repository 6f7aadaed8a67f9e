//! Temporary files of a session: what is written goes there before it becomes an object.
//!
//! Names are used again: the kernel finds its way to a name that it knows a good deal faster than to a new one. Files
//! can be made before they are needed ([`Temporary::prepare`]), by whoever has nothing else to do: to make one takes a
//! fifth of the write of a small object. Threads that write at the same time do so in different directories ([`Lane`]):
//! whoever makes, renames or removes a file in one keeps others from doing so.

use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd, IntoRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{self, AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::beneath;
use super::session::Session;
use crate::error::{Result, StoreError};

/// Most free names, and most files made beforehand, that are kept: as many as uploads go on at a time, if they are not
/// too many.
const KEPT: usize = 64;
/// How long a file that was made beforehand is good: what has happened to it meanwhile, on a file system that others
/// use too, shows to who uses it, who could not tell it from a failure of the write.
const TRUST: Duration = Duration::from_secs(1);
/// Whoever makes a file beforehand keeps the next request waiting if it comes meanwhile. That is worth a few
/// microseconds, not the time of a file system that searches for a free inode: there, files are made when they are
/// needed, so that the write takes the time and not what follows it.
const SLOW: Duration = Duration::from_micros(20);
/// How many opportunities are let pass after a file that took so long.
const REST: u32 = 256;

/// Most directories of a session: more than that many threads hardly get in each other's way.
const LANES: usize = 16;

/// What temporary files can be made of.
#[derive(Debug)]
pub(super) struct Stock(Box<[Lane]>);

/// A directory for temporary files, and what is kept of them.
#[derive(Debug, Default)]
struct Lane {
    /// Made for the first file; the first lane's is the session's own, as is that of one that cannot be made.
    directory: OnceLock<Option<OwnedFd>>,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    names: Vec<String>,
    files: Vec<Spare>,
    /// Opportunities to make a file that are still let pass.
    rest: u32,
}

impl Kept {
    /// Whether a file should be made beforehand now.
    const fn wants(&mut self) -> bool {
        if self.rest > 0 {
            self.rest -= 1;
            return false;
        }
        self.files.len() < KEPT
    }

    /// A file was made, which took so long.
    const fn took(&mut self, time: Duration) {
        if time.as_nanos() > SLOW.as_nanos() {
            self.rest = REST;
        }
    }
}

/// An empty file under a name of its own.
#[derive(Debug)]
struct Spare {
    name: String,
    file: File,
    made: Instant,
}

impl Stock {
    /// Lanes for as many threads as can write at a time.
    pub(super) fn new() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self((0..cores.min(LANES)).map(|_| Lane::default()).collect())
    }

    /// The lane of this thread. Threads take them in turn.
    fn lane(&self) -> usize {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static MINE: usize = NEXT.fetch_add(1, Ordering::Relaxed);
        }
        MINE.with(|mine| mine % self.0.len())
    }

    fn kept(&self, lane: usize) -> MutexGuard<'_, Kept> {
        let kept = self.0[lane].kept.lock();
        kept.unwrap_or_else(PoisonError::into_inner)
    }
}

/// The directory of lane `lane`.
fn directory(session: &Session, lane: usize) -> BorrowedFd<'_> {
    let own = session.stock.0[lane].directory.get_or_init(|| {
        if lane == 0 {
            return None;
        }
        let name = format!("lane{lane}");
        beneath::create_directory(session.scratch(), name.as_bytes()).ok()?;
        beneath::anchor_entry(session.scratch(), name.as_bytes()).ok()
    });
    own.as_ref().map_or(session.scratch(), |own| own.as_fd())
}

fn failed(context: &'static str) -> impl FnOnce(Errno) -> StoreError {
    move |error| StoreError::system(context, error)
}

/// The name of a temporary file, which is removed when this is dropped before it was published.
#[derive(Debug)]
pub(super) struct Scratch {
    session: Arc<Session>,
    lane: usize,
    name: String,
    published: bool,
}

impl Scratch {
    fn new(session: &Arc<Session>) -> Self {
        let lane = session.stock.lane();
        let free = session.stock.kept(lane).names.pop();
        let name = free.unwrap_or_else(|| session.scratch_name());
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

    /// The directory that it is in.
    pub(super) fn directory(&self) -> BorrowedFd<'_> {
        directory(&self.session, self.lane)
    }

    /// The name itself.
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
            match fs::unlinkat(self.directory(), self.name.as_str(), AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                // What remains is removed with the session; its name is not free.
                Err(_) => return,
            }
        }
        let mut kept = self.session.stock.kept(self.lane);
        if kept.names.len() < KEPT {
            kept.names.push(std::mem::take(&mut self.name));
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
    /// An empty file.
    pub(super) fn create(session: &Arc<Session>) -> Result<Self> {
        let lane = session.stock.lane();
        let spare = session.stock.kept(lane).files.pop();
        if let Some(Spare { name, file, made }) = spare {
            let scratch = Scratch::named(session, lane, name);
            if made.elapsed() < TRUST {
                return Ok(Self { scratch, file });
            }
        }
        Self::make(session)
    }

    /// Makes a file for a later [`create`](Self::create), unless there are many or the last took long.
    pub(super) fn prepare(session: &Arc<Session>) {
        let lane = session.stock.lane();
        if !session.stock.kept(lane).wants() {
            return;
        }
        let begun = Instant::now();
        // Why there can be none is said to who needs one.
        let Ok(Self { mut scratch, file }) = Self::make(session) else {
            return;
        };
        let made = Instant::now();
        let spare = Spare {
            name: std::mem::take(&mut scratch.name),
            file,
            made,
        };
        let mut kept = session.stock.kept(lane);
        kept.took(made - begun);
        kept.files.push(spare);
    }

    fn make(session: &Arc<Session>) -> Result<Self> {
        let mut scratch = Scratch::new(session);
        match beneath::create_file(scratch.directory(), scratch.name().as_bytes()) {
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
            scratch.directory(),
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::{Arc, Barrier};
    use std::time::Duration;

    use rustix::fs::{AtFlags, fstat, statat};

    use super::{Kept, REST, SLOW, Temporary};
    use crate::posix::metadata::MetadataPlace;
    use crate::posix::session::Session;

    #[test]
    fn a_slow_file_system_is_asked_seldom() {
        let mut kept = Kept::default();
        kept.took(SLOW);
        assert!(kept.wants());
        kept.took(SLOW + Duration::from_nanos(1));
        let passed = std::iter::from_fn(|| (!kept.wants()).then_some(()));
        assert_eq!(passed.take(REST as usize * 2).count(), REST as usize);
        assert!(kept.wants());
    }

    #[test]
    fn threads_at_the_same_time_use_directories_of_their_own() {
        let root = tempfile::tempdir().unwrap();
        let opened = Session::open(root.path(), MetadataPlace::Auto).unwrap();
        let session = Arc::new(opened.session);
        // Threads of other tests take lanes, too: so many are that these cannot all get the same.
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
