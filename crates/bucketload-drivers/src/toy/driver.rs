//! The driver: the state that all sessions share.

use std::net::IpAddr;
use std::sync::Arc;

use bucketload_core::driver::{
    Capabilities, Driver, DriverFacts, OpClass, OpResult, Probe, WorkerId,
};

use super::session::ToySession;
use crate::http::config::facts;
use crate::http::{Client, ConfigError, Endpoint, HttpSession as _, IdFields, TlsConfig};

/// The operations of the API.
const CLASSES: [OpClass; 6] = [
    OpClass::Get,
    OpClass::RangeGet,
    OpClass::Put,
    OpClass::Head,
    OpClass::Delete,
    OpClass::List,
];

/// The settings of the driver.
#[derive(Clone, Debug)]
pub struct ToyConfig {
    /// Endpoints; worker `w` uses number `w` modulo their count.
    pub endpoints: Vec<Endpoint>,
    /// TLS settings.
    pub tls: TlsConfig,
    /// Local addresses to connect from, in turn.
    pub sources: Vec<IpAddr>,
}

/// The driver of the toy API: one connection per session.
#[derive(Clone)]
pub struct ToyDriver {
    inner: Arc<Inner>,
}

bucketload_core::any_driver!(ToyDriver);

/// State that all sessions share.
pub(super) struct Inner {
    config: ToyConfig,
    pub(super) client: Client,
}

impl ToyDriver {
    /// A driver for the service that `config` describes; does not connect yet.
    ///
    /// # Errors
    /// When the configuration names a certificate file that cannot be used.
    pub fn new(config: ToyConfig) -> Result<Self, ConfigError> {
        let ids = IdFields {
            request: "x-request-id",
            extended: "",
        };
        let client = Client::new(config.endpoints.clone(), &config.tls, ids)?;
        Ok(Self {
            inner: Arc::new(Inner { config, client }),
        })
    }
}

impl Driver for ToyDriver {
    type Session = ToySession;

    fn capabilities(&self) -> Capabilities {
        Capabilities::of_service(&CLASSES)
    }

    fn facts(&self) -> DriverFacts {
        let config = &self.inner.config;
        facts(
            "toy",
            Vec::new(),
            &config.endpoints,
            &config.tls,
            &config.sources,
        )
    }

    async fn open(&self, worker: WorkerId, probe: &mut Probe) -> OpResult<ToySession> {
        let (endpoint, source) = self
            .inner
            .client
            .assign(worker.worker, &self.inner.config.sources);
        let mut session = ToySession::new(Arc::clone(&self.inner), endpoint, source);
        session.connect(probe).await?;
        Ok(session)
    }
}
