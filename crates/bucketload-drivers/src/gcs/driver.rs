//! The driver and the state that all sessions share.

use std::sync::Arc;

use bucketload_core::driver::{
    Capabilities, Driver, DriverFacts, OpClass, OpResult, Probe, WorkerId,
};

use super::auth::Account;
use super::auth::grant::TokenSource;
use super::auth::refresher::TokenRefresher;
use super::config::GcsConfig;
use super::session::GcsSession;
use crate::http::config::facts;
use crate::http::{Client, ConfigError, HttpSession as _, IdFields, opaque_debug};

/// Operations of the JSON API. Cloud Storage has one kind of listing, cannot list unfinished uploads, and
/// composes only whole objects.
const CLASSES: [OpClass; 18] = [
    OpClass::Get,
    OpClass::RangeGet,
    OpClass::Put,
    OpClass::PutIfAbsent,
    OpClass::MultipartPut,
    OpClass::Head,
    OpClass::Delete,
    OpClass::DeleteMany,
    OpClass::List,
    OpClass::Copy,
    OpClass::MultipartAbort,
    OpClass::PutTagging,
    OpClass::GetTagging,
    OpClass::DeleteTagging,
    OpClass::MakeBucket,
    OpClass::HeadBucket,
    OpClass::DeleteBucket,
    OpClass::ListBuckets,
];

/// The native Google Cloud Storage driver: the JSON API over its own HTTP/1.1, one connection per
/// session.
#[derive(Clone)]
pub struct GcsDriver {
    inner: Arc<DriverShared>,
}

bucketload_core::any_driver!(GcsDriver);

/// State that all sessions share.
pub(crate) struct DriverShared {
    pub(crate) config: GcsConfig,
    pub(crate) client: Client,
    /// None for anonymous requests.
    pub(crate) refresher: Option<TokenRefresher>,
}

opaque_debug!(GcsDriver, DriverShared);

impl GcsDriver {
    /// A driver for the target that `config` describes. If requests need a token, a thread starts to
    /// obtain it; the driver does not connect otherwise.
    ///
    /// # Errors
    /// When the configuration cannot work, or names an unusable key or certificate file.
    pub fn new(config: GcsConfig) -> Result<Self, ConfigError> {
        config.check()?;
        let ids = IdFields {
            request: "x-guploader-uploadid",
            extended: "",
        };
        let client = Client::new(config.endpoints.clone(), &config.tls, ids)?;
        let refresher = match &config.account {
            None => None,
            Some(account) => {
                let source = TokenSource::new(account.clone(), &config.tls)?;
                let started = TokenRefresher::start(source).map_err(|e| {
                    ConfigError::new("credentials", e.to_string(), "free threads or descriptors")
                })?;
                Some(started)
            }
        };
        Ok(Self {
            inner: Arc::new(DriverShared {
                config,
                client,
                refresher,
            }),
        })
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &GcsConfig {
        &self.inner.config
    }
}

impl Driver for GcsDriver {
    type Session = GcsSession;

    fn capabilities(&self) -> Capabilities {
        Capabilities::of_service(&CLASSES)
    }

    fn facts(&self) -> DriverFacts {
        let config = &self.inner.config;
        let account = config.account.as_ref();
        let who = account.map_or_else(|| "anonymous".to_owned(), Account::describe);
        facts(
            "gcs",
            vec![
                ("api", "JSON".to_owned()),
                ("credentials", who),
                ("large objects", config.large_object.to_string()),
            ],
            &config.endpoints,
            &config.tls,
            &config.source_addresses,
        )
    }

    async fn open(&self, worker: WorkerId, probe: &mut Probe) -> OpResult<GcsSession> {
        let sources = &self.inner.config.source_addresses;
        let (endpoint, source) = self.inner.client.assign(worker.worker, sources);
        let mut session = GcsSession::new(Arc::clone(&self.inner), endpoint, source)?;
        session.connect(probe).await?;
        Ok(session)
    }
}
