//! The meaning of system calls' errors.

use bucketload_core::error::{ErrorKind, OpError};
use rustix::io::Errno;

/// A failed system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) call: &'static str,
    pub(super) errno: Errno,
}

impl Failure {
    pub(super) const fn new(call: &'static str, errno: Errno) -> Self {
        Self { call, errno }
    }
}

/// Whether the operation looks for an object or creates one. An obstacle to a new file is a conflict; in a
/// lookup the same obstacle means that the object does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Intent {
    Find,
    Make,
}

/// The error kind for `errno`, and a remark to add to the system's message.
fn kind_of(errno: Errno, intent: Intent) -> (ErrorKind, &'static str) {
    match errno {
        Errno::NOENT => (ErrorKind::NotFound, ""),
        Errno::NOTDIR | Errno::ISDIR | Errno::LOOP if intent == Intent::Find => {
            (ErrorKind::NotFound, "there is no such file")
        }
        Errno::NOTDIR => (
            ErrorKind::Conflict,
            "an object is in the place of a directory",
        ),
        Errno::ISDIR => (
            ErrorKind::Conflict,
            "a directory is in the place of the object",
        ),
        Errno::LOOP => (
            ErrorKind::Conflict,
            "a symbolic link is in the place of the object",
        ),
        Errno::EXIST | Errno::NOTEMPTY | Errno::BUSY | Errno::TXTBSY => (ErrorKind::Conflict, ""),
        Errno::NOSPC => (ErrorKind::Full, "the file system is full"),
        Errno::DQUOT => (ErrorKind::Full, "the quota is used up"),
        Errno::ACCESS | Errno::PERM => (ErrorKind::Auth, "this user lacks permission"),
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
            "this file system does not accept such a request; does it support O_DIRECT?",
        ),
        Errno::OPNOTSUPP | Errno::NOSYS => (ErrorKind::Unsupported, ""),
        _ => (ErrorKind::Server, ""),
    }
}

/// The error for a failed operation on `path` (with or without its NUL).
#[cold]
pub(super) fn to_error(failure: Failure, intent: Intent, path: &[u8]) -> OpError {
    let (kind, remark) = kind_of(failure.errno, intent);
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
    fn errors_map_to_error_kinds() {
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
