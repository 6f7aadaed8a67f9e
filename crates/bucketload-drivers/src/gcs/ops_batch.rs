//! Deleting several objects in one request: the batch endpoint (Cloud Storage, "Batch requests").
//!
//! A batch is a `multipart/mixed` document whose parts are requests; its answer is one whose parts are
//! answers. S3 deletes up to 1000 keys in one request; here a batch deletes 100.

use bucketload_core::driver::{Completion, ErrorKind, OpError, OpResult, Probe, Request};
use bucketload_s3::encode;

use super::session::{GcsSession, push_object};
use crate::http::answer::MAX_DOCUMENT;
use crate::http::{Body, Buffer, HttpSession as _, Render as _, Rendering as _};

/// Most requests in a batch (Cloud Storage, "Batch requests").
pub(crate) const MAX_CALLS: u64 = 100;

/// Separates the parts. It cannot occur in a request because keys are escaped.
const BOUNDARY: &str = "==bucketload==";
const CONTENT_TYPE: &str = "multipart/mixed; boundary=\"==bucketload==\"";

/// A batch under construction.
pub(crate) struct Batch {
    document: Buffer,
    calls: u64,
}

impl Batch {
    pub(crate) fn new() -> Self {
        Self {
            document: Buffer::take(),
            calls: 0,
        }
    }

    pub(crate) const fn is_full(&self) -> bool {
        self.calls == MAX_CALLS
    }

    /// Adds the deletion of `key` followed by `suffix`.
    pub(crate) fn delete(&mut self, session: &GcsSession, bucket: &str, key: &str, suffix: &str) {
        self.calls += 1;
        let document = &mut self.document;
        for text in [
            "--",
            BOUNDARY,
            "\r\nContent-Type: application/http\r\nContent-ID: <",
        ] {
            document.text(text);
        }
        encode::push_decimal(document, self.calls);
        document.extend_from_slice(b">\r\n\r\nDELETE ");
        push_object(document, bucket, key);
        encode::push_query(document, suffix);
        document.extend_from_slice(b" HTTP/1.1\r\nHost: ");
        document.extend_from_slice(session.authority().as_bytes());
        document.extend_from_slice(b"\r\n\r\n\r\n");
    }
}

/// Outcome of a batch.
#[derive(Debug, Default, PartialEq, Eq)]
struct BatchAnswer<'a> {
    /// Parts that the server answered.
    count: u64,
    /// Objects that exist and were not deleted.
    failed: u64,
    /// Status and document of the first failure.
    first: Option<(u16, &'a [u8])>,
}

/// Reads the answer to a batch of deletions. A missing object counts as deleted.
fn read_answer(body: &[u8]) -> BatchAnswer<'_> {
    let mut out = BatchAnswer::default();
    let mut at = 0;
    let line_at = |at: usize| {
        let rest = &body[at..];
        let len = rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
        (&rest[..len], at + len + 1)
    };
    // The documents are JSON, whose lines never start like a status line.
    while at < body.len() {
        let (line, next) = line_at(at);
        at = next.min(body.len());
        let status = line
            .strip_prefix(b"HTTP/1.1 ")
            .or_else(|| line.strip_prefix(b"HTTP/1.0 "))
            .and_then(|rest| {
                std::str::from_utf8(rest.get(..3)?)
                    .ok()?
                    .parse::<u16>()
                    .ok()
            });
        let Some(status) = status else { continue };
        out.count += 1;
        if status < 300 || status == 404 {
            continue;
        }
        out.failed += 1;
        if out.first.is_none() {
            out.first = Some((status, document(&body[at..])));
        }
    }
    out
}

/// The document of the answer whose head starts at `rest`: from the empty line to the boundary.
fn document(rest: &[u8]) -> &[u8] {
    let find = |text: &[u8], what: &[u8]| text.windows(what.len()).position(|w| w == what);
    let begin = find(rest, b"\r\n\r\n").map_or(rest.len(), |at| at + 4);
    let body = &rest[begin..];
    let len = find(body, b"\r\n--").unwrap_or(body.len());
    &body[..len]
}

impl GcsSession {
    pub(crate) async fn delete_many(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        let count = request.op.count;
        let (Some(keys), 1..) = (request.keys, count) else {
            return Err(OpError::new(
                ErrorKind::Rejected,
                "delete-many was asked for without keys",
            ));
        };
        let mut batch = Batch::new();
        // `each_key` cannot await, and a full batch is sent between two keys.
        let mut lent = Buffer::take();
        let mut key = String::from_utf8(std::mem::take(&mut *lent)).unwrap_or_default();
        let mut outcome = Ok(());
        for i in 0..count {
            keys.render(i, &mut key);
            batch.delete(self, request.bucket, &key, "");
            if batch.is_full() || i + 1 == count {
                outcome = self.send_batch(&mut batch, probe).await;
                if outcome.is_err() {
                    break;
                }
            }
        }
        *lent = key.into_bytes();
        outcome?;
        Ok(Completion::of_items(count))
    }

    /// Sends `batch` and empties it.
    pub(crate) async fn send_batch(
        &mut self,
        batch: &mut Batch,
        probe: &mut Probe,
    ) -> OpResult<()> {
        let Batch { document, calls } = batch;
        let sent = std::mem::take(calls);
        if sent == 0 {
            return Ok(());
        }
        for text in ["--", BOUNDARY, "--\r\n"] {
            document.text(text);
        }
        let mut head = self.begin("POST");
        head.text("/batch/storage/v1");
        let mut request = self.with(head, CONTENT_TYPE, Body::Bytes(document));
        let mut body = Buffer::take();
        let reply = self
            .document(&mut request, &mut body, 8 * MAX_DOCUMENT, probe)
            .await?;
        document.clear();
        let answer = read_answer(&body);
        if answer.count != sent {
            return Err(OpError::with_status(
                ErrorKind::Protocol,
                reply.status,
                format!("the batch of {sent} requests got {} answers", answer.count),
            ));
        }
        let Some((status, document)) = answer.first else {
            return Ok(());
        };
        let mut error = self.refusal(status, document);
        error.detail = format!("{} keys were not deleted; {}", answer.failed, error.detail).into();
        Err(error)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{BatchAnswer, read_answer};

    const MIXED: &[u8] = b"--batch_x\r\nContent-Type: application/http\r\nContent-ID: <response-1>\r\n\r\n\
        HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n\r\n--batch_x\r\n\
        Content-Type: application/http\r\nContent-ID: <response-2>\r\n\r\n\
        HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\n\r\n{\"error\":{}}\r\n--batch_x\r\n\
        Content-Type: application/http\r\n\r\n\
        HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\n\r\n{\r\n\"error\":1}\r\n--batch_x--";

    #[test]
    fn every_answer_counts() {
        let expected = BatchAnswer {
            count: 3,
            failed: 1,
            first: Some((403, b"{\r\n\"error\":1}")),
        };
        assert_eq!(read_answer(MIXED), expected);
        assert_eq!(read_answer(b""), BatchAnswer::default());
        assert_eq!(read_answer(b"HTTP/1.1 500").first, Some((500, &b""[..])));
    }

    proptest! {
        #[test]
        fn arbitrary_input_does_not_panic(at in 0usize..600, byte in any::<u8>(), cut in 0usize..600) {
            let mut text = MIXED.to_vec();
            let len = text.len();
            text[at % len] = byte;
            read_answer(&text[..cut % len]);
        }
    }
}
