//! From a parsed head to a response, or to a body being received.
//!
//! ```text
//! begin ── authorise, route, check ──┬─ no body needed ──> response
//!                                    └─ Pending: feed … feed, finish ──> response
//! ```
//!
//! Nothing here waits: if the body arrived with the head, one call begins, feeds and finishes the
//! request from the receive buffer.

use bucketload_wire::http::{self, Request};

use super::body::BodyReader;
use super::checks::Checks;
use super::checksum;
use super::claim::PayloadAuth;
use super::config::Access;
use super::error::{Code, S3Error, S3Result};
use super::form;
use super::headers::{Headers, Name};
use super::ops::{self, acl, bucket, conditions, cors, grants, lock};
use super::pending::{Pending, Purpose, Reply, Sink, context, render};
use super::quirks;
use super::respond::Body;
use super::router::{self, Operation, STATS_PATH};
use super::thread::{RequestBuffers, ServerState, Thread};
use super::upload::{self, MAX_SINGLE_PUT, content_md5, framing, payload_hash};
use super::uri::{self, Target};

/// What to do next with a request.
pub(crate) enum Next {
    /// Send this response.
    Answer(Reply),
    /// Receive more of the body first.
    Receive(Box<Pending>),
    /// Reset the connection.
    Reset,
}

/// The outcome of starting a request.
#[allow(
    clippy::large_enum_variant,
    reason = "it lives on the stack; boxing it would allocate per request"
)]
pub(super) enum Started {
    Done(Body),
    Receive {
        sink: Sink,
        checks: Checks,
        reader: BodyReader,
    },
    Reset,
}

