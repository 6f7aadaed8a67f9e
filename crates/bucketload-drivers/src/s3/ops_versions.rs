//! Operations on versions of objects, and writes whose version is noted.

use std::cell::Cell;

use bucketload_core::driver::{Completion, DONE, content_of};
use bucketload_core::error::{ErrorKind, OpError, OpResult};
use bucketload_core::op::{Request, VersionId};
use bucketload_core::record::Probe;

use super::keeping::Kind;
use super::prepare::{Prepared, S3Call};
use super::session::S3Session;
use crate::http::answer::{MAX_DOCUMENT, if_absent, too_long};
use crate::http::exchange::Reply;
use crate::http::pool::Buffer;
use crate::http::reading::Reading;
use crate::http::render::Render as _;
use crate::http::session::HttpSession as _;
use crate::http::sink::{Collect, OneField, Sink};

/// The header field with the identifier of a version.
pub(crate) const VERSION: &str = "x-amz-version-id";

/// Stores the identifier that came with the answer to a write.
///
/// # Errors
/// When there is none, or it is longer than any that is known.
pub(crate) fn note_version(version: &Cell<VersionId>, id: &[u8]) -> OpResult<()> {
    let wrong = |text: &str| Err(OpError::new(ErrorKind::Protocol, text));
    match VersionId::new(id) {
        _ if id.is_empty() => wrong(
            "the answer to the write names no version (x-amz-version-id): does the bucket keep versions?",
        ),
        None => wrong("the answer to the write names a version by more than 47 bytes"),
        Some(id) => {
            version.set(id);
            Ok(())
        }
    }
}

/// The version that the operation is about.
fn version_of(request: &Request<'_>) -> OpResult<VersionId> {
    let version = request.version.map(Cell::get).unwrap_or_default();
    match version.as_str() {
        "" => {
            let class = request.op.class;
            let text = format!("{class} was asked for without a version");
            Err(OpError::new(ErrorKind::Unsupported, text))
        }
        _ => Ok(version),
    }
}

/// Keeps the body and the identifier of a version.
struct Noting<'a> {
    body: Collect<'a>,
    id: OneField<'a>,
}

impl Sink for Noting<'_> {
    fn wants_fields(&self) -> bool {
        true
    }

    fn field(&mut self, name: &str, value: &[u8]) {
        self.id.field(name, value);
    }

    fn wants_body(&self) -> bool {
        true
    }

    fn data(&mut self, bytes: &[u8]) {
        self.body.data(bytes);
    }
}

impl S3Session {
    /// As [`S3Session::conclude`], and stores the identifier of the version written in `id`.
    pub(crate) async fn conclude_noting(
        &mut self,
        prepared: &mut Prepared<'_>,
        (body, id): (&mut Vec<u8>, &mut Vec<u8>),
        probe: &mut Probe,
    ) -> OpResult<()> {
        let mut sink = Noting {
            body: Collect::new(body, MAX_DOCUMENT),
            id: OneField {
                name: VERSION,
                value: id,
            },
        };
        let status = self.perform(prepared, &mut sink, probe).await?.status;
        if sink.body.overflow {
            return Err(too_long(status));
        }
        self.concluded(status, body).map(drop)
    }

    /// As [`S3Session::put`], and stores the identifier of the version written in `version`.
    pub(crate) async fn put_version(
        &mut self,
        request: &Request<'_>,
        version: &Cell<VersionId>,
        probe: &mut Probe,
    ) -> OpResult {
        let bytes = content_of(request)?.size();
        let mut digests = Buffer::take();
        let mut prepared = self.prepare_put(request, &mut digests)?;
        let mut id = Buffer::take();
        let mut sink = OneField {
            name: VERSION,
            value: &mut id,
        };
        self.perform(&mut prepared, &mut sink, probe).await?;
        note_version(version, &id)?;
        Ok(Completion { bytes, ..DONE })
    }

    /// As [`S3Session::put_version`], unless the object exists.
    pub(crate) async fn put_version_if_absent(
        &mut self,
        request: &Request<'_>,
        version: &Cell<VersionId>,
        probe: &mut Probe,
    ) -> OpResult {
        if_absent(self.put_version(request, version, probe).await)
    }

    pub(crate) async fn get_version(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        let version = version_of(request)?;
        let mut reading = Reading::of(request);
        let mut query = Buffer::take();
        query.parameter("versionId", version.as_str());
        let call = S3Call::new("GET", request.bucket, request.key);
        let mut prepared = self.prepare(&call.query(&query).kind(Kind::Content));
        let mut reply = Reply::default();
        self.perform_into(&mut prepared, &mut reading, probe, &mut reply)
            .await?;
        reading.finish(&reply)
    }

    pub(crate) async fn delete_version(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        let version = version_of(request)?;
        let mut query = Buffer::take();
        query.parameter("versionId", version.as_str());
        let call = S3Call::new("DELETE", request.bucket, request.key);
        let mut prepared = self.prepare(&call.query(&query));
        self.complete(&mut prepared, probe).await
    }
}
