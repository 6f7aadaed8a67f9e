//! Status codes: their numbers and names in both versions, and which one an error of the store gives.
//!
//! Within the library a status is a [`Status`], whose values are those of version 4. Version 2
//! lacks those marked `new`, and numbers the others without gaps; what it lacks is reported by the
//! nearest that it has ([`Status::code`]).

use std::ffi::{CStr, c_int};

use bucketload_store::StoreError;

macro_rules! statuses {
    ($($name:ident $($new:ident)?),* $(,)?) => {
        /// What became of a request.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(dead_code, reason = "the table of numbers is complete; not every status can occur")]
        #[allow(clippy::upper_case_acronyms, reason = "the names are those of libs3")]
        pub(crate) enum Status { $($name),* }

        /// Names in the order of version 4, and whether version 2 lacks it.
        const TABLE: &[(&CStr, bool)] = &[$((
            match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a name contains no NUL"),
            },
            statuses!(@new $($new)?),
        )),*];
    };
    (@new new) => { true };
    (@new) => { false };
}

statuses! {
    OK,
    InternalError,
    OutOfMemory,
    Interrupted,
    InvalidBucketNameTooLong,
    InvalidBucketNameFirstCharacter,
    InvalidBucketNameCharacter,
    InvalidBucketNameCharacterSequence,
    InvalidBucketNameTooShort,
    InvalidBucketNameDotQuadNotation,
    QueryParamsTooLong,
    FailedToInitializeRequest,
    MetaDataHeadersTooLong,
    BadMetaData,
    BadContentType,
    ContentTypeTooLong,
    BadMD5,
    MD5TooLong,
    BadCacheControl,
    CacheControlTooLong,
    BadContentDispositionFilename,
    ContentDispositionFilenameTooLong,
    BadContentEncoding,
    ContentEncodingTooLong,
    BadIfMatchETag,
    IfMatchETagTooLong,
    BadIfNotMatchETag,
    IfNotMatchETagTooLong,
    HeadersTooLong,
    KeyTooLong,
    UriTooLong,
    XmlParseFailure,
    EmailAddressTooLong,
    UserIdTooLong,
    UserDisplayNameTooLong,
    GroupUriTooLong,
    PermissionTooLong,
    TargetBucketTooLong,
    TargetPrefixTooLong,
    TooManyGrants,
    BadGrantee,
    BadPermission,
    XmlDocumentTooLarge,
    NameLookupError,
    FailedToConnect,
    ServerFailedVerification,
    ConnectionFailed,
    AbortedByCallback,
    NotSupported new,
    ErrorAccessDenied,
    ErrorAccountProblem,
    ErrorAmbiguousGrantByEmailAddress,
    ErrorBadDigest,
    ErrorBucketAlreadyExists,
    ErrorBucketAlreadyOwnedByYou,
    ErrorBucketNotEmpty,
    ErrorCredentialsNotSupported,
    ErrorCrossLocationLoggingProhibited,
    ErrorEntityTooSmall,
    ErrorEntityTooLarge,
    ErrorExpiredToken,
    ErrorIllegalVersioningConfigurationException new,
    ErrorIncompleteBody,
    ErrorIncorrectNumberOfFilesInPostRequest,
    ErrorInlineDataTooLarge,
    ErrorInternalError,
    ErrorInvalidAccessKeyId,
    ErrorInvalidAddressingHeader,
    ErrorInvalidArgument,
    ErrorInvalidBucketName,
    ErrorInvalidBucketState new,
    ErrorInvalidDigest,
    ErrorInvalidEncryptionAlgorithmError new,
    ErrorInvalidLocationConstraint,
    ErrorInvalidObjectState new,
    ErrorInvalidPart new,
    ErrorInvalidPartOrder new,
    ErrorInvalidPayer,
    ErrorInvalidPolicyDocument,
    ErrorInvalidRange,
    ErrorInvalidRequest new,
    ErrorInvalidSecurity,
    ErrorInvalidSOAPRequest,
    ErrorInvalidStorageClass,
    ErrorInvalidTargetBucketForLogging,
    ErrorInvalidToken,
    ErrorInvalidURI,
    ErrorKeyTooLong,
    ErrorMalformedACLError,
    ErrorMalformedPOSTRequest new,
    ErrorMalformedXML,
    ErrorMaxMessageLengthExceeded,
    ErrorMaxPostPreDataLengthExceededError,
    ErrorMetadataTooLarge,
    ErrorMethodNotAllowed,
    ErrorMissingAttachment,
    ErrorMissingContentLength,
    ErrorMissingRequestBodyError new,
    ErrorMissingSecurityElement,
    ErrorMissingSecurityHeader,
    ErrorNoLoggingStatusForKey,
    ErrorNoSuchBucket,
    ErrorNoSuchKey,
    ErrorNoSuchLifecycleConfiguration new,
    ErrorNoSuchUpload new,
    ErrorNoSuchVersion new,
    ErrorNotImplemented,
    ErrorNotSignedUp,
    ErrorNoSuchBucketPolicy new,
    ErrorOperationAborted,
    ErrorPermanentRedirect,
    ErrorPreconditionFailed,
    ErrorRedirect,
    ErrorRestoreAlreadyInProgress new,
    ErrorRequestIsNotMultiPartContent,
    ErrorRequestTimeout,
    ErrorRequestTimeTooSkewed,
    ErrorRequestTorrentOfBucketError,
    ErrorSignatureDoesNotMatch,
    ErrorServiceUnavailable new,
    ErrorSlowDown,
    ErrorTemporaryRedirect,
    ErrorTokenRefreshRequired,
    ErrorTooManyBuckets,
    ErrorUnexpectedContent,
    ErrorUnresolvableGrantByEmailAddress,
    ErrorUserKeyMustBeSpecified,
    ErrorQuotaExceeded new,
    ErrorUnknown,
    HttpErrorMovedTemporarily,
    HttpErrorBadRequest,
    HttpErrorForbidden,
    HttpErrorNotFound,
    HttpErrorConflict,
    HttpErrorUnknown,
}

