//! What a run leaves besides objects: temporary files, shared files and directories that no object
//! lies in. An object store has none of these, so clean-up takes them away.

use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, openat, statat, unlinkat};
use rustix::io::Errno;

use super::blocking::c_path;
use super::errors::Failure;
use super::path::is_reserved;
use super::work::Work;

/// Removes the empty directories from `path` (without a NUL) up to, and not including, its bucket.
pub(super) fn prune(root: BorrowedFd<'_>, path: &[u8]) {
    let mut path = path.to_vec();
    while path.contains(&b'/') {
        path.push(0);
        // One that is not empty, or that somebody uses, ends it.
        if unlinkat(root, c_path(&path), AtFlags::REMOVEDIR).is_err() {
            return;
        }
        let parent = path.iter().rposition(|&b| b == b'/').unwrap_or(0);
        path.truncate(parent);
    }
}

/// What a visit of a tree found and did.
#[derive(Default)]
struct Visit {
    /// Own files removed.
    removed: u64,
    /// Whether anything is left that is no directory.
    occupied: bool,
}

/// Visits the tree below `path` (without a NUL), depth first: removes our own files, and the
/// directories that are or become empty.
fn visit(root: BorrowedFd<'_>, path: &mut Vec<u8>, visit_: &mut Visit) -> Result<(), Failure> {
    let mut directories = Vec::new();
    let mut own = Vec::new();
    each(root, path, |name, is_directory| {
        if is_directory {
            directories.push(name.to_vec());
        } else if is_reserved(name) {
            own.push(name.to_vec());
        } else {
            visit_.occupied = true;
        }
    })?;
    let len = path.len();
    let enter = |path: &mut Vec<u8>, name: &[u8]| {
        path.truncate(len);
        path.push(b'/');
        path.extend_from_slice(name);
    };
    for name in own {
        enter(path, &name);
        visit_.removed += u64::from(remove(root, path, AtFlags::empty())?);
    }
    for name in directories {
        enter(path, &name);
        visit(root, path, visit_)?;
        remove(root, path, AtFlags::REMOVEDIR)?;
    }
    path.truncate(len);
    Ok(())
}

/// Removes what is at `path`; `false` when it stays because it holds something or has gone.
fn remove(root: BorrowedFd<'_>, path: &mut Vec<u8>, flags: AtFlags) -> Result<bool, Failure> {
    path.push(0);
    let result = unlinkat(root, c_path(path), flags);
    path.pop();
    match result {
        Ok(()) => Ok(true),
        Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST | Errno::BUSY) => Ok(false),
        Err(errno) => Err(Failure::new("unlink", errno)),
    }
}

/// Shows everything in a directory; nothing when it has gone.
fn each(
    root: BorrowedFd<'_>,
    path: &mut Vec<u8>,
    mut f: impl FnMut(&[u8], bool),
) -> Result<(), Failure> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    path.push(0);
    let opened = openat(root, c_path(path), flags, Mode::empty());
    path.pop();
    let directory = match opened {
        Ok(directory) => directory,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
        Err(errno) => return Err(Failure::new("open", errno)),
    };
    let mut room = Vec::with_capacity(32 * 1024);
    let mut entries = RawDir::new(&directory, room.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = entry.map_err(|e| Failure::new("getdents", e))?;
        let name = entry.file_name();
        let is_directory = match entry.file_type() {
            FileType::Unknown => statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory),
            kind => kind == FileType::Directory,
        };
        let name = name.to_bytes();
        if name != b"." && name != b".." {
            f(name, is_directory);
        }
    }
    Ok(())
}

/// Clears the directory at `path` below the bucket (`offset` bytes of it): everything of ours, and
/// the directories that are empty then, itself included.
pub(super) fn sweep(work: &mut Work, root: BorrowedFd<'_>) -> Result<(), Failure> {
    let mut path = work.path.clone();
    path.pop();
    let mut found = Visit::default();
    visit(root, &mut path, &mut found)?;
    work.found = found.removed;
    prune(root, &path);
    Ok(())
}

/// Removes the bucket at `path` with the empty directories in it; nothing when it holds an object.
pub(super) fn remove_bucket(work: &mut Work, root: BorrowedFd<'_>) -> Result<(), Failure> {
    match unlinkat(root, c_path(&work.path), AtFlags::REMOVEDIR) {
        Err(Errno::NOTEMPTY | Errno::EXIST) => {}
        result => return result.map_err(|e| Failure::new("rmdir", e)),
    }
    let mut path = work.path.clone();
    path.pop();
    let mut occupied = false;
    look(root, &mut path, &mut occupied)?;
    if occupied {
        return Err(Failure::new("rmdir", Errno::NOTEMPTY));
    }
    visit(root, &mut path, &mut Visit::default())?;
    unlinkat(root, c_path(&work.path), AtFlags::REMOVEDIR).map_err(|e| Failure::new("rmdir", e))
}

/// Whether anything but directories and files of ours lies below `path`.
fn look(root: BorrowedFd<'_>, path: &mut Vec<u8>, occupied: &mut bool) -> Result<(), Failure> {
    let mut directories = Vec::new();
    each(root, path, |name, is_directory| match is_directory {
        true => directories.push(name.to_vec()),
        false => *occupied |= !is_reserved(name),
    })?;
    let len = path.len();
    for name in directories {
        if *occupied {
            break;
        }
        path.push(b'/');
        path.extend_from_slice(&name);
        look(root, path, occupied)?;
        path.truncate(len);
    }
    Ok(())
}