/// Begins `request`. `rest` holds the part of its body that has arrived, and possibly bytes of the
/// next request. Returns how many bytes of `rest` were consumed.
pub(crate) fn request(
    thread: &Thread,
    buffers: &mut RequestBuffers,
    request: &Request<'_>,
    rest: &[u8],
) -> (usize, Next) {
    let mut reply = Reply {
        close: !request.keep_alive,
        continue_first: request.expect_continue && request.body == http::Body::Empty,
        ..Reply::default()
    };
    let started = start(thread, buffers, request, &mut reply);
    match reply.operation {
        Some(operation) => thread.counters().request(operation),
        None => thread.counters().unknown.add(1),
    }
    let to_head = request.method == "HEAD";
    let started = started.unwrap_or_else(|error| Started::Done(render(buffers, &error, !to_head)));
    let (sink, checks, reader) = match started {
        Started::Reset => return (0, Next::Reset),
        Started::Receive {
            sink,
            checks,
            reader,
        } => (sink, checks, reader),
        Started::Done(body) => {
            let body = match body {
                // A HEAD gets only the length of the document that a GET would send.
                Body::Document if to_head => Body::LengthOnly(buffers.document.len() as u64),
                body => body,
            };
            if request.body == http::Body::Empty {
                return (0, Next::Answer(reply.with(body)));
            }
            let too_long = request.body.length().is_some_and(|n| n > MAX_SINGLE_PUT);
            if too_long || request.expect_continue && rest.is_empty() {
                // Reading a body that is too long would delay the response for hours. A client that
                // waits for `100 Continue` may or may not send the body after this response.
                return (0, Next::Answer(reply.last(body)));
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
    match pending.feed(thread, buffers, rest) {
        Err(error) => (rest.len(), Next::Answer(pending.give_up(buffers, &error))),
        Ok(used) if pending.is_done() => (used, Next::Answer(pending.finish(thread, buffers))),
        Ok(used) => (used, Next::Receive(Box::new(pending))),
    }
}

/// The response to bytes that are not a valid request.
pub(crate) fn malformed(buffers: &mut RequestBuffers, error: &S3Error) -> Reply {
    let body = buffers.head.error(&mut buffers.document, error, b"", true);
    Reply::default().last(body)
}

fn start(
    thread: &Thread,
    buffers: &mut RequestBuffers,
    request: &Request<'_>,
    reply: &mut Reply,
) -> S3Result<Started> {
    let server = &*thread.server;
    let mut headers = Headers::new(request.headers.fields())?;
    if request.version > 0 && !headers.has(Name::Host) {
        return Err(S3Error::new(
            Code::InvalidRequest,
            "An HTTP/1.1 request must have a Host header.",
        ));
    }
    let host_bucket = match &server.config.domain {
        Some(domain) => headers
            .text(Name::Host)?
            .and_then(|host| uri::host_bucket(host, domain)),
        None => None,
    };
    buffers.target.parse(request.target, host_bucket)?;
    if server.config.stats_page
        && buffers.target.path() == STATS_PATH.as_bytes()
        && request.method == "GET"
    {
        reply.operation = Some(Operation::Stats);
        return stats_page(server, buffers);
    }
    let form = form_boundary(request.method, &buffers.target, &headers)?;
    let unsigned = is_unsigned(&buffers.target, &headers);
    if headers.has(Name::Origin) {
        let target = &buffers.target;
        cors::mark(server, target, &headers, request.method, &mut buffers.head)?;
    }
    let mut verified = if form.is_some() || request.method == "OPTIONS" {
        // The policy in a form carries the signature, and a browser's question has none.
        PayloadAuth::Unsigned.into()
    } else if unsigned && server.config.access == Access::Signed {
        let operation = router::route(request.method, &buffers.target, &headers)?;
        let ctx = context(server, buffers);
        if !acl::admits_everyone(&ctx, operation) {
            // That a bucket does not exist is no secret, as in S3.
            let absent = ctx.require_bucket().err();
            let absent = absent.filter(|error| error.code == Code::NoSuchBucket);
            return Err(absent.unwrap_or_else(|| Code::AccessDenied.into()));
        }
        PayloadAuth::Unsigned.into()
    } else {
        let mut verifier = thread.verifier.borrow_mut();
        verifier.verify(request.method, &mut buffers.target, &headers, thread.now())?
    };
    let mut operation = router::route(request.method, &buffers.target, &headers)?;
    reply.operation = Some(operation);
    if !server.config.quirks.is_empty() {
        let target = &mut buffers.target;
        quirks::request(server, &mut operation, target, &mut headers, &mut verified)?;
        reply.operation = Some(operation);
    }
    if !server.faults.is_empty() {
        let key = buffers.target.key();
        server.faults.arrived(operation, key);
        let before = server.faults.before(operation, key);
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
            return upload::start(server, buffers, request, &headers, verified, operation);
        }
        Operation::DeleteMany => Purpose::DeleteMany {
            bypass: lock::bypasses(&headers),
        },
        Operation::CompleteUpload => Purpose::Complete {
            condition: conditions::of_write(&headers)?,
            // A checksum header here covers the object, not the document.
            announced: checksum::from_headers(&headers)?,
        },
        Operation::PutTagging => Purpose::Tagging,
        Operation::Restore => Purpose::Restore,
        Operation::MakeBucket => {
            let locked = headers.bytes(Name::ObjectLock);
            Purpose::MakeBucket {
                locked: locked.is_some_and(|value| value.eq_ignore_ascii_case(b"true")),
                asked: grants::from_headers(&headers)?,
                ownership: bucket::ownership(&headers)?,
            }
        }
        Operation::PutAcl => Purpose::Acl {
            asked: grants::from_headers(&headers)?,
        },
        Operation::PostForm => Purpose::Form {
            boundary: form
                .ok_or_else(|| {
                    S3Error::new(
                        Code::MalformedPOSTRequest,
                        "Bucket POST must be of the enclosure-type multipart/form-data.",
                    )
                })?
                .to_owned(),
            origin: {
                let secure = if server.tls.is_some() { "s" } else { "" };
                let host = headers.text(Name::Host)?.unwrap_or_default();
                format!("http{secure}://{host}")
            },
        },
        Operation::PutBucketConfig => Purpose::BucketConfig,
        Operation::PutObjectLock => Purpose::ObjectLock {
            bypass: lock::bypasses(&headers),
        },
        _ => {
            let body = ops::dispatch(operation, &mut context(server, buffers), &headers)?;
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

/// The boundary of an upload by a form; `None` for all other requests.
fn form_boundary<'b>(
    method: &str,
    target: &Target,
    headers: &Headers<'_, 'b>,
) -> S3Result<Option<&'b str>> {
    if method != "POST" || !target.key().is_empty() || headers.has(Name::Authorization) {
        return Ok(None);
    }
    let kind = headers.text(Name::ContentType)?;
    Ok(kind
        .filter(|_| !target.has("delete"))
        .and_then(form::boundary))
}

/// Whether a request makes no claim about who sent it.
fn is_unsigned(target: &Target, headers: &Headers<'_, '_>) -> bool {
    let presigned = ["X-Amz-Signature", "X-Amz-Algorithm", "Signature"];
    !headers.has(Name::Authorization) && !presigned.iter().any(|name| target.has(name))
}

fn stats_page(server: &ServerState, buffers: &mut RequestBuffers) -> S3Result<Started> {
    buffers
        .head
        .start(200)
        .header("Content-Type", b"application/json");
    buffers.document.clear();
    serde_json::to_writer(&mut buffers.document, &server.stats())
        .map_err(|error| S3Error::new(Code::InternalError, error.to_string()))?;
    buffers.document.push(b'\n');
    Ok(Started::Done(Body::Document))
}

/// The error that a `status` rule injects.
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
