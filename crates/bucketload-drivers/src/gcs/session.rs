//! One worker's connection, and how its requests are rendered.
//!
//! A request begins with [`GcsSession::begin`] (method and base path), the operation appends path and
//! query, [`GcsSession::fields`] the fields of every request, the operation its own, and
//! [`end`] the length of the body.

use std::net::IpAddr;
use std::sync::Arc;

use bucketload_core::driver::{Completion, Place, Session};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::{OpClass, Request};
use bucketload_core::record::Probe;
use bucketload_s3::encode;
use bucketload_wire::Calls;

use super::auth::keeper::Bearer;
use super::driver::Inner;
use super::error_map;
use crate::http::exchange::Reply;
use crate::http::link::Link;
use crate::http::outgoing::{Body, Plain};
use crate::http::parked::park;
use crate::http::pool::Buffer;
use crate::http::sink::{Collect, Sink};

pub(crate) use bucketload_core::driver::DONE;

/// A session of the native Google Cloud Storage driver.
#[derive(Debug)]
pub struct GcsSession {
    pub(crate) shared: Arc<Inner>,
    endpoint: usize,
    link: Link,
    /// The token's number and header line; none for anonymous requests.
    bearer: Option<(u64, Arc<Bearer>)>,
}

impl GcsSession {
    pub(crate) fn new(
        shared: Arc<Inner>,
        endpoint: usize,
        source: Option<IpAddr>,
    ) -> Result<Self, OpError> {
        let bearer = shared.keeper.as_ref().map(|k| k.bearer()).transpose()?;
        Ok(Self {
            shared,
            endpoint,
            link: Link::new(endpoint, source),
            bearer,
        })
    }

    /// System calls made by the current connection; `None` while there is none.
    #[must_use]
    pub fn calls(&self) -> Option<Calls> {
        self.link.calls()
    }

    pub(crate) async fn connect(&mut self, probe: &mut Probe) -> Result<(), OpError> {
        let hub = &self.shared.hub;
        let endpoint = &hub.endpoints()[self.endpoint];
        self.link.connect(hub, endpoint, probe).await
    }

    /// Where the session's requests go: the value of their `Host` field.
    pub(crate) fn authority(&self) -> &str {
        &self.shared.hub.endpoints()[self.endpoint].authority
    }

    /// The beginning of a request.
    pub(crate) fn begin(&self, method: &str) -> Buffer {
        let mut head = Buffer::take();
        head.extend_from_slice(method.as_bytes());
        head.push(b' ');
        let base = &self.shared.hub.endpoints()[self.endpoint].base_path;
        head.extend_from_slice(base.as_bytes());
        head
    }

    /// Appends the fields of every request.
    pub(crate) fn fields(&mut self, head: &mut Vec<u8>) {
        head.extend_from_slice(&self.shared.fields[self.endpoint]);
        if let (Some((turn, bearer)), Some(keeper)) = (&mut self.bearer, &self.shared.keeper) {
            if keeper.turn() != *turn
                && let Ok((new_turn, new_bearer)) = keeper.bearer()
            {
                (*turn, *bearer) = (new_turn, new_bearer);
            }
            head.extend_from_slice(&bearer.line);
        }
    }

    /// Performs one request. A refusal is an error.
    pub(crate) async fn perform(
        &mut self,
        head: Buffer,
        body: Body<'_>,
        sink: &mut dyn Sink,
        probe: &mut Probe,
    ) -> Result<Reply, OpError> {
        let mut reply = self.exchange(head, body, sink, probe).await?;
        match reply.refusal.take() {
            None => Ok(reply),
            Some(refusal) => Err(self.refused(reply.status, &refusal.body)),
        }
    }

    /// Performs one request. A refusal is an answer.
    pub(crate) async fn exchange(
        &mut self,
        head: Buffer,
        body: Body<'_>,
        sink: &mut dyn Sink,
        probe: &mut Probe,
    ) -> Result<Reply, OpError> {
        let hub = &self.shared.hub;
        let endpoint = &hub.endpoints()[self.endpoint];
        let mut outgoing = Plain::new(head, body, false);
        self.link
            .perform(hub, endpoint, &mut outgoing, sink, probe)
            .await
    }

