//! Turns a server's refusal into an [`OpError`]. Status and S3 error code determine the kind; the error document
//! provides the details for the operator.

use bucketload_core::error::{ErrorKind, OpError};

use super::credentials::Credentials;
use crate::http::answer::{self, one_line};
use bucketload_s3::xml;

/// The contents of an error document (Amazon S3 API Reference, "Error responses").
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ErrorDocument {
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) region: String,
    pub(crate) endpoint: String,
}

impl ErrorDocument {
    /// Reads as much of the document as is well-formed. Ignores all other elements: they may contain the string that was
    /// signed.
    pub(crate) fn parse(body: &[u8]) -> Self {
        let mut out = Self::default();
        // A malformed document still yields the fields before the fault.
        let _ = xml::leaves(body, |path, text| {
            let field = match *path {
                ["Error" | "ErrorResponse", name] | ["ErrorResponse", "Error", name] => name,
                _ => return,
            };
            let slot = match field {
                "Code" => &mut out.code,
                "Message" => &mut out.message,
                "Region" => &mut out.region,
                "Endpoint" => &mut out.endpoint,
                _ => return,
            };
            *slot = text.get();
        });
        for text in [
            &mut out.code,
            &mut out.message,
            &mut out.region,
            &mut out.endpoint,
        ] {
            *text = one_line(text);
        }
        out
    }

    /// Parses `body` if it is an error document: some operations fail after the server has sent status 200.
    pub(crate) fn find(body: &[u8]) -> Option<Self> {
        let mut found = false;
        let _ = xml::leaves(body, |path, _| found |= matches!(path, ["Error", "Code"]));
        found.then(|| Self::parse(body))
    }
}

/// Details beyond the document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    /// Region that requests are signed for.
    pub(crate) region: &'a str,
    /// Credentials, to keep them out of the message.
    pub(crate) credentials: Option<&'a Credentials>,
    /// Value of `x-amz-bucket-region`; may be empty.
    pub(crate) bucket_region: &'a str,
    /// Value of `Location`; may be empty.
    pub(crate) location: &'a str,
}

/// The error that a response with `status` and `document` means.
pub(crate) fn to_error(status: u16, document: &ErrorDocument, context: &Context<'_>) -> OpError {
    let kind = kind_of(status, document);
    let mut detail = answer::refusal_text(status, &document.code, &document.message);
    let expected = [context.bucket_region, document.region.as_str()]
        .into_iter()
        .find(|r| !r.is_empty())
        .unwrap_or("");
    if !expected.is_empty() && expected != context.region {
        detail += &format!(
            "; the server expects region `{}`, requests were signed for `{}` (set --region)",
            one_line(expected),
            context.region
        );
    }
    if matches!(status, 300..=399) {
        let target = [document.endpoint.as_str(), context.location]
            .into_iter()
            .find(|t| !t.is_empty());
        if let Some(target) = target {
            detail += &format!("; it points to `{}` (set --endpoint-url)", one_line(target));
        }
    }
    if document.code == "RequestTimeTooSkewed" {
        detail += "; set this machine's clock";
    }
    if let Some(credentials) = context.credentials {
        detail = credentials.scrub(&detail);
    }
    OpError::with_status(kind, status, detail)
}

/// The meaning of a status with an S3 error code.
fn kind_of(status: u16, document: &ErrorDocument) -> ErrorKind {
    let code = document.code.as_str();
    if is_full(status, code, &document.message) {
        return ErrorKind::Full;
    }
    match code {
        // AWS and MinIO, including its SlowDownRead and SlowDownWrite.
        "SlowDown"
        | "SlowDownRead"
        | "SlowDownWrite"
        | "Throttling"
        | "ThrottlingException"
        | "TooManyRequests"
        | "TooManyRequestsException"
        | "RequestLimitExceeded"
        | "BandwidthLimitExceeded" => return ErrorKind::Throttled,
        "AuthorizationHeaderMalformed"
        | "ExpiredToken"
        | "InvalidToken"
        | "TokenRefreshRequired"
        | "InvalidAccessKeyId"
        | "SignatureDoesNotMatch"
        | "AccessDenied"
        | "RequestTimeTooSkewed"
        | "InvalidSecurity"
        | "NotSignedUp" => return ErrorKind::Auth,
        "NotImplemented" | "MethodNotAllowed" => return ErrorKind::Unsupported,
        "NoSuchKey"
        | "NoSuchBucket"
        | "NoSuchUpload"
        | "NoSuchVersion"
        | "NoSuchTagSet"
        // MinIO reports this with status 400.
        | "NoSuchObjectLockConfiguration"
        | "ObjectLockConfigurationNotFoundError" => return ErrorKind::NotFound,
        // Another writer came first.
        "InvalidWriteOffset" => return ErrorKind::Conflict,
        // The object is archived: the caller is authorized, but the request cannot be served.
        "InvalidObjectState" => return ErrorKind::Rejected,
        _ => {}
    }
    answer::kind_of(status)
}

fn is_full(status: u16, code: &str, message: &str) -> bool {
    let by_code = matches!(
        code,
        "XMinioStorageFull"
            | "XMinioAdminBucketQuotaExceeded"
            | "InsufficientStorage"
            | "InsufficientCapacity"
            | "StorageFull"
            | "DiskFull"
            | "QuotaExceeded"
    );
    let by_message = status >= 500 && message.to_ascii_lowercase().contains("no space left");
    status == 507 || by_code || by_message
}

#[cfg(test)]
#[path = "error_map_tests.rs"]
mod tests;
