//! A store, either in this process or behind a gateway.
//!
//! The methods use the types of `bucketload_store`, so both kinds share the mapping to statuses.

mod embedded;
mod remote;

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use bucketload_gateway::{AccessToken, Address, Client, Options};
use bucketload_store::{
    BucketInfo, Commit, CompletedPart, Condition, Headers, ListRequest, ListUploadsRequest,
    Listing, MultipartOptions, ObjectInfo, PartListing, PosixOptions, PosixStore, PutOptions,
    ReadConditions, Store as _, UploadListing, Written,
};

use crate::reply::Failure;
use crate::status::Status;

/// Bytes passed to a data callback at a time, as in libs3.
pub(crate) const PIECE_BYTES: usize = 64 << 10;

/// Bytes read or written at a time: few system calls, yet within the L2 cache.
const BUFFER_BYTES: usize = 4 * PIECE_BYTES;

thread_local! {
    /// The thread's buffer, unless a running request is using it.
    static BUFFER: Cell<Option<Box<[u8]>>> = const { Cell::new(None) };
}

/// Lends the thread's buffer. A nested request, made by a callback, gets a new buffer.
fn with_buffer<T>(body: impl FnOnce(&mut [u8]) -> T) -> T {
    let mut buffer = BUFFER
        .try_with(Cell::take)
        .ok()
        .flatten()
        .unwrap_or_else(|| vec![0; BUFFER_BYTES].into_boxed_slice());
    let result = body(&mut buffer);
    // Fails if the thread is exiting.
    let _ = BUFFER.try_with(|kept| kept.set(Some(buffer)));
    result
}

/// Result of a request.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// Supplies the bytes of an object: fills the start of a buffer and returns the number of bytes; 0 at
/// the end.
pub(crate) type Source<'a> = dyn FnMut(&mut [u8]) -> Result<usize> + 'a;

/// Receives the bytes of an object.
pub(crate) trait Sink {
    /// Called before the first byte, with the object's information and the number of bytes to follow.
    fn begin(&mut self, info: &ObjectInfo, length: u64) -> Result<()>;

    /// Called with the next bytes, never empty.
    fn data(&mut self, piece: &[u8]) -> Result<()>;
}

/// A range of an object's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    /// Offset of the first byte.
    pub(crate) start: u64,
    /// Number of bytes; 0 means up to the end. If `start` is 0 too, the whole object, even if empty.
    pub(crate) count: u64,
}

/// Identifies a part of an upload.
#[derive(Debug)]
pub(crate) struct PartId<'a> {
    pub(crate) upload_id: &'a str,
    /// From 1.
    pub(crate) number: u32,
}

/// Bucket and key.
pub(crate) type ObjectName<'a> = (&'a str, &'a str);

