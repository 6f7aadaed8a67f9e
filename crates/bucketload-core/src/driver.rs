//! The traits a storage adapter implements.
//!
//! A [`Driver`] is shared by all load threads; a [`Session`] belongs to one worker and performs one operation at a
//! time. Sessions run on a current-thread runtime, so their futures need not be `Send`. The runner uses drivers
//! through [`AnyDriver`] and [`AnySession`]. What every driver needs of other modules is exported here too.

mod erased;

use std::future::Future;

use crate::op::BucketNeeds;
use crate::payload::Content;

pub use crate::error::{ErrorKind, OpError, OpResult};
pub use crate::op::{OpClass, Request};
pub use crate::record::Probe;
pub use erased::{AdminCalls, AnyDriver, AnySession, Boxed, Executing};

/// Identifies a worker within an agent. The default is the first one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerId {
    /// Index of the load thread.
    pub thread: u16,
    /// Index of the worker among all workers of the agent.
    pub worker: u32,
}

/// What a driver can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The operation classes that it performs.
    pub classes: Vec<OpClass>,
    /// Whether bytes read can be compared with the expected content.
    pub verify: bool,
    /// Whether a session holds a connection that can break and be reopened.
    pub connections: bool,
    /// Whether a multipart upload sends as many parts at the same time as [`crate::op::Op::pages`] says.
    pub parts_in_flight: bool,
}

impl Capabilities {
    /// A service that is reached over connections and whose answers can be verified.
    #[must_use]
    pub fn of_service(classes: &[OpClass]) -> Self {
        Self {
            classes: classes.to_vec(),
            verify: true,
            connections: true,
            parts_in_flight: false,
        }
    }
}

/// The way that a session's requests take: endpoint and connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestRoute {
    /// Index of the endpoint in [`DriverFacts::endpoints`].
    pub endpoint: u16,
    /// Local port of the connection; 0 without one.
    pub local_port: u16,
    /// Number of the connection within the run, from 1; 0 without one.
    pub connection: u64,
}

/// Knows which nodes of a store hold an object. This connects requests on keys with the load of data nodes
/// (docs/spec/statistics.md section 8).
pub trait PlacementOracle {
    /// Number of nodes.
    fn nodes(&self) -> usize;

    /// Replaces the contents of `copies` with the indices of the nodes that hold a copy of `key`; none if unknown. If a
    /// read needs only one copy, the first node serves it.
    fn copies(&self, bucket: &str, key: &str, copies: &mut Vec<u32>);
}

/// Facts about how a driver talks to its target, for the result header. Never holds secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct DriverFacts {
    /// Driver name (`s3`, `null`, …).
    pub driver: String,
    /// Client engine (`native`, …).
    pub engine: String,
    /// Endpoint URLs, without credentials.
    pub endpoints: Vec<String>,
    /// Other settings as name and value: addressing, signing, checksum, TLS.
    pub settings: Vec<(String, String)>,
}

/// An adapter for one storage API, bound to a target.
pub trait Driver: Send + Sync + 'static {
    /// The session type.
    type Session: Session;

    /// What the driver can do.
    fn capabilities(&self) -> Capabilities;

    /// How it talks to its target.
    fn facts(&self) -> DriverFacts;

    /// Creates and connects a session on the calling load thread. The probe receives the phase times of the connection.
    ///
    /// # Errors
    /// When the target cannot be reached.
    fn open(
        &self,
        worker: WorkerId,
        probe: &mut Probe,
    ) -> impl Future<Output = OpResult<Self::Session>>;
}

/// The result of a successful operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// Object bytes transferred (sent or received); 0 for operations without a body.
    pub bytes: u64,
    /// Number of keys listed or deleted, or of parts written; 0 for other operations.
    pub items: u64,
    /// For head: size of the whole object as the store states it; else 0.
    pub object_size: u64,
}

impl Completion {
    /// A transfer of `bytes` in one piece.
    #[inline]
    #[must_use]
    pub const fn of_bytes(bytes: u64) -> Self {
        Self { bytes, ..DONE }
    }

    /// A listing or deletion of `items` keys.
    #[inline]
    #[must_use]
    pub const fn of_items(items: u64) -> Self {
        Self { items, ..DONE }
    }

    /// A transfer of `bytes` in `parts`.
    #[inline]
    #[must_use]
    pub const fn of_parts(bytes: u64, parts: u64) -> Self {
        Self {
            bytes,
            items: parts,
            ..DONE
        }
    }

    /// A look at an object of `object_size` bytes.
    #[inline]
    #[must_use]
    pub const fn of_size(object_size: u64) -> Self {
        Self {
            object_size,
            ..DONE
        }
    }
}

