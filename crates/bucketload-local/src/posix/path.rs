//! Keys as paths below the root, and the keys that a file system cannot store.
//!
//! An object store accepts any bytes as a key. A file system accepts segments of 1 to 255 bytes that are
//! neither `.` nor `..` and contain no NUL. Other keys are refused, never changed: two keys must not become
//! one file.

use bucketload_core::error::{ErrorKind, OpError, OpResult};

/// Longest segment, bytes (NAME_MAX).
const MAX_SEGMENT: usize = 255;
/// Longest path with its NUL, bytes (PATH_MAX).
pub(super) const MAX_PATH: usize = 4096;
/// Prefix of the driver's own files. Listings do not show them, and keys must not use it.
pub(super) const RESERVED: &str = ".bucketload-posix-";

/// Why `segment` cannot be the name of a file.
fn problem(segment: &[u8]) -> Option<&'static str> {
    match segment {
        b"" => Some("has an empty segment (a leading or trailing slash, or two in a row)"),
        b"." | b".." => Some("has the segment `.` or `..`"),
        s if s.len() > MAX_SEGMENT => Some("has a segment of more than 255 bytes"),
        s if s.contains(&0) => Some("contains a NUL byte"),
        s if is_reserved(s) => Some("has a segment that is reserved for temporary files"),
        _ => None,
    }
}

/// Whether a name is that of one of the driver's own files, which are not objects.
pub(super) fn is_reserved(name: &[u8]) -> bool {
    name.first() == Some(&b'.') && name.starts_with(RESERVED.as_bytes())
}

/// Replaces `out` with the NUL-terminated path of object `key` in `bucket`.
///
/// # Errors
/// `Rejected` for names that a file system cannot store.
#[inline]
pub(super) fn set_object(out: &mut Vec<u8>, bucket: &str, key: &str) -> OpResult<()> {
    match is_object(out, bucket, key) {
        true => Ok(()),
        false => set_other(out, bucket, key),
    }
}

/// Whether `out` is that path already, as when a file is read by ranges. A path that was checked once is not checked
/// again.
#[inline]
fn is_object(out: &[u8], bucket: &str, key: &str) -> bool {
    let (bucket, key) = (bucket.as_bytes(), key.as_bytes());
    out.len() == bucket.len() + key.len() + 2
        && out.ends_with(b"\0")
        && out[bucket.len()] == b'/'
        && !bucket.contains(&b'/')
        && out[bucket.len() + 1..].starts_with(key)
        && out.starts_with(bucket)
}

fn set_other(out: &mut Vec<u8>, bucket: &str, key: &str) -> OpResult<()> {
    // Most objects are in the directory of the one before, whose name was checked then.
    if let Some(slash) = key.bytes().rposition(|byte| byte == b'/')
        && has_directory(out, bucket.as_bytes(), &key.as_bytes()[..=slash])
    {
        out.truncate(bucket.len() + 1 + slash);
        return push_segments(out, key, slash + 1);
    }
    set_bucket(out, bucket)?;
    out.pop();
    push_key(out, key)
}

/// Whether `out` is a path in `directory` of `bucket`; `directory` ends with a slash.
fn has_directory(out: &[u8], bucket: &[u8], directory: &[u8]) -> bool {
    let at = bucket.len() + 1;
    out.len() > at + directory.len()
        && out[at - 1] == b'/'
        && !bucket.contains(&b'/')
        && out[at..].starts_with(directory)
        && out.starts_with(bucket)
}

/// Appends `/key` and a NUL.
fn push_key(out: &mut Vec<u8>, key: &str) -> OpResult<()> {
    push_segments(out, key, 0)
}

/// Appends `/`, the segments of `key` from byte `from` on, and a NUL.
fn push_segments(out: &mut Vec<u8>, key: &str, from: usize) -> OpResult<()> {
    for segment in key.as_bytes()[from..].split(|&b| b == b'/') {
        if let Some(why) = problem(segment) {
            return Err(refused("key", key, why));
        }
        out.push(b'/');
        out.extend_from_slice(segment);
    }
    if out.len() >= MAX_PATH {
        return Err(refused("key", key, "makes a path of more than 4095 bytes"));
    }
    out.push(0);
    Ok(())
}

/// Replaces `out` with the NUL-terminated path of `bucket`.
///
/// # Errors
/// `Rejected` for names that a file system cannot store.
pub(super) fn set_bucket(out: &mut Vec<u8>, bucket: &str) -> OpResult<()> {
    if let Some(why) = problem(bucket.as_bytes()) {
        return Err(refused("bucket", bucket, why));
    }
    if bucket.contains('/') {
        return Err(refused("bucket", bucket, "contains a slash"));
    }
    out.clear();
    out.extend_from_slice(bucket.as_bytes());
    out.push(0);
    Ok(())
}

/// Replaces `out` with the NUL-terminated path of the directory of the keys that begin with `prefix`, and
/// returns the number of bytes of the prefix that name it; `None` if no key can begin with `prefix`.
pub(super) fn set_prefix(out: &mut Vec<u8>, bucket: &str, prefix: &str) -> OpResult<Option<usize>> {
    set_bucket(out, bucket)?;
    let Some(end) = prefix.rfind('/') else {
        return Ok(Some(0));
    };
    out.pop();
    Ok(match push_key(out, &prefix[..end]) {
        Ok(()) => Some(end + 1),
        Err(_) => None,
    })
}