/// A small request that may be part of a batch.
pub(crate) enum BatchRequest<'a> {
    Put(ObjectName<'a>, &'a [u8], Commit),
    Get(ObjectName<'a>, ReadConditions, Span),
    Head(ObjectName<'a>),
    Delete(ObjectName<'a>),
}

/// The result of a request in a batch.
pub(crate) enum BatchResult {
    Written(Written),
    /// The object and the requested bytes.
    Bytes(ObjectInfo, Vec<u8>),
    /// The bytes are too many for a batch: use [`Backend::get`].
    TooLarge,
    Info(ObjectInfo),
    Deleted,
}

/// A store, or the failure to find one, which is reported when a request runs.
pub(crate) type OpenBackend = Result<Arc<Backend>>;

/// A store with the operations of S3. All calls block and may be made from any thread.
pub(crate) enum Backend {
    /// In a directory, accessed by this process.
    Embedded(PosixStore),
    /// Behind a gateway.
    Remote(Client),
}

/// Makes the same call on either store.
macro_rules! either {
    ($backend:expr, $store:ident => $call:expr) => {
        match $backend {
            Self::Embedded($store) => Ok($call?),
            Self::Remote($store) => Ok($call?),
        }
    };
}

impl Backend {
    /// The store in a directory.
    pub(crate) fn open(options: PosixOptions) -> Result<Self> {
        Ok(Self::Embedded(PosixStore::open(options)?))
    }

    /// A client of the gateway at `address`; the first call connects.
    pub(crate) fn remote(address: Address, token: Option<AccessToken>) -> Self {
        let mut options = Options::new(address);
        options.token = token;
        Self::Remote(Client::new(options))
    }

    /// The same store with a timeout for each call, if it is behind a gateway.
    pub(crate) fn within(&self, limit: Duration) -> Option<Arc<Self>> {
        match self {
            Self::Embedded(_) => None,
            Self::Remote(client) => Some(Arc::new(Self::Remote(client.limited(Some(limit))))),
        }
    }

    /// Whether the store is behind a gateway, where batching saves round trips.
    pub(crate) const fn is_remote(&self) -> bool {
        matches!(self, Self::Remote(_))
    }

    /// Sends a batch of requests and returns their results. They run in order; a failed request does not
    /// stop the others. A store in this process returns no results.
    pub(crate) fn send_batch(&self, requests: Vec<BatchRequest<'_>>) -> Vec<Result<BatchResult>> {
        match self {
            Self::Embedded(_) => Vec::new(),
            Self::Remote(client) => remote::send_batch(client, requests),
        }
    }

    /// All buckets.
    pub(crate) fn buckets(&self) -> Result<Vec<BucketInfo>> {
        either!(self, store => store.list_buckets())
    }

    /// Fails unless the bucket exists.
    pub(crate) fn test_bucket(&self, bucket: &str) -> Result<()> {
        either!(self, store => store.head_bucket(bucket).map(drop))
    }

    pub(crate) fn create_bucket(&self, bucket: &str) -> Result<()> {
        either!(self, store => store.create_bucket(bucket))
    }

    pub(crate) fn delete_bucket(&self, bucket: &str) -> Result<()> {
        either!(self, store => store.delete_bucket(bucket))
    }

    /// One page of keys.
    pub(crate) fn list(&self, bucket: &str, request: &ListRequest<'_>) -> Result<Listing> {
        either!(self, store => store.list(bucket, request))
    }

    /// Writes an object of the size given in `options`.
    pub(crate) fn put(
        &self,
        (bucket, key): ObjectName<'_>,
        options: &PutOptions,
        commit: Commit,
        source: &mut Source<'_>,
    ) -> Result<Written> {
        let (size, md5) = (options.size.unwrap_or(0), options.content_md5);
        match self {
            Self::Embedded(store) => {
                let mut upload = store.put(bucket, key, options)?;
                embedded::fill(&mut *upload, size, source)?;
                Ok(upload.commit(commit)?)
            }
            Self::Remote(client) => {
                let mut body = remote::Body::new(source);
                let written = client.put_from(bucket, key, size, &mut body, md5, commit);
                body.end(written)
            }
        }
    }

    /// Reads an object, subject to conditions.
    pub(crate) fn get(
        &self,
        name: ObjectName<'_>,
        conditions: &Conditions,
        span: Span,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        match self {
            Self::Embedded(store) => embedded::get(store, name, conditions, span, sink),
            Self::Remote(client) => remote::get(client, name, conditions, span, sink),
        }
    }

    pub(crate) fn head(&self, (bucket, key): ObjectName<'_>) -> Result<ObjectInfo> {
        either!(self, store => store.head(bucket, key))
    }

    /// Deletes an object. Succeeds if there is none.
    pub(crate) fn delete(&self, (bucket, key): ObjectName<'_>) -> Result<()> {
        match self {
            Self::Embedded(store) => store.delete(bucket, key, &Condition::None)?,
            Self::Remote(client) => client.delete(bucket, key, Condition::None)?,
        };
        Ok(())
    }

    /// Copies an object, with `headers` or its own headers.
    pub(crate) fn copy(
        &self,
        from: ObjectName<'_>,
        to: ObjectName<'_>,
        headers: Option<Headers>,
    ) -> Result<Written> {
        match self {
            Self::Embedded(store) => {
                let source = store.open(from.0, from.1)?;
                let info = source.info();
                let commit = Commit {
                    headers: headers.unwrap_or_else(|| info.headers.clone()),
                    checksums: info.checksums.clone(),
                    tags: info.tags.clone(),
                    condition: Condition::None,
                };
                Ok(store.copy(&source, to.0, to.1, commit)?)
            }
            Self::Remote(client) => {
                let commit = headers.map(|headers| Commit {
                    headers,
                    ..Commit::default()
                });
                let always = ReadConditions::default();
                Ok(client.copy(from.0, from.1, always, to.0, to.1, commit)?)
            }
        }
    }

    /// Starts a multipart upload and returns its id.
    pub(crate) fn create_upload(
        &self,
        (bucket, key): ObjectName<'_>,
        headers: Headers,
    ) -> Result<String> {
        let options = MultipartOptions {
            headers,
            ..MultipartOptions::default()
        };
        either!(self, store => store.create_multipart(bucket, key, options))
    }

    pub(crate) fn put_part(
        &self,
        (bucket, key): ObjectName<'_>,
        part: &PartId<'_>,
        options: &PutOptions,
        source: &mut Source<'_>,
    ) -> Result<Written> {
        let (size, md5) = (options.size.unwrap_or(0), options.content_md5);
        let (id, number) = (part.upload_id, part.number);
        match self {
            Self::Embedded(store) => {
                let mut upload = store.upload_part(bucket, key, id, number, options)?;
                embedded::fill(&mut *upload, size, source)?;
                Ok(upload.commit(Vec::new())?)
            }
            Self::Remote(client) => {
                let mut body = remote::Body::new(source);
                let body_of = &mut body;
                let written = client.upload_part_from(bucket, key, id, number, size, body_of, md5);
                body.end(written)
            }
        }
    }

    /// Copies a range of an object to a part.
    pub(crate) fn copy_part(
        &self,
        from: ObjectName<'_>,
        span: Span,
        (bucket, key): ObjectName<'_>,
        part: &PartId<'_>,
    ) -> Result<Written> {
        let (id, number) = (part.upload_id, part.number);
        match self {
            Self::Embedded(store) => {
                let source = store.open(from.0, from.1)?;
                let range = embedded::resolve(span, source.info().size)?;
                Ok(store.copy_part(&source, range, bucket, key, id, number)?)
            }
            Self::Remote(client) => {
                let range = remote::range(span);
                Ok(client.copy_part(from.0, from.1, range, bucket, key, id, number)?)
            }
        }
    }

    pub(crate) fn complete_upload(
        &self,
        (bucket, key): ObjectName<'_>,
        upload_id: &str,
        parts: &[CompletedPart],
    ) -> Result<Written> {
        let always = Condition::None;
        Ok(match self {
            Self::Embedded(store) => {
                store.complete_multipart(bucket, key, upload_id, parts, Vec::new(), &always)?
            }
            Self::Remote(client) => {
                client.complete_multipart(bucket, key, upload_id, parts, always)?
            }
        })
    }

    pub(crate) fn abort_upload(
        &self,
        (bucket, key): ObjectName<'_>,
        upload_id: &str,
    ) -> Result<()> {
        either!(self, store => store.abort_multipart(bucket, key, upload_id))
    }

    pub(crate) fn parts(
        &self,
        (bucket, key): ObjectName<'_>,
        upload_id: &str,
        marker: u32,
        max_parts: usize,
    ) -> Result<PartListing> {
        either!(self, store => store.list_parts(bucket, key, upload_id, marker, max_parts))
    }

    pub(crate) fn uploads(
        &self,
        bucket: &str,
        request: &ListUploadsRequest<'_>,
    ) -> Result<UploadListing> {
        either!(self, store => store.list_uploads(bucket, request))
    }
}

/// Conditions of a read.
#[derive(Debug, Default)]
pub(crate) struct Conditions {
    pub(crate) read: ReadConditions,
    /// The tag that must match is not one that the store could have issued.
    pub(crate) never: bool,
}

/// The failure if the conditions of a read do not hold.
fn condition_failed() -> Failure {
    Failure::new(
        Status::ErrorPreconditionFailed,
        "at least one of the conditions does not hold",
    )
}
