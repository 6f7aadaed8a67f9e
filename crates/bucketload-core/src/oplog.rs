//! Carries operations from the load threads to the writer of the operation log, in bounded memory and without ever
//! blocking a load thread.
//!
//! ```text
//!  load thread                                      writer thread
//!  Producer ── push ── batch full, or interval over ──▶ Batch: rows of one thread
//!      ▲                                                  │ written, emptied
//!      └───────────── empty batches of this thread ◀──────┘
//! ```
//!
//! Each producer owns a fixed number of batches, allocated before the load begins. If all of them are in use, the
//! writer is too slow. Until a batch comes back, further operations are counted as dropped instead of logged.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use crate::trail::Trail;

/// Operations per batch.
pub const BATCH_ROWS: usize = 512;
/// Batches of one load thread: 32 768 operations, some 17 MB of address space. Memory is touched only as far as the
/// writer lags.
pub const BATCHES: usize = 64;

/// Bytes for names per operation of a batch, on average. A batch is full when its rows or its bytes are used up.
const NAME_BYTES: usize = 96;
/// Least number of bytes for names in a batch: a key and a source key of S3's maximum length.
const MOST_NAMES: usize = 2 * 1024;

/// Operations and their names.
#[derive(Debug, Default)]
struct Rows {
    rows: Vec<Row>,
    names: Vec<u8>,
}

/// One operation. Its names are in [`Rows::names`].
#[derive(Clone, Copy, Debug)]
struct Row {
    trail: Trail,
    /// Ends of key and source key in the names.
    ends: (u32, u32),
}

impl Rows {
    fn new(rows: usize) -> Self {
        Self {
            rows: Vec::with_capacity(rows),
            names: Vec::with_capacity((rows * NAME_BYTES).max(MOST_NAMES)),
        }
    }

    fn fits(&self, names: usize) -> bool {
        self.rows.len() < self.rows.capacity() && self.names.len() + names <= self.names.capacity()
    }

    fn push(&mut self, trail: Trail, key: &str, source: &str) {
        self.names.extend_from_slice(key.as_bytes());
        let key = self.names.len() as u32;
        self.names.extend_from_slice(source.as_bytes());
        let ends = (key, self.names.len() as u32);
        self.rows.push(Row { trail, ends });
    }

    fn clear(&mut self) {
        self.rows.clear();
        self.names.clear();
    }
}

/// Operations of one load thread, for the writer.
#[derive(Debug)]
pub struct Batch {
    /// Index of the phase.
    pub phase: u16,
    /// Index of the load thread.
    pub thread: u16,
    rows: Rows,
    home: SyncSender<Rows>,
}

impl Batch {
    /// Number of operations.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.rows.len()
    }

    /// True if empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.rows.is_empty()
    }

    /// The operations, each with its key (or prefix) and, for copies, source key, in the order in which they ended.
    pub fn rows(&self) -> impl Iterator<Item = (&Trail, &str, &str)> {
        let mut from = 0;
        self.rows.rows.iter().map(move |row| {
            let (key, source) = (row.ends.0 as usize, row.ends.1 as usize);
            // The ranges are whole texts, so they are valid UTF-8.
            let text = |range| std::str::from_utf8(&self.rows.names[range]).unwrap_or_default();
            let names = (text(from..key), text(key..source));
            from = source;
            (&row.trail, names.0, names.1)
        })
    }

    /// Returns the memory to the load thread.
    pub fn recycle(self) {
        let mut rows = self.rows;
        rows.clear();
        // The channel has room for all batches of the thread. If it is closed, the thread has ended.
        let _ = self.home.try_send(rows);
    }
}

/// The input side of the operation log: makes a [`Producer`] per phase and load thread. The writer's receiver ends when
/// this and all producers are dropped.
#[derive(Clone, Debug)]
pub struct OpLog {
    to_writer: SyncSender<Batch>,
    dropped: Arc<AtomicU64>,
    batches: usize,
    batch_rows: usize,
}

