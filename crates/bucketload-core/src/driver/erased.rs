//! Type-erased drivers and sessions, so that the runner is compiled once for all of them.
//!
//! ```text
//!  AnyDriver ── open ──▶ AnySession ─▶ cell on the heap: the session, and memory for the future of its operation
//!                            │ execute
//!                            ▼
//!                        Executing: the first poll makes the future in that memory; every poll polls it
//! ```
//!
//! An operation costs one indirect call, plus one each time it is woken, and no allocation. Untimed calls
//! ([`AdminCalls`]) return boxed futures.

use std::fmt;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::{
    Admin, Capabilities, Driver, DriverFacts, KeyPage, KeyVersion, RequestRoute, Room, Session,
    VersionPage, WorkerId,
};
use crate::error::OpResult;
use crate::op::{BucketNeeds, Request};
use crate::record::Probe;

/// The future of an untimed call.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = OpResult<T>> + 'a>>;
type Polled = Poll<OpResult>;

/// A type-erased driver. Clones share the same driver.
#[derive(Clone)]
pub struct AnyDriver(Arc<dyn DynDriver>);

impl fmt::Debug for AnyDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AnyDriver").field(&self.0.facts()).finish()
    }
}

impl AnyDriver {
    /// Erases the type of `driver`.
    pub fn new(driver: impl Driver) -> Self {
        Self(Arc::new(driver))
    }

    /// As [`Driver::capabilities`].
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    /// As [`Driver::facts`].
    #[must_use]
    pub fn facts(&self) -> DriverFacts {
        self.0.facts()
    }

    /// As [`Driver::open`].
    ///
    /// # Errors
    /// When the target cannot be reached.
    pub async fn open(&self, worker: WorkerId, probe: &mut Probe) -> OpResult<AnySession> {
        self.0.open(worker, probe).await
    }
}

impl<D: Driver> From<Arc<D>> for AnyDriver {
    fn from(driver: Arc<D>) -> Self {
        Self(driver)
    }
}

trait DynDriver: Send + Sync {
    fn capabilities(&self) -> Capabilities;
    fn facts(&self) -> DriverFacts;
    fn open<'a>(&'a self, worker: WorkerId, probe: &'a mut Probe) -> Boxed<'a, AnySession>;
}

impl<D: Driver> DynDriver for D {
    fn capabilities(&self) -> Capabilities {
        Driver::capabilities(self)
    }

    fn facts(&self) -> DriverFacts {
        Driver::facts(self)
    }

    fn open<'a>(&'a self, worker: WorkerId, probe: &'a mut Probe) -> Boxed<'a, AnySession> {
        Box::pin(async move { Driver::open(self, worker, probe).await.map(AnySession::new) })
    }
}

/// A type-erased session.
pub struct AnySession {
    cell: NonNull<()>,
    methods: &'static Methods,
}