/// Whether the interface is that of version 2.
const V2: bool = cfg!(feature = "abi2");

impl Status {
    /// The number that C knows.
    pub(crate) fn code(self) -> c_int {
        if V2 { version_2(self) } else { self as c_int }
    }

    /// The status that a server's answer without a body gives: HEAD has none, so that its errors
    /// are known by the HTTP status alone.
    pub(crate) const fn of_http(status: u16) -> Self {
        match status {
            301 => Self::ErrorPermanentRedirect,
            307 => Self::HttpErrorMovedTemporarily,
            400 => Self::HttpErrorBadRequest,
            403 => Self::HttpErrorForbidden,
            404 => Self::HttpErrorNotFound,
            405 => Self::ErrorMethodNotAllowed,
            409 => Self::HttpErrorConflict,
            411 => Self::ErrorMissingContentLength,
            412 => Self::ErrorPreconditionFailed,
            416 => Self::ErrorInvalidRange,
            500 => Self::ErrorInternalError,
            501 => Self::ErrorNotImplemented,
            503 => Self::ErrorSlowDown,
            _ => Self::HttpErrorUnknown,
        }
    }

    /// The status for an error of the store: the one with the name of its S3 code. A full store
    /// has no code of its own in libs3 and counts as a quota.
    pub(crate) const fn of_store(error: &StoreError) -> Self {
        match error {
            StoreError::NoSuchBucket => Self::ErrorNoSuchBucket,
            StoreError::NoSuchKey => Self::ErrorNoSuchKey,
            StoreError::NoSuchUpload => Self::ErrorNoSuchUpload,
            StoreError::BucketNotEmpty => Self::ErrorBucketNotEmpty,
            StoreError::BucketAlreadyOwnedByYou => Self::ErrorBucketAlreadyOwnedByYou,
            StoreError::InvalidBucketName(_) => Self::ErrorInvalidBucketName,
            StoreError::KeyTooLong => Self::ErrorKeyTooLong,
            StoreError::InvalidArgument(_) => Self::ErrorInvalidArgument,
            StoreError::InvalidPart(_) => Self::ErrorInvalidPart,
            StoreError::InvalidPartOrder => Self::ErrorInvalidPartOrder,
            StoreError::EntityTooSmall { .. } => Self::ErrorEntityTooSmall,
            StoreError::EntityTooLarge { .. } => Self::ErrorEntityTooLarge,
            StoreError::BadDigest => Self::ErrorBadDigest,
            StoreError::IncompleteBody { .. } => Self::ErrorIncompleteBody,
            StoreError::PreconditionFailed => Self::ErrorPreconditionFailed,
            StoreError::InvalidRange { .. } => Self::ErrorInvalidRange,
            StoreError::InsufficientStorage => Self::ErrorQuotaExceeded,
            StoreError::NotImplemented(_) => Self::ErrorNotImplemented,
            StoreError::AccessDenied(_) => Self::ErrorAccessDenied,
            _ => Self::ErrorInternalError,
        }
    }
}

