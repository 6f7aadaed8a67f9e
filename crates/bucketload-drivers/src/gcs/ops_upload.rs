//! Objects in parts: a resumable upload in chunks, or composed objects.
//!
//! **Resumable** (Cloud Storage, "Resumable uploads"): a POST opens the upload and returns its location,
//! a PUT sends each chunk, and the last PUT creates the object. N parts are N + 1 requests.
//!
//! **Compose** (Cloud Storage, "Composite objects"): each part is an object next to the final one. One
//! request composes up to 32 objects, so more than 32 parts take a second level. Afterwards all parts
//! are deleted in batches. The object appears atomically, as with any other upload.

use bucketload_core::driver::{
    Completion, DONE, ErrorKind, OpError, OpResult, Probe, Request, content_of,
};
use bucketload_s3::encode;

use super::config::LargeObject;
use super::ops_batch::Batch;
use super::ops_object::check_size;
use super::session::{GcsSession, push_object};
use crate::http::{
    Body, Buffer, HttpSession as _, Ignore, NO_BODY, OneField, Plain, Render as _, Rendering as _,
    Span,
};
use crate::json;
use crate::json_size::Size;

/// All chunks of a resumable upload except the last are multiples of this size (Cloud Storage, "Perform
/// resumable uploads").
pub(crate) const CHUNK_UNIT: u64 = 256 * 1024;

/// Most objects in one compose request (Cloud Storage, "Quotas & limits").
const MAX_SOURCES: u64 = 32;

/// Path and query of `location`, a URL at `authority`. An upload stays on the session's connection, so
/// other hosts are refused.
fn path_of<'a>(location: &'a [u8], authority: &str) -> Option<&'a [u8]> {
    let text = std::str::from_utf8(location).ok()?;
    let (_, rest) = text.split_once("://")?;
    let at = rest.find('/')?;
    let (host, path) = rest.split_at(at);
    let legal = path.bytes().all(|b| b.is_ascii_graphic());
    (host == authority && legal).then_some(path.as_bytes())
}

/// Number of bytes that the store has, from the `Range` field of its answer to a chunk
/// (`bytes=0-262143`; no field means none).
fn received_bytes(range: &str) -> u64 {
    let last = range
        .strip_prefix("bytes=0-")
        .and_then(|n| n.parse::<u64>().ok());
    last.map_or(0, |last| last.saturating_add(1))
}

fn rejected(text: String) -> OpError {
    OpError::new(ErrorKind::Rejected, text)
}

impl GcsSession {
    pub(crate) async fn put_in_parts(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        match self.shared.config.large_object {
            LargeObject::Resumable => self.resumable(request, probe).await,
            LargeObject::Compose => self.composed(request, probe).await,
        }
    }

    /// Opens a resumable upload of `size` bytes and writes its path and query into `location`.
    async fn open_upload(
        &mut self,
        request: &Request<'_>,
        size: Option<u64>,
        location: &mut Vec<u8>,
        probe: &mut Probe,
    ) -> OpResult<()> {
        let mut head = self.begin_upload("resumable", request.bucket, request.key);
        self.fields(&mut head);
        head.text("X-Upload-Content-Type: application/octet-stream\r\n");
        if let Some(size) = size {
            head.text("X-Upload-Content-Length: ");
            encode::push_decimal(&mut head, size);
            head.text("\r\n");
        }
        location.clear();
        let mut sink = OneField {
            name: "location",
            value: location,
        };
        let mut request = Plain::with(head, NO_BODY);
        let reply = self.perform(&mut request, &mut sink, probe).await?;
        match path_of(location, self.authority()) {
            Some(path) => {
                let path = path.len();
                location.drain(..location.len() - path);
                Ok(())
            }
            None => Err(OpError::with_status(
                ErrorKind::Protocol,
                reply.status,
                "the answer has no location for the upload, or one on another host",
            )),
        }
    }

    async fn resumable(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let content = content_of(request)?;
        let (size, chunk) = (content.size(), request.op.count);
        if chunk == 0 || (size > chunk && chunk % CHUNK_UNIT != 0) {
            return Err(rejected(format!(
                "parts of {chunk} bytes: chunks of a resumable upload must be multiples of 256 KiB"
            )));
        }
        let mut location = Buffer::take();
        self.open_upload(request, Some(size), &mut location, probe)
            .await?;
        let (mut at, mut chunks) = (0, 0);
        loop {
            let len = chunk.min(size - at);
            let last = at + len == size;
            let mut head = self.begin("PUT");
            // The location already contains the base path.
            head.truncate(b"PUT ".len());
            head.extend_from_slice(&location);
            self.fields(&mut head);
            head.text("Content-Range: bytes ");
            if len == 0 {
                head.push(b'*');
            } else {
                encode::push_decimal(&mut head, at);
                head.push(b'-');
                encode::push_decimal(&mut head, at + len - 1);
            }
            head.push(b'/');
            encode::push_decimal(&mut head, size);
            head.text("\r\n");
            let span = Span {
                content,
                offset: at,
                len,
            };
            let mut request = Plain::with(head, Body::Content(span));
            let mut stored_size = Size::new();
            let mut reply = self.attempt(&mut request, &mut stored_size, probe).await?;
            chunks += 1;
            at += len;
            match (reply.refusal.take(), last) {
                (None, true) => {
                    check_size(&reply, &stored_size, size)?;
                    return Ok(Completion {
                        bytes: size,
                        items: chunks,
                        object_size: 0,
                    });
                }
                (None, false) => {
                    return Err(OpError::with_status(
                        ErrorKind::Protocol,
                        reply.status,
                        format!("the store took the upload as complete after {at} of {size} bytes"),
                    ));
                }
                (Some(refusal), false) if reply.status == 308 => {
                    let have = received_bytes(&refusal.field("range"));
                    if have != at {
                        return Err(OpError::with_status(
                            ErrorKind::Server,
                            reply.status,
                            format!("the store has {have} of the {at} bytes that were sent"),
                        ));
                    }
                }
                (Some(refusal), _) => return Err(self.refused(reply.status, &refusal)),
            }
        }
    }