/// A success without bytes or items.
pub const DONE: Completion = Completion {
    bytes: 0,
    items: 0,
    object_size: 0,
};

/// The content that `request` writes.
///
/// # Errors
/// If it has none.
pub fn content_of<'a>(request: &'a Request<'_>) -> OpResult<&'a Content<'a>> {
    request.content.as_ref().ok_or_else(|| {
        OpError::new(
            ErrorKind::Unsupported,
            format!("{} was asked for without content", request.op.class),
        )
    })
}

/// Lets a driver become an [`AnyDriver`]. The conversion is not generic and belongs to the driver's crate, so all of
/// the driver's code is compiled there, once.
#[macro_export]
macro_rules! any_driver {
    ($driver:ty) => {
        impl From<$driver> for $crate::driver::AnyDriver {
            #[inline(never)]
            fn from(driver: $driver) -> Self {
                Self::new(driver)
            }
        }
    };
}

/// One worker's sequential connection to the target.
///
/// `execute` has to call [`Probe::started`] immediately before the first byte of the request leaves, [`Probe::sent`]
/// when its last byte has left if that took several system calls, [`Probe::first_byte`] when the answer's first byte
/// has arrived, and [`Probe::done`] when its last byte has. It reports a new connection with [`Probe::connected`],
/// before `started`. It never repeats a request on its own, and it allocates nothing if it succeeds.
pub trait Session: Admin + 'static {
    /// Performs one operation.
    ///
    /// # Errors
    /// The failure, by its meaning. The session stays usable and reconnects by itself if needed.
    fn execute(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> impl Future<Output = OpResult>;

    /// The way of the last request or, before any, of the next one.
    fn route(&self) -> RequestRoute {
        RequestRoute::default()
    }
}

/// One page of a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyPage {
    /// Keys in the store's order.
    pub keys: Vec<String>,
    /// Where the next page continues; `None` on the last page.
    pub next: Option<String>,
    /// A note for the user about how the page was obtained; usually `None`.
    pub note: Option<Box<str>>,
}

impl KeyPage {
    /// A page of `keys`; the next one continues at `next`.
    #[must_use]
    pub const fn new(keys: Vec<String>, next: Option<String>) -> Self {
        Self {
            keys,
            next,
            note: None,
        }
    }

    /// A page of `keys`; if there are `more`, the next one continues after the last of these.
    #[must_use]
    pub fn up_to_last(keys: Vec<String>, more: bool) -> Self {
        let next = keys.last().filter(|_| more).cloned();
        Self::new(keys, next)
    }
}

/// A version of an object, or a delete marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyVersion {
    /// The object's key.
    pub key: String,
    /// The id of the version; empty in a marker of a listing that names none.
    pub version: String,
}

/// One page of versions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionPage {
    /// Versions and delete markers in the store's order.
    pub versions: Vec<KeyVersion>,
    /// Where the next page continues; `None` on the last page.
    pub next: Option<KeyVersion>,
}

/// The room that a store has left, as far as it says so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Bytes that can still be written.
    pub free_bytes: Option<u64>,
    /// Bytes that it holds at most.
    pub total_bytes: Option<u64>,
    /// Objects that can still be created.
    pub free_objects: Option<u64>,
    /// Volumes, of a size that only the store knows, that are free.
    pub free_volumes: Option<u64>,
    /// Whose room it is: `the cluster`; or why it is not known.
    pub of: String,
}

/// Untimed calls of the control plane: preflight, ownership markers, clean-up. They may allocate and are never part of
/// a measurement.
pub trait Admin {
    /// Creates the bucket unless it exists. Returns whether this call created it.
    ///
    /// # Errors
    /// When the bucket cannot be created or used.
    fn ensure_bucket(&mut self, bucket: &str) -> impl Future<Output = OpResult<bool>>;

    /// As [`Admin::ensure_bucket`], but a new bucket is made so that it offers what operations need of it.
    ///
    /// # Errors
    /// As [`Admin::ensure_bucket`].
    fn ensure_bucket_with(
        &mut self,
        bucket: &str,
        needs: BucketNeeds,
    ) -> impl Future<Output = OpResult<bool>> {
        let _ = needs;
        self.ensure_bucket(bucket)
    }

    /// Checks that the bucket offers what operations need of it. Changes nothing.
    ///
    /// # Errors
    /// `Rejected` with what it lacks and the remedy; `Unsupported` for stores without versions.
    fn check_needs(
        &mut self,
        bucket: &str,
        needs: BucketNeeds,
    ) -> impl Future<Output = OpResult<()>> {
        let _ = bucket;
        async move {
            match needs.any() {
                true => Err(OpError::new(
                    ErrorKind::Unsupported,
                    "the workload needs a bucket that keeps versions, which this driver does not offer",
                )),
                false => Ok(()),
            }
        }
    }

