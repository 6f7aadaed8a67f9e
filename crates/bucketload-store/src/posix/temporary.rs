//! Temporary files of a session: what is written goes there before it becomes an object.
//!
//! Names are used again: the kernel finds its way to a name that it knows a good deal faster than to a new one. Files
//! can be made before they are needed ([`Temporary::prepare`]), by whoever has nothing else to do: to make one takes a
//! fifth of the write of a small object.

use std::fs::File;
use std::os::fd::{IntoRawFd as _, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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

/// What temporary files can be made of.
#[derive(Debug, Default)]
pub(super) struct Stock(Mutex<Kept>);

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
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn failed(context: &'static str) -> impl FnOnce(Errno) -> StoreError {
    move |error| StoreError::system(context, error)
}

/// The name of a temporary file, which is removed when this is dropped before it was published.
#[derive(Debug)]
pub(super) struct Scratch {
    session: Arc<Session>,
    name: String,
    published: bool,
}

impl Scratch {
    fn new(session: &Arc<Session>) -> Self {
        let free = session.stock.kept().names.pop();
        Self::named(session, free.unwrap_or_else(|| session.scratch_name()))
    }

    fn named(session: &Arc<Session>, name: String) -> Self {
        Self {
            name,
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
        let mut kept = self.session.stock.kept();
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
        let spare = session.stock.kept().files.pop();
        if let Some(Spare { name, file, made }) = spare {
            let scratch = Scratch::named(session, name);
            if made.elapsed() < TRUST {
                return Ok(Self { scratch, file });
            }
        }
        Self::make(session)
    }

    /// Makes a file for a later [`create`](Self::create), unless there are many or the last took long.
    pub(super) fn prepare(session: &Arc<Session>) {
        if !session.stock.kept().wants() {
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
        let mut kept = session.stock.kept();
        kept.took(made - begun);
        kept.files.push(spare);
    }

    fn make(session: &Arc<Session>) -> Result<Self> {
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Kept, REST, SLOW};

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
}
