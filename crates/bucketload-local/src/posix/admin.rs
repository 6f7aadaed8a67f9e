//! Untimed control-plane calls.
//!
//! Clean-up treats a run's other files like unfinished uploads: `abort_uploads` removes temporary files,
//! shared files and empty directories, and nothing else.

use bucketload_core::driver::{Admin, ErrorKind, KeyPage, OpError, OpResult, Probe};

use super::errors::Intent;
use super::fill::Source;
use super::list::{PAGE, begin_walk, push_name};
use super::path;
use super::session::PosixSession;
use super::work::{OpenMode, Task};

/// Most bytes of a small object.
const MAX_SMALL: usize = 16 << 20;

impl Admin for PosixSession {
    async fn ensure_bucket(&mut self, bucket: &str) -> OpResult<bool> {
        match self.head_bucket(bucket).await {
            Ok(()) => return Ok(false),
            Err(error) if error.kind == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let probe = &mut Probe::untimed();
        match self.on_bucket(bucket, probe, Task::MakeBucket).await {
            Ok(_) => Ok(true),
            // Another client created it first, or it is not a directory.
            Err(error) if error.kind == ErrorKind::Conflict => match self.head_bucket(bucket).await
            {
                Ok(()) => Ok(false),
                Err(_) => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    async fn head_bucket(&mut self, bucket: &str) -> OpResult<()> {
        self.on_bucket(bucket, &mut Probe::untimed(), Task::HeadBucket)
            .await
            .map(drop)
    }

    async fn delete_bucket(&mut self, bucket: &str) -> OpResult<()> {
        let task = Task::RemoveBucket { prune: true };
        self.on_bucket(bucket, &mut Probe::untimed(), task)
            .await
            .map(drop)
    }

    async fn list_keys(
        &mut self,
        bucket: &str,
        prefix: &str,
        after: Option<&str>,
    ) -> OpResult<KeyPage> {
        let mut work = self.begin(&Probe::untimed());
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
        self.end(work, Intent::Find, &mut Probe::untimed())?;
        Ok(KeyPage::up_to_last(keys, more))
    }

    async fn delete_keys(&mut self, bucket: &str, keys: &[String]) -> OpResult<()> {
        let mut work = self.begin(&Probe::untimed());
        work.names.clear();
        for key in keys {
            match push_name(&mut work, bucket, key) {
                Ok(()) => {}
                // No file can have such a name.
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
        self.end(work, Intent::Find, &mut Probe::untimed())
    }

    async fn abort_uploads(&mut self, bucket: &str, prefix: &str) -> OpResult<u64> {
        let mut work = self.begin(&Probe::untimed());
        let directory = path::set_prefix(&mut work.path, bucket, prefix);
        if !matches!(directory, Ok(Some(_))) {
            self.put_back(work);
            return directory.map(|_| 0);
        }
        let work = self.step(work, Task::Sweep, None).await;
        let removed = work.found;
        self.end(work, Intent::Find, &mut Probe::untimed())?;
        Ok(removed)
    }

    async fn put_small(&mut self, bucket: &str, key: &str, body: &[u8]) -> OpResult<()> {
        let mut work = self.begin_named(bucket, key, &Probe::untimed())?;
        self.name_beside(&mut work);
        let source = Source::Bytes(body);
        let work = self.write(work, source, Some(OpenMode::Beside)).await;
        self.end(work, Intent::Make, &mut Probe::untimed())
    }

    async fn get_small(&mut self, bucket: &str, key: &str) -> OpResult<Vec<u8>> {
        let mut work = self.begin_named(bucket, key, &Probe::untimed())?;
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
        self.end(work, Intent::Find, &mut Probe::untimed())?;
        match body.len() > MAX_SMALL {
            false => Ok(body),
            true => Err(OpError::new(
                ErrorKind::Protocol,
                format!("{bucket}/{key} is longer than a small object can be"),
            )),
        }
    }
}
