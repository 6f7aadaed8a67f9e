//! A PUT of an archive whose files become objects: `X-Amz-Meta-Snowball-Auto-Extract: true`, as MinIO has it. Files are
//! stored as they arrive, so memory is bounded, and those before an error stay.

use md5::{Digest as _, Md5};

use super::{Ctx, metadata};
use crate::error::{Code, S3Error, S3Result};
use crate::headers::{Headers, Name};
use crate::tar::{Entries, Tar};
use bucketload_store::{Commit, Headers as Stored, ObjectUpload, PutOptions, Store, Tags};

/// Names of the options among the user metadata.
const PREFIX: &str = "minio-snowball-prefix";
const IGNORE_DIRECTORIES: &str = "minio-snowball-ignore-dirs";
const IGNORE_ERRORS: &str = "minio-snowball-ignore-errors";

/// An archive being received.
pub(crate) struct Archive {
    tar: Tar,
    files: Files,
    /// The MD5 of the body so far, and what it must be.
    md5: Option<(Md5, [u8; 16])>,
}

/// Where the files go.
struct Files {
    /// What every key begins with: empty, or with a slash at the end.
    prefix: String,
    ignore_directories: bool,
    ignore_errors: bool,
    headers: Stored,
    tags: Tags,
    /// The file being received; `None` if it could not be stored.
    upload: Option<Box<dyn ObjectUpload>>,
}

/// Whether the body of a PUT is an archive to extract.
pub(crate) fn is_meant(headers: &Headers<'_, '_>) -> bool {
    let value = headers.bytes(Name::SnowballAutoExtract);
    value.is_some_and(|value| value.eq_ignore_ascii_case(b"true"))
}

impl Archive {
    /// Begins an archive. Storage class, encryption and tags of the request are those of every object; its
    /// user metadata are about the archive.
    ///
    /// # Errors
    /// As those of a PUT, and `NotImplemented` for conditions.
    pub(crate) fn start(
        ctx: &Ctx<'_>,
        headers: &Headers<'_, '_>,
        content_md5: Option<[u8; 16]>,
    ) -> S3Result<Self> {
        if headers.has(Name::IfMatch) || headers.has(Name::IfNoneMatch) {
            return Err(S3Error::new(
                Code::NotImplemented,
                "An archive to extract takes no conditions.",
            ));
        }
        ctx.require_bucket()?;
        let mut stored = metadata::of_new(ctx, headers)?;
        let options = std::mem::take(&mut stored.user);
        stored.content_type = None;
        let option = |name: &str| {
            let found = options.iter().find(|(other, _)| other == name);
            found.map_or("", |(_, value)| value.as_str())
        };
        let is_set = |name| option(name).eq_ignore_ascii_case("true");
        let prefix = clean(option(PREFIX))?;
        Ok(Self {
            tar: Tar::default(),
            files: Files {
                prefix: match prefix.is_empty() {
                    true => prefix,
                    false => prefix + "/",
                },
                ignore_directories: is_set(IGNORE_DIRECTORIES),
                ignore_errors: is_set(IGNORE_ERRORS),
                headers: stored,
                tags: metadata::tags(headers)?,
                upload: None,
            },
            md5: content_md5.map(|wanted| (Md5::new(), wanted)),
        })
    }

    /// Stores what the next bytes hold in `bucket`.
    ///
    /// # Errors
    /// `InvalidRequest` for what is not an archive, and the store's, unless errors are to be ignored.
    pub(crate) fn write(&mut self, store: &dyn Store, bucket: &str, bytes: &[u8]) -> S3Result<()> {
        if let Some((md5, _)) = &mut self.md5 {
            md5.update(bytes);
        }
        let files = &mut self.files;
        let mut into = Receiver {
            store,
            bucket,
            files,
        };
        self.tar.read(bytes, &mut into)
    }

    /// Ends the archive.
    ///
    /// # Errors
    /// `BadDigest`, and `IncompleteBody` if it ends within a file.
    pub(crate) fn finish(self) -> S3Result<()> {
        if let Some((md5, wanted)) = self.md5
            && <[u8; 16]>::from(md5.finalize()) != wanted
        {
            return Err(Code::BadDigest.into());
        }
        self.tar.finish()
    }
}

/// `path` without empty components and dots.
///
/// # Errors
/// `InvalidArgument` for a path that leads upwards.
fn clean(path: &str) -> S3Result<String> {
    let mut clean = String::with_capacity(path.len());
    for name in path.split('/').filter(|name| !matches!(*name, "" | ".")) {
        if name == ".." {
            return Err(S3Error::new(
                Code::InvalidArgument,
                "A path in the archive leads upwards (..).",
            ));
        }
        if !clean.is_empty() {
            clean.push('/');
        }
        clean.push_str(name);
    }
    Ok(clean)
}

/// The receiver of the entries, for one piece of the body.
struct Receiver<'a> {
    store: &'a dyn Store,
    bucket: &'a str,
    files: &'a mut Files,
}

impl Receiver<'_> {
    fn begin(&mut self, path: &str, end: &str, size: u64) -> S3Result<()> {
        let begun = clean(path).and_then(|path| {
            let key = [&self.files.prefix, &*path, end].concat();
            Ok(self
                .store
                .put(self.bucket, &key, &PutOptions::sized(size))?)
        });
        self.files.upload = self.tolerated(begun)?;
        Ok(())
    }

    /// The value, or `None` for an error that is to be ignored.
    fn tolerated<T>(&self, outcome: S3Result<T>) -> S3Result<Option<T>> {
        match outcome {
            Ok(value) => Ok(Some(value)),
            Err(_) if self.files.ignore_errors => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Entries for Receiver<'_> {
    fn file(&mut self, path: &str, size: u64) -> S3Result<()> {
        self.begin(path, "", size)
    }

    fn data(&mut self, bytes: &[u8]) -> S3Result<()> {
        let Some(upload) = &mut self.files.upload else {
            return Ok(());
        };
        let written = upload.write(bytes).map_err(S3Error::from);
        if self.tolerated(written)?.is_none() {
            self.files.upload = None;
        }
        Ok(())
    }

    fn end(&mut self) -> S3Result<()> {
        let Some(upload) = self.files.upload.take() else {
            return Ok(());
        };
        let commit = Commit {
            headers: self.files.headers.clone(),
            tags: self.files.tags.clone(),
            ..Commit::default()
        };
        let written = upload.commit(commit).map_err(S3Error::from);
        self.tolerated(written).map(drop)
    }

    fn directory(&mut self, path: &str) -> S3Result<()> {
        if self.files.ignore_directories {
            return Ok(());
        }
        self.begin(path, "/", 0)?;
        self.end()
    }
}