    /// Checks that the bucket exists and may be used.
    ///
    /// # Errors
    /// `NotFound` when there is none.
    fn head_bucket(&mut self, bucket: &str) -> impl Future<Output = OpResult<()>>;

    /// Deletes an empty bucket.
    ///
    /// # Errors
    /// `Conflict` when it is not empty.
    fn delete_bucket(&mut self, bucket: &str) -> impl Future<Output = OpResult<()>>;

    /// Lists up to 1000 keys that begin with `prefix`, from `after` on, which is the `next` of the previous page.
    ///
    /// # Errors
    /// As the store says.
    fn list_keys(
        &mut self,
        bucket: &str,
        prefix: &str,
        after: Option<&str>,
    ) -> impl Future<Output = OpResult<KeyPage>>;

    /// Deletes the named objects (at most 1000). A missing object is no error.
    ///
    /// # Errors
    /// The first failure.
    fn delete_keys(&mut self, bucket: &str, keys: &[String]) -> impl Future<Output = OpResult<()>>;

    /// Lists up to 1000 versions, also the current ones and delete markers, of keys that begin with `prefix`, from
    /// `after` on, which is the `next` of the previous page. A store without versions answers an empty page.
    ///
    /// # Errors
    /// As the store says.
    fn list_versions(
        &mut self,
        bucket: &str,
        prefix: &str,
        after: Option<&KeyVersion>,
    ) -> impl Future<Output = OpResult<VersionPage>> {
        let _ = (bucket, prefix, after);
        async { Ok(VersionPage::default()) }
    }

    /// Removes the versions (at most 1000) for good. A missing one is no error.
    ///
    /// # Errors
    /// The first failure.
    fn delete_versions(
        &mut self,
        bucket: &str,
        versions: &[KeyVersion],
    ) -> impl Future<Output = OpResult<()>> {
        let _ = (bucket, versions);
        async { Ok(()) }
    }

    /// As [`Admin::delete_versions`], also for versions with a legal hold, which is lifted, or a retention in governance
    /// mode, which is bypassed.
    ///
    /// # Errors
    /// The first failure.
    fn delete_locked_versions(
        &mut self,
        bucket: &str,
        versions: &[KeyVersion],
    ) -> impl Future<Output = OpResult<()>> {
        let _ = (bucket, versions);
        async { Ok(()) }
    }

    /// The room left for objects in the bucket; `None` if the store's interface has no call for that.
    ///
    /// # Errors
    /// As the store says.
    fn room(&mut self, bucket: &str) -> impl Future<Output = OpResult<Option<Room>>> {
        let _ = bucket;
        async { Ok(None) }
    }

    /// Aborts unfinished multipart uploads whose key begins with `prefix`. Returns how many.
    ///
    /// # Errors
    /// As the store says; a store without multipart uploads answers 0.
    fn abort_uploads(&mut self, bucket: &str, prefix: &str) -> impl Future<Output = OpResult<u64>>;

    /// Writes a small object.
    ///
    /// # Errors
    /// As the store says.
    fn put_small(
        &mut self,
        bucket: &str,
        key: &str,
        body: &[u8],
    ) -> impl Future<Output = OpResult<()>>;

    /// Reads a small object.
    ///
    /// # Errors
    /// `NotFound` when there is none.
    fn get_small(&mut self, bucket: &str, key: &str) -> impl Future<Output = OpResult<Vec<u8>>>;

    /// Reads a small object, and by what [`Admin::put_small_if`] recognises this state of it. That is `None` unless the
    /// store compares it.
    ///
    /// # Errors
    /// `NotFound` when there is none.
    fn get_small_version(
        &mut self,
        bucket: &str,
        key: &str,
    ) -> impl Future<Output = OpResult<(Vec<u8>, Option<String>)>> {
        async { Ok((self.get_small(bucket, key).await?, None)) }
    }

    /// Writes a small object, if it is still as [`Admin::get_small_version`] found it; in any case without a `version`,
    /// or if the store cannot compare.
    ///
    /// # Errors
    /// `Conflict` when the object has changed.
    fn put_small_if(
        &mut self,
        bucket: &str,
        key: &str,
        body: &[u8],
        version: Option<&str>,
    ) -> impl Future<Output = OpResult<()>> {
        let _ = version;
        self.put_small(bucket, key, body)
    }
}
