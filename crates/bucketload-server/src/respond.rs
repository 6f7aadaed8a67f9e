//! Responses: their heads, rendered without `std::fmt`, and their bodies.
//!
//! A handler starts a [`Head`] with a status, adds headers and returns a [`Body`]. The length and the
//! end of the head are written when the response is sent.

use std::ops::{Deref, Range};
use std::sync::Arc;

use super::checksum;
use super::error::{Code, S3Error};
use super::xml::Doc;
use bucketload_s3::date;
use bucketload_s3::encode::push_decimal;
use bucketload_store::{Checksum, Object, VersionId};

/// The body of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Body {
    /// Empty. The head has `Content-Length: 0`, unless the status forbids it.
    #[default]
    Empty,
    /// The XML document in the request's buffers.
    Document,
    /// Empty, but the head has the length that a GET would send: the response to a HEAD.
    LengthOnly(u64),
    /// The object bytes in the request's buffers.
    Object,
}

/// A range of an object's bytes to send.
#[derive(Debug)]
pub(crate) struct ObjectBytes {
    pub(crate) source: Source,
    pub(crate) range: Range<u64>,
}

/// An open object: the current version or the one before.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "a box would allocate per request"
)]
pub(crate) enum Source {
    /// Opened for this request.
    Current(Object),
    /// Kept for stale reads.
    Previous(Arc<Object>),
}

impl Deref for Source {
    type Target = Object;

    fn deref(&self) -> &Object {
        match self {
            Self::Current(object) => object,
            Self::Previous(object) => object,
        }
    }
}

/// The head of a response being built.
#[derive(Debug, Default)]
pub(crate) struct Head {
    out: Vec<u8>,
    /// Header lines that every response to the request has, also one that reports an error.
    always: Vec<u8>,
    status: u16,
    /// The `Date` header's value.
    date: Vec<u8>,
    request_id: [u8; 16],
}

impl Head {
    /// Prepares for the next response.
    pub(crate) fn stamp(&mut self, date: &[u8], request_id: [u8; 16]) {
        self.date.clear();
        self.date.extend_from_slice(date);
        self.request_id = request_id;
        self.out.clear();
        self.always.clear();
    }

    /// Starts a response. Discards one that was started before.
    pub(crate) fn start(&mut self, status: u16) -> &mut Self {
        self.status = status;
        self.out.clear();
        self.out.extend_from_slice(b"HTTP/1.1 ");
        match known_status(status) {
            Some(text) => self.out.extend_from_slice(text),
            None => {
                push_decimal(&mut self.out, u64::from(status));
                self.out.extend_from_slice(b" Unknown");
            }
        }
        self.out
            .extend_from_slice(b"\r\nServer: bucketload\r\nDate: ");
        self.out.extend_from_slice(&self.date);
        self.out.extend_from_slice(b"\r\nx-amz-request-id: ");
        self.out.extend_from_slice(&self.request_id);
        self.out.extend_from_slice(b"\r\n");
        self
    }

    /// The status of the response.
    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    /// Adds a header. Line breaks in the value become spaces, so no stored or requested text can end
    /// the head.
    pub(crate) fn header(&mut self, name: &str, value: &[u8]) -> &mut Self {
        push_line(&mut self.out, name, value);
        self
    }

    /// Adds a header to whatever response the request gets, now or later.
    pub(crate) fn always(&mut self, name: &str, value: &[u8]) -> &mut Self {
        push_line(&mut self.always, name, value);
        self
    }

    /// Removes the headers whose names start with `prefix`.
    pub(crate) fn remove(&mut self, prefix: &str) {
        let lines = std::mem::take(&mut self.out);
        for line in lines.split_inclusive(|&byte| byte == b'\n') {
            if !line.starts_with(prefix.as_bytes()) {
                self.out.extend_from_slice(line);
            }
        }
    }

    /// Adds a header with a number.
    pub(crate) fn number(&mut self, name: &str, value: u64) -> &mut Self {
        self.name(name);
        push_decimal(&mut self.out, value);
        self.end_line()
    }

    /// Adds a header with an entity tag, in quotes.
    pub(crate) fn etag(&mut self, tag: bucketload_store::ETag) -> &mut Self {
        self.out.extend_from_slice(b"ETag: \"");
        self.out.extend_from_slice(tag.text().as_bytes());
        self.out.push(b'"');
        self.end_line()
    }

    /// Adds the headers of checksums.
    pub(crate) fn checksums(&mut self, sums: &[Checksum]) -> &mut Self {
        for sum in sums {
            let kind = checksum::kind_name(sum.kind).as_bytes();
            self.header(checksum::header(sum.algorithm), sum.value.as_bytes())
                .header("x-amz-checksum-type", kind);
        }
        self
    }

    /// Adds the id of a version.
    pub(crate) fn version(&mut self, id: VersionId) -> &mut Self {
        let id = id.to_string();
        self.header(bucketload_store::Headers::VERSION_ID, id.as_bytes())
    }

    /// Adds the id of a version just written. A writer is not told that it replaced the null version.
    pub(crate) fn written(&mut self, id: Option<VersionId>) {
        if let Some(id) = id.filter(|id| *id != VersionId::NULL) {
            self.version(id);
        }
    }

