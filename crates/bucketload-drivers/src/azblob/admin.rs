//! Untimed calls of the control plane. They allocate freely and explain themselves well: an account
//! that cannot be used is found out here, before a run.

use bucketload_core::driver::{Admin, KeyPage};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::record::Probe;
use bucketload_s3::xml;

use crate::http::outgoing::Body;
use crate::http::sink::{Collect, Ignore};

use super::batch::MAX_BATCH;
use super::head::Call;
use super::ops_blocks::EMPTY_LIST;
use super::ops_list::{
    Listing, MAX_PAGE, decode_marked, no_way_on, too_long, unreadable, without_mark,
};
use super::ops_object::NO_BODY;
use super::session::AzureSession;
use super::sign::Field;

/// Most bytes of a small object.
const MAX_SMALL: usize = 16 << 20;

/// A probe for calls that nobody times.
fn untimed() -> Probe {
    Probe::new(|| 0)
}

impl AzureSession {
    /// Performs a call and returns the body of the answer.
    async fn fetch(&mut self, call: &Call<'_>, limit: usize) -> Result<Vec<u8>, OpError> {
        let mut body = Vec::new();
        let mut sink = Collect::new(&mut body, limit);
        let mut prepared = self.prepare(call, NO_BODY);
        self.perform(&mut prepared, &mut sink, &mut untimed())
            .await?;
        if sink.overflow {
            return Err(too_long());
        }
        Ok(body)
    }

    /// Answers to HEAD have no body: asks again in a way that makes the server explain itself.
    async fn explain(&mut self, container: &str, error: OpError) -> OpError {
        if error.status == 0 || error.kind == ErrorKind::NotFound {
            return error;
        }
        match self.page(container, "", "", "1", None).await {
            Err(better) if better.status == error.status => better,
            _ => error,
        }
    }

    /// A page of names.
    async fn page(
        &mut self,
        container: &str,
        prefix: &str,
        include: &str,
        most: &str,
        after: Option<&str>,
    ) -> Result<KeyPage, OpError> {
        let query = Listing::new("", include, after.unwrap_or(""), most, prefix);
        let call = Call::new("GET", container, "").query(query.as_slice());
        let mut body = self.fetch(&call, MAX_PAGE).await?;
        decode_marked(&mut body);
        let mut page = KeyPage::default();
        xml::leaves(without_mark(&body), |path, text| match *path {
            [_, "Blobs", "Blob", "Name"] => page.keys.push(text.get()),
            [_, "NextMarker"] if !text.is_empty() => page.next = Some(text.get()),
            _ => {}
        })
        .map_err(|_| unreadable("listing"))?;
        if page.next.is_some() && page.next.as_deref() == after {
            return Err(no_way_on());
        }
        Ok(page)
    }
}

impl Admin for AzureSession {
    async fn ensure_bucket(&mut self, bucket: &str) -> Result<bool, OpError> {
        match self.head_bucket(bucket).await {
            Ok(()) => return Ok(false),
            Err(error) if error.kind == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        match self.make_container(bucket, &mut untimed()).await {
            Ok(_) => Ok(true),
            // Somebody was quicker. Whether it may be used, the next request tells.
            Err(error) if error.kind == ErrorKind::Conflict => {
                match self.head_bucket(bucket).await {
                    Ok(()) => Ok(false),
                    // It is being deleted: what the first refusal said.
                    Err(_) => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    async fn head_bucket(&mut self, bucket: &str) -> Result<(), OpError> {
        match self.head_container(bucket, &mut untimed()).await {
            Ok(_) => Ok(()),
            Err(mut error) if error.kind == ErrorKind::NotFound => {
                error.detail = format!("there is no container `{bucket}`").into_boxed_str();
                Err(error)
            }
            Err(error) => Err(self.explain(bucket, error).await),
        }
    }

    async fn delete_bucket(&mut self, bucket: &str) -> Result<(), OpError> {
        self.delete_container(bucket, &mut untimed())
            .await
            .map(drop)
    }

    async fn list_keys(
        &mut self,
        bucket: &str,
        prefix: &str,
        after: Option<&str>,
    ) -> Result<KeyPage, OpError> {
        self.page(bucket, prefix, "", "1000", after).await
    }

    async fn delete_keys(&mut self, bucket: &str, keys: &[String]) -> Result<(), OpError> {
        for keys in keys.chunks(MAX_BATCH as usize) {
            match self.delete_batch(bucket, keys, &mut untimed()).await {
                // A signature may permit deletions but no batches (Azurite then answers 500).
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

    /// Throws away the blocks of blobs that were never committed. A blob that exists keeps its
    /// uncommitted blocks: they cannot be removed without changing it, and expire after a week.
    async fn abort_uploads(&mut self, bucket: &str, prefix: &str) -> Result<u64, OpError> {
        let mut aborted = 0;
        let mut after: Option<String> = None;
        loop {
            let from = after.as_deref();
            let page = self.page(bucket, prefix, "uncommittedblobs", "1000", from);
            let page = page.await?;
            for key in page.keys {
                // Never touch what is not ours, nor what is a blob.
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

    async fn put_small(&mut self, bucket: &str, key: &str, body: &[u8]) -> Result<(), OpError> {
        let fields = [Field {
            name: "x-ms-blob-type",
            value: b"BlockBlob",
        }];
        let call = Call::new("PUT", bucket, key).fields(&fields);
        let mut prepared = self.prepare(&call, Body::Bytes(body));
        self.perform(&mut prepared, &mut Ignore, &mut untimed())
            .await
            .map(drop)
    }

    async fn get_small(&mut self, bucket: &str, key: &str) -> Result<Vec<u8>, OpError> {
        self.fetch(&Call::new("GET", bucket, key), MAX_SMALL).await
    }
}

impl AzureSession {
    async fn is_absent(&mut self, bucket: &str, key: &str) -> Result<bool, OpError> {
        let mut prepared = self.prepare(&Call::new("HEAD", bucket, key), NO_BODY);
        match self
            .perform(&mut prepared, &mut Ignore, &mut untimed())
            .await
        {
            Ok(_) => Ok(false),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Ends the blocks of a blob that was never committed: an empty list makes an empty blob of
    /// them, unless a blob has come meanwhile, and that is deleted. Returns whether it was done.
    async fn discard_blocks(&mut self, bucket: &str, key: String) -> Result<bool, OpError> {
        let probe = &mut untimed();
        match self.commit(bucket, &key, EMPTY_LIST, "*", probe).await {
            Ok(()) => {}
            Err(error) if error.kind == ErrorKind::Conflict => return Ok(false),
            Err(error) => return Err(error),
        }
        self.delete_one(bucket, &key).await?;
        Ok(true)
    }

    /// Deletes a blob that may be gone already.
    async fn delete_one(&mut self, bucket: &str, key: &str) -> Result<(), OpError> {
        let mut prepared = self.prepare(&Call::new("DELETE", bucket, key), NO_BODY);
        match self
            .perform(&mut prepared, &mut Ignore, &mut untimed())
            .await
        {
            Err(error) if error.kind != ErrorKind::NotFound => Err(error),
            Err(error) if error.detail.starts_with("ContainerNotFound") => Err(error),
            _ => Ok(()),
        }
    }
}
