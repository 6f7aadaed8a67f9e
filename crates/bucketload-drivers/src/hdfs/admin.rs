//! Listings, buckets (directories below the root) and untimed control-plane calls.

use std::collections::VecDeque;

use bucketload_core::driver::{Admin, Completion, DONE, KeyPage, OpResult, Probe, Request, Room};
use bytes::Bytes;
use hdfs_native::client::ListStatusIterator;

use super::error::to_op_error;
use super::ops::{DIRECTORY, call_done};
use super::session::HdfsSession;
use crate::hadoop::listing::{self, Listed};
use crate::hadoop::path;
use crate::hadoop::prune::{self, Tree};
use crate::hadoop::semantics::{check_deleted, check_is_directory};
use crate::hadoop::walk::{Entry, Lister};
use crate::http::answer::{MAX_SMALL, too_long};
use crate::http::control::ensure_bucket;

/// Entries taken from the library at a time: a page of the name node.
const PAGE: usize = 1000;

impl Lister for HdfsSession {
    type Cursor = Option<ListStatusIterator>;

    async fn page(
        &mut self,
        bucket: &str,
        dir: &str,
        _after: &str,
        cursor: &mut Self::Cursor,
        into: &mut VecDeque<Entry>,
        _probe: &mut Probe,
    ) -> OpResult<bool> {
        let path = self.path(bucket, dir);
        let entries = cursor.get_or_insert_with(|| self.client.list_status_iter(&path, false));
        for _ in 0..PAGE {
            let Some(status) = entries.next().await else {
                return Ok(false);
            };
            let status = status.map_err(to_op_error)?;
            // A listed file is its own only entry and has no name within the path.
            let inside = status.path.strip_prefix(path.trim_end_matches('/'));
            let name = inside.and_then(|rest| rest.strip_prefix('/'));
            into.push_back(Entry {
                name: name.unwrap_or_default().to_owned(),
                is_dir: status.isdir,
            });
        }
        Ok(true)
    }
}

impl Tree for HdfsSession {
    fn listed(&mut self) -> &mut Listed<Self::Cursor> {
        &mut self.listed
    }

    async fn unlink(&mut self, bucket: &str, key: &str, probe: &mut Probe) -> OpResult<()> {
        let path = self.path(bucket, key);
        probe.started();
        let deleted = self.client.delete(&path, false).await;
        check_deleted(call_done(probe, deleted)?)
    }
}

impl HdfsSession {
    pub(super) async fn list(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        probe.started();
        let items = listing::count(self, request, probe).await;
        probe.first_byte_and_done();
        let items = items?;
        if items == 0 {
            self.find_bucket(request.bucket, &mut Probe::untimed())
                .await?;
            probe.done();
        }
        Ok(Completion::of_items(items))
    }

    pub(super) async fn make_bucket(&mut self, bucket: &str, probe: &mut Probe) -> OpResult {
        path::check(bucket, "key")?;
        let path = self.path(bucket, "");
        probe.started();
        let made = self.client.mkdirs(&path, DIRECTORY, true).await;
        probe.first_byte_and_done();
        made.map(|()| DONE).map_err(to_op_error)
    }

    pub(super) async fn find_bucket(&mut self, bucket: &str, probe: &mut Probe) -> OpResult {
        path::check(bucket, "key")?;
        let path = self.path(bucket, "");
        probe.started();
        let status = self.client.get_file_info(&path).await;
        probe.first_byte_and_done();
        check_is_directory(bucket, status.map_err(to_op_error)?.isdir)
    }

    pub(super) async fn remove_bucket(&mut self, bucket: &str, probe: &mut Probe) -> OpResult {
        self.find_bucket(bucket, probe).await?;
        self.unlink(bucket, "", probe).await.map(|()| DONE)
    }

    /// Counts the directories below the root.
    pub(super) async fn list_buckets(&mut self, probe: &mut Probe) -> OpResult {
        let (mut cursor, mut page, mut items) = (None, VecDeque::new(), 0);
        probe.started();
        loop {
            let more = self.page("", "", "", &mut cursor, &mut page, probe).await;
            probe.first_byte_and_done();
            items += page.drain(..).filter(|entry| entry.is_dir).count() as u64;
            if !more? {
                return Ok(Completion::of_items(items));
            }
        }
    }
}

impl Admin for HdfsSession {
    async fn ensure_bucket(&mut self, bucket: &str) -> OpResult<bool> {
        let probe = &mut Probe::untimed();
        let create = async |session: &mut Self| session.make_bucket(bucket, probe).await;
        ensure_bucket(self, bucket, create).await
    }

    async fn head_bucket(&mut self, bucket: &str) -> OpResult<()> {
        self.find_bucket(bucket, &mut Probe::untimed())
            .await
            .map(drop)
    }

    async fn delete_bucket(&mut self, bucket: &str) -> OpResult<()> {
        self.head_bucket(bucket).await?;
        prune::remove_bucket(self, bucket).await
    }

    async fn list_keys(
        &mut self,
        bucket: &str,
        prefix: &str,
        after: Option<&str>,
    ) -> OpResult<KeyPage> {
        listing::page(self, bucket, prefix, after).await
    }

    async fn delete_keys(&mut self, bucket: &str, keys: &[String]) -> OpResult<()> {
        prune::delete_keys(self, bucket, keys).await
    }

    /// The directory's quota. The library has no call for the cluster's disks.
    async fn room(&mut self, bucket: &str) -> OpResult<Option<Room>> {
        let path = self.path(bucket, "");
        let summary = self.client.get_content_summary(&path).await;
        let summary = summary.map_err(to_op_error)?;
        let left =
            |quota: u64, used: u64| (quota < i64::MAX as u64).then(|| quota.saturating_sub(used));
        let free_bytes = left(summary.space_quota, summary.space_consumed);
        let files = summary.file_count + summary.directory_count;
        let free_objects = left(summary.quota, files);
        Ok(Some(Room {
            free_bytes,
            total_bytes: free_bytes.map(|_| summary.space_quota),
            free_objects,
            of: match (free_bytes, free_objects) {
                (None, None) => {
                    "the directory has no quota, and the library has no call for the room on the \
                                 cluster's disks: a webhdfs:// target says it"
                        .to_owned()
                }
                _ => "the directory's quota".to_owned(),
            },
            ..Room::default()
        }))
    }

    async fn abort_uploads(&mut self, _bucket: &str, _prefix: &str) -> OpResult<u64> {
        Ok(0)
    }

    async fn put_small(&mut self, bucket: &str, key: &str, body: &[u8]) -> OpResult<()> {
        path::check(bucket, key)?;
        let path = self.path(bucket, key);
        let created = self.client.create(&path, &self.inner.replace).await;
        let mut writer = created.map_err(to_op_error)?;
        if !body.is_empty() {
            let bytes = Bytes::copy_from_slice(body);
            writer.write_bytes(bytes).await.map_err(to_op_error)?;
        }
        writer.close().await.map_err(to_op_error)
    }

    async fn get_small(&mut self, bucket: &str, key: &str) -> OpResult<Vec<u8>> {
        path::check(bucket, key)?;
        let path = self.path(bucket, key);
        let reader = self.client.read(&path).await.map_err(to_op_error)?;
        let length = reader.file_length();
        if length > MAX_SMALL {
            return Err(too_long(0));
        }
        let bytes = reader.read_range(0, length).await.map_err(to_op_error)?;
        Ok(bytes.to_vec())
    }
}
