//! Untimed calls of the control plane.
//!
//! **Filer**: buckets are folders below `/buckets`. Deleting files leaves their folders behind: those of
//! a run (`bucketload-…`) are removed once they are empty, others only with the bucket.
//!
//! **Master**: a bucket is a collection. What is listed are the objects that this process has written;
//! what an interrupted run left can only be removed with its collection.

use std::collections::BTreeSet;

use bucketload_core::driver::{Admin, KeyPage};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::record::Probe;

use super::config::Mode;
use super::filer::push_path;
use super::session::{SeaweedSession, end, end_with_length, push_parameter, unreadable};
use super::table::hash;
use super::walk::{Step, Walk};
use crate::http::outgoing::Body;
use crate::http::sink::{Collect, Ignore};
use crate::json::{self, Value};

/// Most bytes of a small object.
const MAX_SMALL: usize = 16 << 20;

/// Most bytes of a master's report on its topology.
const MAX_TOPOLOGY: usize = 64 << 20;

/// Keys of a page.
const PAGE: usize = 1000;

/// A probe for calls that nobody times.
fn untimed() -> Probe {
    Probe::new(|| 0)
}

fn no_bucket(bucket: &str) -> OpError {
    OpError::new(
        ErrorKind::NotFound,
        format!("there is no bucket `{bucket}`"),
    )
}

