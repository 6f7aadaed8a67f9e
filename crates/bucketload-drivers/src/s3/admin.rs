//! Untimed calls of the control plane. They may allocate, and their errors are detailed: this is where an unusable
//! target is noticed, before a run.

use bucketload_core::driver::{Admin, KeyPage, KeyVersion, VersionPage};
use bucketload_core::error::{ErrorKind, OpResult};
use bucketload_core::op::BucketNeeds;
use bucketload_core::record::Probe;

use super::ops_list::{MAX_DELETE, MAX_PAGE, begin_delete, end_delete, push_delete};
use super::ops_list_marked::{After, UPLOADS};
use super::prepare::S3Call;
use super::session::S3Session;
use crate::http::answer::{no_next_page, unreadable};
use crate::http::control::{ensure_bucket, explain, ignore_missing, name_missing};
use crate::http::session::HttpSession as _;
use bucketload_s3::canonical::Header;
use bucketload_s3::xml;

impl Admin for S3Session {
    async fn ensure_bucket(&mut self, bucket: &str) -> OpResult<bool> {
        let probe = &mut Probe::untimed();
        let create = async |session: &mut Self| session.make_bucket(bucket, false, probe).await;
        ensure_bucket(self, bucket, create).await
    }

    async fn ensure_bucket_with(&mut self, bucket: &str, needs: BucketNeeds) -> OpResult<bool> {
        let probe = &mut Probe::untimed();
        let create = async |session: &mut Self| {
            // A bucket with object lock keeps versions from the start.
            let made = session.make_bucket(bucket, needs.lock, probe).await?;
            if needs.versions && !needs.lock {
                session.enable_versioning(bucket).await?;
            }
            Ok(made)
        };
        ensure_bucket(self, bucket, create).await
    }

    async fn check_needs(&mut self, bucket: &str, needs: BucketNeeds) -> OpResult<()> {
        self.bucket_offers(bucket, needs).await
    }

