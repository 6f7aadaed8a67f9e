//! Untimed calls: preflight checks, the ownership mark, clean-up.

use bucketload_core::driver::{Admin, Completion, DONE, KeyPage};
use bucketload_core::error::OpError;
use bucketload_core::record::Probe;

use super::session::{Names, ToySession, each_line};
use crate::http::control::{ensure_bucket, ignore_missing, name_missing};
use crate::http::outgoing::{Body, NO_BODY};
use crate::http::session::{HttpSession as _, Rendering as _};

/// Keys per page.
const PAGE: u64 = 1000;

impl ToySession {
    async fn make_bucket(&mut self, bucket: &str) -> Result<Completion, OpError> {
        let head = self.about("PUT", bucket, "");
        let mut make = self.with(head, "", NO_BODY);
        self.settle(&mut make).await.map(|()| DONE)
    }
}

impl Admin for ToySession {
    async fn ensure_bucket(&mut self, bucket: &str) -> Result<bool, OpError> {
        let create = async |session: &mut Self| session.make_bucket(bucket).await;
        ensure_bucket(self, bucket, create).await
    }

    async fn head_bucket(&mut self, bucket: &str) -> Result<(), OpError> {
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

    async fn delete_bucket(&mut self, bucket: &str) -> Result<(), OpError> {
        let head = self.about("DELETE", bucket, "");
        let mut delete = self.bare(head);
        self.settle(&mut delete).await
    }

    async fn list_keys(
        &mut self,
        bucket: &str,
        prefix: &str,
        after: Option<&str>,
    ) -> Result<KeyPage, OpError> {
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
        Ok(KeyPage {
            keys,
            next,
            note: None,
        })
    }

    async fn delete_keys(&mut self, bucket: &str, keys: &[String]) -> Result<(), OpError> {
        for key in keys {
            let head = self.about("DELETE", bucket, key);
            let mut delete = self.bare(head);
            ignore_missing(self.settle(&mut delete).await)?;
        }
        Ok(())
    }

    /// The API has no multipart uploads.
    async fn abort_uploads(&mut self, _bucket: &str, _prefix: &str) -> Result<u64, OpError> {
        Ok(0)
    }

    async fn put_small(&mut self, bucket: &str, key: &str, body: &[u8]) -> Result<(), OpError> {
        let head = self.about("PUT", bucket, key);
        let mut put = self.with(head, "", Body::Bytes(body));
        self.settle(&mut put).await
    }

    async fn get_small(&mut self, bucket: &str, key: &str) -> Result<Vec<u8>, OpError> {
        let head = self.about("GET", bucket, key);
        let mut get = self.bare(head);
        self.small(&mut get).await
    }
}
