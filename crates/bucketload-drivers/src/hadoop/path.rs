//! Buckets and keys as paths.
//!
//! A path is `ROOT/BUCKET/KEY`. Some keys would be another path than they say, because the name node
//! or a gateway in front of it normalises paths: they are refused here, before a request leaves, so
//! that no operation ever touches a file that its key does not name.

use bucketload_core::error::{ErrorKind, OpError};

/// Refuses a bucket or key that cannot stand in a path as it is.
///
/// # Errors
/// `Rejected`, with the reason.
pub(crate) fn check(bucket: &str, key: &str) -> Result<(), OpError> {
    let wrong = match (problem(bucket), problem(key)) {
        (Some(problem), _) => Some(("bucket", bucket, problem)),
        (None, Some(problem)) => Some(("key", key, problem)),
        (None, None) if bucket.contains('/') => Some(("bucket", bucket, "it holds a `/`")),
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
        format!("HDFS cannot hold the {what} `{shown}`: {problem}"),
    )
}

/// What makes `name` impossible as one or several segments of a path.
fn problem(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        return Some("it is empty");
    }
    let mut segments = name.split('/');
    segments.find_map(|segment| match segment {
        "" => Some("a segment of it is empty"),
        "." | ".." => Some("a segment of it is `.` or `..`"),
        _ => None,
    })
}

/// Whether a prefix of keys can match anything: its directories must be possible.
pub(crate) fn prefix_is_possible(prefix: &str) -> bool {
    match prefix.rsplit_once('/') {
        Some((directories, _)) => problem(directories).is_none(),
        None => true,
    }
}

/// Appends `ROOT/BUCKET/KEY` to `out`; the key may be empty. `root` has no slash at its end.
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

/// The directory that holds `key`: `a/b` of `a/b/c`; `None` when that is the bucket.
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
    fn keys_that_are_other_paths_are_refused() {
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
