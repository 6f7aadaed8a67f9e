//! One connection: requests in, answers out, until either side ends it.
//!
//! The usual exchange is one receive and one send: the request is handled out of the thread's receive
//! buffer ([`intake`]) and its answer leaves in one vectored write. Bodies that are still on their
//! way, large objects and faults take the boxed paths, so that a resting connection stays small.

use std::rc::Rc;

use bucketload_wire::clock;
use bucketload_wire::http::{self, parse_request};
use bucketload_wire::{Conn, Error, Sock, Step};

use super::error::{Code, S3Error};
use super::intake::{self, Next};
use super::pace::Pace;
use super::pending::{Pending, Reply};
use super::respond::{Body, Extract};
use super::send;
use super::thread::{Slot, Thread, Work};

/// Largest head taken, in bytes.
const MAX_HEAD: usize = 64 * 1024;
/// Bytes of a body dropped at a time: progress is noted in between.
const DISCARD: u64 = 8 << 20;
/// What a connection above the limit is told.
const REFUSAL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nServer: bucketload\r\nx-amz-request-id: 0000000000000000\r\nContent-Length: 0\r\n\
    Retry-After: 1\r\nConnection: close\r\n\r\n";

/// How an exchange leaves its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Ready for the next request.
    Continue,
    /// To be ended in good order.
    Close,
    /// To be ended in good order after the client has stopped sending.
    Linger,
    /// To be ended at once, in the middle of an answer.
    Cut,
    /// To be reset.
    Reset,
}

/// Serves a connection until it ends.
pub(crate) async fn serve(thread: Rc<Thread>, slot: Rc<Slot>, sock: Sock) {
    let mut conn = match &thread.shared.tls {
        None => Conn::plain(sock),
        Some(tls) => match Box::pin(Conn::accept_tls(sock, tls)).await {
            Ok(conn) => conn,
            Err(_) => return,
        },
    };
    loop {
        // An error is the end of the connection: there is nobody left to tell.
        match exchange(&thread, &slot, &mut conn)
            .await
            .unwrap_or(Flow::Cut)
        {
            Flow::Continue => {}
            Flow::Close => return conn.close(),
            Flow::Linger => {
                linger(&thread, &slot, &mut conn).await;
                return conn.close();
            }
            Flow::Cut => return,
            Flow::Reset => return conn.reset(),
        }
    }
}

/// Answers a connection above the limit.
pub(crate) async fn refuse(sock: Sock) {
    let mut conn = Conn::plain(sock);
    let read = conn.recv_with(|bytes| Ok::<_, Error>(Step::Done(bytes.len(), ())));
    if read.await.is_ok() && conn.send(REFUSAL, b"").await.is_ok() {
        conn.close();
    }
}

/// Reads what the client still sends until it ends the connection: closing with unread bytes would
/// reset it and could destroy the answer on its way.
async fn linger(thread: &Thread, slot: &Slot, conn: &mut Conn) {
    thread.allow(slot);
    let mut left = DISCARD;
    let drop_all = |bytes: &[u8]| {
        left = left.saturating_sub(bytes.len() as u64);
        Ok::<_, Error>(if left == 0 {
            Step::Done(bytes.len(), ())
        } else {
            Step::More(bytes.len())
        })
    };
    // The end of the stream is what is waited for.
    let _ = conn.recv_with(drop_all).await;
}

/// One request and its answer.
async fn exchange(thread: &Thread, slot: &Slot, conn: &mut Conn) -> Result<Flow, Error> {
    thread.allow(slot);
    let mut in_head = false;
    let (mut work, next) = conn
        .recv_with(|bytes| {
            let step = begin(thread, bytes);
            if step.is_none() && !in_head {
                // The time limit of a head counts from its first byte.
                in_head = true;
                thread.allow(slot);
            }
            Ok::<_, Error>(step.unwrap_or(Step::More(0)))
        })
        .await?;
    let reply = match next {
        Next::Answer(reply) => reply,
        Next::Receive(pending) => Box::pin(receive(thread, slot, conn, &mut work, pending)).await?,
        Next::Reset => {
            thread.give_back(work);
            return Ok(Flow::Reset);
        }
    };
    let flow = answer(thread, slot, conn, &mut work, reply).await?;
    thread.give_back(work);
    Ok(flow)
}

/// Handles received bytes; `None` while the head is incomplete.
fn begin(thread: &Thread, bytes: &[u8]) -> Option<Step<(Box<Work>, Next)>> {
    let parsed = parse_request(bytes, |request| {
        let mut work = thread.take_work(clock::wall_seconds());
        let (used, next) = intake::begin(thread, &mut work, request, &bytes[request.len..]);
        Step::Done(request.len + used, (work, next))
    });
    let error = match parsed {
        Ok(Some(step)) => return Some(step),
        Ok(None) if bytes.len() < MAX_HEAD => return None,
        Ok(None) => Code::RequestHeaderSectionTooLarge.into(),
        Err(error) => S3Error::from(error),
    };
    let mut work = thread.take_work(clock::wall_seconds());
    thread.counters().unknown.add(1);
    let reply = intake::malformed(&mut work, &error);
    Some(Step::Done(bytes.len(), (work, Next::Answer(reply))))
}

