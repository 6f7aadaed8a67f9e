//! One serving thread: the state that its connections share, and the accept loop.
//!
//! ```text
//! listener ── accept ──> connection task ── request ──> RequestBuffers (pooled) ──> response
//!                              │  Watchdog: the idle deadline
//! sweeper, once a second ──────┘  advances the clock; aborts connections past their deadline
//! ```
//!
//! Everything here stays on one thread (`Rc`, `Cell`) except [`ServerState`], which all threads share.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bucketload_s3::date;
use bucketload_wire::clock;
use bucketload_wire::listen::{Listener, Port};
use bucketload_wire::tls::ServerTls;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, LocalSet};

use super::config::ServerConfig;
use super::connection;
use super::delay::Delays;
use super::faults::{FaultLog, Faults, History};
use super::respond::{Head, ObjectBytes};
use super::sigv4::Verifier;
use super::stats::{self, Counters, ServerStats};
use super::uri::Target;
use bucketload_store::Store;

/// Buffers of finished requests kept for reuse, per thread.
const SPARE_BUFFERS: usize = 64;
/// Buffers larger than this many bytes are freed instead of reused.
const SPARE_BYTES: usize = 256 * 1024;
/// Pause before accepting again after an error such as running out of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The state that all threads of a server share.
pub(crate) struct ServerState {
    pub(crate) config: ServerConfig,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) faults: Faults,
    pub(crate) fault_log: Option<FaultLog>,
    pub(crate) history: History,
    pub(crate) tls: Option<ServerTls>,
    pub(crate) counters: Box<[Counters]>,
    pub(crate) open: AtomicU64,
    /// Whether some bucket was given a default encryption.
    pub(crate) default_encryption: AtomicBool,
}

impl ServerState {
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

/// The buffers of one request in progress, reused for later requests.
#[derive(Debug, Default)]
pub(crate) struct RequestBuffers {
    /// Bucket, key and parameters.
    pub(crate) target: Target,
    /// The response's head.
    pub(crate) head: Head,
    /// The response's XML document.
    pub(crate) document: Vec<u8>,
    /// The request's XML document.
    pub(crate) input: Vec<u8>,
    /// The object bytes that the response sends, if any.
    pub(crate) object_bytes: Option<ObjectBytes>,
}

/// The state that the connections of one thread share.
pub(crate) struct Thread {
    pub(crate) server: Arc<ServerState>,
    number: usize,
    pub(crate) verifier: RefCell<Verifier>,
    /// Present if there are fault rules.
    pub(crate) delays: Option<Delays>,
    #[allow(
        clippy::vec_box,
        reason = "moving a box is cheaper than moving the struct"
    )]
    spare_buffers: RefCell<Vec<Box<RequestBuffers>>>,
    /// Second and text of the most recent `Date` header.
    date: RefCell<(u64, Vec<u8>)>,
    request_id: Cell<u64>,
    /// Seconds since the thread started serving.
    tick: Cell<u32>,
    watchdogs: RefCell<HashMap<u64, Rc<Watchdog>>>,
    next_connection: Cell<u64>,
}

/// The idle deadline of one connection, and the handle that aborts it.
#[derive(Debug)]
pub(crate) struct Watchdog {
    deadline: Cell<u32>,
    task: RefCell<Option<AbortHandle>>,
}

impl Watchdog {
    /// Lifts the deadline while a fault holds the connection.
    pub(crate) fn suspend(&self) {
        self.deadline.set(u32::MAX);
    }
}

