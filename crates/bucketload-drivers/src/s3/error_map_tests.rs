//! Statuses, error codes, and secrets that must not be shown.

use bucketload_core::error::ErrorKind;
use proptest::prelude::*;

use super::{Context, Credentials, ErrorDocument, to_error};

const CONTEXT: Context<'static> = Context {
    region: "us-east-1",
    credentials: None,
    bucket_region: "",
    location: "",
};

fn document(code: &str, message: &str) -> ErrorDocument {
    let xml = format!(
        "<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>{message}</Message></Error>"
    );
    ErrorDocument::parse(xml.as_bytes())
}

#[test]
fn statuses_and_codes_map_to_meanings() {
    for (status, code, kind) in [
        (404, "NoSuchKey", ErrorKind::NotFound),
        (404, "", ErrorKind::NotFound),
        (409, "BucketNotEmpty", ErrorKind::Conflict),
        (412, "PreconditionFailed", ErrorKind::Conflict),
        (503, "SlowDown", ErrorKind::Throttled),
        (503, "ServiceUnavailable", ErrorKind::Server),
        (429, "", ErrorKind::Throttled),
        (500, "InternalError", ErrorKind::Server),
        (507, "", ErrorKind::Full),
        (500, "XMinioStorageFull", ErrorKind::Full),
        (403, "QuotaExceeded", ErrorKind::Full),
        (403, "SignatureDoesNotMatch", ErrorKind::Auth),
        (400, "AuthorizationHeaderMalformed", ErrorKind::Auth),
        (400, "ExpiredToken", ErrorKind::Auth),
        (403, "InvalidObjectState", ErrorKind::Rejected),
        (400, "InvalidRequest", ErrorKind::Rejected),
        (416, "InvalidRange", ErrorKind::Rejected),
        (301, "PermanentRedirect", ErrorKind::Rejected),
        (405, "MethodNotAllowed", ErrorKind::Unsupported),
        (501, "NotImplemented", ErrorKind::Unsupported),
    ] {
        let error = to_error(status, &document(code, "why"), &CONTEXT);
        assert_eq!(
            (error.kind, error.status),
            (kind, status),
            "{status} {code}"
        );
    }
    let error = to_error(
        500,
        &document("InternalError", "write: No space left on device"),
        &CONTEXT,
    );
    assert_eq!(error.kind, ErrorKind::Full);
}

#[test]
fn a_wrong_region_is_named_with_the_right_one() {
    let xml = b"<Error><Code>AuthorizationHeaderMalformed</Code><Message>wrong</Message>\
        <Region>eu-west-1</Region></Error>";
    let error = to_error(400, &ErrorDocument::parse(xml), &CONTEXT);
    assert_eq!(error.kind, ErrorKind::Auth);
    assert!(
        error.detail.contains("expects region `eu-west-1`"),
        "{error}"
    );
    assert!(error.detail.contains("signed for `us-east-1`"), "{error}");
    let context = Context {
        bucket_region: "eu-west-2",
        ..CONTEXT
    };
    let error = to_error(301, &document("PermanentRedirect", "m"), &context);
    assert!(
        error.detail.contains("expects region `eu-west-2`"),
        "{error}"
    );
    let context = Context {
        location: "http://other/",
        ..CONTEXT
    };
    let error = to_error(307, &document("", ""), &context);
    assert!(
        error.detail.contains("points to `http://other/`"),
        "{error}"
    );
}

#[test]
fn secrets_and_long_texts_are_removed() {
    let credentials = Credentials::new("AKID", "sekrit");
    let context = Context {
        credentials: Some(&credentials),
        ..CONTEXT
    };
    let message = format!("sekrit\n{}", "x".repeat(2000));
    let error = to_error(400, &document("Odd", &message), &context);
    assert!(!error.detail.contains("sekrit") && !error.detail.contains('\n'));
    assert!(error.detail.chars().count() < 350);
    let xml = b"<Error><StringToSign>AWS4 canon</StringToSign></Error>";
    let error = to_error(403, &ErrorDocument::parse(xml), &context);
    assert!(!error.detail.contains("canon"), "{error}");
}

#[test]
fn only_error_documents_are_found() {
    assert_eq!(
        ErrorDocument::find(b"<CopyObjectResult><ETag>x</ETag></CopyObjectResult>"),
        None
    );
    let found = ErrorDocument::find(b"<Error><Code>InternalError</Code></Error>");
    assert_eq!(found.unwrap().code, "InternalError");
    assert_eq!(ErrorDocument::find(b""), None);
}

proptest! {
    #[test]
    fn no_body_panics(body in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = to_error(500, &ErrorDocument::parse(&body), &CONTEXT);
    }
}
