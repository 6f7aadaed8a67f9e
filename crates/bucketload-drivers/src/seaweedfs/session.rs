//! One worker's connections: one to a filer or master, and with a master one to each volume server that
//! it met.

use std::net::IpAddr;
use std::sync::Arc;

use bucketload_core::driver::{Completion, Place, Session};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::{OpClass, Request};
use bucketload_core::record::Probe;
use bucketload_s3::encode;
use bucketload_wire::Calls;

use super::config::Mode;
use super::driver::Inner;
use super::error_map;
use super::servers::Seats;
use crate::http::exchange::Reply;
use crate::http::link::Link;
use crate::http::outgoing::{Body, Plain};
use crate::http::parked::park;
use crate::http::pool::Buffer;
use crate::http::reading::Reading;
use crate::http::sink::{Collect, Sink};
use crate::json;

pub(crate) use bucketload_core::driver::DONE;
pub(crate) use bucketload_core::driver::content_of;

/// A session of the native SeaweedFS driver.
#[derive(Debug)]
pub struct SeaweedSession {
    pub(crate) shared: Arc<Inner>,
    endpoint: usize,
    pub(crate) source: Option<IpAddr>,
    link: Link,
    pub(crate) seats: Seats,
    /// With a master: the folder of the last object written, and its index.
    pub(crate) folder: (String, u64),
}

impl SeaweedSession {
    pub(crate) fn new(shared: Arc<Inner>, endpoint: usize, source: Option<IpAddr>) -> Self {
        Self {
            shared,
            endpoint,
            source,
            link: Link::new(endpoint, source),
            seats: Seats::default(),
            folder: (String::new(), u64::MAX),
        }
    }

    /// System calls made by the current connection to the filer or master; `None` while there is none.
    #[must_use]
    pub fn calls(&self) -> Option<Calls> {
        self.link.calls()
    }

    pub(crate) async fn connect(&mut self, probe: &mut Probe) -> Result<(), OpError> {
        let hub = &self.shared.hub;
        self.link
            .connect(hub, &hub.endpoints()[self.endpoint], probe)
            .await
    }

    /// Whether the filer or master is spoken to with TLS.
    pub(crate) fn tls(&self) -> bool {
        self.shared.hub.endpoints()[self.endpoint].tls
    }

    /// The beginning of a request to the filer or master.
    pub(crate) fn begin(&self, method: &str) -> Buffer {
        let mut head = Buffer::take();
        head.extend_from_slice(method.as_bytes());
        head.push(b' ');
        let base = &self.shared.hub.endpoints()[self.endpoint].base_path;
        head.extend_from_slice(base.as_bytes());
        head
    }

    /// Appends the fields of every request to the filer or master.
    pub(crate) fn fields(&self, head: &mut Vec<u8>) {
        head.extend_from_slice(&self.shared.fields[self.endpoint]);
    }

    /// Performs one request to the filer or master. A refusal is an error.
    pub(crate) async fn perform(
        &mut self,
        head: Buffer,
        body: Body<'_>,
        sink: &mut dyn Sink,
        probe: &mut Probe,
    ) -> Result<Reply, OpError> {
        let hub = &self.shared.hub;
        let endpoint = &hub.endpoints()[self.endpoint];
        let to_head = head.starts_with(b"HEAD");
        let mut outgoing = Plain::new(head, body, to_head);
        let performing = self.link.perform(hub, endpoint, &mut outgoing, sink, probe);
        accepted(performing.await?)
    }

    /// Performs one request to the volume server number `server`. A refusal is an error.
    pub(crate) async fn perform_at(
        &mut self,
        server: usize,
        head: Buffer,
        body: Body<'_>,
        sink: &mut dyn Sink,
        probe: &mut Probe,
    ) -> Result<Reply, OpError> {
        let (hub, directory) = (&self.shared.hub, &self.shared.directory);
        let (seat, link) = self.seats.seat(directory, server, self.source);
        let to_head = head.starts_with(b"HEAD");
        let mut outgoing = Plain::new(head, body, to_head);
        let performing = link.perform(hub, &seat.endpoint, &mut outgoing, sink, probe);
        accepted(performing.await?)
    }

