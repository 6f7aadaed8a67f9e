//! Sending objects that need more than one write, and answers under faults.

use std::cell::RefCell;
use std::time::Instant;

use bucketload_wire::{Conn, Error};

use super::faults::OnBody;
use super::pace::Pace;
use super::pending::Reply;
use super::respond::Extract;
use super::router::Operation;
use super::thread::{Slot, Thread, Work};
use bucketload_store::{Chunk, Object};

/// Bytes of a file read at a time.
const FILE_PIECE: usize = 256 * 1024;
/// File buffers kept per thread.
const SPARE: usize = 16;

thread_local! {
    static BUFFERS: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Holds an answer back as long as the fault rules say, and writes down when it really went.
pub(crate) async fn hold(thread: &Thread, slot: &Slot, operation: Operation, key: &str) {
    let Some(delays) = &thread.delays else { return };
    let faults = &thread.shared.faults;
    let ready = Instant::now();
    let mut due = faults.held_until(operation, key, ready);
    Thread::hold(slot);
    delays.until(due).await;
    while let Some(until) = faults.stalled_until(operation, key, Instant::now()) {
        due = until;
        delays.until(until).await;
    }
    thread.allow(slot);
    if let Some(log) = &thread.shared.fault_log
        && due > ready
    {
        log.held(operation, key, [ready, due, Instant::now()]);
    }
}

/// Sends the head in `work` and the object's bytes. Whether the answer was cut short on purpose.
///
/// # Errors
/// The connection's; also where the object cannot be read to its end.
pub(crate) async fn object(
    thread: &Thread,
    slot: &Slot,
    conn: &mut Conn,
    work: &Work,
    reply: Reply,
) -> Result<bool, Error> {
    let Some(Extract { source, range }) = &work.extract else {
        return Ok(true);
    };
    let length = range.end - range.start;
    let faults = &thread.shared.faults;
    let on_body = match reply.operation {
        Some(operation) if length > 0 && !faults.is_empty() => {
            faults.on_body(operation, work.target.key(), length)
        }
        _ => OnBody::default(),
    };
    let total = on_body.truncate.unwrap_or(length);
    let mut pace = reply.rate.map(Pace::new);
    let (mut sent, mut head) = (0, work.head.bytes());
    while sent < total || !head.is_empty() {
        let step = pace
            .as_ref()
            .map_or(total, |pace| pace.piece())
            .min(total - sent);
        conn.send_body(head, step, |offset| {
            thread.allow(slot);
            let at = sent + offset;
            let piece = Piece::of(source, range.start + at, range.end - range.start - at);
            piece.corrupt(on_body.corrupt, at)
        })
        .await?;
        head = b"";
        sent += step;
        thread.counters().bytes_out.add(step);
        if let Some(pace) = &mut pace {
            pace.after(thread, slot, step).await;
        }
    }
    Ok(total < length)
}

/// Bytes ready to be sent.
enum Piece {
    /// Shared with the store.
    Chunk(Chunk),
    /// Read from a file, or changed.
    Own(Vec<u8>),
}

impl Piece {
    /// Bytes of `source` from `offset` on, at most `max`; none where it cannot be read.
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
        Self::Own(buffer)
    }

    /// Inverts the byte at body offset `target` if it lies in this piece, which starts at `at`.
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
        Self::Own(bytes)
    }
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Chunk(chunk) => chunk,
            Self::Own(bytes) => bytes,
        }
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        if let Self::Own(bytes) = self {
            let bytes = std::mem::take(bytes);
            if bytes.capacity() <= FILE_PIECE {
                // A connection may be dropped while the thread's locals are being destroyed.
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
