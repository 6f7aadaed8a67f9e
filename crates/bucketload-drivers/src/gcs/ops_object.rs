//! Operations on one object: get, range-get, put, head, delete, copy, and custom metadata in the place
//! of tags.

use bucketload_core::driver::Completion;
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::Request;
use bucketload_core::record::Probe;
use bucketload_s3::encode;

use super::session::{DONE, GcsSession, end, end_with_length, push_object, push_parameter};
use crate::http::exchange::Reply;
use crate::http::outgoing::Body;
use crate::http::pool::Buffer;
use crate::http::reading::Reading;
use crate::http::sink::Ignore;
use crate::http::span::Span;
use crate::json;
use crate::json_size::Size;
pub(crate) use bucketload_core::driver::content_of;

/// Most bytes of a control document in an answer.
pub(crate) const MAX_DOCUMENT: usize = 1 << 20;

impl GcsSession {
    pub(crate) async fn get(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let mut reading = Reading::of(request);
        let mut head = self.begin("GET");
        push_object(&mut head, request.bucket, request.key);
        head.extend_from_slice(b"?alt=media");
        self.fields(&mut head);
        if let Some(range) = reading.range() {
            head.extend_from_slice(b"Range: bytes=");
            encode::push_decimal(&mut head, range.offset);
            head.push(b'-');
            encode::push_decimal(&mut head, range.offset + range.len - 1);
            head.extend_from_slice(b"\r\n");
        }
        end(&mut head);
        let reply = self
            .perform(head, Body::Bytes(b""), &mut reading, probe)
            .await?;
        reading.finish(&reply)
    }

