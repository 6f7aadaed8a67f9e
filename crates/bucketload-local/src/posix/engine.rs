//! The engines, which make the system calls of a step.

use std::os::fd::{AsFd, OwnedFd};
#[cfg(feature = "io-uring")]
use std::rc::Rc;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, openat};

use super::blocking;
use super::config::Io;
use super::driver::DriverShared;
use super::fill::Source;
use super::pool::{Pool, Reply};
#[cfg(feature = "io-uring")]
use super::ring::Ring;
use super::work::Work;

/// The engine of one load thread.
#[derive(Debug)]
pub(super) enum Engine {
    /// The load thread, with a descriptor of the root for itself: each call counts itself in the open file behind its
    /// descriptor, and threads that count in the same one take turns with the processor's cache line.
    Sync(OwnedFd),
    /// A pool of threads.
    Threads(Pool),
    /// io_uring, and a thread pool for calls that would block it.
    #[cfg(feature = "io-uring")]
    Ring(Rc<Ring>, Pool),
}

impl Engine {
    /// Checks that this process can use io_uring.
    ///
    /// # Errors
    /// The reason if it cannot.
    pub(super) fn ring_is_usable() -> Result<(), String> {
        #[cfg(feature = "io-uring")]
        return super::uring::probe();
        #[cfg(not(feature = "io-uring"))]
        Err("the build does not include it".to_owned())
    }

    /// An engine for the calling load thread.
    pub(super) fn new(driver: &Arc<DriverShared>) -> std::io::Result<Self> {
        Ok(match driver.io {
            Io::Sync => {
                let root = driver.root().map_err(std::io::Error::other)?;
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
                Self::Sync(openat(root, c".", flags, Mode::empty())?)
            }
            Io::Threads => Self::Threads(Pool::new(driver)),
            #[cfg(feature = "io-uring")]
            Io::Uring => Self::Ring(Ring::new()?, Pool::new(driver)),
            #[cfg(not(feature = "io-uring"))]
            Io::Uring => return Err(std::io::ErrorKind::Unsupported.into()),
        })
    }

    /// Whether a step completes in the first poll of [`Engine::run`], so it may write from memory that it
    /// does not own.
    pub(super) const fn is_immediate(&self) -> bool {
        matches!(self, Self::Sync(_))
    }

    /// Performs a step.
    pub(super) async fn run(
        &self,
        mut work: Box<Work>,
        #[cfg_attr(not(feature = "io-uring"), expect(unused_variables))] driver: &DriverShared,
        reply: &Arc<Reply>,
        source: Option<Source<'_>>,
    ) -> Box<Work> {
        match self {
            Self::Sync(root) => {
                blocking::perform_at(root.as_fd(), &mut work, source);
                work
            }
            Self::Threads(pool) => pool.run(work, reply).await,
            #[cfg(feature = "io-uring")]
            Self::Ring(ring, pool) => match (Ring::takes(&work.task), driver.root()) {
                (true, Ok(root)) => ring.run(work, root.as_fd()).await,
                _ => pool.run(work, reply).await,
            },
        }
    }
}
