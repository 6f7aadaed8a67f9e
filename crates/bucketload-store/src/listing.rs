//! The rules of listings that are independent of the medium.

/// The common prefix of `key` under `prefix` and `delimiter`, if it has one.
pub(crate) fn common_prefix<'k>(key: &'k str, prefix: &str, delimiter: &str) -> Option<&'k str> {
    if delimiter.is_empty() {
        return None;
    }
    let rest = key.strip_prefix(prefix)?;
    let at = rest.find(delimiter)?;
    Some(&key[..prefix.len() + at + delimiter.len()])
}

/// The smallest byte string greater than every string that begins with `prefix`. The last byte can
/// always be incremented, because UTF-8 contains no byte 0xFF.
///
/// # Panics
/// If `prefix` is empty.
pub(crate) fn after_prefix(prefix: &str) -> Vec<u8> {
    let mut bytes = prefix.as_bytes().to_vec();
    *bytes.last_mut().expect("a common prefix is not empty") += 1;
    bytes
}

/// Lower bound of the keys to visit in a listing.
pub(crate) fn lower_bound(prefix: &str, delimiter: &str, start_after: &str) -> Vec<u8> {
    if start_after < prefix || start_after.is_empty() {
        return prefix.as_bytes().to_vec();
    }
    if let Some(common) = common_prefix(start_after, prefix, delimiter) {
        // `start_after` lies within this common prefix, which an earlier page has listed.
        return after_prefix(common);
    }
    let mut bytes = start_after.as_bytes().to_vec();
    bytes.push(0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_end_with_the_first_delimiter_after_the_prefix() {
        assert_eq!(common_prefix("a/b/c", "", "/"), Some("a/"));
        assert_eq!(common_prefix("a/b/c", "a/", "/"), Some("a/b/"));
        assert_eq!(common_prefix("a/b/c", "a/b/", "/"), None);
        assert_eq!(common_prefix("a--b", "a", "--"), Some("a--"));
        assert_eq!(common_prefix("a/b", "", ""), None);
        assert_eq!(common_prefix("a/b", "x", "/"), None);
    }

    #[test]
    fn bounds_skip_listed_keys() {
        assert_eq!(lower_bound("p", "/", ""), b"p");
        assert_eq!(lower_bound("p", "/", "o"), b"p");
        assert_eq!(lower_bound("p", "/", "pa"), b"pa\0");
        assert_eq!(lower_bound("p", "/", "pa/"), b"pa0");
        assert_eq!(lower_bound("p", "/", "pa/x"), b"pa0");
        assert_eq!(lower_bound("", "", "pa/x"), b"pa/x\0");
        assert_eq!(lower_bound("", "", ""), b"");
    }
}