    /// A media upload on condition that there is no live object (`ifGenerationMatch=0`). A refusal of
    /// the condition is a success without items.
    pub(crate) async fn put_if_absent(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let content = content_of(request)?;
        let put = self.upload(request, Span::whole(content), true, probe);
        match put.await {
            Ok(done) => Ok(Completion { items: 1, ..done }),
            Err(error) if error.status == 412 => Ok(DONE),
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn put(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let content = content_of(request)?;
        self.upload(request, Span::whole(content), false, probe)
            .await
    }

    /// A media upload of `span` under the request's key.
    async fn upload(
        &mut self,
        request: &Request<'_>,
        span: Span<'_>,
        absent: bool,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        self.upload_as(request.bucket, request.key, "", span, absent, probe)
            .await
    }

    /// A media upload of `span` as `key` with `suffix`.
    pub(crate) async fn upload_as(
        &mut self,
        bucket: &str,
        key: &str,
        suffix: &str,
        span: Span<'_>,
        absent: bool,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let mut head = self.begin("POST");
        head.extend_from_slice(b"/upload/storage/v1/b/");
        encode::push_query(&mut head, bucket);
        head.extend_from_slice(b"/o?uploadType=media");
        push_parameter(&mut head, "name", key);
        encode::push_query(&mut head, suffix);
        if absent {
            head.extend_from_slice(b"&ifGenerationMatch=0");
        }
        head.extend_from_slice(b"&fields=size");
        self.fields(&mut head);
        head.extend_from_slice(b"Content-Type: application/octet-stream\r\n");
        end_with_length(&mut head, span.len);
        let mut size = Size::new();
        let reply = self
            .perform(head, Body::Content(span), &mut size, probe)
            .await?;
        taken(&reply, &size, span.len)?;
        Ok(Completion {
            bytes: span.len,
            ..DONE
        })
    }

    pub(crate) async fn head(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let mut head = self.begin("GET");
        push_object(&mut head, request.bucket, request.key);
        head.extend_from_slice(b"?fields=size");
        self.fields(&mut head);
        end(&mut head);
        let mut size = Size::new();
        let reply = self
            .perform(head, Body::Bytes(b""), &mut size, probe)
            .await?;
        let Some(size) = size.get() else {
            return Err(OpError::with_status(
                ErrorKind::Protocol,
                reply.status,
                "the object's metadata holds no size",
            ));
        };
        Ok(Completion {
            object_size: size,
            ..DONE
        })
    }

    pub(crate) async fn delete(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let mut head = self.begin("DELETE");
        push_object(&mut head, request.bucket, request.key);
        self.fields(&mut head);
        end(&mut head);
        self.perform(head, Body::Bytes(b""), &mut Ignore, probe)
            .await?;
        Ok(DONE)
    }

    /// Objects: rewrite. Large ones, or those that change place, take several requests; the token of an
    /// answer goes into the next.
    pub(crate) async fn copy(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let mut answer = Buffer::take();
        let mut token = Buffer::take();
        loop {
            let mut head = self.begin("POST");
            push_object(&mut head, request.bucket, request.source);
            head.extend_from_slice(b"/rewriteTo/b/");
            encode::push_query(&mut head, request.bucket);
            head.extend_from_slice(b"/o/");
            encode::push_query(&mut head, request.key);
            head.extend_from_slice(b"?fields=done,rewriteToken");
            if !token.is_empty() {
                let text = std::str::from_utf8(&token).unwrap_or_default();
                push_parameter(&mut head, "rewriteToken", text);
            }
            self.fields(&mut head);
            end_with_length(&mut head, 0);
            let reply = self
                .document(head, b"", &mut answer, MAX_DOCUMENT, probe)
                .await?;
            let mut done = false;
            token.clear();
            json::values(&answer, |path, value| match (path, value) {
                (["done"], json::Value::Bool(value)) => done = value,
                (["rewriteToken"], json::Value::Text(text)) => text.push_to(&mut token),
                _ => {}
            })
            .map_err(|e| unreadable("answer to the rewrite", e))?;
            if done {
                return Ok(DONE);
            }
            if token.is_empty() {
                return Err(OpError::with_status(
                    ErrorKind::Protocol,
                    reply.status,
                    "the rewrite is not done and does not say how to go on",
                ));
            }
        }
    }

    /// Cloud Storage has no tags of objects; custom metadata is what applications put there.
    pub(crate) async fn put_tagging(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let mut document = Buffer::take();
        document.extend_from_slice(b"{\"metadata\":{\"bucketload\":\"");
        encode::push_decimal(&mut document, u64::from(request.op.version));
        document.extend_from_slice(b"\"}}");
        self.patch(request, &document, probe).await?;
        Ok(Completion { items: 1, ..DONE })
    }

    pub(crate) async fn delete_tagging(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        self.patch(request, b"{\"metadata\":{\"bucketload\":null}}", probe)
            .await
    }

    async fn patch(
        &mut self,
        request: &Request<'_>,
        document: &[u8],
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let mut head = self.begin("PATCH");
        push_object(&mut head, request.bucket, request.key);
        head.extend_from_slice(b"?fields=metageneration");
        self.fields(&mut head);
        head.extend_from_slice(b"Content-Type: application/json\r\n");
        end_with_length(&mut head, document.len() as u64);
        self.perform(head, Body::Bytes(document), &mut Ignore, probe)
            .await?;
        Ok(DONE)
    }

    pub(crate) async fn get_tagging(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let mut head = self.begin("GET");
        push_object(&mut head, request.bucket, request.key);
        head.extend_from_slice(b"?fields=metadata");
        self.fields(&mut head);
        end(&mut head);
        let mut answer = Buffer::take();
        self.document(head, b"", &mut answer, MAX_DOCUMENT, probe)
            .await?;
        let mut items = 0;
        json::values(&answer, |path, value| {
            // What was removed is gone, or empty (fake-gcs-server).
            let set = value.text().is_some_and(|text| !text.is_empty());
            items += u64::from(set && matches!(path, ["metadata", _]));
        })
        .map_err(|e| unreadable("metadata", e))?;
        Ok(Completion { items, ..DONE })
    }
}

/// Checks that an upload was taken as long as it is.
pub(crate) fn taken(reply: &Reply, size: &Size, len: u64) -> Result<(), OpError> {
    match size.get() {
        Some(taken) if taken != len => Err(OpError::with_status(
            ErrorKind::Corrupt,
            reply.status,
            format!("the object made of {len} bytes has {taken}"),
        )),
        _ => Ok(()),
    }
}

/// A successful answer whose document cannot be read.
#[cold]
pub(crate) fn unreadable(what: &str, error: json::Malformed) -> OpError {
    OpError::new(
        ErrorKind::Protocol,
        format!("the {what} cannot be read: {error}"),
    )
}