    /// Performs a request with a document in the answer, which goes to `into`.
    pub(crate) async fn document(
        &mut self,
        head: Buffer,
        into: &mut Vec<u8>,
        limit: usize,
        probe: &mut Probe,
    ) -> Result<Reply, OpError> {
        let mut sink = Collect::new(into, limit);
        let reply = self
            .perform(head, Body::Bytes(b""), &mut sink, probe)
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

/// An answer that is no refusal.
fn accepted(mut reply: Reply) -> Result<Reply, OpError> {
    match reply.refusal.take() {
        None => Ok(reply),
        Some(refusal) => Err(error_map::to_error(reply.status, &refusal.body)),
    }
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

/// Appends the field that asks for a part of an object.
pub(crate) fn push_range(head: &mut Vec<u8>, reading: &Reading<'_>) {
    if let Some(range) = reading.range() {
        head.extend_from_slice(b"Range: bytes=");
        encode::push_decimal(head, range.offset);
        head.push(b'-');
        encode::push_decimal(head, range.offset + range.len - 1);
        head.extend_from_slice(b"\r\n");
    }
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

/// The size that an answer to HEAD tells.
pub(crate) fn size_of_reply(reply: &Reply) -> Result<Completion, OpError> {
    let Some(size) = reply.content_length() else {
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

/// A successful answer whose document cannot be read.
#[cold]
pub(crate) fn unreadable(what: &str, error: json::Malformed) -> OpError {
    OpError::new(
        ErrorKind::Protocol,
        format!("the {what} cannot be read: {error}"),
    )
}

/// A refusal of what SeaweedFS's own interfaces do not offer.
#[cold]
fn unsupported(class: OpClass, mode: Mode) -> OpError {
    let why = match (mode, class) {
        (Mode::Master, _) => {
            "objects that are known by their file ids can be put, got and deleted only"
        }
        (Mode::Filer, OpClass::PutIfAbsent) => "the filer has no conditional writes",
        (Mode::Filer, OpClass::DeleteMany) => "the filer deletes one path per request",
        (Mode::Filer, OpClass::Copy) => {
            "not every filer copies, and older ones make an empty file instead"
        }
        (Mode::Filer, _) => "the filer has no such operation; its S3 gateway may have it",
    };
    OpError::new(ErrorKind::Unsupported, format!("{class}: {why}"))
}

impl Session for SeaweedSession {
    async fn execute(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let mode = self.shared.config.mode;
        match (mode, request.op.class) {
            (Mode::Filer, OpClass::Get | OpClass::RangeGet) => self.get(request, probe).await,
            (Mode::Filer, OpClass::Put) => self.put(request, "", probe).await,
            (Mode::Filer, OpClass::Head) => self.head(request, probe).await,
            (Mode::Filer, OpClass::Delete) => self.delete(request, probe).await,
            (Mode::Master, OpClass::Get | OpClass::RangeGet) => self.get_id(request, probe).await,
            (Mode::Master, OpClass::Put) => self.put_id(request, probe).await,
            (Mode::Master, OpClass::Head) => self.head_id(request, probe).await,
            (Mode::Master, OpClass::Delete) => self.delete_id(request, probe).await,
            (Mode::Filer, OpClass::Append) => park(self.put(request, "?op=append", probe)).await,
            (Mode::Filer, OpClass::List) => park(self.list(request, probe)).await,
            (Mode::Filer, OpClass::Rename) => park(self.rename(request, probe)).await,
            (Mode::Filer, OpClass::PutTagging) => park(self.put_tagging(request, probe)).await,
            (Mode::Filer, OpClass::GetTagging) => park(self.get_tagging(request, probe)).await,
            (Mode::Filer, OpClass::DeleteTagging) => {
                park(self.delete_tagging(request, probe)).await
            }
            (Mode::Filer, OpClass::MakeBucket) => {
                park(self.make_folder(request.bucket, probe)).await
            }
            (Mode::Filer, OpClass::HeadBucket) => park(self.look_at(request.bucket, probe)).await,
            (Mode::Filer, OpClass::DeleteBucket) => {
                park(self.remove_folder(request.bucket, probe)).await
            }
            (Mode::Filer, OpClass::ListBuckets) => park(self.list_buckets(probe)).await,
            (mode, class) => Err(unsupported(class, mode)),
        }
    }

    fn place(&self) -> Place {
        self.link.place()
    }
}
