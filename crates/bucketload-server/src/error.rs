//! The S3 errors that the server returns: code, HTTP status and message in one table.
//!
//! A handler returns an [`S3Error`]; `respond` renders it as an XML document. The codes follow Amazon
//! S3 or, where MinIO differs, the variant that strict S3 clients accept from MinIO.

use std::borrow::Cow;

use bucketload_store::{StoreError, VersionId};

/// Declares [`Code`] with its wire name, HTTP status and default message in one place.
macro_rules! codes {
    ($($variant:ident $status:literal $message:literal,)*) => {
        /// An S3 error code. The variant's name is the code on the wire.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the variants are S3's own documented codes")]
        pub(crate) enum Code { $($variant,)* }

        impl Code {
            /// The code in the response's `<Code>`.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant),)* }
            }

            /// The code called `name`.
            fn from_name(name: &str) -> Option<Self> {
                $(if name == stringify!($variant) { return Some(Self::$variant); })*
                None
            }

            /// The HTTP status.
            pub(crate) const fn status(self) -> u16 {
                match self { $(Self::$variant => $status,)* }
            }

            /// The default message.
            const fn message(self) -> &'static str {
                match self { $(Self::$variant => $message,)* }
            }

            /// Every code, for tests.
            #[cfg(test)]
            pub(crate) const ALL: &[Self] = &[$(Self::$variant,)*];
        }
    };
}

codes! {
    AccessControlListNotSupported 400 "The bucket does not allow ACLs.",
    AccessDenied 403 "Access Denied.",
    AccessForbidden 403 "CORSResponse: CORS is not enabled for this bucket.",
    AuthorizationHeaderMalformed 400 "The authorization header is malformed.",
    AuthorizationQueryParametersError 400 "The authorization query parameters are malformed.",
    BadDigest 400 "A checksum or the Content-MD5 you specified did not match the content received.",
    BadRequest 400 "The request is not valid.",
    BucketAlreadyExists 409 "The requested bucket name is not available.",
    BucketAlreadyOwnedByYou 409 "Your previous request to create the named bucket succeeded and you already own it.",
    BucketNotEmpty 409 "The bucket you tried to delete is not empty.",
    EncryptionTypeMismatch 400 "The existing object was created with a different encryption type.",
    EntityTooLarge 400 "Your proposed upload exceeds the maximum allowed size.",
    EntityTooSmall 400 "Your proposed upload is smaller than the minimum allowed size: every part but the last has at least 5 MiB.",
    IllegalLocationConstraintException 400 "The location constraint is incompatible with this endpoint's region.",
    IncompleteBody 400 "You did not provide the number of bytes specified by the Content-Length header.",
    InternalError 500 "We encountered an internal error. Please try again.",
    InvalidAccessKeyId 403 "The access key ID you provided does not exist in our records.",
    InvalidArgument 400 "An argument is invalid.",
    InvalidBucketAclWithObjectOwnership 400 "A bucket whose ownership setting is BucketOwnerEnforced cannot have ACLs.",
    InvalidBucketState 409 "The request is not valid with the current state of the bucket.",
    InvalidBucketName 400 "The specified bucket is not valid.",
    InvalidDigest 400 "The Content-MD5 or checksum value that you specified is not valid.",
    InvalidObjectState 403 "Restore is not allowed for the object's current storage class.",
    InvalidPart 400 "One or more of the specified parts could not be found, or an entity tag did not match.",
    InvalidPartNumber 416 "The requested part number is not satisfiable.",
    InvalidPartOrder 400 "The list of parts was not in ascending order.",
    InvalidPolicyDocument 400 "The policy of the form is not valid.",
    InvalidRange 416 "The requested range is not satisfiable.",
    InvalidRequest 400 "The request is not valid.",
    InvalidRetentionPeriod 400 "The retention period must be a positive number of days or years.",
    InvalidStorageClass 400 "The storage class you specified is not valid.",
    InvalidTag 400 "The tag provided was not a valid tag.",
    InvalidURI 400 "The URI could not be parsed.",
    InvalidWriteOffset 400 "The write offset value that you specified does not match the current object size.",
    KeyTooLongError 400 "Your key is longer than 1024 bytes.",
    MalformedACLError 400 "The ACL you provided was not well-formed or did not validate against our published schema.",
    MalformedPOSTRequest 400 "The body of your POST request is not well-formed multipart/form-data.",
    MalformedPolicy 400 "The policy is not a JSON document with statements.",
    MalformedTrailerError 400 "The request contained trailing data that was not well-formed.",
    MalformedXML 400 "The XML you provided was not well-formed or did not validate against our published schema.",
    MaxMessageLengthExceeded 400 "Your request was too big.",
    MetadataTooLarge 400 "Your metadata headers exceed the maximum allowed metadata size of 2 KiB.",
    MethodNotAllowed 405 "The specified method is not allowed against this resource.",
    MissingContentLength 411 "You must provide the Content-Length HTTP header.",
    NoSuchBucket 404 "The specified bucket does not exist",
    NoSuchBucketPolicy 404 "The bucket policy does not exist.",
    NoSuchCORSConfiguration 404 "The CORS configuration does not exist.",
    NoSuchKey 404 "The specified key does not exist.",
    NoSuchLifecycleConfiguration 404 "The lifecycle configuration does not exist.",
    NoSuchObjectLockConfiguration 404 "The specified object does not have an object lock configuration.",
    NoSuchPublicAccessBlockConfiguration 404 "The public access block configuration was not found.",
    NoSuchTagSet 404 "The tag set does not exist.",
    NoSuchUpload 404 "The specified multipart upload does not exist. The upload ID may be invalid, or the upload may have been aborted or completed.",
    NoSuchVersion 404 "The specified version does not exist.",
    NoSuchWebsiteConfiguration 404 "The specified bucket does not have a website configuration.",
    NotImplemented 501 "A header or query you provided implies functionality that is not implemented.",
    ObjectLockConfigurationNotFoundError 404 "Object Lock configuration does not exist for this bucket.",
    OwnershipControlsNotFoundError 404 "The bucket ownership controls were not found.",
    PreconditionFailed 412 "At least one of the preconditions you specified did not hold.",
    ReplicationConfigurationNotFoundError 404 "The replication configuration was not found.",
    RequestHeaderSectionTooLarge 400 "Your request header section exceeds the maximum allowed size.",
    RequestTimeTooSkewed 403 "The difference between the request time and the server's time is too large (15 minutes are allowed).",
    ServerSideEncryptionConfigurationNotFoundError 404 "The server side encryption configuration was not found.",
    SignatureDoesNotMatch 403 "The request signature we calculated does not match the signature you provided. Check your key and signing method.",
    SlowDown 503 "Please reduce your request rate.",
    StorageFull 507 "The store has no room for the object.",
    TooManyParts 400 "You have attempted to add more parts than the maximum of 10000 that are allowed for this object.",
    UnresolvableGrantByEmailAddress 400 "The email address you provided does not match any account on record.",
    XAmzContentSHA256Mismatch 400 "The provided 'x-amz-content-sha256' header does not match what was computed.",
}

