//! The driver and the state that all sessions share.

use std::sync::Arc;

use bucketload_core::driver::{Capabilities, Driver, DriverFacts, OpResult, Probe, WorkerId};

use super::config::WebHdfsConfig;
use super::request::HeadTemplate;
use super::session::WebHdfsSession;
use crate::hadoop::semantics::CLASSES;
use crate::http::config::{ConfigError, facts};
use crate::http::{Client, IdFields, Render as _};

/// The WebHDFS driver: one connection to the name node per session, and one to each data node that keeps
/// connections open.
#[derive(Clone, Debug)]
pub struct WebHdfsDriver {
    inner: Arc<DriverShared>,
}

bucketload_core::any_driver!(WebHdfsDriver);

/// State that all sessions share.
#[derive(Debug)]
pub(super) struct DriverShared {
    pub(super) config: WebHdfsConfig,
    pub(super) client: Client,
    /// One template per name node.
    pub(super) heads: Vec<HeadTemplate>,
    /// Parameters of CREATE for the layout of the file.
    pub(super) layout: Vec<u8>,
}

impl WebHdfsDriver {
    /// A driver for the cluster that `config` describes. Does not connect yet.
    ///
    /// # Errors
    /// When a name node's address or a certificate file cannot be used.
    pub fn new(config: WebHdfsConfig) -> Result<Self, ConfigError> {
        // Neither name nodes nor data nodes identify requests.
        let ids = IdFields {
            request: "",
            extended: "",
        };
        let client = Client::new(config.endpoints.clone(), &config.tls, ids)?;
        let heads = (0..config.endpoints.len()).map(|i| HeadTemplate::new(&config, i));
        let mut layout = Vec::new();
        if let Some(copies) = config.files.replication {
            layout.number("replication", u64::from(copies));
        }
        if let Some(size) = config.files.block_size {
            layout.number("blocksize", size);
        }
        Ok(Self {
            inner: Arc::new(DriverShared {
                heads: heads.collect(),
                client,
                layout,
                config,
            }),
        })
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &WebHdfsConfig {
        &self.inner.config
    }
}

impl Driver for WebHdfsDriver {
    type Session = WebHdfsSession;

    fn capabilities(&self) -> Capabilities {
        Capabilities::of_service(&CLASSES)
    }

    fn facts(&self) -> DriverFacts {
        let config = self.config();
        let authentication = match &config.token {
            Some(_) => "delegation token",
            None => "user name",
        };
        let mut own = config.files.facts();
        own.push(("authentication", authentication.to_owned()));
        facts(
            "webhdfs",
            own,
            &config.endpoints,
            &config.tls,
            &config.source_addresses,
        )
    }

    async fn open(&self, worker: WorkerId, probe: &mut Probe) -> OpResult<WebHdfsSession> {
        let sources = &self.inner.config.source_addresses;
        let (_, source) = self.inner.client.assign(worker.worker, sources);
        let mut session = WebHdfsSession::new(Arc::clone(&self.inner), source);
        session.connect(probe).await?;
        Ok(session)
    }
}
