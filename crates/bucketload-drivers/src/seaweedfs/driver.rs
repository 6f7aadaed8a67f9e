//! The driver and the state that all sessions share.

use std::sync::Arc;

use bucketload_core::driver::{
    Capabilities, Driver, DriverFacts, OpClass, OpResult, Probe, WorkerId,
};

use super::config::{Mode, SeaweedConfig};
use super::servers::VolumeDirectory;
use super::session::SeaweedSession;
use super::table::Table;
use crate::http::config::facts;
use crate::http::{Client, ConfigError, HttpSession as _, IdFields, opaque_debug};

/// Operations of a filer.
const FILER: [OpClass; 15] = [
    OpClass::Get,
    OpClass::RangeGet,
    OpClass::Put,
    OpClass::Append,
    OpClass::Head,
    OpClass::Delete,
    OpClass::List,
    OpClass::Rename,
    OpClass::PutTagging,
    OpClass::GetTagging,
    OpClass::DeleteTagging,
    OpClass::MakeBucket,
    OpClass::HeadBucket,
    OpClass::DeleteBucket,
    OpClass::ListBuckets,
];

/// Operations with file IDs.
const MASTER: [OpClass; 5] = [
    OpClass::Get,
    OpClass::RangeGet,
    OpClass::Put,
    OpClass::Head,
    OpClass::Delete,
];

/// The native SeaweedFS driver: the filer's HTTP API, or that of master and volume servers.
#[derive(Clone)]
pub struct SeaweedDriver {
    inner: Arc<DriverShared>,
}

bucketload_core::any_driver!(SeaweedDriver);

/// State that all sessions share.
pub(crate) struct DriverShared {
    pub(crate) config: SeaweedConfig,
    pub(crate) client: Client,
    /// With a master: the file IDs of the objects.
    pub(crate) table: Option<Table>,
    /// With a master: the servers of the volumes.
    pub(crate) directory: VolumeDirectory,
}

opaque_debug!(SeaweedDriver, DriverShared);

impl SeaweedDriver {
    /// A driver for the target that `config` describes. Does not connect yet.
    ///
    /// # Errors
    /// When the configuration names an unusable certificate file.
    pub fn new(config: SeaweedConfig) -> Result<Self, ConfigError> {
        let ids = IdFields {
            request: "x-amz-request-id",
            extended: "",
        };
        let client = Client::new(config.endpoints.clone(), &config.tls, ids)?;
        let table = (config.mode == Mode::Master).then(|| Table::new(config.objects));
        Ok(Self {
            inner: Arc::new(DriverShared {
                config,
                client,
                table,
                directory: VolumeDirectory::default(),
            }),
        })
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &SeaweedConfig {
        &self.inner.config
    }
}

impl Driver for SeaweedDriver {
    type Session = SeaweedSession;

    fn capabilities(&self) -> Capabilities {
        Capabilities::of_service(match self.inner.config.mode {
            Mode::Filer => &FILER,
            Mode::Master => &MASTER,
        })
    }

    fn facts(&self) -> DriverFacts {
        let config = &self.inner.config;
        let mut own = vec![("interface", config.mode.to_string())];
        if config.mode == Mode::Master {
            own.push(("most objects", config.objects.to_string()));
        }
        facts(
            "seaweedfs",
            own,
            &config.endpoints,
            &config.tls,
            &config.source_addresses,
        )
    }

    async fn open(&self, worker: WorkerId, probe: &mut Probe) -> OpResult<SeaweedSession> {
        let sources = &self.inner.config.source_addresses;
        let (endpoint, source) = self.inner.client.assign(worker.worker, sources);
        let mut session = SeaweedSession::new(Arc::clone(&self.inner), endpoint, source);
        session.connect(probe).await?;
        Ok(session)
    }
}
