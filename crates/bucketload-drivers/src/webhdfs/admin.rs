//! Untimed control-plane calls.

use bucketload_core::driver::{Admin, KeyPage, Room};
use bucketload_core::error::{ErrorKind, OpResult};
use bucketload_core::record::Probe;

use super::documents;
use super::request::NameNodeCall;
use super::session::WebHdfsSession;
use crate::hadoop::{listing, path, prune};
use crate::http::answer::{MAX_SMALL, too_long};
use crate::http::control::ensure_bucket;
use crate::http::sink::Collect;

impl Admin for WebHdfsSession {
    async fn ensure_bucket(&mut self, bucket: &str) -> OpResult<bool> {
        let probe = &mut Probe::untimed();
        let create = async |session: &mut Self| session.make_bucket(bucket, probe).await;
        ensure_bucket(self, bucket, create).await
    }

    async fn head_bucket(&mut self, bucket: &str) -> OpResult<()> {
        self.find_bucket(bucket, &mut Probe::untimed())
            .await
            .map(drop)
    }

    async fn delete_bucket(&mut self, bucket: &str) -> OpResult<()> {
        self.head_bucket(bucket).await?;
        prune::remove_bucket(self, bucket).await
    }

    async fn list_keys(
        &mut self,
        bucket: &str,
        prefix: &str,
        after: Option<&str>,
    ) -> OpResult<KeyPage> {
        listing::page(self, bucket, prefix, after).await
    }

    async fn delete_keys(&mut self, bucket: &str, keys: &[String]) -> OpResult<()> {
        prune::delete_keys(self, bucket, keys).await
    }

    async fn room(&mut self, bucket: &str) -> OpResult<Option<Room>> {
        let probe = &mut Probe::untimed();
        let call = NameNodeCall::new("GET", "GETSTATUS", bucket, "");
        let asked = self.fetch(&call, probe).await;
        match asked {
            Ok(body) => documents::cluster_room(&body).map(Some),
            // Name nodes before Hadoop 3.4 do not know the call.
            Err(error) if error.kind == ErrorKind::Rejected || error.status == 400 => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn abort_uploads(&mut self, _bucket: &str, _prefix: &str) -> OpResult<u64> {
        Ok(0)
    }

    async fn put_small(&mut self, bucket: &str, key: &str, body: &[u8]) -> OpResult<()> {
        self.put_bytes(bucket, key, body).await
    }

    async fn get_small(&mut self, bucket: &str, key: &str) -> OpResult<Vec<u8>> {
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
