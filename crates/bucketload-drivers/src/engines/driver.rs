//! The driver and the sessions of every engine: the engine's client performs the operations, the
//! native driver of the same target performs the untimed calls.

use std::fmt;
use std::future::Future;

use bucketload_core::driver::{
    Admin, AnyDriver, AnySession, Capabilities, Driver, DriverFacts, ErrorKind, KeyPage,
    KeyVersion, OpClass, OpError, OpResult, Probe, Request, RequestRoute, Session, VersionPage,
    WorkerId,
};
use bucketload_core::op::BucketNeeds;

/// An engine's description of itself. Contains no secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineFacts {
    /// The engine's name on the command line.
    pub name: String,
    /// Version, retries, checksums, and everything else that affects the meaning of a measurement.
    pub settings: Vec<(String, String)>,
}

/// A client stack that performs operations, bound to a target.
pub trait Engine: Send + Sync + 'static {
    /// The client of one worker.
    type Client: Client;

    /// The supported operation classes.
    fn classes(&self) -> &[OpClass];

    /// The engine's description of itself.
    fn facts(&self) -> EngineFacts;

    /// Creates a client for one worker, on the calling load thread.
    ///
    /// # Errors
    /// When the client cannot be created.
    fn client(&self, worker: WorkerId) -> OpResult<Self::Client>;
}

/// The client of one worker.
pub trait Client: 'static {
    /// Performs one operation of a class that the engine supports. The contract of
    /// [`Session::execute`] applies, except that the client may allocate.
    ///
    /// # Errors
    /// When the operation fails; the error's kind says how.
    fn execute(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> impl Future<Output = OpResult>;
}

/// Drives a target with an engine.
pub struct EngineDriver<E> {
    /// The native driver of the same target.
    native: AnyDriver,
    engine: E,
    endpoints: usize,
}

impl<E> fmt::Debug for EngineDriver<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineDriver").finish_non_exhaustive()
    }
}

impl<E: Engine> EngineDriver<E> {
    /// A driver whose operations `engine` performs, and everything else `native`.
    pub fn new(native: impl Into<AnyDriver>, engine: E) -> Self {
        let native = native.into();
        Self {
            endpoints: native.facts().endpoints.len().max(1),
            native,
            engine,
        }
    }
}

/// Settings of the native driver that do not apply to an engine.
const NATIVE_SETTINGS: [&str; 3] = ["signing", "checksum", "source addresses"];

impl<E: Engine> Driver for EngineDriver<E> {
    type Session = EngineSession<E::Client>;

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            classes: self.engine.classes().to_vec(),
            verify: true,
            connections: false,
            parts_in_flight: false,
        }
    }

    fn facts(&self) -> DriverFacts {
        let mut facts = self.native.facts();
        let engine = self.engine.facts();
        facts
            .settings
            .retain(|(name, _)| !NATIVE_SETTINGS.contains(&name.as_str()));
        facts.engine = engine.name;
        facts.settings.extend(engine.settings);
        facts.settings.push((
            "preflight and clean-up".to_owned(),
            "native client".to_owned(),
        ));
        facts
    }

    async fn open(&self, worker: WorkerId, _probe: &mut Probe) -> OpResult<Self::Session> {
        let endpoint = worker.worker as usize % self.endpoints;
        Ok(EngineSession {
            client: self.engine.client(worker)?,
            native: self.native.clone(),
            admin: None,
            worker,
            route: RequestRoute {
                endpoint: u16::try_from(endpoint).unwrap_or(u16::MAX),
                ..RequestRoute::default()
            },
        })
    }
}

/// One worker's client, and the native session for the untimed calls.
pub struct EngineSession<C> {
    client: C,
    native: AnyDriver,
    /// Opened by the first untimed call: most workers never make one.
    admin: Option<AnySession>,
    worker: WorkerId,
    route: RequestRoute,
}

impl<C> fmt::Debug for EngineSession<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineSession")
            .field("worker", &self.worker)
            .finish_non_exhaustive()
    }
}

