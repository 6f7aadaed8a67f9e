//! The server: listens, and performs the calls of each connection on a [`Store`] in a thread of its own.
//!
//! ```text
//! listen: where, and who may come ── accept: one thread ── connection: one thread each, frames in, frames out
//!                                                              perform: requests on the store
//!                                                              body: bytes between socket and store
//!                                                              files: files instead of bytes, on Unix sockets
//!                                                              affinity: the core that its thread runs on
//! ```
//!
//! A client that is slow, dead or malicious costs its own thread and 8 MiB at most (0.5 MiB but for the
//! longest listings and completions); there are at most
//! [`ServerOptions::connections`] of them. Objects are never held in memory.

mod accept;
mod affinity;
mod body;
mod connection;
mod files;
mod listen;
mod output;
mod perform;
mod splice;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bucketload_store::Store;

use crate::address::Address;
use crate::token::Token;
use accept::Shared;
use listen::Listener;
pub use listen::StartError;

/// How a server listens.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Where to listen; port 0 takes a free one.
    pub address: Address,
    /// The token that clients must know. Without one the address must be local.
    pub token: Option<Token>,
    /// Most connections at a time; further clients are told so.
    pub connections: usize,
    /// Longest single wait for a client within a request, or to take an answer.
    pub stall_timeout: Duration,
    /// How long a connection's thread looks for the next request before it sleeps, where it keeps nobody from
    /// working by that.
    pub patience: Duration,
}

impl ServerOptions {
    /// The defaults at `address`: no token, 1,024 connections, 60 s of stall, 50 µs of
    /// patience.
    #[must_use]
    pub const fn new(address: Address) -> Self {
        Self {
            address,
            token: None,
            connections: 1024,
            stall_timeout: Duration::from_secs(60),
            patience: Duration::from_micros(50),
        }
    }
}

/// A gateway that listens. Dropping it stops it.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    listener: Arc<Listener>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens, and serves `store` from now on.
    ///
    /// # Errors
    /// When the address cannot be listened on, or others can reach it and there is no token.
    pub fn start(options: ServerOptions, store: Arc<dyn Store>) -> Result<Self, StartError> {
        let listener = Arc::new(Listener::open(&options)?);
        let shared = Arc::new(Shared::new(options, store));
        let thread = std::thread::Builder::new()
            .name("gateway".to_owned())
            .spawn({
                let (shared, listener) = (Arc::clone(&shared), Arc::clone(&listener));
                move || accept::run(&shared, &listener)
            })
            .map_err(StartError::Thread)?;
        Ok(Self {
            shared,
            listener,
            thread: Some(thread),
        })
    }

    /// Where it listens, with the port that it got.
    #[must_use]
    pub fn address(&self) -> &Address {
        self.listener.address()
    }

    /// Connections that are open now.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.connections()
    }

    /// Stops listening, lets requests under way end for at most `grace`, then closes every connection. What was
    /// not committed by then is discarded.
    pub fn stop(mut self, grace: Duration) {
        self.end(grace);
    }

    fn end(&mut self, grace: Duration) {
        let Some(thread) = self.thread.take() else {
            return;
        };
        self.shared.stop();
        self.listener.close();
        // A panic of that thread has been reported by then, and there is nothing to repair.
        let _ = thread.join();
        self.shared.finish(grace);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end(Duration::ZERO);
    }
}
