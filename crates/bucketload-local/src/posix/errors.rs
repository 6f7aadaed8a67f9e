//! What the errors of system calls mean.

use bucketload_core::error::{ErrorKind, OpError};
use rustix::io::Errno;

/// A failed system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// What was called.
    pub(super) call: &'static str,
    /// Why it failed.
    pub(super) errno: Errno,
}

impl Failure {
    pub(super) const fn new(call: &'static str, errno: Errno) -> Self {
        Self { call, errno }
    }
}

/// Whether the operation looks for an object or makes one: what stands in the way of a new file is a
/// conflict, and the same thing in the way of a lookup means that there is no such object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Intent {
    Find,
    Make,
}

/// The meaning of `errno`, and what to say beside the system's own words.
fn meaning(errno: Errno, intent: Intent) -> (ErrorKind, &'static str) {
    match errno {
        Errno::NOENT => (ErrorKind::NotFound, ""),
        Errno::NOTDIR | Errno::ISDIR | Errno::LOOP if intent == Intent::Find => {
            (ErrorKind::NotFound, "there is no such file")
        }
        Errno::NOTDIR => (
            ErrorKind::Conflict,
            "an object lies where a directory is needed",
        ),
        Errno::ISDIR => (
            ErrorKind::Conflict,
            "a directory lies where the object should",
        ),
        Errno::LOOP => (
            ErrorKind::Conflict,
            "a symbolic link lies where the object should",
        ),
        Errno::EXIST | Errno::NOTEMPTY | Errno::BUSY | Errno::TXTBSY => (ErrorKind::Conflict, ""),
        Errno::NOSPC => (ErrorKind::Full, "the file system is full"),
        Errno::DQUOT => (ErrorKind::Full, "the quota is used up"),
        Errno::ACCESS | Errno::PERM => (ErrorKind::Auth, "this user may not do that"),
        Errno::ROFS => (ErrorKind::Auth, "the file system is mounted read-only"),
        Errno::NOTCONN
        | Errno::STALE
        | Errno::NODEV
        | Errno::SHUTDOWN
        | Errno::NXIO
        | Errno::HOSTDOWN
        | Errno::CONNABORTED => (ErrorKind::Connect, "the mount is gone"),
        Errno::MFILE | Errno::NFILE => (
            ErrorKind::Connect,
            "too many files are open: raise `ulimit -n` or lower the operations in flight",
        ),
        Errno::TIMEDOUT => (ErrorKind::Timeout, ""),
        Errno::IO => (ErrorKind::Server, "the device or the mount does not answer"),
        Errno::NAMETOOLONG | Errno::FBIG | Errno::ILSEQ => (ErrorKind::Rejected, ""),
        Errno::INVAL => (
            ErrorKind::Unsupported,
            "this file system does not take such a request; does it support O_DIRECT?",
        ),
        Errno::OPNOTSUPP | Errno::NOSYS => (ErrorKind::Unsupported, ""),
        _ => (ErrorKind::Server, ""),
    }
}

/// The error of an operation on `path` (with or without its NUL).
#[cold]
pub(super) fn to_error(failure: Failure, intent: Intent, path: &[u8]) -> OpError {
    let (kind, remark) = meaning(failure.errno, intent);
    let path = String::from_utf8_lossy(path.strip_suffix(b"\0").unwrap_or(path));
    let system = std::io::Error::from(failure.errno);
    let mut text = format!("{} of {path}: {system}", failure.call);
    if !remark.is_empty() {
        text += "; ";
        text += remark;
    }
    OpError::new(kind, text)
}

#[cfg(test)]
mod tests {
    use bucketload_core::error::ErrorKind;
    use rustix::io::Errno;

    use super::{Failure, Intent, to_error};

    #[test]
    fn errors_have_meanings() {
        use ErrorKind::*;
        for (errno, find, make) in [
            (Errno::NOENT, NotFound, NotFound),
            (Errno::NOTDIR, NotFound, Conflict),
            (Errno::ISDIR, NotFound, Conflict),
            (Errno::NOSPC, Full, Full),
            (Errno::ACCESS, Auth, Auth),
            (Errno::ROFS, Auth, Auth),
            (Errno::NOTCONN, Connect, Connect),
            (Errno::IO, Server, Server),
            (Errno::INVAL, Unsupported, Unsupported),
            (Errno::NAMETOOLONG, Rejected, Rejected),
        ] {
            let failure = Failure::new("open", errno);
            let kind = |intent| to_error(failure, intent, b"b/k\0").kind;
            assert_eq!(
                (kind(Intent::Find), kind(Intent::Make)),
                (find, make),
                "{errno}"
            );
        }
        let text = to_error(Failure::new("write", Errno::NOSPC), Intent::Make, b"b/k\0");
        assert!(
            text.detail.contains("write of b/k: No space left"),
            "{text}"
        );
        assert!(text.detail.contains("the file system is full"), "{text}");
    }
}
