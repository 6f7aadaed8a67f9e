//! The byte ranges in requests.

use std::ops::Range;

use crate::error::{Code, S3Error, S3Result};
use crate::headers::parse_u64;

/// Reads a `Range` header for an object of `size` bytes. `None` means the whole object: multiple
/// ranges and malformed ranges are ignored, as RFC 9110 allows and S3 does.
///
/// # Errors
/// `InvalidRange` if the range covers no byte of the object.
pub(crate) fn of_header(value: &[u8], size: u64) -> S3Result<Option<Range<u64>>> {
    let Some(spec) = value.strip_prefix(b"bytes=") else {
        return Ok(None);
    };
    let Some(dash) = spec.iter().position(|&c| c == b'-') else {
        return Ok(None);
    };
    let (first, last) = (spec[..dash].trim_ascii(), spec[dash + 1..].trim_ascii());
    let unsatisfiable = || S3Error::from(Code::InvalidRange).with_size(size);
    let range = match (parse_u64(first), parse_u64(last)) {
        (Some(first), Some(last)) if first <= last => first..size.min(last.saturating_add(1)),
        (Some(first), None) if last.is_empty() => first..size,
        (None, Some(0)) if first.is_empty() => return Err(unsatisfiable()),
        (None, Some(suffix)) if first.is_empty() => size.saturating_sub(suffix)..size,
        _ => return Ok(None),
    };
    if range.start >= size {
        Err(unsatisfiable())
    } else {
        Ok(Some(range))
    }
}

/// Reads an `x-amz-copy-source-range` header. It is stricter than `Range`: both ends are required and
/// must lie inside the source.
///
/// # Errors
/// `InvalidArgument` for another form, `InvalidRange` outside the source.
pub(crate) fn of_copy(value: &[u8], size: u64) -> S3Result<Range<u64>> {
    let ends = value.strip_prefix(b"bytes=").and_then(|spec| {
        let dash = spec.iter().position(|&c| c == b'-')?;
        Some((parse_u64(&spec[..dash])?, parse_u64(&spec[dash + 1..])?))
    });
    match ends {
        Some((first, last)) if first <= last && last < size => Ok(first..last + 1),
        Some((first, last)) if first <= last => Err(S3Error::new(
            Code::InvalidRange,
            "The range is not satisfiable: it ends beyond the source.",
        )
        .with_size(size)),
        _ => Err(S3Error::new(
            Code::InvalidArgument,
            "The x-amz-copy-source-range value must be of the form bytes=first-last.",
        )),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_are_read() {
        for (value, want) in [
            ("bytes=0-9", Some(0..10)),
            ("bytes=5-", Some(5..100)),
            ("bytes=-5", Some(95..100)),
            ("bytes=-500", Some(0..100)),
            ("bytes=90-500", Some(90..100)),
            ("bytes=0-0,5-9", None),
            ("bytes=9-5", None),
            ("items=0-1", None),
            ("bytes=", None),
            ("bytes=-", None),
        ] {
            assert_eq!(of_header(value.as_bytes(), 100), Ok(want), "{value}");
        }
        for value in ["bytes=100-", "bytes=100-200", "bytes=-0"] {
            let error = of_header(value.as_bytes(), 100).unwrap_err();
            assert_eq!(
                (error.code, error.size),
                (Code::InvalidRange, Some(100)),
                "{value}"
            );
        }
        assert_eq!(
            of_header(b"bytes=0-", 0).unwrap_err().code,
            Code::InvalidRange
        );
        assert_eq!(
            of_header(b"bytes=-1", 0).unwrap_err().code,
            Code::InvalidRange
        );
        assert_eq!(of_copy(b"bytes=0-99", 100), Ok(0..100));
        assert_eq!(
            of_copy(b"bytes=0-100", 100).unwrap_err().code,
            Code::InvalidRange
        );
        assert_eq!(
            of_copy(b"bytes=5-", 100).unwrap_err().code,
            Code::InvalidArgument
        );
    }

    proptest! {
        #[test]
        fn any_range_lies_inside(value in "bytes=[0-9]{0,20}-[0-9]{0,20}", size in 0u64..1000) {
            if let Ok(Some(range)) = of_header(value.as_bytes(), size) {
                prop_assert!(range.start < range.end && range.end <= size);
            }
            if let Ok(range) = of_copy(value.as_bytes(), size) {
                prop_assert!(range.start < range.end && range.end <= size);
            }
        }
    }
}
