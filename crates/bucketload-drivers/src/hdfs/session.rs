//! One worker's session: its own connections for reads, and a handle to its load thread's client of the
//! library.

use std::sync::Arc;

use bucketload_core::driver::{OpClass, OpResult, Probe, Request, Session};
use hdfs_native::Client;
use hdfs_native::client::ListStatusIterator;

use super::direct::DirectReader;
use super::driver::DriverShared;
use crate::hadoop::listing::Listed;
use crate::hadoop::path;
use crate::hadoop::semantics::unsupported;
use crate::http::park;

/// A session of the HDFS driver.
pub struct HdfsSession {
    pub(super) inner: Arc<DriverShared>,
    pub(super) client: Client,
    /// Connections for reads without the library.
    direct: Option<DirectReader>,
    pub(super) listed: Listed<Option<ListStatusIterator>>,
}

impl HdfsSession {
    pub(super) fn new(
        inner: Arc<DriverShared>,
        client: Client,
        direct: Option<DirectReader>,
    ) -> Self {
        Self {
            inner,
            client,
            direct,
            listed: Listed::default(),
        }
    }

    /// A get or range-get by the driver itself, or by the library for files that only the library can
    /// read.
    async fn read(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        if let (Some(direct), Some(target)) = (&mut self.direct, &self.inner.target)
            && let Some(done) = direct.get(target, request, probe).await?
        {
            return Ok(done);
        }
        Box::pin(self.get(request, probe)).await
    }

    async fn stat(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        match (&mut self.direct, &self.inner.target) {
            (Some(direct), Some(target)) => direct.head(target, request, probe).await,
            _ => Box::pin(self.head(request, probe)).await,
        }
    }

    /// The path of a key, or of the bucket for an empty one.
    pub(super) fn path(&self, bucket: &str, key: &str) -> String {
        let root = &self.inner.config.files.root;
        let mut out = String::with_capacity(root.len() + bucket.len() + key.len() + 2);
        path::push(&mut out, root, bucket, key);
        out
    }
}

impl Session for HdfsSession {
    async fn execute(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        // The library's futures are large and allocate anyway; boxed to keep idle sessions small.
        match request.op.class {
            OpClass::Get | OpClass::RangeGet => park(self.read(request, probe)).await,
            OpClass::Head => park(self.stat(request, probe)).await,
            OpClass::Put => Box::pin(self.put(request, true, probe)).await,
            OpClass::PutIfAbsent => Box::pin(self.put_if_absent(request, probe)).await,
            OpClass::Append => Box::pin(self.append(request, probe)).await,
            OpClass::Touch => Box::pin(self.touch(request, probe)).await,
            OpClass::Delete => Box::pin(self.delete(request, probe)).await,
            OpClass::Rename => Box::pin(self.rename(request, probe)).await,
            OpClass::List => Box::pin(self.list(request, probe)).await,
            OpClass::MakeBucket => Box::pin(self.make_bucket(request.bucket, probe)).await,
            OpClass::HeadBucket => Box::pin(self.find_bucket(request.bucket, probe)).await,
            OpClass::DeleteBucket => Box::pin(self.remove_bucket(request.bucket, probe)).await,
            OpClass::ListBuckets => Box::pin(self.list_buckets(probe)).await,
            class => Err(unsupported(class)),
        }
    }
}
