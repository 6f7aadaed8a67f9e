//! Bulk deletion: one request with a list of paths (`POST ?bulk-delete`, Swift's bulk filter; radosgw
//! has it built in). The response status is always 200; the body contains the result.

use std::borrow::Cow;

use bucketload_core::driver::{Completion, ErrorKind, OpError, OpResult, Probe, Request};
use serde::Deserialize;
use serde_json::Value;

use super::error_map::kind_of;
use super::head::{SwiftCall, push_path};
use super::session::SwiftSession;
use crate::http::answer::unreadable;
use crate::http::render::each_key;
use crate::http::{Body, Buffer, HttpSession as _};

/// radosgw's maximum number of objects in one request; Swift's default is 10 000.
pub(crate) const MAX_DELETE: usize = 1000;
/// Maximum size of a response, in bytes: an error for each of 10 000 names.
const MAX_ANSWER: usize = 32 << 20;

/// The body of a response (Swift, "Bulk Operations").
#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(rename = "Response Status", borrow, default)]
    status: Cow<'a, str>,
    #[serde(rename = "Response Body", borrow, default)]
    body: Cow<'a, str>,
    #[serde(rename = "Errors", default)]
    errors: Vec<Value>,
}

/// Checks the body of a response.
///
/// # Errors
/// `Unsupported` when the server does not support bulk deletion; otherwise the error of the first failed path.
pub(crate) fn judge(body: &[u8]) -> OpResult<()> {
    // Swift sends blanks while it works, to keep clients from timing out.
    let body = body.trim_ascii();
    if body.is_empty() {
        // Without the filter, the request updates the account's metadata: nothing was deleted.
        return Err(OpError::new(
            ErrorKind::Unsupported,
            "the server does not support bulk deletion",
        ));
    }
    let answer: Answer<'_> =
        serde_json::from_slice(body).map_err(|e| unreadable("response to the bulk deletion", e))?;
    let first = answer.errors.first().map(one_error);
    let (path, said) = match (&first, answer.status.starts_with("200")) {
        (None, true) => return Ok(()),
        (Some((path, status)), _) => (path.as_str(), status.as_str()),
        (None, false) => ("", &*answer.status),
    };
    let status: u16 = said
        .split_ascii_whitespace()
        .next()
        .and_then(|code| code.parse().ok())
        .unwrap_or(0);
    let kind = match status {
        0 => ErrorKind::Server,
        status => kind_of(status, said),
    };
    let detail = match answer.errors.len() {
        0 => format!("{said} {}", answer.body.trim()),
        n => format!("{n} objects were not deleted; `{path}`: {said}"),
    };
    Err(OpError::with_status(kind, status, detail))
}

/// Path and status of an entry of `Errors`: a pair in Swift, an object in radosgw.
fn one_error(error: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match error {
        Value::Array(pair) => match pair.as_slice() {
            [path, status] => (text(path), text(status)),
            // radosgw wraps each entry once more.
            [Value::Object(_)] => one_error(&pair[0]),
            _ => (String::new(), error.to_string()),
        },
        Value::Object(fields) => {
            let of = |name: &str| fields.get(name).map(text).unwrap_or_default();
            (of("Name"), of("Status"))
        }
        _ => (String::new(), error.to_string()),
    }
}

impl SwiftSession {
    pub(crate) async fn delete_many(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        let count = request.op.count;
        let mut document = Buffer::take();
        each_key(request, |_, key| {
            push_line(&mut document, request.bucket, key);
        })?;
        self.bulk_delete(&document, probe).await?;
        Ok(Completion::of_items(count))
    }

    /// Sends a list of paths to delete and checks whether any failed.
    pub(crate) async fn bulk_delete(&mut self, document: &[u8], probe: &mut Probe) -> OpResult<()> {
        let fields: [(&str, &[u8]); 2] = [
            ("Content-Type", b"text/plain"),
            ("Accept", b"application/json"),
        ];
        let call = SwiftCall::new("POST", "", "")
            .query(b"bulk-delete")
            .fields(&fields)
            .length(document.len() as u64);
        let mut plain = self.prepare(&call, Body::Bytes(document));
        let mut body = Buffer::take();
        self.document(&mut plain, &mut body, MAX_ANSWER, probe)
            .await?;
        judge(&body)
    }
}

/// Appends the line of one object.
pub(crate) fn push_line(document: &mut Vec<u8>, container: &str, key: &str) {
    push_path(document, container, key);
    document.push(b'\n');
}

#[cfg(test)]
mod tests {
    use bucketload_core::error::ErrorKind;

    use super::{judge, push_line};

    #[test]
    fn responses_of_swift_and_radosgw_are_understood() {
        let good = br#"  {"Number Not Found": 1, "Response Status": "200 OK", "Errors": [],
                        "Number Deleted": 2, "Response Body": ""}"#;
        assert_eq!(judge(good), Ok(()));
        for bad in [
            r#"{"Response Status": "400 Bad Request", "Errors": [["/c/a", "403 Forbidden"], ["/c/b", "500"]]}"#,
            r#"{"Response Status": "400 Bad Request", "Errors": [{"Name": "/c/a", "Status": "403 Forbidden"}, {}]}"#,
            r#"{"Response Status": "400 Bad Request", "Errors": [[{"Name": "/c/a", "Status": "403 Forbidden"}], []]}"#,
        ] {
            let error = judge(bad.as_bytes()).unwrap_err();
            assert_eq!(
                (error.kind, error.status),
                (ErrorKind::Auth, 403),
                "{error}"
            );
            assert!(
                error.detail.contains("2 objects") && error.detail.contains("/c/a"),
                "{error}"
            );
        }
        let refused = br#"{"Response Status": "413 Request Entity Too Large", "Response Body": "Maximum Bulk Deletes: 10000 per request"}"#;
        let error = judge(refused).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Rejected);
        assert!(error.detail.contains("Maximum Bulk Deletes"), "{error}");
        assert_eq!(judge(b" \n").unwrap_err().kind, ErrorKind::Unsupported);
        assert_eq!(judge(b"{").unwrap_err().kind, ErrorKind::Protocol);
    }

    #[test]
    fn lines_are_encoded_paths() {
        let mut document = Vec::new();
        push_line(&mut document, "c", "a b\n/\u{e4}");
        assert_eq!(document, b"/c/a%20b%0A/%C3%A4\n");
    }
}
