//! Untimed calls of the control plane.
//!
//! What is left of a run besides its objects goes the way of unfinished uploads: `abort_uploads` takes
//! temporary and shared files and empty directories away, and only those.

use bucketload_core::driver::{Admin, KeyPage};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::record::Probe;

use super::errors::Intent;
use super::fill::Source;
use super::list::{PAGE, begin_walk, push_name};
use super::path;
use super::session::PosixSession;
use super::work::{Opening, Task, Work};

/// Most bytes of a small object.
const MAX_SMALL: usize = 16 << 20;

/// A probe for calls that nobody times.
fn untimed() -> Probe {
    Probe::untimed()
}

impl PosixSession {
    /// A work on the object `key`.
    fn named(&mut self, bucket: &str, key: &str) -> Result<Box<Work>, OpError> {
        let mut work = self.begin(&untimed());
        match path::set_object(&mut work.path, bucket, key) {
            Ok(()) => Ok(work),
            Err(error) => {
                self.put_back(work);
                Err(error)
            }
        }
    }

    async fn bucket_step(&mut self, bucket: &str, task: Task) -> Result<(), OpError> {
        let mut work = self.begin(&untimed());
        if let Err(error) = path::set_bucket(&mut work.path, bucket) {
            self.put_back(work);
            return Err(error);
        }
        let work = self.step(work, task, None).await;
        self.end(work, Intent::Find, &mut untimed())
    }
}

impl Admin for PosixSession {
    async fn ensure_bucket(&mut self, bucket: &str) -> Result<bool, OpError> {
        match self.head_bucket(bucket).await {
            Ok(()) => return Ok(false),
            Err(error) if error.kind == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        match self.bucket_step(bucket, Task::MakeBucket).await {
            Ok(()) => Ok(true),
            // Somebody was quicker, or it is no directory.
            Err(error) if error.kind == ErrorKind::Conflict => match self.head_bucket(bucket).await
            {
                Ok(()) => Ok(false),
                Err(_) => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    async fn head_bucket(&mut self, bucket: &str) -> Result<(), OpError> {
        self.bucket_step(bucket, Task::HeadBucket).await
    }

    async fn delete_bucket(&mut self, bucket: &str) -> Result<(), OpError> {
        self.bucket_step(bucket, Task::RemoveBucket { prune: true })
            .await
    }

    async fn list_keys(
        &mut self,
        bucket: &str,
        prefix: &str,
        after: Option<&str>,
    ) -> Result<KeyPage, OpError> {
        let mut work = self.begin(&untimed());
        // Most callers come for one page after another: what was read of directories is not read
        // again for each.
        let continues = after.is_some_and(|after| work.walk.continues(bucket, prefix, after));
        if !continues
            && let Err(error) = begin_walk(&mut work, bucket, (prefix, after.unwrap_or(""), ""))
        {
            self.put_back(work);
            return Err(error);
        }
        work.len = PAGE;
        let work = self.step(work, Task::List, None).await;
        let keys: Vec<String> = work.page.entries().map(|(key, _)| key.to_owned()).collect();
        let more = work.page.more;
        self.end(work, Intent::Find, &mut untimed())?;
        let next = keys.last().filter(|_| more).cloned();
        Ok(KeyPage {
            keys,
            next,
            note: None,
        })
    }

    async fn delete_keys(&mut self, bucket: &str, keys: &[String]) -> Result<(), OpError> {
        let mut work = self.begin(&untimed());
        work.names.clear();
        for key in keys {
            match push_name(&mut work, bucket, key) {
                Ok(()) => {}
                // There is no such file, so it has gone.
                Err(error) if error.kind == ErrorKind::Rejected => {}
                Err(error) => {
                    self.put_back(work);
                    return Err(error);
                }
            }
        }
        let work = self
            .step(work, Task::UnlinkMany { prune: true }, None)
            .await;
        self.end(work, Intent::Find, &mut untimed())
    }

    async fn abort_uploads(&mut self, bucket: &str, prefix: &str) -> Result<u64, OpError> {
        let mut work = self.begin(&untimed());
        let directory = path::set_prefix(&mut work.path, bucket, prefix);
        if !matches!(directory, Ok(Some(_))) {
            self.put_back(work);
            return directory.map(|_| 0);
        }
        let work = self.step(work, Task::Sweep, None).await;
        let removed = work.found;
        self.end(work, Intent::Find, &mut untimed())?;
        Ok(removed)
    }

    async fn put_small(&mut self, bucket: &str, key: &str, body: &[u8]) -> Result<(), OpError> {
        let mut work = self.named(bucket, key)?;
        self.name_beside(&mut work);
        let source = Source::Bytes(body);
        let work = self.write(work, source, Some(Opening::Beside)).await;
        self.end(work, Intent::Make, &mut untimed())
    }

    async fn get_small(&mut self, bucket: &str, key: &str) -> Result<Vec<u8>, OpError> {
        let mut work = self.named(bucket, key)?;
        let block = self.config().block as usize;
        let mut body = Vec::new();
        loop {
            if work.buffer.is_empty() {
                work.buffer.renew(block);
            }
            work.offset = body.len() as u64;
            work.len = block;
            work.enough = block;
            let open = body.is_empty();
            work = self
                .step(work, Task::Read { open, close: false }, None)
                .await;
            if work.result.is_err() {
                break;
            }
            body.extend_from_slice(&work.buffer[..work.moved]);
            if work.moved < block || body.len() > MAX_SMALL {
                break;
            }
        }
        self.end(work, Intent::Find, &mut untimed())?;
        match body.len() > MAX_SMALL {
            false => Ok(body),
            true => Err(OpError::new(
                ErrorKind::Protocol,
                format!("{bucket}/{key} is longer than it can be"),
            )),
        }
    }
}
