//! Appends, in stores that have them: a PUT at the end of the object, which must name that end.
//!
//! A session remembers where its appends ended ([`Ends`]). It asks for the end (HEAD) only of objects that it does not
//! remember, and after another writer has moved the end; both requests belong to the operation.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use bucketload_core::driver::{Completion, DONE, content_of};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::{OpClass, Request};
use bucketload_core::record::Probe;
use bucketload_s3::canonical::Header;
use bucketload_s3::encode;

use super::ops_object::IF_ABSENT;
use super::prepare::{ContentHashes, S3Call, Upload};
use super::session::{S3Session, absent};
use crate::http::answer::{if_absent, size_of_object};
use crate::http::pool::Buffer;
use crate::http::session::HttpSession as _;
use crate::http::sink::{Ignore, Sink};
use crate::http::span::Span;

/// Number of objects whose ends a session remembers.
const REMEMBERED: usize = 256;

/// Where the session's last appends ended. An object takes the place of another one now and then, so memory is bounded
/// and no operation allocates. A wrong end does no harm: the store refuses it.
#[derive(Debug)]
pub(crate) struct Ends([(u64, u64); REMEMBERED]);

impl Ends {
    const NONE: (u64, u64) = (0, 0);

    fn place(&mut self, object: u64) -> &mut (u64, u64) {
        &mut self.0[object as usize % REMEMBERED]
    }

    /// The end of `object` in bytes, if it is known.
    fn of(&mut self, object: u64) -> Option<u64> {
        let (known, end) = *self.place(object);
        (known == object).then_some(end)
    }

    fn set(&mut self, object: u64, end: u64) {
        *self.place(object) = (object, end);
    }

    fn forget(&mut self, object: u64) {
        *self.place(object) = Self::NONE;
    }
}

impl Default for Ends {
    fn default() -> Self {
        Self([Self::NONE; REMEMBERED])
    }
}

/// A number for the object; two objects hardly ever share one. Never 0.
fn number(request: &Request<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    (request.bucket, request.key).hash(&mut hasher);
    hasher.finish().max(1)
}

/// Keeps the size of the object that an append left.
#[derive(Debug, Default)]
struct Told(Option<u64>);

impl Sink for Told {
    fn wants_fields(&self) -> bool {
        true
    }

    fn field(&mut self, name: &str, value: &[u8]) {
        if name.eq_ignore_ascii_case("x-amz-object-size") {
            self.0 = std::str::from_utf8(value).ok().and_then(|v| v.parse().ok());
        }
    }
}

impl S3Session {
    /// PUT at the end of the object, after a HEAD if the end is not known. If another writer moved the end, HEAD and
    /// PUT once more.
    pub(crate) async fn append(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        if !self.shared.config().appends() {
            return Err(absent(OpClass::Append));
        }
        let span = Span::whole(content_of(request)?);
        let done = Completion {
            bytes: span.len,
            ..DONE
        };
        let mut digests = Buffer::take();
        let content = Upload {
            span,
            hashes: ContentHashes::of(self.shared.config(), span, &mut digests),
            digests: &digests,
        };
        // An append cannot be empty, an object can.
        if span.len == 0 {
            let call = S3Call::new("PUT", request.bucket, request.key).content(content);
            let mut prepared = self.prepare(&call.headers(&IF_ABSENT));
            let written = self.complete(&mut prepared, probe).await;
            return if_absent(written).map(|_| done);
        }
        let object = number(request);
        let known = self.ends.get_or_insert_default().of(object);
        let mut end = match known {
            Some(end) => end,
            None => self.end_of(request, probe).await?,
        };
        let mut outcome = self.write_at(request, content, end, probe).await;
        let moved = |e: &OpError| e.kind == ErrorKind::Conflict;
        if known.is_some() && outcome.as_ref().is_err_and(moved) {
            end = self.end_of(request, probe).await?;
            outcome = self.write_at(request, content, end, probe).await;
        }
        let ends = self.ends.get_or_insert_default();
        match outcome {
            Ok(()) => ends.set(object, end + span.len),
            Err(_) => ends.forget(object),
        }
        outcome.map(|()| done)
    }

    /// PUT at `end`. The store must say how large the object is now: one that ignores the offset replaces the object.
    async fn write_at(
        &mut self,
        request: &Request<'_>,
        content: Upload<'_>,
        end: u64,
        probe: &mut Probe,
    ) -> Result<(), OpError> {
        let mut digits = [0; 20];
        let headers = [Header {
            name: "x-amz-write-offset-bytes",
            value: encode::decimal(&mut digits, end),
        }];
        let mut prepared = {
            let call = S3Call::new("PUT", request.bucket, request.key).content(content);
            self.prepare(&call.headers(&headers))
        };
        let mut told = Told::default();
        let reply = self.perform(&mut prepared, &mut told, probe).await?;
        match told.0 {
            Some(size) if size == end + content.span.len => Ok(()),
            // A new object is whole anyway.
            None if end == 0 => Ok(()),
            told => Err(not_appended(reply.status, end + content.span.len, told)),
        }
    }

    /// The size of the object in bytes; 0 if there is none.
    async fn end_of(&mut self, request: &Request<'_>, probe: &mut Probe) -> Result<u64, OpError> {
        let mut prepared = self.prepare(&S3Call::new("HEAD", request.bucket, request.key));
        let reply = self.attempt(&mut prepared, &mut Ignore, probe).await?;
        match &reply.refusal {
            None => size_of_object(&reply).map(|done| done.object_size),
            Some(_) if reply.status == 404 => Ok(0),
            Some(refusal) => Err(self.refused(reply.status, refusal)),
        }
    }
}

#[cold]
fn not_appended(status: u16, wanted: u64, told: Option<u64>) -> OpError {
    let said = match told {
        None => "the answer has no x-amz-object-size".to_owned(),
        Some(size) => format!("x-amz-object-size is {size}, not {wanted}"),
    };
    OpError::with_status(
        ErrorKind::Corrupt,
        status,
        format!(
            "{said}: the store replaced the object instead of appending to it; use --append none"
        ),
    )
}
