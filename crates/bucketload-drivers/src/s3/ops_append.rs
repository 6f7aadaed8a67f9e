//! Appends, in stores that have them: a PUT at the end of the object, which must name that end.
//!
//! The driver remembers where the appends of its sessions ended ([`Ends`]). A session asks for the end (HEAD) only of
//! objects that are not remembered, and after another writer has moved the end; both requests belong to the operation.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::rc::Rc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use bucketload_core::driver::{Completion, DONE, content_of};
use bucketload_core::error::{ErrorKind, OpError, OpResult};
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

/// Number of objects whose ends are remembered.
const REMEMBERED: usize = 1 << 14;

/// Where the last appends of all sessions ended. An object takes the place of another one now and then, so memory is
/// bounded and no operation allocates or locks. Two numbers that do not belong together, or an end that another program
/// has moved, do no harm: the store refuses such an end.
pub(crate) struct Ends(Box<[Place]>);

/// An object's number, and its end in bytes.
#[derive(Default)]
struct Place(AtomicU64, AtomicU64);

impl Ends {
    fn place(&self, object: u64) -> &Place {
        &self.0[object as usize % REMEMBERED]
    }

    /// The end of `object` in bytes, if it is known.
    fn of(&self, object: u64) -> Option<u64> {
        let Place(known, end) = self.place(object);
        (known.load(Relaxed) == object).then(|| end.load(Relaxed))
    }

    fn set(&self, object: u64, end: u64) {
        let place = self.place(object);
        place.1.store(end, Relaxed);
        place.0.store(object, Relaxed);
    }

    fn forget(&self, object: u64) {
        self.place(object).0.store(0, Relaxed);
    }
}

impl Default for Ends {
    fn default() -> Self {
        Self((0..REMEMBERED).map(|_| Place::default()).collect())
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
    pub(crate) async fn append(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let shared = Rc::clone(&self.shared);
        let Some(ends) = &shared.driver.ends else {
            return Err(absent(OpClass::Append));
        };
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
        let mut end = match ends.of(object) {
            Some(end) => end,
            None => self.end_of(request, probe).await?,
        };
        let mut outcome = self.write_at(request, content, end, probe).await;
        let moved = |e: &OpError| e.kind == ErrorKind::Conflict;
        if outcome.as_ref().is_err_and(moved) {
            end = self.end_of(request, probe).await?;
            outcome = self.write_at(request, content, end, probe).await;
        }
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
    ) -> OpResult<()> {
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
    async fn end_of(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult<u64> {
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
