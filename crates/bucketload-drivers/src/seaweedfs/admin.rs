//! Untimed control-plane calls.
//!
//! **Filer**: buckets are folders below `/buckets`. Deleting files leaves their folders behind. Folders
//! of a run (`bucketload-…`) are removed once they are empty, others only with the bucket.
//!
//! **Master**: a bucket is a collection. A listing shows the objects that this process wrote. Objects
//! that an interrupted run left can only be removed with their collection.

use std::collections::BTreeSet;

use bucketload_core::driver::{Admin, DONE, ErrorKind, KeyPage, OpError, OpResult, Probe, Room};

use super::config::Mode;
use super::filer::push_path;
use super::session::SeaweedSession;
use super::table::hash;
use super::walk::{Walk, WalkStep};
use crate::http::answer::{MAX_SMALL, too_long, unreadable};
use crate::http::control::{ensure_bucket, ignore_missing, name_missing};
use crate::http::{Body, Collect, HttpSession as _, Plain, Render as _, Rendering as _};
use crate::json::{self, Value};

/// Most bytes of a master's topology report.
const MAX_TOPOLOGY: usize = 64 << 20;

/// Keys of a page.
const PAGE: usize = 1000;

impl Admin for SeaweedSession {
    async fn ensure_bucket(&mut self, bucket: &str) -> OpResult<bool> {
        let probe = &mut Probe::untimed();
        let create = async |session: &mut Self| match session.shared.config.mode {
            // Assigning the first file ID creates the collection.
            Mode::Master => session.assign(bucket, probe).await.map(|_| DONE),
            Mode::Filer => session.make_folder(bucket, probe).await,
        };
        ensure_bucket(self, bucket, create).await
    }

    async fn head_bucket(&mut self, bucket: &str) -> OpResult<()> {
        let found = match self.shared.config.mode {
            Mode::Filer => self
                .check_folder(bucket, &mut Probe::untimed())
                .await
                .map(drop),
            Mode::Master => match self.collections().await?.contains(bucket) {
                true => Ok(()),
                false => Err(OpError::new(ErrorKind::NotFound, "")),
            },
        };
        found.map_err(|error| name_missing(error, "bucket", bucket))
    }

    async fn delete_bucket(&mut self, bucket: &str) -> OpResult<()> {
        if let Some(table) = &self.shared.table {
            if !table.page("", 0, 1).0.is_empty() {
                let text = "the collection still has objects that this process wrote";
                return Err(OpError::new(ErrorKind::Conflict, text));
            }
            let mut head = self.begin("GET");
            head.text("/col/delete?");
            head.parameter("collection", bucket);
            let mut request = self.bare(head);
            return self.settle(&mut request).await;
        }
        for folder in self.empty_folders(bucket).await?.iter().rev() {
            self.delete_path(bucket, folder, &mut Probe::untimed())
                .await?;
        }
        self.remove_folder(bucket, &mut Probe::untimed())
            .await
            .map(drop)
    }

    async fn list_keys(
        &mut self,
        bucket: &str,
        prefix: &str,
        after: Option<&str>,
    ) -> OpResult<KeyPage> {
        if let Some(table) = &self.shared.table {
            let from = after.and_then(|a| a.parse().ok()).unwrap_or(0);
            let (keys, next) = table.page(prefix, from, PAGE);
            let next = next.map(|at| at.to_string());
            return Ok(KeyPage::new(keys, next));
        }
        let mut walk = Walk::new(bucket, prefix, true, 0);
        if let Some(after) = after {
            walk = walk.resume_after(after);
        }
        let mut keys = Vec::new();
        loop {
            match walk.step(self, 0, &mut Probe::untimed()).await? {
                WalkStep::Key(key) => keys.push(key),
                WalkStep::Group(_) => {}
                WalkStep::Cut | WalkStep::End => {
                    return Ok(KeyPage::new(keys, None));
                }
            }
            if keys.len() == PAGE {
                return Ok(KeyPage::up_to_last(keys, true));
            }
        }
    }