    /// Opens an upload and cancels it.
    pub(crate) async fn begin_and_cancel(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        let mut location = Buffer::take();
        self.open_upload(request, None, &mut location, probe)
            .await?;
        let mut head = Buffer::take();
        head.text("DELETE ");
        head.extend_from_slice(&location);
        let mut request = self.with(head, "", NO_BODY);
        let reply = self.attempt(&mut request, &mut Ignore, probe).await?;
        match &reply.refusal {
            None => Ok(DONE),
            // "If successful, the response contains a 499 status code" (Cloud Storage, "Cancel an
            // incomplete resumable upload").
            Some(_) if reply.status == 499 => Ok(DONE),
            Some(refusal) => Err(self.refused(reply.status, refusal)),
        }
    }

    async fn composed(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let content = content_of(request)?;
        let (size, part) = (content.size(), request.op.count);
        let parts = size.div_ceil(part.max(1)).max(1);
        if part == 0 || parts > MAX_SOURCES * MAX_SOURCES {
            return Err(rejected(format!(
                "{size} bytes in parts of {part}: an object can be composed of at most {} parts; \
                 make the parts larger",
                MAX_SOURCES * MAX_SOURCES
            )));
        }
        let mut suffix = String::with_capacity(24);
        for i in 0..parts {
            let span = Span {
                content,
                offset: i * part,
                len: part.min(size - i * part),
            };
            write_suffix(&mut suffix, "part", i);
            let (bucket, key) = (request.bucket, request.key);
            self.upload_as(bucket, key, &suffix, span, false, probe)
                .await?;
        }
        let groups = match parts {
            0..=MAX_SOURCES => 0,
            _ => parts.div_ceil(MAX_SOURCES),
        };
        for group in 0..groups {
            let first = group * MAX_SOURCES;
            let count = MAX_SOURCES.min(parts - first);
            write_suffix(&mut suffix, "group", group);
            self.compose(request, &suffix, "part", first, count, probe)
                .await?;
        }
        match groups {
            0 => self.compose(request, "", "part", 0, parts, probe).await?,
            _ => self.compose(request, "", "group", 0, groups, probe).await?,
        }
        let mut batch = Batch::new();
        for (kind, count) in [("part", parts), ("group", groups)] {
            for i in 0..count {
                write_suffix(&mut suffix, kind, i);
                batch.delete(self, request.bucket, request.key, &suffix);
                if batch.is_full() {
                    self.send_batch(&mut batch, probe).await?;
                }
            }
        }
        self.send_batch(&mut batch, probe).await?;
        Ok(Completion {
            bytes: size,
            items: parts,
            object_size: 0,
        })
    }

    /// Composes `count` objects of `kind`, starting at number `first`, into the request's key followed
    /// by `suffix`.
    async fn compose(
        &mut self,
        request: &Request<'_>,
        suffix: &str,
        kind: &str,
        first: u64,
        count: u64,
        probe: &mut Probe,
    ) -> OpResult<()> {
        let mut document = Buffer::take();
        document.extend_from_slice(
            b"{\"destination\":{\"contentType\":\"application/octet-stream\"},\"sourceObjects\":[",
        );
        let mut source = String::with_capacity(request.key.len() + 24);
        let mut part = String::with_capacity(24);
        for i in first..first + count {
            write_suffix(&mut part, kind, i);
            source.clear();
            source.push_str(request.key);
            source.push_str(&part);
            document.extend_from_slice(if i == first {
                b"{\"name\":"
            } else {
                b",{\"name\":"
            });
            json::push_string(&mut document, &source);
            document.push(b'}');
        }
        document.extend_from_slice(b"]}");
        let mut head = self.begin("POST");
        push_object(&mut head, request.bucket, request.key);
        encode::push_query(&mut head, suffix);
        head.text("/compose?fields=size");
        let mut request = self.with(head, "application/json", Body::Bytes(&document));
        self.complete(&mut request, probe).await.map(drop)
    }
}

/// Writes the suffix of a part's or group's name: its kind and number.
fn write_suffix(out: &mut String, kind: &str, i: u64) {
    use std::fmt::Write;
    out.clear();
    // Writing to a string cannot fail.
    let _ = write!(out, ".{kind}-{i:04}");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{path_of, received_bytes};

    #[test]
    fn an_upload_location_on_another_host_is_refused() {
        let url = b"http://h:1/upload/storage/v1/b/b/o?uploadType=resumable&upload_id=x";
        assert_eq!(path_of(url, "h:1"), Some(&url[10..]));
        for (url, host) in [
            ("http://other/upload", "h:1"),
            ("/upload", "h:1"),
            ("", ""),
            ("http://h:1/a b", "h:1"),
            ("http://h:1/a\r\nx: y", "h:1"),
        ] {
            assert_eq!(path_of(url.as_bytes(), host), None, "{url}");
        }
    }

    #[test]
    fn ranges_give_the_number_of_received_bytes() {
        assert_eq!(received_bytes("bytes=0-262143"), 262_144);
        assert_eq!(received_bytes(""), 0);
        assert_eq!(received_bytes("bytes=5-9"), 0);
        assert_eq!(received_bytes("bytes=0-18446744073709551615"), u64::MAX);
    }

    proptest! {
        #[test]
        fn arbitrary_input_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..100), text in any::<String>()) {
            path_of(&bytes, &text);
            received_bytes(&text);
        }
    }
}