/// An S3 error response: the code and, optionally, a more specific message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct S3Error {
    pub(crate) code: Code,
    /// Overrides the code's status (injected faults may use any).
    status: Option<u16>,
    message: Option<Cow<'static, str>>,
    /// The region that the signature must name, reported as `<Region>`.
    pub(crate) region: Option<Box<str>>,
    /// The delete marker met instead of an object.
    pub(crate) marker: Option<VersionId>,
    /// Size of the object that a range lies outside of, reported in `Content-Range`.
    pub(crate) size: Option<u64>,
}

impl S3Error {
    /// `code` with a more specific message.
    pub(crate) fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            message: Some(message.into()),
            ..Self::from(code)
        }
    }

    /// The same error with another HTTP status.
    pub(crate) fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// The same error about an object of `size` bytes.
    pub(crate) fn with_size(mut self, size: u64) -> Self {
        self.size = Some(size);
        self
    }

    /// The HTTP status of the response.
    pub(crate) fn status(&self) -> u16 {
        self.status.unwrap_or(self.code.status())
    }

    /// The text of the response's `<Message>`.
    pub(crate) fn message(&self) -> &str {
        self.message.as_deref().unwrap_or(self.code.message())
    }
}

impl From<Code> for S3Error {
    fn from(code: Code) -> Self {
        Self {
            code,
            status: None,
            message: None,
            region: None,
            marker: None,
            size: None,
        }
    }
}

impl From<StoreError> for S3Error {
    fn from(error: StoreError) -> Self {
        let code = match &error {
            StoreError::InsufficientStorage => Code::StorageFull,
            error => Code::from_name(error.code()).unwrap_or(Code::InternalError),
        };
        let size = match &error {
            StoreError::InvalidRange { size } => Some(*size),
            _ => None,
        };
        let marker = match &error {
            StoreError::DeleteMarker { version, .. } => Some(*version),
            _ => None,
        };
        Self {
            size,
            marker,
            ..match error {
                StoreError::NoSuchBucket | StoreError::NoSuchKey => Self::from(code),
                error => Self::new(code, error.to_string()),
            }
        }
    }
}

/// `Result` with an [`S3Error`].
pub(crate) type S3Result<T> = Result<T, S3Error>;

#[cfg(test)]
mod tests {
    use super::{Code, S3Error};
    use bucketload_store::StoreError;

    #[test]
    fn store_errors_keep_their_status() {
        for error in [
            StoreError::NoSuchKey,
            StoreError::PreconditionFailed,
            StoreError::InvalidRange { size: 7 },
            StoreError::InsufficientStorage,
            StoreError::NotImplemented("x"),
            StoreError::Corrupt("x".into()),
        ] {
            let status = error.http_status();
            assert_eq!(S3Error::from(error).status(), status);
        }
    }

    #[test]
    fn codes_have_error_statuses_and_texts() {
        for &code in Code::ALL {
            assert!((400..600).contains(&code.status()), "{code:?}");
            // Clients compare this one with the text of Amazon S3.
            let ends = code.message().ends_with('.');
            assert_eq!(ends, code != Code::NoSuchBucket, "{code:?}");
            assert!(!code.name().is_empty());
        }
    }
}