    async fn delete_keys(&mut self, bucket: &str, keys: &[String]) -> OpResult<()> {
        let mut folders = BTreeSet::new();
        for key in keys {
            let deleted = match &self.shared.table {
                None => self.delete_path(bucket, key, &mut Probe::untimed()).await,
                Some(table) => {
                    let name = hash(bucket, key);
                    match table.get(name) {
                        Some(fid) => self.delete_fid(name, fid, &mut Probe::untimed()).await,
                        None => Ok(DONE),
                    }
                }
            };
            ignore_missing(deleted)?;
            folders.extend(run_folders(key).map(str::to_owned));
        }
        if self.shared.table.is_some() {
            return Ok(());
        }
        // Deepest first. Folders that are not empty stay.
        let mut folders: Vec<String> = folders.into_iter().collect();
        folders.sort_by_key(|folder| std::cmp::Reverse(folder.matches('/').count()));
        for folder in folders {
            match self
                .delete_path(bucket, &folder, &mut Probe::untimed())
                .await
            {
                Err(error) if !matches!(error.kind, ErrorKind::NotFound | ErrorKind::Conflict) => {
                    return Err(error);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A master counts free volumes; a filer has no call.
    async fn room(&mut self, _bucket: &str) -> OpResult<Option<Room>> {
        if self.shared.config.mode == Mode::Filer {
            return Ok(Some(Room {
                of: "a filer has no call for it; the master says how many volumes are free (/dir/status)"
                    .to_owned(),
                ..Room::default()
            }));
        }
        let body = self.topology().await?;
        let (mut free, mut most) = (None, None);
        json::values(&body, |path, value| {
            let [topology, name] = path else { return };
            if topology.eq_ignore_ascii_case("topology") {
                match name.to_ascii_lowercase().as_str() {
                    "free" => free = value.whole(),
                    "max" => most = value.whole(),
                    _ => {}
                }
            }
        })
        .map_err(|e| unreadable("topology", e))?;
        Ok(free.zip(most).map(|(free, most)| Room {
            free_volumes: Some(free),
            of: format!("the master has {most}, and each takes what its -volumeSizeLimitMB says"),
            ..Room::default()
        }))
    }

    /// There are no multipart uploads.
    async fn abort_uploads(&mut self, _bucket: &str, _prefix: &str) -> OpResult<u64> {
        Ok(0)
    }

    async fn put_small(&mut self, bucket: &str, key: &str, body: &[u8]) -> OpResult<()> {
        if self.shared.table.is_none() {
            let mut head = self.begin("PUT");
            push_path(&mut head, bucket, key);
            let mut request = self.with(head, "application/octet-stream", Body::Bytes(body));
            return self.settle(&mut request).await;
        }
        self.store(bucket, key, Body::Bytes(body), &mut Probe::untimed())
            .await
    }

    async fn get_small(&mut self, bucket: &str, key: &str) -> OpResult<Vec<u8>> {
        let probe = &mut Probe::untimed();
        if let Some(table) = &self.shared.table {
            let Some(fid) = table.get(hash(bucket, key)) else {
                return Err(OpError::new(
                    ErrorKind::NotFound,
                    "this process did not write the object",
                ));
            };
            let server = self.locate(fid.volume, probe).await?;
            let mut request = Plain::bare(self.begin_at("GET", server, fid));
            let mut body = Vec::new();
            let mut sink = Collect::new(&mut body, MAX_SMALL);
            let reply = self
                .perform_at(server, &mut request, &mut sink, probe)
                .await?;
            return match sink.overflow {
                false => Ok(body),
                true => Err(too_long(reply.status)),
            };
        }
        let mut head = self.begin("GET");
        push_path(&mut head, bucket, key);
        let mut request = self.bare(head);
        self.small(&mut request).await
    }
}

impl SeaweedSession {
    /// A master's topology report.
    async fn topology(&mut self) -> OpResult<Vec<u8>> {
        let mut head = self.begin("GET");
        head.text("/dir/status");
        let mut request = self.bare(head);
        self.fetch(&mut request, MAX_TOPOLOGY).await
    }

    async fn collections(&mut self) -> OpResult<BTreeSet<String>> {
        let body = self.topology().await?;
        let mut found = BTreeSet::new();
        json::values(&body, |path, value| {
            // Newer masters write field names in lower case.
            if let ([.., layouts, "[]", name], Value::Text(text)) = (path, value)
                && layouts.eq_ignore_ascii_case("layouts")
                && name.eq_ignore_ascii_case("collection")
            {
                found.insert(text.get());
            }
        })
        .map_err(|e| unreadable("topology", e))?;
        Ok(found)
    }

    /// Every folder of `bucket`, parents first, without trailing slashes.
    ///
    /// # Errors
    /// `Conflict` when the bucket contains an object.
    async fn empty_folders(&mut self, bucket: &str) -> OpResult<Vec<String>> {
        let mut found = vec![String::new()];
        let mut at = 0;
        while at < found.len() {
            let here = found[at].clone();
            at += 1;
            for folder in self.subfolders(bucket, &here).await? {
                found.push(format!("{here}{folder}/"));
            }
        }
        found.remove(0);
        for folder in &mut found {
            folder.pop();
        }
        Ok(found)
    }
}

/// The folders of `key`, starting with the run's folder (`bucketload-…`).
fn run_folders(key: &str) -> impl Iterator<Item = &str> {
    let own = key.match_indices('/').position({
        let mut begin = 0;
        move |(at, _)| {
            let segment = &key[begin..at];
            begin = at + 1;
            segment.starts_with("bucketload-")
        }
    });
    let ends = key.match_indices('/').map(|(at, _)| at);
    ends.skip(own.unwrap_or(usize::MAX)).map(|at| &key[..at])
}

#[cfg(test)]
mod tests {
    use super::run_folders;

    #[test]
    fn only_folders_of_a_run_are_removed() {
        let folders = |key| run_folders(key).collect::<Vec<_>>();
        assert_eq!(
            folders("bench/bucketload-1/w/x"),
            ["bench/bucketload-1", "bench/bucketload-1/w"]
        );
        assert_eq!(folders("bucketload-1/x"), ["bucketload-1"]);
        assert!(folders("bench/mybucketload-1/x").is_empty());
        assert!(folders("bench/x").is_empty());
        assert!(folders("bucketload-1").is_empty());
    }
}
