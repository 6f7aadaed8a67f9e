//! Which status an error of the store gives.

use std::ffi::c_int;

use bucketload_store::StoreError;
pub(crate) use libs3_abi::Status;
use libs3_abi::Version;

/// The version of the interface that this library offers.
pub(crate) const VERSION: Version = if cfg!(feature = "abi2") {
    Version::Two
} else {
    Version::Four
};

/// The status that a server's answer without a body gives: HEAD has none, so that its errors
/// are known by the HTTP status alone.
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

/// The status for an error of the store: the one with the name of its S3 code. A full store
/// has no code of its own in libs3 and counts as a quota.
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

/// Whether the same request may succeed when it is made again.
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
