//! Operations on one object: get, range-get, put, head, delete, copy, restore, tagging.

use bucketload_core::driver::{Completion, DONE, content_of};
use bucketload_core::error::{ErrorKind, OpError, OpResult};
use bucketload_core::op::{OpClass, Request, VersionId};
use bucketload_core::record::Probe;

use super::keeping::Kind;
use super::prepare::{ContentHashes, Prepared, S3Call, Upload};
use super::session::S3Session;
use crate::http::answer::{MAX_DOCUMENT, if_absent, size_of_object, unreadable};
use crate::http::exchange::Reply;
use crate::http::pool::Buffer;
use crate::http::reading::Reading;
use crate::http::session::HttpSession as _;
use crate::http::sink::{Ignore, OneField};
use crate::http::span::Span;
use bucketload_s3::canonical::Header;
use bucketload_s3::encode;
use bucketload_s3::xml;

/// Makes a PUT fail if the object exists.
pub(super) const IF_ABSENT: [Header<'static>; 1] = [Header {
    name: "if-none-match",
    value: b"*",
}];

/// Makes a DELETE fail unless the object exists.
const IF_PRESENT: [Header<'static>; 1] = [Header {
    name: "if-match",
    value: b"*",
}];

impl S3Session {
    pub(crate) async fn get(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let mut reading = Reading::of(request);
        let mut prepared = {
            let call = S3Call::new("GET", request.bucket, request.key).kind(Kind::Content);
            self.prepare(&call.range(reading.range()))
        };
        let mut reply = Reply::default();
        self.perform_into(&mut prepared, &mut reading, probe, &mut reply)
            .await?;
        reading.finish(&reply)
    }

    /// Writes an object unless it exists. If it does, the result is a success with zero items.
    pub(crate) async fn put_if_absent(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        if_absent(self.put(request, probe).await)
    }

    pub(crate) async fn put(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let len = content_of(request)?.size();
        let mut digests = match self.shared.config().payload.is_chunked() {
            true => Buffer::take(),
            false => Buffer::NONE,
        };
        let mut prepared = self.prepare_put(request, &mut digests)?;
        let mut reply = Reply::default();
        self.perform_into(&mut prepared, &mut Ignore, probe, &mut reply)
            .await?;
        Ok(Completion { bytes: len, ..DONE })
    }

