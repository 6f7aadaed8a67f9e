//! Status codes: their numbers and names in both versions.

use std::ffi::{CStr, c_int};

/// Version of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    Two,
    Four,
}

macro_rules! statuses {
    ($($name:ident $($new:ident)?),* $(,)?) => {
        /// The status of a request. The values are those of version 4. Version 2 lacks the ones marked
        /// `new` and numbers the others without gaps; it reports the nearest status instead
        /// ([`Status::code`]).
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(clippy::upper_case_acronyms, reason = "the names are those of libs3")]
        pub enum Status { $($name),* }

        /// Statuses in the order of version 4, with their names and whether version 2 lacks them.
        const TABLE: &[(Status, &CStr, bool)] = &[$((
            Status::$name,
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

impl Status {
    /// The number in `version`.
    #[must_use]
    pub fn code(self, version: Version) -> c_int {
        let at = self as usize;
        match version {
            Version::Four => self as c_int,
            Version::Two if TABLE[at].2 => {
                let nearest = match self {
                    Self::NotSupported => Self::ErrorNotImplemented,
                    _ => Self::ErrorUnknown,
                };
                nearest.code(version)
            }
            Version::Two => {
                let before = TABLE[..at].iter().filter(|(_, _, new)| !new).count();
                c_int::try_from(before).unwrap_or(c_int::MAX)
            }
        }
    }

    /// The status with the number `code` in version 4; `None` for an unknown number.
    #[must_use]
    pub fn of(code: c_int) -> Option<Self> {
        let at = usize::try_from(code).ok()?;
        TABLE.get(at).map(|(status, _, _)| *status)
    }

    /// The name of a status number in `version`; "Unknown" for an unknown number.
    #[must_use]
    pub fn name(code: c_int, version: Version) -> &'static CStr {
        let at = usize::try_from(code).unwrap_or(usize::MAX);
        let mut known = TABLE
            .iter()
            .filter(|(_, _, new)| !(*new && version == Version::Two));
        known.nth(at).map_or(c"Unknown", |(_, name, _)| *name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_version_4_match_its_header() {
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
            assert_eq!(status.code(Version::Four), number, "{status:?}");
            assert_eq!(Status::of(number), Some(status));
        }
    }

    #[test]
    fn version_2_numbers_skip_the_statuses_that_it_lacks() {
        assert_eq!(TABLE.iter().filter(|(_, _, new)| !new).count(), 118);
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
            // Statuses that version 2 lacks.
            (Status::NotSupported, 93),
            (Status::ErrorNoSuchUpload, 111),
        ] {
            assert_eq!(status.code(Version::Two), number, "{status:?}");
        }
    }

    #[test]
    fn names_follow_the_numbers() {
        for version in [Version::Two, Version::Four] {
            let name = |code| Status::name(code, version);
            for status in [Status::OK, Status::ErrorNoSuchKey, Status::HttpErrorUnknown] {
                let code = status.code(version);
                assert_eq!(name(code).to_str(), Ok(&*format!("{status:?}")));
            }
            assert_eq!(name(-1), c"Unknown");
            let last = Status::HttpErrorUnknown.code(version);
            assert_eq!(name(last + 1), c"Unknown");
        }
    }
}
