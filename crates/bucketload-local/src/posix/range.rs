//! Ranges of a file that stays open, as in IO500's bandwidth phases on a file system.
//!
//! A thread opens a file once for all of its sessions, with the first range that it writes or reads.
//! `sync` makes the data durable and closes the file. As with all files that a thread keeps open, opening
//! is part of the phase but not of the operation.

use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use bucketload_core::driver::{Completion, ErrorKind, OpError, OpResult, Probe, Request};

use super::config::Fsync;
use super::errors::Intent;
use super::fill::Source;
use super::session::{DONE, PosixSession};
use super::work::{File, Task, Work};

/// The files of objects that a thread has open.
#[derive(Debug, Default)]
pub(super) struct HeldFiles(RefCell<Vec<HeldFile>>);

#[derive(Debug)]
struct HeldFile {
    path: Vec<u8>,
    write: bool,
    file: Arc<OwnedFd>,
}

impl HeldFiles {
    /// The file at `path`, if this thread has it open for this access.
    fn find(&self, path: &[u8], write: bool) -> Option<Arc<OwnedFd>> {
        let files = self.0.borrow();
        let held = files
            .iter()
            .find(|held| (held.write || !write) && held.path == path)?;
        Some(Arc::clone(&held.file))
    }

    fn add(&self, path: &[u8], write: bool, file: OwnedFd) -> Arc<OwnedFd> {
        let file = Arc::new(file);
        self.0.borrow_mut().push(HeldFile {
            path: path.to_vec(),
            write,
            file: Arc::clone(&file),
        });
        file
    }

    /// Removes a file, which closes once the last operation on it has ended.
    fn forget(&self, path: &[u8]) {
        self.0.borrow_mut().retain(|held| held.path != path);
    }
}

impl PosixSession {
    /// Writes the request's range.
    pub(super) async fn range_put(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let (Some(content), Some(range)) = (request.content, request.op.range) else {
            let text = "range-put was asked for without content or range";
            return Err(OpError::new(ErrorKind::Unsupported, text));
        };
        let work = self.begin_object(request, probe)?;
        let mut work = self.hold(work, true).await?;
        work.offset = range.offset;
        // `sync` makes the data durable, or each write if so configured.
        let policy = work.fsync;
        if policy == Fsync::Close {
            work.fsync = Fsync::Never;
        }
        let source = Source::Part(content, range.offset, range.len);
        let mut work = self.write(work, source, None).await;
        work.fsync = policy;
        self.end(work, Intent::Make, probe)?;
        Ok(Completion::of_bytes(range.len))
    }

    /// Makes the data of the request's object durable, and closes its file. A name that ends with a slash stands for
    /// everything in the file system.
    pub(super) async fn sync(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        if request.key.is_empty() || request.key.ends_with('/') {
            let mut work = self.begin(probe);
            work.path.clear();
            let work = self.step(work, Task::SyncAll, None).await;
            return self.end(work, Intent::Make, probe).map(|()| DONE);
        }
        let work = self.begin_object(request, probe)?;
        let work = self.hold(work, true).await?;
        let work = self.step(work, Task::Sync, None).await;
        self.local.held.forget(&work.path);
        self.end(work, Intent::Make, probe).map(|()| DONE)
    }

    /// Gives the work the file at its path; opens the file unless the thread has it open.
    pub(super) async fn hold(&mut self, mut work: Box<Work>, write: bool) -> OpResult<Box<Work>> {
        if let Some(file) = self.local.held.find(&work.path, write) {
            work.file = Some(File::Shared(file));
            return Ok(work);
        }
        let Work { path, beside, .. } = &mut *work;
        beside.clear();
        beside.extend_from_slice(path);
        let intent = if write { Intent::Make } else { Intent::Find };
        let (mut work, file) = self.open_to_keep(work, write, intent).await?;
        let file = self.local.held.add(&work.path, write, file);
        work.file = Some(File::Shared(file));
        Ok(work)
    }
}
