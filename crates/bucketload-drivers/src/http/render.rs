//! Appending to request heads, queries and documents.

use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::{ByteRange, Request};

use super::pool::Buffer;
use bucketload_s3::encode;

/// The field that names the client.
pub(crate) const USER_AGENT: &str = concat!("bucketload/", env!("CARGO_PKG_VERSION"));

/// What is appended to a request that is being rendered.
pub(crate) trait Render {
    /// Appends `text` as it stands.
    fn text(&mut self, text: &str);

    /// Appends `name=value`, encoded, behind `?` or another parameter.
    fn parameter(&mut self, name: &str, value: &str);

    /// As [`Render::parameter`] for a number.
    fn number(&mut self, name: &str, value: u64);

    /// Appends a header field.
    fn field(&mut self, name: &str, value: &[u8]);

    /// Appends the field that asks for a part of an object; nothing for the whole.
    fn range(&mut self, range: Option<ByteRange>);
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
}

/// Shows the number and name of each key of a deletion of several objects to `each`, without allocating: the renderer
/// wants a `String` and gets the memory of a pooled buffer.
///
/// # Errors
/// When the request names no keys.
pub(crate) fn each_key(
    request: &Request<'_>,
    mut each: impl FnMut(u64, &str),
) -> Result<(), OpError> {
    let Some(keys) = request.keys else {
        return Err(OpError::new(
            ErrorKind::Rejected,
            "delete-many was asked for without keys",
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
