//! Untimed control-plane calls. They may allocate, and their errors are detailed: they detect an
//! unusable account before a run.

use bucketload_core::driver::{Admin, ErrorKind, KeyPage, OpError, OpResult, Probe};
use bucketload_s3::xml;

use super::batch::MAX_BATCH;
use super::head::AzureCall;
use super::ops_blocks::EMPTY_LIST;
use super::ops_list::{ListQuery, MAX_PAGE, decode_marked, without_mark};
use super::ops_object::BLOCK_BLOB;
use super::session::AzureSession;
use crate::http::answer::{no_next_page, unreadable};
use crate::http::control::{ensure_bucket, name_missing};
use crate::http::{Body, Buffer, HttpSession as _};

impl AzureSession {
    /// Repeats a refused HEAD, whose answer has no body, as a listing whose refusal has one.
    async fn explain(&mut self, container: &str, error: OpError) -> OpError {
        if error.status == 0 || error.kind == ErrorKind::NotFound {
            return error;
        }
        let probe = &mut Probe::untimed();
        match self.page(container, "", "", "1", None, probe).await {
            Err(better) if better.status == error.status => better,
            _ => error,
        }
    }

    /// Lists a page of names from the marker `after`.
    pub(super) async fn page(
        &mut self,
        container: &str,
        prefix: &str,
        include: &str,
        most: &str,
        after: Option<&str>,
        probe: &mut Probe,
    ) -> OpResult<KeyPage> {
        let query = ListQuery::new("", include, after.unwrap_or(""), most, prefix);
        let call = AzureCall::new("GET", container, "").query(query.as_slice());
        let mut request = self.bare(&call);
        let mut body = Buffer::take();
        self.document(&mut request, &mut body, MAX_PAGE, probe)
            .await?;
        decode_marked(&mut body);
        let mut page = KeyPage::default();
        xml::leaves(without_mark(&body), |path, text| match *path {
            [_, "Blobs", "Blob", "Name"] => page.keys.push(text.get()),
            [_, "NextMarker"] if !text.is_empty() => page.next = Some(text.get()),
            _ => {}
        })
        .map_err(|e| unreadable("listing", e))?;
        if page.next.is_some() && page.next.as_deref() == after {
            return Err(no_next_page());
        }
        Ok(page)
    }
}

impl Admin for AzureSession {
    async fn ensure_bucket(&mut self, bucket: &str) -> OpResult<bool> {
        let probe = &mut Probe::untimed();
        let create = async |session: &mut Self| session.make_container(bucket, probe).await;
        ensure_bucket(self, bucket, create).await
    }

    async fn head_bucket(&mut self, bucket: &str) -> OpResult<()> {
        match self.head_container(bucket, &mut Probe::untimed()).await {
            Ok(_) => Ok(()),
            Err(error) => {
                let error = self.explain(bucket, error).await;
                Err(name_missing(error, "container", bucket))
            }
        }
    }

    async fn delete_bucket(&mut self, bucket: &str) -> OpResult<()> {
        self.delete_container(bucket, &mut Probe::untimed())
            .await
            .map(drop)
    }

    async fn list_keys(
        &mut self,
        bucket: &str,
        prefix: &str,
        after: Option<&str>,
    ) -> OpResult<KeyPage> {
        let probe = &mut Probe::untimed();
        self.page(bucket, prefix, "", "1000", after, probe).await
    }

    async fn delete_keys(&mut self, bucket: &str, keys: &[String]) -> OpResult<()> {
        for keys in keys.chunks(MAX_BATCH as usize) {
            match self.delete_batch(bucket, keys, &mut Probe::untimed()).await {
                // A SAS may permit deletions but not batches (Azurite then answers 500).
                Err(error) if !error.kind.breaks_connection() => {
                    for key in keys {
                        self.delete_one(bucket, key).await?;
                    }
                }
                other => other?,
            }
        }
        Ok(())
    }

    /// Discards the blocks of blobs that were never committed. An existing blob keeps its
    /// uncommitted blocks: they cannot be removed without changing the blob, and expire after a week.
    async fn abort_uploads(&mut self, bucket: &str, prefix: &str) -> OpResult<u64> {
        let mut aborted = 0;
        let mut after: Option<String> = None;
        loop {
            let from = after.as_deref();
            let probe = &mut Probe::untimed();
            let page = self.page(bucket, prefix, "uncommittedblobs", "1000", from, probe);
            let page = page.await?;
            for key in page.keys {
                // Leave committed blobs and keys outside the prefix alone.
                if key.starts_with(prefix) && self.is_absent(bucket, &key).await? {
                    aborted += u64::from(self.discard_blocks(bucket, key).await?);
                }
            }
            after = page.next;
            if after.is_none() {
                return Ok(aborted);
            }
        }
    }

    async fn put_small(&mut self, bucket: &str, key: &str, body: &[u8]) -> OpResult<()> {
        self.put_small_if(bucket, key, body, None).await
    }

    async fn get_small(&mut self, bucket: &str, key: &str) -> OpResult<Vec<u8>> {
        let mut request = self.bare(&AzureCall::new("GET", bucket, key));
        self.small(&mut request).await
    }

    async fn get_small_version(
        &mut self,
        bucket: &str,
        key: &str,
    ) -> OpResult<(Vec<u8>, Option<String>)> {
        let mut request = self.bare(&AzureCall::new("GET", bucket, key));
        self.small_with(&mut request, "etag").await
    }

    async fn put_small_if(
        &mut self,
        bucket: &str,
        key: &str,
        body: &[u8],
        version: Option<&str>,
    ) -> OpResult<()> {
        let fields = [BLOCK_BLOB];
        let call = AzureCall {
            if_match: version.unwrap_or_default(),
            ..AzureCall::new("PUT", bucket, key).fields(&fields)
        };
        let mut prepared = self.prepare(&call, Body::Bytes(body));
        self.settle(&mut prepared).await
    }
}

impl AzureSession {
    async fn is_absent(&mut self, bucket: &str, key: &str) -> OpResult<bool> {
        let mut prepared = self.bare(&AzureCall::new("HEAD", bucket, key));
        match self.settle(&mut prepared).await {
            Ok(()) => Ok(false),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Discards the blocks of a blob that was never committed: commits an empty list, unless
    /// another client has created the blob meanwhile, and deletes the resulting empty blob.
    /// Returns whether it did.
    async fn discard_blocks(&mut self, bucket: &str, key: String) -> OpResult<bool> {
        let probe = &mut Probe::untimed();
        match self.commit(bucket, &key, EMPTY_LIST, "*", probe).await {
            Ok(()) => {}
            Err(error) if error.kind == ErrorKind::Conflict => return Ok(false),
            Err(error) => return Err(error),
        }
        self.delete_one(bucket, &key).await?;
        Ok(true)
    }

    /// Deletes a blob; a missing blob is no error, a missing container is.
    async fn delete_one(&mut self, bucket: &str, key: &str) -> OpResult<()> {
        let mut prepared = self.bare(&AzureCall::new("DELETE", bucket, key));
        match self.settle(&mut prepared).await {
            Err(error) if error.kind != ErrorKind::NotFound => Err(error),
            Err(error) if error.detail.starts_with("ContainerNotFound") => Err(error),
            _ => Ok(()),
        }
    }
}
