//! Operations on one blob: get, range-get, put, head, delete, copy.

use bucketload_core::driver::{
    Completion, DONE, ErrorKind, OpClass, OpError, OpResult, Probe, Request, content_of,
};

use super::checksum::Base64;
use super::config::ContentChecksum;
use super::error_map::RefusalDetails;
use super::head::AzureCall;
use super::session::AzureSession;
use super::sign::Field;
use crate::http::answer::size_of_object;
use crate::http::{Body, Buffer, HttpSession as _, Ignore, Reading, Sink, Span};

pub(super) const BLOCK_BLOB: Field<'static> = ("x-ms-blob-type", b"BlockBlob");

/// Adds the checksum of a body to its call. `fields` is sorted and has a spare slot at `at`.
pub(super) fn checked<'a>(
    call: AzureCall<'a>,
    sum: Option<&'a (ContentChecksum, Base64)>,
    fields: &'a mut [Field<'a>],
    at: usize,
) -> AzureCall<'a> {
    match sum {
        Some((ContentChecksum::Crc64, sum)) => {
            fields[at] = ("x-ms-content-crc64", sum.as_bytes());
            call.fields(&fields[..=at])
        }
        Some((ContentChecksum::Md5, sum)) => AzureCall {
            content_md5: sum.as_bytes(),
            ..call.fields(&fields[..at])
        },
        None => call.fields(&fields[..at]),
    }
}

/// Records the status of a copy that the service had not finished when it answered.
#[derive(Default)]
struct CopyStatus {
    status: String,
}

impl Sink for CopyStatus {
    fn wants_fields(&self) -> bool {
        true
    }

    fn field(&mut self, name: &str, value: &[u8]) {
        if name.eq_ignore_ascii_case("x-ms-copy-status") && value != b"success" {
            self.status = String::from_utf8_lossy(value).into_owned();
        }
    }
}

impl AzureSession {
    pub(super) async fn get(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let mut reading = Reading::of(request);
        let call = AzureCall {
            range: reading.range(),
            ..AzureCall::new("GET", request.bucket, request.key)
        };
        let mut prepared = self.bare(&call);
        let reply = self.perform(&mut prepared, &mut reading, probe).await?;
        reading.finish(&reply)
    }

    pub(super) async fn put(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        match self.put_blob(request, probe).await? {
            Ok(done) => Ok(done),
            Err((status, refusal)) => Err(self.refused_as(status, &refusal)),
        }
    }

    /// Put Blob on condition that no blob exists. A failed condition counts as a success without
    /// items.
    pub(super) async fn put_if_absent(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        match self.put_blob(request, probe).await? {
            Ok(done) => Ok(Completion { items: 1, ..done }),
            // "The specified blob already exists" comes as 409, not as 412.
            Err((409, refusal)) if refusal.code == "BlobAlreadyExists" => Ok(DONE),
            Err((412, _)) => Ok(DONE),
            Err((status, refusal)) => Err(self.refused_as(status, &refusal)),
        }
    }

    /// Writes a blob in one request. Returns a refusal unjudged.
    async fn put_blob(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult<Result<Completion, (u16, RefusalDetails)>> {
        let span = Span::whole(content_of(request)?);
        let mut prepared = {
            let checksum = self.shared.config().checksum;
            // Hash before the request, so hashing is not timed.
            let sum = checksum.map(|algorithm| (algorithm, algorithm.of(span)));
            let mut fields = [BLOCK_BLOB; 2];
            let mut call = AzureCall::new("PUT", request.bucket, request.key);
            if request.op.class == OpClass::PutIfAbsent {
                call.if_none_match = "*";
            }
            let call = checked(call, sum.as_ref(), &mut fields, 1);
            self.prepare(&call, Body::Content(span))
        };
        let reply = self.attempt(&mut prepared, &mut Ignore, probe).await?;
        Ok(match &reply.refusal {
            None => Ok(Completion::of_bytes(span.len)),
            Some(refusal) => Err((reply.status, RefusalDetails::of(refusal))),
        })
    }

    pub(super) async fn head(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let call = AzureCall::new("HEAD", request.bucket, request.key);
        let mut prepared = self.bare(&call);
        let reply = self.perform(&mut prepared, &mut Ignore, probe).await?;
        size_of_object(&reply)
    }

    pub(super) async fn delete(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let call = AzureCall::new("DELETE", request.bucket, request.key);
        let mut request = self.bare(&call);
        self.complete(&mut request, probe).await
    }

    /// Copy Blob From URL: the service answers once the copy exists. It fetches the source itself;
    /// the source URL carries the permission for that.
    pub(super) async fn copy(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let mut source = Buffer::take();
        {
            let mut writer = self.shared.writer.borrow_mut();
            writer.push_source_url(&mut source, request.bucket, request.source);
        }
        let fields: [Field<'_>; 2] = [
            ("x-ms-copy-source", &source),
            ("x-ms-requires-sync", b"true"),
        ];
        let call = AzureCall::new("PUT", request.bucket, request.key).fields(&fields);
        let mut prepared = self.bare(&call);
        let mut sink = CopyStatus::default();
        let reply = self.perform(&mut prepared, &mut sink, probe).await?;
        if sink.status.is_empty() {
            return Ok(DONE);
        }
        Err(OpError::with_status(
            ErrorKind::Protocol,
            reply.status,
            format!(
                "the copy ended with status `{}`, not `success`",
                sink.status
            ),
        ))
    }
}
