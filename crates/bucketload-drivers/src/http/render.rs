//! Renders request heads, queries and documents.

use bucketload_core::driver::{ErrorKind, OpError, OpResult, Request};
use bucketload_core::op::ByteRange;
use bucketload_s3::encode;

use super::pool::Buffer;

/// Value of `User-Agent`.
pub(crate) const USER_AGENT: &str = concat!("bucketload/", env!("CARGO_PKG_VERSION"));

/// Appends to a request that is being rendered.
pub(crate) trait Render {
    /// Appends `text` unchanged.
    fn text(&mut self, text: &str);

    /// Appends `name=value`, encoded, after `?` or another parameter.
    fn parameter(&mut self, name: &str, value: &str);

    /// As [`Render::parameter`] for a number.
    fn number(&mut self, name: &str, value: u64);

    /// Appends a header field.
    fn field(&mut self, name: &str, value: &[u8]);

    /// Appends the `Range` field; nothing for the whole object.
    fn range(&mut self, range: Option<ByteRange>);

    /// Appends the `Content-Length` field.
    fn content_length(&mut self, length: u64);
}

impl Render for Vec<u8> {
    #[inline]
    fn text(&mut self, text: &str) {
        self.extend_from_slice(text.as_bytes());
    }

    fn parameter(&mut self, name: &str, value: &str) {
        if !matches!(self.last(), None | Some(b'?')) {
            self.push(b'&');
        }
        self.text(name);
        self.push(b'=');
        encode::push_query(self, value);
    }

    fn number(&mut self, name: &str, value: u64) {
        self.parameter(name, "");
        encode::push_decimal(self, value);
    }

    #[inline]
    fn field(&mut self, name: &str, value: &[u8]) {
        self.text(name);
        self.extend_from_slice(b": ");
        self.extend_from_slice(value);
        self.extend_from_slice(b"\r\n");
    }

    #[inline]
    fn range(&mut self, range: Option<ByteRange>) {
        if let Some(range) = range {
            self.extend_from_slice(b"Range: bytes=");
            encode::push_decimal(self, range.offset);
            self.push(b'-');
            encode::push_decimal(self, range.offset + range.len.max(1) - 1);
            self.extend_from_slice(b"\r\n");
        }
    }

    #[inline]
    fn content_length(&mut self, length: u64) {
        self.extend_from_slice(b"Content-Length: ");
        encode::push_decimal(self, length);
        self.extend_from_slice(b"\r\n");
    }
}

/// Calls `each` with the index and name of each key that a request deletes. Does not allocate: the `String` that keys
/// are rendered into uses the memory of a pooled buffer.
///
/// # Errors
/// When the request names no keys.
pub(crate) fn each_key(request: &Request<'_>, mut each: impl FnMut(u64, &str)) -> OpResult<()> {
    let Some(keys) = request.keys else {
        return Err(OpError::new(
            ErrorKind::Rejected,
            "delete-many without keys",
        ));
    };
    let mut lent = Buffer::take();
    let mut key = String::from_utf8(std::mem::take(&mut *lent)).unwrap_or_default();
    for i in 0..request.op.count {
        keys.render(i, &mut key);
        each(i, &key);
    }
    *lent = key.into_bytes();
    Ok(())
}