impl<C> EngineSession<C> {
    async fn admin(&mut self) -> OpResult<&mut AnySession> {
        if self.admin.is_none() {
            let probe = &mut Probe::untimed();
            self.admin = Some(self.native.open(self.worker, probe).await?);
        }
        self.admin
            .as_mut()
            .ok_or_else(|| OpError::new(ErrorKind::Connect, "the connection is gone"))
    }
}

impl<C: Client> Session for EngineSession<C> {
    fn execute(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> impl Future<Output = OpResult> {
        self.client.execute(request, probe)
    }

    fn route(&self) -> RequestRoute {
        self.route
    }
}

impl<C: 'static> Admin for EngineSession<C> {
    async fn ensure_bucket(&mut self, bucket: &str) -> OpResult<bool> {
        self.admin().await?.ensure_bucket(bucket).await
    }

    async fn ensure_bucket_with(&mut self, bucket: &str, needs: BucketNeeds) -> OpResult<bool> {
        self.admin().await?.ensure_bucket_with(bucket, needs).await
    }

    async fn check_needs(&mut self, bucket: &str, needs: BucketNeeds) -> OpResult<()> {
        self.admin().await?.check_needs(bucket, needs).await
    }

    async fn delete_locked_versions(
        &mut self,
        bucket: &str,
        versions: &[KeyVersion],
    ) -> OpResult<()> {
        self.admin()
            .await?
            .delete_locked_versions(bucket, versions)
            .await
    }

    async fn head_bucket(&mut self, bucket: &str) -> OpResult<()> {
        self.admin().await?.head_bucket(bucket).await
    }

    async fn delete_bucket(&mut self, bucket: &str) -> OpResult<()> {
        self.admin().await?.delete_bucket(bucket).await
    }

    async fn list_keys(
        &mut self,
        bucket: &str,
        prefix: &str,
        after: Option<&str>,
    ) -> OpResult<KeyPage> {
        self.admin().await?.list_keys(bucket, prefix, after).await
    }

    async fn delete_keys(&mut self, bucket: &str, keys: &[String]) -> OpResult<()> {
        self.admin().await?.delete_keys(bucket, keys).await
    }

    async fn list_versions(
        &mut self,
        bucket: &str,
        prefix: &str,
        after: Option<&KeyVersion>,
    ) -> OpResult<VersionPage> {
        self.admin()
            .await?
            .list_versions(bucket, prefix, after)
            .await
    }

    async fn delete_versions(&mut self, bucket: &str, versions: &[KeyVersion]) -> OpResult<()> {
        self.admin().await?.delete_versions(bucket, versions).await
    }

    async fn abort_uploads(&mut self, bucket: &str, prefix: &str) -> OpResult<u64> {
        self.admin().await?.abort_uploads(bucket, prefix).await
    }

    async fn put_small(&mut self, bucket: &str, key: &str, body: &[u8]) -> OpResult<()> {
        self.admin().await?.put_small(bucket, key, body).await
    }

    async fn get_small(&mut self, bucket: &str, key: &str) -> OpResult<Vec<u8>> {
        self.admin().await?.get_small(bucket, key).await
    }

    async fn get_small_version(
        &mut self,
        bucket: &str,
        key: &str,
    ) -> OpResult<(Vec<u8>, Option<String>)> {
        self.admin().await?.get_small_version(bucket, key).await
    }

    async fn put_small_if(
        &mut self,
        bucket: &str,
        key: &str,
        body: &[u8],
        version: Option<&str>,
    ) -> OpResult<()> {
        let admin = self.admin().await?;
        admin.put_small_if(bucket, key, body, version).await
    }
}

/// The error for a class that an engine does not support.
pub(crate) fn unsupported(engine: &str, class: OpClass) -> OpError {
    OpError::new(
        ErrorKind::Unsupported,
        format!("the engine {engine} has no operation {class}"),
    )
}
