//! The server: listens, and performs the calls of each connection on a [`Store`] in a separate thread.
//!
//! ```text
//! listen: address and token ── accept: one thread ── connection: one thread each, frames in, frames out
//!                                                              perform: requests on the store
//!                                                              body: bytes between socket and store
//!                                                              files: files instead of bytes, on Unix sockets
//!                                                              affinity: the core on which the thread runs
//! ```
//!
//! A slow, dead or malicious client costs its own thread and at most 8 MiB (0.5 MiB except for the longest
//! listings and completions). There are at most [`ServerOptions::connections`] clients; the oldest
//! one without a handshake makes room for a new one. Objects are never held in memory.

mod accept;
mod affinity;
mod body;
mod connection;
mod files;
mod listen;
mod perform;
mod replies;
mod splice;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bucketload_store::Store;
use bucketload_token::AccessToken;

use crate::address::Address;
use accept::ServerState;
use listen::Listener;
pub use listen::StartError;

/// Options of a [`Server`].
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Where to listen; port 0 selects a free port.
    pub address: Address,
    /// The token that clients must know. Without a token the address must be local.
    pub token: Option<AccessToken>,
    /// Maximum number of connections. The oldest client without a handshake makes room for a new one; if all have
    /// completed it, further clients are refused with that reason.
    pub connections: usize,
    /// Maximum single wait for a client, within a request or while sending an answer.
    pub stall_timeout: Duration,
    /// How long a connection's thread polls for the next request before it sleeps, unless the core is needed for
    /// other work.
    pub busy_poll: Duration,
}

impl ServerOptions {
    /// The defaults at `address`: no token, 1,024 connections, a stall timeout of 60 s, 50 µs of polling.
    #[must_use]
    pub const fn new(address: Address) -> Self {
        Self {
            address,
            token: None,
            connections: 1024,
            stall_timeout: Duration::from_secs(60),
            busy_poll: Duration::from_micros(50),
        }
    }
}

/// A running gateway. Dropping it stops it.
#[derive(Debug)]
pub struct Server {
    state: Arc<ServerState>,
    listener: Arc<Listener>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts to listen and to serve `store`.
    ///
    /// # Errors
    /// When the address cannot be bound, or is not local and there is no token.
    pub fn start(options: ServerOptions, store: Arc<dyn Store>) -> Result<Self, StartError> {
        let listener = Arc::new(Listener::open(&options)?);
        let state = Arc::new(ServerState::new(options, store));
        let thread = std::thread::Builder::new()
            .name("gateway".to_owned())
            .spawn({
                let (state, listener) = (Arc::clone(&state), Arc::clone(&listener));
                move || accept::run(&state, &listener)
            })
            .map_err(StartError::Thread)?;
        Ok(Self {
            state,
            listener,
            thread: Some(thread),
        })
    }

    /// The bound address, with the actual port.
    #[must_use]
    pub fn address(&self) -> &Address {
        self.listener.address()
    }

    /// Number of open connections.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.state.connections()
    }

    /// Stops listening, gives requests in progress at most `grace` to finish, then closes every connection. Writes
    /// that are not committed by then are discarded.
    pub fn stop(mut self, grace: Duration) {
        self.end(grace);
    }

    fn end(&mut self, grace: Duration) {
        let Some(thread) = self.thread.take() else {
            return;
        };
        self.state.stop();
        self.listener.close();
        // If the thread panicked, the panic has been reported already.
        let _ = thread.join();
        self.state.finish(grace);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end(Duration::ZERO);
    }
}
