//! Operations on several objects and on buckets.

use aws_sdk_s3::types::{
    BucketLocationConstraint, CreateBucketConfiguration, Delete, ObjectIdentifier,
};
use bucketload_core::driver::Completion;
use bucketload_core::error::{ErrorKind, OpError, OpResult};
use bucketload_core::op::Request;

use super::AwsSdkClient;
use crate::engines::payload::keys_of;
use crate::http::answer::one_line;
use crate::s3::error_map::{Context, ErrorDocument, to_error};

/// Most keys per deletion (Amazon S3 API Reference, DeleteObjects).
const MAX_DELETE: u64 = 1000;

fn items(items: u64) -> Completion {
    Completion {
        items,
        ..Completion::default()
    }
}

/// Keys per page; `None` leaves it to the store.
fn per_page(request: &Request<'_>) -> Option<i32> {
    (request.op.count > 0).then(|| i32::try_from(request.op.count).unwrap_or(i32::MAX))
}

fn delimiter(request: &Request<'_>) -> Option<String> {
    (!request.delimiter.is_empty()).then(|| request.delimiter.to_owned())
}

/// How a listing continues after a page.
enum NextPage {
    Go(String),
    End,
}

/// Counts the pages of a listing and decides whether to continue.
fn after_page(
    request: &Request<'_>,
    pages: &mut u32,
    truncated: bool,
    next: Option<String>,
    before: Option<&str>,
) -> OpResult<NextPage> {
    *pages += 1;
    if !truncated || (request.op.pages > 0 && *pages >= request.op.pages) {
        if let Some(watch) = request.watch.filter(|_| truncated) {
            watch.cut_short();
        }
        return Ok(NextPage::End);
    }
    match next.filter(|next| Some(next.as_str()) != before) {
        Some(next) => Ok(NextPage::Go(next)),
        None => Err(OpError::new(
            ErrorKind::Protocol,
            "the listing is truncated but does not say where to continue",
        )),
    }
}

impl AwsSdkClient {
    pub(super) async fn list_v2(&mut self, request: &Request<'_>) -> OpResult {
        let (mut found, mut pages, mut from) = (0, 0, None::<String>);
        loop {
            let call = self.sdk.list_objects_v2().bucket(request.bucket);
            let call = call
                .prefix(request.key)
                .set_delimiter(delimiter(request))
                .set_max_keys(per_page(request))
                .set_continuation_token(from.clone());
            let result = call.send().await;
            let page = self.call_done(result)?;
            found += (page.contents().len() + page.common_prefixes().len()) as u64;
            if let Some(watch) = request.watch {
                let keys = page.contents().iter().filter_map(|object| object.key());
                keys.for_each(|key| watch.listed(key));
            }
            let truncated = page.is_truncated().unwrap_or(false);
            let next = page.next_continuation_token().map(str::to_owned);
            match after_page(request, &mut pages, truncated, next, from.as_deref())? {
                NextPage::Go(next) => from = Some(next),
                NextPage::End => return Ok(items(found)),
            }
        }
    }

    pub(super) async fn list_v1(&mut self, request: &Request<'_>) -> OpResult {
        let (mut found, mut pages, mut from) = (0, 0, None::<String>);
        loop {
            let call = self.sdk.list_objects().bucket(request.bucket);
            let call = call
                .prefix(request.key)
                .set_delimiter(delimiter(request))
                .set_max_keys(per_page(request))
                .set_marker(from.clone());
            let result = call.send().await;
            let page = self.call_done(result)?;
            let keys = page.contents().iter().filter_map(|object| object.key());
            let groups = page.common_prefixes().iter().filter_map(|p| p.prefix());
            found += (page.contents().len() + page.common_prefixes().len()) as u64;
            if let Some(watch) = request.watch {
                keys.clone().for_each(|key| watch.listed(key));
            }
            // Without a delimiter the listing continues after the last key.
            let last = keys.chain(groups).max().map(str::to_owned);
            let next = page.next_marker().filter(|m| !m.is_empty());
            let next = next.map(str::to_owned).or(last);
            let truncated = page.is_truncated().unwrap_or(false);
            match after_page(request, &mut pages, truncated, next, from.as_deref())? {
                NextPage::Go(next) => from = Some(next),
                NextPage::End => return Ok(items(found)),
            }
        }
    }

