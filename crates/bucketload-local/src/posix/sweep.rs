//! Removal of a run's other files: temporary files, shared files and directories without objects. An object
//! store has none of these, so clean-up removes them.

use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, FileType, unlinkat};
use rustix::io::Errno;

use super::blocking::c_path;
use super::errors::Failure;
use super::path::is_reserved;
use super::walk::{ROOM, entries};
use super::work::Work;

/// Removes the empty directories from `path` (without a NUL) up to, and not including, its bucket.
pub(super) fn prune(root: BorrowedFd<'_>, path: &[u8]) {
    let mut path = path.to_vec();
    while path.contains(&b'/') {
        path.push(0);
        // Stop at a directory that is not empty or in use.
        if unlinkat(root, c_path(&path), AtFlags::REMOVEDIR).is_err() {
            return;
        }
        let parent = path.iter().rposition(|&b| b == b'/').unwrap_or(0);
        path.truncate(parent);
    }
}

/// Clears the tree below `path` (without a NUL), depth first: removes the driver's own files, and the
/// directories that are or become empty. Returns the number of files removed.
fn clear(root: BorrowedFd<'_>, path: &mut Vec<u8>) -> Result<u64, Failure> {
    let mut directories = Vec::new();
    let mut own = Vec::new();
    let mut removed = 0;
    each(root, path, |name, is_directory| {
        if is_directory {
            directories.push(name.to_vec());
        } else if is_reserved(name) {
            own.push(name.to_vec());
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
        removed += u64::from(remove(root, path, AtFlags::empty())?);
    }
    for name in directories {
        enter(path, &name);
        removed += clear(root, path)?;
        remove(root, path, AtFlags::REMOVEDIR)?;
    }
    path.truncate(len);
    Ok(removed)
}

/// Removes the file or directory at `path`; returns `false` if it is not empty or already gone.
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

/// Passes every entry of a directory to `f`; none if the directory is gone.
fn each(
    root: BorrowedFd<'_>,
    path: &mut Vec<u8>,
    mut f: impl FnMut(&[u8], bool),
) -> Result<(), Failure> {
    let mut room = Vec::with_capacity(ROOM);
    path.push(0);
    let path_c = c_path(path);
    let read = entries(root, path_c, room.spare_capacity_mut(), |name, kind| {
        f(name, kind == FileType::Directory);
    });
    path.pop();
    match read {
        Err(Failure {
            call: "open",
            errno: Errno::NOENT | Errno::NOTDIR,
        }) => Ok(()),
        read => read,
    }
}

/// Removes the driver's own files below the directory at the work's path, and the directories that are then
/// empty, including that one.
pub(super) fn sweep(work: &mut Work, root: BorrowedFd<'_>) -> Result<(), Failure> {
    let mut path = work.path.clone();
    path.pop();
    work.found = clear(root, &mut path)?;
    prune(root, &path);
    Ok(())
}

/// Removes the bucket at the work's path and the empty directories in it; fails if it contains an object.
pub(super) fn remove_bucket(work: &mut Work, root: BorrowedFd<'_>) -> Result<(), Failure> {
    match unlinkat(root, c_path(&work.path), AtFlags::REMOVEDIR) {
        Err(Errno::NOTEMPTY | Errno::EXIST) => {}
        result => return result.map_err(|e| Failure::new("rmdir", e)),
    }
    let mut path = work.path.clone();
    path.pop();
    let mut occupied = false;
    find_objects(root, &mut path, &mut occupied)?;
    if occupied {
        return Err(Failure::new("rmdir", Errno::NOTEMPTY));
    }
    clear(root, &mut path)?;
    unlinkat(root, c_path(&work.path), AtFlags::REMOVEDIR).map_err(|e| Failure::new("rmdir", e))
}

/// Sets `occupied` if there is anything below `path` except directories and the driver's own files.
fn find_objects(
    root: BorrowedFd<'_>,
    path: &mut Vec<u8>,
    occupied: &mut bool,
) -> Result<(), Failure> {
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
        find_objects(root, path, occupied)?;
        path.truncate(len);
    }
    Ok(())
}