impl Thread {
    /// The state of thread number `number`.
    ///
    /// # Errors
    /// If there are fault rules and the timer cannot be created.
    pub(crate) fn new(server: Arc<ServerState>, number: usize) -> io::Result<Self> {
        let config = &server.config;
        let verifier = Verifier::new(config.keys.clone(), config.region.clone(), config.access);
        let delays = if server.faults.is_empty() {
            None
        } else {
            Some(Delays::new()?)
        };
        let seed = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), number);
        Ok(Self {
            number,
            verifier: RefCell::new(verifier),
            delays,
            spare_buffers: RefCell::default(),
            date: RefCell::new((u64::MAX, Vec::with_capacity(32))),
            request_id: Cell::new(seed),
            tick: Cell::new(0),
            watchdogs: RefCell::default(),
            next_connection: Cell::new(0),
            server,
        })
    }

    /// This thread's counters.
    pub(crate) fn counters(&self) -> &Counters {
        &self.server.counters[self.number]
    }

    /// The server's clock, in seconds since 1970.
    pub(crate) fn now(&self) -> u64 {
        clock::wall_seconds() + self.server.config.quirks.clock_lead()
    }

    /// Takes buffers for a request that arrives now.
    pub(crate) fn take_buffers(&self) -> Box<RequestBuffers> {
        let now = self.now();
        let mut buffers = self.spare_buffers.borrow_mut().pop().unwrap_or_default();
        let mut date = self.date.borrow_mut();
        let (second, text) = &mut *date;
        if *second != now {
            text.clear();
            text.extend_from_slice(&date::http_date(now));
            *second = now;
        }
        let id = self.request_id.get().wrapping_add(1);
        self.request_id.set(id);
        buffers.head.stamp(text, hex16(id));
        buffers
    }

    /// Returns buffers for the next request.
    pub(crate) fn give_back(&self, mut buffers: Box<RequestBuffers>) {
        buffers.input.clear();
        buffers.object_bytes = None;
        for buffer in [&mut buffers.input, &mut buffers.document] {
            if buffer.capacity() > SPARE_BYTES {
                *buffer = Vec::new();
            }
        }
        let mut spare_buffers = self.spare_buffers.borrow_mut();
        if spare_buffers.len() < SPARE_BUFFERS {
            spare_buffers.push(buffers);
        }
    }

    /// Restarts the idle timeout of a connection.
    pub(crate) fn rearm(&self, watchdog: &Watchdog) {
        let seconds = self.server.config.idle_timeout.as_secs().clamp(1, 1 << 30) as u32;
        // The current tick has partly passed already.
        watchdog.deadline.set(self.tick.get() + seconds + 1);
    }

    /// Once a second, aborts the connections past their deadline.
    async fn sweep(&self) {
        let mut interval = tokio::time::interval(Duration::from_secs(1));
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            interval.tick().await;
            let now = self.tick.get() + 1;
            self.tick.set(now);
            for watchdog in self.watchdogs.borrow().values() {
                if watchdog.deadline.get() < now
                    && let Some(task) = &*watchdog.task.borrow()
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
            let open = self.server.open.fetch_add(1, Relaxed);
            let guard = ConnectionGuard::new(self);
            if open >= self.server.config.max_connections as u64 {
                self.counters().refused.add(1);
                guard.spawn(connection::refuse(sock));
            } else {
                self.counters().connections.add(1);
                let watchdog = Rc::clone(&guard.watchdog);
                guard.spawn(connection::serve(Rc::clone(self), watchdog, sock));
            }
        }
    }
}

/// Registers a connection with its thread; deregisters it on drop.
struct ConnectionGuard {
    thread: Rc<Thread>,
    watchdog: Rc<Watchdog>,
    number: u64,
}

impl ConnectionGuard {
    /// Registers a connection that is already counted as open.
    fn new(thread: &Rc<Thread>) -> Self {
        let watchdog = Rc::new(Watchdog {
            deadline: Cell::new(0),
            task: RefCell::new(None),
        });
        thread.rearm(&watchdog);
        let number = thread.next_connection.get();
        thread.next_connection.set(number + 1);
        thread
            .watchdogs
            .borrow_mut()
            .insert(number, Rc::clone(&watchdog));
        Self {
            thread: Rc::clone(thread),
            watchdog,
            number,
        }
    }

    fn spawn(self, task: impl Future<Output = ()> + 'static) {
        let watchdog = Rc::clone(&self.watchdog);
        let handle = tokio::task::spawn_local(async move {
            let _guard = self;
            task.await;
        });
        *watchdog.task.borrow_mut() = Some(handle.abort_handle());
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.thread.watchdogs.borrow_mut().remove(&self.number);
        self.thread.server.open.fetch_sub(1, Relaxed);
    }
}

/// Serves `port` on the calling thread until `stop` is signalled or dropped. Reports on `started`
/// whether the start succeeded.
pub(crate) fn run(
    server: Arc<ServerState>,
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
            .and_then(|l| Ok((l, Rc::new(Thread::new(server, number)?))));
        let (listener, thread) = match ready {
            Ok(ready) => ready,
            Err(error) => return drop(started.send(Err(error))),
        };
        // `Server::start` waits until every thread has dropped its sender.
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
