//! Large objects: one operation of the workload, several requests.
//!
//! The segments of an object are stored in a separate container, as other clients do, so listings of the run do not show
//! them:
//!
//! ```text
//! CONTAINER/KEY                                     the manifest, with X-Object-Meta-Bucketload-Segments: UPLOAD
//! CONTAINER_segments/KEY/UPLOAD/00000001 …          the segments
//! ```
//!
//! `UPLOAD` is unique, so overwriting or deleting a manifest leaves orphaned segments. Clean-up finds them by their names
//! and reads from each manifest which upload it refers to (`admin`). A thread's first upload creates the segments
//! container before its first segment, and marks it as Bucketload's if it did not exist.

use std::sync::atomic::Ordering;

use bucketload_core::driver::{
    Completion, ErrorKind, OpError, OpResult, Probe, Request, content_of,
};
use bucketload_s3::encode;

use super::config::LargeObject;
use super::head::{SwiftCall, push_path};
use super::object::{Md5Hex, md5_of};
use super::session::SwiftSession;
use crate::http::answer::as_text;
use crate::http::{Body, Buffer, HttpSession as _, OneField, Render as _, Span};
use crate::json::{push_escaped, push_string};

/// Metadata of a manifest: the upload that its segments belong to.
pub(crate) const SEGMENTS_FIELD: &str = "X-Object-Meta-Bucketload-Segments";
/// Metadata of a segments container that Bucketload created.
pub(crate) const OWN_FIELD: &str = "X-Container-Meta-Bucketload";
/// Digits of a segment's number.
const NUMBER_DIGITS: usize = 8;
/// Added to a container's name for the container with its segments.
const SEGMENTS_SUFFIX: &str = "_segments";
/// Prefix of upload names.
const UPLOAD_MARK: &str = "bl";

/// The container for the segments of the objects in `container`.
pub(crate) fn segments_container(container: &str) -> String {
    format!("{container}{SEGMENTS_SUFFIX}")
}

/// Appends an upload's name.
fn push_upload(out: &mut Vec<u8>, nonce: u64, number: u64) {
    out.text(UPLOAD_MARK);
    encode::push_hex(out, nonce);
    out.push(b'-');
    encode::push_hex(out, number);
}

/// Replaces the contents of `out` with a segment's name.
fn segment_name(out: &mut Vec<u8>, key: &str, upload: &str, number: u64) {
    out.clear();
    for part in [key, "/", upload, "/"] {
        out.text(part);
    }
    let mut room = [0; 20];
    let digits = encode::decimal(&mut room, number);
    let zeros = NUMBER_DIGITS.saturating_sub(digits.len());
    out.extend_from_slice(&b"00000000"[..zeros]);
    out.extend_from_slice(digits);
}

/// Key and upload of the segment `name`; `None` unless the name has Bucketload's form.
pub(crate) fn segment_of(name: &str) -> Option<(&str, &str)> {
    let (rest, number) = name.rsplit_once('/')?;
    let (key, upload) = rest.rsplit_once('/')?;
    let hex = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
    let (nonce, count) = upload.strip_prefix(UPLOAD_MARK)?.split_once('-')?;
    let numbered = number.len() >= NUMBER_DIGITS && number.bytes().all(|b| b.is_ascii_digit());
    (numbered && hex(nonce) && hex(count) && !key.is_empty()).then_some((key, upload))
}

/// Appends a segment to a static manifest (Swift, "Static Large Objects").
fn push_segment(manifest: &mut Vec<u8>, container: &str, name: &str, etag: &[u8], size: u64) {
    manifest.push(if manifest.is_empty() { b'[' } else { b',' });
    manifest.extend_from_slice(b"{\"path\":\"/");
    push_escaped(manifest, container);
    manifest.push(b'/');
    push_escaped(manifest, name);
    manifest.extend_from_slice(b"\",\"etag\":");
    push_string(manifest, as_text(etag));
    manifest.extend_from_slice(b",\"size_bytes\":");
    encode::push_decimal(manifest, size);
    manifest.push(b'}');
}

impl SwiftSession {
    pub(crate) async fn large_put(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let content = content_of(request)?;
        let size = content.size();
        if size == 0 {
            // Segments must not be empty, so an empty object has none.
            self.put(request, probe).await?;
            return Ok(Completion::of_items(1));
        }
        let part = if request.op.count == 0 {
            size
        } else {
            request.op.count
        };
        let count = size.div_ceil(part);
        let span_of = |number: u64| {
            let offset = (number - 1) * part;
            let len = part.min(size - offset);
            Span {
                content,
                offset,
                len,
            }
        };
        // Hashing is not part of the operation, so all segments are hashed before the first request.
        let mut sums = Buffer::take();
        if self.shared.driver.config.etag {
            (1..=count).for_each(|number| sums.extend_from_slice(&md5_of(span_of(number))));
        }
        let mut container = Buffer::take();
        container.text(request.bucket);
        container.text(SEGMENTS_SUFFIX);
        let container = as_text(&container);
        self.ensure_segments(request.bucket, container).await?;
        let mut upload = Buffer::take();
        let driver = &self.shared.driver;
        let number = driver.uploads.fetch_add(1, Ordering::Relaxed);
        push_upload(&mut upload, driver.nonce, number);
        let upload = as_text(&upload);
        let slo = self.shared.driver.config.large_object == LargeObject::Slo;
        let mut manifest = Buffer::take();
        let mut etag = Buffer::take();
        let mut name = Buffer::take();
        for number in 1..=count {
            segment_name(&mut name, request.key, upload, number);
            let name = as_text(&name);
            let span = span_of(number);
            etag.clear();
            let at = (number - 1) as usize * size_of::<Md5Hex>();
            let sum = sums.get(at..at + size_of::<Md5Hex>());
            self.put_segment(container, name, span, sum, &mut etag, probe)
                .await?;
            if slo {
                push_segment(&mut manifest, container, name, &etag, span.len);
            }
        }
        if slo {
            manifest.push(b']');
        }
        self.put_manifest(request, container, upload, &manifest, probe)
            .await?;
        Ok(Completion::of_parts(size, count))
    }

