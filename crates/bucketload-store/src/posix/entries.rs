//! Reading directories.

use std::mem::MaybeUninit;
use std::os::fd::AsFd;

use rustix::fs::{FileType, RawDir};
use rustix::io::{Errno, Result};

/// Buffer size of one `getdents64` call; larger buffers are not faster.
const BUFFER_BYTES: usize = 32 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Directory,
    Other,
}

impl Kind {
    pub(super) const fn of(file_type: FileType) -> Self {
        match file_type {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            _ => Self::Other,
        }
    }
}

/// A directory entry.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: Vec<u8>,
    pub(super) kind: Kind,
}

/// Calls `visit` with every entry except `.` and `..` until it returns `false`.
pub(super) fn for_each(
    directory: impl AsFd,
    mut visit: impl FnMut(&[u8], Kind) -> bool,
) -> Result<()> {
    let directory = directory.as_fd();
    let mut buffer = vec![MaybeUninit::uninit(); BUFFER_BYTES];
    let mut entries = RawDir::new(directory, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = match entry {
            Ok(entry) => entry,
            // The directory was removed after it was opened, so it was empty.
            Err(Errno::NOENT) => break,
            Err(error) => return Err(error),
        };
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let mut file_type = entry.file_type();
        if file_type == FileType::Unknown {
            // Not every file system reports the type.
            file_type = match super::beneath::stat_entry(directory, name) {
                Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                Err(_) => continue,
            };
        }
        if !visit(name, Kind::of(file_type)) {
            break;
        }
    }
    Ok(())
}

/// All entries, for directories that are small by construction.
pub(super) fn read_all(directory: impl AsFd) -> Result<Vec<Entry>> {
    let mut all = Vec::new();
    for_each(directory, |name, kind| {
        all.push(Entry {
            name: name.to_vec(),
            kind,
        });
        true
    })?;
    Ok(all)
}