impl OpLog {
    /// A log for at most `threads` load threads at a time, and the receiver for the writer.
    #[must_use]
    pub fn new(threads: usize) -> (Self, Receiver<Batch>) {
        Self::sized(threads, BATCHES, BATCH_ROWS)
    }

    /// As [`OpLog::new`], with `batches` per thread and `batch_rows` per batch, each at least 1.
    #[must_use]
    pub fn sized(threads: usize, batches: usize, batch_rows: usize) -> (Self, Receiver<Batch>) {
        let (batches, batch_rows) = (batches.max(1), batch_rows.max(1));
        // Room for the batches of this phase and of the previous one.
        let (to_writer, batches_out) = sync_channel(2 * threads.max(1) * batches);
        let log = Self {
            to_writer,
            dropped: Arc::default(),
            batches,
            batch_rows,
        };
        (log, batches_out)
    }

    /// A producer for one load thread in one phase.
    #[must_use]
    pub fn producer(&self, phase: u16, thread: u16) -> Producer {
        let (home, back) = sync_channel(self.batches);
        let empty = || Rows::new(self.batch_rows);
        Producer {
            phase,
            thread,
            current: empty(),
            spares: (1..self.batches).map(|_| empty()).collect(),
            back,
            home,
            to_writer: self.to_writer.clone(),
            dropped: Arc::clone(&self.dropped),
        }
    }

    /// The number of operations that were not logged because the writer was too slow.
    #[must_use]
    pub fn dropped(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.dropped)
    }
}

/// Logs the operations of one load thread.
#[derive(Debug)]
pub struct Producer {
    phase: u16,
    thread: u16,
    current: Rows,
    /// Empty batches. The last one used is reused first, so few are ever touched.
    spares: Vec<Rows>,
    back: Receiver<Rows>,
    home: SyncSender<Rows>,
    to_writer: SyncSender<Batch>,
    dropped: Arc<AtomicU64>,
}

impl Producer {
    /// Logs an operation on `key` (or a prefix), for copies from `source`. Allocates nothing, locks nothing and never
    /// waits. Drops and counts the operation if all batches are full or its names are longer than S3 allows.
    #[inline]
    pub fn push(&mut self, trail: Trail, key: &str, source: &str) {
        let names = key.len() + source.len();
        if !self.current.fits(names) {
            self.flush();
            if !self.current.fits(names) {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                return;
            }
        }
        self.current.push(trail, key, source);
    }

    /// Sends the current batch if an empty one is left. Returns whether nothing remains to be sent.
    pub fn settle(&mut self) -> bool {
        self.flush();
        self.current.rows.is_empty()
    }

    /// From now on logs for phase `phase` and load thread `thread`. For relaying the logs of several load threads of
    /// another process.
    pub fn switch(&mut self, phase: u16, thread: u16) {
        if (self.phase, self.thread) == (phase, thread) {
            return;
        }
        if !self.settle() {
            // No empty batch is left: drop the operations rather than attribute them to the wrong thread.
            let lost = self.current.rows.len() as u64;
            self.dropped.fetch_add(lost, Ordering::Relaxed);
            self.current.clear();
        }
        (self.phase, self.thread) = (phase, thread);
    }

    fn batch(&self, rows: Rows) -> Batch {
        Batch {
            phase: self.phase,
            thread: self.thread,
            rows,
            home: self.home.clone(),
        }
    }

    /// Sends the current batch, unless no empty one is left.
    pub fn flush(&mut self) {
        if self.current.rows.is_empty() {
            return;
        }
        while let Ok(batch) = self.back.try_recv() {
            self.spares.push(batch);
        }
        let Some(empty) = self.spares.pop() else {
            return;
        };
        let rows = std::mem::replace(&mut self.current, empty);
        let batch = self.batch(rows);
        if let Err(TrySendError::Full(batch) | TrySendError::Disconnected(batch)) =
            self.to_writer.try_send(batch)
        {
            let empty = std::mem::replace(&mut self.current, batch.rows);
            self.spares.push(empty);
        }
    }
}

