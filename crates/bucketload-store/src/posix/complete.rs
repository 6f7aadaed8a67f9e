//! Completing multipart uploads, and receiving their parts.
//!
//! A completion copies the parts into one file within the kernel, sharing blocks if the file system
//! can. A single part becomes the object through a hard link.

use std::fs::File;

use super::beneath;
use super::escape::ObjectPath;
use super::multipart::{Upload, failed};
use super::receive::{FinishedFile, PosixUpload, copy_in_kernel};
use super::temporary::Temporary;
use crate::api::PartUpload;
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
        let finished =
            FinishedFile::assembled(&self.inner, temporary, assembly.size, assembly.etag)?;
        let commit = Commit {
            headers: self.description.options.headers.clone(),
            checksums,
            tags: self.description.options.tags.clone(),
            condition: condition.clone(),
        };
        let key = &*self.description.key;
        let object = ObjectPath::of(bucket, key);
        let written = finished.publish(&object, None, commit, assembly.parts)?;
        drop(guard);
        // The object exists, so it does not matter if another thread has removed the upload.
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
                    .map_err(StoreError::during("assembling an object"))?;
                if done + copied != info.size {
                    let number = info.number;
                    return Err(StoreError::Corrupt(format!("part {number} is truncated")));
                }
            }
        }
        Ok(temporary)
    }
}

/// The target of a part upload.
pub(super) struct NewPart {
    pub(super) upload: Upload,
    pub(super) number: u32,
}

impl PartUpload for PosixUpload<NewPart> {
    fn commit(self: Box<Self>, checksums: Vec<Checksum>) -> Result<Written> {
        let NewPart { upload, number } = self.to;
        upload.put_part(number, self.receiver.finish(None)?, checksums)
    }
}
