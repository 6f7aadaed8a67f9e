//! Operations on one object: get, range-get, put, head, delete, copy, tagging.

use bucketload_core::driver::Completion;
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::{Op, OpClass, Request, Watch};
use bucketload_core::payload::Content;
use bucketload_core::record::Probe;

use super::canonical::Header;
use super::checksum::Span;
use super::encode;
use super::pool::Buffer;
use super::prepare::{Call, Hashes, Outgoing};
use super::session::S3Session;
use super::sink::{Collect, Ignore, Sink};
use super::xml;

/// Most bytes of a control document in an answer.
pub(crate) const MAX_DOCUMENT: usize = 1 << 20;

/// Compares a body with the content it should have.
struct Verify<'a> {
    content: Content<'a>,
    at: u64,
    /// Object offset of the first wrong byte.
    wrong: Option<u64>,
}

impl Sink for Verify<'_> {
    fn looks(&self) -> bool {
        // After the first difference there is nothing left to find out.
        self.wrong.is_none()
    }

    fn data(&mut self, bytes: &[u8]) {
        if self.wrong.is_none() {
            self.wrong = self.content.verify(self.at, bytes).err();
        }
        self.at += bytes.len() as u64;
    }
}

/// Shows a body to whoever watches the operation.
struct Shown<'a>(&'a dyn Watch);

impl Sink for Shown<'_> {
    fn looks(&self) -> bool {
        true
    }

    fn data(&mut self, bytes: &[u8]) {
        self.0.body(bytes);
    }
}

/// Makes a PUT conditional on there being no object.
const IF_ABSENT: [Header<'static>; 1] = [Header {
    name: "if-none-match",
    value: b"*",
}];

/// A success without bytes or items.
pub(crate) const DONE: Completion = Completion {
    bytes: 0,
    items: 0,
    object_size: 0,
};

impl S3Session {
    pub(crate) async fn get(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let op = &request.op;
        let range = (op.class == OpClass::RangeGet)
            .then_some(op.range)
            .flatten();
        let offset = range.map_or(0, |r| r.offset);
        let expected = request.content.filter(|_| request.verify);
        let mut verify = expected.map(|content| Verify {
            content,
            at: offset,
            wrong: None,
        });
        let mut prepared =
            self.prepare(&Call::new("GET", request.bucket, request.key).range(range));
        let mut ignore = Ignore;
        let mut shown = request.watch.map(Shown);
        let sink: &mut dyn Sink = match (&mut shown, &mut verify) {
            (Some(shown), _) => shown,
            (None, Some(verify)) => verify,
            (None, None) => &mut ignore,
        };
        let reply = self.perform(&mut prepared, sink, probe).await?;
        let corrupt = |detail: String| {
            Err(OpError::with_status(
                ErrorKind::Corrupt,
                reply.status,
                detail,
            ))
        };
        if let Some(Verify {
            wrong: Some(at), ..
        }) = verify
        {
            return corrupt(format!("the byte at offset {at} is not the byte written"));
        }
        let known = match expected {
            Some(content) => Some(content.size()),
            None => (op.size != Op::UNKNOWN_SIZE).then_some(op.size),
        };
        if let Some(range) = range {
            let whole = offset == 0 && known.is_some_and(|size| range.len >= size);
            if reply.status != 206 && !whole {
                return Err(OpError::with_status(
                    ErrorKind::Protocol,
                    reply.status,
                    "the server ignored the Range header",
                ));
            }
            if let Some(start) = reply.range_start
                && start != offset
            {
                return corrupt(format!("the range begins at {start} instead of {offset}"));
            }
        }
        let wanted = match (known, range) {
            (Some(size), Some(range)) => Some(range.len.min(size.saturating_sub(offset))),
            (Some(size), None) => Some(size),
            (None, _) => None,
        };
        let most = wanted.or(range.map(|r| r.len)).unwrap_or(u64::MAX);
        if wanted.is_some_and(|n| n != reply.received) || reply.received > most {
            let wanted = wanted.unwrap_or(most);
            return corrupt(format!("{} bytes came instead of {wanted}", reply.received));
        }
        Ok(Completion {
            bytes: reply.received,
            ..DONE
        })
    }

