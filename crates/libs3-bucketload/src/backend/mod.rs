//! Where objects are: one type for a store in this process and one behind a gateway.
//!
//! The calls take and give the store's own types, so that statuses are derived once for all.

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

/// Bytes that a data callback is offered at a time: as many as libs3 offers.
pub(crate) const PIECE_BYTES: usize = 64 << 10;

/// Bytes that go to the store, or come from it, at a time: fewer system calls, and still in the
/// processor's second cache.
const BUFFER_BYTES: usize = 4 * PIECE_BYTES;

thread_local! {
    /// The buffer of the thread, unless a request that is under way has it.
    static BUFFER: Cell<Option<Box<[u8]>>> = const { Cell::new(None) };
}

/// Lends the thread's buffer. A request that a callback makes meanwhile gets another.
fn with_buffer<T>(body: impl FnOnce(&mut [u8]) -> T) -> T {
    let mut buffer = BUFFER
        .try_with(Cell::take)
        .ok()
        .flatten()
        .unwrap_or_else(|| vec![0; BUFFER_BYTES].into_boxed_slice());
    let result = body(&mut buffer);
    // A thread that is ending has no place for it any more.
    let _ = BUFFER.try_with(|kept| kept.set(Some(buffer)));
    result
}

/// Result of a request.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// Gives the bytes of an object: fills the beginning of a buffer and returns how much; 0 ends.
pub(crate) type Source<'a> = dyn FnMut(&mut [u8]) -> Result<usize> + 'a;

/// Takes the bytes of an object.
pub(crate) trait Sink {
    /// Before the first byte: what the object is, and how many bytes of it follow.
    fn begin(&mut self, info: &ObjectInfo, length: u64) -> Result<()>;

    /// The next bytes, never none.
    fn data(&mut self, piece: &[u8]) -> Result<()>;
}

/// Which bytes of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    /// The first.
    pub(crate) start: u64,
    /// How many; 0 for all to the end. With `start` 0 that is the whole object, even an empty one.
    pub(crate) count: u64,
}

/// Which part of which upload.
#[derive(Debug)]
pub(crate) struct PartOf<'a> {
    pub(crate) upload_id: &'a str,
    /// From 1.
    pub(crate) number: u32,
}

/// Bucket and key.
pub(crate) type Place<'a> = (&'a str, &'a str);

/// A request that may be sent together with others: what it moves is small.
pub(crate) enum Small<'a> {
    Put(Place<'a>, &'a [u8], Commit),
    Get(Place<'a>, ReadConditions, Span),
    Head(Place<'a>),
    Delete(Place<'a>),
}

/// The answer to it.
pub(crate) enum Answer {
    Written(Written),
    /// The object, and the bytes of it that were asked for.
    Bytes(ObjectInfo, Vec<u8>),
    /// These are more than an answer among others holds: ask by [`Backend::get`].
    TooLarge,
    Info(ObjectInfo),
    Deleted,
}

/// A store. Its calls are those of S3; all block, and may be made from any thread.
pub(crate) enum Backend {
    /// In a directory, by this process.
    Embedded(PosixStore),
    /// Behind a gateway.
    Remote(Client),
}

/// Makes the same call of either store.
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

    /// The same with a limit on the time of each call, for one that may wait for another process.
    pub(crate) fn within(&self, limit: Duration) -> Option<Arc<Self>> {
        match self {
            Self::Embedded(_) => None,
            Self::Remote(client) => Some(Arc::new(Self::Remote(client.limited(Some(limit))))),
        }
    }

    /// Whether requests that are sent together wait less than one after the other.
    pub(crate) const fn is_far(&self) -> bool {
        matches!(self, Self::Remote(_))
    }

    /// Sends requests together, which are performed in their order, and returns their answers. One that fails does
    /// not keep the others from being performed. None are returned by a store that is not far.
    pub(crate) fn together(&self, asked: Vec<Small<'_>>) -> Vec<Result<Answer>> {
        match self {
            Self::Embedded(_) => Vec::new(),
            Self::Remote(client) => remote::together(client, asked),
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

    /// Writes an object of the size that `options` announce.
    pub(crate) fn put(
        &self,
        (bucket, key): Place<'_>,
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

    /// Reads an object under conditions.
    pub(crate) fn get(
        &self,
        place: Place<'_>,
        conditions: &Conditions,
        span: Span,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        match self {
            Self::Embedded(store) => embedded::get(store, place, conditions, span, sink),
            Self::Remote(client) => remote::get(client, place, conditions, span, sink),
        }
    }

    pub(crate) fn head(&self, (bucket, key): Place<'_>) -> Result<ObjectInfo> {
        either!(self, store => store.head(bucket, key))
    }

    /// Deletes an object; none is no failure.
    pub(crate) fn delete(&self, (bucket, key): Place<'_>) -> Result<()> {
        match self {
            Self::Embedded(store) => store.delete(bucket, key, &Condition::None)?,
            Self::Remote(client) => client.delete(bucket, key, Condition::None)?,
        };
        Ok(())
    }

    /// Copies an object, with new headers or its own.
    pub(crate) fn copy(
        &self,
        from: Place<'_>,
        to: Place<'_>,
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

    /// Begins a multipart upload; returns its identity.
    pub(crate) fn create_upload(
        &self,
        (bucket, key): Place<'_>,
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
        (bucket, key): Place<'_>,
        part: &PartOf<'_>,
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

    /// Makes bytes of an object a part.
    pub(crate) fn copy_part(
        &self,
        from: Place<'_>,
        span: Span,
        (bucket, key): Place<'_>,
        part: &PartOf<'_>,
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
        (bucket, key): Place<'_>,
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

    pub(crate) fn abort_upload(&self, (bucket, key): Place<'_>, upload_id: &str) -> Result<()> {
        either!(self, store => store.abort_multipart(bucket, key, upload_id))
    }

    pub(crate) fn parts(
        &self,
        (bucket, key): Place<'_>,
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
    /// The tag that must match is none that the store can have given.
    pub(crate) never: bool,
}

impl Conditions {
    /// The failure when they do not hold.
    fn unmet(&self) -> Failure {
        Failure::new(
            Status::ErrorPreconditionFailed,
            "at least one of the conditions does not hold",
        )
    }
}
