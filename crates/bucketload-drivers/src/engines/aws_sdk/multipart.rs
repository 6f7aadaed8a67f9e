//! Multipart uploads: one operation, several sequential requests.

use aws_sdk_s3::types::{CompletedMultipartUpload, CompletedPart};
use bucketload_core::driver::Completion;
use bucketload_core::error::{ErrorKind, OpError, OpResult};
use bucketload_core::op::{ByteRange, Op, Request};

use super::{AwsSdkClient, body};
use crate::engines::payload::{content_of, parts_of};
use crate::engines::reading::{copy_source, range_header};

fn missing(what: &str) -> OpError {
    OpError::new(ErrorKind::Protocol, format!("the answer has no {what}"))
}

impl AwsSdkClient {
    /// Starts an upload and returns its ID. `content`: whether parts are sent rather than copied.
    async fn create(&mut self, request: &Request<'_>, content: bool) -> OpResult<String> {
        let call = self.sdk.create_multipart_upload().bucket(request.bucket);
        let checksum = self.checksum.clone().filter(|_| content);
        let call = call.key(request.key).set_checksum_algorithm(checksum);
        let result = call.send().await;
        let answer = self.call_done(result)?;
        let id = answer.upload_id().map(str::to_owned);
        id.ok_or_else(|| missing("UploadId"))
    }

    async fn complete(
        &mut self,
        request: &Request<'_>,
        upload: &str,
        parts: Vec<CompletedPart>,
    ) -> OpResult<()> {
        let parts = CompletedMultipartUpload::builder()
            .set_parts(Some(parts))
            .build();
        let call = self.sdk.complete_multipart_upload().bucket(request.bucket);
        let call = call.key(request.key).upload_id(upload);
        let result = call.multipart_upload(parts).send().await;
        self.call_done(result).map(drop)
    }

    pub(super) async fn multipart_put(&mut self, request: &Request<'_>) -> OpResult {
        let content = content_of(request)?;
        let (count, part) = parts_of(content.size(), request.op.count)?;
        let upload = self.create(request, true).await?;
        let mut parts = Vec::new();
        for number in 1..=count {
            let offset = (number - 1) * part;
            let len = part.min(content.size() - offset);
            let stream = body::stream(&mut self.payload, content, offset, len);
            let number = i32::try_from(number).unwrap_or(i32::MAX);
            let call = self.sdk.upload_part().bucket(request.bucket);
            let call = call
                .key(request.key)
                .upload_id(&upload)
                .part_number(number)
                .set_checksum_algorithm(self.checksum.clone())
                .body(stream);
            let result = call.send().await;
            let answer = self.call_done(result)?;
            let sum = |sum: Option<&str>| sum.map(str::to_owned);
            parts.push(
                CompletedPart::builder()
                    .part_number(number)
                    .e_tag(answer.e_tag().ok_or_else(|| missing("ETag of the part"))?)
                    .set_checksum_crc32(sum(answer.checksum_crc32()))
                    .set_checksum_crc32_c(sum(answer.checksum_crc32_c()))
                    .set_checksum_crc64_nvme(sum(answer.checksum_crc64_nvme()))
                    .set_checksum_sha1(sum(answer.checksum_sha1()))
                    .set_checksum_sha256(sum(answer.checksum_sha256()))
                    .build(),
            );
        }
        self.complete(request, &upload, parts).await?;
        Ok(Completion {
            bytes: content.size(),
            items: count,
            ..Completion::default()
        })
    }

    pub(super) async fn multipart_copy(&mut self, request: &Request<'_>) -> OpResult {
        let op = &request.op;
        // An object of unknown size is copied as one part without a range.
        let whole = op.size == Op::UNKNOWN_SIZE || op.size == 0;
        let (count, part) = match whole {
            true => (1, 0),
            false => parts_of(op.size, op.count)?,
        };
        let upload = self.create(request, false).await?;
        let mut parts = Vec::new();
        for number in 1..=count {
            let offset = (number - 1) * part;
            let range = (!whole).then(|| ByteRange {
                offset,
                len: part.min(op.size - offset),
            });
            let number = i32::try_from(number).unwrap_or(i32::MAX);
            let call = self.sdk.upload_part_copy().bucket(request.bucket);
            let call = call
                .key(request.key)
                .upload_id(&upload)
                .part_number(number)
                .copy_source(copy_source(request))
                .set_copy_source_range(range.map(range_header));
            let result = call.send().await;
            let answer = self.call_done(result)?;
            let copied = answer.copy_part_result();
            let etag = copied.and_then(|result| result.e_tag());
            let etag = etag.ok_or_else(|| missing("ETag of the copied part"))?;
            parts.push(
                CompletedPart::builder()
                    .part_number(number)
                    .e_tag(etag)
                    .build(),
            );
        }
        self.complete(request, &upload, parts).await?;
        Ok(Completion {
            items: count,
            ..Completion::default()
        })
    }

    pub(super) async fn multipart_abort(&mut self, request: &Request<'_>) -> OpResult {
        let upload = self.create(request, false).await?;
        let call = self.sdk.abort_multipart_upload().bucket(request.bucket);
        let result = call.key(request.key).upload_id(upload).send().await;
        self.call_done(result).map(|_| Completion::default())
    }
}
