//! Operations on one object.

use aws_sdk_s3::types::{Tag, Tagging};
use bucketload_core::driver::{Completion, DONE};
use bucketload_core::error::{ErrorKind, OpError, OpResult};
use bucketload_core::op::{OpClass, Request};

use super::{AwsSdkClient, body};
use crate::engines::failure;
use crate::engines::payload::content_of;
use crate::engines::reading::{check_range, copy_source, range_header};
use crate::http::reading::Reading;
use crate::http::sink::Sink as _;

impl AwsSdkClient {
    pub(super) async fn get(&mut self, request: &Request<'_>) -> OpResult {
        let mut reading = Reading::of(request);
        let call = self
            .sdk
            .get_object()
            .bucket(request.bucket)
            .key(request.key);
        let call = call.set_range(reading.range().map(range_header));
        let result = call.send().await;
        let mut answer = match result {
            Ok(answer) => answer,
            Err(_) => return self.call_done(result).map(|_| DONE),
        };
        let mut received = 0;
        loop {
            match answer.body.try_next().await {
                Ok(Some(bytes)) => {
                    received += bytes.len() as u64;
                    if reading.wants_body() {
                        reading.data(&bytes);
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    self.shared_probe.lock().done();
                    let mut error = failure::from_cause(&error);
                    if error.detail.contains("checksum") {
                        error.kind = ErrorKind::Corrupt;
                    }
                    return Err(error);
                }
            }
        }
        self.shared_probe.lock().done();
        let status = self.shared_probe.lock().status();
        let start = check_range(request, status, answer.content_range())?;
        reading.judge(status, received, start)
    }

    pub(super) async fn put(&mut self, request: &Request<'_>) -> OpResult {
        let content = content_of(request)?;
        let absent = request.op.class == OpClass::PutIfAbsent;
        let stream = body::stream(&mut self.payload, content, 0, content.size());
        let call = self
            .sdk
            .put_object()
            .bucket(request.bucket)
            .key(request.key);
        let call = call
            .set_checksum_algorithm(self.checksum.clone())
            .set_if_none_match(absent.then(|| "*".to_owned()))
            .body(stream);
        let result = call.send().await;
        match self.call_done(result) {
            Ok(_) => Ok(Completion {
                bytes: content.size(),
                items: u64::from(absent),
                ..DONE
            }),
            Err(error) if absent && error.status == 412 => Ok(DONE),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn head(&mut self, request: &Request<'_>) -> OpResult {
        let call = self
            .sdk
            .head_object()
            .bucket(request.bucket)
            .key(request.key);
        let result = call.send().await;
        let size = self.call_done(result)?.content_length();
        let size = size.and_then(|size| u64::try_from(size).ok());
        Ok(Completion {
            object_size: size.ok_or_else(|| {
                OpError::new(ErrorKind::Protocol, "the answer has no Content-Length")
            })?,
            ..DONE
        })
    }

    pub(super) async fn delete(&mut self, request: &Request<'_>) -> OpResult {
        let call = self
            .sdk
            .delete_object()
            .bucket(request.bucket)
            .key(request.key);
        let result = call.send().await;
        self.call_done(result).map(|_| DONE)
    }

    pub(super) async fn copy(&mut self, request: &Request<'_>) -> OpResult {
        let call = self
            .sdk
            .copy_object()
            .bucket(request.bucket)
            .key(request.key);
        let result = call.copy_source(copy_source(request)).send().await;
        self.call_done(result).map(|_| DONE)
    }

    pub(super) async fn put_tagging(&mut self, request: &Request<'_>) -> OpResult {
        let tag = Tag::builder()
            .key("bucketload")
            .value(request.op.version.to_string())
            .build()
            .and_then(|tag| Tagging::builder().tag_set(tag).build())
            .map_err(|e| OpError::new(ErrorKind::Rejected, e.to_string()))?;
        let call = self.sdk.put_object_tagging().bucket(request.bucket);
        let result = call.key(request.key).tagging(tag).send().await;
        self.call_done(result)
            .map(|_| Completion { items: 1, ..DONE })
    }

    pub(super) async fn get_tagging(&mut self, request: &Request<'_>) -> OpResult {
        let call = self.sdk.get_object_tagging().bucket(request.bucket);
        let result = call.key(request.key).send().await;
        self.call_done(result).map(|answer| Completion {
            items: answer.tag_set().len() as u64,
            ..DONE
        })
    }

    pub(super) async fn delete_tagging(&mut self, request: &Request<'_>) -> OpResult {
        let call = self.sdk.delete_object_tagging().bucket(request.bucket);
        let result = call.key(request.key).send().await;
        self.call_done(result).map(|_| DONE)
    }
}