    pub(super) async fn list_uploads(&mut self, request: &Request<'_>) -> OpResult {
        let (mut found, mut pages) = (0, 0);
        let (mut key, mut upload) = (None::<String>, None::<String>);
        loop {
            let call = self.sdk.list_multipart_uploads().bucket(request.bucket);
            let call = call
                .prefix(request.key)
                .set_delimiter(delimiter(request))
                .set_max_uploads(per_page(request))
                .set_key_marker(key.clone())
                .set_upload_id_marker(upload.clone());
            let result = call.send().await;
            let page = self.call_done(result)?;
            found += (page.uploads().len() + page.common_prefixes().len()) as u64;
            let truncated = page.is_truncated().unwrap_or(false);
            let next_upload = page.next_upload_id_marker().map(str::to_owned);
            // With several uploads of one key, only the upload part of the marker advances.
            let before = key.as_deref().filter(|_| next_upload == upload);
            let next = page.next_key_marker().map(str::to_owned);
            match after_page(request, &mut pages, truncated, next, before)? {
                NextPage::Go(next) => (key, upload) = (Some(next), next_upload),
                NextPage::End => return Ok(items(found)),
            }
        }
    }

    pub(super) async fn delete_many(&mut self, request: &Request<'_>) -> OpResult {
        let rejected = |text: String| OpError::new(ErrorKind::Rejected, text);
        let keys = keys_of(request, MAX_DELETE)?;
        let mut delete = Delete::builder().quiet(true);
        for key in keys {
            let object = ObjectIdentifier::builder().key(key).build();
            delete = delete.objects(object.map_err(|e| rejected(e.to_string()))?);
        }
        let delete = delete.build().map_err(|e| rejected(e.to_string()))?;
        let call = self.sdk.delete_objects().bucket(request.bucket);
        let call = call.set_checksum_algorithm(self.checksum.clone());
        let result = call.delete(delete).send().await;
        let answer = self.call_done(result)?;
        let Some(first) = answer.errors().first() else {
            return Ok(items(request.op.count));
        };
        let document = ErrorDocument {
            code: one_line(first.code().unwrap_or_default()),
            message: one_line(first.message().unwrap_or_default()),
            ..ErrorDocument::default()
        };
        let context = Context {
            region: &self.config.region,
            credentials: self.config.credentials.as_ref(),
            bucket_region: "",
            location: "",
        };
        // There is no status per key; the code determines the kind.
        let mut error = to_error(500, &document, &context);
        error.status = self.shared_probe.lock().status();
        let failed = answer.errors().len();
        error.detail = format!("{failed} keys were not deleted; {}", error.detail).into();
        Err(error)
    }

    pub(super) async fn make_bucket(&mut self, request: &Request<'_>) -> OpResult {
        // Buckets without a location are in us-east-1, and naming that region is an error.
        let place = (self.config.region != "us-east-1").then(|| {
            let region = BucketLocationConstraint::from(self.config.region.as_str());
            CreateBucketConfiguration::builder()
                .location_constraint(region)
                .build()
        });
        let call = self.sdk.create_bucket().bucket(request.bucket);
        let result = call.set_create_bucket_configuration(place).send().await;
        self.call_done(result).map(|_| Completion::default())
    }

    pub(super) async fn head_bucket(&mut self, request: &Request<'_>) -> OpResult {
        let result = self.sdk.head_bucket().bucket(request.bucket).send().await;
        self.call_done(result).map(|_| Completion::default())
    }

    pub(super) async fn delete_bucket(&mut self, request: &Request<'_>) -> OpResult {
        let result = self.sdk.delete_bucket().bucket(request.bucket).send().await;
        self.call_done(result).map(|_| Completion::default())
    }

    pub(super) async fn list_buckets(&mut self) -> OpResult {
        let result = self.sdk.list_buckets().send().await;
        let answer = self.call_done(result)?;
        Ok(items(answer.buckets().len() as u64))
    }
}