/// Receives the rest of a body.
async fn receive(
    thread: &Thread,
    slot: &Slot,
    conn: &mut Conn,
    work: &mut Work,
    mut pending: Box<Pending>,
) -> Result<Reply, Error> {
    if pending.expects_continue {
        conn.send(http::CONTINUE, b"").await?;
    }
    let mut pace = pending.rate().map(Pace::new);
    while !pending.is_done() {
        thread.allow(slot);
        match pending.plain_rest() {
            Some(rest) if pending.is_blind() && pace.is_none() => {
                let mut left = rest;
                while left > 0 {
                    thread.allow(slot);
                    conn.discard(left.min(DISCARD)).await?;
                    left = left.saturating_sub(DISCARD);
                }
                pending.skip_rest(thread);
            }
            Some(rest) => {
                let piece = pace.as_ref().map_or(rest, |pace| rest.min(pace.piece()));
                conn.recv_body(piece, |_, bytes| {
                    thread.allow(slot);
                    // A body of known length has no framing that could fail.
                    let _ = pending.feed(thread, work, bytes);
                    Ok::<_, Error>(())
                })
                .await?;
                if let Some(pace) = &mut pace {
                    pace.after(thread, slot, piece).await;
                }
            }
            None => {
                let fed = conn
                    .recv_with(|bytes| {
                        thread.allow(slot);
                        Ok::<_, Error>(match pending.feed(thread, work, bytes) {
                            Ok(used) if pending.is_done() || pace.is_some() => {
                                Step::Done(used, Ok(used))
                            }
                            Ok(used) => Step::More(used),
                            Err(error) => Step::Done(bytes.len(), Err(error)),
                        })
                    })
                    .await?;
                match (fed, &mut pace) {
                    (Err(error), _) => return Ok(pending.give_up(work, &error)),
                    (Ok(used), Some(pace)) => pace.after(thread, slot, used as u64).await,
                    (Ok(_), None) => {}
                }
            }
        }
    }
    Ok(pending.finish(thread, work))
}

/// Sends an answer.
async fn answer(
    thread: &Thread,
    slot: &Slot,
    conn: &mut Conn,
    work: &mut Work,
    reply: Reply,
) -> Result<Flow, Error> {
    thread.allow(slot);
    thread.counters().answer(work.head.status());
    if let (Some(operation), false) = (reply.operation, thread.shared.faults.is_empty()) {
        Box::pin(send::hold(thread, slot, operation, work.target.key())).await;
    }
    if reply.leave {
        conn.send(http::CONTINUE, b"").await?;
    }
    let after = match (reply.close, reply.linger) {
        (_, true) => Flow::Linger,
        (true, false) => Flow::Close,
        (false, false) => Flow::Continue,
    };
    match reply.body {
        Body::Empty => {
            work.head.end(0, reply.close);
            conn.send(work.head.bytes(), b"").await?;
        }
        Body::LengthOnly(length) => {
            work.head.end(length, reply.close);
            conn.send(work.head.bytes(), b"").await?;
        }
        Body::Document => {
            work.head.end(work.document.len() as u64, reply.close);
            conn.send(work.head.bytes(), &work.document).await?;
        }
        Body::Object => {
            if !send_at_once(thread, conn, work, reply).await? {
                let cut = Box::pin(send::object(thread, slot, conn, work, reply)).await?;
                return Ok(if cut { Flow::Cut } else { after });
            }
        }
    }
    Ok(after)
}

/// Sends an object's bytes in one write, where they lie in one piece and no fault concerns them.
/// Whether it did.
async fn send_at_once(
    thread: &Thread,
    conn: &mut Conn,
    work: &mut Work,
    reply: Reply,
) -> Result<bool, Error> {
    let Some(Extract { source, range }) = &work.extract else {
        return Ok(false);
    };
    let length = range.end - range.start;
    work.head.end(length, reply.close);
    let chunk = source
        .chunk(range.start)
        .filter(|chunk| chunk.len() as u64 >= length);
    match chunk {
        Some(mut chunk) if thread.shared.faults.is_empty() => {
            chunk.truncate(usize::try_from(length).unwrap_or(usize::MAX));
            conn.send(work.head.bytes(), &chunk).await?;
            thread.counters().bytes_out.add(length);
            Ok(true)
        }
        _ => Ok(false),
    }
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