    /// Renders and signs a PUT. `digests` receives what signed chunks need.
    pub(crate) fn prepare_put<'a>(
        &self,
        request: &'a Request<'_>,
        digests: &'a mut Vec<u8>,
    ) -> OpResult<Prepared<'a>> {
        let span = Span::whole(content_of(request)?);
        let hashes = ContentHashes::of(self.shared.config(), span, digests);
        let content = Upload {
            span,
            hashes,
            digests,
        };
        let mut call = S3Call::new("PUT", request.bucket, request.key)
            .kind(Kind::Object)
            .content(content);
        if request.op.class == OpClass::PutIfAbsent {
            call = call.headers(&IF_ABSENT);
        }
        Ok(self.prepare(&call))
    }

    /// Writes an object if it still has the entity tag in `request.version`, or if it does not exist and there is no tag.
    /// Stores the new tag there. If somebody else has changed the object, or is changing it, the result is a success with
    /// zero items.
    pub(crate) async fn put_if_match(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        let Some(known) = request.version else {
            let text = "put-if-match was asked for without a place for the entity tag";
            return Err(OpError::new(ErrorKind::Unsupported, text));
        };
        let tag = known.get();
        let unchanged = [Header {
            name: "if-match",
            value: tag.as_str().as_bytes(),
        }];
        let condition = match tag.as_str() {
            "" => &IF_ABSENT,
            _ => &unchanged,
        };
        let span = Span::whole(content_of(request)?);
        let bytes = span.len;
        let mut digests = Buffer::take();
        let hashes = ContentHashes::of(self.shared.config(), span, &mut digests);
        let call = S3Call::new("PUT", request.bucket, request.key)
            .kind(Kind::Object)
            .headers(condition)
            .content(Upload {
                span,
                hashes,
                digests: &digests,
            });
        let mut prepared = self.prepare(&call);
        let mut etag = Buffer::take();
        let mut sink = OneField {
            name: "etag",
            value: &mut etag,
        };
        match self.perform(&mut prepared, &mut sink, probe).await {
            Err(error) if matches!(error.status, 409 | 412) => return Ok(DONE),
            outcome => outcome.map(drop)?,
        }
        let tag = VersionId::new(&etag).filter(|_| !etag.is_empty());
        known.set(tag.ok_or_else(|| {
            let text = "the answer to the write has no ETag, or one of more than 47 bytes";
            OpError::new(ErrorKind::Protocol, text)
        })?);
        Ok(Completion {
            bytes,
            items: 1,
            ..DONE
        })
    }

    pub(crate) async fn head(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let call = S3Call::new("HEAD", request.bucket, request.key);
        let mut prepared = self.prepare(&call.kind(Kind::Content));
        let mut reply = Reply::default();
        self.perform_into(&mut prepared, &mut Ignore, probe, &mut reply)
            .await?;
        size_of_object(&reply)
    }

    pub(crate) async fn delete(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let mut prepared = self.prepare(&S3Call::new("DELETE", request.bucket, request.key));
        let mut reply = Reply::default();
        self.perform_into(&mut prepared, &mut Ignore, probe, &mut reply)
            .await?;
        Ok(DONE)
    }

    /// Deletes an object on the condition that it exists.
    pub(crate) async fn delete_if_match(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        let call = S3Call::new("DELETE", request.bucket, request.key);
        let mut prepared = self.prepare(&call.headers(&IF_PRESENT));
        self.complete(&mut prepared, probe).await
    }

    pub(crate) async fn copy(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let mut source = Buffer::take();
        push_source(&mut source, request);
        let headers = [Header {
            name: "x-amz-copy-source",
            value: &source,
        }];
        let mut prepared = {
            let call = S3Call::new("PUT", request.bucket, request.key);
            self.prepare(&call.kind(Kind::Copy).headers(&headers))
        };
        let mut body = Buffer::take();
        self.conclude(&mut prepared, &mut body, MAX_DOCUMENT, probe)
            .await?;
        Ok(DONE)
    }

    /// RestoreObject. Status 202 means that the restore has started, 200 that an existing copy now stays longer.
    pub(crate) async fn restore(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let mut document = Buffer::take();
        document.extend_from_slice(
            b"<RestoreRequest xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Days>",
        );
        encode::push_decimal(&mut document, request.op.count);
        document.extend_from_slice(b"</Days></RestoreRequest>");
        let call = S3Call::new("POST", request.bucket, request.key);
        let mut prepared = self.prepare(&call.query(b"restore=").document(&document));
        let mut body = Buffer::take();
        self.conclude(&mut prepared, &mut body, MAX_DOCUMENT, probe)
            .await?;
        Ok(DONE)
    }

    pub(crate) async fn put_tagging(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        let mut document = Buffer::take();
        document.extend_from_slice(
            b"<Tagging xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><TagSet><Tag>\
              <Key>bucketload</Key><Value>",
        );
        encode::push_decimal(&mut document, u64::from(request.op.version));
        document.extend_from_slice(b"</Value></Tag></TagSet></Tagging>");
        let call = S3Call::new("PUT", request.bucket, request.key);
        let mut prepared = self.prepare(&call.query(b"tagging=").document(&document));
        let done = self.complete(&mut prepared, probe).await?;
        Ok(Completion { items: 1, ..done })
    }

    pub(crate) async fn get_tagging(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        let call = S3Call::new("GET", request.bucket, request.key);
        let mut prepared = self.prepare(&call.query(b"tagging="));
        let mut body = Buffer::take();
        self.document(&mut prepared, &mut body, MAX_DOCUMENT, probe)
            .await?;
        let mut items = 0;
        xml::leaves(&body, |path, _| {
            items += u64::from(path.ends_with(&["Tag", "Key"]));
        })
        .map_err(|e| unreadable("tags", e))?;
        Ok(Completion { items, ..DONE })
    }

    pub(crate) async fn delete_tagging(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        let call = S3Call::new("DELETE", request.bucket, request.key);
        let mut request = self.prepare(&call.query(b"tagging="));
        self.complete(&mut request, probe).await
    }
}

/// Appends the value of `x-amz-copy-source`: `/bucket/key`, encoded.
pub(crate) fn push_source(out: &mut Vec<u8>, request: &Request<'_>) {
    out.push(b'/');
    encode::push_query(out, request.bucket);
    out.push(b'/');
    encode::push_key(out, request.source);
}
