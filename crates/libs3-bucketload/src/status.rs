//! The libs3 status of each error.

use std::ffi::c_int;

use bucketload_store::StoreError;
pub(crate) use libs3_abi::Status;
use libs3_abi::Version;

/// The version of the interface that this library implements.
pub(crate) const VERSION: Version = if cfg!(feature = "abi2") {
    Version::Two
} else {
    Version::Four
};

/// The status for a response without a body. A HEAD response has none, so only the HTTP status
/// identifies its error.
pub(crate) const fn of_http(status: u16) -> Status {
    match status {
        301 => Status::ErrorPermanentRedirect,
        307 => Status::HttpErrorMovedTemporarily,
        400 => Status::HttpErrorBadRequest,
        403 => Status::HttpErrorForbidden,
        404 => Status::HttpErrorNotFound,
        405 => Status::ErrorMethodNotAllowed,
        409 => Status::HttpErrorConflict,
        411 => Status::ErrorMissingContentLength,
        412 => Status::ErrorPreconditionFailed,
        416 => Status::ErrorInvalidRange,
        500 => Status::ErrorInternalError,
        501 => Status::ErrorNotImplemented,
        503 => Status::ErrorSlowDown,
        _ => Status::HttpErrorUnknown,
    }
}

/// The status for an error of the store: the one named after its S3 code. libs3 has no code for a full
/// store, so that counts as an exceeded quota.
pub(crate) const fn of_store(error: &StoreError) -> Status {
    match error {
        StoreError::NoSuchBucket => Status::ErrorNoSuchBucket,
        StoreError::NoSuchKey => Status::ErrorNoSuchKey,
        StoreError::NoSuchUpload => Status::ErrorNoSuchUpload,
        StoreError::BucketNotEmpty => Status::ErrorBucketNotEmpty,
        StoreError::BucketAlreadyOwnedByYou => Status::ErrorBucketAlreadyOwnedByYou,
        StoreError::InvalidBucketName(_) => Status::ErrorInvalidBucketName,
        StoreError::KeyTooLong => Status::ErrorKeyTooLong,
        StoreError::InvalidArgument(_) => Status::ErrorInvalidArgument,
        StoreError::InvalidPart(_) => Status::ErrorInvalidPart,
        StoreError::InvalidPartOrder => Status::ErrorInvalidPartOrder,
        StoreError::EntityTooSmall { .. } => Status::ErrorEntityTooSmall,
        StoreError::EntityTooLarge { .. } => Status::ErrorEntityTooLarge,
        StoreError::BadDigest => Status::ErrorBadDigest,
        StoreError::IncompleteBody { .. } => Status::ErrorIncompleteBody,
        StoreError::PreconditionFailed => Status::ErrorPreconditionFailed,
        StoreError::InvalidRange { .. } => Status::ErrorInvalidRange,
        StoreError::InsufficientStorage => Status::ErrorQuotaExceeded,
        StoreError::NotImplemented(_) => Status::ErrorNotImplemented,
        StoreError::AccessDenied(_) => Status::ErrorAccessDenied,
        _ => Status::ErrorInternalError,
    }
}

/// Whether the request may succeed if repeated.
pub(crate) fn is_retryable(code: c_int) -> bool {
    [
        Status::NameLookupError,
        Status::FailedToConnect,
        Status::ConnectionFailed,
        Status::ErrorInternalError,
        Status::ErrorOperationAborted,
        Status::ErrorRequestTimeout,
    ]
    .iter()
    .any(|status| status.code(VERSION) == code)
}
