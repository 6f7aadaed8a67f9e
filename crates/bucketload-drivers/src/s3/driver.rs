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

use super::config::{ChecksumAlgorithm, S3Config};
use super::session::S3Session;
use super::template::{HeadWriter, wall_seconds};
use crate::http::config::ConfigError;
use crate::http::endpoint::Endpoint;
use crate::http::hub::{Hub, IdFields};

/// Where S3 services put their identifiers of a request.
const IDS: IdFields = IdFields {
    request: "x-amz-request-id",
    extended: "x-amz-id-2",
};

/// What the API does not have.
const ABSENT: [OpClass; 3] = [OpClass::Append, OpClass::Touch, OpClass::Rename];

/// The native S3 driver: its own HTTP/1.1 and SigV4, one connection per session.
#[derive(Clone)]
pub struct S3Driver {
    inner: Arc<Inner>,
}

/// What all sessions share.
pub(crate) struct Inner {
    pub(crate) config: S3Config,
    hub: Hub,
    /// Distinguishes drivers in the threads' registries.
    id: u64,
}

impl fmt::Debug for S3Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("S3Driver")
            .field("config", &self.inner.config)
            .finish_non_exhaustive()
    }
}

impl S3Driver {
    /// A driver for the target that `config` describes. Nothing is connected yet.
    ///
    /// # Errors
    /// When the configuration cannot work, or names a certificate file that cannot be used.
    pub fn new(config: S3Config) -> Result<Self, ConfigError> {
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
                .collect(),
            verify: true,
            connections: true,
        }
    }

    fn facts(&self) -> DriverFacts {
        let config = &self.inner.config;
        let mut settings = vec![
            ("region".to_owned(), config.region.clone()),
            ("addressing".to_owned(), config.addressing.to_string()),
            ("signing".to_owned(), signing(config)),
            (
                "checksum".to_owned(),
                config
                    .checksum
                    .map_or("none", ChecksumAlgorithm::name)
                    .to_owned(),
            ),
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
            driver: "s3".to_owned(),
            engine: "native".to_owned(),
            endpoints: config.endpoints.iter().map(Endpoint::url).collect(),
            settings,
        }
    }

    async fn open(&self, worker: WorkerId, probe: &mut Probe) -> Result<S3Session, OpError> {
        let config = &self.inner.config;
        let number = worker.worker as usize;
        let endpoint = number % config.endpoints.len();
        let sources = &config.source_addresses;
        let source = (!sources.is_empty()).then(|| sources[number % sources.len()]);
        let shared = Shared::of_this_thread(&self.inner, endpoint);
        let mut session = S3Session::new(shared, source);
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

/// What the sessions of one thread to one endpoint share: the signer and the rendered head.
pub(crate) struct Shared {
    pub(crate) driver: Arc<Inner>,
    endpoint: usize,
    pub(crate) writer: RefCell<HeadWriter>,
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

    pub(crate) fn config(&self) -> &S3Config {
        &self.driver.config
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.driver.hub.endpoints()[self.endpoint]
    }

    pub(crate) fn hub(&self) -> &Hub {
        &self.driver.hub
    }

    pub(crate) fn endpoint_index(&self) -> usize {
        self.endpoint
    }
}
