//! Untimed control-plane calls.

use bucketload_core::driver::{Admin, KeyPage};
use bucketload_core::error::OpError;
use bucketload_core::record::Probe;

use super::list::NameNode;
use super::request::NameNodeCall;
use super::session::WebHdfsSession;
use crate::hadoop::{listing, path, prune};
use crate::http::answer::{MAX_SMALL, too_long};
use crate::http::control::{ensure_bucket, unless_gone};
use crate::http::sink::Collect;

impl Admin for WebHdfsSession {
    async fn ensure_bucket(&mut self, bucket: &str) -> Result<bool, OpError> {
        let probe = &mut Probe::untimed();
        let create = async |session: &mut Self| session.make_bucket(bucket, probe).await;
        ensure_bucket(self, bucket, create).await
    }

    async fn head_bucket(&mut self, bucket: &str) -> Result<(), OpError> {
        self.find_bucket(bucket, &mut Probe::untimed())
            .await
            .map(drop)
    }

    async fn delete_bucket(&mut self, bucket: &str) -> Result<(), OpError> {
        self.head_bucket(bucket).await?;
        let mut tree = NameNode {
            session: self,
            probe: &mut Probe::untimed(),
        };
        prune::remove_bucket(&mut tree, bucket).await
    }

    async fn list_keys(
        &mut self,
        bucket: &str,
        prefix: &str,
        after: Option<&str>,
    ) -> Result<KeyPage, OpError> {
        self.listed = Some((bucket.to_owned(), prefix.to_owned()));
        let mut walk = self.walk.take();
        let mut lister = NameNode {
            session: self,
            probe: &mut Probe::untimed(),
        };
        let page = listing::page(&mut lister, &mut walk, bucket, prefix, after).await?;
        self.walk = walk;
        if page.keys.is_empty() && after.is_none() {
            self.head_bucket(bucket).await?;
        }
        Ok(page)
    }

    async fn delete_keys(&mut self, bucket: &str, keys: &[String]) -> Result<(), OpError> {
        for key in keys {
            path::check(bucket, key)?;
            unless_gone(self.unlink(bucket, key, &mut Probe::untimed()).await)?;
        }
        // Only below the prefix that this session listed; other directories may not belong to the run.
        let Some((_, prefix)) = self.listed.clone().filter(|(listed, _)| listed == bucket) else {
            return Ok(());
        };
        let mut tree = NameNode {
            session: self,
            probe: &mut Probe::untimed(),
        };
        prune::after_deleting(&mut tree, bucket, &prefix, keys).await
    }

    async fn abort_uploads(&mut self, _bucket: &str, _prefix: &str) -> Result<u64, OpError> {
        Ok(0)
    }

    async fn put_small(&mut self, bucket: &str, key: &str, body: &[u8]) -> Result<(), OpError> {
        self.put_bytes(bucket, key, body).await
    }

    async fn get_small(&mut self, bucket: &str, key: &str) -> Result<Vec<u8>, OpError> {
        path::check(bucket, key)?;
        let probe = &mut Probe::untimed();
        let call = NameNodeCall::new("GET", "OPEN&noredirect=true", bucket, key);
        let location = self.locate(&call, probe).await?;
        let mut body = Vec::new();
        let mut sink = Collect::new(&mut body, MAX_SMALL);
        self.read_from(&location, &mut sink, probe).await?;
        match sink.overflow {
            false => Ok(body),
            true => Err(too_long(200)),
        }
    }
}
