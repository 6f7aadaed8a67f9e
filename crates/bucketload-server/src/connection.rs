//! One connection: reads requests and sends responses until either side ends it.
//!
//! The usual exchange is one receive and one send: [`begin`] handles the request in the thread's
//! receive buffer, and the response leaves in one vectored write. Partly received bodies, large
//! objects and faults use boxed futures, so an idle connection stays small.

use std::rc::Rc;

use bucketload_wire::http::{self, parse_request};
use bucketload_wire::{Conn, Error, Sock, Step};

use super::begin::{self, Next};
use super::error::{Code, S3Error};
use super::pace::Pace;
use super::pending::{Pending, Reply};
use super::quirks;
use super::respond::{Body, ObjectBytes};
use super::send;
use super::thread::{RequestBuffers, Thread, Watchdog};

/// Largest accepted head, in bytes.
const MAX_HEAD: usize = 64 * 1024;
/// Bytes of a body discarded at a time; each piece restarts the idle timeout.
const DISCARD: u64 = 8 << 20;
/// The response to a connection above the limit.
const REFUSAL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nServer: bucketload\r\nx-amz-request-id: 0000000000000000\r\nContent-Length: 0\r\n\
    Retry-After: 1\r\nConnection: close\r\n\r\n";

/// What happens to the connection after an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Wait for the next request.
    Continue,
    /// Close it.
    Close,
    /// Close it once the client stops sending.
    Linger,
    /// Drop it at once, in the middle of a response.
    Cut,
    /// Reset it.
    Reset,
}

/// Serves a connection until it ends.
pub(crate) async fn serve(thread: Rc<Thread>, watchdog: Rc<Watchdog>, sock: Sock) {
    let mut conn = match &thread.server.tls {
        None => Conn::plain(sock),
        Some(tls) => match Box::pin(Conn::accept_tls(sock, tls)).await {
            Ok(conn) => conn,
            Err(_) => return,
        },
    };
    loop {
        // After an error the connection is gone: there is nobody to report it to.
        match exchange(&thread, &watchdog, &mut conn)
            .await
            .unwrap_or(Flow::Cut)
        {
            Flow::Continue => {}
            Flow::Close => return conn.close(),
            Flow::Linger => {
                linger(&thread, &watchdog, &mut conn).await;
                return conn.close();
            }
            Flow::Cut => return,
            Flow::Reset => return conn.reset(),
        }
    }
}

/// Refuses a connection above the limit with a 503.
pub(crate) async fn refuse(sock: Sock) {
    let mut conn = Conn::plain(sock);
    let read = conn.recv_with(|bytes| Ok::<_, Error>(Step::Done(bytes.len(), ())));
    if read.await.is_ok() && conn.send(REFUSAL, b"").await.is_ok() {
        conn.close();
    }
}

/// Reads until the client ends the connection. Closing with unread bytes would reset the connection
/// and could discard the response in flight.
async fn linger(thread: &Thread, watchdog: &Watchdog, conn: &mut Conn) {
    thread.rearm(watchdog);
    let mut left = DISCARD;
    let drop_all = |bytes: &[u8]| {
        left = left.saturating_sub(bytes.len() as u64);
        Ok::<_, Error>(if left == 0 {
            Step::Done(bytes.len(), ())
        } else {
            Step::More(bytes.len())
        })
    };
    // This ends with an error when the client closes, as expected.
    let _ = conn.recv_with(drop_all).await;
}

/// Handles one request.
async fn exchange(thread: &Thread, watchdog: &Watchdog, conn: &mut Conn) -> Result<Flow, Error> {
    thread.rearm(watchdog);
    let mut in_head = false;
    let (mut buffers, next) = conn
        .recv_with(|bytes| {
            let step = parse_and_begin(thread, bytes);
            if step.is_none() && !in_head {
                // The timeout of a head counts from its first byte.
                in_head = true;
                thread.rearm(watchdog);
            }
            Ok::<_, Error>(step.unwrap_or(Step::More(0)))
        })
        .await?;
    let reply = match next {
        Next::Answer(reply) => reply,
        Next::Receive(pending) => {
            Box::pin(receive(thread, watchdog, conn, &mut buffers, pending)).await?
        }
        Next::Reset => {
            thread.give_back(buffers);
            return Ok(Flow::Reset);
        }
    };
    let flow = answer(thread, watchdog, conn, &mut buffers, reply).await?;
    thread.give_back(buffers);
    Ok(flow)
}

/// Handles received bytes. Returns `None` while the head is incomplete.
fn parse_and_begin(thread: &Thread, bytes: &[u8]) -> Option<Step<(Box<RequestBuffers>, Next)>> {
    let parsed = parse_request(bytes, |request| {
        let mut buffers = thread.take_buffers();
        let (used, next) = begin::request(thread, &mut buffers, request, &bytes[request.len..]);
        Step::Done(request.len + used, (buffers, next))
    });
    let error = match parsed {
        Ok(Some(step)) => return Some(step),
        Ok(None) if bytes.len() < MAX_HEAD => return None,
        Ok(None) => Code::RequestHeaderSectionTooLarge.into(),
        Err(error) => S3Error::from(error),
    };
    let mut buffers = thread.take_buffers();
    thread.counters().unknown.add(1);
    let reply = begin::malformed(&mut buffers, &error);
    Some(Step::Done(bytes.len(), (buffers, Next::Answer(reply))))
}