/// The directory of the file at `path`, with a trailing slash.
pub(super) fn directory(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|&b| b == b'/').map_or(0, |at| at + 1);
    &path[..end]
}

/// Replaces `out` with the NUL-terminated path of the driver's own file of kind `kind` with the given
/// numbers, beside the file at `path`.
pub(super) fn set_beside(out: &mut Vec<u8>, path: &[u8], kind: &str, numbers: [u64; 2]) {
    use std::io::Write;
    out.clear();
    out.extend_from_slice(directory(path));
    // Writing to memory cannot fail.
    let _ = write!(out, "{RESERVED}{kind}-{:x}-{:x}\0", numbers[0], numbers[1]);
}

#[cold]
fn refused(what: &str, name: &str, why: &str) -> OpError {
    OpError::new(
        ErrorKind::Rejected,
        format!("a file system cannot store the {what} {name:?}: it {why}"),
    )
}

#[cfg(test)]
mod tests {
    use bucketload_core::error::ErrorKind;

    use super::{set_beside, set_bucket, set_object, set_prefix};

    #[test]
    fn keys_become_paths() {
        let mut out = b"left over".to_vec();
        set_object(&mut out, "b", "a/b c/\u{e4}\\*").unwrap();
        assert_eq!(out, "b/a/b c/\u{e4}\\*\0".as_bytes());
        set_object(&mut out, "b", ".../..a/.b").unwrap();
        assert_eq!(out, b"b/.../..a/.b\0");
    }

    #[test]
    fn a_path_is_kept_only_for_the_same_object() {
        let mut out = Vec::new();
        for (bucket, key, path) in [
            ("b", "a/k", "b/a/k\0"),
            ("b", "a/k", "b/a/k\0"),
            ("b", "a/l", "b/a/l\0"),
            ("b", "a/long", "b/a/long\0"),
            ("b", "a/x/y", "b/a/x/y\0"),
            ("b", "a/x/z", "b/a/x/z\0"),
            ("b", "a/y", "b/a/y\0"),
            ("b", "a/x/y", "b/a/x/y\0"),
            ("b", "x/y", "b/x/y\0"),
            ("c", "a/l", "c/a/l\0"),
            ("c", "a", "c/a\0"),
            ("cc", "a", "cc/a\0"),
            ("c", "c/a", "c/c/a\0"),
        ] {
            set_object(&mut out, bucket, key).unwrap();
            assert_eq!(out, path.as_bytes());
        }
        set_object(&mut out, "b", "a/b/k").unwrap();
        let long = "a/b/".to_owned() + &"k".repeat(256);
        for wrong in ["a/b/", "a/b/..", "a/b/n\0n", "a//b", "/k", &long] {
            assert!(set_object(&mut out, "b", wrong).is_err(), "{wrong:?}");
            set_object(&mut out, "b", "a/b/l").unwrap();
            assert_eq!(out, b"b/a/b/l\0");
        }
        // What stands there is no object of this name, although the bytes fit.
        set_object(&mut out, "b", "a").unwrap();
        assert!(set_object(&mut out, "b/a", "").is_err());
        assert!(set_object(&mut out, "", "b/a").is_err());
        set_object(&mut out, "b", "a/k").unwrap();
        assert!(set_object(&mut out, "b/a", "k").is_err());
        let deep = "d/".repeat(2100) + "f";
        for _ in 0..2 {
            assert!(set_object(&mut out, "b", &deep).is_err());
        }
    }

    #[test]
    fn keys_that_no_file_system_can_store_are_refused() {
        let long = "k".repeat(256);
        let deep = "d/".repeat(2100) + "f";
        let keys = [
            "",
            "/",
            "/a",
            "a/",
            "a//b",
            ".",
            "..",
            "a/./b",
            "a/../b",
            "../a",
            "a/..",
            "a\0b",
            &long,
            &deep,
            ".bucketload-posix-tmp-1-2",
            "a/.bucketload-posix-x/b",
        ];
        for key in keys {
            let error = set_object(&mut Vec::new(), "b", key).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Rejected, "{key:?}");
        }
        for bucket in ["", ".", "..", "a/b", "/a", &long] {
            assert!(set_bucket(&mut Vec::new(), bucket).is_err(), "{bucket:?}");
        }
        set_object(&mut Vec::new(), "b", &"k".repeat(255)).unwrap();
    }

    #[test]
    fn prefixes_name_their_directory() {
        let mut out = Vec::new();
        for (prefix, path, len) in [
            ("", "b\0", Some(0)),
            ("p", "b\0", Some(0)),
            ("p/", "b/p\0", Some(2)),
            ("p/q", "b/p\0", Some(2)),
            ("p/q/r", "b/p/q\0", Some(4)),
        ] {
            assert_eq!(set_prefix(&mut out, "b", prefix).unwrap(), len, "{prefix}");
            assert_eq!(out, path.as_bytes(), "{prefix}");
        }
        for prefix in ["/", "p//", "../", "p/./q"] {
            assert_eq!(set_prefix(&mut out, "b", prefix).unwrap(), None, "{prefix}");
        }
    }

    #[test]
    fn own_files_are_beside_the_object() {
        let mut out = Vec::new();
        set_beside(&mut out, b"b/a/k\0", "tmp", [255, 2]);
        assert_eq!(out, b"b/a/.bucketload-posix-tmp-ff-2\0");
    }
}
