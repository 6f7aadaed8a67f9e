//! The meaning of the library's statuses.

use std::ffi::c_int;

use bucketload_core::error::{ErrorKind, OpError};
use libs3_abi::Status;

use super::library::Library;

/// The error kind for a status other than 0 (version 4).
fn kind_of(status: c_int) -> ErrorKind {
    use Status as S;
    let Some(status) = Status::of(status) else {
        return ErrorKind::Rejected;
    };
    match status {
        S::Interrupted => ErrorKind::Cancelled,
        S::XmlParseFailure | S::XmlDocumentTooLarge | S::AbortedByCallback => ErrorKind::Protocol,
        S::NameLookupError | S::FailedToConnect => ErrorKind::Connect,
        S::ServerFailedVerification => ErrorKind::Tls,
        S::ConnectionFailed => ErrorKind::Reset,
        S::NotSupported | S::ErrorMethodNotAllowed | S::ErrorNotImplemented => {
            ErrorKind::Unsupported
        }
        S::ErrorAccessDenied
        | S::ErrorAccountProblem
        | S::ErrorCredentialsNotSupported
        | S::ErrorExpiredToken
        | S::ErrorInvalidAccessKeyId
        | S::ErrorInvalidSecurity
        | S::ErrorInvalidToken
        | S::ErrorNotSignedUp
        | S::ErrorRequestTimeTooSkewed
        | S::ErrorSignatureDoesNotMatch
        | S::ErrorTokenRefreshRequired
        | S::HttpErrorForbidden => ErrorKind::Auth,
        S::ErrorBucketAlreadyExists
        | S::ErrorBucketAlreadyOwnedByYou
        | S::ErrorBucketNotEmpty
        | S::ErrorInvalidBucketState
        | S::ErrorInvalidObjectState
        | S::ErrorOperationAborted
        | S::ErrorPreconditionFailed
        | S::ErrorRestoreAlreadyInProgress
        | S::HttpErrorConflict => ErrorKind::Conflict,
        S::ErrorNoSuchBucket
        | S::ErrorNoSuchKey
        | S::ErrorNoSuchLifecycleConfiguration
        | S::ErrorNoSuchUpload
        | S::ErrorNoSuchVersion
        | S::ErrorNoSuchBucketPolicy
        | S::HttpErrorNotFound => ErrorKind::NotFound,
        S::ErrorRequestTimeout => ErrorKind::Timeout,
        S::ErrorSlowDown => ErrorKind::Throttled,
        S::ErrorQuotaExceeded => ErrorKind::Full,
        S::InternalError
        | S::OutOfMemory
        | S::FailedToInitializeRequest
        | S::ErrorInternalError
        | S::ErrorServiceUnavailable
        | S::ErrorUnknown
        | S::HttpErrorUnknown => ErrorKind::Server,
        _ => ErrorKind::Rejected,
    }
}

/// The error for a call that ended with `status`; `detail` is the library's message.
#[cold]
pub(super) fn to_error(library: &Library, status: c_int, detail: &str) -> OpError {
    let name = library.status_name(status);
    let text = match detail {
        "" => name,
        detail => format!("{name}: {detail}"),
    };
    OpError::new(kind_of(status), text)
}

#[cfg(test)]
mod tests {
    use bucketload_core::error::ErrorKind::*;

    use super::kind_of;

    #[test]
    fn statuses_map_to_error_kinds() {
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
            assert_eq!(kind_of(status), kind, "{status}");
        }
    }
}
