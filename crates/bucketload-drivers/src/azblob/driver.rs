//! The driver: what all threads share, and what the sessions of one thread share.

use std::cell::RefCell;
use std::fmt;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bucketload_core::driver::{Capabilities, Driver, DriverFacts, WorkerId};
use bucketload_core::error::OpError;
use bucketload_core::op::OpClass;
use bucketload_core::record::Probe;

use crate::http::hub::{Hub, IdFields};
use crate::http::{ConfigError, Endpoint};
use crate::s3::wall_seconds;

use super::config::{API_VERSION, Auth, AzureConfig, ContentChecksum};
use super::head::HeadWriter;
use super::session::AzureSession;

/// The fields that name a request to the service's operator.
const IDS: IdFields = IdFields {
    request: "x-ms-request-id",
    extended: "x-ms-client-request-id",
};

/// What the API has an operation for. There is no upload to begin, to list or to abort: blocks
/// belong to their blob until a list of blocks is committed or a week has passed. There is one
/// listing; accounts without a hierarchical namespace have no renames.
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
    inner: Arc<Inner>,
}

/// What all sessions share.
pub(super) struct Inner {
    config: AzureConfig,
    hub: Hub,
    /// Distinguishes drivers in the threads' registries.
    id: u64,
}

impl fmt::Debug for AzureDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AzureDriver")
            .field("config", &self.inner.config)
            .finish_non_exhaustive()
    }
}

impl AzureDriver {
    /// A driver for the account that `config` describes. Nothing is connected yet.
    ///
    /// # Errors
    /// When the configuration cannot work, or names a certificate file that cannot be used.
    pub fn new(config: AzureConfig) -> Result<Self, ConfigError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        config.check()?;
        let hub = Hub::new(config.endpoints.clone(), &config.tls, IDS)?;
        Ok(Self {
            inner: Arc::new(Inner {
                config,
                hub,
                id: NEXT.fetch_add(1, Ordering::Relaxed),
            }),
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
        Capabilities {
            classes: CLASSES.to_vec(),
            verify: true,
            connections: true,
        }
    }

    fn facts(&self) -> DriverFacts {
        let config = &self.inner.config;
        let signing = match config.auth {
            Auth::SharedKey(_) => "Shared Key",
            Auth::Sas(_) => "shared access signature",
            Auth::Anonymous => "anonymous",
        };
        let checksum = config.checksum.map_or("none", ContentChecksum::name);
        let mut settings = vec![
            ("account".to_owned(), config.account.clone()),
            ("api version".to_owned(), API_VERSION.to_owned()),
            ("signing".to_owned(), signing.to_owned()),
            ("checksum".to_owned(), checksum.to_owned()),
            ("tls".to_owned(), config.tls.describe(&config.endpoints)),
        ];
        if !config.source_addresses.is_empty() {
            let shown: Vec<_> = config
                .source_addresses
                .iter()
                .map(ToString::to_string)
                .collect();
            settings.push(("source addresses".to_owned(), shown.join(",")));
        }
        DriverFacts {
            driver: "azblob".to_owned(),
            engine: "native".to_owned(),
            endpoints: config.endpoints.iter().map(Endpoint::url).collect(),
            settings,
        }
    }

    async fn open(&self, worker: WorkerId, probe: &mut Probe) -> Result<AzureSession, OpError> {
        let config = &self.inner.config;
        let number = worker.worker as usize;
        let endpoint = number % config.endpoints.len();
        let sources = &config.source_addresses;
        let source = (!sources.is_empty()).then(|| sources[number % sources.len()]);
        let shared = Shared::of_this_thread(&self.inner, endpoint);
        let mut session = AzureSession::new(shared, source);
        session.connect(probe).await?;
        Ok(session)
    }
}

/// What the sessions of one thread to one endpoint share: the signer and the rendered head.
pub(super) struct Shared {
    driver: Arc<Inner>,
    pub(super) endpoint: usize,
    pub(super) writer: RefCell<HeadWriter>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("endpoint", &self.endpoint().authority)
            .finish_non_exhaustive()
    }
}

thread_local! {
    /// Driver, endpoint and what is shared, for as long as a session uses it.
    static SHARED: RefCell<Vec<(u64, usize, Weak<Shared>)>> = const { RefCell::new(Vec::new()) };
}

impl Shared {
    fn of_this_thread(driver: &Arc<Inner>, endpoint: usize) -> Rc<Self> {
        SHARED.with_borrow_mut(|all| {
            all.retain(|(_, _, shared)| shared.strong_count() > 0);
            let known = all
                .iter()
                .find(|(id, e, _)| (*id, *e) == (driver.id, endpoint))
                .and_then(|(_, _, shared)| shared.upgrade());
            known.unwrap_or_else(|| {
                let config = &driver.config;
                let writer = HeadWriter::new(config, &config.endpoints[endpoint], wall_seconds);
                let shared = Rc::new(Self {
                    driver: Arc::clone(driver),
                    endpoint,
                    writer: RefCell::new(writer),
                });
                all.push((driver.id, endpoint, Rc::downgrade(&shared)));
                shared
            })
        })
    }

    pub(super) fn config(&self) -> &AzureConfig {
        &self.driver.config
    }

    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.driver.hub.endpoints()[self.endpoint]
    }

    pub(super) fn hub(&self) -> &Hub {
        &self.driver.hub
    }
}
