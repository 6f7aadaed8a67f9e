//! Buckets and keys as paths.
//!
//! A path is `ROOT/BUCKET/KEY`. The name node or a gateway in front of it normalises paths, which would
//! turn some keys into other paths. This module refuses such keys before a request is sent, so no
//! operation touches a file that its key does not name.

use bucketload_core::error::{ErrorKind, OpError, OpResult};

/// Refuses a bucket or key that a path cannot contain unchanged.
///
/// # Errors
/// `Rejected`, with the reason.
pub(crate) fn check(bucket: &str, key: &str) -> OpResult<()> {
    let wrong = match (problem(bucket), problem(key)) {
        (Some(problem), _) => Some(("bucket", bucket, problem)),
        (None, Some(problem)) => Some(("key", key, problem)),
        (None, None) if bucket.contains('/') => Some(("bucket", bucket, "it contains a `/`")),
        (None, None) => None,
    };
    match wrong {
        None => Ok(()),
        Some((what, name, problem)) => Err(refused(what, name, problem)),
    }
}

#[cold]
fn refused(what: &str, name: &str, problem: &str) -> OpError {
    let shown: String = name.chars().take(80).collect();
    OpError::new(
        ErrorKind::Rejected,
        format!("HDFS cannot store the {what} `{shown}`: {problem}"),
    )
}

/// Why `name` cannot be one or several segments of a path, if so.
fn problem(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        return Some("it is empty");
    }
    let mut segments = name.split('/');
    segments.find_map(|segment| match segment {
        "" => Some("one of its segments is empty"),
        "." | ".." => Some("one of its segments is `.` or `..`"),
        _ => None,
    })
}

/// Whether a prefix can match any key: its directories must be valid.
pub(crate) fn prefix_is_possible(prefix: &str) -> bool {
    match prefix.rsplit_once('/') {
        Some((directories, _)) => problem(directories).is_none(),
        None => true,
    }
}

/// Appends `ROOT/BUCKET/KEY` to `out`; the key may be empty. `root` has no trailing slash.
pub(crate) fn push(out: &mut String, root: &str, bucket: &str, key: &str) {
    out.push_str(root);
    for part in [bucket, key] {
        if !part.is_empty() {
            out.push('/');
            out.push_str(part.trim_end_matches('/'));
        }
    }
    if out.is_empty() {
        out.push('/');
    }
}

/// The directory of `key`: `a/b` for `a/b/c`; `None` if it is the bucket.
pub(crate) fn parent(key: &str) -> Option<&str> {
    key.rsplit_once('/').map(|(parent, _)| parent)
}

#[cfg(test)]
mod tests {
    use bucketload_core::error::ErrorKind;

    use super::{check, parent, prefix_is_possible, push};

    fn path(root: &str, bucket: &str, key: &str) -> String {
        let mut out = String::new();
        push(&mut out, root, bucket, key);
        out
    }

    #[test]
    fn keys_that_would_become_other_paths_are_refused() {
        for (bucket, key) in [
            ("b", ""),
            ("b", "/a"),
            ("b", "a/"),
            ("b", "a//b"),
            ("b", "a/./b"),
            ("b", "../c/secret"),
            ("b", "a/.."),
            ("", "a"),
            ("..", "a"),
            ("a/b", "c"),
        ] {
            let error = check(bucket, key).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Rejected, "{bucket} {key}");
        }
        for key in ["a", "a/b", ".a/..b/...", "a b", "\u{e4}"] {
            check("b", key).unwrap();
        }
    }

    #[test]
    fn paths_are_joined() {
        assert_eq!(path("", "b", "k/l"), "/b/k/l");
        assert_eq!(path("/base", "b", ""), "/base/b");
        assert_eq!(path("/base", "b", "dir/"), "/base/b/dir");
        assert_eq!(path("", "", ""), "/");
        assert_eq!(parent("a/b/c"), Some("a/b"));
        assert_eq!(parent("c"), None);
    }

    #[test]
    fn prefixes_may_end_anywhere() {
        for prefix in ["", "a", "a/", "a/b", "..", "a/."] {
            assert!(prefix_is_possible(prefix), "{prefix}");
        }
        for prefix in ["/", "../", "a//", "a/../b"] {
            assert!(!prefix_is_possible(prefix), "{prefix}");
        }
    }
}