    async fn head_bucket(&mut self, bucket: &str) -> OpResult<()> {
        match self.head_one_bucket(bucket, &mut Probe::untimed()).await {
            Ok(_) => Ok(()),
            Err(error) => {
                let call = S3Call::new("GET", bucket, "").query(b"list-type=2&max-keys=1&prefix=");
                let mut request = self.prepare(&call);
                let error = explain(self, error, &mut request).await;
                Err(name_missing(error, "bucket", bucket))
            }
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
        self.list_page(bucket, prefix, after).await
    }

    async fn delete_keys(&mut self, bucket: &str, keys: &[String]) -> OpResult<()> {
        for keys in keys.chunks(MAX_DELETE as usize) {
            let mut document = Vec::new();
            begin_delete(&mut document);
            keys.iter().for_each(|key| push_delete(&mut document, key));
            end_delete(&mut document);
            let probe = &mut Probe::untimed();
            match self.delete_document(bucket, &document, probe).await {
                Err(error) if error.kind == ErrorKind::Unsupported => {
                    for key in keys {
                        let mut request = self.prepare(&S3Call::new("DELETE", bucket, key));
                        ignore_missing(self.settle(&mut request).await)?;
                    }
                }
                Err(error) if error.kind != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    async fn list_versions(
        &mut self,
        bucket: &str,
        prefix: &str,
        after: Option<&KeyVersion>,
    ) -> OpResult<VersionPage> {
        self.version_page(bucket, prefix, after).await
    }

    async fn delete_versions(&mut self, bucket: &str, versions: &[KeyVersion]) -> OpResult<()> {
        self.remove_versions(bucket, versions).await
    }

    async fn delete_locked_versions(
        &mut self,
        bucket: &str,
        versions: &[KeyVersion],
    ) -> OpResult<()> {
        self.remove_locked(bucket, versions).await
    }

    async fn abort_uploads(&mut self, bucket: &str, prefix: &str) -> OpResult<u64> {
        let mut aborted = self.abort_listed(bucket, prefix, prefix).await?;
        // MinIO lists the uploads of a single key or of the whole bucket, but not those under a prefix.
        if aborted == 0 && !prefix.is_empty() {
            aborted = self.abort_listed(bucket, "", prefix).await?;
        }
        Ok(aborted)
    }

    async fn put_small(&mut self, bucket: &str, key: &str, body: &[u8]) -> OpResult<()> {
        let mut request = self.prepare(&S3Call::new("PUT", bucket, key).document(body));
        self.settle(&mut request).await
    }

    async fn get_small(&mut self, bucket: &str, key: &str) -> OpResult<Vec<u8>> {
        let mut request = self.prepare(&S3Call::new("GET", bucket, key));
        self.small(&mut request).await
    }

    async fn get_small_version(
        &mut self,
        bucket: &str,
        key: &str,
    ) -> OpResult<(Vec<u8>, Option<String>)> {
        let mut request = self.prepare(&S3Call::new("GET", bucket, key));
        self.small_with(&mut request, "etag").await
    }

    async fn put_small_if(
        &mut self,
        bucket: &str,
        key: &str,
        body: &[u8],
        version: Option<&str>,
    ) -> OpResult<()> {
        let Some(version) = version else {
            return self.put_small(bucket, key, body).await;
        };
        let unchanged = [Header {
            name: "if-match",
            value: version.as_bytes(),
        }];
        let call = S3Call::new("PUT", bucket, key).headers(&unchanged);
        let mut request = self.prepare(&call.document(body));
        match self.settle(&mut request).await {
            // The server has no conditional writes (501, or 400 for the unknown field).
            Err(error) if matches!(error.kind, ErrorKind::Unsupported | ErrorKind::Rejected) => {
                self.put_small(bucket, key, body).await
            }
            outcome => outcome,
        }
    }
}

impl S3Session {
    /// Lists the uploads under `listed` and aborts those whose key starts with `prefix`.
    async fn abort_listed(&mut self, bucket: &str, listed: &str, prefix: &str) -> OpResult<u64> {
        let mut aborted = 0;
        let (mut key_marker, mut upload_marker) = (String::new(), String::new());
        loop {
            let mut query = Vec::new();
            let after = After {
                key: &key_marker,
                id: &upload_marker,
            };
            UPLOADS.query(&mut query, listed, 1000, after);
            let call = S3Call::new("GET", bucket, "").query(&query);
            let mut request = self.prepare(&call);
            let body = match self.fetch(&mut request, MAX_PAGE).await {
                Err(error) if error.kind == ErrorKind::Unsupported => return Ok(aborted),
                other => other?,
            };
            let mut uploads = Vec::new();
            let mut key = String::new();
            let mut truncated = false;
            let (mut next_key, mut next_upload) = (String::new(), String::new());
            xml::leaves(&body, |path, text| match *path {
                [_, "Upload", "Key"] => key = text.get(),
                [_, "Upload", "UploadId"] => {
                    uploads.push((std::mem::take(&mut key), text.get()));
                }
                [_, "IsTruncated"] => truncated = text.is("true"),
                [_, "NextKeyMarker"] => next_key = text.get(),
                [_, "NextUploadIdMarker"] => next_upload = text.get(),
                _ => {}
            })
            .map_err(|e| unreadable("list of uploads", e))?;
            for (key, upload) in uploads {
                // Never abort uploads of others.
                if key.is_empty() || !key.starts_with(prefix) {
                    continue;
                }
                let probe = &mut Probe::untimed();
                match self
                    .abort_upload(bucket, &key, upload.as_bytes(), probe)
                    .await
                {
                    Ok(_) => aborted += 1,
                    Err(error) if error.kind == ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
            if !truncated {
                return Ok(aborted);
            }
            if next_key.is_empty() || (&next_key, &next_upload) == (&key_marker, &upload_marker) {
                return Err(no_next_page());
            }
            (key_marker, upload_marker) = (next_key, next_upload);
        }
    }
}
