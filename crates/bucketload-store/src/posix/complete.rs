//! Completes multipart uploads, and receives their parts.
//!
//! The completion copies the parts into one file inside the kernel (sharing blocks where the file
//! system can); a single part becomes the object by a hard link.

use std::fs::File;
use std::os::fd::BorrowedFd;

use super::beneath;
use super::escape::Place;
use super::intake::{Finished, Intake, copy_in_kernel};
use super::multipart::{Upload, failed};
use super::temporary::Temporary;
use crate::api::{PartUpload, Write};
use crate::error::{Result, StoreError};
use crate::multipart::check_completion;
use crate::types::{Checksum, Commit, Condition, Written};
use crate::upload_types::{CompletedPart, PartInfo};

impl Upload {
    pub(super) fn complete(
        self,
        bucket: &str,
        named: &[CompletedPart],
        checksums: Vec<Checksum>,
        condition: &Condition,
    ) -> Result<Written> {
        let guard = self.lock();
        let parts = self.parts()?;
        let find = |number| {
            let at = parts
                .binary_search_by_key(&number, |(info, _)| info.number)
                .ok()?;
            Some(&parts[at])
        };
        let minimum = self.inner.options.min_part_bytes;
        let assembly = check_completion(named, minimum, |number| {
            find(number).map(|(info, _)| info.clone())
        })?;
        let contents: Vec<_> = named.iter().filter_map(|part| find(part.number)).collect();
        let temporary = self.assemble(&contents)?;
        let finished = Finished::assembled(&self.inner, temporary, assembly.size, assembly.etag)?;
        let commit = Commit {
            headers: self.description.options.headers.clone(),
            checksums,
            tags: self.description.options.tags.clone(),
            condition: condition.clone(),
        };
        let key = &*self.description.key;
        let place = Place::of(bucket, key);
        let written = finished.publish(&place, None, commit, assembly.parts)?;
        drop(guard);
        // The object is there: the upload being removed by another is no failure.
        match self.remove() {
            Ok(()) | Err(StoreError::NoSuchUpload) => Ok(written),
            Err(error) => Err(error),
        }
    }

    fn assemble(&self, contents: &[&(PartInfo, String)]) -> Result<Temporary> {
        let session = &self.inner.tree.session;
        if let [(_, content)] = contents
            && let Some(linked) = Temporary::link(session, &self.directory, content)?
        {
            return Ok(linked);
        }
        let mut temporary = Temporary::create(session)?;
        for (info, content) in contents {
            let fd = beneath::open_entry(&self.directory, content.as_bytes())
                .map_err(failed("reading a part"))?;
            let done = copy_in_kernel(&fd, &(0..info.size), &temporary.file)?;
            if done < info.size {
                let mut rest = File::from(fd);
                let copied = std::io::Seek::seek(&mut rest, std::io::SeekFrom::Start(done))
                    .and_then(|_| std::io::copy(&mut rest, &mut temporary.file))
                    .map_err(|e| StoreError::system("assembling an object", e))?;
                if done + copied != info.size {
                    return Err(StoreError::Corrupt(format!("part {} is cut", info.number)));
                }
            }
        }
        Ok(temporary)
    }
}

/// A part being written.
pub(super) struct PosixPart {
    upload: Upload,
    intake: Intake,
    number: u32,
}

impl PosixPart {
    pub(super) const fn new(upload: Upload, intake: Intake, number: u32) -> Self {
        Self {
            upload,
            intake,
            number,
        }
    }
}

impl Write for PosixPart {
    fn write(&mut self, data: &[u8]) -> Result<()> {
        self.intake.write(data)
    }

    fn written(&self) -> u64 {
        self.intake.written()
    }

    fn file(&mut self) -> Option<BorrowedFd<'_>> {
        self.intake.file()
    }

    fn appended(&mut self, count: u64) -> Result<()> {
        self.intake.appended(count)
    }
}

impl PartUpload for PosixPart {
    fn commit(self: Box<Self>, checksums: Vec<Checksum>) -> Result<Written> {
        let Self {
            upload,
            intake,
            number,
        } = *self;
        upload.put_part(number, intake.finish(None)?, checksums)
    }
}
