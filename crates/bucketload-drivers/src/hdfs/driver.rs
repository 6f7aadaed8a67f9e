//! The driver: one client of the library per load thread, and its own implementation of reads.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bucketload_core::driver::{Capabilities, Driver, DriverFacts, WorkerId};
use bucketload_core::error::OpResult;
use bucketload_core::record::Probe;
use hdfs_native::{Client, ClientBuilder, WriteOptions};

use super::config::HdfsConfig;
use super::direct::{DirectReader, DirectTarget};
use super::error::to_op_error;
use super::io::IoRuntime;
use super::session::HdfsSession;
use crate::hadoop::semantics::CLASSES;
use crate::http::config::ConfigError;
use crate::http::endpoint::Endpoint;

/// The HDFS driver: performs reads itself, everything else through the library `hdfs-native`.
#[derive(Clone)]
pub struct HdfsDriver {
    inner: Arc<DriverShared>,
}

bucketload_core::any_driver!(HdfsDriver);

/// State that all sessions share.
pub(super) struct DriverShared {
    pub(super) config: HdfsConfig,
    /// Clients by load thread, each with its own connection to the name node.
    clients: Mutex<HashMap<u16, Client>>,
    pub(super) replace: WriteOptions,
    pub(super) create: WriteOptions,
    /// The target of reads without the library; `None` if the library reads.
    pub(super) target: Option<DirectTarget>,
    io: IoRuntime,
}

impl HdfsDriver {
    /// A driver for the cluster that `config` describes. Does not connect yet.
    ///
    /// # Errors
    /// When no thread for its connections can be started, or the name node's address is invalid.
    pub fn new(config: HdfsConfig) -> Result<Self, ConfigError> {
        let create = WriteOptions {
            block_size: config.files.block_size,
            replication: config.files.replication,
            ..WriteOptions::default()
        };
        let target = match (&config.library_reads, &config.files.user) {
            (None, Some(user)) => Some(DirectTarget {
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
            inner: Arc::new(DriverShared {
                target,
                replace: create.clone().overwrite(true),
                create,
                config,
                clients: Mutex::default(),
                io: IoRuntime::start()?,
            }),
        })
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &HdfsConfig {
        &self.inner.config
    }
}

impl DriverShared {
    /// The client of load thread `thread`.
    fn client(&self, thread: u16) -> OpResult<Client> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&thread) {
            return Ok(client.clone());
        }
        // Try every name node once: an operation that cannot succeed must fail, not wait for minutes.
        let attempts = self.config.name_nodes.saturating_sub(1).to_string();
        let mut builder = ClientBuilder::new()
            .with_url(&self.config.url)
            .with_config([("dfs.client.failover.max.attempts", attempts)])
            .with_io_runtime(self.io.handle());
        if let Some(user) = &self.config.files.user {
            builder = builder.with_user(user);
        }
        let client = builder.build().map_err(to_op_error)?;
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
            parts_in_flight: false,
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
                "by the driver itself; by the library if a file is encrypted, erasure-coded or being \
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

    async fn open(&self, worker: WorkerId, probe: &mut Probe) -> OpResult<HdfsSession> {
        let client = self.inner.client(worker.thread)?;
        let reached = match &self.inner.target {
            Some(target) => DirectReader::open(target, probe).await.map(Some),
            // The library connects with the first call.
            None => client
                .get_file_info("/")
                .await
                .map(|_| None)
                .map_err(to_op_error),
        };
        let direct = reached.map_err(|mut error| {
            error.detail = format!("name node {}: {}", self.config().url, error.detail).into();
            error
        })?;
        Ok(HdfsSession::new(Arc::clone(&self.inner), client, direct))
    }
}
