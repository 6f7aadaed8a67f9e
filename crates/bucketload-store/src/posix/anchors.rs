//! A cache of recently opened directories. Opening and closing the directory of a small object costs a
//! fifth of its write.
//!
//! If a directory was removed meanwhile, and perhaps created again, the call that uses it fails with
//! `ENOENT`; the caller then drops it from the cache and opens it by its path. A directory that was
//! moved goes unnoticed, but no program moves directories under a store; entries expire after
//! [`MAX_AGE`] anyway.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::stripes::spread;

/// How long a cached directory is used.
const MAX_AGE: Duration = Duration::from_secs(1);
/// Maximum number of cached directories.
const SLOTS: usize = 16;

/// An open directory as an anchor for other calls.
pub(super) type Anchor = Arc<OwnedFd>;

#[derive(Debug)]
struct CachedAnchor {
    path: Box<[u8]>,
    directory: Anchor,
    opened: Instant,
}

/// Open directories by path. Each path has one slot, which another path may take over.
#[derive(Debug, Default)]
pub(super) struct Anchors {
    slots: [Mutex<Option<CachedAnchor>>; SLOTS],
}

impl Anchors {
    fn slot(&self, path: &[u8]) -> MutexGuard<'_, Option<CachedAnchor>> {
        self.slots[spread(path) as usize % SLOTS]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The directory at `path`, if it is cached.
    pub(super) fn get(&self, path: &[u8]) -> Option<Anchor> {
        let slot = self.slot(path);
        let cached = slot.as_ref().filter(|cached| *cached.path == *path)?;
        (cached.opened.elapsed() < MAX_AGE).then(|| Arc::clone(&cached.directory))
    }

    /// Caches a directory that was just opened.
    pub(super) fn keep(&self, path: &[u8], directory: OwnedFd) -> Anchor {
        let directory = Arc::new(directory);
        let cached = CachedAnchor {
            path: path.into(),
            directory: Arc::clone(&directory),
            opened: Instant::now(),
        };
        let before = self.slot(path).replace(cached);
        // Closing is a system call; no other thread should wait for it.
        drop(before);
        directory
    }

    /// Drops the directory at `path` from the cache.
    pub(super) fn forget(&self, path: &[u8]) {
        let mut slot = self.slot(path);
        if slot.as_ref().is_some_and(|cached| *cached.path == *path) {
            *slot = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_found_under_its_own_path_only() {
        let directory = tempfile::tempdir().unwrap();
        let open = || std::fs::File::open(directory.path()).unwrap().into();
        let anchors = Anchors::default();
        for i in 0..100 {
            let path = format!("bucket/{i}");
            anchors.keep(path.as_bytes(), open());
            assert!(anchors.get(path.as_bytes()).is_some());
        }
        let cached = (0..100)
            .filter(|i| anchors.get(format!("bucket/{i}").as_bytes()).is_some())
            .count();
        assert!((1..=SLOTS).contains(&cached));
        anchors.keep(b"b", open());
        anchors.forget(b"b");
        assert!(anchors.get(b"b").is_none());
    }
}
