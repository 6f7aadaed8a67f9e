//! From a parsed head to an answer or to a body being received.
//!
//! ```text
//! begin ── authorise, route, check ──┬─ no body needed ──> answer
//!                                    └─ Pending: feed … feed, finish ──> answer
//! ```
//!
//! Nothing here waits: a request whose body arrived with its head is begun, fed and finished in
//! one call, out of the receive buffer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bucketload_wire::http::{self, Request};

use super::aws_chunked::AwsChunked;
use super::body::BodyReader;
use super::checks::Checks;
use super::checksum;
use super::claim::PayloadAuth;
use super::clock;
use super::error::{Code, S3Error, S3Result};
use super::headers::{Headers, Name};
use super::ops::{self, conditions, metadata, multipart};
use super::pending::{Envelope, Pending, Purpose, Reply, Sink, context, render};
use super::respond::Body;
use super::router::{self, Operation, STATS_PATH};
use super::sigv4::Verified;
use super::thread::{Shared, Thread, Work};
use super::uri;
use crate::{Commit, Condition, PutOptions};

/// Largest object or part in one request, by S3's limit, in bytes.
const MAX_SINGLE_PUT: u64 = 5 << 30;

/// What happens next to a request.
pub(crate) enum Next {
    /// Send this.
    Answer(Reply),
    /// Receive more of the body first.
    Receive(Box<Pending>),
    /// Reset the connection.
    Reset,
}

#[allow(
    clippy::large_enum_variant,
    reason = "it lives on the stack of one request; a box would be an allocation per request"
)]
enum Started {
    Done(Body),
    Receive {
        sink: Sink,
        checks: Checks,
        reader: BodyReader,
    },
    Reset,
}

/// Begins the request `request`, of whose body `rest` (and possibly bytes of the next request) has
/// arrived. Returns how many bytes of `rest` were consumed.
pub(crate) fn begin(
    thread: &Thread,
    work: &mut Work,
    request: &Request<'_>,
    rest: &[u8],
) -> (usize, Next) {
    let mut reply = Envelope {
        close: !request.keep_alive,
        ..Envelope::default()
    };
    let started = start(thread, work, request, &mut reply);
    match reply.operation {
        Some(operation) => thread.counters().request(operation),
        None => thread.counters().unknown.add(1),
    }
    let (sink, checks, reader) = match started {
        Ok(Started::Reset) => return (0, Next::Reset),
        Ok(Started::Receive {
            sink,
            checks,
            reader,
        }) => (sink, checks, reader),
        settled => {
            let body = match settled {
                Ok(Started::Done(body)) => body,
                Err(error) => render(work, &error, request.method != "HEAD"),
                Ok(_) => unreachable!("handled above"),
            };
            if request.body == http::Body::Empty {
                return (0, Next::Answer(reply.with(body)));
            }
            if request.expect_continue && rest.is_empty() {
                // Whether the client sends the body after this answer is its choice.
                let reply = Reply {
                    close: true,
                    linger: true,
                    ..reply.with(body)
                };
                return (0, Next::Answer(reply));
            }
            (
                Sink::Answered(body),
                Checks::default(),
                BodyReader::new(request.body, None, None),
            )
        }
    };
    let expects_continue = request.expect_continue && rest.is_empty();
    let mut pending = Pending {
        reply,
        reader,
        checks,
        sink,
        expects_continue,
    };
    match pending.feed(thread, work, rest) {
        Err(error) => (rest.len(), Next::Answer(pending.give_up(work, &error))),
        Ok(used) if pending.is_done() => (used, Next::Answer(pending.finish(thread, work))),
        Ok(used) => (used, Next::Receive(Box::new(pending))),
    }
}

/// Starts the answer to bytes that are no request.
pub(crate) fn malformed(work: &mut Work, error: &S3Error) -> Reply {
    let body = work.head.error(&mut work.document, error, b"", true);
    Reply {
        close: true,
        linger: true,
        ..Envelope::default().with(body)
    }
}

