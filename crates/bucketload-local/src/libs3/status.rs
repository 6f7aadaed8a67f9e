//! What statuses of the library mean.

use bucketload_core::error::{ErrorKind, OpError};

use super::abi::{ABORTED_BY_CALLBACK, Status};
use super::library::Library;

/// The meaning of a status other than 0 (version 4).
const fn meaning(status: Status) -> ErrorKind {
    match status {
        3 => ErrorKind::Cancelled,
        31 | 42 | ABORTED_BY_CALLBACK => ErrorKind::Protocol,
        43 | 44 => ErrorKind::Connect,
        45 => ErrorKind::Tls,
        46 => ErrorKind::Reset,
        // NotSupported, ErrorMethodNotAllowed, ErrorNotImplemented
        48 | 94 | 106 => ErrorKind::Unsupported,
        // Access denied, account, credentials, tokens, keys, not signed up, clock, signature, 403
        49 | 50 | 56 | 60 | 66 | 81 | 85 | 107 | 116 | 118 | 122 | 131 => ErrorKind::Auth,
        // Bucket exists, is mine, is not empty, state; aborted by another, precondition, restore, 409
        53..=55 | 70 | 74 | 109 | 111 | 113 | 133 => ErrorKind::Conflict,
        // No such bucket, key, lifecycle, upload, version, policy; 404
        101..=105 | 108 | 132 => ErrorKind::NotFound,
        115 => ErrorKind::Timeout,
        120 => ErrorKind::Throttled,
        127 => ErrorKind::Full,
        // Out of memory and the like, internal errors, unavailable, unknown
        1 | 2 | 11 | 65 | 119 | 128 | 134 => ErrorKind::Server,
        _ => ErrorKind::Rejected,
    }
}

/// The error of a call that ended with `status`; `detail` is what the library says besides.
#[cold]
pub(super) fn to_error(library: &Library, status: Status, detail: &str) -> OpError {
    let name = library.status_name(status);
    let text = match detail {
        "" => name,
        detail => format!("{name}: {detail}"),
    };
    OpError::new(meaning(status), text)
}

#[cfg(test)]
mod tests {
    use bucketload_core::error::ErrorKind::*;

    use super::meaning;

    #[test]
    fn statuses_have_meanings() {
        for (status, kind) in [
            (6, Rejected),
            (30, Rejected),
            (44, Connect),
            (46, Reset),
            (48, Unsupported),
            (49, Auth),
            (54, Conflict),
            (55, Conflict),
            (58, Rejected),
            (65, Server),
            (79, Rejected),
            (101, NotFound),
            (102, NotFound),
            (111, Conflict),
            (115, Timeout),
            (120, Throttled),
            (127, Full),
            (132, NotFound),
        ] {
            assert_eq!(meaning(status), kind, "{status}");
        }
    }
}
