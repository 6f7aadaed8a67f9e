//! The state that all sessions of a driver share: endpoints, TLS settings, and the number of connections made.

use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use bucketload_wire::tls::ClientTls;

use super::config::{ConfigError, TlsConfig};
use super::connect;
use super::endpoint::Endpoint;

/// Names of the response header fields by which the store's operator can find a request in the logs, in lower case.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdFields {
    /// The identifier.
    pub(crate) request: &'static str,
    /// A second identifier; empty for none.
    pub(crate) extended: &'static str,
}

/// The service as all sessions of a driver see it.
pub(crate) struct Client {
    endpoints: Vec<Endpoint>,
    /// [`Endpoint::fixed_fields`] of each endpoint.
    fields: Vec<Vec<u8>>,
    /// For `https` endpoints.
    tls: Option<ClientTls>,
    pub(crate) ids: IdFields,
    /// Connections made so far.
    connections: AtomicU64,
    /// Identifies this client in [`super::per_thread`].
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

    /// A number that is unique within the process.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// Assigns worker number `worker` an endpoint and a local address to connect from, both round-robin.
    pub(crate) fn assign(&self, worker: u32, sources: &[IpAddr]) -> (usize, Option<IpAddr>) {
        let number = worker as usize;
        let source = (!sources.is_empty()).then(|| sources[number % sources.len()]);
        (number % self.endpoints.len(), source)
    }

    pub(crate) fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// [`Endpoint::fixed_fields`] of the endpoint with this index.
    pub(crate) fn fields(&self, endpoint: usize) -> &[u8] {
        &self.fields[endpoint]
    }

    /// TLS settings for connections to `endpoint`; `None` for plain connections.
    pub(crate) fn tls_for(&self, endpoint: &Endpoint) -> Option<&ClientTls> {
        self.tls.as_ref().filter(|_| endpoint.tls)
    }

    /// A number for a new connection, unique within the driver, from 1.
    pub(crate) fn next_connection(&self) -> u64 {
        self.connections.fetch_add(1, Ordering::Relaxed) + 1
    }
}
