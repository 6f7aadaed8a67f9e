//! One worker's session: its reusable work, and the dispatch of operations to the engine.

use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bucketload_core::driver::{
    Completion, ErrorKind, OpClass, OpError, OpResult, Probe, Request, Session, WorkerId,
};

use super::config::{Layout, PosixConfig};
use super::driver::{SHARED, ThreadState};
use super::engine::Engine;
use super::errors::{Intent, to_error};
use super::fill::Source;
use super::pool::Reply;
use super::work::{File, Task, Work};
use super::{blocking, path, shared};

pub(super) use bucketload_core::driver::DONE;

/// A session of the driver of file systems.
#[derive(Debug)]
pub struct PosixSession {
    pub(super) local: Rc<ThreadState>,
    worker: WorkerId,
    /// The work between two operations. `None` during an operation, and after an abandoned one, whose work
    /// the engine still has.
    work: Option<Box<Work>>,
    reply: Arc<Reply>,
}

impl PosixSession {
    pub(super) fn new(local: Rc<ThreadState>, worker: WorkerId) -> Self {
        Self {
            local,
            worker,
            work: None,
            reply: Arc::default(),
        }
    }

    pub(super) fn config(&self) -> &PosixConfig {
        &self.local.driver.config
    }

    /// The work for an operation with the clock of `probe`.
    #[inline]
    pub(super) fn begin(&mut self, probe: &Probe) -> Box<Work> {
        let mut work = self.work.take().unwrap_or_else(|| {
            // The abandoned operation's step may still return to the old reply.
            self.reply = Arc::default();
            Box::new(Work::new(&self.local.driver.config))
        });
        work.reset(probe.clock());
        work
    }

    /// As [`PosixSession::begin`], for an operation on the request's object.
    pub(super) fn begin_object(
        &mut self,
        request: &Request<'_>,
        probe: &Probe,
    ) -> OpResult<Box<Work>> {
        self.begin_named(request.bucket, request.key, probe)
    }

    /// As [`PosixSession::begin`], for an operation on the object `key`.
    pub(super) fn begin_named(
        &mut self,
        bucket: &str,
        key: &str,
        probe: &Probe,
    ) -> OpResult<Box<Work>> {
        let mut work = self.begin(probe);
        match path::set_object(&mut work.path, bucket, key) {
            Ok(()) => Ok(work),
            Err(error) => {
                self.work = Some(work);
                Err(error)
            }
        }
    }

    /// Performs a step and returns `true` if the engine never waits. Otherwise does nothing; the caller then uses
    /// [`PosixSession::step`]. Avoids the futures of that function. Writes from `source` if there is one.
    #[inline]
    pub(super) fn step_at_once(
        &self,
        work: &mut Work,
        task: Task,
        source: Option<Source<'_>>,
    ) -> bool {
        let Engine::Sync(root) = &self.local.engine else {
            return false;
        };
        work.task = task;
        blocking::perform_at(root.as_fd(), work, source);
        true
    }

    /// Performs a step. Writes directly from `source` if the engine allows it.
    pub(super) async fn step(
        &self,
        work: Box<Work>,
        task: Task,
        source: Option<Source<'_>>,
    ) -> Box<Work> {
        let mut work = work;
        work.task = task;
        let ThreadState { engine, driver, .. } = &*self.local;
        engine.run(work, driver, &self.reply, source).await
    }

    /// Ends an operation: reports the times to the probe, keeps the work, and interprets a failure.
    #[inline]
    pub(super) fn end(
        &mut self,
        mut work: Box<Work>,
        intent: Intent,
        probe: &mut Probe,
    ) -> OpResult<()> {
        probe.started_at(work.started_ns);
        probe.first_byte_at(work.first_ns);
        probe.done_at(work.done_ns);
        work.buffer.release();
        let result = match work.result {
            Ok(()) => Ok(()),
            Err(failure) => Err(to_error(failure, intent, &work.path)),
        };
        if let Some(File::Own(_)) = work.file {
            blocking::close_read(&mut work);
        }
        match self.is_shared() {
            true => work.leave_file(),
            false => work.file = None,
        }
        self.work = Some(work);
        result
    }

    /// Keeps a work that was not handed to the engine.
    pub(super) fn put_back(&mut self, work: Box<Work>) {
        self.work = Some(work);
    }

    /// Performs a one-step operation on an object.
    pub(super) async fn one_step(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
        task: Task,
        intent: Intent,
    ) -> OpResult<u64> {
        let mut work = self.begin_object(request, probe)?;
        if !self.step_at_once(&mut work, task, None) {
            work = self.step(work, task, None).await;
        }
        let found = work.found;
        self.end(work, intent, probe).map(|()| found)
    }

    /// Names a temporary file beside the object, unique among processes and sessions.
    pub(super) fn name_beside(&self, work: &mut Work) {
        let Work { path, beside, .. } = work;
        let number = self.local.driver.files.fetch_add(1, Ordering::Relaxed);
        let process = u64::from(std::process::id());
        path::set_beside(beside, path, "tmp", [process, number]);
    }

