//! The traits a storage adapter implements.
//!
//! A [`Driver`] is shared by all load threads; a [`Session`] belongs to one worker and performs one
//! operation at a time. Sessions run on a current-thread runtime: their futures need not be `Send`. Whoever uses
//! drivers knows them as [`AnyDriver`] and [`AnySession`].

mod erased;

use std::future::Future;

use crate::error::{ErrorKind, OpError};
use crate::op::{OpClass, Request};
use crate::payload::Content;
use crate::record::Probe;

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
    /// The operation classes it performs.
    pub classes: Vec<OpClass>,
    /// Whether bytes read can be compared with the expected content.
    pub verify: bool,
    /// Whether a session holds a connection that can break and be reopened.
    pub connections: bool,
}

/// Where a session's requests go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Index of the endpoint in [`DriverFacts::endpoints`].
    pub endpoint: u16,
    /// Local port of the connection; 0 without one.
    pub local_port: u16,
    /// Number of the connection within the run, from 1; 0 without one.
    pub connection: u64,
}

/// Tells which nodes of a store hold an object: the link between the requests on keys and the load
/// of data nodes (docs/spec/statistics.md section 8).
pub trait PlacementOracle {
    /// Number of nodes.
    fn nodes(&self) -> usize;

    /// Writes the indices of the nodes that hold a copy of `key` into `copies`, replacing its
    /// contents; the first one serves reads when only one copy is read. Nothing when unknown.
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
    /// Further settings as name and value: addressing, signing, checksum, TLS.
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

    /// Creates a session and connects it, on the calling load thread. The probe receives the
    /// connection's phase times.
    ///
    /// # Errors
    /// When the target cannot be reached.
    fn open(
        &self,
        worker: WorkerId,
        probe: &mut Probe,
    ) -> impl Future<Output = Result<Self::Session, OpError>>;
}

/// Successful end of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// Object bytes transferred (sent or received); 0 for operations without a body.
    pub bytes: u64,
    /// Keys listed, deleted or parts written; 0 where it has no meaning.
    pub items: u64,
    /// Size of the whole object as stated by the store, for head; else 0.
    pub object_size: u64,
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
/// When it has none.
pub fn content_of<'a>(request: &'a Request<'_>) -> Result<&'a Content<'a>, OpError> {
    request.content.as_ref().ok_or_else(|| {
        OpError::new(
            ErrorKind::Unsupported,
            format!("{} was asked for without content", request.op.class),
        )
    })
}

/// Lets a driver become an [`AnyDriver`]. The conversion is no generic function and stands with the driver, so all that
/// the driver does is compiled in its own crate, once.
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
/// `execute` must call [`Probe::started`] immediately before the first byte of the request leaves,
/// [`Probe::sent`] when its last has left and that took several system calls,
/// [`Probe::first_byte`] when the answer's first byte is there and [`Probe::done`] when its last
/// is; a (re)connection goes to [`Probe::connected`] and lies before `started`. It never repeats a
/// request by itself. It allocates nothing when it succeeds.
pub trait Session: Admin + 'static {
    /// Performs one operation.
    ///
    /// # Errors
    /// The failure by meaning; the session stays usable and reconnects by itself when needed.
    fn execute(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> impl Future<Output = Result<Completion, OpError>>;

    /// Where the last request went, or the next one will go.
    fn place(&self) -> Place {
        Place::default()
    }
}

/// One page of a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyPage {
    /// Keys in the store's order.
    pub keys: Vec<String>,
    /// Where to continue; `None` at the end.
    pub next: Option<String>,
    /// What the user should know about how the page was got; `None` as a rule.
    pub note: Option<Box<str>>,
}

/// Untimed calls of the control plane: preflight, ownership marks, clean-up. They may allocate, and
/// they are never part of a measurement.
pub trait Admin {
    /// Creates the bucket unless it exists. Returns whether this call created it.
    ///
    /// # Errors
    /// When the bucket can be neither created nor used.
    fn ensure_bucket(&mut self, bucket: &str) -> impl Future<Output = Result<bool, OpError>>;

    /// Checks that the bucket exists and may be used.
    ///
    /// # Errors
    /// `NotFound` when there is none.
    fn head_bucket(&mut self, bucket: &str) -> impl Future<Output = Result<(), OpError>>;

    /// Deletes an empty bucket.
    ///
    /// # Errors
    /// `Conflict` when it is not empty.
    fn delete_bucket(&mut self, bucket: &str) -> impl Future<Output = Result<(), OpError>>;

    /// Lists up to 1000 keys that begin with `prefix`, from `after` (a former page's `next`) on.
    ///
    /// # Errors
    /// As the store says.
    fn list_keys(
        &mut self,
        bucket: &str,
        prefix: &str,
        after: Option<&str>,
    ) -> impl Future<Output = Result<KeyPage, OpError>>;

    /// Deletes the named objects (at most 1000). An object that is already gone is no error.
    ///
    /// # Errors
    /// The first failure.
    fn delete_keys(
        &mut self,
        bucket: &str,
        keys: &[String],
    ) -> impl Future<Output = Result<(), OpError>>;

    /// Aborts unfinished multipart uploads whose key begins with `prefix`; returns how many.
    ///
    /// # Errors
    /// As the store says; a store without multipart uploads answers 0.
    fn abort_uploads(
        &mut self,
        bucket: &str,
        prefix: &str,
    ) -> impl Future<Output = Result<u64, OpError>>;

    /// Writes a small object.
    ///
    /// # Errors
    /// As the store says.
    fn put_small(
        &mut self,
        bucket: &str,
        key: &str,
        body: &[u8],
    ) -> impl Future<Output = Result<(), OpError>>;

    /// Reads a small object.
    ///
    /// # Errors
    /// `NotFound` when there is none.
    fn get_small(
        &mut self,
        bucket: &str,
        key: &str,
    ) -> impl Future<Output = Result<Vec<u8>, OpError>>;
}
