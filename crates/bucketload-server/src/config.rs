//! The server's configuration.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use bucketload_wire::tls::ServerOptions;

use super::faults::FaultRule;
use super::quirks::Quirks;
pub use super::sigv4::KeyPair;

/// The configuration of a [`Server`](super::Server).
///
/// The store decides how entity tags are computed: as MD5, which clients check, or as opaque values,
/// which cost nothing. See [`EtagMode`](bucketload_store::EtagMode).
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Address to listen on; port 0 picks a free port. Default: loopback, port 0.
    pub address: SocketAddr,
    /// Serving threads, at least 1. Each has its own listener, and the kernel distributes the
    /// connections. Calls to a store on a file system block their thread: give such a store one
    /// thread per concurrent request. Default: 1.
    pub threads: usize,
    /// The key pair that clients sign with.
    pub keys: KeyPair,
    /// The region that signatures must name. Default: `us-east-1`.
    pub region: String,
    /// Which requests are served. Default: signed ones.
    pub access: Access,
    /// Domain for virtual-host addressing (`BUCKET.DOMAIN`). Path-style addressing keeps working.
    pub domain: Option<String>,
    /// Certificate and key. If set, the server speaks TLS only.
    pub tls: Option<ServerOptions>,
    /// How long a connection may be idle: between requests, in a handshake or head, or while no byte
    /// of a body moves. Whole seconds, at least 1. Default: 60 s.
    pub idle_timeout: Duration,
    /// Maximum number of open connections; the server answers further ones with 503. Default: 16384.
    pub max_connections: usize,
    /// Fault rules. All of them apply to each request.
    pub faults: Vec<FaultRule>,
    /// Where the server differs from S3. Default: nowhere.
    pub quirks: Quirks,
    /// Log file to create, with one line per response that a delay, queue or stall rule held back:
    /// `operation,ready_ns,due_ns,released_ns,key`, in nanoseconds since the server's start.
    pub fault_log: Option<PathBuf>,
    /// Whether `GET /-/bucketload/stats` returns [`ServerStats`](super::ServerStats) as one line of
    /// JSON, without requiring a signature.
    pub stats_page: bool,
}

/// Which requests a server serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Only requests signed with the server's key pair.
    Signed,
    /// Requests without a signature too. A signature, if present, is still checked.
    Anonymous,
    /// All requests; signatures are ignored. The server then does the same work for clients that sign
    /// and clients that do not, which makes them comparable.
    Unchecked,
}

impl ServerConfig {
    /// The default configuration with the key pair `keys`.
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
            quirks: Quirks::default(),
            fault_log: None,
            stats_page: false,
        }
    }
}
