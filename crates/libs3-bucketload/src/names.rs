//! The rules that libs3 applies to bucket names before sending a request.
//!
//! They are laxer than those of S3 (upper case, up to 255 characters), so the store may still refuse a
//! name that passes.

use crate::abi::S3_URI_STYLE_VIRTUAL_HOST;
use crate::status::Status;

/// Checks a bucket name from left to right. Returns the status of the first broken rule.
pub(crate) fn check(name: &[u8], uri_style: i32) -> Result<(), Status> {
    let virtual_host = uri_style == S3_URI_STYLE_VIRTUAL_HOST;
    let longest = if virtual_host { 63 } else { 255 };
    let mut only_digits_and_dots = true;
    let mut before = 0;
    for (at, &byte) in name.iter().enumerate() {
        if at >= longest {
            return Err(Status::InvalidBucketNameTooLong);
        }
        if byte.is_ascii_alphanumeric() {
            only_digits_and_dots &= byte.is_ascii_digit();
        } else {
            if at == 0 {
                return Err(Status::InvalidBucketNameFirstCharacter);
            }
            match byte {
                b'_' if !virtual_host => only_digits_and_dots = false,
                b'-' => {
                    if virtual_host && before == b'.' {
                        return Err(Status::InvalidBucketNameCharacterSequence);
                    }
                    only_digits_and_dots = false;
                }
                b'.' => {
                    if virtual_host && before == b'-' {
                        return Err(Status::InvalidBucketNameCharacterSequence);
                    }
                }
                _ => return Err(Status::InvalidBucketNameCharacter),
            }
        }
        before = byte;
    }
    if name.len() < 3 {
        return Err(Status::InvalidBucketNameTooShort);
    }
    if only_digits_and_dots {
        return Err(Status::InvalidBucketNameDotQuadNotation);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::S3_URI_STYLE_PATH;

    #[test]
    fn names_are_checked_as_libs3_does() {
        use Status::*;
        let path = |name: &str| check(name.as_bytes(), S3_URI_STYLE_PATH).err();
        let host = |name: &str| check(name.as_bytes(), S3_URI_STYLE_VIRTUAL_HOST).err();
        assert_eq!(path("abc%d"), Some(InvalidBucketNameCharacter));
        assert_eq!(path("ab"), Some(InvalidBucketNameTooShort));
        assert_eq!(path(""), Some(InvalidBucketNameTooShort));
        assert_eq!(path("1.2.3.4"), Some(InvalidBucketNameDotQuadNotation));
        assert_eq!(path("A_b_c"), None);
        assert_eq!(host("A_b_c"), Some(InvalidBucketNameCharacter));
        assert_eq!(host("a.-b"), Some(InvalidBucketNameCharacterSequence));
        assert_eq!(host("a-.b"), Some(InvalidBucketNameCharacterSequence));
        assert_eq!(path("a-.b"), None);
        assert_eq!(path("-ab"), Some(InvalidBucketNameFirstCharacter));
        assert_eq!(path(&"a".repeat(255)), None);
        assert_eq!(path(&"a".repeat(256)), Some(InvalidBucketNameTooLong));
        assert_eq!(host(&"a".repeat(63)), None);
        assert_eq!(host(&"a".repeat(64)), Some(InvalidBucketNameTooLong));
    }
}
