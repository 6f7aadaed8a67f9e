//! Multipart uploads: directories in the hidden area.
//!
//! ```text
//! uploads/BUCKET/UPLOAD-ID/upload.json   key, headers, tags
//! uploads/BUCKET/UPLOAD-ID/dNNN          content of a part
//! uploads/BUCKET/UPLOAD-ID/00007.json    part 7: name of its content file, tag and checksums
//! ```
//!
//! The rename of its description makes a part visible, so replacing a part is atomic too. `complete`
//! assembles the object.

use std::fs::File;
use std::io::{Read, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::SystemTime;

use rustix::fs::{self, AtFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::Inner;
use super::beneath;
use super::entries::{self, Kind};
use super::receive::FinishedFile;
use super::record::{from_nanos, to_nanos};
use super::temporary::{Scratch, Temporary};
use crate::error::{Result, StoreError};
use crate::multipart::{is_upload_id, new_upload_id, page_parts};
use crate::types::{Checksum, Written};
use crate::upload_types::{MultipartOptions, PartInfo, PartListing, UploadInfo};

const DESCRIPTION: &str = "upload.json";

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct UploadFile {
    pub(super) key: String,
    initiated: i64,
    pub(super) options: MultipartOptions,
}

#[derive(Debug, Serialize, Deserialize)]
struct PartFile {
    content: String,
    size: u64,
    etag: String,
    modified: i64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    checksums: Vec<Checksum>,
}

pub(super) fn failed(context: &'static str) -> impl Fn(Errno) -> StoreError {
    move |error| match error {
        // The directory of the upload is gone: completed or aborted.
        Errno::NOENT => StoreError::NoSuchUpload,
        error => StoreError::system(context, error),
    }
}

fn read_json<T: for<'de> Deserialize<'de>>(fd: OwnedFd) -> Result<T> {
    let mut text = Vec::new();
    File::from(fd)
        .read_to_end(&mut text)
        .map_err(StoreError::during("reading a multipart upload"))?;
    serde_json::from_slice(&text)
        .map_err(|e| StoreError::Corrupt(format!("description of a multipart upload: {e}")))
}

fn write_json(inner: &Inner, value: &impl Serialize) -> Result<Scratch> {
    let text = serde_json::to_vec(value).expect("descriptions always serialise");
    let mut temporary = Temporary::create(&inner.tree.session)?;
    temporary
        .file
        .write_all(&text)
        .map_err(StoreError::during("writing a multipart upload"))?;
    temporary.close()
}

/// Starts an upload in an existing bucket.
pub(super) fn create(
    inner: &Inner,
    bucket: &str,
    key: &str,
    options: MultipartOptions,
) -> Result<String> {
    let session = &inner.tree.session;
    let id = new_upload_id();
    let upload = UploadFile {
        key: key.to_owned(),
        initiated: to_nanos(SystemTime::now()),
        options,
    };
    let mut description = write_json(inner, &upload)?;
    let scratch = session.scratch_name();
    let mut attempt = || -> rustix::io::Result<()> {
        beneath::create_directory(session.scratch(), scratch.as_bytes())?;
        let directory = beneath::anchor_entry(session.scratch(), scratch.as_bytes())?;
        description.rename(&directory, DESCRIPTION)?;
        loop {
            beneath::ensure_directory(&session.uploads, bucket.as_bytes())?;
            let bucket = beneath::anchor_entry(&session.uploads, bucket.as_bytes())?;
            match fs::renameat(session.scratch(), &scratch[..], bucket, &id[..]) {
                // The directory was removed with the bucket, which may already exist again.
                Err(Errno::NOENT) => {}
                result => return result,
            }
        }
    };
    attempt().map_err(StoreError::during("creating a multipart upload"))?;
    // If the bucket was deleted meanwhile, so was this upload.
    super::buckets::check(&inner.tree, bucket)?;
    Ok(id)
}

/// All uploads of a bucket, sorted by key and creation.
pub(super) fn all(inner: &Inner, bucket: &str) -> Result<Vec<UploadInfo>> {
    let failed = StoreError::during("listing the uploads");
    let directory = match beneath::open_entry(&inner.tree.session.uploads, bucket.as_bytes()) {
        Ok(directory) => directory,
        Err(Errno::NOENT) => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut uploads = Vec::new();
    let entries = entries::read_all(&directory).map_err(failed)?;
    for entry in entries
        .into_iter()
        .filter(|entry| entry.kind == Kind::Directory)
    {
        let upload_id = String::from_utf8_lossy(&entry.name).into_owned();
        let description = beneath::anchor_entry(&directory, &entry.name)
            .and_then(|at| beneath::open_entry(at, DESCRIPTION.as_bytes()));
        match description {
            Ok(fd) => uploads.push(read_json::<UploadFile>(fd)?.info(&upload_id)),
            Err(Errno::NOENT) => {}
            Err(error) => return Err(failed(error)),
        }
    }
    uploads.sort_unstable_by(|a, b| (&a.key, &a.upload_id).cmp(&(&b.key, &b.upload_id)));
    Ok(uploads)
}

impl UploadFile {
    fn info(&self, upload_id: &str) -> UploadInfo {
        UploadInfo {
            key: self.key.clone(),
            upload_id: upload_id.to_owned(),
            initiated: from_nanos(self.initiated),
            checksum: self.options.checksum,
            storage_class: self.options.headers.storage_class().map(str::to_owned),
        }
    }
}

/// An upload in progress.
pub(super) struct Upload {
    pub(super) inner: Arc<Inner>,
    pub(super) directory: OwnedFd,
    /// The directory of the bucket's uploads.
    above: OwnedFd,
    id: String,
    pub(super) description: UploadFile,
}

impl Upload {
    pub(super) fn open(inner: &Arc<Inner>, bucket: &str, key: &str, id: &str) -> Result<Self> {
        super::buckets::check(&inner.tree, bucket)?;
        // The id becomes part of a path.
        if !is_upload_id(id) {
            return Err(StoreError::NoSuchUpload);
        }
        let open = || -> rustix::io::Result<_> {
            let above = beneath::anchor_entry(&inner.tree.session.uploads, bucket.as_bytes())?;
            let directory = beneath::anchor_entry(&above, id.as_bytes())?;
            let description = beneath::open_entry(&directory, DESCRIPTION.as_bytes())?;
            Ok((above, directory, description))
        };
        let (above, directory, fd) = open().map_err(failed("opening a multipart upload"))?;
        let description: UploadFile = read_json(fd)?;
        if description.key != key {
            return Err(StoreError::NoSuchUpload);
        }
        let (inner, id) = (Arc::clone(inner), id.to_owned());
        Ok(Self {
            inner,
            directory,
            above,
            id,
            description,
        })
    }

    fn part_name(number: u32) -> String {
        format!("{number:05}.json")
    }

    fn read_part(&self, number: u32) -> Result<Option<PartFile>> {
        match beneath::open_entry(&self.directory, Self::part_name(number).as_bytes()) {
            Ok(fd) => read_json(fd).map(Some),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(StoreError::system("reading a part", error)),
        }
    }

    /// Serialises changes to the upload within this process.
    pub(super) fn lock(&self) -> std::sync::MutexGuard<'_, ()> {
        self.inner.tree.uploads.lock(self.id.as_bytes())
    }

    /// Makes a complete file a part, replacing an earlier part with this number.
    pub(super) fn put_part(
        &self,
        number: u32,
        finished: FinishedFile,
        checksums: Vec<Checksum>,
    ) -> Result<Written> {
        finished.sync()?;
        let written = finished.written();
        let content = format!("d{}", new_upload_id());
        let part = PartFile {
            content: content.clone(),
            size: written.size,
            etag: written.etag.to_string(),
            modified: to_nanos(written.modified),
            checksums,
        };
        let mut description = write_json(&self.inner, &part)?;
        let _guard = self.lock();
        let replaced = self.read_part(number)?;
        let failed = failed("writing a part");
        let mut file = finished.temporary.close()?;
        file.rename(&self.directory, &content).map_err(&failed)?;
        description
            .rename(&self.directory, &Self::part_name(number))
            .map_err(&failed)?;
        self.inner.tree.sync_if_wanted(&self.directory)?;
        if let Some(replaced) = replaced {
            // If this fails, the file is removed with the upload.
            let _ = fs::unlinkat(&self.directory, &replaced.content[..], AtFlags::empty());
        }
        Ok(written)
    }

    /// The parts, sorted by number, with the names of their content files.
    pub(super) fn parts(&self) -> Result<Vec<(PartInfo, String)>> {
        let readable =
            beneath::open_entry(&self.directory, b".").map_err(failed("reading the parts"))?;
        let mut numbers = Vec::new();
        entries::for_each(&readable, |name, _| {
            let number = std::str::from_utf8(name)
                .ok()
                .and_then(|n| n.strip_suffix(".json"));
            numbers.extend(number.and_then(|n| n.parse::<u32>().ok()));
            true
        })
        .map_err(failed("reading the parts"))?;
        numbers.sort_unstable();
        let mut parts = Vec::with_capacity(numbers.len());
        for number in numbers {
            let Some(part) = self.read_part(number)? else {
                continue;
            };
            let etag = part
                .etag
                .parse()
                .map_err(|_| StoreError::Corrupt(format!("entity tag of part {number}")))?;
            let info = PartInfo {
                number,
                size: part.size,
                etag,
                modified: from_nanos(part.modified),
                checksums: part.checksums,
            };
            parts.push((info, part.content));
        }
        Ok(parts)
    }

    pub(super) fn list(&self, marker: u32, max_parts: usize) -> Result<PartListing> {
        let parts = self.parts()?;
        let after = parts
            .iter()
            .map(|(info, _)| info)
            .filter(|info| info.number > marker);
        Ok(page_parts(
            self.description.info(&self.id),
            after,
            max_parts,
        ))
    }

    /// Discards the upload: one rename makes it vanish, then its files are removed.
    pub(super) fn remove(self) -> Result<()> {
        let session = &self.inner.tree.session;
        let scratch = session.scratch_name();
        let _guard = self.lock();
        fs::renameat(&self.above, &self.id[..], session.scratch(), &scratch[..])
            .map_err(failed("removing an upload"))?;
        beneath::remove_tree(session.scratch().as_fd(), scratch.as_bytes())
            .map_err(failed("removing an upload"))
    }
}
