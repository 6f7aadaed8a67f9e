//! Untimed calls of the control plane.

use bucketload_core::driver::{Admin, KeyPage};
use bucketload_core::error::{ErrorKind, OpError};

use super::list::NameNode;
use super::request::Call;
use super::session::{WebHdfsSession, untimed};
use crate::hadoop::{listing, path, prune};
use crate::http::sink::Collect;

/// Most bytes of a small object.
const MAX_SMALL: usize = 16 << 20;

impl Admin for WebHdfsSession {
    async fn ensure_bucket(&mut self, bucket: &str) -> Result<bool, OpError> {
        match self.head_bucket(bucket).await {
            Ok(()) => return Ok(false),
            Err(error) if error.kind == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        self.make_bucket(bucket, &mut untimed()).await?;
        Ok(true)
    }

    async fn head_bucket(&mut self, bucket: &str) -> Result<(), OpError> {
        self.find_bucket(bucket, &mut untimed()).await.map(drop)
    }

    async fn delete_bucket(&mut self, bucket: &str) -> Result<(), OpError> {
        self.head_bucket(bucket).await?;
        let mut tree = NameNode {
            session: self,
            probe: &mut untimed(),
        };
        match prune::remove_empty(&mut tree, bucket, "").await? {
            true => Ok(()),
            false => Err(OpError::new(
                ErrorKind::Conflict,
                format!("the directory `{bucket}` is not empty"),
            )),
        }
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
            probe: &mut untimed(),
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
            match self.unlink(bucket, key, &mut untimed()).await {
                Err(error) if error.kind != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        // Only where this session has looked before: other directories are none of its business.
        let Some((_, prefix)) = self.listed.clone().filter(|(listed, _)| listed == bucket) else {
            return Ok(());
        };
        let mut tree = NameNode {
            session: self,
            probe: &mut untimed(),
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
        let probe = &mut untimed();
        let call = Call::new("GET", "OPEN&noredirect=true", bucket, key);
        let location = self.locate(&call, probe).await?;
        let mut body = Vec::new();
        let mut sink = Collect::new(&mut body, MAX_SMALL);
        self.take(&location, &mut sink, probe).await?;
        match sink.overflow {
            false => Ok(body),
            true => Err(OpError::new(
                ErrorKind::Protocol,
                format!("`{key}` is longer than a small object can be"),
            )),
        }
    }
}
