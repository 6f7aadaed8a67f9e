//! From exit code and complaint of a client to an [`OpError`].

use bucketload_core::error::{ErrorKind, OpError};

use super::process::Ended;
use super::tool::Tool;
use crate::engines::failure::{kind_of_text, tidy};
use crate::http::Secret;
use crate::s3::error_map::{Context, ErrorDocument, to_error};

/// Error codes of S3 that clients repeat, with the status that they come with (Amazon S3 API
/// Reference, "List of error codes"; the last ones are MinIO's).
const CODES: [(&str, u16); 26] = [
    ("NoSuchBucket", 404),
    ("NoSuchKey", 404),
    ("NoSuchUpload", 404),
    ("BucketAlreadyOwnedByYou", 409),
    ("BucketAlreadyExists", 409),
    ("BucketNotEmpty", 409),
    ("PreconditionFailed", 412),
    ("AccessDenied", 403),
    ("SignatureDoesNotMatch", 403),
    ("InvalidAccessKeyId", 403),
    ("AuthorizationHeaderMalformed", 400),
    ("RequestTimeTooSkewed", 403),
    ("ExpiredToken", 400),
    ("InvalidToken", 400),
    ("SlowDown", 503),
    ("ServiceUnavailable", 503),
    ("TooManyRequests", 429),
    ("InternalError", 500),
    ("InsufficientStorage", 507),
    ("NotImplemented", 501),
    ("MethodNotAllowed", 405),
    ("InvalidBucketName", 400),
    ("EntityTooSmall", 400),
    ("EntityTooLarge", 400),
    ("XMinioStorageFull", 507),
    ("XMinioAdminBucketQuotaExceeded", 400),
];

/// Statuses that clients mention, with the words around them.
const STATUSES: [u16; 13] = [
    400, 401, 403, 404, 405, 409, 412, 429, 500, 501, 502, 503, 507,
];

/// Phrases of clients that hide the store's code.
const PHRASES: [(&str, ErrorKind); 16] = [
    // mc, of a source that is not there.
    ("unable to guess the type of copy", ErrorKind::NotFound),
    ("object does not exist", ErrorKind::NotFound),
    ("bucket does not exist", ErrorKind::NotFound),
    ("key does not exist", ErrorKind::NotFound),
    ("not found", ErrorKind::NotFound),
    ("no such", ErrorKind::NotFound),
    ("does not exist", ErrorKind::NotFound),
    // gsutil.
    ("no urls matched", ErrorKind::NotFound),
    ("must be empty", ErrorKind::Conflict),
    ("not empty", ErrorKind::Conflict),
    ("already exists", ErrorKind::Conflict),
    ("access denied", ErrorKind::Auth),
    ("access key id you provided does not exist", ErrorKind::Auth),
    ("signature we calculated does not match", ErrorKind::Auth),
    // az.
    ("failed to authenticate the request", ErrorKind::Auth),
    ("reduce your request rate", ErrorKind::Throttled),
];

/// What a client's failure means. `told` is what it printed on standard output about it, if
/// anything.
/// Whatever it says, `secrets` do not get out.
pub(crate) fn meaning(tool: Tool, ended: &Ended, told: &str, secrets: &[Secret]) -> OpError {
    let how = match ended.status.code() {
        Some(code) => format!("{tool} ended with code {code}"),
        None => format!("{tool} was ended by a signal"),
    };
    let complaint = last_words(&ended.complaint);
    let text = match (complaint.is_empty(), told.is_empty()) {
        (true, true) => "without an explanation".to_owned(),
        (false, true) => complaint,
        (true, false) => tidy(told),
        (false, false) => tidy(&format!("{complaint} {told}")),
    };
    let whole = format!("{} {told}", ended.complaint);
    let (kind, status) = classify(&whole);
    let mut detail = format!("{how}: {text}");
    for secret in secrets.iter().filter(|s| !s.expose().is_empty()) {
        detail = detail.replace(secret.expose(), "***");
    }
    OpError::with_status(kind, status, detail)
}

/// The last lines of a complaint that are not blank: clients say last what is wrong.
fn last_words(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    tidy(&lines[lines.len().saturating_sub(3)..].join(" "))
}

