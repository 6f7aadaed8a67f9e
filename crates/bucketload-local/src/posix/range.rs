//! Ranges of a file that stays open: what IO500's bandwidth phases do on a file system.
//!
//! A thread opens a file once for all of its sessions, with the first range that it writes or reads;
//! `sync` makes the data durable and closes it. Opening is no part of the operation, as elsewhere with
//! files that a thread keeps open, but of the phase.

use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use bucketload_core::driver::Completion;
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::Request;
use bucketload_core::record::Probe;

use super::config::Fsync;
use super::errors::{Intent, to_error};
use super::fill::Source;
use super::session::{DONE, PosixSession};
use super::work::{File, Task, Work};

/// The files of objects that a thread has open.
#[derive(Debug, Default)]
pub(super) struct HeldFiles(RefCell<Vec<Held>>);

#[derive(Debug)]
struct Held {
    path: Vec<u8>,
    write: bool,
    file: Arc<OwnedFd>,
}

impl HeldFiles {
    /// The file at `path`, if this thread has opened it so.
    fn find(&self, path: &[u8], write: bool) -> Option<Arc<OwnedFd>> {
        let files = self.0.borrow();
        let held = files
            .iter()
            .find(|held| (held.write || !write) && held.path == path)?;
        Some(Arc::clone(&held.file))
    }

    /// Remembers a file.
    fn add(&self, path: &[u8], write: bool, file: OwnedFd) -> Arc<OwnedFd> {
        let file = Arc::new(file);
        self.0.borrow_mut().push(Held {
            path: path.to_vec(),
            write,
            file: Arc::clone(&file),
        });
        file
    }

    /// Forgets a file; it is closed when the last operation on it has ended.
    fn forget(&self, path: &[u8]) {
        self.0.borrow_mut().retain(|held| held.path != path);
    }
}

impl PosixSession {
    /// Writes the request's range.
    pub(super) async fn range_put(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let (Some(content), Some(range)) = (request.content, request.op.range) else {
            let text = "range-put was asked for without content or range";
            return Err(OpError::new(ErrorKind::Unsupported, text));
        };
        let work = self.begin_object(request, probe)?;
        let mut work = self.hold(work, true).await?;
        work.offset = range.offset;
        // Data becomes durable with `sync`, or with each write if that is asked for.
        let policy = work.fsync;
        if policy == Fsync::Close {
            work.fsync = Fsync::Never;
        }
        let source = Source::Part(content, range.offset, range.len);
        let mut work = self.write(work, source, None).await;
        work.fsync = policy;
        self.end(work, Intent::Make, probe)?;
        Ok(Completion {
            bytes: range.len,
            ..DONE
        })
    }

    /// Makes what was written to the request's object durable, and closes it.
    pub(super) async fn sync(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let work = self.begin_object(request, probe)?;
        let work = self.hold(work, true).await?;
        let work = self.step(work, Task::Sync, None).await;
        self.local.held.forget(&work.path);
        self.end(work, Intent::Make, probe).map(|()| DONE)
    }

    /// Gives the work the file that it names, which the thread opens unless it has it open.
    pub(super) async fn hold(
        &mut self,
        mut work: Box<Work>,
        write: bool,
    ) -> Result<Box<Work>, OpError> {
        if let Some(file) = self.local.held.find(&work.path, write) {
            work.file = Some(File::Shared(file));
            return Ok(work);
        }
        let Work { path, beside, .. } = &mut *work;
        beside.clear();
        beside.extend_from_slice(path);
        let mut work = self.step(work, Task::OpenShared { write }, None).await;
        (work.started_ns, work.first_ns, work.done_ns) = (0, 0, 0);
        match (work.result, work.file.take()) {
            (Ok(()), Some(File::Own(file))) => {
                let file = self.local.held.add(&work.path, write, file);
                work.file = Some(File::Shared(file));
                Ok(work)
            }
            (result, _) => {
                let intent = if write { Intent::Make } else { Intent::Find };
                let error = result.err().map(|f| to_error(f, intent, &work.path));
                self.put_back(work);
                Err(error
                    .unwrap_or_else(|| OpError::new(ErrorKind::Server, "the file was not opened")))
            }
        }
    }
}