/// The methods of a cell. Each function may only be called with a cell of the type that it was made for, and nobody
/// else may use the cell meanwhile.
struct Methods {
    /// Makes the future of an operation in the cell and polls it. Request and probe must outlive the future.
    begin: unsafe fn(NonNull<()>, &Request<'_>, &mut Probe, &mut Context<'_>) -> Polled,
    /// Polls the future; there must be one.
    resume: unsafe fn(NonNull<()>, &mut Context<'_>) -> Polled,
    /// Drops the future; there must be one.
    abandon: unsafe fn(NonNull<()>),
    route: unsafe fn(NonNull<()>) -> RequestRoute,
    /// The session; there must be no future.
    admin: unsafe fn(NonNull<()>) -> NonNull<dyn AdminCalls>,
    drop: unsafe fn(NonNull<()>),
}

/// A session and the future of its operation, which borrows it.
struct Cell<S, F, X> {
    session: S,
    future: MaybeUninit<F>,
    /// [`Session::execute`] as a value, which gives the type of its future a name.
    execute: X,
}

impl<S, F, X> Cell<S, F, X>
where
    S: Session,
    F: Future<Output = OpResult>,
    X: Fn(&'static mut S, &'static Request<'static>, &'static mut Probe) -> F,
{
    const METHODS: Methods = Methods {
        begin: Self::begin,
        resume: Self::resume,
        abandon: Self::abandon,
        route: Self::route,
        admin: Self::admin,
        drop: Self::drop,
    };

    unsafe fn begin(
        cell: NonNull<()>,
        request: &Request<'_>,
        probe: &mut Probe,
        cx: &mut Context<'_>,
    ) -> Polled {
        let at = cell.cast::<Self>().as_ptr();
        // SAFETY: the cell is this one and nobody else uses it, so the session may be borrowed until the future is
        // gone; request and probe outlive the future by the caller's promise. No lifetime is used beyond that.
        unsafe {
            let session = &mut (*at).session;
            let request = &*(&raw const *request).cast::<Request<'static>>();
            let probe = NonNull::from(probe).as_mut();
            let future = ((*at).execute)(session, request, probe);
            (*at).future.as_mut_ptr().write(future);
            Self::resume(cell, cx)
        }
    }

    #[inline]
    unsafe fn resume(cell: NonNull<()>, cx: &mut Context<'_>) -> Polled {
        let at = cell.cast::<Self>().as_ptr();
        // SAFETY: the cell is this one and holds a future, which never moves and is dropped here when it has ended.
        unsafe {
            let future = (&raw mut (*at).future).cast::<F>();
            let polled = Pin::new_unchecked(&mut *future).poll(cx);
            if polled.is_ready() {
                future.drop_in_place();
            }
            polled
        }
    }

    unsafe fn abandon(cell: NonNull<()>) {
        let at = cell.cast::<Self>().as_ptr();
        // SAFETY: the cell is this one and holds a future.
        unsafe { (&raw mut (*at).future).cast::<F>().drop_in_place() }
    }

    unsafe fn route(cell: NonNull<()>) -> RequestRoute {
        // SAFETY: the cell is this one, and no future borrows the session.
        unsafe { (*cell.cast::<Self>().as_ptr()).session.route() }
    }

    unsafe fn admin(cell: NonNull<()>) -> NonNull<dyn AdminCalls> {
        // SAFETY: the cell is this one, and no future borrows the session.
        let session = unsafe { &raw mut (*cell.cast::<Self>().as_ptr()).session };
        // SAFETY: the address of a field is not null.
        unsafe { NonNull::new_unchecked(session as *mut dyn AdminCalls) }
    }

    unsafe fn drop(cell: NonNull<()>) {
        // SAFETY: the cell came from a box, and its owner is being dropped.
        drop(unsafe { Box::from_raw(cell.cast::<Self>().as_ptr()) });
    }
}

/// Puts `session` into a cell. A separate function, to give the type of the future a name.
fn boxed<S, F, X>(session: S, execute: X) -> AnySession
where
    S: Session,
    F: Future<Output = OpResult>,
    X: Fn(&'static mut S, &'static Request<'static>, &'static mut Probe) -> F,
{
    let cell = Box::new(Cell {
        session,
        future: MaybeUninit::<F>::uninit(),
        execute,
    });
    AnySession {
        cell: NonNull::from(Box::leak(cell)).cast(),
        methods: &Cell::<S, F, X>::METHODS,
    }
}

impl AnySession {
    /// Erases the type of `session`.
    pub fn new<S: Session>(session: S) -> Self {
        boxed(
            session,
            |session: &'static mut S, request: &'static Request<'static>, probe| {
                session.execute(request, probe)
            },
        )
    }

    /// As [`Session::execute`].
    #[inline]
    pub fn execute<'a>(
        &'a mut self,
        request: &'a Request<'a>,
        probe: &'a mut Probe,
    ) -> Executing<'a> {
        Executing {
            session: self,
            request,
            probe,
            stage: Stage::Fresh,
        }
    }

    /// As [`Session::route`].
    #[must_use]
    pub fn route(&self) -> RequestRoute {
        // SAFETY: the cell is this session's; a future would borrow it mutably.
        unsafe { (self.methods.route)(self.cell) }
    }
}

impl Deref for AnySession {
    type Target = dyn AdminCalls;

    fn deref(&self) -> &Self::Target {
        // SAFETY: the cell is this session's; a future would borrow it mutably.
        unsafe { (self.methods.admin)(self.cell).as_ref() }
    }
}

impl DerefMut for AnySession {
    fn deref_mut(&mut self) -> &mut Self::Target {
        // SAFETY: the cell is this session's; a future would borrow it mutably, as what is returned does.
        unsafe { (self.methods.admin)(self.cell).as_mut() }
    }
}

impl Drop for AnySession {
    fn drop(&mut self) {
        // SAFETY: the cell is this session's, which nobody can use any more.
        unsafe { (self.methods.drop)(self.cell) }
    }
}

