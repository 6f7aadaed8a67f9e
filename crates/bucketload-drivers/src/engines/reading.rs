//! Ranges and names in the forms that S3's HTTP clients expect, and a check of answers to ranged reads.

use bucketload_core::error::{ErrorKind, OpError, OpResult};
use bucketload_core::op::{ByteRange, Op, OpClass, Request};
use bucketload_s3::encode;

/// The value of `Range`.
pub(crate) fn range_header(range: ByteRange) -> String {
    let last = range.offset + range.len.saturating_sub(1);
    format!("bytes={}-{last}", range.offset)
}

/// The value of `x-amz-copy-source`: `bucket/key`, encoded.
pub(crate) fn copy_source(request: &Request<'_>) -> String {
    let mut out = Vec::new();
    encode::push_query(&mut out, request.bucket);
    out.push(b'/');
    encode::push_key(&mut out, request.source);
    // The encoded text is ASCII.
    String::from_utf8(out).unwrap_or_default()
}

/// Checks that an answer to `request` is partial where necessary; returns the offset of its first byte
/// according to `content_range`.
///
/// # Errors
/// `Protocol` when the range was ignored.
pub(crate) fn check_range(
    request: &Request<'_>,
    status: u16,
    content_range: Option<&str>,
) -> OpResult<Option<u64>> {
    let op = &request.op;
    let Some(range) = op.range.filter(|_| op.class == OpClass::RangeGet) else {
        return Ok(None);
    };
    let known = match request.content.filter(|_| request.verify) {
        Some(content) => content.size(),
        None => op.size,
    };
    let whole = range.offset == 0 && known != Op::UNKNOWN_SIZE && range.len >= known;
    if status != 206 && !whole {
        return Err(OpError::with_status(
            ErrorKind::Protocol,
            status,
            "the server ignored the Range header",
        ));
    }
    // "bytes 5-9/100"
    let start = content_range
        .and_then(|text| text.strip_prefix("bytes "))
        .and_then(|text| text.split_once('-')?.0.parse().ok());
    Ok(start)
}
