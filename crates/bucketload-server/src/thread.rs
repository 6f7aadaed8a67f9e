//! One serving thread: what its connections share, and the loop that accepts them.
//!
//! ```text
//! listener ── accept ──> connection task ── request ──> Work (from the pool) ──> answer
//!                              │  slot: when to give up
//! sweeper, once a second ──────┘  aborts connections whose time is over; drives the clock
//! ```
//!
//! Everything here stays on one thread (`Rc`, `Cell`); [`Shared`] is what the threads have in
//! common.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bucketload_s3::date;
use bucketload_wire::listen::{Listener, Port};
use bucketload_wire::tls::ServerTls;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, LocalSet};

use super::config::ServerConfig;
use super::connection;
use super::delay::Delays;
use super::faults::{FaultLog, Faults, History};
use super::respond::{Extract, Head};
use super::sigv4::Verifier;
use super::stats::{self, Counters, ServerStats};
use super::uri::Target;
use bucketload_store::Store;

/// Buffers of finished requests kept for the next ones.
const SPARE_WORKS: usize = 64;
/// Buffers that grew beyond this many bytes are freed.
const SPARE_BYTES: usize = 256 * 1024;
/// How long to wait before accepting again after running out of descriptors or the like.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What all threads of a server share.
pub(crate) struct Shared {
    pub(crate) config: ServerConfig,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) faults: Faults,
    pub(crate) fault_log: Option<FaultLog>,
    pub(crate) history: History,
    pub(crate) tls: Option<ServerTls>,
    pub(crate) counters: Box<[Counters]>,
    pub(crate) open: AtomicU64,
}

impl Shared {
    /// The sum of all threads' counters.
    pub(crate) fn stats(&self) -> ServerStats {
        let usage = self.store.usage();
        ServerStats {
            open_connections: self.open.load(Relaxed),
            objects: usage.map(|usage| usage.objects),
            charged_bytes: usage.map(|usage| usage.charged_bytes),
            faults: self.faults.stats(),
            ..stats::sum(self.counters.iter())
        }
    }
}

/// The buffers of one request under way.
#[derive(Debug, Default)]
pub(crate) struct Work {
    /// Bucket, key and parameters.
    pub(crate) target: Target,
    /// The answer's head.
    pub(crate) head: Head,
    /// The answer's document.
    pub(crate) document: Vec<u8>,
    /// The request's document.
    pub(crate) input: Vec<u8>,
    /// The object's bytes that the answer sends, where it does.
    pub(crate) extract: Option<Extract>,
}

/// What the connections of one thread share.
pub(crate) struct Thread {
    pub(crate) shared: Arc<Shared>,
    pub(crate) counters: usize,
    pub(crate) verifier: RefCell<Verifier>,
    /// Present where there are fault rules.
    pub(crate) delays: Option<Delays>,
    #[allow(
        clippy::vec_box,
        reason = "moving the box is cheaper than moving the buffers' handles"
    )]
    works: RefCell<Vec<Box<Work>>>,
    /// Second and text of the last `Date`.
    date: RefCell<(u64, Vec<u8>)>,
    request_id: Cell<u64>,
    /// Seconds that the thread has served.
    tick: Cell<u32>,
    slots: RefCell<HashMap<u64, Rc<Slot>>>,
    next_slot: Cell<u64>,
}

/// When a connection is given up.
#[derive(Debug)]
pub(crate) struct Slot {
    deadline: Cell<u32>,
    task: RefCell<Option<AbortHandle>>,
}

