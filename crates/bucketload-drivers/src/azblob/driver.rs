//! The driver, the state that all sessions share, and the state that one thread's sessions share.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use bucketload_core::driver::{
    Capabilities, Driver, DriverFacts, OpClass, OpResult, Probe, WorkerId,
};
use bucketload_wire::clock::wall_seconds;

use super::config::{Auth, AzureConfig, ContentChecksum};
use super::head::HeadWriter;
use super::session::AzureSession;
use crate::http::config::facts;
use crate::http::{
    Client, ConfigError, Endpoint, HttpSession as _, IdFields, opaque_debug, per_thread,
};

/// The header fields that identify a request to the service's operator.
const IDS: IdFields = IdFields {
    request: "x-ms-request-id",
    extended: "x-ms-client-request-id",
};

/// Operations that the API supports. Uploads cannot be begun, listed or aborted: blocks belong to
/// their blob until a block list is committed or a week has passed. The API has one kind of listing;
/// accounts without a hierarchical namespace have no renames.
const CLASSES: &[OpClass] = &[
    OpClass::Get,
    OpClass::RangeGet,
    OpClass::Put,
    OpClass::PutIfAbsent,
    OpClass::MultipartPut,
    OpClass::Append,
    OpClass::Head,
    OpClass::Delete,
    OpClass::DeleteMany,
    OpClass::List,
    OpClass::Copy,
    OpClass::PutTagging,
    OpClass::GetTagging,
    OpClass::DeleteTagging,
    OpClass::MakeBucket,
    OpClass::HeadBucket,
    OpClass::DeleteBucket,
    OpClass::ListBuckets,
];

/// The native driver for Azure Blob Storage: one connection per session.
#[derive(Clone)]
pub struct AzureDriver {
    inner: Arc<DriverShared>,
}

bucketload_core::any_driver!(AzureDriver);

/// State that all sessions share.
pub(super) struct DriverShared {
    config: AzureConfig,
    client: Client,
}

opaque_debug!(AzureDriver, ThreadShared);

impl AzureDriver {
    /// A driver for the account that `config` describes. Does not connect yet.
    ///
    /// # Errors
    /// When the configuration cannot work, or names an unusable certificate file.
    pub fn new(config: AzureConfig) -> Result<Self, ConfigError> {
        config.check()?;
        let client = Client::new(config.endpoints.clone(), &config.tls, IDS)?;
        Ok(Self {
            inner: Arc::new(DriverShared { config, client }),
        })
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &AzureConfig {
        &self.inner.config
    }
}

impl Driver for AzureDriver {
    type Session = AzureSession;

    fn capabilities(&self) -> Capabilities {
        Capabilities::of_service(CLASSES)
    }

    fn facts(&self) -> DriverFacts {
        let config = &self.inner.config;
        let signing = match config.auth {
            Auth::SharedKey(_) => "Shared Key",
            Auth::Sas(_) => "shared access signature",
            Auth::Anonymous => "anonymous",
        };
        let checksum = config.checksum.map_or("none", ContentChecksum::name);
        facts(
            "azblob",
            vec![
                ("account", config.account.clone()),
                ("api version", config.api_version.clone()),
                ("signing", signing.to_owned()),
                ("checksum", checksum.to_owned()),
            ],
            &config.endpoints,
            &config.tls,
            &config.source_addresses,
        )
    }

    async fn open(&self, worker: WorkerId, probe: &mut Probe) -> OpResult<AzureSession> {
        let sources = &self.inner.config.source_addresses;
        let (endpoint, source) = self.inner.client.assign(worker.worker, sources);
        let shared = ThreadShared::of_this_thread(&self.inner, endpoint);
        let mut session = AzureSession::new(shared, source);
        session.connect(probe).await?;
        Ok(session)
    }
}

/// State that one thread's sessions to one endpoint share: the signer and the rendered head.
pub(super) struct ThreadShared {
    driver: Arc<DriverShared>,
    pub(super) endpoint: usize,
    pub(super) writer: RefCell<HeadWriter>,
}

impl ThreadShared {
    fn of_this_thread(driver: &Arc<DriverShared>, endpoint: usize) -> Rc<Self> {
        per_thread::shared(driver.client.number(), endpoint, || {
            let config = &driver.config;
            let writer = HeadWriter::new(config, &config.endpoints[endpoint], wall_seconds);
            Self {
                driver: Arc::clone(driver),
                endpoint,
                writer: RefCell::new(writer),
            }
        })
    }

    pub(super) fn config(&self) -> &AzureConfig {
        &self.driver.config
    }

    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.driver.client.endpoints()[self.endpoint]
    }

    pub(super) fn client(&self) -> &Client {
        &self.driver.client
    }
}
