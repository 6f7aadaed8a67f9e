//! Where objects are: one interface for a store in this process and one behind a gateway.
//!
//! The calls take and give the store's own types, so that statuses are derived once for all.

mod embedded;
mod remote;

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use bucketload_store::{
    BucketInfo, Commit, CompletedPart, Headers, ListRequest, ListUploadsRequest, Listing,
    ObjectInfo, PartListing, PutOptions, ReadConditions, UploadListing, Written,
};

pub(crate) use embedded::Embedded;
pub(crate) use remote::Remote;

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

/// S3 calls. All block, and may be made from any thread.
pub(crate) trait Backend: Send + Sync {
    /// The same with a limit on the time of each call, for one that may wait for another process.
    fn within(&self, limit: Duration) -> Option<Arc<dyn Backend>> {
        let _ = limit;
        None
    }
    /// Itself, where requests that are sent together wait less than one after the other.
    fn far(&self) -> Option<&dyn Far> {
        None
    }
    /// All buckets.
    fn buckets(&self) -> Result<Vec<BucketInfo>>;
    /// Fails unless the bucket exists.
    fn test_bucket(&self, bucket: &str) -> Result<()>;
    fn create_bucket(&self, bucket: &str) -> Result<()>;
    fn delete_bucket(&self, bucket: &str) -> Result<()>;
    /// One page of keys.
    fn list(&self, bucket: &str, request: &ListRequest<'_>) -> Result<Listing>;
    /// Writes an object of the size that `options` announce.
    fn put(
        &self,
        place: Place<'_>,
        options: &PutOptions,
        commit: Commit,
        source: &mut Source<'_>,
    ) -> Result<Written>;
    /// Reads an object under conditions.
    fn get(
        &self,
        place: Place<'_>,
        conditions: &Conditions,
        span: Span,
        sink: &mut dyn Sink,
    ) -> Result<()>;
    fn head(&self, place: Place<'_>) -> Result<ObjectInfo>;
    /// Deletes an object; none is no failure.
    fn delete(&self, place: Place<'_>) -> Result<()>;
    /// Copies an object, with new headers or its own.
    fn copy(&self, from: Place<'_>, to: Place<'_>, headers: Option<Headers>) -> Result<Written>;
    /// Begins a multipart upload; returns its identity.
    fn create_upload(&self, place: Place<'_>, headers: Headers) -> Result<String>;
    fn put_part(
        &self,
        place: Place<'_>,
        part: &PartOf<'_>,
        options: &PutOptions,
        source: &mut Source<'_>,
    ) -> Result<Written>;
    /// Makes bytes of an object a part.
    fn copy_part(
        &self,
        from: Place<'_>,
        span: Span,
        place: Place<'_>,
        part: &PartOf<'_>,
    ) -> Result<Written>;
    fn complete_upload(
        &self,
        place: Place<'_>,
        upload_id: &str,
        parts: &[CompletedPart],
    ) -> Result<Written>;
    fn abort_upload(&self, place: Place<'_>, upload_id: &str) -> Result<()>;
    fn parts(
        &self,
        place: Place<'_>,
        upload_id: &str,
        marker: u32,
        max_parts: usize,
    ) -> Result<PartListing>;
    fn uploads(&self, bucket: &str, request: &ListUploadsRequest<'_>) -> Result<UploadListing>;
}

/// A store behind a connection.
pub(crate) trait Far {
    /// Sends requests together, which are performed in their order, and returns their answers. One that fails does
    /// not keep the others from being performed.
    fn together(&self, asked: Vec<Small<'_>>) -> Vec<Result<Answer>>;
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
        Status::ErrorPreconditionFailed.because("at least one of the conditions does not hold")
    }
}
