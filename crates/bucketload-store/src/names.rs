//! Rules for bucket names and keys.

use crate::error::{Result, StoreError};

/// Maximum length of a key, in bytes.
pub const MAX_KEY_BYTES: usize = 1024;

/// Checks a bucket name against the rules for S3 general purpose buckets: 3 to 63 characters of
/// `a-z0-9.-`, a letter or digit first and last, no adjacent dots, no dot next to a hyphen, not an
/// IPv4 address, and no reserved prefix or suffix.
///
/// # Errors
/// [`StoreError::InvalidBucketName`] with the broken rule.
pub fn check_bucket_name(name: &str) -> Result<()> {
    let bytes = name.as_bytes();
    let reject = |rule| Err(StoreError::InvalidBucketName(rule));
    if bytes.len() < 3 || bytes.len() > 63 {
        return reject("it must have 3 to 63 characters");
    }
    if !bytes
        .iter()
        .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-'))
    {
        return reject("only lower-case letters, digits, dots and hyphens are allowed");
    }
    let edge = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    if !edge(bytes[0]) || !edge(bytes[bytes.len() - 1]) {
        return reject("it must begin and end with a letter or digit");
    }
    if bytes
        .windows(2)
        .any(|pair| matches!(pair, b".." | b".-" | b"-."))
    {
        return reject("a dot must not stand next to a dot or a hyphen");
    }
    if bytes[0].is_ascii_digit() && name.parse::<std::net::Ipv4Addr>().is_ok() {
        return reject("it must not look like an IP address");
    }
    if ["xn--", "sthree-", "amzn-s3-demo-"]
        .iter()
        .any(|p| bytes.starts_with(p.as_bytes()))
        || ["-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3"]
            .iter()
            .any(|s| bytes.ends_with(s.as_bytes()))
    {
        return reject("it has a reserved prefix or suffix");
    }
    Ok(())
}

/// Checks a key: 1 to [`MAX_KEY_BYTES`] bytes of UTF-8, any characters.
///
/// # Errors
/// [`StoreError::KeyTooLong`], or [`StoreError::InvalidArgument`] if it is empty.
pub fn check_key(key: &str) -> Result<()> {
    if key.is_empty() {
        return Err(StoreError::InvalidArgument("the key is empty"));
    }
    if key.len() > MAX_KEY_BYTES {
        return Err(StoreError::KeyTooLong);
    }
    Ok(())
}

/// Checks a bucket name and a key.
pub(crate) fn check(bucket: &str, key: &str) -> Result<()> {
    check_bucket_name(bucket)?;
    check_key(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_names_follow_the_s3_rules() {
        for good in [
            "abc",
            "a.b-c",
            "0bucket9",
            &"a".repeat(63),
            "1.2.3",
            "1.2.3.4.5",
        ] {
            assert!(check_bucket_name(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "ab",
            &"a".repeat(64),
            "Abc",
            "a_b",
            "-abc",
            "abc-",
            ".abc",
            "a..b",
            "a.-b",
            "a-.b",
            "1.2.3.4",
            "xn--abc",
            "abc-s3alias",
            "a/b",
            "..",
            "a b",
            "bücket",
        ] {
            let error = check_bucket_name(bad).unwrap_err();
            assert_eq!(error.code(), "InvalidBucketName", "{bad}");
        }
    }

    #[test]
    fn keys_are_limited_in_bytes_only() {
        assert!(check_key("..").is_ok());
        assert!(check_key(&"ü".repeat(512)).is_ok());
        assert_eq!(
            check_key(&"ü".repeat(513)).unwrap_err().code(),
            "KeyTooLongError"
        );
        assert_eq!(check_key("").unwrap_err().code(), "InvalidArgument");
    }
}
