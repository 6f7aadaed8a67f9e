//! From a parsed head to an answer or to a body being received.
//!
//! ```text
//! begin ── authorise, route, check ──┬─ no body needed ──> answer
//!                                    └─ Pending: feed … feed, finish ──> answer
//! ```
//!
//! Nothing here waits: a request whose body arrived with its head is begun, fed and finished in
//! one call, out of the receive buffer.

use bucketload_wire::clock;
use bucketload_wire::http::{self, Request};

use super::body::BodyReader;
use super::checks::Checks;
use super::checksum;
use super::error::{Code, S3Error, S3Result};
use super::headers::{Headers, Name};
use super::ops::{self, conditions, metadata};
use super::pending::{Envelope, Pending, Purpose, Reply, Sink, context, render};
use super::respond::Body;
use super::router::{self, Operation, STATS_PATH};
use super::thread::{Shared, Thread, Work};
use super::upload::{self, content_md5, framing, payload_hash};
use super::uri;

/// What happens next to a request.
pub(crate) enum Next {
    /// Send this.
    Answer(Reply),
    /// Receive more of the body first.
    Receive(Box<Pending>),
    /// Reset the connection.
    Reset,
}

/// How a request has begun.
#[allow(
    clippy::large_enum_variant,
    reason = "it lives on the stack of one request; a box would be an allocation per request"
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
        leave: request.expect_continue && request.body == http::Body::Empty,
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
                // Whatever a GET would send, a HEAD gets its length only.
                Ok(Started::Done(Body::Document)) if request.method == "HEAD" => {
                    Body::LengthOnly(work.document.len() as u64)
                }
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
            clock::wall_seconds(),
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
            return upload::start(shared, work, request, &headers, verified, operation);
        }
        Operation::DeleteMany => Purpose::DeleteMany,
        Operation::CompleteUpload => Purpose::Complete {
            condition: conditions::of_write(&headers)?,
            // A checksum here is that of the object, not of the document.
            announced: checksum::from_headers(&headers)?,
        },
        Operation::PutTagging => Purpose::Tagging,
        Operation::Restore => Purpose::Restore,
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