fn classify(text: &str) -> (ErrorKind, u16) {
    let code = CODES.iter().find(|(code, _)| has_word(text, code));
    if let Some((code, status)) = code {
        return (by_answer(*status, code), *status);
    }
    if let Some(kind) = kind_of_text(text) {
        return (kind, 0);
    }
    let lower = text.to_ascii_lowercase();
    let mentioned = STATUSES.into_iter().find(|status| {
        [
            format!("({status})"),
            format!("error: {status}"),
            format!("code: {status}"),
            format!("code {status}"),
            format!("http {status}"),
            format!("statuscode: {status}"),
            format!("status: {status}"),
            format!(" {status} "),
        ]
        .iter()
        .any(|phrase| lower.contains(phrase.as_str()))
    });
    if let Some(status) = mentioned {
        return (by_answer(status, ""), status);
    }
    let phrase = PHRASES.iter().rev().find(|(p, _)| lower.contains(p));
    phrase.map_or((ErrorKind::Protocol, 0), |(_, kind)| (*kind, 0))
}

fn by_answer(status: u16, code: &str) -> ErrorKind {
    let document = ErrorDocument {
        code: code.to_owned(),
        ..ErrorDocument::default()
    };
    let context = Context {
        region: "",
        credentials: None,
        bucket_region: "",
        location: "",
    };
    to_error(status, &document, &context).kind
}

/// Whether `word` stands in `text` by itself.
fn has_word(text: &str, word: &str) -> bool {
    let inner = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    text.match_indices(word).any(|(at, _)| {
        !inner(text[..at].chars().next_back()) && !inner(text[at + word.len()..].chars().next())
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use bucketload_core::error::ErrorKind as K;

    use super::meaning;
    use crate::engines::cli::process::Ended;
    use crate::engines::cli::tool::Tool;

    fn error(complaint: &str, told: &str) -> bucketload_core::error::OpError {
        let ended = Ended {
            status: ExitStatus::from_raw(12 << 8),
            complaint: complaint.to_owned(),
        };
        meaning(Tool::S3cmd, &ended, told, &["sEcret/key".into()])
    }

    #[test]
    fn complaints_of_the_clients_are_understood() {
        for (text, kind) in [
            (
                "ERROR: S3 error: 404 (NoSuchKey): The specified key does not exist.",
                K::NotFound,
            ),
            (
                "fatal error: An error occurred (404) when calling the HeadObject operation: Key \"k\" does not exist",
                K::NotFound,
            ),
            (
                "make_bucket failed: s3://b An error occurred (BucketAlreadyOwnedByYou) when calling",
                K::Conflict,
            ),
            (
                "remove_bucket failed: An error occurred (BucketNotEmpty) when calling",
                K::Conflict,
            ),
            (
                "ERROR: S3 error: 403 (SignatureDoesNotMatch): The request signature",
                K::Auth,
            ),
            (
                "An error occurred (SlowDown) when calling the PutObject operation (reached max retries: 0)",
                K::Throttled,
            ),
            (
                "An error occurred (InternalError) when calling the GetObject operation",
                K::Server,
            ),
            (
                "Could not connect to the endpoint URL: \"http://127.0.0.1:1/b\"",
                K::Connect,
            ),
            ("Failed to copyto: directory not found", K::NotFound),
            (
                "ERROR : : error reading destination directory: Forbidden: status code: 403, request id:",
                K::Auth,
            ),
            (
                "Get \"http://h\": dial tcp 127.0.0.1:1: connect: connection refused",
                K::Connect,
            ),
            ("CommandException: No URLs matched: gs://b/k", K::NotFound),
            (
                "PreconditionException: 412 bucket must be empty prior to deletion",
                K::Conflict,
            ),
            (
                "ERROR: The specified blob does not exist.\nErrorCode:BlobNotFound",
                K::NotFound,
            ),
            (
                "ERROR: Server failed to authenticate the request. Make sure the value of",
                K::Auth,
            ),
            ("x509: certificate signed by unknown authority", K::Tls),
            ("something else", K::Protocol),
        ] {
            assert_eq!(error(text, "").kind, kind, "{text}");
        }
        let json = r#"{"status":"error","error":{"message":"Unable to stat","cause":{"message":"Object does not exist"}}}"#;
        assert_eq!(error("", json).kind, K::NotFound);
    }

    #[test]
    fn the_last_words_are_kept_and_secrets_are_not() {
        let error = error("a\nb\nc\n\nd sEcret/key\n", "");
        assert_eq!(&*error.detail, "s3cmd ended with code 12: b c d ***");
    }
}