    /// PUT on condition that there is no object. A refusal of the condition is a success without
    /// items.
    pub(crate) async fn put_if_absent(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        match self.put(request, probe).await {
            Ok(done) => Ok(Completion { items: 1, ..done }),
            Err(error) if error.status == 412 => Ok(DONE),
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn put(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let content = content_of(request)?;
        let span = Span {
            content,
            offset: 0,
            len: content.size(),
        };
        let mut digests = match self.shared.config().payload.is_chunked() {
            true => Buffer::take(),
            false => Buffer::NONE,
        };
        let mut prepared = {
            let content = Outgoing {
                span,
                hashes: Hashes::of(self.shared.config(), span, &mut digests),
                digests: &digests,
            };
            let mut call = Call::new("PUT", request.bucket, request.key).content(content);
            if request.op.class == OpClass::PutIfAbsent {
                call = call.headers(&IF_ABSENT);
            }
            self.prepare(&call)
        };
        self.perform(&mut prepared, &mut Ignore, probe).await?;
        Ok(Completion {
            bytes: span.len,
            ..DONE
        })
    }

    pub(crate) async fn head(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let mut prepared = self.prepare(&Call::new("HEAD", request.bucket, request.key));
        let reply = self.perform(&mut prepared, &mut Ignore, probe).await?;
        let Some(size) = reply.content_length else {
            return Err(OpError::with_status(
                ErrorKind::Protocol,
                reply.status,
                "the answer has no Content-Length",
            ));
        };
        Ok(Completion {
            object_size: size,
            ..DONE
        })
    }

    pub(crate) async fn delete(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let mut prepared = self.prepare(&Call::new("DELETE", request.bucket, request.key));
        self.perform(&mut prepared, &mut Ignore, probe).await?;
        Ok(DONE)
    }

    pub(crate) async fn copy(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let mut source = Buffer::take();
        push_source(&mut source, request);
        let headers = [Header {
            name: "x-amz-copy-source",
            value: &source,
        }];
        let call = Call::new("PUT", request.bucket, request.key);
        let mut prepared = self.prepare(&call.headers(&headers));
        let mut body = Buffer::take();
        let mut sink = Collect::new(&mut body, MAX_DOCUMENT);
        let reply = self.perform(&mut prepared, &mut sink, probe).await?;
        self.check_late_error(reply.status, &body)?;
        Ok(DONE)
    }

    pub(crate) async fn put_tagging(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let mut document = Buffer::take();
        document.extend_from_slice(
            b"<Tagging xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><TagSet><Tag>\
              <Key>bucketload</Key><Value>",
        );
        encode::push_decimal(&mut document, u64::from(request.op.version));
        document.extend_from_slice(b"</Value></Tag></TagSet></Tagging>");
        let call = Call::new("PUT", request.bucket, request.key);
        let mut prepared = self.prepare(&call.query(b"tagging=").document(&document));
        self.perform(&mut prepared, &mut Ignore, probe).await?;
        Ok(Completion { items: 1, ..DONE })
    }

    pub(crate) async fn get_tagging(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let call = Call::new("GET", request.bucket, request.key);
        let mut prepared = self.prepare(&call.query(b"tagging="));
        let mut body = Buffer::take();
        let mut sink = Collect::new(&mut body, MAX_DOCUMENT);
        self.perform(&mut prepared, &mut sink, probe).await?;
        let mut items = 0;
        xml::leaves(&body, |path, _| {
            items += u64::from(path.ends_with(&["Tag", "Key"]));
        })
        .map_err(|e| unreadable("tags", e))?;
        Ok(Completion { items, ..DONE })
    }

    pub(crate) async fn delete_tagging(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let call = Call::new("DELETE", request.bucket, request.key);
        let mut prepared = self.prepare(&call.query(b"tagging="));
        self.perform(&mut prepared, &mut Ignore, probe).await?;
        Ok(DONE)
    }
}

/// The content to write.
pub(crate) fn content_of<'a>(request: &Request<'a>) -> Result<Content<'a>, OpError> {
    request.content.ok_or_else(|| {
        OpError::new(
            ErrorKind::Unsupported,
            format!("{} was asked for without content", request.op.class),
        )
    })
}

/// Appends the value of `x-amz-copy-source`: `/bucket/key`, encoded.
pub(crate) fn push_source(out: &mut Vec<u8>, request: &Request<'_>) {
    out.push(b'/');
    encode::push_query(out, request.bucket);
    out.push(b'/');
    encode::push_key(out, request.source);
}

/// A successful answer whose document cannot be read.
pub(crate) fn unreadable(what: &str, error: xml::Malformed) -> OpError {
    OpError::new(
        ErrorKind::Protocol,
        format!("the {what} cannot be read: {error}"),
    )
}