impl Admin for SeaweedSession {
    async fn ensure_bucket(&mut self, bucket: &str) -> Result<bool, OpError> {
        match self.head_bucket(bucket).await {
            Ok(()) => return Ok(false),
            Err(error) if error.kind == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        if self.shared.config.mode == Mode::Master {
            // The first file id makes the collection.
            return self.assign(bucket, &mut untimed()).await.map(|_| true);
        }
        match self.make_folder(bucket, &mut untimed()).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind == ErrorKind::Conflict => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn head_bucket(&mut self, bucket: &str) -> Result<(), OpError> {
        if self.shared.config.mode == Mode::Master {
            return match self.collections().await?.contains(bucket) {
                true => Ok(()),
                false => Err(no_bucket(bucket)),
            };
        }
        match self.look_at(bucket, &mut untimed()).await {
            Ok(_) => Ok(()),
            Err(error) if error.kind == ErrorKind::NotFound => Err(no_bucket(bucket)),
            Err(error) => Err(error),
        }
    }

    async fn delete_bucket(&mut self, bucket: &str) -> Result<(), OpError> {
        if let Some(table) = &self.shared.table {
            if !table.page("", 0, 1).0.is_empty() {
                let text = "objects that this process wrote are still there";
                return Err(OpError::new(ErrorKind::Conflict, text));
            }
            let mut head = self.begin("GET");
            head.extend_from_slice(b"/col/delete?");
            push_parameter(&mut head, "collection", bucket);
            self.fields(&mut head);
            end(&mut head);
            let body = Body::Bytes(b"");
            let probe = &mut untimed();
            let deleted = self.perform(head, body, &mut Ignore, probe).await;
            return deleted.map(drop);
        }
        for folder in self.empty_folders(bucket).await?.iter().rev() {
            self.delete_path(bucket, folder, &mut untimed()).await?;
        }
        self.remove_folder(bucket, &mut untimed()).await.map(drop)
    }

    async fn list_keys(
        &mut self,
        bucket: &str,
        prefix: &str,
        after: Option<&str>,
    ) -> Result<KeyPage, OpError> {
        if let Some(table) = &self.shared.table {
            let from = after.and_then(|a| a.parse().ok()).unwrap_or(0);
            let (keys, next) = table.page(prefix, from, PAGE);
            let next = next.map(|at| at.to_string());
            return Ok(KeyPage {
                keys,
                next,
                note: None,
            });
        }
        let mut walk = Walk::new(bucket, prefix, true, 0);
        if let Some(after) = after {
            walk = walk.behind(after);
        }
        let mut keys = Vec::new();
        loop {
            match walk.step(self, 0, &mut untimed()).await? {
                Step::Key(key) => keys.push(key),
                Step::Group(_) => {}
                Step::Cut | Step::End => {
                    return Ok(KeyPage {
                        keys,
                        ..KeyPage::default()
                    });
                }
            }
            if keys.len() == PAGE {
                let next = keys.last().cloned();
                return Ok(KeyPage {
                    keys,
                    next,
                    note: None,
                });
            }
        }
    }

    async fn delete_keys(&mut self, bucket: &str, keys: &[String]) -> Result<(), OpError> {
        let mut folders = BTreeSet::new();
        for key in keys {
            let deleted = match &self.shared.table {
                None => self.delete_path(bucket, key, &mut untimed()).await,
                Some(table) => {
                    let name = hash(bucket, key);
                    match table.get(name) {
                        Some(fid) => self.delete_fid(name, fid, &mut untimed()).await,
                        None => Ok(()),
                    }
                }
            };
            match deleted {
                Err(error) if error.kind != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            folders.extend(own_folders(key).map(str::to_owned));
        }
        if self.shared.table.is_some() {
            return Ok(());
        }
        // The deepest first. What is not empty stays.
        let mut folders: Vec<String> = folders.into_iter().collect();
        folders.sort_by_key(|folder| std::cmp::Reverse(folder.matches('/').count()));
        for folder in folders {
            match self.delete_path(bucket, &folder, &mut untimed()).await {
                Err(error) if !matches!(error.kind, ErrorKind::NotFound | ErrorKind::Conflict) => {
                    return Err(error);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// There are no multipart uploads.
    async fn abort_uploads(&mut self, _bucket: &str, _prefix: &str) -> Result<u64, OpError> {
        Ok(0)
    }

    async fn put_small(&mut self, bucket: &str, key: &str, body: &[u8]) -> Result<(), OpError> {
        let probe = &mut untimed();
        if self.shared.table.is_none() {
            let mut head = self.begin("PUT");
            push_path(&mut head, bucket, key);
            self.fields(&mut head);
            head.extend_from_slice(b"Content-Type: application/octet-stream\r\n");
            end_with_length(&mut head, body.len() as u64);
            let body = Body::Bytes(body);
            let put = self.perform(head, body, &mut Ignore, probe).await;
            return put.map(drop);
        }
        let len = body.len() as u64;
        self.store(bucket, key, Body::Bytes(body), len, probe).await
    }

    async fn get_small(&mut self, bucket: &str, key: &str) -> Result<Vec<u8>, OpError> {
        let mut body = Vec::new();
        let probe = &mut untimed();
        let mut sink = Collect::new(&mut body, MAX_SMALL);
        if let Some(table) = &self.shared.table {
            let Some(fid) = table.get(hash(bucket, key)) else {
                return Err(OpError::new(
                    ErrorKind::NotFound,
                    "this process wrote no such object",
                ));
            };
            let server = self.locate(fid.volume, probe).await?;
            let mut head = self.begin_at("GET", server, fid);
            end(&mut head);
            self.perform_at(server, head, Body::Bytes(b""), &mut sink, probe)
                .await?;
        } else {
            let mut head = self.begin("GET");
            push_path(&mut head, bucket, key);
            self.fields(&mut head);
            end(&mut head);
            self.perform(head, Body::Bytes(b""), &mut sink, probe)
                .await?;
        }
        match sink.overflow {
            false => Ok(body),
            true => Err(OpError::new(ErrorKind::Protocol, "the object is not small")),
        }
    }
}

impl SeaweedSession {
    /// Names of the collections that the master knows.
    async fn collections(&mut self) -> Result<BTreeSet<String>, OpError> {
        let mut head = self.begin("GET");
        head.extend_from_slice(b"/dir/status");
        self.fields(&mut head);
        end(&mut head);
        let mut body = Vec::new();
        self.document(head, &mut body, MAX_TOPOLOGY, &mut untimed())
            .await?;
        let mut found = BTreeSet::new();
        json::values(&body, |path, value| {
            // Newer masters write names in lower case.
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

    /// Every folder of `bucket`, parents first.
    ///
    /// # Errors
    /// `Conflict` when there is an object.
    async fn empty_folders(&mut self, bucket: &str) -> Result<Vec<String>, OpError> {
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
        // Without the slash at the end.
        for folder in &mut found {
            folder.pop();
        }
        Ok(found)
    }
}

/// The folders of `key` from the run's own folder (`bucketload-…`) on.
fn own_folders(key: &str) -> impl Iterator<Item = &str> {
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
    use super::own_folders;

    #[test]
    fn only_a_runs_own_folders_are_tidied() {
        let folders = |key| own_folders(key).collect::<Vec<_>>();
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
