//! The driver: the state that all threads share, and the state that the sessions of one thread share.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use bucketload_core::driver::{AnyDriver, Capabilities, Driver, DriverFacts, WorkerId};
use bucketload_core::error::OpResult;
use bucketload_core::op::OpClass;
use bucketload_core::record::Probe;
use bucketload_wire::clock::wall_seconds;

use super::config::{ChecksumAlgorithm, S3Config};
use super::keeping::Fields;
use super::ops_append::Ends;
use super::session::S3Session;
use super::template::HeadWriter;
use crate::http::client::{Client, IdFields};
use crate::http::config::{ConfigError, facts};
use crate::http::opaque_debug;
use crate::http::per_thread;
use crate::http::session::HttpSession as _;

/// Header fields with the service's identifiers of a request.
const IDS: IdFields = IdFields {
    request: "x-amz-request-id",
    extended: "x-amz-id-2",
};

/// Operations that the API does not have.
const ABSENT: [OpClass; 4] = [
    OpClass::Touch,
    OpClass::Rename,
    OpClass::RangePut,
    OpClass::Sync,
];

/// The native S3 driver: its own HTTP/1.1 and SigV4, one connection per session.
#[derive(Clone)]
pub struct S3Driver {
    inner: Arc<Inner>,
}

bucketload_core::any_driver!(S3Driver);

/// State that all sessions share.
pub(crate) struct Inner {
    pub(crate) config: S3Config,
    pub(crate) client: Client,
    /// The header fields about how objects are kept.
    pub(crate) fields: Fields,
    /// Present if the store appends.
    pub(crate) ends: Option<Ends>,
    /// Writes local files.
    local: Option<AnyDriver>,
}

opaque_debug!(S3Driver, S3Shared);

impl S3Driver {
    /// A driver for the target that `config` describes; does not connect yet.
    ///
    /// # Errors
    /// When the configuration cannot work, or names a certificate file that cannot be used.
    pub fn new(config: S3Config) -> Result<Self, ConfigError> {
        Self::with_local_files(config, None)
    }

    /// As [`S3Driver::new`], with a driver for local files that performs [`OpClass::LocalWrite`].
    ///
    /// # Errors
    /// As [`S3Driver::new`].
    pub fn with_local_files(
        config: S3Config,
        local: Option<AnyDriver>,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        let client = Client::new(config.endpoints.clone(), &config.tls, IDS)?;
        Ok(Self {
            inner: Arc::new(Inner {
                fields: Fields::of(&config.keeping),
                ends: config.appends().then(Ends::default),
                config,
                client,
                local,
            }),
        })
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &S3Config {
        &self.inner.config
    }
}

impl Driver for S3Driver {
    type Session = S3Session;

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            classes: OpClass::ALL
                .into_iter()
                .filter(|class| !ABSENT.contains(class))
                .filter(|class| *class != OpClass::Append || self.inner.config.appends())
                .filter(|class| *class != OpClass::LocalWrite || self.inner.local.is_some())
                .collect(),
            verify: true,
            connections: true,
            parts_in_flight: true,
        }
    }

    fn facts(&self) -> DriverFacts {
        let config = &self.inner.config;
        let checksum = config.checksum.map_or("none", ChecksumAlgorithm::name);
        let mut own = vec![
            ("region", config.region.clone()),
            ("addressing", config.addressing.to_string()),
            ("signing", signing(config)),
            ("checksum", checksum.to_owned()),
        ];
        own.extend(config.keeping.facts());
        facts(
            "s3",
            own,
            &config.endpoints,
            &config.tls,
            &config.source_addresses,
        )
    }

    async fn open(&self, worker: WorkerId, probe: &mut Probe) -> OpResult<S3Session> {
        let sources = &self.inner.config.source_addresses;
        let (endpoint, source) = self.inner.client.assign(worker.worker, sources);
        let shared = S3Shared::of_this_thread(&self.inner, endpoint);
        let local = match &self.inner.local {
            // A copy of the probe: opening files does not count as a connection of the run.
            Some(local) => Some(Box::new(local.open(worker, &mut probe.clone()).await?)),
            None => None,
        };
        let mut session = S3Session::new(shared, source, local);
        session.connect(probe).await?;
        Ok(session)
    }
}

fn signing(config: &S3Config) -> String {
    match config.credentials {
        Some(_) => format!("SigV4, {} payload", config.payload),
        None => format!("anonymous, {} payload", config.payload),
    }
}

/// State that the sessions of one thread to one endpoint share: the signer and the rendered head.
pub(crate) struct S3Shared {
    pub(crate) driver: Arc<Inner>,
    /// Index of the endpoint.
    pub(crate) endpoint: usize,
    pub(crate) writer: RefCell<HeadWriter>,
}

impl S3Shared {
    fn of_this_thread(driver: &Arc<Inner>, endpoint: usize) -> Rc<Self> {
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

    pub(crate) fn config(&self) -> &S3Config {
        &self.driver.config
    }
}
