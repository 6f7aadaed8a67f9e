//! The driver: the state that all threads share, and the state that the sessions of one thread share.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::SystemTime;

use bucketload_core::driver::{
    Capabilities, Driver, DriverFacts, OpClass, OpError, OpResult, Probe, WorkerId,
};
use bucketload_s3::date::since_epoch;

use super::config::{Identity, LargeObject, SwiftAuth, SwiftConfig};
use super::head::HeadWriter;
use super::session::SwiftSession;
use super::tokens::{self, IDS, Tokens};
use crate::http::config::facts;
use crate::http::{Client, ConfigError, Endpoint, HttpSession as _, opaque_debug, per_thread};

/// Why a driver cannot be created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignInError {
    /// A setting cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The authentication service refuses or cannot be reached.
    #[error(transparent)]
    Refused(#[from] OpError),
}

/// The native Swift driver, signed in: one connection per session.
#[derive(Clone)]
pub struct SwiftDriver {
    inner: Arc<Inner>,
}

bucketload_core::any_driver!(SwiftDriver);

/// State that all sessions share.
pub(crate) struct Inner {
    pub(crate) config: SwiftConfig,
    pub(crate) client: Client,
    pub(crate) tokens: Arc<Tokens>,
    /// First part of the names of this driver's uploads.
    pub(crate) nonce: u64,
    /// Number of uploads started.
    pub(crate) uploads: AtomicU64,
    /// Incremented when a segments container is deleted, so that sessions check again whether theirs exists.
    pub(crate) segments_epoch: AtomicU64,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.tokens.end();
    }
}

opaque_debug!(SwiftDriver, SwiftShared);

impl SwiftDriver {
    /// Signs in according to `config`; blocks until that is done.
    ///
    /// # Errors
    /// When the configuration cannot work, or signing in fails.
    pub fn sign_in(config: SwiftConfig) -> Result<Self, SignInError> {
        config.check()?;
        let (tokens, granted) = tokens::sign_in(&config)??;
        let storage = match (&config.storage_url, granted) {
            (Some(url), _) => url.clone(),
            (None, Some(url)) => Endpoint::parse(&url, "storage URL from the sign-in")?,
            (None, None) => {
                return Err(SignInError::Config(ConfigError::new(
                    "storage URL",
                    "the sign-in returned none: the token has no catalogue",
                    "set OS_STORAGE_URL, or a project with OS_PROJECT_NAME",
                )));
            }
        };
        let mut endpoints = config.hosts.clone();
        for endpoint in &mut endpoints {
            endpoint.base_path.clone_from(&storage.base_path);
        }
        if endpoints.is_empty() {
            endpoints.push(storage);
        }
        let client = Client::new(endpoints, &config.tls, IDS)?;
        let nonce = u64::try_from(since_epoch(SystemTime::now()).as_nanos()).unwrap_or(0);
        Ok(Self {
            inner: Arc::new(Inner {
                config,
                client,
                tokens,
                nonce: nonce ^ u64::from(std::process::id()).rotate_left(40),
                uploads: AtomicU64::new(0),
                segments_epoch: AtomicU64::new(1),
            }),
        })
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &SwiftConfig {
        &self.inner.config
    }

    /// The hosts that requests go to.
    pub(crate) fn endpoint_list(&self) -> &[Endpoint] {
        self.inner.client.endpoints()
    }

    /// The account's URL on each host that requests go to.
    #[must_use]
    pub fn endpoints(&self) -> Vec<String> {
        self.inner
            .client
            .endpoints()
            .iter()
            .map(Endpoint::url)
            .collect()
    }
}

impl Driver for SwiftDriver {
    type Session = SwiftSession;

    fn capabilities(&self) -> Capabilities {
        Capabilities::of_service(&[
            OpClass::Get,
            OpClass::RangeGet,
            OpClass::Put,
            OpClass::PutIfAbsent,
            OpClass::MultipartPut,
            OpClass::Head,
            OpClass::Delete,
            OpClass::DeleteMany,
            OpClass::List,
            OpClass::ListV1,
            OpClass::Copy,
            OpClass::MakeBucket,
            OpClass::HeadBucket,
            OpClass::DeleteBucket,
            OpClass::ListBuckets,
        ])
    }

    fn facts(&self) -> DriverFacts {
        let config = &self.inner.config;
        let consistency = match config.large_object {
            LargeObject::Slo => "listings may lag behind",
            LargeObject::Dlo => "listings, and with them dynamic large objects, may lag behind",
        };
        let checksum = if config.etag { "md5" } else { "none" };
        facts(
            "swift",
            vec![
                ("auth", auth(config)),
                ("large objects", config.large_object.to_string()),
                ("checksum", checksum.to_owned()),
                ("consistency", consistency.to_owned()),
            ],
            self.inner.client.endpoints(),
            &config.tls,
            &config.source_addresses,
        )
    }

    async fn open(&self, worker: WorkerId, probe: &mut Probe) -> OpResult<SwiftSession> {
        let sources = &self.inner.config.source_addresses;
        let (endpoint, source) = self.inner.client.assign(worker.worker, sources);
        let shared = SwiftShared::of_this_thread(&self.inner, endpoint);
        let mut session = SwiftSession::new(shared, source);
        session.connect(probe).await?;
        Ok(session)
    }
}

fn auth(config: &SwiftConfig) -> String {
    match &config.auth {
        SwiftAuth::V1 { user, .. } => format!("v1 as {user}"),
        SwiftAuth::Keystone(keystone) => match (&keystone.identity, &keystone.scope) {
            (Identity::Password { user, .. }, Some(project)) => {
                format!("Keystone v3 as {} in {}", user.shown(), project.shown())
            }
            (Identity::Password { user, .. }, None) => format!("Keystone v3 as {}", user.shown()),
            (Identity::Application { id, .. }, _) => {
                format!("Keystone v3 with application credential {id}")
            }
        },
        SwiftAuth::Token(_) => "a given token".to_owned(),
        SwiftAuth::Anonymous => "anonymous".to_owned(),
    }
}

/// State that the sessions of one thread to one endpoint share: the rendered head.
pub(crate) struct SwiftShared {
    pub(crate) driver: Arc<Inner>,
    /// Index of the endpoint.
    pub(crate) endpoint: usize,
    pub(crate) writer: RefCell<HeadWriter>,
    /// The container whose segments container is known to exist, and the [`Inner::segments_epoch`] of that knowledge.
    pub(crate) segments_of: RefCell<(String, u64)>,
}

impl SwiftShared {
    fn of_this_thread(driver: &Arc<Inner>, endpoint: usize) -> Rc<Self> {
        per_thread::shared(driver.client.number(), endpoint, || Self {
            driver: Arc::clone(driver),
            endpoint,
            writer: RefCell::new(HeadWriter::new(&driver.client.endpoints()[endpoint])),
            segments_of: RefCell::new((String::new(), 0)),
        })
    }
}