    /// As [`PosixSession::begin_object`], for an object in a shared file. The work gets the object's position but no
    /// name: see [`PosixSession::name`]. Returns whether it also got the file, which this thread may have open.
    /// Otherwise the caller uses [`PosixSession::open_shared`], which is not part of the operation.
    #[inline]
    pub(super) fn begin_shared(
        &mut self,
        request: &Request<'_>,
        probe: &Probe,
        size: Option<u64>,
    ) -> OpResult<(Box<Work>, bool)> {
        let at = shared::place(request, self.config().slot, size)?;
        let write = request.op.class.writes_body();
        let numbers = shared::numbers(request.op);
        let names = (request.bucket, request.key);
        let mut work = self.begin(probe);
        let files = &self.local.shared;
        let found = files.find(&mut work.file, names, numbers, write);
        work.path.clear();
        work.offset = at;
        Ok((work, found))
    }

    /// Opens the shared file of a work for which [`PosixSession::begin_shared`] found none.
    #[cold]
    pub(super) async fn open_shared(
        &mut self,
        mut work: Box<Work>,
        request: &Request<'_>,
    ) -> OpResult<Box<Work>> {
        let write = request.op.class.writes_body();
        let numbers = shared::numbers(request.op);
        let Work { path, beside, .. } = &mut *work;
        if let Err(error) = path::set_object(path, request.bucket, request.key) {
            self.put_back(work);
            return Err(error);
        }
        path::set_beside(beside, path, "shared", numbers);
        let (mut work, file) = self.open_to_keep(work, write, Intent::Find).await?;
        let files = &self.local.shared;
        let file = files.add(request.bucket, request.key, numbers, write, file);
        work.file = Some(file);
        work.path.clear();
        Ok(work)
    }

    /// Opens the file at the work's `beside` for the thread to keep. Opening is not part of the operation.
    pub(super) async fn open_to_keep(
        &mut self,
        work: Box<Work>,
        write: bool,
        intent: Intent,
    ) -> OpResult<(Box<Work>, OwnedFd)> {
        let mut work = self.step(work, Task::OpenShared { write }, None).await;
        (work.started_ns, work.first_ns, work.done_ns) = (0, 0, 0);
        let error = match (work.result, work.file.take()) {
            (Ok(()), Some(File::Own(file))) => return Ok((work, file)),
            (Ok(()), _) => OpError::new(ErrorKind::Server, "the file was not opened"),
            (Err(failure), _) => to_error(failure, intent, &work.beside),
        };
        self.put_back(work);
        Err(error)
    }

    /// Sets the object's name in a failed work, for the error: operations on a shared file do without it.
    pub(super) fn name(&self, work: &mut Work, request: &Request<'_>) {
        if work.result.is_err() && self.is_shared() {
            // Cannot fail: the key was valid when the file beside it was opened.
            let _ = path::set_object(&mut work.path, request.bucket, request.key);
        }
    }

    /// Whether objects are in shared files.
    pub(super) fn is_shared(&self) -> bool {
        self.config().layout == Layout::Shared
    }

    /// The worker that the session belongs to.
    #[must_use]
    pub fn worker(&self) -> WorkerId {
        self.worker
    }
}

impl Session for PosixSession {
    async fn execute(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let class = request.op.class;
        if self.is_shared() && !SHARED.contains(&class) {
            return Err(unsupported(class));
        }
        match class {
            OpClass::Get | OpClass::RangeGet => self.get(request, probe).await,
            OpClass::Put | OpClass::PutIfAbsent | OpClass::Append | OpClass::MultipartPut => {
                self.put(request, probe).await
            }
            OpClass::Head => {
                let size = self
                    .one_step(request, probe, Task::Stat, Intent::Find)
                    .await?;
                Ok(Completion::of_size(size))
            }
            OpClass::Delete => {
                self.one_step(request, probe, Task::Unlink, Intent::Find)
                    .await?;
                Ok(DONE)
            }
            OpClass::Touch => {
                self.one_step(request, probe, Task::Touch, Intent::Make)
                    .await?;
                Ok(DONE)
            }
            OpClass::RangePut => self.range_put(request, probe).await,
            OpClass::Sync => self.sync(request, probe).await,
            OpClass::Copy => self.transfer(request, probe, Task::Copy).await,
            OpClass::Rename => self.transfer(request, probe, Task::Rename).await,
            OpClass::DeleteMany => self.delete_many(request, probe).await,
            OpClass::List | OpClass::ListV1 => self.list(request, probe).await,
            OpClass::MakeBucket => {
                self.on_bucket(request.bucket, probe, Task::MakeBucket)
                    .await
            }
            OpClass::HeadBucket => {
                self.on_bucket(request.bucket, probe, Task::HeadBucket)
                    .await
            }
            OpClass::DeleteBucket => {
                let task = Task::RemoveBucket { prune: false };
                self.on_bucket(request.bucket, probe, task).await
            }
            OpClass::ListBuckets => self.list_buckets(probe).await,
            class => Err(unsupported(class)),
        }
    }
}

#[cold]
fn unsupported(class: OpClass) -> OpError {
    OpError::new(
        ErrorKind::Unsupported,
        format!("the file system driver has no {class} in this layout"),
    )
}