/// The number of a status in version 2.
fn version_2(status: Status) -> c_int {
    let at = status as usize;
    if TABLE[at].1 {
        let nearest = match status {
            Status::NotSupported => Status::ErrorNotImplemented,
            _ => Status::ErrorUnknown,
        };
        return version_2(nearest);
    }
    let before = TABLE[..at].iter().filter(|(_, new)| !new).count();
    c_int::try_from(before).unwrap_or(c_int::MAX)
}

/// The name of a status number; "Unknown" for a number that is none.
pub(crate) fn name(code: c_int) -> &'static CStr {
    let at = usize::try_from(code).unwrap_or(usize::MAX);
    let mut known = TABLE.iter().filter(|(_, new)| !(V2 && *new));
    known.nth(at).map_or(c"Unknown", |(name, _)| *name)
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
    .any(|status| status.code() == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_version_4_are_those_of_its_header() {
        assert_eq!(TABLE.len(), 135);
        for (status, number) in [
            (Status::OK, 0),
            (Status::Interrupted, 3),
            (Status::UriTooLong, 30),
            (Status::AbortedByCallback, 47),
            (Status::NotSupported, 48),
            (Status::ErrorAccessDenied, 49),
            (Status::ErrorInvalidRange, 79),
            (Status::ErrorNoSuchBucket, 101),
            (Status::ErrorNoSuchKey, 102),
            (Status::ErrorPreconditionFailed, 111),
            (Status::ErrorQuotaExceeded, 127),
            (Status::ErrorUnknown, 128),
            (Status::HttpErrorNotFound, 132),
            (Status::HttpErrorUnknown, 134),
        ] {
            assert_eq!(status as c_int, number, "{status:?}");
        }
    }

    #[test]
    fn version_2_numbers_without_what_it_lacks() {
        assert_eq!(TABLE.iter().filter(|(_, new)| !new).count(), 118);
        for (status, number) in [
            (Status::AbortedByCallback, 47),
            (Status::ErrorAccessDenied, 48),
            (Status::ErrorInternalError, 63),
            (Status::ErrorInvalidRange, 72),
            (Status::ErrorKeyTooLong, 79),
            (Status::ErrorNoSuchBucket, 91),
            (Status::ErrorNoSuchKey, 92),
            (Status::ErrorNotImplemented, 93),
            (Status::ErrorPreconditionFailed, 97),
            (Status::ErrorRequestTimeout, 100),
            (Status::ErrorSlowDown, 104),
            (Status::ErrorUnknown, 111),
            (Status::HttpErrorNotFound, 115),
            (Status::HttpErrorUnknown, 117),
            // What version 2 has no number for.
            (Status::NotSupported, 93),
            (Status::ErrorNoSuchUpload, 111),
        ] {
            assert_eq!(version_2(status), number, "{status:?}");
        }
    }

    #[test]
    fn names_follow_the_numbers() {
        for status in [Status::OK, Status::ErrorNoSuchKey, Status::HttpErrorUnknown] {
            assert_eq!(name(status.code()).to_str(), Ok(&*format!("{status:?}")));
        }
        assert_eq!(name(-1), c"Unknown");
        assert_eq!(name(Status::HttpErrorUnknown.code() + 1), c"Unknown");
    }
}