impl fmt::Debug for AnySession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnySession").finish_non_exhaustive()
    }
}

/// An operation under way ([`AnySession::execute`]).
pub struct Executing<'a> {
    session: &'a mut AnySession,
    request: &'a Request<'a>,
    probe: &'a mut Probe,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The future does not exist yet.
    Fresh,
    /// The future is in the cell.
    Running,
    /// The future has been dropped; or it panicked, and stays in the cell unused.
    Ended,
}

impl fmt::Debug for Executing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = &self.stage;
        f.debug_struct("Executing")
            .field("stage", stage)
            .finish_non_exhaustive()
    }
}

impl Future for Executing<'_> {
    type Output = OpResult;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        let this = self.get_mut();
        let AnySession { cell, methods } = *this.session;
        let stage = std::mem::replace(&mut this.stage, Stage::Ended);
        // SAFETY: the cell belongs to the session, which is borrowed for as long as `self` lives. The future is
        // dropped with `self` at the latest. If `self` is forgotten, the future is never polled again. So what it
        // borrows outlives its use.
        let polled = unsafe {
            match stage {
                Stage::Fresh => (methods.begin)(cell, this.request, this.probe, cx),
                Stage::Running => (methods.resume)(cell, cx),
                Stage::Ended => panic!("an operation is polled after its end"),
            }
        };
        if polled.is_pending() {
            this.stage = Stage::Running;
        }
        polled
    }
}

impl Drop for Executing<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.stage == Stage::Running {
            // SAFETY: the cell belongs to the session and holds the future.
            unsafe { (self.session.methods.abandon)(self.session.cell) }
        }
    }
}

/// Type-erased [`Admin`]: the untimed calls of an [`AnySession`]. Results and errors are those of the methods of the
/// same names there.
pub trait AdminCalls {
    /// As [`Admin::ensure_bucket`].
    fn ensure_bucket<'a>(&'a mut self, bucket: &'a str) -> Boxed<'a, bool>;
    /// As [`Admin::ensure_bucket_with`].
    fn ensure_bucket_with<'a>(&'a mut self, bucket: &'a str, needs: BucketNeeds)
    -> Boxed<'a, bool>;
    /// As [`Admin::check_needs`].
    fn check_needs<'a>(&'a mut self, bucket: &'a str, needs: BucketNeeds) -> Boxed<'a, ()>;
    /// As [`Admin::head_bucket`].
    fn head_bucket<'a>(&'a mut self, bucket: &'a str) -> Boxed<'a, ()>;
    /// As [`Admin::delete_bucket`].
    fn delete_bucket<'a>(&'a mut self, bucket: &'a str) -> Boxed<'a, ()>;
    /// As [`Admin::list_keys`].
    fn list_keys<'a>(
        &'a mut self,
        bucket: &'a str,
        prefix: &'a str,
        after: Option<&'a str>,
    ) -> Boxed<'a, KeyPage>;
    /// As [`Admin::delete_keys`].
    fn delete_keys<'a>(&'a mut self, bucket: &'a str, keys: &'a [String]) -> Boxed<'a, ()>;
    /// As [`Admin::list_versions`].
    fn list_versions<'a>(
        &'a mut self,
        bucket: &'a str,
        prefix: &'a str,
        after: Option<&'a KeyVersion>,
    ) -> Boxed<'a, VersionPage>;
    /// As [`Admin::delete_versions`].
    fn delete_versions<'a>(
        &'a mut self,
        bucket: &'a str,
        versions: &'a [KeyVersion],
    ) -> Boxed<'a, ()>;
    /// As [`Admin::delete_locked_versions`].
    fn delete_locked_versions<'a>(
        &'a mut self,
        bucket: &'a str,
        versions: &'a [KeyVersion],
    ) -> Boxed<'a, ()>;
    /// As [`Admin::room`].
    fn room<'a>(&'a mut self, bucket: &'a str) -> Boxed<'a, Option<Room>>;
    /// As [`Admin::abort_uploads`].
    fn abort_uploads<'a>(&'a mut self, bucket: &'a str, prefix: &'a str) -> Boxed<'a, u64>;
    /// As [`Admin::put_small`].
    fn put_small<'a>(&'a mut self, bucket: &'a str, key: &'a str, body: &'a [u8]) -> Boxed<'a, ()>;
    /// As [`Admin::get_small`].
    fn get_small<'a>(&'a mut self, bucket: &'a str, key: &'a str) -> Boxed<'a, Vec<u8>>;
    /// As [`Admin::get_small_version`].
    fn get_small_version<'a>(
        &'a mut self,
        bucket: &'a str,
        key: &'a str,
    ) -> Boxed<'a, (Vec<u8>, Option<String>)>;
    /// As [`Admin::put_small_if`].
    fn put_small_if<'a>(
        &'a mut self,
        bucket: &'a str,
        key: &'a str,
        body: &'a [u8],
        version: Option<&'a str>,
    ) -> Boxed<'a, ()>;
}

