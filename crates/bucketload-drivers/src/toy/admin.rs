//! Untimed calls: preflight checks, the ownership mark, clean-up.

use bucketload_core::driver::{Admin, DONE, KeyPage, OpResult, Probe};

use super::session::{Names, ToySession, each_line};
use crate::http::control::{ensure_bucket, ignore_missing, name_missing};
use crate::http::{Body, HttpSession as _, NO_BODY, Rendering as _};

/// Keys per page.
const PAGE: u64 = 1000;

impl ToySession {
    async fn make_bucket(&mut self, bucket: &str) -> OpResult {
        let head = self.about("PUT", bucket, "");
        let mut make = self.with(head, "", NO_BODY);
        self.settle(&mut make).await.map(|()| DONE)
    }
}

impl Admin for ToySession {
    async fn ensure_bucket(&mut self, bucket: &str) -> OpResult<bool> {
        let create = async |session: &mut Self| session.make_bucket(bucket).await;
        ensure_bucket(self, bucket, create).await
    }

    async fn head_bucket(&mut self, bucket: &str) -> OpResult<()> {
        let names = Names {
            prefix: "",
            delimiter: "",
            count: 1,
            after: "",
        };
        self.page(bucket, &names, &mut Vec::new(), &mut Probe::untimed())
            .await
            .map_err(|error| name_missing(error, "bucket", bucket))
    }

    async fn delete_bucket(&mut self, bucket: &str) -> OpResult<()> {
        let head = self.about("DELETE", bucket, "");
        let mut delete = self.bare(head);
        self.settle(&mut delete).await
    }

    async fn list_keys(
        &mut self,
        bucket: &str,
        prefix: &str,
        after: Option<&str>,
    ) -> OpResult<KeyPage> {
        let names = Names {
            prefix,
            delimiter: "",
            count: PAGE,
            after: after.unwrap_or_default(),
        };
        let mut body = Vec::new();
        self.page(bucket, &names, &mut body, &mut Probe::untimed())
            .await?;
        let mut keys = Vec::new();
        let next = each_line(&body, |_, name| keys.push(name.to_owned()));
        Ok(KeyPage::new(keys, next))
    }

    async fn delete_keys(&mut self, bucket: &str, keys: &[String]) -> OpResult<()> {
        for key in keys {
            let head = self.about("DELETE", bucket, key);
            let mut delete = self.bare(head);
            ignore_missing(self.settle(&mut delete).await)?;
        }
        Ok(())
    }

    /// The API has no multipart uploads.
    async fn abort_uploads(&mut self, _bucket: &str, _prefix: &str) -> OpResult<u64> {
        Ok(0)
    }

    async fn put_small(&mut self, bucket: &str, key: &str, body: &[u8]) -> OpResult<()> {
        let head = self.about("PUT", bucket, key);
        let mut put = self.with(head, "", Body::Bytes(body));
        self.settle(&mut put).await
    }

    async fn get_small(&mut self, bucket: &str, key: &str) -> OpResult<Vec<u8>> {
        let head = self.about("GET", bucket, key);
        let mut get = self.bare(head);
        self.small(&mut get).await
    }
}
