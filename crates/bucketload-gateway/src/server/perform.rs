//! Requests without a body, performed on the store.

use std::ops::Range;

use bucketload_store::{
    Commit, CompletedPart, ListRequest, ListUploadsRequest, Object, ReadConditions, ReadDecision,
    Result, Store, StoreError, Written,
};

use super::accept::Shared;
use super::body::{By, send_object};
use super::connection::End;
use super::output::Output;
use crate::protocol::request::{ByteRange, Name, Request, UploadName, Way};
use crate::protocol::{MAX_PAGE, Outcome, error, reply};
use crate::socket::Socket;

/// A completion has no checksum of the whole object: the protocol has no place for one.
const NO_CHECKSUMS: Vec<bucketload_store::Checksum> = Vec::new();

/// Appends the answer of a result without a body.
pub(super) fn push<T>(
    output: &mut Output,
    sequence: u32,
    result: &Result<T>,
    put: impl FnOnce(&mut Vec<u8>, &T),
) {
    match result {
        Ok(value) => output.push(Outcome::Done, sequence, 0, |out| put(out, value)),
        Err(failure) => output.push(Outcome::Failed, sequence, 0, |out| {
            error::put_error(out, failure)
        }),
    }
}

fn nothing(_: &mut Vec<u8>, _: &()) {}

/// Performs a request and appends its answer.
pub(super) fn answer(
    shared: &Shared,
    socket: &Socket,
    output: &mut Output,
    sequence: u32,
    request: Request<'_>,
) -> std::result::Result<(), End> {
    let store = &*shared.store;
    match request {
        Request::ListBuckets => push(output, sequence, &store.list_buckets(), |out, all| {
            reply::put_buckets(out, all)
        }),
        Request::CreateBucket(bucket) => {
            push(output, sequence, &store.create_bucket(bucket), nothing)
        }
        Request::HeadBucket(bucket) => push(
            output,
            sequence,
            &store.head_bucket(bucket),
            reply::put_bucket,
        ),
        Request::DeleteBucket(bucket) => {
            push(output, sequence, &store.delete_bucket(bucket), nothing)
        }
        Request::List(bucket, request) => {
            let max_keys = request.max_keys.min(MAX_PAGE);
            let page = store.list(
                bucket,
                &ListRequest {
                    max_keys,
                    ..request
                },
            );
            push(output, sequence, &page, reply::put_listing);
        }
        Request::Get(name, range, conditions, way) => {
            let way = match way {
                Way::Body => By::Body,
                Way::SmallBody => By::SmallBody,
                // Only a Unix socket can carry a file.
                Way::File if shared.is_tcp() => By::BodyNotFile,
                Way::File => By::File,
            };
            return get(
                store,
                socket,
                output,
                sequence,
                name,
                range,
                &conditions,
                way,
            );
        }
        Request::Head(name, conditions) => {
            let found = store.head(name.bucket, name.key);
            match found.map(|info| (conditions.evaluate(&info), info)) {
                Ok((ReadDecision::Proceed, info)) => {
                    push(output, sequence, &Ok(info), reply::put_info)
                }
                Ok((ReadDecision::NotModified, _)) => {
                    output.push(Outcome::NotModified, sequence, 0, |_| ())
                }
                Ok((ReadDecision::PreconditionFailed, _)) => {
                    push(
                        output,
                        sequence,
                        &Err(StoreError::PreconditionFailed),
                        nothing,
                    );
                }
                Err(error) => push(output, sequence, &Err(error), nothing),
            }
        }
        Request::Delete(name, condition) => {
            let deleted = store.delete(name.bucket, name.key, &condition);
            push(output, sequence, &deleted, |out, there| {
                out.push(u8::from(*there))
            });
        }
        Request::Copy(source, conditions, name, commit) => {
            let written = copy(store, source, &conditions, name, commit);
            push(output, sequence, &written, reply::put_written);
        }
        Request::CreateMultipart(name, options) => {
            let id = store.create_multipart(name.bucket, name.key, options);
            push(output, sequence, &id, |out, id| reply::put_id(out, id));
        }
        Request::CopyPart(source, range, upload, number) => {
            let written = copy_part(store, source, range, &upload, number);
            push(output, sequence, &written, reply::put_written);
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
            push(output, sequence, &written, reply::put_written);
        }
        Request::Abort(UploadName { name, upload_id }) => {
            let done = store.abort_multipart(name.bucket, name.key, upload_id);
            push(output, sequence, &done, nothing);
        }
        Request::ListParts(UploadName { name, upload_id }, after, most) => {
            let most = MAX_PAGE.min(most as usize);
            let page = store.list_parts(name.bucket, name.key, upload_id, after, most);
            push(output, sequence, &page, reply::put_parts);
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
            push(output, sequence, &page, reply::put_uploads);
        }
        Request::Put(..)
        | Request::UploadPart(..)
        | Request::PutFile(..)
        | Request::CommitFile(_)
        | Request::DropFile => unreachable!("writes are performed elsewhere"),
    }
    Ok(())
}

/// Which bytes of an object of `size` bytes a range covers.
fn resolve(range: Option<ByteRange>, size: u64) -> Result<Range<u64>> {
    match range {
        None => Ok(0..size),
        Some(ByteRange {
            length: Some(0), ..
        }) => Err(StoreError::InvalidArgument("a range of no bytes")),
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
    output: &mut Output,
    sequence: u32,
    name: Name<'_>,
    range: Option<ByteRange>,
    conditions: &ReadConditions,
    way: By,
) -> std::result::Result<(), End> {
    let opened = open(store, name, conditions).and_then(|object| match object {
        None => Ok(None),
        Some(object) => {
            let range = resolve(range, object.info().size)?;
            Ok(Some((object, range)))
        }
    });
    match opened {
        Ok(Some((object, range))) => send_object(socket, output, sequence, &object, range, way),
        Ok(None) => {
            output.push(Outcome::NotModified, sequence, 0, |_| ());
            Ok(())
        }
        Err(error) => {
            push(output, sequence, &Err(error), nothing);
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
    // As S3 has it, a copy whose source is not modified fails its precondition.
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
    // S3 refuses a copied part that reaches beyond its source, and the store does too.
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
