//! Turns a client's exit code and error output into an [`OpError`].

use bucketload_core::error::{ErrorKind, OpError};

use super::process::ProcessOutcome;
use super::tool::Tool;
use crate::engines::failure::kind_of_text;
use crate::http::Secret;
use crate::http::answer::one_line;
use crate::s3::error_map::{Context, ErrorDocument, to_error};

/// Error codes of S3 that clients print, with their status (Amazon S3 API Reference, "List of error
/// codes"; the last ones are MinIO's).
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

/// Statuses that clients print.
const STATUSES: [u16; 13] = [
    400, 401, 403, 404, 405, 409, 412, 429, 500, 501, 502, 503, 507,
];

/// Phrases of clients that do not print the store's code.
const PHRASES: [(&str, ErrorKind); 16] = [
    // mc, for a missing source.
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

/// The error for a client's failure. `stdout_error` is its report on standard output, or empty. The
/// message does not contain `secrets`.
pub(crate) fn to_op_error(
    tool: Tool,
    outcome: &ProcessOutcome,
    stdout_error: &str,
    secrets: &[Secret],
) -> OpError {
    let how = match outcome.status.code() {
        Some(code) => format!("{tool} exited with code {code}"),
        None => format!("{tool} was killed by a signal"),
    };
    let stderr = last_lines(&outcome.stderr);
    let text = match (stderr.is_empty(), stdout_error.is_empty()) {
        (true, true) => "without an explanation".to_owned(),
        (false, true) => stderr,
        (true, false) => one_line(stdout_error),
        (false, false) => one_line(&format!("{stderr} {stdout_error}")),
    };
    let whole = format!("{} {stdout_error}", outcome.stderr);
    let (kind, status) = classify(&whole);
    let mut detail = format!("{how}: {text}");
    for secret in secrets.iter().filter(|s| !s.expose().is_empty()) {
        detail = detail.replace(secret.expose(), "***");
    }
    OpError::with_status(kind, status, detail)
}

/// The last three lines that are not blank: clients usually print the cause last.
fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    one_line(&lines[lines.len().saturating_sub(3)..].join(" "))
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

/// Whether `text` contains `word` as a whole word.
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

    use super::to_op_error;
    use crate::engines::cli::process::ProcessOutcome;
    use crate::engines::cli::tool::Tool;

    fn error(stderr: &str, stdout_error: &str) -> bucketload_core::error::OpError {
        let outcome = ProcessOutcome {
            status: ExitStatus::from_raw(12 << 8),
            stderr: stderr.to_owned(),
        };
        to_op_error(Tool::S3cmd, &outcome, stdout_error, &["sEcret/key".into()])
    }

    #[test]
    fn error_output_of_the_clients_is_understood() {
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
    fn the_last_lines_are_kept_without_secrets() {
        let error = error("a\nb\nc\n\nd sEcret/key\n", "");
        assert_eq!(&*error.detail, "s3cmd exited with code 12: b c d ***");
    }
}
