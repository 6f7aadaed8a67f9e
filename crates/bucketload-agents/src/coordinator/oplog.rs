//! Relays the agents' operation log rows to the log's writer.
//!
//! ```text
//!  network ── rows: bounded, never waits ──▶ relay thread ── decodes ──▶ Producer ──▶ writer
//! ```
//!
//! Rows that do not fit are dropped and counted, as in a load thread, so the log slows nothing down.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use bucketload_core::oplog::{OpLog, Producer};
use bytes::Bytes;

use crate::error::AgentsError;
use crate::rows;

/// Capacity of the relay thread's queue, in messages of at most some 80 KB.
const MESSAGES_AHEAD: usize = 256;
/// How long the relay thread waits for the writer before it drops rows.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the rows of a phase may take to reach the writer after its end.
const END_TIMEOUT: Duration = Duration::from_secs(60);

/// Clock offset and first thread number of each agent in a phase.
pub(crate) type Origins = Vec<(i64, u16)>;

enum ToRelay {
    Begin(Box<Producer>, Origins),
    Rows(u32, Bytes),
    End(SyncSender<()>),
}

/// The network's end of the relay.
#[derive(Clone)]
pub(crate) struct RowSender {
    relay: SyncSender<ToRelay>,
    lost: Arc<AtomicU64>,
}

impl RowSender {
    /// Queues a message with rows; never waits.
    pub(crate) fn pass(&self, rank: u32, bytes: Bytes) {
        let count = rows::count(&bytes);
        if self.relay.try_send(ToRelay::Rows(rank, bytes)).is_err() {
            self.lost.fetch_add(count, Ordering::Relaxed);
        }
    }
}

/// The relay of a run.
pub(crate) struct OpLogRelay {
    to: SyncSender<ToRelay>,
    lost: Arc<AtomicU64>,
}

impl OpLogRelay {
    /// Starts the relay thread, which ends when its last sender is dropped.
    pub(crate) fn start() -> Result<Self, AgentsError> {
        let (to, from) = sync_channel(MESSAGES_AHEAD);
        let lost = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&lost);
        std::thread::Builder::new()
            .name("agents-op-log".to_owned())
            .spawn(move || relay(&from, &counter))
            .map_err(|e| AgentsError::aborted(format!("operation log: {e}")))?;
        Ok(Self { to, lost })
    }

    pub(crate) fn row_sender(&self) -> RowSender {
        RowSender {
            relay: self.to.clone(),
            lost: Arc::clone(&self.lost),
        }
    }

    /// From now on, rows belong to phase `phase` and go to `log`.
    pub(crate) fn begin(&self, log: &OpLog, phase: u16, origins: Origins) {
        let producer = Box::new(log.producer(phase, 0));
        // The thread outlives this sender.
        let _ = self.to.send(ToRelay::Begin(producer, origins));
    }

    /// Waits until the writer has every row of the phase, and adds the dropped rows to `log`'s count.
    pub(crate) fn end(&self, log: &OpLog) {
        let (done, wait) = sync_channel(1);
        if self.to.send(ToRelay::End(done)).is_ok() {
            let _ = wait.recv_timeout(END_TIMEOUT);
        }
        let lost = self.lost.swap(0, Ordering::Relaxed);
        log.dropped().fetch_add(lost, Ordering::Relaxed);
    }
}

fn relay(from: &Receiver<ToRelay>, lost: &AtomicU64) {
    let mut current: Option<(Box<Producer>, Origins)> = None;
    for message in from {
        match message {
            ToRelay::Begin(producer, origins) => current = Some((producer, origins)),
            ToRelay::Rows(rank, bytes) => {
                let logged = current.as_mut().and_then(|(producer, origins)| {
                    let (offset_ns, base) = *origins.get(rank as usize)?;
                    settle(producer);
                    rows::log(&bytes, offset_ns, base, producer)
                });
                if logged.is_none() {
                    lost.fetch_add(rows::count(&bytes), Ordering::Relaxed);
                }
            }
            ToRelay::End(done) => {
                // Dropping the producer flushes its rows to the writer.
                current = None;
                let _ = done.send(());
            }
        }
    }
}

/// Waits until the writer has taken the earlier rows, but at most `PATIENCE`.
fn settle(producer: &mut Producer) {
    let begun = Instant::now();
    while !producer.settle() && begun.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(2));
    }
}
