//! The thread that accepts connections, and the list of those that are open.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bucketload_store::Store;

use super::ServerOptions;
use super::affinity::Cores;
use super::connection::Connection;
use super::listen::Listener;
use crate::address::Address;
use crate::patience::most_looking;
use crate::protocol::{PROTOCOL_VERSION, Verdict, hello};
use crate::socket::Socket;

/// Stack of a connection's thread, bytes. Buffers live on the heap.
const STACK: usize = 512 << 10;

/// How long a connection that was in use still is, milliseconds.
const IN_USE_MS: u64 = 1000;

/// A connection as other threads see it.
pub(super) struct Guest {
    pub(super) socket: Socket,
    /// Whether a request is under way.
    pub(super) busy: AtomicBool,
    /// When it was last seen in use, milliseconds since the server began; 0 for never.
    seen_ms: AtomicU64,
}

/// What all threads of a server share.
pub(super) struct Shared {
    pub(super) options: ServerOptions,
    pub(super) store: Arc<dyn Store>,
    stopping: AtomicBool,
    next: AtomicU64,
    open: Mutex<HashMap<u64, Arc<Guest>>>,
    began: Instant,
    pub(super) cores: Cores,
    /// Connections at work at once that may look for their clients.
    most_looking: usize,
    closed: Condvar,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn new(options: ServerOptions, store: Arc<dyn Store>) -> Self {
        Self {
            options,
            store,
            stopping: AtomicBool::new(false),
            next: AtomicU64::new(0),
            open: Mutex::default(),
            began: Instant::now(),
            cores: Cores::of_this_thread(),
            most_looking: most_looking(),
            closed: Condvar::new(),
        }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u64, Arc<Guest>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn connections(&self) -> usize {
        self.open().len()
    }

    /// Notes that `guest` is in use, and returns whether more connections are than may look for their clients.
    pub(super) fn is_crowded_by(&self, guest: &Guest) -> bool {
        let now_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        guest.seen_ms.store(now_ms.max(1), Ordering::Relaxed);
        let in_use = |guest: &&Arc<Guest>| {
            let seen_ms = guest.seen_ms.load(Ordering::Relaxed);
            seen_ms > 0 && now_ms.saturating_sub(seen_ms) <= IN_USE_MS
        };
        self.open().values().filter(in_use).count() > self.most_looking
    }

    /// Whether connections are TCP.
    pub(super) const fn is_tcp(&self) -> bool {
        matches!(self.options.address, Address::Tcp(_))
    }

    /// No further connection and no further request.
    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Waits until the connections have ended, and after `grace` ends them.
    pub(super) fn finish(&self, grace: Duration) {
        let end = Instant::now() + grace;
        let mut open = self.open();
        // Whoever waits for a request wakes; who performs one looks whether to go on when it is done.
        let idle = open
            .values()
            .filter(|guest| !guest.busy.load(Ordering::SeqCst));
        idle.for_each(|guest| guest.socket.close_reading());
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if open.is_empty() || left.is_zero() {
                break;
            }
            let waited = self.closed.wait_timeout(open, left);
            open = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        open.values().for_each(|guest| guest.socket.close_both());
    }
}

/// Accepts until the server stops.
pub(super) fn run(shared: &Arc<Shared>, listener: &Listener) {
    while !shared.is_stopping() {
        match listener.accept() {
            Ok(socket) => admit(shared, socket),
            Err(_) if shared.is_stopping() => {}
            Err(error) => {
                eprintln!("bucketload gateway: accept: {error}");
                // Too many open files, mostly: it passes when a client leaves, and trying at once is no help.
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

/// Gives a connection its thread.
fn admit(shared: &Arc<Shared>, socket: Socket) {
    let guest = Arc::new(Guest {
        socket,
        busy: AtomicBool::new(false),
        seen_ms: AtomicU64::new(0),
    });
    let id = shared.next.fetch_add(1, Ordering::Relaxed);
    {
        let mut open = shared.open();
        if open.len() >= shared.options.connections {
            drop(open);
            // The client may have gone; nothing more can be done for it.
            let _ = guest
                .socket
                .send(&hello(PROTOCOL_VERSION, Verdict::Full as u8), false);
            return;
        }
        open.insert(id, Arc::clone(&guest));
    }
    let entry = Entry {
        shared: Arc::clone(shared),
        id,
    };
    let spawned = std::thread::Builder::new()
        .name("gateway-client".to_owned())
        .stack_size(STACK)
        .spawn(move || {
            let entry = entry;
            Connection::new(&entry.shared, &guest).run();
        });
    if let Err(error) = spawned {
        eprintln!("bucketload gateway: no thread for a connection: {error}");
    }
}

/// Takes a connection off the list when its thread ends, by whatever way.
struct Entry {
    shared: Arc<Shared>,
    id: u64,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.shared.open().remove(&self.id);
        self.shared.closed.notify_all();
    }
}
