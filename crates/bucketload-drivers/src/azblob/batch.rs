//! Blob Batch: several deletions in one request, each with its own signature.
//!
//! The body and the answer are `multipart/mixed` documents whose parts are HTTP requests and answers
//! ("Blob Batch", Azure Storage REST API reference). Each part has its own status. A missing blob
//! does not fail the operation.

use bucketload_core::driver::{Completion, ErrorKind, OpError, OpResult, Probe, Request};
use bucketload_s3::encode;

use super::error_map::RefusalDetails;
use super::head::{AzureCall, HeadWriter};
use super::session::AzureSession;
use super::sign::Param;
use crate::http::render::each_key;
use crate::http::{Body, Buffer, HttpSession as _};

/// Most requests of a batch.
pub(super) const MAX_BATCH: u64 = 256;
/// Most bytes of an answer: 256 refusals with their documents.
const MAX_ANSWER: usize = 4 << 20;

/// Names in paths are escaped, so the boundary cannot occur inside a part.
const BOUNDARY: &str = "batch_9f6e24c2-5b7f-4c39-8a55-0d4b61a3e7f0";
const CONTENT_TYPE: &str = "multipart/mixed; boundary=batch_9f6e24c2-5b7f-4c39-8a55-0d4b61a3e7f0";

const QUERY: [Param<'static>; 2] = [("comp", "batch"), ("restype", "container")];

/// Appends the deletion of one blob as part `number`.
fn push_delete(
    out: &mut Vec<u8>,
    writer: &mut HeadWriter,
    container: &str,
    key: &str,
    number: u64,
) {
    for piece in [
        "--",
        BOUNDARY,
        "\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: ",
    ] {
        out.extend_from_slice(piece.as_bytes());
    }
    encode::push_decimal(out, number);
    out.extend_from_slice(b"\r\n\r\n");
    writer.render_inner_delete(out, container, key);
}

fn push_end(out: &mut Vec<u8>) {
    for piece in ["--", BOUNDARY, "--\r\n"] {
        out.extend_from_slice(piece.as_bytes());
    }
}

/// Outcome of a batch.
#[derive(Debug, Default, PartialEq, Eq)]
struct BatchAnswer {
    /// Parts with a status.
    parts: u64,
    /// Parts that failed for a reason other than a missing blob.
    failed: u64,
    /// Status and code of the first failed part.
    status: u16,
    code: String,
}

/// Reads the status of each part and the code of each refused part.
fn read_answer(body: &[u8]) -> BatchAnswer {
    let mut out = BatchAnswer::default();
    // The status of the current part, while it may still prove a failure.
    let mut open = None;
    let fail = |out: &mut BatchAnswer, status: u16, code: &str| {
        if status == 404 && matches!(code, "BlobNotFound" | "") {
            return;
        }
        out.failed += 1;
        if out.failed == 1 {
            out.status = status;
            out.code = code.to_owned();
        }
    };
    for line in body.split(|&b| b == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Some(rest) = line.strip_prefix(b"HTTP/1.1 ") {
            if let Some(status) = open.take() {
                fail(&mut out, status, "");
            }
            let digits = rest.get(..3).and_then(|d| std::str::from_utf8(d).ok());
            let Some(status) = digits.and_then(|d| d.parse::<u16>().ok()) else {
                continue;
            };
            out.parts += 1;
            open = (status >= 300).then_some(status);
        } else if let Some(status) = open {
            let (name, value) = match line.iter().position(|&b| b == b':') {
                Some(at) => (&line[..at], line[at + 1..].trim_ascii()),
                None => continue,
            };
            if name.eq_ignore_ascii_case(b"x-ms-error-code") {
                fail(&mut out, status, &String::from_utf8_lossy(value));
                open = None;
            }
        }
    }
    if let Some(status) = open {
        fail(&mut out, status, "");
    }
    out
}

impl AzureSession {
    pub(super) async fn delete_many(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        let count = request.op.count;
        if count == 0 || count > MAX_BATCH {
            let text = format!(
                "delete-many takes 1 to {MAX_BATCH} keys per request on Azure Blob Storage, not {count}"
            );
            return Err(OpError::new(ErrorKind::Rejected, text));
        }
        let mut document = Buffer::take();
        {
            let mut writer = self.shared.writer.borrow_mut();
            each_key(request, |i, key| {
                push_delete(&mut document, &mut writer, request.bucket, key, i);
            })?;
        }
        push_end(&mut document);
        self.send_batch(request.bucket, &document, count, probe)
            .await?;
        Ok(Completion::of_items(count))
    }

    /// Deletes at most [`MAX_BATCH`] blobs.
    pub(super) async fn delete_batch(
        &mut self,
        container: &str,
        keys: &[String],
        probe: &mut Probe,
    ) -> OpResult<()> {
        let mut document = Vec::new();
        {
            let mut writer = self.shared.writer.borrow_mut();
            for (i, key) in (0..).zip(keys) {
                push_delete(&mut document, &mut writer, container, key, i);
            }
        }
        push_end(&mut document);
        self.send_batch(container, &document, keys.len() as u64, probe)
            .await
    }

    async fn send_batch(
        &mut self,
        container: &str,
        document: &[u8],
        count: u64,
        probe: &mut Probe,
    ) -> OpResult<()> {
        let call = AzureCall {
            content_type: CONTENT_TYPE,
            ..AzureCall::new("POST", container, "").query(&QUERY)
        };
        let mut prepared = self.prepare(&call, Body::Bytes(document));
        let mut body = Buffer::take();
        self.document(&mut prepared, &mut body, MAX_ANSWER, probe)
            .await?;
        let answered = read_answer(&body);
        if answered.failed > 0 {
            let refusal = RefusalDetails::with_code(&answered.code);
            let mut error = self.refused_as(answered.status, &refusal);
            error.detail = format!(
                "{} of {count} blobs were not deleted; {}",
                answered.failed, error.detail
            )
            .into();
            return Err(error);
        }
        if answered.parts != count {
            return Err(OpError::new(
                ErrorKind::Protocol,
                format!(
                    "the batch of {count} deletions got {} answers",
                    answered.parts
                ),
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{BOUNDARY, BatchAnswer, CONTENT_TYPE, push_delete, push_end, read_answer};
    use crate::azblob::head::HeadWriter;
    use crate::azblob::{Auth, AzureConfig};
    use crate::http::Endpoint;

    #[test]
    fn the_content_type_names_the_boundary() {
        assert!(CONTENT_TYPE.ends_with(BOUNDARY));
    }

    #[test]
    fn a_batch_body_holds_requests_between_boundaries() {
        let endpoint = Endpoint::parse("http://127.0.0.1:1/acc", "test").unwrap();
        let config = AzureConfig::new(vec![endpoint.clone()], "acc", Auth::Sas("sig=x".into()));
        let mut writer = HeadWriter::new(&config, &endpoint, || 784_111_777);
        let mut out = Vec::new();
        push_delete(&mut out, &mut writer, "c", "a b", 0);
        push_delete(&mut out, &mut writer, "c", "d", 1);
        push_end(&mut out);
        let part = |number: u64, key: &str| {
            format!(
                "--{BOUNDARY}\r\nContent-Type: application/http\r\n\
                 Content-Transfer-Encoding: binary\r\nContent-ID: {number}\r\n\r\n\
                 DELETE /acc/c/{key}?sig=x HTTP/1.1\r\n\
                 x-ms-date: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 0\r\n\r\n"
            )
        };
        let want = format!("{}{}--{BOUNDARY}--\r\n", part(0, "a%20b"), part(1, "d"));
        assert_eq!(String::from_utf8(out).unwrap(), want);
    }

    /// An answer in the form that the documentation of Blob Batch shows.
    fn answer(parts: &[(u16, &str)]) -> Vec<u8> {
        let mut out = String::new();
        for (i, (status, code)) in parts.iter().enumerate() {
            out += "--batchresponse_66925647\r\nContent-Type: application/http\r\n";
            out += &format!("Content-ID: {i}\r\n\r\nHTTP/1.1 {status} Some words\r\n");
            if !code.is_empty() {
                out += &format!("x-ms-error-code: {code}\r\n");
            }
            out += "x-ms-request-id: 778fdc83\r\nServer: Windows-Azure-Blob/1.0\r\n\r\n";
        }
        out += "--batchresponse_66925647--\r\n0";
        out.into_bytes()
    }

    #[test]
    fn missing_blobs_are_not_failures() {
        let good = read_answer(&answer(&[(202, ""), (404, "BlobNotFound"), (404, "")]));
        assert_eq!((good.parts, good.failed), (3, 0));
        let bad = read_answer(&answer(&[
            (202, ""),
            (403, "AuthenticationFailed"),
            (404, "ContainerNotFound"),
            (500, ""),
        ]));
        let want = BatchAnswer {
            parts: 4,
            failed: 3,
            status: 403,
            code: "AuthenticationFailed".to_owned(),
        };
        assert_eq!(bad, want);
        assert_eq!(read_answer(b""), BatchAnswer::default());
    }

    proptest! {
        #[test]
        fn reading_any_answer_does_not_panic(body in prop::collection::vec(any::<u8>(), 0..300)) {
            read_answer(&body);
        }
    }
}
