//! One worker's connection: opened when needed, kept while it is sound, closed when an operation
//! fails half-way or is abandoned.
//!
//! **Kept-alive connections that the server closes while they are idle.** Before each request the
//! session asks the runtime whether the connection has become readable, which between two answers
//! can only mean its end (or bytes nobody asked for). That costs no system call on a sound
//! connection. A connection found closed is replaced, and the time that takes is recorded as a
//! connection, before the timed start. If the close crosses the request on the way, the operation
//! fails with `Reset`: the server may have acted on the request, and repeating it would hide a
//! second request in one operation's time. A retry policy of the workload may repeat it visibly.

use std::future::poll_fn;
use std::net::IpAddr;
use std::ops::Range;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use bucketload_core::driver::{Completion, Session};
use bucketload_core::error::OpError;
use bucketload_core::op::{OpClass, Request};
use bucketload_core::record::Probe;
use bucketload_wire::http::ChunkedDecoder;
use bucketload_wire::{Calls, Conn};

use super::connect;
use super::driver::Shared;
use super::error_map::{self, Context, ErrorDocument};
use super::exchange::{self, Refusal, Reply};
use super::prepare::{Call, Hashes, Prepared};
use super::sink::Sink;

/// A session of the native S3 driver.
#[derive(Debug)]
pub struct S3Session {
    pub(crate) shared: Rc<Shared>,
    source: Option<IpAddr>,
    conn: Option<Conn>,
    decoder: ChunkedDecoder,
    /// Scratch of multipart uploads; without memory until the first one that needs it.
    pub(crate) hashes: Vec<(Hashes, Range<usize>)>,
}

impl S3Session {
    pub(crate) fn new(shared: Rc<Shared>, source: Option<IpAddr>) -> Self {
        Self {
            shared,
            source,
            conn: None,
            decoder: ChunkedDecoder::new(),
            hashes: Vec::new(),
        }
    }

    /// Index of the endpoint in [`super::S3Config::endpoints`].
    #[must_use]
    pub fn endpoint_index(&self) -> usize {
        self.shared.endpoint_index()
    }

    /// System calls made by the current connection; `None` while there is none.
    #[must_use]
    pub fn calls(&self) -> Option<Calls> {
        self.conn.as_ref().map(Conn::calls)
    }

    /// Makes sure that there is a connection that the server has not closed.
    pub(crate) async fn connect(&mut self, probe: &mut Probe) -> Result<(), OpError> {
        if let Some(conn) = &mut self.conn {
            let idle = poll_fn(|cx| {
                let readable = pin!(conn.readable());
                Poll::Ready(readable.poll(cx).is_pending())
            })
            .await;
            if idle {
                return Ok(());
            }
            self.conn = None;
        }
        // On the heap: a handshake's state would otherwise be part of every session's task.
        let connecting = Box::pin(connect::connect(&self.shared, self.source, probe));
        self.conn = Some(connecting.await?);
        Ok(())
    }

    /// Hashes nothing, sends nothing: renders and signs.
    pub(crate) fn prepare<'a>(&self, call: &Call<'a>) -> Prepared<'a> {
        let writer = &mut self.shared.writer.borrow_mut();
        Prepared::new(self.shared.config(), writer, call)
    }

    /// Performs one request. The answer is a success (status below 300).
    pub(crate) async fn perform(
        &mut self,
        prepared: Prepared<'_>,
        sink: &mut dyn Sink,
        probe: &mut Probe,
    ) -> Result<Reply, OpError> {
        self.connect(probe).await?;
        // The connection belongs to this future until the answer is complete: an abandoned
        // operation closes it, and the next one opens another.
        let Some(mut conn) = self.conn.take() else {
            return Err(OpError::new(
                bucketload_core::error::ErrorKind::Connect,
                "the connection is gone",
            ));
        };
        let decoder = &mut self.decoder;
        let reply = exchange::exchange(&mut conn, &prepared, decoder, sink, probe).await?;
        if reply.reusable {
            self.conn = Some(conn);
        }
        match &reply.refusal {
            None => Ok(reply),
            Some(refusal) => Err(self.refused(reply.status, refusal)),
        }
    }

    fn refused(&self, status: u16, refusal: &Refusal) -> OpError {
        let document = ErrorDocument::parse(&refusal.body);
        self.refused_with(status, &document, refusal)
    }

    /// The error that `document` means when there is no answer of its own to it.
    pub(crate) fn refused_as(&self, status: u16, document: &ErrorDocument) -> OpError {
        self.refused_with(status, document, &Refusal::default())
    }

    fn refused_with(&self, status: u16, document: &ErrorDocument, refusal: &Refusal) -> OpError {
        let config = self.shared.config();
        let context = Context {
            region: &config.region,
            credentials: config.credentials.as_ref(),
            bucket_region: &refusal.bucket_region,
            location: &refusal.location,
        };
        error_map::to_error(status, document, &context)
    }

    /// Some operations report a failure in the body of an answer with status 200.
    pub(crate) fn check_late_error(&self, status: u16, body: &[u8]) -> Result<(), OpError> {
        match ErrorDocument::find(body) {
            None => Ok(()),
            Some(document) => {
                // The code says what the status would have been, had it not been sent already.
                let mut error = self.refused_as(500, &document);
                error.status = status;
                Err(error)
            }
        }
    }
}

impl Session for S3Session {
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
            OpClass::DeleteMany => self.delete_many(request, probe).await,
            OpClass::Copy => self.copy(request, probe).await,
            OpClass::List => self.list(request, true, probe).await,
            OpClass::ListV1 => self.list(request, false, probe).await,
            OpClass::MultipartPut => self.multipart_put(request, probe).await,
            OpClass::MultipartCopy => self.multipart_copy(request, probe).await,
            OpClass::MultipartAbort => self.multipart_abort(request, probe).await,
            OpClass::ListUploads => self.list_uploads(request, probe).await,
            OpClass::PutTagging => self.put_tagging(request, probe).await,
            OpClass::GetTagging => self.get_tagging(request, probe).await,
            OpClass::DeleteTagging => self.delete_tagging(request, probe).await,
            OpClass::MakeBucket => self.make_bucket(request.bucket, probe).await,
            OpClass::HeadBucket => self.head_one_bucket(request.bucket, probe).await,
            OpClass::DeleteBucket => self.remove_bucket(request.bucket, probe).await,
            OpClass::ListBuckets => self.list_buckets(probe).await,
        }
    }
}