    async fn put_segment(
        &mut self,
        container: &str,
        name: &str,
        span: Span<'_>,
        sum: Option<&[u8]>,
        etag: &mut Vec<u8>,
        probe: &mut Probe,
    ) -> OpResult<()> {
        let mut plain = {
            let fields = [("ETag", sum.unwrap_or_default())];
            let call = SwiftCall::new("PUT", container, name)
                .fields(&fields[usize::from(sum.is_none())..])
                .length(span.len);
            self.prepare(&call, Body::Content(span))
        };
        let mut sink = OneField {
            name: "etag",
            value: etag,
        };
        self.perform(&mut plain, &mut sink, probe).await?;
        etag.retain(|byte| *byte != b'"');
        if etag.is_empty() {
            let what = "the response has no ETag of the segment";
            return Err(OpError::new(ErrorKind::Protocol, what));
        }
        Ok(())
    }

    /// Writes the object that refers to the segments.
    async fn put_manifest(
        &mut self,
        request: &Request<'_>,
        container: &str,
        upload: &str,
        manifest: &[u8],
        probe: &mut Probe,
    ) -> OpResult<()> {
        let mut prefix = Buffer::take();
        // `X-Object-Manifest` is `container/prefix`, without the leading slash.
        push_path(&mut prefix, container, request.key);
        let mut at = Buffer::take();
        at.extend_from_slice(&prefix[1..]);
        for part in ["/", upload, "/"] {
            at.text(part);
        }
        let fields = [
            (SEGMENTS_FIELD, upload.as_bytes()),
            ("X-Object-Manifest", at.as_slice()),
        ];
        let length = manifest.len() as u64;
        let call = SwiftCall::new("PUT", request.bucket, request.key).length(length);
        let call = match self.shared.driver.config.large_object {
            LargeObject::Slo => call.query(b"multipart-manifest=put").fields(&fields[..1]),
            LargeObject::Dlo => call.fields(&fields),
        };
        let mut plain = self.prepare(&call, Body::Bytes(manifest));
        self.complete(&mut plain, probe).await.map(drop)
    }

    /// Creates the container for segments unless it exists. Once per thread, before the service time.
    async fn ensure_segments(&mut self, bucket: &str, container: &str) -> OpResult<()> {
        let epoch = self.shared.driver.segments_epoch.load(Ordering::Relaxed);
        {
            let known = self.shared.segments_of.borrow();
            if known.0 == bucket && known.1 == epoch {
                return Ok(());
            }
        }
        let probe = &mut Probe::untimed();
        match self.head_container(container, probe).await {
            Err(error) if error.kind == ErrorKind::NotFound => {
                let fields: [(&str, &[u8]); 1] = [(OWN_FIELD, b"segments")];
                self.put_container(container, &fields, probe).await?;
            }
            other => drop(other?),
        }
        *self.shared.segments_of.borrow_mut() = (bucket.to_owned(), epoch);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{push_segment, push_upload, segment_name, segment_of};

    #[test]
    fn manifests_have_the_format_of_the_api() {
        let mut manifest = Vec::new();
        push_segment(
            &mut manifest,
            "c_segments",
            "a\"\\\n\u{e4}/bl1-0/00000001",
            b"abc",
            1000,
        );
        push_segment(&mut manifest, "c_segments", "x", b"def", 1);
        manifest.push(b']');
        let read: Value = serde_json::from_slice(&manifest).unwrap();
        assert_eq!(
            read,
            json!([
                {"path": "/c_segments/a\"\\\n\u{e4}/bl1-0/00000001", "etag": "abc", "size_bytes": 1000},
                {"path": "/c_segments/x", "etag": "def", "size_bytes": 1},
            ])
        );
    }

    #[test]
    fn own_segments_are_recognized_and_foreign_ones_are_not() {
        let mut upload = Vec::new();
        push_upload(&mut upload, 0xfeed, 0);
        let upload = String::from_utf8(upload).unwrap();
        assert_eq!(upload, "blfeed-0");
        let mut name = Vec::new();
        for key in ["a", "a/b/c", "a/bl1-1/00000001"] {
            segment_name(&mut name, key, &upload, 12);
            let name = std::str::from_utf8(&name).unwrap();
            assert!(name.ends_with("/00000012"), "{name}");
            assert_eq!(segment_of(name), Some((key, "blfeed-0")), "{name}");
        }
        for foreign in [
            "a",
            "key/slo/1700000000.0/5000/1000/00000001",
            "key/blfeed-0/1",
            "key/blfeed/00000001",
            "/blfeed-0/00000001",
            "blfeed-0/00000001",
            "key/blxyz-0/00000001",
        ] {
            assert_eq!(segment_of(foreign), None, "{foreign}");
        }
    }
}
