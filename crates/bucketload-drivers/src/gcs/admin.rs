//! Untimed calls of the control plane. They allocate freely and explain themselves well: a target that
//! cannot be used is found out here, before a run.

use bucketload_core::driver::{Admin, KeyPage};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::record::Probe;
use bucketload_s3::encode;

use super::ops_batch::Batch;
use super::ops_list::read_page;
use super::session::{GcsSession, end, end_with_length, push_object, push_parameter};
use crate::http::outgoing::Body;
use crate::http::sink::Ignore;

/// Most bytes of a small object.
const MAX_SMALL: usize = 16 << 20;

/// A probe for calls that nobody times.
fn untimed() -> Probe {
    Probe::new(|| 0)
}

impl Admin for GcsSession {
    async fn ensure_bucket(&mut self, bucket: &str) -> Result<bool, OpError> {
        match self.head_bucket(bucket).await {
            Ok(()) => return Ok(false),
            Err(error) if error.kind == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        match self.make_bucket(bucket, &mut untimed()).await {
            Ok(_) => Ok(true),
            // Somebody was quicker, or it belongs to somebody else: the next request tells.
            Err(error) if error.kind == ErrorKind::Conflict => {
                self.head_bucket(bucket).await.map(|()| false)
            }
            Err(error) => Err(error),
        }
    }

    async fn head_bucket(&mut self, bucket: &str) -> Result<(), OpError> {
        match self.head_one_bucket(bucket, &mut untimed()).await {
            Ok(_) => Ok(()),
            Err(mut error) if error.kind == ErrorKind::NotFound => {
                error.detail = format!("there is no bucket `{bucket}`").into_boxed_str();
                Err(error)
            }
            // Who may use the objects need not be allowed to see the bucket itself.
            Err(error) if error.kind == ErrorKind::Auth && error.status == 403 => {
                let body = &mut Vec::new();
                let probe = &mut untimed();
                let listed = self.page(bucket, "", "", 1, b"", body, probe).await;
                listed.map_err(|_| error)
            }
            Err(error) => Err(error),
        }
    }

    async fn delete_bucket(&mut self, bucket: &str) -> Result<(), OpError> {
        self.remove_bucket(bucket, &mut untimed()).await.map(drop)
    }

    async fn list_keys(
        &mut self,
        bucket: &str,
        prefix: &str,
        after: Option<&str>,
    ) -> Result<KeyPage, OpError> {
        let mut body = Vec::new();
        let from = after.unwrap_or_default().as_bytes();
        self.page(bucket, prefix, "", 1000, from, &mut body, &mut untimed())
            .await?;
        let mut keys = Vec::new();
        let mut next = Vec::new();
        read_page(&body, &mut next, |key| keys.push(key.get()))?;
        if !next.is_empty() && next == from {
            return Err(OpError::new(
                ErrorKind::Protocol,
                "the listing is to go on where this page began",
            ));
        }
        let next = String::from_utf8(next).unwrap_or_default();
        Ok(KeyPage {
            keys,
            next: (!next.is_empty()).then_some(next),
            note: None,
        })
    }

    async fn delete_keys(&mut self, bucket: &str, keys: &[String]) -> Result<(), OpError> {
        let mut batch = Batch::new();
        for (i, key) in keys.iter().enumerate() {
            batch.delete(self, bucket, key, "");
            if !batch.is_full() && i + 1 < keys.len() {
                continue;
            }
            match self.send_batch(&mut batch, &mut untimed()).await {
                Ok(()) => {}
                // Whoever has no batches deletes one by one, from the beginning.
                Err(error) if matches!(error.status, 404 | 405 | 501) => {
                    return self.delete_each(bucket, keys).await;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Cloud Storage does not list unfinished uploads; they cost nothing and end after a week.
    async fn abort_uploads(&mut self, _bucket: &str, _prefix: &str) -> Result<u64, OpError> {
        Ok(0)
    }

    async fn put_small(&mut self, bucket: &str, key: &str, body: &[u8]) -> Result<(), OpError> {
        let mut head = self.begin("POST");
        head.extend_from_slice(b"/upload/storage/v1/b/");
        encode::push_query(&mut head, bucket);
        head.extend_from_slice(b"/o?uploadType=media");
        push_parameter(&mut head, "name", key);
        self.fields(&mut head);
        head.extend_from_slice(b"Content-Type: application/octet-stream\r\n");
        end_with_length(&mut head, body.len() as u64);
        self.perform(head, Body::Bytes(body), &mut Ignore, &mut untimed())
            .await
            .map(drop)
    }

    async fn get_small(&mut self, bucket: &str, key: &str) -> Result<Vec<u8>, OpError> {
        let mut head = self.begin("GET");
        push_object(&mut head, bucket, key);
        head.extend_from_slice(b"?alt=media");
        self.fields(&mut head);
        end(&mut head);
        let mut body = Vec::new();
        self.document(head, b"", &mut body, MAX_SMALL, &mut untimed())
            .await?;
        Ok(body)
    }
}

impl GcsSession {
    async fn delete_each(&mut self, bucket: &str, keys: &[String]) -> Result<(), OpError> {
        for key in keys {
            let mut head = self.begin("DELETE");
            push_object(&mut head, bucket, key);
            self.fields(&mut head);
            end(&mut head);
            let body = Body::Bytes(b"");
            match self.perform(head, body, &mut Ignore, &mut untimed()).await {
                Err(error) if error.kind != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}
