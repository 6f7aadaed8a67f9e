//! Replacing an object's file with a directory, to make room for keys below it.

use std::os::fd::OwnedFd;

use rustix::fs::{self, AtFlags, RenameFlags};
use rustix::io::Errno;

use super::beneath;
use super::escape::SELF;
use super::tree::{BLOCKED, Tree, is_directory, is_file};
use crate::error::{Result, StoreError};

impl Tree {
    /// Replaces the file of an object with a directory; the file becomes `%self` in it. Succeeds too
    /// if another thread or process was faster or the object is gone: the caller tries again.
    ///
    /// Only one thread of all processes does this at a time, because the second of two exchanges of
    /// the same name would undo the first.
    pub(super) fn turn_into_directory(
        &self,
        parent: &OwnedFd,
        name: &[u8],
        path: &[u8],
    ) -> Result<()> {
        let failed = StoreError::during("making room for keys below an object");
        let _guard = self.lock(path);
        let _global = self.session.lock_globally().map_err(failed)?;
        let linked = match beneath::stat_entry(parent, name) {
            Ok(stat) if is_file(&stat) => stat.st_ino,
            Ok(stat) if is_directory(&stat) => return Ok(()),
            Err(Errno::NOENT) => return Ok(()),
            Ok(_) => return Err(BLOCKED),
            Err(error) => return Err(failed(error)),
        };
        let scratch = self.session.scratch();
        let temporary = self.session.scratch_name();
        let attempt = || -> rustix::io::Result<()> {
            beneath::create_directory(scratch, temporary.as_bytes())?;
            let directory = beneath::anchor_entry(scratch, temporary.as_bytes())?;
            fs::linkat(parent, name, &directory, SELF, AtFlags::empty())?;
            if self.sync_directories {
                beneath::sync_directory(&directory)?;
            }
            let exchange =
                || fs::renameat_with(scratch, &temporary[..], parent, name, RenameFlags::EXCHANGE);
            exchange()?;
            let taken = beneath::stat_entry(scratch, temporary.as_bytes())?;
            if is_directory(&taken) {
                // Another program has created a directory with this name: put it back.
                return exchange();
            }
            if taken.st_ino == linked {
                return Ok(());
            }
            // Another process has overwritten the object meanwhile: keep the newer file.
            fs::renameat(scratch, &temporary[..], &directory, SELF)
        };
        let result = match attempt() {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(Errno::INVAL | Errno::NOSYS) => Err(StoreError::NotImplemented(
                "keys below an object on a file system without an atomic exchange of names",
            )),
            Err(error) => Err(failed(error)),
        };
        beneath::remove_tree(scratch, temporary.as_bytes()).map_err(failed)?;
        result
    }
}
