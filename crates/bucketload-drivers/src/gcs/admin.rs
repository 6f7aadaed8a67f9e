//! Untimed control-plane calls. They may allocate, and their errors are detailed: they detect an
//! unusable target before a run.

use bucketload_core::driver::{Admin, ErrorKind, KeyPage, OpResult, Probe};

use super::ops_batch::Batch;
use super::ops_list::read_page;
use super::session::{GcsSession, push_object};
use crate::http::answer::no_next_page;
use crate::http::control::{ensure_bucket, ignore_missing, name_missing};
use crate::http::{Body, HttpSession as _, Render as _, Rendering as _};

impl Admin for GcsSession {
    async fn ensure_bucket(&mut self, bucket: &str) -> OpResult<bool> {
        let create =
            async |session: &mut Self| session.make_bucket(bucket, &mut Probe::untimed()).await;
        ensure_bucket(self, bucket, create).await
    }

    async fn head_bucket(&mut self, bucket: &str) -> OpResult<()> {
        match self.head_bucket_timed(bucket, &mut Probe::untimed()).await {
            Ok(_) => Ok(()),
            // Permission to use the objects does not imply permission to see the bucket.
            Err(error) if error.kind == ErrorKind::Auth && error.status == 403 => {
                let body = &mut Vec::new();
                let probe = &mut Probe::untimed();
                let listed = self.page(bucket, "", "", 1, b"", body, probe).await;
                listed.map_err(|_| error)
            }
            Err(error) => Err(name_missing(error, "bucket", bucket)),
        }
    }

    async fn delete_bucket(&mut self, bucket: &str) -> OpResult<()> {
        self.remove_bucket(bucket, &mut Probe::untimed())
            .await
            .map(drop)
    }

    async fn list_keys(
        &mut self,
        bucket: &str,
        prefix: &str,
        after: Option<&str>,
    ) -> OpResult<KeyPage> {
        let mut body = Vec::new();
        let from = after.unwrap_or_default().as_bytes();
        self.page(
            bucket,
            prefix,
            "",
            1000,
            from,
            &mut body,
            &mut Probe::untimed(),
        )
        .await?;
        let mut keys = Vec::new();
        let mut next = Vec::new();
        read_page(&body, &mut next, |key| keys.push(key.get()))?;
        if !next.is_empty() && next == from {
            return Err(no_next_page());
        }
        let next = String::from_utf8(next).unwrap_or_default();
        Ok(KeyPage::new(keys, (!next.is_empty()).then_some(next)))
    }

    async fn delete_keys(&mut self, bucket: &str, keys: &[String]) -> OpResult<()> {
        let mut batch = Batch::new();
        for (i, key) in keys.iter().enumerate() {
            batch.delete(self, bucket, key, "");
            if !batch.is_full() && i + 1 < keys.len() {
                continue;
            }
            match self.send_batch(&mut batch, &mut Probe::untimed()).await {
                Ok(()) => {}
                // The server has no batches: delete one by one, starting over.
                Err(error) if matches!(error.status, 404 | 405 | 501) => {
                    return self.delete_each(bucket, keys).await;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Cloud Storage does not list unfinished uploads; they cost nothing and expire after a week.
    async fn abort_uploads(&mut self, _bucket: &str, _prefix: &str) -> OpResult<u64> {
        Ok(0)
    }

    async fn put_small(&mut self, bucket: &str, key: &str, body: &[u8]) -> OpResult<()> {
        self.put_small_if(bucket, key, body, None).await
    }

    async fn get_small(&mut self, bucket: &str, key: &str) -> OpResult<Vec<u8>> {
        let mut head = self.begin("GET");
        push_object(&mut head, bucket, key);
        head.text("?alt=media");
        let mut request = self.bare(head);
        self.small(&mut request).await
    }

    async fn get_small_version(
        &mut self,
        bucket: &str,
        key: &str,
    ) -> OpResult<(Vec<u8>, Option<String>)> {
        let mut head = self.begin("GET");
        push_object(&mut head, bucket, key);
        head.text("?alt=media");
        let mut request = self.bare(head);
        self.small_with(&mut request, "x-goog-generation").await
    }

    async fn put_small_if(
        &mut self,
        bucket: &str,
        key: &str,
        body: &[u8],
        version: Option<&str>,
    ) -> OpResult<()> {
        let mut head = self.begin_upload("media", bucket, key);
        if let Some(version) = version {
            head.parameter("ifGenerationMatch", version);
        }
        let mut request = self.with(head, "application/octet-stream", Body::Bytes(body));
        self.settle(&mut request).await
    }
}

impl GcsSession {
    async fn delete_each(&mut self, bucket: &str, keys: &[String]) -> OpResult<()> {
        for key in keys {
            let mut head = self.begin("DELETE");
            push_object(&mut head, bucket, key);
            let mut request = self.bare(head);
            ignore_missing(self.settle(&mut request).await)?;
        }
        Ok(())
    }
}
