use bucketload_core::error::{ErrorKind, OpError};
use bucketload_s3::date::parse_iso;

use super::{RefusalDetails, to_error, without_signatures};
use crate::azblob::{Auth, AzureConfig};
use crate::http::Endpoint;

fn config(auth: Auth) -> AzureConfig {
    let endpoint = Endpoint::parse("http://127.0.0.1:1/acc", "test").unwrap();
    AzureConfig::new(vec![endpoint], "acc", auth)
}

fn key() -> Auth {
    Auth::SharedKey("c2VjcmV0".into())
}

fn now() -> u64 {
    parse_iso("2026-11-20T12:00:00Z").unwrap()
}

fn refused(status: u16, body: &str, auth: Auth) -> OpError {
    to_error(
        status,
        &RefusalDetails::parse(body.as_bytes()),
        &config(auth),
        now(),
    )
}

fn coded(status: u16, code: &str, auth: Auth) -> OpError {
    to_error(
        status,
        &RefusalDetails::with_code(code),
        &config(auth),
        now(),
    )
}

/// A refusal as the service sends it ("Status and error codes", Azure Storage REST API reference).
const WRONG_KEY: &str = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><Error>\
    <Code>AuthenticationFailed</Code><Message>Server failed to authenticate the request. Make sure \
    the value of Authorization header is formed correctly including the signature.\n\
    RequestId:9be6c0a2\nTime:2026-11-20T12:00:00.0Z</Message><AuthenticationErrorDetail>The MAC \
    signature found in the HTTP request 'abc=' is not the same as any computed signature. Server \
    used following string to sign: 'GET\n\n\nx-ms-date:Fri'.</AuthenticationErrorDetail></Error>";

#[test]
fn a_wrong_key_is_explained() {
    let error = refused(403, WRONG_KEY, key());
    assert_eq!((error.kind, error.status), (ErrorKind::Auth, 403));
    for part in [
        "AuthenticationFailed: Server failed",
        "MAC signature",
        "AZURE_STORAGE_KEY",
        "`acc`",
    ] {
        assert!(error.detail.contains(part), "{part}: {error}");
    }
    for part in ["RequestId", "string to sign", "x-ms-date", "\n"] {
        assert!(!error.detail.contains(part), "{part}: {error}");
    }
    // An answer to HEAD carries only the code.
    let error = coded(403, "AuthenticationFailed", key());
    assert!(error.detail.contains("AZURE_STORAGE_KEY"), "{error}");
}

#[test]
fn an_invalid_time_is_distinguished_from_a_bad_signature() {
    let sas = |times: &str| Auth::Sas(format!("sv=1&sp=rl&{times}&sig=c2VjcmV0").as_str().into());
    for (times, word) in [
        (
            "se=2026-11-19T00%3A00%3A00Z",
            "expired at 2026-11-19T00:00:00Z",
        ),
        ("se=2026-11-20", "expired at 2026-11-20"),
        ("st=2026-12-01&se=2027-01-01", "not valid before 2026-12-01"),
        ("se=2027-01-01T00:00Z", "copied completely"),
    ] {
        let error = coded(403, "AuthenticationFailed", sas(times));
        assert_eq!(error.kind, ErrorKind::Auth);
        assert!(error.detail.contains(word), "{error}");
        assert!(!error.detail.contains("c2VjcmV0"), "{error}");
    }
    let error = coded(403, "AuthorizationPermissionMismatch", sas("se=2027-01-01"));
    assert!(error.detail.contains("permits `rl`"), "{error}");
}

#[test]
fn a_wrong_clock_is_explained() {
    let mut refusal = RefusalDetails::with_code("AuthenticationFailed");
    refusal.server_time = Some(now() - 3600);
    let error = to_error(403, &refusal, &config(key()), now());
    assert!(error.detail.contains("60 minutes ahead of"), "{error}");
    refusal.server_time = Some(now() + 20 * 60);
    let error = to_error(403, &refusal, &config(key()), now());
    assert!(error.detail.contains("20 minutes behind"), "{error}");
    refusal.server_time = Some(now() + 60);
    let error = to_error(403, &refusal, &config(key()), now());
    assert!(!error.detail.contains("clock"), "{error}");
}

#[test]
fn codes_and_statuses_map_to_error_kinds() {
    for (status, code, kind) in [
        (404, "BlobNotFound", ErrorKind::NotFound),
        (404, "ContainerNotFound", ErrorKind::NotFound),
        (404, "", ErrorKind::NotFound),
        (409, "ContainerAlreadyExists", ErrorKind::Conflict),
        (409, "ContainerBeingDeleted", ErrorKind::Conflict),
        (412, "ConditionNotMet", ErrorKind::Conflict),
        (400, "InvalidBlockList", ErrorKind::Conflict),
        (409, "BlobArchived", ErrorKind::Rejected),
        (409, "PublicAccessNotPermitted", ErrorKind::Auth),
        (403, "AuthorizationFailure", ErrorKind::Auth),
        (401, "NoAuthenticationInformation", ErrorKind::Auth),
        (416, "InvalidRange", ErrorKind::Rejected),
        (400, "InvalidResourceName", ErrorKind::Rejected),
        (400, "Md5Mismatch", ErrorKind::Rejected),
        (405, "UnsupportedHttpVerb", ErrorKind::Unsupported),
        (501, "APINotImplemented", ErrorKind::Unsupported),
        (503, "ServerBusy", ErrorKind::Throttled),
        (500, "OperationTimedOut", ErrorKind::Server),
        (500, "InternalError", ErrorKind::Server),
        (507, "", ErrorKind::Full),
    ] {
        assert_eq!(coded(status, code, key()).kind, kind, "{status} {code}");
    }
    let full = "<Error><Code>InternalError</Code><Message>ENOSPC: no space left on device</Message></Error>";
    assert_eq!(refused(500, full, key()).kind, ErrorKind::Full);
    let silent = coded(502, "", key());
    assert!(silent.detail.contains("without an explanation"), "{silent}");
    assert!(
        coded(400, "InvalidResourceName", key())
            .detail
            .contains("3 to 63")
    );
}

#[test]
fn error_messages_never_contain_signatures_or_keys() {
    assert_eq!(
        without_signatures("at http://h/b?sig=a%2Bb%3D&se=1 and sig=x/y+= end"),
        "at http://h/b?sig=***&se=1 and sig=*** end"
    );
    let body = "<Error><Code>X</Code><Message>key c2VjcmV0 sig=abc</Message></Error>";
    let error = refused(400, body, key());
    assert_eq!(&*error.detail, "X: key *** sig=***");
    assert_eq!(
        RefusalDetails::parse(b"<Error><Code>Half</Code><Mess").code,
        "Half"
    );
    assert_eq!(
        RefusalDetails::parse(b"no document"),
        RefusalDetails::default()
    );
}