fn start(
    thread: &Thread,
    work: &mut Work,
    request: &Request<'_>,
    reply: &mut Envelope,
) -> S3Result<Started> {
    let shared = &*thread.shared;
    let headers = Headers::new(request.headers.fields())?;
    let host_bucket = match &shared.config.domain {
        Some(domain) => headers
            .text(Name::Host)?
            .and_then(|host| uri::host_bucket(host, domain)),
        None => None,
    };
    work.target.parse(request.target, host_bucket)?;
    if shared.config.stats_page
        && work.target.path() == STATS_PATH.as_bytes()
        && request.method == "GET"
    {
        reply.operation = Some(Operation::Stats);
        return stats_page(shared, work);
    }
    let verified = {
        let mut verifier = thread.verifier.borrow_mut();
        verifier.verify(
            request.method,
            &mut work.target,
            &headers,
            clock::now_secs(),
        )?
    };
    let operation = router::route(request.method, &work.target, &headers)?;
    reply.operation = Some(operation);
    if !shared.faults.is_empty() {
        let key = work.target.key();
        shared.faults.arrived(operation, key);
        let before = shared.faults.before(operation, key);
        reply.rate = before.rate;
        if before.reset {
            return Ok(Started::Reset);
        }
        if let Some(status) = before.status {
            return Err(injected(status));
        }
    }
    let purpose = match operation {
        Operation::Put | Operation::UploadPart => {
            return start_upload(shared, work, request, &headers, verified, operation);
        }
        Operation::DeleteMany => Purpose::DeleteMany,
        Operation::CompleteUpload => Purpose::Complete {
            condition: conditions::of_write(&headers)?,
            // A checksum here is that of the object, not of the document.
            announced: checksum::from_headers(&headers)?,
        },
        Operation::PutTagging => Purpose::Tagging,
        Operation::MakeBucket => {
            if headers
                .bytes(Name::ObjectLock)
                .is_some_and(|value| value.eq_ignore_ascii_case(b"true"))
            {
                return Err(S3Error::new(
                    Code::NotImplemented,
                    "Object lock is not implemented.",
                ));
            }
            metadata::check_acl(&headers)?;
            Purpose::MakeBucket
        }
        Operation::PutAcl => {
            metadata::check_acl(&headers)?;
            Purpose::Acl {
                canned: headers.has(Name::Acl),
            }
        }
        _ => {
            let body = ops::dispatch(operation, &mut context(shared, work), &headers)?;
            return Ok(Started::Done(body));
        }
    };
    let hash = payload_hash(&verified);
    let checks = match purpose {
        Purpose::Complete { .. } => Checks::of_payload(hash),
        _ => Checks::new(&headers, hash)?,
    };
    let reader = framing(request, &headers, verified)?.0;
    let sink = Sink::Document {
        content_md5: content_md5(&headers)?,
        purpose,
    };
    Ok(Started::Receive {
        sink,
        checks,
        reader,
    })
}

fn start_upload(
    shared: &Shared,
    work: &Work,
    request: &Request<'_>,
    headers: &Headers<'_, '_>,
    verified: Verified,
    operation: Operation,
) -> S3Result<Started> {
    let (store, target) = (&*shared.store, &work.target);
    let (bucket, key) = (target.bucket(), target.key());
    metadata::check_storage(headers)?;
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
    let condition = conditions::of_write(headers)?;
    let part = match operation {
        Operation::UploadPart => Some(multipart::part_of(target)?),
        _ => None,
    };
    if !shared.faults.is_empty() && !shared.faults.takes(operation, key, size.unwrap_or(0)) {
        return Err(Code::StorageFull.into());
    }
    if let (true, None, Condition::None, Some(size)) =
        (checks.is_empty(), options.content_md5, &condition, size)
        && let Some(written) = store.accept_unseen(bucket, key, size)
    {
        return Ok(Started::Receive {
            sink: Sink::Unseen(written?),
            checks,
            reader,
        });
    }
    let sink = match part {
        None => Sink::Object {
            upload: store.put(bucket, key, &options)?,
            commit: Commit {
                headers: metadata::collect(headers)?,
                checksums: Vec::new(),
                tags: metadata::tags(headers)?,
                condition,
            },
        },
        Some((id, number)) => {
            if !checks.has_sum() {
                // Completion needs the checksum that the upload announced, sent or not.
                let announced = store.upload_info(bucket, key, id)?.checksum;
                checks.add_sum(announced.map(|(algorithm, _)| algorithm));
            }
            Sink::Part {
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

fn stats_page(shared: &Shared, work: &mut Work) -> S3Result<Started> {
    work.head
        .start(200)
        .header("Content-Type", b"application/json");
    work.document.clear();
    serde_json::to_writer(&mut work.document, &shared.stats())
        .map_err(|error| S3Error::new(Code::InternalError, error.to_string()))?;
    work.document.push(b'\n');
    Ok(Started::Done(Body::Document))
}

/// The answer that a `status` rule asks for.
fn injected(status: u16) -> S3Error {
    let code = match status {
        403 => Code::AccessDenied,
        404 => Code::NoSuchKey,
        409 => Code::BucketAlreadyExists,
        412 => Code::PreconditionFailed,
        429 | 503 => Code::SlowDown,
        501 => Code::NotImplemented,
        507 => Code::StorageFull,
        500.. => Code::InternalError,
        _ => Code::InvalidRequest,
    };
    S3Error::new(code, "Injected by a fault rule.").with_status(status)
}

fn payload_hash(verified: &Verified) -> Option<[u8; 32]> {
    match verified.payload {
        PayloadAuth::Sha256(hash) => Some(hash),
        _ => None,
    }
}

/// A reader for the request's body, and the size of its payload where the head tells it.
fn framing(
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
fn content_md5(headers: &Headers<'_, '_>) -> S3Result<Option<[u8; 16]>> {
    let Some(value) = headers.bytes(Name::ContentMd5) else {
        return Ok(None);
    };
    let digest = BASE64
        .decode(value)
        .ok()
        .and_then(|bytes| bytes.try_into().ok());
    digest.map(Some).ok_or_else(|| Code::InvalidDigest.into())
}