    /// Adds `Last-Modified`.
    pub(crate) fn modified(&mut self, time: std::time::SystemTime) -> &mut Self {
        self.name("Last-Modified");
        let second = date::since_epoch(time).as_secs();
        self.out.extend_from_slice(&date::http_date(second));
        self.end_line()
    }

    /// Adds `Content-Range` for `range` of `size` bytes.
    pub(crate) fn content_range(&mut self, range: &Range<u64>, size: u64) -> &mut Self {
        self.name("Content-Range");
        self.out.extend_from_slice(b"bytes ");
        push_decimal(&mut self.out, range.start);
        self.out.push(b'-');
        push_decimal(&mut self.out, range.end.saturating_sub(1));
        self.out.push(b'/');
        push_decimal(&mut self.out, size);
        self.end_line()
    }

    fn name(&mut self, name: &str) {
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b": ");
    }

    fn end_line(&mut self) -> &mut Self {
        self.out.extend_from_slice(b"\r\n");
        self
    }

    /// Ends the head of a response with `length` bytes of body.
    pub(crate) fn end(&mut self, length: u64, close: bool) {
        if !matches!(self.status, 204 | 304) {
            self.number("Content-Length", length);
        }
        self.out.extend_from_slice(&self.always);
        if close {
            self.out.extend_from_slice(b"Connection: close\r\n");
        }
        self.end_line();
    }

    /// The bytes to send.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.out
    }

    /// Builds the response to a failed request; `with_body` is false for HEAD.
    pub(crate) fn error(
        &mut self,
        document: &mut Vec<u8>,
        error: &S3Error,
        path: &[u8],
        with_body: bool,
    ) -> Body {
        self.start(error.status());
        if let Some(size) = error.size {
            self.name("Content-Range");
            self.out.extend_from_slice(b"bytes */");
            push_decimal(&mut self.out, size);
            self.end_line();
        }
        if let Some(marker) = error.marker {
            self.version(marker).header("x-amz-delete-marker", b"true");
        }
        if error.code == Code::SlowDown {
            self.number("Retry-After", 1);
        }
        if !with_body {
            return Body::Empty;
        }
        self.header("Content-Type", b"application/xml");
        let mut doc = Doc::plain(document, "Error");
        doc.text("Code", error.code.name())
            .text("Message", error.message());
        if let Some(region) = &error.region {
            doc.text("Region", region);
        }
        doc.text("Resource", &String::from_utf8_lossy(path));
        doc.text("RequestId", &String::from_utf8_lossy(&self.request_id));
        doc.text("HostId", "bucketload");
        doc.finish()
    }
}

fn push_line(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    let start = out.len();
    out.extend_from_slice(value);
    for byte in &mut out[start..] {
        if matches!(byte, b'\r' | b'\n' | 0) {
            *byte = b' ';
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// Status and reason phrase of the statuses in use.
const fn known_status(status: u16) -> Option<&'static [u8]> {
    Some(match status {
        200 => b"200 OK",
        201 => b"201 Created",
        204 => b"204 No Content",
        206 => b"206 Partial Content",
        303 => b"303 See Other",
        304 => b"304 Not Modified",
        400 => b"400 Bad Request",
        403 => b"403 Forbidden",
        404 => b"404 Not Found",
        405 => b"405 Method Not Allowed",
        409 => b"409 Conflict",
        411 => b"411 Length Required",
        412 => b"412 Precondition Failed",
        416 => b"416 Requested Range Not Satisfiable",
        429 => b"429 Too Many Requests",
        500 => b"500 Internal Server Error",
        501 => b"501 Not Implemented",
        503 => b"503 Service Unavailable",
        507 => b"507 Insufficient Storage",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_response_renders() {
        let mut head = Head::default();
        head.stamp(b"Thu, 01 Jan 1970 00:00:00 GMT", *b"0123456789ABCDEF");
        head.start(404);
        head.start(206)
            .header("X-Text", b"a\r\nb")
            .content_range(&(0..10), 100);
        head.modified(std::time::UNIX_EPOCH);
        head.end(10, true);
        assert_eq!(
            String::from_utf8_lossy(head.bytes()),
            "HTTP/1.1 206 Partial Content\r\nServer: bucketload\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\
             x-amz-request-id: 0123456789ABCDEF\r\nX-Text: a  b\r\nContent-Range: bytes 0-9/100\r\n\
             Last-Modified: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Length: 10\r\nConnection: close\r\n\r\n"
        );
    }

    #[test]
    fn an_error_renders() {
        let mut head = Head::default();
        let mut document = Vec::new();
        head.stamp(b"Thu, 01 Jan 1970 00:00:00 GMT", *b"0123456789ABCDEF");
        let error = S3Error::from(Code::InvalidRange).with_size(5);
        assert!(matches!(
            head.error(&mut document, &error, b"/b/<k>", true),
            Body::Document
        ));
        head.end(document.len() as u64, false);
        let text = String::from_utf8_lossy(head.bytes()).into_owned();
        assert!(
            text.starts_with("HTTP/1.1 416 ") && text.contains("Content-Range: bytes */5\r\n"),
            "{text}"
        );
        let document = String::from_utf8(document).unwrap();
        assert!(
            document.contains("<Error><Code>InvalidRange</Code><Message>"),
            "{document}"
        );
        assert!(
            document.contains(
                "<Resource>/b/&lt;k&gt;</Resource><RequestId>0123456789ABCDEF</RequestId>"
            )
        );
    }
}
