//! Turns a refusal into an [`OpError`]: status and reason determine the kind; the message informs the
//! operator (Cloud Storage JSON API, "HTTP status and error codes").

use bucketload_core::error::{ErrorKind, OpError};

use crate::http::answer::{self, one_line};
use crate::json;

/// Facts from a refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct RefusalDetails {
    /// `reason` of the first error, such as `rateLimitExceeded`.
    reason: String,
    message: String,
}

impl RefusalDetails {
    /// Reads a JSON error. Any other body is itself the message: media requests are refused in plain
    /// text.
    fn read(body: &[u8]) -> Self {
        let mut said = Self::default();
        let read = json::values(body, |path, value| {
            let Some(text) = value.text() else { return };
            match path {
                ["error", "errors", "[]", "reason"] if said.reason.is_empty() => {
                    said.reason = text.get();
                }
                ["error", "message"] | ["error_description"] => said.message = text.get(),
                // The form of the front end's token check.
                ["error"] => said.reason = text.get(),
                _ => {}
            }
        });
        if read.is_err() && said == Self::default() {
            said.message = String::from_utf8_lossy(body).into_owned();
        }
        said.reason = one_line(&said.reason);
        said.message = one_line(&said.message);
        said
    }
}

/// The error for an answer with `status` and `body`.
pub(crate) fn to_error(status: u16, body: &[u8]) -> OpError {
    let said = RefusalDetails::read(body);
    let detail = answer::refusal_text(status, &said.reason, &said.message);
    OpError::with_status(kind_of(status, &said.reason), status, detail)
}

fn kind_of(status: u16, reason: &str) -> ErrorKind {
    match reason {
        "rateLimitExceeded" | "userRateLimitExceeded" | "dailyLimitExceeded" => {
            return ErrorKind::Throttled;
        }
        "quotaExceeded" if status == 403 => return ErrorKind::Full,
        // The caller is authorised, but the object does not allow the operation.
        "objectUnderActiveHold" | "retentionPolicyNotMet" | "sslRequired" => {
            return ErrorKind::Rejected;
        }
        _ => {}
    }
    match status {
        410 => ErrorKind::NotFound,
        // The store reports an upload with a broken connection as a timeout; it may be repeated.
        408 => ErrorKind::Server,
        _ => answer::kind_of(status),
    }
}

#[cfg(test)]
mod tests {
    use bucketload_core::error::ErrorKind;
    use proptest::prelude::*;

    use super::to_error;

    fn document(code: u16, reason: &str) -> Vec<u8> {
        format!(
            r#"{{"error":{{"code":{code},"message":"what\nhappened","errors":[{{"message":"x",
            "domain":"global","reason":"{reason}"}}]}}}}"#
        )
        .into_bytes()
    }

    #[test]
    fn statuses_and_reasons_map_to_error_kinds() {
        for (status, reason, kind) in [
            (404, "notFound", ErrorKind::NotFound),
            (412, "conditionNotMet", ErrorKind::Conflict),
            (409, "conflict", ErrorKind::Conflict),
            (401, "authError", ErrorKind::Auth),
            (403, "forbidden", ErrorKind::Auth),
            (403, "rateLimitExceeded", ErrorKind::Throttled),
            (403, "quotaExceeded", ErrorKind::Full),
            (403, "retentionPolicyNotMet", ErrorKind::Rejected),
            (429, "rateLimitExceeded", ErrorKind::Throttled),
            (400, "invalid", ErrorKind::Rejected),
            (416, "requestedRangeNotSatisfiable", ErrorKind::Rejected),
            (408, "uploadBrokenConnection", ErrorKind::Server),
            (410, "notFound", ErrorKind::NotFound),
            (501, "notImplemented", ErrorKind::Unsupported),
            (503, "backendError", ErrorKind::Server),
            (507, "", ErrorKind::Full),
        ] {
            let error = to_error(status, &document(status, reason));
            assert_eq!((error.kind, error.status), (kind, status), "{reason}");
            assert!(error.detail.contains("what happened"), "{error}");
            assert!(error.detail.contains(reason), "{error}");
        }
    }

    #[test]
    fn plain_text_is_the_message() {
        let error = to_error(404, b"No such object: b/k\r\n");
        assert_eq!(&*error.detail, "No such object: b/k");
        assert!(to_error(500, b"").detail.contains("without an explanation"));
        assert!(to_error(500, &vec![b'x'; 9000]).detail.chars().count() < 400);
    }

    proptest! {
        #[test]
        fn arbitrary_input_does_not_panic(status in 300u16..600, body in prop::collection::vec(any::<u8>(), 0..300)) {
            let error = to_error(status, &body);
            prop_assert!(!error.detail.contains('\n'));
        }
    }
}