/// Sends the rest. This may wait for the writer, since the load is over.
impl Drop for Producer {
    fn drop(&mut self) {
        if self.current.rows.is_empty() {
            return;
        }
        let rows = std::mem::take(&mut self.current);
        let lost = rows.rows.len() as u64;
        let batch = self.batch(rows);
        if self.to_writer.send(batch).is_err() {
            self.dropped.fetch_add(lost, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::OpLog;
    use crate::op::{Op, OpClass};
    use crate::record::{OpRecord, Probe};
    use crate::trail::Trail;

    fn trail(seq: u64) -> Trail {
        let record = OpRecord {
            attempts: 1,
            ..OpRecord::BLANK
        };
        let op = Op {
            seq,
            key: seq,
            ..Op::new(OpClass::Get)
        };
        Trail::new(&record, &op, Default::default(), &Probe::untimed())
    }

    fn push(producer: &mut super::Producer, seq: u64) {
        producer.push(
            trail(seq),
            &format!("key {seq}"),
            if seq.is_multiple_of(3) { "source" } else { "" },
        );
    }

    fn seqs<'a>(batches: impl Iterator<Item = super::Batch> + 'a) -> Vec<u64> {
        let rows = |batch: super::Batch| batch.rows().map(|(t, ..)| t.op.seq).collect::<Vec<_>>();
        batches.flat_map(rows).collect()
    }

    #[test]
    fn a_writer_that_keeps_up_gets_everything_in_order() {
        let (log, batches) = OpLog::sized(1, 3, 4);
        let mut producer = log.producer(2, 1);
        let mut seen = Vec::new();
        for seq in 0..103 {
            push(&mut producer, seq);
            while let Ok(batch) = batches.try_recv() {
                assert_eq!((batch.phase, batch.thread), (2, 1));
                for (trail, key, source) in batch.rows() {
                    let seq = trail.op.seq;
                    assert_eq!(key, format!("key {seq}"));
                    assert_eq!(source.is_empty(), !seq.is_multiple_of(3));
                    seen.push(seq);
                }
                batch.recycle();
            }
        }
        let dropped = log.dropped();
        drop((producer, log));
        seen.extend(seqs(batches.iter()));
        assert_eq!(seen, (0..103).collect::<Vec<_>>());
        assert_eq!(dropped.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_slow_writer_costs_rows_not_time_and_every_lost_row_is_counted() {
        let (log, batches) = OpLog::sized(1, 3, 4);
        let mut producer = log.producer(0, 0);
        (0..50).for_each(|seq| push(&mut producer, seq));
        assert_eq!(log.dropped().load(Ordering::Relaxed), 50 - 12);
        // One batch comes back, with room for four more rows.
        batches.recv().unwrap().recycle();
        (50..60).for_each(|seq| push(&mut producer, seq));
        let dropped = log.dropped();
        drop((producer, log));
        let kept = seqs(batches.iter());
        assert_eq!(kept, [4, 5, 6, 7, 8, 9, 10, 11, 50, 51, 52, 53]);
        assert_eq!(kept.len() as u64 + 4 + dropped.load(Ordering::Relaxed), 60);
    }

    #[test]
    fn long_keys_fill_batches_and_too_long_ones_are_dropped_and_counted() {
        let (log, batches) = OpLog::sized(1, 4, 4);
        let mut producer = log.producer(0, 0);
        let key = "k".repeat(1024);
        (0..5).for_each(|seq| producer.push(trail(seq), &key, ""));
        producer.push(trail(9), &"k".repeat(3000), "");
        let dropped = log.dropped();
        drop((producer, log));
        let sizes: Vec<usize> = batches.iter().map(|batch| batch.len()).collect();
        assert_eq!(sizes, [2, 2, 1]);
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_missing_writer_does_not_stop_the_producer() {
        let (log, batches) = OpLog::sized(1, 2, 2);
        let mut producer = log.producer(0, 0);
        drop(batches);
        (0..10).for_each(|seq| push(&mut producer, seq));
        drop(producer);
        assert_eq!(log.dropped().load(Ordering::Relaxed), 10);
    }
}
