//! Untimed calls of the control plane. They allocate freely and explain themselves well: a target
//! that cannot be used is found out here, before a run.

use bucketload_core::driver::{Admin, KeyPage};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::record::Probe;
use bucketload_s3::xml;

use super::ops_list::{
    MAX_DELETE, MAX_PAGE, begin_delete, end_delete, no_way_on, push_delete, too_long, uploads_query,
};
use super::ops_object::unreadable;
use super::prepare::Call;
use super::session::S3Session;
use crate::http::sink::{Collect, Ignore};

/// Most bytes of a small object.
const MAX_SMALL: usize = 16 << 20;

/// A probe for calls that nobody times.
fn untimed() -> Probe {
    Probe::new(|| 0)
}

impl S3Session {
    /// Performs a call and returns the body of the answer.
    pub(super) async fn fetch(
        &mut self,
        call: &Call<'_>,
        limit: usize,
    ) -> Result<Vec<u8>, OpError> {
        let mut body = Vec::new();
        let mut sink = Collect::new(&mut body, limit);
        let mut prepared = self.prepare(call);
        self.perform(&mut prepared, &mut sink, &mut untimed())
            .await?;
        if sink.overflow {
            return Err(too_long("answer"));
        }
        Ok(body)
    }

    /// Answers to HEAD have no body: asks again in a way that makes the server explain itself.
    async fn explain(&mut self, bucket: &str, error: OpError) -> OpError {
        if error.status == 0 || error.kind == ErrorKind::NotFound {
            return error;
        }
        let call = Call::new("GET", bucket, "").query(b"list-type=2&max-keys=1&prefix=");
        match self.fetch(&call, MAX_PAGE).await {
            Err(better) if better.status == error.status => better,
            _ => error,
        }
    }
}

impl Admin for S3Session {
    async fn ensure_bucket(&mut self, bucket: &str) -> Result<bool, OpError> {
        match self.head_bucket(bucket).await {
            Ok(()) => return Ok(false),
            Err(error) if error.kind == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        match self.make_bucket(bucket, &mut untimed()).await {
            Ok(_) => Ok(true),
            // Somebody was quicker. Whether it may be used, the next request tells.
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
            Err(error) => Err(self.explain(bucket, error).await),
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
        self.list_page(bucket, prefix, after).await
    }

    async fn delete_keys(&mut self, bucket: &str, keys: &[String]) -> Result<(), OpError> {
        for keys in keys.chunks(MAX_DELETE as usize) {
            let mut document = Vec::new();
            begin_delete(&mut document);
            keys.iter().for_each(|key| push_delete(&mut document, key));
            end_delete(&mut document);
            let probe = &mut untimed();
            match self.delete_document(bucket, &document, probe).await {
                Err(error) if error.kind == ErrorKind::Unsupported => {
                    for key in keys {
                        let mut prepared = self.prepare(&Call::new("DELETE", bucket, key));
                        match self.perform(&mut prepared, &mut Ignore, probe).await {
                            Err(error) if error.kind != ErrorKind::NotFound => return Err(error),
                            _ => {}
                        }
                    }
                }
                Err(error) if error.kind != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    async fn abort_uploads(&mut self, bucket: &str, prefix: &str) -> Result<u64, OpError> {
        let mut aborted = self.abort_listed(bucket, prefix, prefix).await?;
        // MinIO lists the uploads of a key, but not those under a prefix. It lists all of them.
        if aborted == 0 && !prefix.is_empty() {
            aborted = self.abort_listed(bucket, "", prefix).await?;
        }
        Ok(aborted)
    }

    async fn put_small(&mut self, bucket: &str, key: &str, body: &[u8]) -> Result<(), OpError> {
        let mut prepared = self.prepare(&Call::new("PUT", bucket, key).document(body));
        self.perform(&mut prepared, &mut Ignore, &mut untimed())
            .await
            .map(drop)
    }

    async fn get_small(&mut self, bucket: &str, key: &str) -> Result<Vec<u8>, OpError> {
        self.fetch(&Call::new("GET", bucket, key), MAX_SMALL).await
    }
}

impl S3Session {
    /// Lists uploads under `listed` and aborts those whose key begins with `prefix`.
    async fn abort_listed(
        &mut self,
        bucket: &str,
        listed: &str,
        prefix: &str,
    ) -> Result<u64, OpError> {
        let mut aborted = 0;
        let (mut key_marker, mut upload_marker) = (Vec::new(), Vec::new());
        loop {
            let mut query = Vec::new();
            uploads_query(&mut query, "", &key_marker, 1000, listed, &upload_marker);
            let call = Call::new("GET", bucket, "").query(&query);
            let body = match self.fetch(&call, MAX_PAGE).await {
                Err(error) if error.kind == ErrorKind::Unsupported => return Ok(aborted),
                other => other?,
            };
            let mut uploads = Vec::new();
            let mut key = String::new();
            let mut truncated = false;
            let (mut next_key, mut next_upload) = (Vec::new(), Vec::new());
            xml::leaves(&body, |path, text| match *path {
                [_, "Upload", "Key"] => key = text.get(),
                [_, "Upload", "UploadId"] => {
                    uploads.push((std::mem::take(&mut key), text.get()));
                }
                [_, "IsTruncated"] => truncated = text.is("true"),
                [_, "NextKeyMarker"] => next_key = text.get().into_bytes(),
                [_, "NextUploadIdMarker"] => next_upload = text.get().into_bytes(),
                _ => {}
            })
            .map_err(|e| unreadable("list of uploads", e))?;
            for (key, upload) in uploads {
                // Never abort what is not ours.
                if key.is_empty() || !key.starts_with(prefix) {
                    continue;
                }
                let probe = &mut untimed();
                match self
                    .abort_upload(bucket, &key, upload.as_bytes(), probe)
                    .await
                {
                    Ok(()) => aborted += 1,
                    Err(error) if error.kind == ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
            if !truncated {
                return Ok(aborted);
            }
            if next_key.is_empty() || (&next_key, &next_upload) == (&key_marker, &upload_marker) {
                return Err(no_way_on());
            }
            (key_marker, upload_marker) = (next_key, next_upload);
        }
    }
}