impl<A: Admin> AdminCalls for A {
    fn ensure_bucket<'a>(&'a mut self, bucket: &'a str) -> Boxed<'a, bool> {
        Box::pin(Admin::ensure_bucket(self, bucket))
    }

    fn ensure_bucket_with<'a>(
        &'a mut self,
        bucket: &'a str,
        needs: BucketNeeds,
    ) -> Boxed<'a, bool> {
        Box::pin(Admin::ensure_bucket_with(self, bucket, needs))
    }

    fn check_needs<'a>(&'a mut self, bucket: &'a str, needs: BucketNeeds) -> Boxed<'a, ()> {
        Box::pin(Admin::check_needs(self, bucket, needs))
    }

    fn head_bucket<'a>(&'a mut self, bucket: &'a str) -> Boxed<'a, ()> {
        Box::pin(Admin::head_bucket(self, bucket))
    }

    fn delete_bucket<'a>(&'a mut self, bucket: &'a str) -> Boxed<'a, ()> {
        Box::pin(Admin::delete_bucket(self, bucket))
    }

    fn list_keys<'a>(
        &'a mut self,
        bucket: &'a str,
        prefix: &'a str,
        after: Option<&'a str>,
    ) -> Boxed<'a, KeyPage> {
        Box::pin(Admin::list_keys(self, bucket, prefix, after))
    }

    fn delete_keys<'a>(&'a mut self, bucket: &'a str, keys: &'a [String]) -> Boxed<'a, ()> {
        Box::pin(Admin::delete_keys(self, bucket, keys))
    }

    fn list_versions<'a>(
        &'a mut self,
        bucket: &'a str,
        prefix: &'a str,
        after: Option<&'a KeyVersion>,
    ) -> Boxed<'a, VersionPage> {
        Box::pin(Admin::list_versions(self, bucket, prefix, after))
    }

    fn delete_versions<'a>(
        &'a mut self,
        bucket: &'a str,
        versions: &'a [KeyVersion],
    ) -> Boxed<'a, ()> {
        Box::pin(Admin::delete_versions(self, bucket, versions))
    }

    fn delete_locked_versions<'a>(
        &'a mut self,
        bucket: &'a str,
        versions: &'a [KeyVersion],
    ) -> Boxed<'a, ()> {
        Box::pin(Admin::delete_locked_versions(self, bucket, versions))
    }

    fn room<'a>(&'a mut self, bucket: &'a str) -> Boxed<'a, Option<Room>> {
        Box::pin(Admin::room(self, bucket))
    }

    fn abort_uploads<'a>(&'a mut self, bucket: &'a str, prefix: &'a str) -> Boxed<'a, u64> {
        Box::pin(Admin::abort_uploads(self, bucket, prefix))
    }

    fn put_small<'a>(&'a mut self, bucket: &'a str, key: &'a str, body: &'a [u8]) -> Boxed<'a, ()> {
        Box::pin(Admin::put_small(self, bucket, key, body))
    }

    fn get_small<'a>(&'a mut self, bucket: &'a str, key: &'a str) -> Boxed<'a, Vec<u8>> {
        Box::pin(Admin::get_small(self, bucket, key))
    }

    fn get_small_version<'a>(
        &'a mut self,
        bucket: &'a str,
        key: &'a str,
    ) -> Boxed<'a, (Vec<u8>, Option<String>)> {
        Box::pin(Admin::get_small_version(self, bucket, key))
    }

    fn put_small_if<'a>(
        &'a mut self,
        bucket: &'a str,
        key: &'a str,
        body: &'a [u8],
        version: Option<&'a str>,
    ) -> Boxed<'a, ()> {
        Box::pin(Admin::put_small_if(self, bucket, key, body, version))
    }
}

#[cfg(test)]
#[path = "erased_tests.rs"]
mod tests;
