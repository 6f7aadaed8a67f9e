//! The storage of metadata records: an extended attribute of the file, or a sidecar file.
//!
//! A sidecar belongs to a version, not to a key: its name is the inode and modification time of the
//! file, and it is written before the file moves to its key. A reader that has opened a file therefore
//! finds the record of exactly this version, and one `rename` changes both. If a record does not fit
//! into the attribute, the attribute is [`SPILLED`] and the record is in a sidecar.

use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{self, AtFlags, Stat, XattrFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::escape::ObjectPath;
use super::session::Session;
use super::temporary::Temporary;
use super::{beneath, entries, record};
use crate::error::{Result, StoreError};
use crate::types::ObjectInfo;

const ATTRIBUTE: &str = "user.bucketload";
const SPILLED: &[u8] = b"@";

/// Where a POSIX store keeps metadata records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MetadataStorage {
    /// The storage that the directory was created with. In a new directory, extended attributes if
    /// the file system has them, else sidecar files.
    #[default]
    Auto,
    /// Extended attributes (`user.bucketload`).
    Xattr,
    /// Files in the hidden area.
    Sidecar,
}

/// Whether a file can carry a user attribute.
pub(super) fn probe_xattr(file: &OwnedFd) -> bool {
    let name = "user.bucketload.probe";
    fs::fsetxattr(file, name, b"1", XattrFlags::empty()).is_ok()
        && fs::fremovexattr(file, name).is_ok()
}

/// The owner of a sidecar, recorded so that orphaned sidecars can be found.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Owner {
    pub(super) bucket: String,
    pub(super) key: String,
    pub(super) session: String,
}

/// The identity of a version: inode and modification time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Version {
    inode: u64,
    modified: i64,
}

impl Version {
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            inode: stat.st_ino,
            modified: record::modified_nanos(stat),
        }
    }

    /// Subdirectory and file name of the sidecar.
    fn sidecar(self) -> (String, String) {
        let directory = format!("{:02x}", self.inode & 0xff);
        (directory, format!("{:x}-{:x}", self.inode, self.modified))
    }
}

/// Reads and writes records.
#[derive(Debug)]
pub(super) struct Metadata {
    session: Arc<Session>,
    in_attributes: bool,
    /// Whether there may be sidecars although the store uses attributes.
    spilled: AtomicBool,
}

impl Metadata {
    pub(super) fn new(session: Arc<Session>, storage: MetadataStorage) -> Self {
        Self {
            session,
            in_attributes: storage == MetadataStorage::Xattr,
            spilled: AtomicBool::new(false),
        }
    }

    /// Whether a version may have a sidecar that must be removed with it.
    pub(super) fn has_sidecars(&self) -> bool {
        !self.in_attributes || self.spilled.load(Ordering::Relaxed)
    }

    /// Attaches the record of `info` to `file`, which will move to `object`. The file's modification
    /// time must already be set.
    pub(super) fn attach(&self, file: &File, info: &ObjectInfo, object: &ObjectPath) -> Result<()> {
        let Some(record) = record::encode(info) else {
            return Ok(());
        };
        if self.in_attributes {
            match fs::fsetxattr(file, ATTRIBUTE, &record, XattrFlags::empty()) {
                Ok(()) => return Ok(()),
                // File systems report a record that is too long in different ways.
                Err(Errno::TOOBIG | Errno::RANGE | Errno::NOSPC | Errno::DQUOT) => {}
                Err(error) => return Err(StoreError::system("writing metadata", error)),
            }
            self.spilled.store(true, Ordering::Relaxed);
        }
        self.write_sidecar(file, &record, object)?;
        if self.in_attributes {
            fs::fsetxattr(file, ATTRIBUTE, SPILLED, XattrFlags::empty())
                .map_err(StoreError::during("writing metadata"))?;
        }
        Ok(())
    }

    /// Replaces the record of a published file whose tags have changed.
    pub(super) fn replace(
        &self,
        file: &File,
        info: &ObjectInfo,
        object: &ObjectPath,
    ) -> Result<()> {
        if record::encode(info).is_some() {
            self.attach(file, info, object)?;
        } else if self.in_attributes {
            match fs::fremovexattr(file, ATTRIBUTE) {
                Ok(()) | Err(Errno::NODATA) => {}
                Err(error) => return Err(StoreError::system("writing metadata", error)),
            }
        }
        let fits = self.in_attributes && self.attribute(file)?.is_none_or(|r| r != SPILLED);
        if fits || record::encode(info).is_none() {
            self.discard(Version::of(&stat(file)?));
        }
        Ok(())
    }

    fn write_sidecar(&self, file: &File, record: &[u8], object: &ObjectPath) -> Result<()> {
        let owner = Owner {
            bucket: object.bucket(),
            key: object.key(),
            session: self.session.name().to_owned(),
        };
        let mut content = serde_json::to_vec(&owner).expect("strings always serialise");
        content.push(b'\n');
        content.extend_from_slice(record);
        let mut temporary = Temporary::create(&self.session)?;
        let failed = |e| StoreError::system("writing a metadata file", e);
        temporary.file.write_all(&content).map_err(failed)?;
        let mut temporary = temporary.close()?;
        let (directory, name) = Version::of(&stat(file)?).sidecar();
        loop {
            match beneath::anchor_entry(&self.session.meta, directory.as_bytes())
                .and_then(|at| temporary.rename(at, &name))
            {
                Err(Errno::NOENT) => {
                    beneath::ensure_directory(&self.session.meta, directory.as_bytes())
                        .map_err(|e| failed(e.into()))?;
                }
                result => return result.map_err(|e| failed(e.into())),
            }
        }
    }

