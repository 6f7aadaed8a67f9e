//! Operations on buckets.

use bucketload_core::driver::{Completion, DONE};
use bucketload_core::error::OpResult;
use bucketload_core::record::Probe;

use super::prepare::S3Call;
use super::session::S3Session;
use crate::http::answer::unreadable;
use crate::http::pool::Buffer;
use crate::http::session::HttpSession as _;
use bucketload_s3::canonical::Header;
use bucketload_s3::xml;

/// Maximum size of a list of buckets, in bytes: 10 000 names with dates take about 2 MiB.
const MAX_BUCKETS: usize = 32 << 20;

/// Makes a new bucket with object lock.
const WITH_LOCK: [Header<'static>; 1] = [Header {
    name: "x-amz-bucket-object-lock-enabled",
    value: b"true",
}];

impl S3Session {
    /// Creates a bucket, with object lock if `lock`.
    pub(crate) async fn make_bucket(
        &mut self,
        bucket: &str,
        lock: bool,
        probe: &mut Probe,
    ) -> OpResult {
        let mut document = Buffer::take();
        // Buckets without a location are in us-east-1, and naming that region is an error.
        let region = &self.shared.config().region;
        if region != "us-east-1" {
            document.extend_from_slice(
                b"<CreateBucketConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
                  <LocationConstraint>",
            );
            xml::push_escaped(&mut document, region);
            document.extend_from_slice(b"</LocationConstraint></CreateBucketConfiguration>");
        }
        let mut call = S3Call::new("PUT", bucket, "");
        if lock {
            call = call.headers(&WITH_LOCK);
        }
        if !document.is_empty() {
            call = call.document(&document);
        }
        let mut prepared = self.prepare(&call);
        self.complete(&mut prepared, probe).await
    }

    pub(crate) async fn head_one_bucket(&mut self, bucket: &str, probe: &mut Probe) -> OpResult {
        let mut request = self.prepare(&S3Call::new("HEAD", bucket, ""));
        self.complete(&mut request, probe).await
    }

    pub(crate) async fn remove_bucket(&mut self, bucket: &str, probe: &mut Probe) -> OpResult {
        let mut request = self.prepare(&S3Call::new("DELETE", bucket, ""));
        self.complete(&mut request, probe).await
    }

    pub(crate) async fn list_buckets(&mut self, probe: &mut Probe) -> OpResult {
        let mut body = Buffer::take();
        let mut request = self.prepare(&S3Call::new("GET", "", ""));
        self.document(&mut request, &mut body, MAX_BUCKETS, probe)
            .await?;
        let mut items = 0;
        xml::leaves(&body, |path, _| {
            items += u64::from(path.ends_with(&["Bucket", "Name"]));
        })
        .map_err(|e| unreadable("list of buckets", e))?;
        Ok(Completion { items, ..DONE })
    }
}
