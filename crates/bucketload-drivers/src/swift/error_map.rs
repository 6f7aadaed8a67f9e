//! Turns a refusal into an [`OpError`]: the status determines the kind, the body becomes the message.
//!
//! Swift answers with a line of HTML, radosgw with text or JSON; the message is one line of plain text.

use bucketload_core::error::{ErrorKind, OpError};

use crate::http::answer::{self, one_line};

/// The meaning of a status (OpenStack Object Storage API; 498 is "Rate Limited" of Swift's ratelimit filter). `text` is
/// the server's message.
pub(crate) fn kind_of(status: u16, text: &str) -> ErrorKind {
    let says = |words: &[&str]| {
        let text = text.to_ascii_lowercase();
        words.iter().any(|word| text.contains(word))
    };
    match status {
        // "Upload exceeds quota." of the quota filters; otherwise the body is larger than allowed.
        413 if says(&["quota"]) => ErrorKind::Full,
        403 if says(&["quotaexceeded"]) => ErrorKind::Full,
        498 => ErrorKind::Throttled,
        503 if says(&["slowdown", "slow down"]) => ErrorKind::Throttled,
        500..=599 if says(&["no space left"]) => ErrorKind::Full,
        _ => answer::kind_of(status),
    }
}

/// The error that a refusal with `status` and `body` means. `location` is the target of a redirect; `secret` is removed
/// from the message.
pub(crate) fn to_error(status: u16, body: &[u8], location: &str, secret: &str) -> OpError {
    let mut text = message(body);
    if !secret.is_empty() {
        text = text.replace(secret, "***");
    }
    let kind = kind_of(status, &text);
    let mut detail = match text.is_empty() {
        true => "no reason was given".to_owned(),
        false => text,
    };
    match status {
        300..=399 if !location.is_empty() => {
            detail += &format!("; it points to `{}`", one_line(location));
        }
        401 => detail += "; the token was refused",
        422 => detail += "; the bytes that arrived have another MD5",
        _ => {}
    }
    OpError::with_status(kind, status, detail)
}

/// The text of a body, without markup, as one line.
pub(crate) fn message(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let mut plain = String::new();
    let mut inside = false;
    for c in text.chars() {
        match c {
            '<' => {
                inside = true;
                plain.push(' ');
            }
            '>' => inside = false,
            c if !inside => plain.push(c),
            _ => {}
        }
    }
    one_line(&plain)
}

#[cfg(test)]
mod tests {
    use bucketload_core::error::ErrorKind;

    use super::{message, to_error};

    #[test]
    fn statuses_have_meanings() {
        for (status, body, kind) in [
            (404, "", ErrorKind::NotFound),
            (409, "", ErrorKind::Conflict),
            (412, "", ErrorKind::Conflict),
            (401, "", ErrorKind::Auth),
            (403, "<html><h1>Forbidden</h1></html>", ErrorKind::Auth),
            (403, "QuotaExceeded", ErrorKind::Full),
            (413, "Upload exceeds quota.", ErrorKind::Full),
            (413, "Your request is too large.", ErrorKind::Rejected),
            (416, "", ErrorKind::Rejected),
            (422, "", ErrorKind::Rejected),
            (429, "", ErrorKind::Throttled),
            (498, "Slow down", ErrorKind::Throttled),
            (500, "", ErrorKind::Server),
            (501, "", ErrorKind::Unsupported),
            (503, "", ErrorKind::Server),
            (503, "SlowDown", ErrorKind::Throttled),
            (507, "", ErrorKind::Full),
        ] {
            let error = to_error(status, body.as_bytes(), "", "");
            assert_eq!(
                (error.kind, error.status),
                (kind, status),
                "{status} {body}"
            );
        }
    }

    #[test]
    fn markup_and_secrets_do_not_reach_the_message() {
        let body = b"<html><h1>Not Found</h1><p>The resource\n could not be found.</p></html>";
        assert_eq!(message(body), "Not Found The resource could not be found.");
        let error = to_error(401, b"bad token AUTH_tk1", "", "AUTH_tk1");
        assert_eq!(&*error.detail, "bad token ***; the token was refused");
        let error = to_error(302, b"", "http://other/", "");
        assert!(error.detail.contains("http://other/"), "{error}");
        assert_eq!(message(&[b'x'; 5000]).chars().count(), 301);
    }
}
