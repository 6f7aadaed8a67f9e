//! System calls that never leave a given directory: no symbolic link is followed, neither at the end
//! of a path nor within it. One `openat2` opens a path if the kernel has that call; otherwise the path
//! is walked component by component.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{self, AtFlags, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::{Errno, Result};

/// Mode of new files, before the umask.
const FILE_MODE: Mode = Mode::from_raw_mode(0o666);
/// Mode of new directories, before the umask.
const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o777);
/// `O_NONBLOCK` keeps the open from blocking on a FIFO.
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);
/// Opens a directory only as an anchor for other calls.
const ANCHOR: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// A directory that no path can leave.
#[derive(Debug)]
pub(super) struct Beneath {
    fd: OwnedFd,
    openat2: bool,
}

impl Beneath {
    pub(super) fn new(fd: OwnedFd) -> Self {
        let probe = fs::openat2(&fd, ".", ANCHOR, Mode::empty(), ResolveFlags::BENEATH);
        // Old kernels lack `openat2`, and some sandboxes deny it.
        Self {
            openat2: probe.is_ok(),
            fd,
        }
    }

    #[cfg(test)]
    pub(super) fn without_openat2(fd: OwnedFd) -> Self {
        Self { openat2: false, fd }
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn open(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd> {
        if self.openat2 {
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            loop {
                match fs::openat2(&self.fd, path, flags, Mode::empty(), resolve) {
                    // The tree was renamed during the lookup.
                    Err(Errno::AGAIN | Errno::INTR) => {}
                    result => return result,
                }
            }
        }
        let mut at: Option<OwnedFd> = None;
        let mut rest = path;
        while let Some(slash) = rest.iter().position(|b| *b == b'/') {
            let from = at.as_ref().map_or(self.fd.as_fd(), AsFd::as_fd);
            at = Some(fs::openat(from, &rest[..slash], ANCHOR, Mode::empty())?);
            rest = &rest[slash + 1..];
        }
        let from = at.as_ref().map_or(self.fd.as_fd(), AsFd::as_fd);
        fs::openat(from, rest, flags, Mode::empty())
    }

    /// Opens a file, directory or other entry for reading.
    pub(super) fn open_for_reading(&self, path: &[u8]) -> Result<OwnedFd> {
        self.open(path, READ)
    }

    /// Opens a directory to read its entries.
    pub(super) fn open_directory(&self, path: &[u8]) -> Result<OwnedFd> {
        self.open(path, READ | OFlags::DIRECTORY)
    }

    /// Opens a directory as an anchor for other calls.
    pub(super) fn anchor(&self, path: &[u8]) -> Result<OwnedFd> {
        self.open(path, ANCHOR)
    }
}

/// Whether the error means that a directory does not exist.
pub(super) const fn is_absent(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
}

/// Opens the entry `name` (one component) of a directory for reading.
pub(super) fn open_entry(directory: impl AsFd, name: &[u8]) -> Result<OwnedFd> {
    fs::openat(directory, name, READ, Mode::empty())
}

/// Opens the subdirectory `name` (one component) as an anchor.
pub(super) fn anchor_entry(directory: impl AsFd, name: &[u8]) -> Result<OwnedFd> {
    fs::openat(directory, name, ANCHOR, Mode::empty())
}

/// Creates the file `name`, which must not exist, and opens it for writing.
pub(super) fn create_file(directory: impl AsFd, name: &[u8]) -> Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    fs::openat(directory, name, flags | OFlags::NOFOLLOW, FILE_MODE)
}

/// Creates a subdirectory unless it exists. Returns whether it was created.
pub(super) fn ensure_directory(directory: impl AsFd, name: &[u8]) -> Result<bool> {
    match fs::mkdirat(directory, name, DIRECTORY_MODE) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Creates a subdirectory that must not exist.
pub(super) fn create_directory(directory: impl AsFd, name: &[u8]) -> Result<()> {
    fs::mkdirat(directory, name, DIRECTORY_MODE)
}

/// Status of an entry; of a symbolic link itself, not its target.
pub(super) fn stat_entry(directory: impl AsFd, name: &[u8]) -> Result<Stat> {
    fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
}

/// Writes the entries of a directory (which may be an anchor) to the medium.
pub(super) fn sync_directory(directory: impl AsFd) -> Result<()> {
    let readable = fs::openat(directory, ".", READ | OFlags::DIRECTORY, Mode::empty())?;
    fs::fsync(readable)
}

/// Removes the entry `name` with everything below it. Ignores entries that vanish meanwhile.
pub(super) fn remove_tree(directory: BorrowedFd<'_>, name: &[u8]) -> Result<()> {
    match fs::unlinkat(directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(error) => return Err(error),
    }
    let child = match fs::openat(directory, name, READ | OFlags::DIRECTORY, Mode::empty()) {
        Ok(child) => child,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in super::entries::read_all(&child)? {
        remove_tree(child.as_fd(), &entry.name)?;
    }
    match fs::unlinkat(directory, name, AtFlags::REMOVEDIR) {
        Err(Errno::NOENT) => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(dir: &std::path::Path) -> OwnedFd {
        std::fs::File::open(dir).unwrap().into()
    }

    #[test]
    fn no_symbolic_link_is_followed_with_or_without_openat2() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "x").unwrap();
        let inside = tempfile::tempdir().unwrap();
        std::fs::create_dir(inside.path().join("d")).unwrap();
        std::fs::write(inside.path().join("d/file"), "x").unwrap();
        std::os::unix::fs::symlink(outside.path(), inside.path().join("link")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("secret"), inside.path().join("d/s"))
            .unwrap();
        for beneath in [
            Beneath::new(root(inside.path())),
            Beneath::without_openat2(root(inside.path())),
        ] {
            assert!(beneath.open_for_reading(b"d/file").is_ok());
            assert!(beneath.open_for_reading(b"link/secret").is_err());
            assert!(beneath.open_for_reading(b"d/s").is_err());
            assert!(beneath.anchor(b"link").is_err());
            assert!(beneath.open_directory(b"link").is_err());
            assert_eq!(
                beneath.open_for_reading(b"d/none").unwrap_err(),
                Errno::NOENT
            );
            assert_eq!(beneath.anchor(b"d/file").unwrap_err(), Errno::NOTDIR);
        }
    }

    #[test]
    fn removing_a_tree_spares_link_targets() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("kept"), "x").unwrap();
        let inside = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(inside.path().join("t/a/b")).unwrap();
        std::fs::write(inside.path().join("t/a/b/f"), "x").unwrap();
        std::os::unix::fs::symlink(outside.path(), inside.path().join("t/link")).unwrap();
        let fd = root(inside.path());
        remove_tree(fd.as_fd(), b"t").unwrap();
        assert!(!inside.path().join("t").exists());
        assert!(outside.path().join("kept").exists());
        remove_tree(fd.as_fd(), b"t").unwrap();
    }
}
