//! Operations on versions of objects, and writes whose version is noted.

use std::cell::Cell;

use bucketload_core::driver::{Completion, DONE, content_of};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::{Request, VersionId};
use bucketload_core::record::Probe;

use super::keeping::Kind;
use super::ops_list::{MAX_PAGE, set};
use super::prepare::{Prepared, S3Call};
use super::session::S3Session;
use crate::http::answer::{MAX_DOCUMENT, as_text, if_absent, no_next_page, too_long, unreadable};
use crate::http::exchange::Reply;
use crate::http::pool::Buffer;
use crate::http::reading::Reading;
use crate::http::render::Render as _;
use crate::http::session::HttpSession as _;
use crate::http::sink::{Collect, OneField, Sink};
use bucketload_s3::xml;

/// The header field with the identifier of a version.
pub(crate) const VERSION: &str = "x-amz-version-id";

/// Stores the identifier that came with the answer to a write.
///
/// # Errors
/// When there is none, or it is longer than any that is known.
pub(crate) fn note_version(version: &Cell<VersionId>, id: &[u8]) -> Result<(), OpError> {
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
fn version_of(request: &Request<'_>) -> Result<VersionId, OpError> {
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
    ) -> Result<(), OpError> {
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
    ) -> Result<Completion, OpError> {
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
    ) -> Result<Completion, OpError> {
        if_absent(self.put_version(request, version, probe).await)
    }

    pub(crate) async fn get_version(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
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
    ) -> Result<Completion, OpError> {
        let version = version_of(request)?;
        let mut query = Buffer::take();
        query.parameter("versionId", version.as_str());
        let call = S3Call::new("DELETE", request.bucket, request.key);
        let mut prepared = self.prepare(&call.query(&query));
        self.complete(&mut prepared, probe).await
    }

    /// ListObjectVersions. Counts versions, delete markers and common prefixes.
    pub(crate) async fn list_object_versions(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let op = &request.op;
        let mut query = Buffer::take();
        let mut body = Buffer::take();
        // Where this page starts, and where the next one does.
        let (mut key, mut version) = (Buffer::take(), Buffer::take());
        let (mut next_key, mut next_version) = (Buffer::take(), Buffer::take());
        let (mut items, mut pages) = (0, 0);
        loop {
            query.clear();
            if !request.delimiter.is_empty() {
                query.parameter("delimiter", request.delimiter);
            }
            if !key.is_empty() {
                query.parameter("key-marker", as_text(&key));
            }
            if op.count > 0 {
                query.number("max-keys", op.count);
            }
            query.parameter("prefix", request.key);
            if !version.is_empty() {
                query.parameter("version-id-marker", as_text(&version));
            }
            query.parameter("versions", "");
            let call = S3Call::new("GET", request.bucket, "").query(&query);
            let mut prepared = self.prepare(&call);
            self.document(&mut prepared, &mut body, MAX_PAGE, probe)
                .await?;
            let mut truncated = false;
            next_key.clear();
            next_version.clear();
            xml::leaves(&body, |path, text| match *path {
                [_, "Version" | "DeleteMarker", "Key"] | [_, "CommonPrefixes", "Prefix"] => {
                    items += 1;
                }
                [_, "IsTruncated"] => truncated = text.is("true"),
                [_, "NextKeyMarker"] => set(&mut next_key, text),
                [_, "NextVersionIdMarker"] => set(&mut next_version, text),
                _ => {}
            })
            .map_err(|e| unreadable("listing of versions", e))?;
            pages += 1;
            if !truncated || (op.pages > 0 && pages >= op.pages) {
                return Ok(Completion { items, ..DONE });
            }
            let stays = *next_key == *key && *next_version == *version;
            if next_key.is_empty() || stays {
                return Err(no_next_page());
            }
            std::mem::swap(&mut key, &mut next_key);
            std::mem::swap(&mut version, &mut next_version);
        }
    }
}
