//! The thread that accepts connections, and the list of open connections.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bucketload_store::Store;

use super::ServerOptions;
use super::affinity::Cores;
use super::connection::Connection;
use super::listen::Listener;
use crate::address::Address;
use crate::busy_poll::max_pollers;
use crate::protocol::{PROTOCOL_VERSION, Verdict, hello};
use crate::socket::Socket;

/// Stack size of a connection's thread, bytes. Buffers live on the heap.
const STACK: usize = 512 << 10;

/// How long after its last request a connection still counts as in use, milliseconds.
const IN_USE_MS: u64 = 1000;

/// Maximum wait for the thread of a connection that must make room.
const ROOM_LIMIT: Duration = Duration::from_secs(1);

/// The part of a connection that other threads use.
pub(super) struct ConnectionHandle {
    pub(super) socket: Socket,
    /// Whether the client has completed the handshake.
    pub(super) greeted: AtomicBool,
    /// Whether a request is in progress.
    pub(super) busy: AtomicBool,
    /// When the connection was last in use, milliseconds since the server started; 0 for never.
    seen_ms: AtomicU64,
}

/// The state that all threads of a server share.
pub(super) struct ServerState {
    pub(super) options: ServerOptions,
    pub(super) store: Arc<dyn Store>,
    stopping: AtomicBool,
    next: AtomicU64,
    /// Open connections, oldest first.
    open: Mutex<BTreeMap<u64, Arc<ConnectionHandle>>>,
    began: Instant,
    pub(super) cores: Cores,
    /// Maximum number of connections in use at which their threads still poll.
    max_pollers: usize,
    closed: Condvar,
}

impl std::fmt::Debug for ServerState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerState")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl ServerState {
    pub(super) fn new(options: ServerOptions, store: Arc<dyn Store>) -> Self {
        Self {
            options,
            store,
            stopping: AtomicBool::new(false),
            next: AtomicU64::new(0),
            open: Mutex::default(),
            began: Instant::now(),
            cores: Cores::of_this_thread(),
            max_pollers: max_pollers(),
            closed: Condvar::new(),
        }
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<ConnectionHandle>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn connections(&self) -> usize {
        self.open().len()
    }

    /// Notes that a connection is in use. Returns whether more connections are in use than may poll.
    pub(super) fn is_crowded_by(&self, handle: &ConnectionHandle) -> bool {
        let now_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        handle.seen_ms.store(now_ms.max(1), Ordering::Relaxed);
        let in_use = |handle: &&Arc<ConnectionHandle>| {
            let seen_ms = handle.seen_ms.load(Ordering::Relaxed);
            seen_ms > 0 && now_ms.saturating_sub(seen_ms) <= IN_USE_MS
        };
        self.open().values().filter(in_use).count() > self.max_pollers
    }

    /// Enters a connection in the list. If the list is full, the oldest connection without a handshake makes room.
    /// Returns its number; `None` if every client has completed its handshake.
    fn enter(&self, handle: &Arc<ConnectionHandle>) -> Option<u64> {
        let end = Instant::now() + ROOM_LIMIT;
        let mut open = self.open();
        while open.len() >= self.options.connections {
            let silent = |other: &&Arc<ConnectionHandle>| !other.greeted.load(Ordering::Relaxed);
            // Its thread wakes and takes it off the list, so there are never more threads than connections.
            open.values().find(silent)?.socket.close_both();
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let waited = self.closed.wait_timeout(open, left);
            open = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        open.insert(id, Arc::clone(handle));
        Some(id)
    }

    /// Whether connections are TCP.
    pub(super) const fn is_tcp(&self) -> bool {
        matches!(self.options.address, Address::Tcp(_))
    }

    /// Accepts no more connections or requests.
    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Waits until all connections have ended, and closes the rest after `grace`.
    pub(super) fn finish(&self, grace: Duration) {
        let end = Instant::now() + grace;
        let mut open = self.open();
        // Idle threads wake up. Busy threads check `is_stopping` after their request.
        let idle = open
            .values()
            .filter(|handle| !handle.busy.load(Ordering::SeqCst));
        idle.for_each(|handle| handle.socket.close_reading());
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if open.is_empty() || left.is_zero() {
                break;
            }
            let waited = self.closed.wait_timeout(open, left);
            open = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        open.values().for_each(|handle| handle.socket.close_both());
    }
}

/// Accepts until the server stops.
pub(super) fn run(state: &Arc<ServerState>, listener: &Listener) {
    while !state.is_stopping() {
        match listener.accept() {
            Ok(socket) => admit(state, socket),
            Err(_) if state.is_stopping() => {}
            Err(error) => {
                eprintln!("bucketload gateway: accept: {error}");
                // Usually too many open files, until a client leaves: an immediate retry would fail again.
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

/// Starts a thread for a connection.
fn admit(state: &Arc<ServerState>, socket: Socket) {
    let handle = Arc::new(ConnectionHandle {
        socket,
        greeted: AtomicBool::new(false),
        busy: AtomicBool::new(false),
        seen_ms: AtomicU64::new(0),
    });
    let Some(id) = state.enter(&handle) else {
        // The client may be gone already.
        let _ = handle
            .socket
            .send(&hello(PROTOCOL_VERSION, Verdict::Full as u8), false);
        return;
    };
    let guard = OpenGuard {
        state: Arc::clone(state),
        id,
    };
    let spawned = std::thread::Builder::new()
        .name("gateway-client".to_owned())
        .stack_size(STACK)
        .spawn(move || {
            let guard = guard;
            Connection::new(&guard.state, &handle).run();
        });
    if let Err(error) = spawned {
        eprintln!("bucketload gateway: cannot start a thread for a connection: {error}");
    }
}

/// Removes a connection from the list when its thread ends, even by a panic.
struct OpenGuard {
    state: Arc<ServerState>,
    id: u64,
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        self.state.open().remove(&self.id);
        self.state.closed.notify_all();
    }
}
