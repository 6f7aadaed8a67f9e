//! Requests without a body, performed on the store.

use std::ops::Range;

use bucketload_store::{
    Commit, CompletedPart, ListRequest, ListUploadsRequest, Object, ReadConditions, ReadDecision,
    Result, Store, StoreError, Written,
};

use super::accept::ServerState;
use super::body::send_object;
use super::connection::ConnectionEnd;
use super::replies::ReplyBuffer;
use crate::protocol::codec::Value;
use crate::protocol::request::{ByteRange, Name, ReadMode, Request, UploadName};
use crate::protocol::values::Buckets;
use crate::protocol::{MAX_PAGE, Outcome};
use crate::socket::Socket;

/// The protocol does not carry a checksum of the whole object.
const NO_CHECKSUMS: Vec<bucketload_store::Checksum> = Vec::new();

/// Appends the answer to a request without a body in its reply.
pub(super) fn push<T: for<'d> Value<'d>>(
    replies: &mut ReplyBuffer,
    sequence: u32,
    result: &Result<T>,
) {
    match result {
        Ok(value) => replies.push(Outcome::Done, sequence, 0, |out| value.put(out)),
        Err(error) => push_error(replies, sequence, error),
    }
}

/// Appends the answer to a failed request.
pub(super) fn push_error(replies: &mut ReplyBuffer, sequence: u32, error: &StoreError) {
    replies.push(Outcome::Failed, sequence, 0, |out| error.put(out));
}

/// Performs a request and appends its answer.
pub(super) fn answer(
    state: &ServerState,
    socket: &Socket,
    replies: &mut ReplyBuffer,
    sequence: u32,
    request: Request<'_>,
) -> std::result::Result<(), ConnectionEnd> {
    let store = &*state.store;
    match request {
        Request::ListBuckets => {
            push(replies, sequence, &store.list_buckets().map(Buckets));
        }
        Request::CreateBucket(bucket) => push(replies, sequence, &store.create_bucket(bucket)),
        Request::HeadBucket(bucket) => push(replies, sequence, &store.head_bucket(bucket)),
        Request::DeleteBucket(bucket) => push(replies, sequence, &store.delete_bucket(bucket)),
        Request::List(bucket, request) => {
            let max_keys = request.max_keys.min(MAX_PAGE);
            let page = store.list(
                bucket,
                &ListRequest {
                    max_keys,
                    ..request
                },
            );
            push(replies, sequence, &page);
        }
        Request::Get(name, range, conditions, mode) => {
            let carries_files = !state.is_tcp();
            return get(
                store,
                socket,
                replies,
                sequence,
                name,
                range,
                &conditions,
                mode,
                carries_files,
            );
        }
        Request::Head(name, conditions) => {
            let found = store.head(name.bucket, name.key);
            match found.map(|info| (conditions.evaluate(&info), info)) {
                Ok((ReadDecision::Proceed, info)) => push(replies, sequence, &Ok(info)),
                Ok((ReadDecision::NotModified, _)) => {
                    replies.push(Outcome::NotModified, sequence, 0, |_| ())
                }
                Ok((ReadDecision::PreconditionFailed, _)) => {
                    push_error(replies, sequence, &StoreError::PreconditionFailed);
                }
                Err(error) => push_error(replies, sequence, &error),
            }
        }
        Request::Delete(name, condition) => {
            let deleted = store.delete(name.bucket, name.key, &condition);
            push(replies, sequence, &deleted);
        }
        Request::Copy(source, conditions, name, commit) => {
            let written = copy(store, source, &conditions, name, commit);
            push(replies, sequence, &written);
        }
        Request::CreateMultipart(name, options) => {
            let id = store.create_multipart(name.bucket, name.key, options);
            push(replies, sequence, &id);
        }
        Request::CopyPart(source, range, upload, number) => {
            let written = copy_part(store, source, range, &upload, number);
            push(replies, sequence, &written);
        }
        Request::Complete(upload, parts, condition) => {
            let UploadName { name, upload_id } = upload;
            let parts: &[CompletedPart] = &parts;
            let written = store.complete_multipart(
                name.bucket,
                name.key,
                upload_id,
                parts,
                NO_CHECKSUMS,
                &condition,
            );
            push(replies, sequence, &written);
        }
        Request::Abort(UploadName { name, upload_id }) => {
            let done = store.abort_multipart(name.bucket, name.key, upload_id);
            push(replies, sequence, &done);
        }
        Request::ListParts(UploadName { name, upload_id }, after, max) => {
            let max = MAX_PAGE.min(max as usize);
            let page = store.list_parts(name.bucket, name.key, upload_id, after, max);
            push(replies, sequence, &page);
        }
        Request::ListUploads(bucket, request) => {
            let max_uploads = request.max_uploads.min(MAX_PAGE);
            let page = store.list_uploads(
                bucket,
                &ListUploadsRequest {
                    max_uploads,
                    ..request
                },
            );
            push(replies, sequence, &page);
        }
        Request::Put(..)
        | Request::UploadPart(..)
        | Request::PutFile(..)
        | Request::CommitFile(_)
        | Request::DropFile => unreachable!("writes are performed elsewhere"),
    }
    Ok(())
}

