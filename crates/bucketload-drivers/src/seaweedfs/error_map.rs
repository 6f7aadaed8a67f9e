//! Turns a refusal of SeaweedFS into an [`OpError`]. Many failures share a status, so the error's text
//! distinguishes them.

use bucketload_core::error::{ErrorKind, OpError};

use crate::http::answer::{self, one_line};
use crate::json;

/// The `error` of an answer's document, in one line without control characters; empty if missing.
pub(crate) fn message(body: &[u8]) -> String {
    let mut text = String::new();
    let read = json::values(body, |path, value| {
        if let (["error"], Some(value)) = (path, value.text()) {
            text = value.get();
        }
    });
    if read.is_err() && text.is_empty() {
        text = String::from_utf8_lossy(body).into_owned();
    }
    one_line(&text)
}

/// The error for an answer with `status` and `body`.
pub(crate) fn to_error(status: u16, body: &[u8]) -> OpError {
    let text = message(body);
    let kind = kind_of(status, &text.to_ascii_lowercase());
    OpError::with_status(kind, status, answer::refusal_text(status, "", &text))
}

fn kind_of(status: u16, text: &str) -> ErrorKind {
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if status >= 400 {
        if says(&[
            "no free volumes",
            "no writable volumes",
            "no more writable",
            "no space left",
        ]) {
            return ErrorKind::Full;
        }
        if says(&[
            "non-empty folder",
            "already exists",
            "is a file",
            "should be a directory",
        ]) {
            return ErrorKind::Conflict;
        }
        if says(&[
            "failed to get src entry",
            "does not exist",
            "no entry is found",
        ]) {
            return ErrorKind::NotFound;
        }
    }
    match status {
        // A master that cannot assign a file ID answers 406 or 408.
        406 | 408 => ErrorKind::Server,
        _ => answer::kind_of(status),
    }
}

#[cfg(test)]
mod tests {
    use bucketload_core::error::ErrorKind;
    use proptest::prelude::*;

    use super::to_error;

    #[test]
    fn statuses_and_texts_map_to_error_kinds() {
        for (status, text, kind) in [
            (
                500,
                "fail to delete non-empty folder: /buckets/b",
                ErrorKind::Conflict,
            ),
            (500, "dir /buckets/b already exists", ErrorKind::Conflict),
            (409, "/a is a file", ErrorKind::Conflict),
            (
                500,
                "existing /a/b should be a directory",
                ErrorKind::Conflict,
            ),
            (
                400,
                "failed to get src entry '/x', err: filer: no entry is found",
                ErrorKind::NotFound,
            ),
            (400, "collection c does not exist", ErrorKind::NotFound),
            (404, "No free volumes left for {}", ErrorKind::Full),
            (406, "No writable volumes", ErrorKind::Full),
            (500, "write: no space left on device", ErrorKind::Full),
            (507, "", ErrorKind::Full),
            (404, "", ErrorKind::NotFound),
            (401, "wrong jwt", ErrorKind::Auth),
            (414, "", ErrorKind::Rejected),
            (416, "", ErrorKind::Rejected),
            (500, "x", ErrorKind::Server),
        ] {
            let body = format!("{{\"error\":\"{text}\"}}");
            let error = to_error(status, body.as_bytes());
            assert_eq!((error.kind, error.status), (kind, status), "{text}");
        }
        assert_eq!(&*to_error(500, b"plain\r\n text").detail, "plain text");
        assert!(to_error(500, b"").detail.contains("without an explanation"));
    }

    proptest! {
        #[test]
        fn arbitrary_input_does_not_panic(status in 300u16..600, body in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(!to_error(status, &body).detail.contains('\n'));
        }
    }
}
