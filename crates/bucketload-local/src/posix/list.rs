//! Listings, and operations on several objects.

use bucketload_core::driver::{Completion, ErrorKind, OpError, OpResult, Probe, Request};
use bucketload_core::op::Watch;

use super::errors::Intent;
use super::path;
use super::session::PosixSession;
use super::work::{Task, Work};

/// Default number of entries per page.
pub(super) const PAGE: usize = 1000;

impl PosixSession {
    pub(super) async fn list(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let op = &request.op;
        let mut work = self.begin(probe);
        let from = (request.key, "", request.delimiter);
        let task = match begin_listing(&mut work, request, from) {
            Ok(task) => task,
            Err(error) => {
                self.put_back(work);
                return Err(error);
            }
        };
        work.len = match usize::try_from(op.count) {
            Ok(0) | Err(_) => PAGE,
            Ok(count) => count,
        };
        let (mut items, mut pages) = (0, 0u32);
        loop {
            if !self.step_at_once(&mut work, task, None) {
                work = self.step(work, task, None).await;
            }
            if work.result.is_err() {
                break;
            }
            // Moved out, because the step that stats a file needs the rest of the work.
            let page = std::mem::take(&mut work.page);
            for (key, is_group) in page.entries() {
                items += 1;
                if let (Some(watch), false) = (request.watch, is_group) {
                    watch.listed(key);
                    if watch.wants_details() {
                        work = self.details(work, (request.bucket, key), watch).await;
                    }
                }
            }
            work.page = page;
            pages += 1;
            let more = work.page.more;
            if !more || (op.pages > 0 && pages >= op.pages) {
                if let Some(watch) = request.watch.filter(|_| more) {
                    watch.cut_short();
                }
                break;
            }
        }
        work.search.end();
        self.end(work, Intent::Find, probe)?;
        // Count each page as a request, as with other drivers.
        (1..pages).for_each(|_| probe.started());
        Ok(Completion::of_items(items))
    }

    /// Passes size and age of the file `key` to `watch`, if the file still exists.
    async fn details(
        &self,
        mut work: Box<Work>,
        (bucket, key): (&str, &str),
        watch: &dyn Watch,
    ) -> Box<Work> {
        if path::set_object(&mut work.path, bucket, key).is_err() {
            return work;
        }
        if !self.step_at_once(&mut work, Task::Stat, None) {
            work = self.step(work, Task::Stat, None).await;
        }
        match work.result {
            Ok(()) => watch.details(work.found, work.changed_s),
            // Deleted meanwhile; the listing continues.
            Err(_) => work.result = Ok(()),
        }
        work
    }

    pub(super) async fn list_buckets(&mut self, probe: &mut Probe) -> OpResult {
        let mut work = self.begin(probe);
        work.path.clear();
        let work = self.step(work, Task::ListBuckets, None).await;
        let items = work.found;
        self.end(work, Intent::Find, probe)?;
        Ok(Completion::of_items(items))
    }

    pub(super) async fn delete_many(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        let Some(keys) = request.keys else {
            let text = "delete-many was asked for without keys";
            return Err(OpError::new(ErrorKind::Rejected, text));
        };
        let mut work = self.begin(probe);
        work.names.clear();
        // The renderer needs a `String`: lend it the memory of an unused path.
        let mut key = String::from_utf8(std::mem::take(&mut work.source)).unwrap_or_default();
        let mut named = Ok(());
        for i in 0..request.op.count {
            keys.render(i, &mut key);
            named = push_name(&mut work, request.bucket, &key);
            if named.is_err() {
                break;
            }
        }
        key.clear();
        work.source = key.into_bytes();
        if let Err(error) = named {
            self.put_back(work);
            return Err(error);
        }
        let work = self
            .step(work, Task::UnlinkMany { prune: false }, None)
            .await;
        self.end(work, Intent::Find, probe)?;
        Ok(Completion::of_items(request.op.count))
    }
}

/// Adds the path of an object to the names.
pub(super) fn push_name(work: &mut Work, bucket: &str, key: &str) -> OpResult<()> {
    let Work { path, names, .. } = work;
    path::set_object(path, bucket, key)?;
    names.extend_from_slice(path);
    Ok(())
}

/// Starts the listing of `request`, `from` a prefix, a key and a delimiter. Returns the task that fetches its pages.
fn begin_listing(
    work: &mut Work,
    request: &Request<'_>,
    from: (&str, &str, &str),
) -> OpResult<Task> {
    let (prefix, _, delimiter) = from;
    let any_order = request.watch.is_some_and(Watch::takes_any_order);
    if any_order && delimiter.is_empty() && (prefix.is_empty() || prefix.ends_with('/')) {
        let Work { path, search, .. } = work;
        if path::set_prefix(path, request.bucket, prefix)?.is_some() {
            search.begin(request.bucket, path);
            path::set_bucket(path, request.bucket)?;
            return Ok(Task::Search);
        }
    }
    begin_walk(work, request.bucket, from).map(|()| Task::List)
}

/// Starts a listing of keys with a prefix, after a key, with a delimiter.
pub(super) fn begin_walk(
    work: &mut Work,
    bucket: &str,
    (prefix, after, delimiter): (&str, &str, &str),
) -> OpResult<()> {
    let Work { path, walk, .. } = work;
    let known = path::set_prefix(path, bucket, prefix)?;
    walk.begin(bucket, known.map(|_| &path[..]), (prefix, after, delimiter));
    path::set_bucket(path, bucket)
}
