//! What all sessions of a driver share: endpoints, trust, and the number of connections made.

use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use bucketload_wire::tls::ClientTls;

use super::config::{ConfigError, TlsConfig};
use super::connect;
use super::endpoint::Endpoint;

/// Names of the answer's header fields that identify a request to the store's operator, in lower
/// case.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdFields {
    /// The identifier.
    pub(crate) request: &'static str,
    /// A second one; empty when there is none.
    pub(crate) extended: &'static str,
}

/// The service as all sessions of a driver see it.
pub(crate) struct Client {
    endpoints: Vec<Endpoint>,
    /// Of each endpoint, what follows the path of every request: [`Endpoint::fixed_fields`].
    fields: Vec<Vec<u8>>,
    /// For `https` endpoints.
    tls: Option<ClientTls>,
    pub(crate) ids: IdFields,
    /// Connections made so far.
    connections: AtomicU64,
    /// Distinguishes clients in the threads' registries.
    number: u64,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("endpoints", &self.endpoints)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// A service at `endpoints`.
    ///
    /// # Errors
    /// When an endpoint or a certificate file cannot be used.
    pub(crate) fn new(
        endpoints: Vec<Endpoint>,
        tls: &TlsConfig,
        ids: IdFields,
    ) -> Result<Self, ConfigError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Ok(Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            tls: connect::tls_of(&endpoints, tls)?,
            fields: endpoints.iter().map(Endpoint::fixed_fields).collect(),
            endpoints,
            ids,
            connections: AtomicU64::new(0),
        })
    }

    /// A number that no other client of the process has.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// Where worker number `worker` sits: its endpoint, and the local address to connect from, each
    /// taken in turn.
    pub(crate) fn seat(&self, worker: u32, sources: &[IpAddr]) -> (usize, Option<IpAddr>) {
        let number = worker as usize;
        let source = (!sources.is_empty()).then(|| sources[number % sources.len()]);
        (number % self.endpoints.len(), source)
    }

    pub(crate) fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// What follows the path of every request to the endpoint with this index.
    pub(crate) fn fields(&self, endpoint: usize) -> &[u8] {
        &self.fields[endpoint]
    }

    /// The trust of connections to `endpoint`.
    pub(crate) fn tls_for(&self, endpoint: &Endpoint) -> Option<&ClientTls> {
        self.tls.as_ref().filter(|_| endpoint.tls)
    }

    /// A number for a new connection, from 1, unique within the driver.
    pub(crate) fn next_connection(&self) -> u64 {
        self.connections.fetch_add(1, Ordering::Relaxed) + 1
    }
}
