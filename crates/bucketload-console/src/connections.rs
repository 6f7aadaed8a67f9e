//! The open connections of the console, and which of them makes room for a new one.
//!
//! A connection is *known* once its client has shown the token (without a token: once it has completed a request).
//! When all places are taken, the oldest unknown connection is closed, so clients that stay silent or send slowly
//! cannot keep others out. Known connections are never closed for a new one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use crate::lock;

/// An open connection, as the requests on it see it.
#[derive(Debug, Default)]
pub(crate) struct Peer {
    known: AtomicBool,
    close: Notify,
}

impl Peer {
    /// Keeps the connection when places run out.
    pub(crate) fn set_known(&self) {
        self.known.store(true, Ordering::Relaxed);
    }

    /// Waits until the connection must make room.
    pub(crate) async fn closing(&self) {
        self.close.notified().await;
    }
}

/// All open connections, oldest first.
#[derive(Debug)]
pub(crate) struct Connections {
    limit: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    peers: BTreeMap<u64, Arc<Peer>>,
}

impl Connections {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            open: Mutex::default(),
        })
    }

    /// Admits a connection, in place of the oldest unknown one if there are too many; `None` if all are known.
    pub(crate) fn admit(self: &Arc<Self>) -> Option<Place> {
        let mut open = lock(&self.open);
        if open.peers.len() >= self.limit {
            let unknown = |(_, peer): &(&u64, &Arc<Peer>)| !peer.known.load(Ordering::Relaxed);
            let oldest = *open.peers.iter().find(unknown)?.0;
            if let Some(peer) = open.peers.remove(&oldest) {
                peer.close.notify_one();
            }
        }
        let id = open.next;
        open.next += 1;
        let peer = Arc::<Peer>::default();
        open.peers.insert(id, Arc::clone(&peer));
        Some(Place {
            all: Arc::clone(self),
            id,
            peer,
        })
    }
}

/// The place of one connection, given back on drop.
#[derive(Debug)]
pub(crate) struct Place {
    all: Arc<Connections>,
    id: u64,
    pub(crate) peer: Arc<Peer>,
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.all.open).peers.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::Connections;

    #[tokio::test]
    async fn the_oldest_unknown_connection_makes_room() {
        let all = Connections::new(3);
        let [first, second, third] = std::array::from_fn(|_| all.admit().unwrap());
        first.peer.set_known();
        let fourth = all.admit().unwrap();
        second.peer.closing().await;
        drop(second);
        third.peer.set_known();
        fourth.peer.set_known();
        assert!(all.admit().is_none(), "all are known");
        drop(third);
        assert!(all.admit().is_some());
    }
}
