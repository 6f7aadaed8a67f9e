//! Sending objects that need more than one write, and responses subject to faults.

use std::cell::RefCell;
use std::time::Instant;

use bucketload_wire::{Conn, Error};

use super::faults::BodyFaults;
use super::pace::Pace;
use super::pending::Reply;
use super::respond::ObjectBytes;
use super::router::Operation;
use super::thread::{RequestBuffers, Thread, Watchdog};
use bucketload_store::{Chunk, Object};

/// Bytes read from a file at a time.
const FILE_PIECE: usize = 256 * 1024;
/// File buffers kept per thread.
const SPARE: usize = 16;

thread_local! {
    static BUFFERS: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Holds a response back as long as the fault rules require, and logs when it was released.
pub(crate) async fn hold(thread: &Thread, watchdog: &Watchdog, operation: Operation, key: &str) {
    let Some(delays) = &thread.delays else { return };
    let faults = &thread.server.faults;
    let ready = Instant::now();
    let mut due = faults.held_until(operation, key, ready);
    watchdog.suspend();
    delays.until(due).await;
    while let Some(until) = faults.stalled_until(operation, key, Instant::now()) {
        due = until;
        delays.until(until).await;
    }
    thread.rearm(watchdog);
    if let Some(log) = &thread.server.fault_log
        && due > ready
    {
        log.held(operation, key, [ready, due, Instant::now()]);
    }
}

/// Sends the head in `buffers` and the object's bytes. Returns whether a fault cut the response short.
///
/// # Errors
/// If the connection fails or the object cannot be read to its end.
pub(crate) async fn object(
    thread: &Thread,
    watchdog: &Watchdog,
    conn: &mut Conn,
    buffers: &RequestBuffers,
    reply: Reply,
) -> Result<bool, Error> {
    let Some(ObjectBytes { source, range }) = &buffers.object_bytes else {
        return Ok(true);
    };
    let length = range.end - range.start;
    let faults = &thread.server.faults;
    let on_body = match reply.operation {
        Some(operation) if length > 0 && !faults.is_empty() => {
            faults.on_body(operation, buffers.target.key(), length)
        }
        _ => BodyFaults::default(),
    };
    let total = on_body.truncate.unwrap_or(length);
    let mut pace = reply.rate.map(Pace::new);
    let (mut sent, mut head) = (0, buffers.head.bytes());
    while sent < total || !head.is_empty() {
        let step = pace
            .as_ref()
            .map_or(total, |pace| pace.piece())
            .min(total - sent);
        conn.send_body(head, step, |offset| {
            thread.rearm(watchdog);
            let at = sent + offset;
            let piece = Piece::of(source, range.start + at, range.end - range.start - at);
            piece.corrupt(on_body.corrupt, at)
        })
        .await?;
        head = b"";
        sent += step;
        thread.counters().bytes_out.add(step);
        if let Some(pace) = &mut pace {
            pace.after(thread, watchdog, step).await;
        }
    }
    Ok(total < length)
}

/// Bytes ready to send.
enum Piece {
    /// Shared with the store.
    Chunk(Chunk),
    /// Read from a file, or corrupted.
    Buffer(Vec<u8>),
}

impl Piece {
    /// At most `max` bytes of `source` from `offset`; none if reading fails.
    fn of(source: &Object, offset: u64, max: u64) -> Self {
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        if let Some(mut chunk) = source.chunk(offset) {
            chunk.truncate(max);
            return Self::Chunk(chunk);
        }
        let mut buffer = BUFFERS.with_borrow_mut(Vec::pop).unwrap_or_default();
        buffer.resize(max.min(FILE_PIECE), 0);
        let got = source.read_at(offset, &mut buffer).unwrap_or(0);
        buffer.truncate(got);
        Self::Buffer(buffer)
    }

    /// Inverts the byte at body offset `target` if this piece, which starts at `at`, contains it.
    fn corrupt(self, target: Option<u64>, at: u64) -> Self {
        let Some(index) = target.and_then(|target| target.checked_sub(at)) else {
            return self;
        };
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        if index >= self.as_ref().len() {
            return self;
        }
        let mut bytes = self.as_ref().to_vec();
        bytes[index] = !bytes[index];
        Self::Buffer(bytes)
    }
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Chunk(chunk) => chunk,
            Self::Buffer(bytes) => bytes,
        }
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        if let Self::Buffer(bytes) = self {
            let bytes = std::mem::take(bytes);
            if bytes.capacity() <= FILE_PIECE {
                // A connection may be dropped while the thread-locals are being destroyed.
                let _ = BUFFERS.try_with(|buffers| {
                    let mut buffers = buffers.borrow_mut();
                    if buffers.len() < SPARE {
                        buffers.push(bytes);
                    }
                });
            }
        }
    }
}
