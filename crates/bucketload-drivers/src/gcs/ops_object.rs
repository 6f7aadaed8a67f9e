//! Operations on one object: get, range-get, put, head, delete, copy, and custom metadata instead of
//! tags.

use bucketload_core::driver::{
    Completion, DONE, ErrorKind, OpError, OpResult, Probe, Request, content_of,
};
use bucketload_s3::encode;

use super::session::{GcsSession, push_object};
use crate::http::answer::{MAX_DOCUMENT, as_text, if_absent, unreadable};
use crate::http::{
    Body, Buffer, HttpSession as _, NO_BODY, Plain, Reading, Render as _, Rendering as _, Reply,
    Span,
};
use crate::json;
use crate::json_size::Size;

impl GcsSession {
    pub(crate) async fn get(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let mut reading = Reading::of(request);
        let mut head = self.begin("GET");
        push_object(&mut head, request.bucket, request.key);
        head.text("?alt=media");
        self.fields(&mut head);
        head.range(reading.range());
        let mut request = Plain::bare(head);
        let reply = self.perform(&mut request, &mut reading, probe).await?;
        reading.finish(&reply)
    }

    /// A media upload on condition that no live object exists (`ifGenerationMatch=0`). A failed
    /// condition counts as a success without items.
    pub(crate) async fn put_if_absent(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        if_absent(self.upload(request, true, probe).await)
    }

    pub(crate) async fn put(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        self.upload(request, false, probe).await
    }

    /// A media upload of the request's content under its key.
    async fn upload(&mut self, request: &Request<'_>, absent: bool, probe: &mut Probe) -> OpResult {
        let span = Span::whole(content_of(request)?);
        self.upload_as(request.bucket, request.key, "", span, absent, probe)
            .await
    }

    /// A media upload of `span` as `key` followed by `suffix`.
    pub(crate) async fn upload_as(
        &mut self,
        bucket: &str,
        key: &str,
        suffix: &str,
        span: Span<'_>,
        absent: bool,
        probe: &mut Probe,
    ) -> OpResult {
        let mut head = self.begin_upload("media", bucket, key);
        encode::push_query(&mut head, suffix);
        if absent {
            head.text("&ifGenerationMatch=0");
        }
        head.text("&fields=size");
        let mut request = self.with(head, "application/octet-stream", Body::Content(span));
        let mut size = Size::new();
        let reply = self.perform(&mut request, &mut size, probe).await?;
        check_size(&reply, &size, span.len)?;
        Ok(Completion::of_bytes(span.len))
    }

    pub(crate) async fn head(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let mut head = self.begin("GET");
        push_object(&mut head, request.bucket, request.key);
        head.text("?fields=size");
        let mut request = self.bare(head);
        let mut size = Size::new();
        let reply = self.perform(&mut request, &mut size, probe).await?;
        let Some(size) = size.get() else {
            return Err(OpError::with_status(
                ErrorKind::Protocol,
                reply.status,
                "the object's metadata contains no size",
            ));
        };
        Ok(Completion::of_size(size))
    }

    pub(crate) async fn delete(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let mut head = self.begin("DELETE");
        push_object(&mut head, request.bucket, request.key);
        let mut request = self.bare(head);
        self.complete(&mut request, probe).await
    }

    /// Objects: rewrite. Large objects, or those that change location, take several requests; each
    /// answer's token goes into the next request.
    pub(crate) async fn copy(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let mut answer = Buffer::take();
        let mut token = Buffer::take();
        loop {
            let mut head = self.begin("POST");
            push_object(&mut head, request.bucket, request.source);
            head.text("/rewriteTo/b/");
            encode::push_query(&mut head, request.bucket);
            head.text("/o/");
            encode::push_query(&mut head, request.key);
            head.text("?fields=done,rewriteToken");
            if !token.is_empty() {
                head.parameter("rewriteToken", as_text(&token));
            }
            let mut request = self.with(head, "", NO_BODY);
            let reply = self
                .document(&mut request, &mut answer, MAX_DOCUMENT, probe)
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
                    "the rewrite is not done, and its answer has no token to continue",
                ));
            }
        }
    }

    /// Cloud Storage has no object tags; applications use custom metadata instead.
    pub(crate) async fn put_tagging(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        let mut document = Buffer::take();
        document.extend_from_slice(b"{\"metadata\":{\"bucketload\":\"");
        encode::push_decimal(&mut document, u64::from(request.op.version));
        document.extend_from_slice(b"\"}}");
        let done = self.patch(request, &document, probe).await?;
        Ok(Completion { items: 1, ..done })
    }

    pub(crate) async fn delete_tagging(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        self.patch(request, b"{\"metadata\":{\"bucketload\":null}}", probe)
            .await
    }

    async fn patch(
        &mut self,
        request: &Request<'_>,
        document: &[u8],
        probe: &mut Probe,
    ) -> OpResult {
        let mut head = self.begin("PATCH");
        push_object(&mut head, request.bucket, request.key);
        head.text("?fields=metageneration");
        let mut request = self.with(head, "application/json", Body::Bytes(document));
        self.complete(&mut request, probe).await
    }

    pub(crate) async fn get_tagging(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        let mut head = self.begin("GET");
        push_object(&mut head, request.bucket, request.key);
        head.text("?fields=metadata");
        let mut request = self.bare(head);
        let mut answer = Buffer::take();
        self.document(&mut request, &mut answer, MAX_DOCUMENT, probe)
            .await?;
        let mut items = 0;
        json::values(&answer, |path, value| {
            // Removed metadata is absent, or empty (fake-gcs-server).
            let set = value.text().is_some_and(|text| !text.is_empty());
            items += u64::from(set && matches!(path, ["metadata", _]));
        })
        .map_err(|e| unreadable("metadata", e))?;
        Ok(Completion::of_items(items))
    }
}

/// Checks that the object of an upload of `len` bytes has that size.
pub(crate) fn check_size(reply: &Reply, size: &Size, len: u64) -> OpResult<()> {
    match size.get() {
        Some(stored) if stored != len => Err(OpError::with_status(
            ErrorKind::Corrupt,
            reply.status,
            format!("the store has {stored} of {len} bytes"),
        )),
        _ => Ok(()),
    }
}
