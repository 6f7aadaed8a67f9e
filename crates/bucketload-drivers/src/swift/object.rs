//! Operations on one object: get, range-get, put, put-if-absent, head, delete, copy.

use bucketload_core::driver::{Completion, OpClass, OpResult, Probe, Request, content_of};
use bucketload_s3::encode::hex_pair;
use md5::{Digest as _, Md5};

use super::head::{SwiftCall, push_path};
use super::session::SwiftSession;
use crate::http::answer::{if_absent, size_of_object};
use crate::http::{Body, Buffer, HttpSession as _, Ignore, Reading, Span};

/// An MD5 in lowercase hexadecimal.
pub(crate) type Md5Hex = [u8; 32];

/// The MD5 of `span` in the format of Swift's `ETag`.
pub(crate) fn md5_of(span: Span<'_>) -> Md5Hex {
    let mut hash = Md5::new();
    span.each(|bytes| hash.update(bytes));
    let mut out = [0; 32];
    for (pair, byte) in out.as_chunks_mut().0.iter_mut().zip(hash.finalize()) {
        *pair = hex_pair(byte);
    }
    out
}

impl SwiftSession {
    pub(crate) async fn get(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let mut reading = Reading::of(request);
        let call = SwiftCall::new("GET", request.bucket, request.key).range(reading.range());
        let mut plain = self.bare(&call);
        let reply = self.perform(&mut plain, &mut reading, probe).await?;
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
        let span = Span::whole(content_of(request)?);
        let mut plain = {
            let md5 = self.shared.driver.config.etag.then(|| md5_of(span));
            let fields: [(&str, &[u8]); 2] = [
                ("ETag", md5.as_ref().map_or(b"", |md5| md5.as_slice())),
                ("If-None-Match", b"*"),
            ];
            let from = usize::from(md5.is_none());
            let to = if request.op.class == OpClass::PutIfAbsent {
                2
            } else {
                1
            };
            let call = SwiftCall::new("PUT", request.bucket, request.key)
                .fields(&fields[from..to])
                .length(span.len);
            self.prepare(&call, Body::Content(span))
        };
        self.perform(&mut plain, &mut Ignore, probe).await?;
        Ok(Completion::of_bytes(span.len))
    }

    pub(crate) async fn head(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let call = SwiftCall::new("HEAD", request.bucket, request.key);
        let mut plain = self.bare(&call);
        let reply = self.perform(&mut plain, &mut Ignore, probe).await?;
        size_of_object(&reply)
    }

    /// Deletes an object. Of a large object, it deletes only the manifest; clean-up deletes the segments.
    pub(crate) async fn delete(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let call = SwiftCall::new("DELETE", request.bucket, request.key);
        let mut request = self.bare(&call);
        self.complete(&mut request, probe).await
    }

    pub(crate) async fn copy(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let mut source = Buffer::take();
        push_path(&mut source, request.bucket, request.source);
        let fields = [("X-Copy-From", source.as_slice())];
        let call = SwiftCall::new("PUT", request.bucket, request.key)
            .fields(&fields)
            .length(0);
        let mut request = self.bare(&call);
        self.complete(&mut request, probe).await
    }
}

#[cfg(test)]
mod tests {
    use bucketload_core::payload::{Arena, PayloadKind};
    use md5::{Digest as _, Md5};

    use super::{hex_pair, md5_of};
    use crate::http::span::Span;

    #[test]
    fn the_etag_is_the_md5_of_the_bytes_sent() {
        let arena = Arena::new(PayloadKind::Random, 3);
        let content = arena.content(0, 1, 0, 300_001);
        let span = Span {
            content: &content,
            offset: 100,
            len: 290_000,
        };
        let mut bytes = Vec::new();
        span.each(|part| bytes.extend_from_slice(part));
        assert_eq!(bytes.len(), 290_000);
        let wanted: Vec<u8> = Md5::digest(&bytes).into_iter().flat_map(hex_pair).collect();
        assert_eq!(md5_of(span), *wanted);
        let nothing = arena.content(0, 1, 0, 0);
        assert_eq!(
            &md5_of(Span::whole(&nothing)),
            b"d41d8cd98f00b204e9800998ecf8427e"
        );
    }
}
