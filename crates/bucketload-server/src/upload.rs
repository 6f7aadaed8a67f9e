//! Starting to receive an object or a part, and reading the headers that describe a request's body.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bucketload_wire::http::{self, Request};

use super::aws_chunked::AwsChunked;
use super::begin::Started;
use super::body::BodyReader;
use super::checks::Checks;
use super::claim::PayloadAuth;
use super::error::{Code, S3Result};
use super::headers::{Headers, Name};
use super::ops::archive::{self, Archive};
use super::ops::{append, conditions, metadata, multipart, sse};
use super::pending::{Sink, context};
use super::router::Operation;
use super::sigv4::Verified;
use super::thread::{RequestBuffers, ServerState};
use bucketload_store::{Commit, Condition, PutOptions};

/// Largest object or part in one request, in bytes: S3's limit.
pub(super) const MAX_SINGLE_PUT: u64 = 5 << 30;

/// Starts PutObject or UploadPart.
///
/// # Errors
/// If the headers are invalid or the store refuses the upload.
pub(super) fn start(
    server: &ServerState,
    buffers: &mut RequestBuffers,
    request: &Request<'_>,
    headers: &Headers<'_, '_>,
    verified: Verified,
    operation: Operation,
) -> S3Result<Started> {
    let ctx = context(server, buffers);
    let (store, target) = (ctx.store(), ctx.target);
    let (bucket, key) = (target.bucket(), target.key());
    match operation {
        Operation::UploadPart => metadata::check_storage(headers)?,
        _ => drop(metadata::storage_class(headers)?),
    }
    let hash = payload_hash(&verified);
    let (reader, size) = framing(request, headers, verified)?;
    if size.is_none() && request.body == http::Body::Empty {
        return Err(Code::MissingContentLength.into());
    }
    if size.is_some_and(|size| size > MAX_SINGLE_PUT) {
        return Err(Code::EntityTooLarge.into());
    }
    let mut checks = Checks::new(headers, hash)?;
    let options = PutOptions {
        size,
        content_md5: content_md5(headers)?,
    };
    if operation == Operation::Put && archive::is_meant(headers) {
        let archive = Archive::start(&ctx, headers, options.content_md5)?;
        return Ok(Started::Receive {
            sink: Sink::Archive(Box::new(archive)),
            checks,
            reader,
        });
    }
    let mut condition = conditions::of_write(headers)?;
    let append_at = append::offset(headers, size)?;
    let part = match operation {
        Operation::UploadPart => Some(multipart::part_of(target)?),
        _ => None,
    };
    if !server.faults.is_empty() && !server.faults.has_room(operation, key, size.unwrap_or(0)) {
        return Err(Code::StorageFull.into());
    }
    if let (None, true, None, Condition::None, Some(size)) = (
        append_at,
        checks.is_empty(),
        options.content_md5,
        &condition,
        size,
    ) && let Some(written) = store.accept_unseen(bucket, key, size)
    {
        return Ok(Started::Receive {
            sink: Sink::Unseen(written?),
            checks,
            reader,
        });
    }
    if let Some(offset) = append_at {
        let sink = append::start(&ctx, headers, &options, &condition, offset, &mut checks)?;
        if let Some(sink) = sink {
            return Ok(Started::Receive {
                sink,
                checks,
                reader,
            });
        }
        if condition == Condition::None {
            condition = Condition::Absent;
        }
    }
    let sink = match part {
        None => {
            let stored = metadata::of_new(&ctx, headers)?;
            Sink::Object {
                upload: store.put(bucket, key, &options)?,
                encryption: sse::of(&stored),
                creates: append_at.is_some(),
                commit: Commit {
                    headers: stored,
                    checksums: Vec::new(),
                    tags: metadata::tags(headers)?,
                    condition,
                },
            }
        }
        Some((id, number)) => {
            if !checks.has_sum() {
                // Completion needs the checksum that the upload announced, even if the client does
                // not send it with the part.
                let announced = store.upload_info(bucket, key, id)?.checksum;
                checks.add_sum(announced.map(|(algorithm, _)| algorithm));
            }
            Sink::Part {
                encryption: sse::of_part(headers)?,
                upload: store.upload_part(bucket, key, id, number, &options)?,
            }
        }
    };
    Ok(Started::Receive {
        sink,
        checks,
        reader,
    })
}

/// The hash that the payload must have, if the signature covers one.
pub(super) fn payload_hash(verified: &Verified) -> Option<[u8; 32]> {
    match verified.payload {
        PayloadAuth::Sha256(hash) => Some(hash),
        _ => None,
    }
}

/// A reader for the request's body, and the size of its payload if the headers state it.
///
/// # Errors
/// `MissingContentLength`, `InvalidArgument`.
pub(super) fn framing(
    request: &Request<'_>,
    headers: &Headers<'_, '_>,
    verified: Verified,
) -> S3Result<(BodyReader, Option<u64>)> {
    let aws = match verified.payload {
        PayloadAuth::SignedChunks { trailer } => Some(AwsChunked::new(verified.chunks, trailer)),
        PayloadAuth::UnsignedChunks => Some(AwsChunked::new(None, true)),
        _ if headers.lists(Name::ContentEncoding, "aws-chunked") => {
            Some(AwsChunked::new(None, true))
        }
        _ => None,
    };
    let size = if aws.is_some() {
        Some(
            headers
                .number(Name::DecodedContentLength)?
                .ok_or(Code::MissingContentLength)?,
        )
    } else if request.body == http::Body::Empty {
        headers.number(Name::ContentLength)?
    } else {
        request.body.length()
    };
    Ok((BodyReader::new(request.body, aws, size), size))
}

/// Reads `Content-MD5`.
///
/// # Errors
/// `InvalidDigest`.
pub(super) fn content_md5(headers: &Headers<'_, '_>) -> S3Result<Option<[u8; 16]>> {
    let Some(value) = headers.bytes(Name::ContentMd5) else {
        return Ok(None);
    };
    let digest = BASE64
        .decode(value)
        .ok()
        .and_then(|bytes| bytes.try_into().ok());
    digest.map(Some).ok_or_else(|| Code::InvalidDigest.into())
}
