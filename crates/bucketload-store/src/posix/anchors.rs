//! Directories that were opened a moment ago, for the next call on a key in them: opening and closing
//! the directory of a small object costs a fifth of its write.
//!
//! A directory that was removed meanwhile, and perhaps made again, shows in the call that uses it
//! (`ENOENT`), which then forgets it and opens it by its path. One that was moved does not show,
//! which no program does under a store; what is kept is not trusted for longer than [`TRUST`].

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::stripes::spread;

/// How long a directory is taken to be where it was.
const TRUST: Duration = Duration::from_secs(1);
/// Directories kept at a time.
const SLOTS: usize = 16;

/// An opened directory as the anchor of other calls.
pub(super) type Anchor = Arc<OwnedFd>;

#[derive(Debug)]
struct Kept {
    path: Box<[u8]>,
    directory: Anchor,
    opened: Instant,
}

/// Directories by path; each path has one place, which another may take.
#[derive(Debug, Default)]
pub(super) struct Anchors {
    slots: [Mutex<Option<Kept>>; SLOTS],
}

impl Anchors {
    fn slot(&self, path: &[u8]) -> MutexGuard<'_, Option<Kept>> {
        self.slots[spread(path) as usize % SLOTS]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The directory at `path`, if it was opened a moment ago.
    pub(super) fn get(&self, path: &[u8]) -> Option<Anchor> {
        let slot = self.slot(path);
        let kept = slot.as_ref().filter(|kept| *kept.path == *path)?;
        (kept.opened.elapsed() < TRUST).then(|| Arc::clone(&kept.directory))
    }

    /// Keeps a directory that was opened just now.
    pub(super) fn keep(&self, path: &[u8], directory: OwnedFd) -> Anchor {
        let directory = Arc::new(directory);
        let kept = Kept {
            path: path.into(),
            directory: Arc::clone(&directory),
            opened: Instant::now(),
        };
        let before = self.slot(path).replace(kept);
        // Closing is a system call, for which no other thread must wait.
        drop(before);
        directory
    }

    /// Forgets what was at `path`.
    pub(super) fn forget(&self, path: &[u8]) {
        let mut slot = self.slot(path);
        if slot.as_ref().is_some_and(|kept| *kept.path == *path) {
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
        let kept = (0..100)
            .filter(|i| anchors.get(format!("bucket/{i}").as_bytes()).is_some())
            .count();
        assert!((1..=SLOTS).contains(&kept));
        anchors.keep(b"b", open());
        anchors.forget(b"b");
        assert!(anchors.get(b"b").is_none());
    }
}
