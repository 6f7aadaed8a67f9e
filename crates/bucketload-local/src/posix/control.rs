//! One-step operations on two names or on buckets: copy, rename, mkdir, rmdir and the like.

use bucketload_core::driver::{ErrorKind, OpError, OpResult, Probe, Request};

use super::errors::Intent;
use super::path;
use super::session::{DONE, PosixSession};
use super::work::Task;

impl PosixSession {
    /// Copies or renames the request's source to its object.
    pub(super) async fn transfer(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
        task: Task,
    ) -> OpResult {
        let mut work = self.begin_object(request, probe)?;
        let mut named = path::set_object(&mut work.source, request.bucket, request.source);
        if named.is_ok() && task == Task::Copy && work.source == work.path {
            let text = format!("a copy of {:?} to itself would empty it", request.key);
            named = Err(OpError::new(ErrorKind::Rejected, text));
        }
        if let Err(error) = named {
            self.put_back(work);
            return Err(error);
        }
        let work = self.step(work, task, None).await;
        self.end(work, Intent::Make, probe).map(|()| DONE)
    }

    pub(super) async fn on_bucket(
        &mut self,
        bucket: &str,
        probe: &mut Probe,
        task: Task,
    ) -> OpResult {
        let mut work = self.begin(probe);
        if let Err(error) = path::set_bucket(&mut work.path, bucket) {
            self.put_back(work);
            return Err(error);
        }
        let work = self.step(work, task, None).await;
        self.end(work, Intent::Find, probe).map(|()| DONE)
    }
}
