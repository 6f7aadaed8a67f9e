//! What a server is told at its start.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use bucketload_wire::tls::ServerOptions;

use super::faults::FaultRule;
pub use super::sigv4::KeyPair;

/// The configuration of a [`Server`](super::Server).
///
/// How entity tags are made (MD5, which clients check, or opaque and free) is a matter of the
/// store: see [`EtagMode`](bucketload_store::EtagMode).
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Address to listen on; port 0 takes a free one. Default: loopback, port 0.
    pub address: SocketAddr,
    /// Serving threads, at least 1; each has a listener of its own and the kernel spreads the
    /// connections. Calls of a store on a file system block their thread: give such a store as
    /// many threads as requests are to be worked on at the same time. Default: 1.
    pub threads: usize,
    /// The key pair that signs requests.
    pub keys: KeyPair,
    /// The region that signatures must name. Default: `us-east-1`.
    pub region: String,
    /// Whose requests are served. Default: signed ones.
    pub access: Access,
    /// Domain for virtual-host addressing (`BUCKET.DOMAIN`); path style goes on working.
    pub domain: Option<String>,
    /// Certificate and key; with them the server speaks TLS only.
    pub tls: Option<ServerOptions>,
    /// How long a connection may rest: between requests, in a handshake or head, or without a byte
    /// moving in a body. Whole seconds, at least 1. Default: 60 s.
    pub idle_timeout: Duration,
    /// Most connections at a time; further ones are answered with 503. Default: 16384.
    pub max_connections: usize,
    /// Fault rules, all of which apply to each request.
    pub faults: Vec<FaultRule>,
    /// File to create and write a line to for every answer that a rule of the kinds delay, queue or
    /// stall has held back: `operation,ready_ns,due_ns,released_ns,key`, in nanoseconds since the start.
    pub fault_log: Option<PathBuf>,
    /// Whether `GET /-/bucketload/stats` answers, without a signature, with one line of JSON:
    /// [`ServerStats`](super::ServerStats).
    pub stats_page: bool,
}

/// Whose requests a server serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Those of whoever signs with the server's key pair.
    Signed,
    /// Those without a signature, too; a signature is checked where there is one.
    Anonymous,
    /// All of them: nobody looks at signatures. Clients are then compared on equal terms, whether they
    /// sign or not, for the server does the same work for each.
    Unchecked,
}

impl ServerConfig {
    /// Defaults with the key pair `keys`.
    #[must_use]
    pub fn new(keys: KeyPair) -> Self {
        Self {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            threads: 1,
            keys,
            region: "us-east-1".to_owned(),
            access: Access::Signed,
            domain: None,
            tls: None,
            idle_timeout: Duration::from_secs(60),
            max_connections: 16_384,
            faults: Vec::new(),
            fault_log: None,
            stats_page: false,
        }
    }
}