/// The bytes that a range covers in an object of `size` bytes.
fn resolve(range: Option<ByteRange>, size: u64) -> Result<Range<u64>> {
    match range {
        None => Ok(0..size),
        Some(ByteRange {
            length: Some(0), ..
        }) => Err(StoreError::InvalidArgument("an empty range")),
        Some(range) if range.start >= size => Err(StoreError::InvalidRange { size }),
        Some(range) => {
            let length = range.length.unwrap_or(u64::MAX);
            Ok(range.start..range.start.saturating_add(length).min(size))
        }
    }
}

fn open(store: &dyn Store, name: Name<'_>, conditions: &ReadConditions) -> Result<Option<Object>> {
    let object = store.open(name.bucket, name.key)?;
    match conditions.evaluate(object.info()) {
        ReadDecision::Proceed => Ok(Some(object)),
        ReadDecision::NotModified => Ok(None),
        ReadDecision::PreconditionFailed => Err(StoreError::PreconditionFailed),
    }
}

fn get(
    store: &dyn Store,
    socket: &Socket,
    replies: &mut ReplyBuffer,
    sequence: u32,
    name: Name<'_>,
    range: Option<ByteRange>,
    conditions: &ReadConditions,
    mode: ReadMode,
    carries_files: bool,
) -> std::result::Result<(), ConnectionEnd> {
    let opened = open(store, name, conditions).and_then(|object| match object {
        None => Ok(None),
        Some(object) => {
            let range = resolve(range, object.info().size)?;
            Ok(Some((object, range)))
        }
    });
    match opened {
        Ok(Some((object, range))) => send_object(
            socket,
            replies,
            sequence,
            &object,
            range,
            mode,
            carries_files,
        ),
        Ok(None) => {
            replies.push(Outcome::NotModified, sequence, 0, |_| ());
            Ok(())
        }
        Err(error) => {
            push_error(replies, sequence, &error);
            Ok(())
        }
    }
}

fn copy(
    store: &dyn Store,
    source: Name<'_>,
    conditions: &ReadConditions,
    name: Name<'_>,
    commit: Option<Commit>,
) -> Result<Written> {
    // In S3, a copy whose source is not modified fails its precondition.
    let object = open(store, source, conditions)?.ok_or(StoreError::PreconditionFailed)?;
    let commit = commit.unwrap_or_else(|| {
        let info = object.info();
        Commit {
            headers: info.headers.clone(),
            checksums: info.checksums.clone(),
            tags: info.tags.clone(),
            ..Commit::default()
        }
    });
    store.copy(&object, name.bucket, name.key, commit)
}

fn copy_part(
    store: &dyn Store,
    source: Name<'_>,
    range: Option<ByteRange>,
    upload: &UploadName<'_>,
    number: u32,
) -> Result<Written> {
    let object = store.open(source.bucket, source.key)?;
    let size = object.info().size;
    // S3 refuses a part copied from beyond the end of its source, and so does the store.
    let range = match range {
        None => 0..size,
        Some(ByteRange { start, length }) => {
            let end = length.map_or(Some(size), |length| start.checked_add(length));
            start..end.ok_or(StoreError::InvalidRange { size })?
        }
    };
    let UploadName { name, upload_id } = upload;
    store.copy_part(&object, range, name.bucket, name.key, upload_id, number)
}
