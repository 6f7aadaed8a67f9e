//! One worker's connection: opened when needed, kept while it is sound, closed when an operation
//! fails half-way or is abandoned.
//!
//! **Kept-alive connections that the server closes while they are idle.** Before each request the
//! session asks whether the runtime has heard from the connection, which between two answers can only
//! mean its end (or bytes nobody asked for). That costs no system call on a sound
//! connection. A connection found closed is replaced, and the time that takes is recorded as a
//! connection, before the timed start. If the close crosses the request on the way, the operation
//! fails with `Reset`: the server may have acted on the request, and repeating it would hide a
//! second request in one operation's time. A retry policy of the workload may repeat it visibly.

use std::net::IpAddr;
use std::ops::Range;
use std::rc::Rc;

use bucketload_core::driver::{Completion, Place, Session};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::{OpClass, Request};
use bucketload_core::record::Probe;
use bucketload_wire::http::ChunkedDecoder;
use bucketload_wire::{Calls, Conn};

use super::connect;
use super::driver::Shared;
use super::error_map::{self, Context, ErrorDocument};
use super::exchange::{self, Refusal, Reply};
use super::parked::park;
use super::prepare::{Call, Hashes, Prepared};
use super::sink::Sink;

/// A session of the native S3 driver.
#[derive(Debug)]
pub struct S3Session {
    pub(crate) shared: Rc<Shared>,
    source: Option<IpAddr>,
    conn: Option<Conn>,
    place: Place,
    decoder: ChunkedDecoder,
    /// Scratch of multipart uploads; without memory until the first one that needs it.
    pub(crate) hashes: Vec<(Hashes, Range<usize>)>,
}

impl S3Session {
    pub(crate) fn new(shared: Rc<Shared>, source: Option<IpAddr>) -> Self {
        Self {
            place: Place {
                endpoint: u16::try_from(shared.endpoint_index()).unwrap_or(u16::MAX),
                ..Place::default()
            },
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
            if conn.is_silent() {
                return Ok(());
            }
            self.conn = None;
        }
        // On the heap: a handshake's state would otherwise be part of every session's task.
        let connecting = Box::pin(connect::connect(&self.shared, self.source, probe));
        let conn = connecting.await?;
        self.place.connection = self.shared.next_connection();
        self.place.local_port = conn.local_addr().map_or(0, |addr| addr.port());
        self.conn = Some(conn);
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
        prepared: &mut Prepared<'_>,
        sink: &mut dyn Sink,
        probe: &mut Probe,
    ) -> Result<Reply, OpError> {
        self.connect(probe).await?;
        let mut lease = Lease::new(&mut self.conn);
        let Some(conn) = lease.conn.as_mut() else {
            return Err(gone());
        };
        let reply = exchange::exchange(conn, prepared, &mut self.decoder, sink, probe).await?;
        lease.sound = reply.reusable;
        drop(lease);
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

/// The connection belongs to a request until its answer is complete: an abandoned operation closes
/// it, and the next one opens another.
struct Lease<'a> {
    conn: &'a mut Option<Conn>,
    /// Whether the connection can be used again.
    sound: bool,
}

impl<'a> Lease<'a> {
    const fn new(conn: &'a mut Option<Conn>) -> Self {
        Self { conn, sound: false }
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        if !self.sound {
            *self.conn = None;
        }
    }
}

#[cold]
fn gone() -> OpError {
    OpError::new(ErrorKind::Connect, "the connection is gone")
}

#[cold]
fn absent(class: OpClass) -> OpError {
    OpError::new(ErrorKind::Unsupported, format!("S3 has no {class}"))
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
            // The others are several requests, or one with a document to be built or read.
            OpClass::DeleteMany => park(self.delete_many(request, probe)).await,
            OpClass::Copy => park(self.copy(request, probe)).await,
            OpClass::List => park(self.list(request, true, probe)).await,
            OpClass::ListV1 => park(self.list(request, false, probe)).await,
            OpClass::MultipartPut => park(self.multipart_put(request, probe)).await,
            OpClass::MultipartCopy => park(self.multipart_copy(request, probe)).await,
            OpClass::MultipartAbort => park(self.multipart_abort(request, probe)).await,
            OpClass::ListUploads => park(self.list_uploads(request, probe)).await,
            OpClass::PutTagging => park(self.put_tagging(request, probe)).await,
            OpClass::GetTagging => park(self.get_tagging(request, probe)).await,
            OpClass::DeleteTagging => park(self.delete_tagging(request, probe)).await,
            OpClass::MakeBucket => park(self.make_bucket(request.bucket, probe)).await,
            OpClass::HeadBucket => park(self.head_one_bucket(request.bucket, probe)).await,
            OpClass::DeleteBucket => park(self.remove_bucket(request.bucket, probe)).await,
            OpClass::ListBuckets => park(self.list_buckets(probe)).await,
            class @ (OpClass::Append | OpClass::Touch | OpClass::Rename) => Err(absent(class)),
        }
    }

    fn place(&self) -> Place {
        self.place
    }
}