/// Receives the rest of a body.
async fn receive(
    thread: &Thread,
    watchdog: &Watchdog,
    conn: &mut Conn,
    buffers: &mut RequestBuffers,
    mut pending: Box<Pending>,
) -> Result<Reply, Error> {
    if pending.expects_continue {
        conn.send(http::CONTINUE, b"").await?;
    }
    let mut pace = pending.rate().map(Pace::new);
    while !pending.is_done() {
        thread.rearm(watchdog);
        match pending.plain_rest() {
            Some(rest) if pending.is_blind() && pace.is_none() => {
                let mut left = rest;
                while left > 0 {
                    thread.rearm(watchdog);
                    conn.discard(left.min(DISCARD)).await?;
                    left = left.saturating_sub(DISCARD);
                }
                pending.skip_rest(thread);
            }
            Some(rest) => {
                let piece = pace.as_ref().map_or(rest, |pace| rest.min(pace.piece()));
                conn.recv_body(piece, |_, bytes| {
                    thread.rearm(watchdog);
                    // Fails for broken framing only, and a body of known length has none.
                    let _ = pending.feed(thread, buffers, bytes);
                    Ok::<_, Error>(())
                })
                .await?;
                if let Some(pace) = &mut pace {
                    pace.after(thread, watchdog, piece).await;
                }
            }
            None => {
                let fed = conn
                    .recv_with(|bytes| {
                        thread.rearm(watchdog);
                        Ok::<_, Error>(match pending.feed(thread, buffers, bytes) {
                            Ok(used) if pending.is_done() || pace.is_some() => {
                                Step::Done(used, Ok(used))
                            }
                            Ok(used) => Step::More(used),
                            Err(error) => Step::Done(bytes.len(), Err(error)),
                        })
                    })
                    .await?;
                match (fed, &mut pace) {
                    (Err(error), _) => return Ok(pending.give_up(buffers, &error)),
                    (Ok(used), Some(pace)) => pace.after(thread, watchdog, used as u64).await,
                    (Ok(_), None) => {}
                }
            }
        }
    }
    Ok(pending.finish(thread, buffers))
}

/// Sends a response.
async fn answer(
    thread: &Thread,
    watchdog: &Watchdog,
    conn: &mut Conn,
    buffers: &mut RequestBuffers,
    mut reply: Reply,
) -> Result<Flow, Error> {
    thread.rearm(watchdog);
    thread.counters().answer(buffers.head.status());
    let quirks = thread.server.config.quirks;
    if !quirks.is_empty() {
        Box::pin(quirks::answer(quirks, buffers, &mut reply)).await;
    }
    if let (Some(operation), false) = (reply.operation, thread.server.faults.is_empty()) {
        Box::pin(send::hold(
            thread,
            watchdog,
            operation,
            buffers.target.key(),
        ))
        .await;
    }
    if reply.continue_first {
        conn.send(http::CONTINUE, b"").await?;
    }
    let after = match (reply.close, reply.linger) {
        (_, true) => Flow::Linger,
        (true, false) => Flow::Close,
        (false, false) => Flow::Continue,
    };
    match reply.body {
        Body::Empty => {
            buffers.head.end(0, reply.close);
            conn.send(buffers.head.bytes(), b"").await?;
        }
        Body::LengthOnly(length) => {
            buffers.head.end(length, reply.close);
            conn.send(buffers.head.bytes(), b"").await?;
        }
        Body::Document => {
            buffers.head.end(buffers.document.len() as u64, reply.close);
            conn.send(buffers.head.bytes(), &buffers.document).await?;
        }
        Body::Object => {
            if !send_at_once(thread, conn, buffers, reply).await? {
                let cut = Box::pin(send::object(thread, watchdog, conn, buffers, reply)).await?;
                return Ok(if cut { Flow::Cut } else { after });
            }
        }
    }
    Ok(after)
}

/// Sends an object's bytes in one write if they are contiguous and there are no fault rules.
/// Returns whether it did.
async fn send_at_once(
    thread: &Thread,
    conn: &mut Conn,
    buffers: &mut RequestBuffers,
    reply: Reply,
) -> Result<bool, Error> {
    let Some(ObjectBytes { source, range }) = &buffers.object_bytes else {
        return Ok(false);
    };
    let length = range.end - range.start;
    buffers.head.end(length, reply.close);
    let chunk = source
        .chunk(range.start)
        .filter(|chunk| chunk.len() as u64 >= length);
    match chunk {
        Some(mut chunk) if thread.server.faults.is_empty() => {
            chunk.truncate(usize::try_from(length).unwrap_or(usize::MAX));
            conn.send(buffers.head.bytes(), &chunk).await?;
            thread.counters().bytes_out.add(length);
            Ok(true)
        }
        _ => Ok(false),
    }
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
