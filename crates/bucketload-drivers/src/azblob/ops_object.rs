//! Operations on one blob: get, range-get, put, head, delete, copy.

use bucketload_core::driver::{Completion, DONE, content_of};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::{OpClass, Request};
use bucketload_core::record::Probe;

use crate::http::answer::size_of_object;
use crate::http::outgoing::Body;
use crate::http::pool::Buffer;
use crate::http::reading::Reading;
use crate::http::session::HttpSession as _;
use crate::http::sink::{Ignore, Sink};
use crate::http::span::Span;

use super::checksum::Base64;
use super::config::ContentChecksum;
use super::error_map::Explained;
use super::head::Call;
use super::session::AzureSession;
use super::sign::Field;

const BLOCK_BLOB: Field<'static> = Field {
    name: "x-ms-blob-type",
    value: b"BlockBlob",
};

/// Adds the checksum of a body to its call: `fields` is sorted and has room for one more at `at`.
pub(super) fn checked<'a>(
    call: Call<'a>,
    sum: Option<(ContentChecksum, &'a Base64)>,
    fields: &'a mut [Field<'a>],
    at: usize,
) -> Call<'a> {
    match sum {
        Some((ContentChecksum::Crc64, sum)) => {
            fields[at] = Field {
                name: "x-ms-content-crc64",
                value: sum.as_bytes(),
            };
            call.fields(&fields[..=at])
        }
        Some((ContentChecksum::Md5, sum)) => Call {
            content_md5: sum.as_bytes(),
            ..call.fields(&fields[..at])
        },
        None => call.fields(&fields[..at]),
    }
}

/// Notes whether the service has finished a copy before it answered.
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
    pub(super) async fn get(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let mut reading = Reading::of(request);
        let call = Call {
            range: reading.range(),
            ..Call::new("GET", request.bucket, request.key)
        };
        let mut prepared = self.bare(&call);
        let reply = self.perform(&mut prepared, &mut reading, probe).await?;
        reading.finish(&reply)
    }

    pub(super) async fn put(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        match self.put_blob(request, probe).await? {
            Ok(done) => Ok(done),
            Err((status, explained)) => Err(self.refused_as(status, &explained)),
        }
    }

    /// Put Blob on condition that there is no blob. A refusal of the condition is a success without
    /// items.
    pub(super) async fn put_if_absent(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        match self.put_blob(request, probe).await? {
            Ok(done) => Ok(Completion { items: 1, ..done }),
            // "The specified blob already exists" is a conflict, not a failed precondition.
            Err((409, explained)) if explained.code == "BlobAlreadyExists" => Ok(DONE),
            Err((412, _)) => Ok(DONE),
            Err((status, explained)) => Err(self.refused_as(status, &explained)),
        }
    }

    /// Writes a blob in one request; a refusal is handed back as it came.
    async fn put_blob(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Result<Completion, (u16, Explained)>, OpError> {
        let span = Span::whole(content_of(request)?);
        let mut prepared = {
            let checksum = self.shared.config().checksum;
            // Hashing is not part of the operation: it is done before the request.
            let sum = checksum.map(|algorithm| (algorithm, algorithm.of(span)));
            let sum = sum.as_ref().map(|(algorithm, sum)| (*algorithm, sum));
            let mut fields = [BLOCK_BLOB; 2];
            let mut call = Call::new("PUT", request.bucket, request.key);
            if request.op.class == OpClass::PutIfAbsent {
                call.if_none_match = "*";
            }
            let call = checked(call, sum, &mut fields, 1);
            self.prepare(&call, Body::Content(span))
        };
        let reply = self.attempt(&mut prepared, &mut Ignore, probe).await?;
        Ok(match &reply.refusal {
            None => Ok(Completion {
                bytes: span.len,
                ..DONE
            }),
            Some(refusal) => Err((reply.status, Explained::of(refusal))),
        })
    }

    pub(super) async fn head(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let call = Call::new("HEAD", request.bucket, request.key);
        let mut prepared = self.bare(&call);
        let reply = self.perform(&mut prepared, &mut Ignore, probe).await?;
        size_of_object(&reply)
    }

    pub(super) async fn delete(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let call = Call::new("DELETE", request.bucket, request.key);
        let mut request = self.bare(&call);
        self.complete(&mut request, probe).await
    }

    /// Copy Blob From URL: the service answers when the copy is there. It fetches the source by
    /// itself and needs a permission for that, which the URL carries.
    pub(super) async fn copy(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let mut source = Buffer::take();
        {
            let mut writer = self.shared.writer.borrow_mut();
            writer.push_source_url(&mut source, request.bucket, request.source);
        }
        let fields = [
            Field {
                name: "x-ms-copy-source",
                value: &source,
            },
            Field {
                name: "x-ms-requires-sync",
                value: b"true",
            },
        ];
        let call = Call::new("PUT", request.bucket, request.key).fields(&fields);
        let mut prepared = self.bare(&call);
        let mut sink = CopyStatus::default();
        let reply = self.perform(&mut prepared, &mut sink, probe).await?;
        if sink.status.is_empty() {
            return Ok(DONE);
        }
        Err(OpError::with_status(
            ErrorKind::Protocol,
            reply.status,
            format!("the copy was answered as `{}`, not as done", sink.status),
        ))
    }
}