    /// Writes the sidecar of `file`, if it has one, to the medium.
    pub(super) fn sync(&self, file: &File) -> Result<()> {
        if !self.has_sidecars() {
            return Ok(());
        }
        let (directory, name) = Version::of(&stat(file)?).sidecar();
        let sync = || {
            let at = beneath::anchor_entry(&self.session.meta, directory.as_bytes())?;
            fs::fsync(beneath::open_entry(&at, name.as_bytes())?)?;
            beneath::sync_directory(at)
        };
        match sync() {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(StoreError::system("writing a metadata file", error)),
        }
    }

    fn attribute(&self, file: impl AsFd) -> Result<Option<Vec<u8>>> {
        let file = file.as_fd();
        let mut short = [0; 512];
        match fs::fgetxattr(file, ATTRIBUTE, &mut short) {
            Ok(len) => return Ok(Some(short[..len].to_vec())),
            Err(Errno::RANGE) => {}
            Err(Errno::NODATA) => return Ok(None),
            Err(error) => return Err(StoreError::system("reading metadata", error)),
        }
        let mut long = vec![0; 1 << 16];
        match fs::fgetxattr(file, ATTRIBUTE, &mut long) {
            Ok(len) => {
                long.truncate(len);
                Ok(Some(long))
            }
            Err(Errno::NODATA) => Ok(None),
            Err(error) => Err(StoreError::system("reading metadata", error)),
        }
    }

    /// Information about an open file. `None` if the version was just replaced and its record is gone;
    /// the caller then opens the key again.
    pub(super) fn load(&self, file: impl AsFd, stat_before: &Stat) -> Result<Option<ObjectInfo>> {
        let file = file.as_fd();
        let spilled = if self.in_attributes {
            match self.attribute(file)? {
                None => return Ok(Some(record::plain(stat_before))),
                Some(record) if record == SPILLED => true,
                Some(record) => return record::decode(&record, stat_before).map(Some),
            }
        } else {
            false
        };
        if let Some((_, record)) = self.read_sidecar(Version::of(stat_before))? {
            return record::decode(&record, stat_before).map(Some);
        }
        if spilled || stat(file)?.st_nlink == 0 {
            return Ok(None);
        }
        Ok(Some(record::plain(stat_before)))
    }

    fn read_sidecar(&self, version: Version) -> Result<Option<(Owner, Vec<u8>)>> {
        let (directory, name) = version.sidecar();
        let open = beneath::anchor_entry(&self.session.meta, directory.as_bytes())
            .and_then(|at| beneath::open_entry(at, name.as_bytes()));
        match open {
            Ok(fd) => read_owned(fd).map(Some),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(StoreError::system("opening a metadata file", error)),
        }
    }

    /// Removes the sidecar of a version that is gone. If that fails, [`sweep`](Self::sweep) finds it
    /// later.
    pub(super) fn discard(&self, version: Version) {
        if self.has_sidecars() {
            let (directory, name) = version.sidecar();
            if let Ok(at) = beneath::anchor_entry(&self.session.meta, directory.as_bytes()) {
                let _ = fs::unlinkat(at, name.as_str(), AtFlags::empty());
            }
        }
    }

    /// Removes orphaned sidecars after a crash. `current` looks up the version of a key. With
    /// attributes there are few sidecars, so every opening sweeps them.
    pub(super) fn sweep(
        &self,
        unclean: bool,
        alive: &HashSet<String>,
        current: impl Fn(&Owner) -> Result<Option<Version>>,
    ) -> Result<()> {
        if !self.in_attributes && !unclean {
            return Ok(());
        }
        let failed = StoreError::during::<Errno>("reading metadata files");
        let top = beneath::open_entry(&self.session.meta, b".").map_err(failed)?;
        for directory in entries::read_all(&top).map_err(failed)? {
            let at = beneath::open_entry(&self.session.meta, &directory.name).map_err(failed)?;
            for entry in entries::read_all(&at).map_err(failed)? {
                let Ok(fd) = beneath::open_entry(&at, &entry.name) else {
                    continue;
                };
                let (owner, _) = read_owned(fd)?;
                let keep = alive.contains(&owner.session)
                    || current(&owner)?
                        .is_some_and(|version| version.sidecar().1.as_bytes() == entry.name);
                if keep {
                    self.spilled.store(true, Ordering::Relaxed);
                } else {
                    let _ = fs::unlinkat(&at, &entry.name[..], AtFlags::empty());
                }
            }
        }
        Ok(())
    }
}

fn stat(file: impl AsFd) -> Result<Stat> {
    fs::fstat(file).map_err(StoreError::during("reading the status of a file"))
}

fn read_owned(fd: OwnedFd) -> Result<(Owner, Vec<u8>)> {
    let mut content = Vec::new();
    File::from(fd)
        .read_to_end(&mut content)
        .map_err(StoreError::during("reading a metadata file"))?;
    let damaged = |what: &str| StoreError::Corrupt(format!("metadata file: {what}"));
    let end = content
        .iter()
        .position(|b| *b == b'\n')
        .ok_or_else(|| damaged("it has no owner"))?;
    let owner = serde_json::from_slice(&content[..end]).map_err(|e| damaged(&e.to_string()))?;
    content.drain(..=end);
    Ok((owner, content))
}
