//! The driver: one client of the library per load thread, and a way of its own for reads.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bucketload_core::driver::{Capabilities, Driver, DriverFacts, WorkerId};
use bucketload_core::error::OpError;
use bucketload_core::record::Probe;
use hdfs_native::{Client, ClientBuilder, WriteOptions};

use super::config::HdfsConfig;
use super::direct::{Direct, Door};
use super::error::meaning;
use super::io::Io;
use super::session::HdfsSession;
use crate::hadoop::semantics::CLASSES;
use crate::http::config::ConfigError;
use crate::http::endpoint::Endpoint;

/// The HDFS driver: reads by itself, everything else by the library `hdfs-native`.
#[derive(Clone)]
pub struct HdfsDriver {
    inner: Arc<Inner>,
}

bucketload_core::any_driver!(HdfsDriver);

/// What all sessions share.
pub(super) struct Inner {
    pub(super) config: HdfsConfig,
    /// By load thread: each has its own connection to the name node.
    clients: Mutex<HashMap<u16, Client>>,
    pub(super) replace: WriteOptions,
    pub(super) create: WriteOptions,
    /// Where sessions read without the library; `None` where the library reads.
    pub(super) door: Option<Door>,
    io: Io,
}

impl HdfsDriver {
    /// A driver for the cluster that `config` describes. Nothing is connected yet.
    ///
    /// # Errors
    /// When no thread for its connections can be started, or the name node's address is none.
    pub fn new(config: HdfsConfig) -> Result<Self, ConfigError> {
        let create = WriteOptions {
            block_size: config.files.block_size,
            replication: config.files.replication,
            ..WriteOptions::default()
        };
        let door = match (&config.library_reads, &config.files.user) {
            (None, Some(user)) => Some(Door {
                endpoint: Endpoint::parse(
                    &config.url.replacen("hdfs://", "http://", 1),
                    "name node",
                )?,
                user: user.clone(),
                root: config.files.root.clone(),
            }),
            _ => None,
        };
        Ok(Self {
            inner: Arc::new(Inner {
                door,
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
        let mut own = config.files.facts();
        own.push(("io threads", self.inner.io.threads().to_string()));
        own.push(("name nodes", config.name_nodes.to_string()));
        let (engine, reads) = match &config.library_reads {
            None => (
                "native reads, hdfs-native 0.14",
                "by the driver itself; by the library where a file is encrypted, erasure-coded or being \
                 written"
                    .to_owned(),
            ),
            Some(why) => ("hdfs-native 0.14", format!("by the library: {why}")),
        };
        own.push(("get, range-get, head", reads));
        let retries = "reads: other replicas are asked; writes: none".to_owned();
        own.push(("retries of the engine", retries));
        own.push(("checksum", "CRC-32C, verified per block".to_owned()));
        DriverFacts {
            driver: "hdfs".to_owned(),
            engine: engine.to_owned(),
            endpoints: vec![config.url.clone()],
            settings: own.into_iter().map(|(k, v)| (k.to_owned(), v)).collect(),
        }
    }

    async fn open(&self, worker: WorkerId, probe: &mut Probe) -> Result<HdfsSession, OpError> {
        let client = self.inner.client(worker.thread)?;
        let reached = match &self.inner.door {
            Some(door) => Direct::open(door, probe).await.map(Some),
            // The library connects with the first call.
            None => client
                .get_file_info("/")
                .await
                .map(|_| None)
                .map_err(meaning),
        };
        let direct = reached.map_err(|mut error| {
            error.detail = format!("name node {}: {}", self.config().url, error.detail).into();
            error
        })?;
        Ok(HdfsSession::new(Arc::clone(&self.inner), client, direct))
    }
}