impl Thread {
    /// The state of thread `number` of a server.
    ///
    /// # Errors
    /// When there are fault rules and no timer can be made.
    pub(crate) fn new(shared: Arc<Shared>, number: usize) -> io::Result<Self> {
        let config = &shared.config;
        let verifier = Verifier::new(config.keys.clone(), config.region.clone(), config.access);
        let delays = if shared.faults.is_empty() {
            None
        } else {
            Some(Delays::new()?)
        };
        let seed = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), number);
        Ok(Self {
            counters: number,
            verifier: RefCell::new(verifier),
            delays,
            works: RefCell::default(),
            date: RefCell::new((u64::MAX, Vec::with_capacity(32))),
            request_id: Cell::new(seed),
            tick: Cell::new(0),
            slots: RefCell::default(),
            next_slot: Cell::new(0),
            shared,
        })
    }

    /// This thread's counters.
    pub(crate) fn counters(&self) -> &Counters {
        &self.shared.counters[self.counters]
    }

    /// Buffers for a request that has arrived at `now` (seconds since 1970).
    pub(crate) fn take_work(&self, now: u64) -> Box<Work> {
        let mut work = self.works.borrow_mut().pop().unwrap_or_default();
        let mut date = self.date.borrow_mut();
        let (second, text) = &mut *date;
        if *second != now {
            text.clear();
            text.extend_from_slice(&date::http_date(now));
            *second = now;
        }
        let id = self.request_id.get().wrapping_add(1);
        self.request_id.set(id);
        work.head.stamp(text, hex16(id));
        work
    }

    /// Keeps buffers for the next request.
    pub(crate) fn give_back(&self, mut work: Box<Work>) {
        work.input.clear();
        work.extract = None;
        for buffer in [&mut work.input, &mut work.document] {
            if buffer.capacity() > SPARE_BYTES {
                *buffer = Vec::new();
            }
        }
        let mut works = self.works.borrow_mut();
        if works.len() < SPARE_WORKS {
            works.push(work);
        }
    }

    /// Sets the time after which the connection is given up, counted from now.
    pub(crate) fn allow(&self, slot: &Slot) {
        let seconds = self.shared.config.idle_timeout.as_secs().clamp(1, 1 << 30) as u32;
        // The current tick has partly passed already.
        slot.deadline.set(self.tick.get() + seconds + 1);
    }

    /// Takes the time limit from a connection while a fault holds it.
    pub(crate) fn hold(slot: &Slot) {
        slot.deadline.set(u32::MAX);
    }

    /// Gives up connections whose time is over, once a second.
    async fn sweep(&self) {
        let mut interval = tokio::time::interval(Duration::from_secs(1));
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            interval.tick().await;
            let now = self.tick.get() + 1;
            self.tick.set(now);
            for slot in self.slots.borrow().values() {
                if slot.deadline.get() < now
                    && let Some(task) = &*slot.task.borrow()
                {
                    task.abort();
                }
            }
        }
    }

    /// Accepts connections and starts a task for each.
    async fn accept(self: &Rc<Self>, listener: &Listener) {
        loop {
            let Ok((sock, _)) = listener.accept().await else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let open = self.shared.open.fetch_add(1, Relaxed);
            let entry = Entry::new(self);
            if open >= self.shared.config.max_connections as u64 {
                self.counters().refused.add(1);
                entry.spawn(connection::refuse(sock));
            } else {
                self.counters().connections.add(1);
                let slot = Rc::clone(&entry.slot);
                entry.spawn(connection::serve(Rc::clone(self), slot, sock));
            }
        }
    }
}

/// A connection's place among the slots, given back when it ends however it ends.
struct Entry {
    thread: Rc<Thread>,
    slot: Rc<Slot>,
    number: u64,
}

impl Entry {
    /// Takes a place for a connection that has been counted as open.
    fn new(thread: &Rc<Thread>) -> Self {
        let slot = Rc::new(Slot {
            deadline: Cell::new(0),
            task: RefCell::new(None),
        });
        thread.allow(&slot);
        let number = thread.next_slot.get();
        thread.next_slot.set(number + 1);
        thread.slots.borrow_mut().insert(number, Rc::clone(&slot));
        Self {
            thread: Rc::clone(thread),
            slot,
            number,
        }
    }

    fn spawn(self, task: impl Future<Output = ()> + 'static) {
        let slot = Rc::clone(&self.slot);
        let handle = tokio::task::spawn_local(async move {
            let _entry = self;
            task.await;
        });
        *slot.task.borrow_mut() = Some(handle.abort_handle());
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.thread.slots.borrow_mut().remove(&self.number);
        self.thread.shared.open.fetch_sub(1, Relaxed);
    }
}

/// Serves `port` on the calling thread until `stop` is told or dropped. `started` learns whether it
/// works.
pub(crate) fn run(
    shared: Arc<Shared>,
    number: usize,
    port: Port,
    stop: oneshot::Receiver<()>,
    started: std::sync::mpsc::Sender<io::Result<()>>,
) {
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return drop(started.send(Err(error))),
    };
    let local = LocalSet::new();
    local.block_on(&runtime, async {
        let ready = port
            .listen()
            .and_then(|l| Ok((l, Rc::new(Thread::new(shared, number)?))));
        let (listener, thread) = match ready {
            Ok(ready) => ready,
            Err(error) => return drop(started.send(Err(error))),
        };
        // The starter waits until every thread has sent and dropped its end.
        let _ = started.send(Ok(()));
        drop(started);
        let delays = async {
            match &thread.delays {
                Some(delays) => delays.run().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = stop => {}
            () = thread.accept(&listener) => {}
            () = thread.sweep() => {}
            () = delays => {}
        }
    });
}

/// Sixteen upper-case hexadecimal digits.
fn hex16(n: u64) -> [u8; 16] {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    std::array::from_fn(|i| HEX[(n >> (60 - 4 * i)) as usize & 15])
}
