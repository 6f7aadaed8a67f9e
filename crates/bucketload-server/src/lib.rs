//! An S3 server over a [`Store`]: HTTP/1.1, Signature Version 4, TLS, fault injection.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use bucketload_server::{KeyPair, Server, ServerConfig};
//! use bucketload_store::{MemoryOptions, MemoryStore};
//!
//! let keys = KeyPair { access_key: "key".into(), secret_key: "secret".into() };
//! let mut config = ServerConfig::new(keys);
//! config.faults.push("delay,ms=10,op=get".parse()?);
//! let store = MemoryStore::new(MemoryOptions::default());
//! let server = Server::start(config, Arc::new(store))?;
//! println!("listening on {}", server.endpoint_url());
//! server.stop();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Structure
//!
//! ```text
//! thread      a tokio current_thread runtime with its own SO_REUSEPORT listener
//! connection  one local task per connection: receive a request, send the response, repeat
//! begin       head -> authorised and routed request -> response, or
//! pending     body -> store -> response
//!   uri headers router                     parse and route the request
//!   claim canonical sigv4 sigv2            verify the signature
//!   body aws_chunked checks checksum       decode the body and check its digests
//!   xml_in tags form                       parse request documents
//! ops         the operations on the store
//! respond xml send                         build and send responses
//! faults delay                             inject faults
//! quirks                                   differ from S3 where the configuration asks for it
//! ```
//!
//! A small request costs one receive and one send. Its response leaves in one vectored write, with
//! the object's bytes straight from the store. Large bodies are received with a low-water mark.
//! Bodies that the store accepts unseen ([`Store::accept_unseen`]) are dropped in the kernel, so
//! the server does not become the bottleneck of a measurement.
//!
//! # Unsupported features
//!
//! Versions, object lock and the configurations of buckets exist over the memory store only; the other
//! stores refuse to set them with `NotImplemented`. Lifecycles are kept and returned, and nothing acts
//! on them. Encryption headers are checked and returned, and nothing is encrypted. There is one user:
//! grants and policies have no effect but for what they say of everyone. Website, replication, logging,
//! notification and the like cannot be set: reading one returns the response of a bucket without it. The server reads the bodies of refused requests to the end, so clients see the
//! response. Stopping the server cuts off requests in flight.

mod aws_chunked;
mod begin;
mod body;
mod canonical;
mod checks;
mod checksum;
mod claim;
mod config;
mod connection;
mod delay;
mod error;
pub mod faults;
mod form;
mod headers;
mod ops;
mod pace;
mod pending;
pub mod quirks;
mod respond;
mod router;
mod send;
mod sigv2;
mod sigv4;
mod stats;
mod tags;
mod tar;
mod thread;
mod upload;
mod uri;
mod xml;
mod xml_in;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc;
use std::thread::JoinHandle;

use bucketload_wire::listen::Port;
use bucketload_wire::tls::{ConfigError, ServerTls};
use tokio::sync::oneshot;

pub use config::{Access, KeyPair, ServerConfig};
pub use faults::{FaultError, FaultRule, FaultStats};
pub use quirks::{Quirk, Quirks};
pub use router::Operation;
pub use stats::ServerStats;

use bucketload_store::Store;
use faults::{FaultLog, Faults, History};
use stats::Counters;
use thread::ServerState;

