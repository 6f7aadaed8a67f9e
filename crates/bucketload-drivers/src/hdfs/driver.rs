//! The driver: one client of the library per load thread.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bucketload_core::driver::{Capabilities, Driver, DriverFacts, WorkerId};
use bucketload_core::error::OpError;
use bucketload_core::record::Probe;
use hdfs_native::{Client, ClientBuilder, WriteOptions};

use super::config::HdfsConfig;
use super::error::meaning;
use super::io::Io;
use super::session::HdfsSession;
use crate::hadoop::semantics::CLASSES;
use crate::http::config::ConfigError;

/// The HDFS driver, on the library `hdfs-native`.
#[derive(Clone)]
pub struct HdfsDriver {
    inner: Arc<Inner>,
}

/// What all sessions share.
pub(super) struct Inner {
    pub(super) config: HdfsConfig,
    /// By load thread: each has its own connection to the name node.
    clients: Mutex<HashMap<u16, Client>>,
    pub(super) replace: WriteOptions,
    pub(super) create: WriteOptions,
    io: Io,
}

impl HdfsDriver {
    /// A driver for the cluster that `config` describes. Nothing is connected yet.
    ///
    /// # Errors
    /// When no thread for its connections can be started.
    pub fn new(config: HdfsConfig) -> Result<Self, ConfigError> {
        let create = WriteOptions {
            block_size: config.files.block_size,
            replication: config.files.replication,
            ..WriteOptions::default()
        };
        Ok(Self {
            inner: Arc::new(Inner {
                replace: create.clone().overwrite(true),
                create,
                config,
                clients: Mutex::default(),
                io: Io::start()?,
            }),
        })
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &HdfsConfig {
        &self.inner.config
    }
}

impl Inner {
    /// The client of load thread `thread`.
    fn client(&self, thread: u16) -> Result<Client, OpError> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&thread) {
            return Ok(client.clone());
        }
        // Every name node once: an operation that cannot be done is to fail, not to wait for minutes.
        let attempts = self.config.name_nodes.saturating_sub(1).to_string();
        let mut builder = ClientBuilder::new()
            .with_url(&self.config.url)
            .with_config([("dfs.client.failover.max.attempts", attempts)])
            .with_io_runtime(self.io.handle());
        if let Some(user) = &self.config.files.user {
            builder = builder.with_user(user);
        }
        let client = builder.build().map_err(meaning)?;
        clients.insert(thread, client.clone());
        Ok(client)
    }
}

impl Driver for HdfsDriver {
    type Session = HdfsSession;

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            classes: CLASSES.to_vec(),
            verify: true,
            connections: false,
        }
    }

    fn facts(&self) -> DriverFacts {
        let config = self.config();
        let mut settings = config.files.facts();
        let shown = |name: &str, value: String| (name.to_owned(), value);
        settings.push(shown("io threads", self.inner.io.threads().to_string()));
        settings.push(shown("name nodes", config.name_nodes.to_string()));
        let retries = "reads: the library asks other replicas; writes: none".to_owned();
        settings.push(shown("retries of the engine", retries));
        settings.push(shown("checksum", "CRC-32C, verified per block".to_owned()));
        DriverFacts {
            driver: "hdfs".to_owned(),
            engine: "hdfs-native 0.14".to_owned(),
            endpoints: vec![config.url.clone()],
            settings,
        }
    }

    async fn open(&self, worker: WorkerId, _probe: &mut Probe) -> Result<HdfsSession, OpError> {
        let client = self.inner.client(worker.thread)?;
        // The library connects with the first call.
        let root = client.get_file_info("/").await;
        root.map_err(|error| {
            let mut error = meaning(error);
            error.detail = format!("name node {}: {}", self.config().url, error.detail).into();
            error
        })?;
        Ok(HdfsSession::new(Arc::clone(&self.inner), client))
    }
}