    /// The error that a refusal means.
    #[cold]
    pub(crate) fn refused(&self, status: u16, body: &[u8]) -> OpError {
        let mut error = error_map::to_error(status, body);
        if let Some((_, bearer)) = &self.bearer {
            error.detail = bearer.scrub(&error.detail).into();
        }
        error
    }

    /// Performs a request with a document in the answer, which goes to `into`.
    pub(crate) async fn document(
        &mut self,
        head: Buffer,
        body: &[u8],
        into: &mut Vec<u8>,
        limit: usize,
        probe: &mut Probe,
    ) -> Result<Reply, OpError> {
        let mut sink = Collect::new(into, limit);
        let reply = self
            .perform(head, Body::Bytes(body), &mut sink, probe)
            .await?;
        match sink.overflow {
            false => Ok(reply),
            true => Err(OpError::with_status(
                ErrorKind::Protocol,
                reply.status,
                "the answer is longer than it can be",
            )),
        }
    }
}

/// Appends the path of an object: `/storage/v1/b/BUCKET/o/KEY`, where slashes in the key are escaped
/// (Cloud Storage, "Encoding URI path parts").
pub(crate) fn push_object(head: &mut Vec<u8>, bucket: &str, key: &str) {
    head.extend_from_slice(b"/storage/v1/b/");
    encode::push_query(head, bucket);
    head.extend_from_slice(b"/o/");
    encode::push_query(head, key);
}

/// Appends `name=value`, encoded; `head` ends with `?` or with another parameter.
pub(crate) fn push_parameter(head: &mut Vec<u8>, name: &str, value: &str) {
    if head.last() != Some(&b'?') {
        head.push(b'&');
    }
    head.extend_from_slice(name.as_bytes());
    head.push(b'=');
    encode::push_query(head, value);
}

/// Ends a head without a body.
pub(crate) fn end(head: &mut Vec<u8>) {
    head.extend_from_slice(b"\r\n");
}

/// Ends a head whose body has `len` bytes.
pub(crate) fn end_with_length(head: &mut Vec<u8>, len: u64) {
    head.extend_from_slice(b"Content-Length: ");
    encode::push_decimal(head, len);
    head.extend_from_slice(b"\r\n\r\n");
}

/// A session's refusal of what Cloud Storage does not offer.
#[cold]
fn unsupported(class: OpClass) -> OpError {
    let why = match class {
        OpClass::ListV1 => "Cloud Storage has one way of listing; use `list`",
        OpClass::ListUploads => "Cloud Storage does not list unfinished uploads",
        OpClass::MultipartCopy => "Cloud Storage composes whole objects, not ranges of them",
        _ => "the JSON API has no such operation",
    };
    OpError::new(ErrorKind::Unsupported, format!("{class}: {why}"))
}

impl Session for GcsSession {
    async fn execute(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        match request.op.class {
            OpClass::Get | OpClass::RangeGet => self.get(request, probe).await,
            OpClass::Put => self.put(request, probe).await,
            OpClass::PutIfAbsent => self.put_if_absent(request, probe).await,
            OpClass::Head => self.head(request, probe).await,
            OpClass::Delete => self.delete(request, probe).await,
            // The others are several requests, or one with a document to be built or read.
            OpClass::DeleteMany => park(self.delete_many(request, probe)).await,
            OpClass::Copy => park(self.copy(request, probe)).await,
            OpClass::List => park(self.list(request, probe)).await,
            OpClass::MultipartPut => park(self.put_in_parts(request, probe)).await,
            OpClass::MultipartAbort => park(self.begin_and_cancel(request, probe)).await,
            OpClass::PutTagging => park(self.put_tagging(request, probe)).await,
            OpClass::GetTagging => park(self.get_tagging(request, probe)).await,
            OpClass::DeleteTagging => park(self.delete_tagging(request, probe)).await,
            OpClass::MakeBucket => park(self.make_bucket(request.bucket, probe)).await,
            OpClass::HeadBucket => park(self.head_one_bucket(request.bucket, probe)).await,
            OpClass::DeleteBucket => park(self.remove_bucket(request.bucket, probe)).await,
            OpClass::ListBuckets => park(self.list_buckets(probe)).await,
            class => Err(unsupported(class)),
        }
    }

    fn place(&self) -> Place {
        self.link.place()
    }
}