/// Why a server could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Listening on the address failed.
    #[error("cannot listen on {address}: {source}; choose another address or port 0")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// The certificate or the key is unusable.
    #[error(transparent)]
    Tls(#[from] ConfigError),
    /// A thread could not be started.
    #[error("cannot start a serving thread: {0}")]
    Thread(#[source] io::Error),
    /// The fault log could not be created.
    #[error("fault log {path}: {source}; name a file that does not exist yet")]
    FaultLog {
        /// The file asked for.
        path: String,
        /// The system's reason.
        source: io::Error,
    },
    /// A configuration field has an invalid value; the text names the field.
    #[error("{0}")]
    Config(&'static str),
}

/// Starts servers.
#[derive(Debug)]
pub struct Server;

impl Server {
    /// Serves `store` on new threads until the handle is stopped or dropped. The server accepts
    /// connections by the time this returns.
    ///
    /// # Errors
    /// If the address, the TLS files, the threads or the fault log fail, or a setting is invalid.
    pub fn start(
        mut config: ServerConfig,
        store: Arc<dyn Store>,
    ) -> Result<ServerHandle, StartError> {
        quirks::configure(&mut config);
        if config.threads == 0 {
            return Err(StartError::Config(
                "threads: a server needs at least one thread",
            ));
        }
        if config.max_connections == 0 {
            return Err(StartError::Config(
                "max_connections: a server needs at least one connection",
            ));
        }
        if config.keys.access_key.is_empty() || config.keys.secret_key.is_empty() {
            return Err(StartError::Config(
                "keys: access key and secret key must not be empty",
            ));
        }
        if config.region.is_empty() || config.region.contains('/') {
            return Err(StartError::Config(
                "region: it must be a name without slashes",
            ));
        }
        let tls = config.tls.as_ref().map(ServerTls::new).transpose()?;
        let address = config.address;
        let listen = |source| StartError::Listen { address, source };
        let mut ports = vec![Port::bind(address).map_err(listen)?];
        for _ in 1..config.threads {
            let port = ports[0].another().map_err(listen)?;
            ports.push(port);
        }
        let bound = ports[0].addr();
        let server = Arc::new(ServerState {
            faults: Faults::new(&config.faults),
            fault_log: fault_log(&config)?,
            history: History::default(),
            tls,
            counters: (0..config.threads).map(|_| Counters::default()).collect(),
            open: AtomicU64::new(0),
            default_encryption: AtomicBool::new(false),
            store,
            config,
        });
        let mut handle = ServerHandle {
            address: bound,
            server,
            threads: Vec::new(),
        };
        let (started, outcomes) = mpsc::channel();
        for (number, port) in ports.into_iter().enumerate() {
            handle
                .spawn(number, port, started.clone())
                .map_err(StartError::Thread)?;
        }
        drop(started);
        for outcome in outcomes {
            outcome.map_err(StartError::Thread)?;
        }
        Ok(handle)
    }
}

fn fault_log(config: &ServerConfig) -> Result<Option<FaultLog>, StartError> {
    let create = |path: &std::path::PathBuf| {
        FaultLog::create(path).map_err(|source| StartError::FaultLog {
            path: path.display().to_string(),
            source,
        })
    };
    config.fault_log.as_ref().map(create).transpose()
}

/// A running server. Dropping it stops it.
pub struct ServerHandle {
    address: SocketAddr,
    server: Arc<ServerState>,
    threads: Vec<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl std::fmt::Debug for ServerHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerHandle")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl ServerHandle {
    fn spawn(
        &mut self,
        number: usize,
        port: Port,
        started: mpsc::Sender<io::Result<()>>,
    ) -> io::Result<()> {
        let (stop, stopped) = oneshot::channel();
        let server = Arc::clone(&self.server);
        let thread = std::thread::Builder::new()
            .name(format!("s3-server-{number}"))
            .spawn(move || thread::run(server, number, port, stopped, started))?;
        self.threads.push((stop, thread));
        Ok(())
    }

    /// The address the server listens on, with its actual port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL for clients, such as `http://127.0.0.1:9000`.
    #[must_use]
    pub fn endpoint_url(&self) -> String {
        let scheme = if self.server.tls.is_some() {
            "https"
        } else {
            "http"
        };
        format!("{scheme}://{}", self.address)
    }

    /// The region that signatures must name.
    #[must_use]
    pub fn region(&self) -> &str {
        &self.server.config.region
    }

    /// The server's counters so far.
    #[must_use]
    pub fn stats(&self) -> ServerStats {
        self.server.stats()
    }

    /// Closes all connections and waits for the threads.
    pub fn stop(mut self) {
        self.shut_down();
    }

    /// Waits until all threads end. Without a call to `stop`, that happens only if they fail.
    pub fn wait(mut self) {
        for (stop, thread) in self.threads.drain(..) {
            // A panicked thread has ended too.
            let _ = thread.join();
            drop(stop);
        }
    }

    fn shut_down(&mut self) {
        let (stops, threads): (Vec<_>, Vec<_>) = self.threads.drain(..).unzip();
        for stop in stops {
            // An error means that the thread has already ended.
            let _ = stop.send(());
        }
        for thread in threads {
            // A panicked thread has ended too.
            let _ = thread.join();
        }
    }
}

impl Drop for ServerHandle {
    fn drop(&mut self) {
        self.shut_down();
    }
}
