//! Makes room for keys below an object.

use std::os::fd::OwnedFd;

use rustix::fs::{self, AtFlags, RenameFlags};
use rustix::io::Errno;

use super::beneath;
use super::escape::SELF;
use super::tree::{Tree, is_directory, is_file};
use crate::error::{Result, StoreError};

impl Tree {
    /// Puts a directory in the place of the file of an object, which becomes `%self` in it. Fine
    /// if another thread or process was faster, or the object is gone: the caller tries again.
    ///
    /// One thread of all processes at a time does this: of two exchanges of the same name the
    /// second would undo the first.
    pub(super) fn turn_into_directory(
        &self,
        parent: &OwnedFd,
        name: &[u8],
        path: &[u8],
    ) -> Result<()> {
        let failed = |e| StoreError::system("making room for keys below an object", e);
        let _guard = self.lock(path);
        let _alone = self.session.alone().map_err(failed)?;
        let linked = match beneath::stat_entry(parent, name) {
            Ok(stat) if is_file(&stat) => stat.st_ino,
            Ok(stat) if is_directory(&stat) => return Ok(()),
            Err(Errno::NOENT) => return Ok(()),
            Ok(_) => return Err(failed(Errno::NOTDIR)),
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
                // A foreign program has made a directory of the name: it must have it back.
                return exchange();
            }
            if taken.st_ino == linked {
                return Ok(());
            }
            // Another process has overwritten the object meanwhile: what was exchanged is newer.
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
