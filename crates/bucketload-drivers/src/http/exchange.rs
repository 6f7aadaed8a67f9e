//! One request and its answer on a connection.
//!
//! An [`Outgoing`] request goes out, a [`Sink`] takes the answer. Everything that can be done in
//! advance (connecting, hashing, rendering, signing) lies before the probe's `started`; from there
//! on the probe is marked as bytes move.

use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::record::Probe;
use bucketload_wire::http::{self, Body as Framing, ChunkedDecoder, Event, HttpError};
use bucketload_wire::{Conn, Error as WireError, SendEnd, Step};

use super::hub::IdFields;
use super::outgoing::Outgoing;
use super::parked::park;
use super::sink::{Ignore, Sink};

/// Bytes of an error document that are read; what is longer costs the connection.
const MAX_ERROR: usize = 64 * 1024;

/// What an answer said, besides what went to the sink.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// Value of `Content-Length`.
    pub(crate) content_length: Option<u64>,
    /// Body bytes received.
    pub(crate) received: u64,
    /// First byte of `Content-Range`.
    pub(crate) range_start: Option<u64>,
    /// Whether the connection can be used again.
    pub(crate) reusable: bool,
    /// Filled for refusals only: the body, and the fields that tell where to go instead.
    pub(crate) refusal: Option<Box<Refusal>>,
}

/// What came with a refusal.
#[derive(Debug, Default)]
pub(crate) struct Refusal {
    /// The beginning of the body.
    pub(crate) body: Vec<u8>,
    head: Vec<u8>,
}

impl Refusal {
    #[cold]
    fn with_head(head: &[u8]) -> Box<Self> {
        Box::new(Self {
            body: Vec::new(),
            head: head.to_vec(),
        })
    }

    /// The value of the header field `name`, in any case; empty when there is none.
    pub(crate) fn field(&self, name: &str) -> String {
        let mut found = String::new();
        http::response_fields(&self.head, |field, value| {
            if found.is_empty() && field.eq_ignore_ascii_case(name) {
                found = String::from_utf8_lossy(value).into_owned();
            }
        });
        found
    }
}

/// Sends a prepared request, gives its head's memory back and receives the answer.
///
/// The connection may be kept when the reply says `reusable`; after an error it must not be.
#[expect(
    clippy::manual_async_fn,
    reason = "an async fn has room for its arguments twice"
)]
pub(crate) fn exchange<O: Outgoing>(
    conn: &mut Conn,
    outgoing: &mut O,
    ids: &IdFields,
    decoder: &mut Option<Box<ChunkedDecoder>>,
    sink: &mut dyn Sink,
    probe: &mut Probe,
) -> impl Future<Output = Result<Reply, OpError>> {
    async move {
        let first = conn.exchanges() == 0;
        let to_head = outgoing.to_head();
        probe.started();
        let calls = conn.calls().send;
        let sent = outgoing.send(conn).await;
        // What left in one call has left when that call was made, as far as the client can tell.
        if conn.calls().send > calls + 1 {
            probe.sent();
        }
        outgoing.release();
        if matches!(sent, Ok(SendEnd::Complete)) {
            let answer = receive(conn, to_head, ids, decoder, sink, probe).await;
            return answer.map_err(|e| to_error(e, first));
        }
        // When sending failed the server may have said why before it closed.
        let refused = async {
            let answer = receive(conn, to_head, ids, decoder, &mut Ignore, probe).await;
            unsent(sent, answer, first)
        };
        park(refused).await
    }
}

/// What the answer to a request that did not leave completely means.
#[cold]
fn unsent(
    sent: Result<SendEnd, WireError>,
    answer: Result<Reply, WireError>,
    first: bool,
) -> Result<Reply, OpError> {
    match (sent, answer) {
        (_, Ok(mut reply)) if reply.refusal.is_some() => {
            reply.reusable = false;
            Ok(reply)
        }
        (Ok(SendEnd::Answered { sent }), Ok(reply)) => {
            let detail = format!(
                "the server answered status {} after {sent} bytes of the body",
                reply.status
            );
            Err(OpError::with_status(
                ErrorKind::Protocol,
                reply.status,
                detail,
            ))
        }
        (Err(error), _) | (Ok(_), Err(error)) => Err(to_error(error, first)),
        (Ok(SendEnd::Complete), answer) => answer.map_err(|e| to_error(e, first)),
    }
}

/// Receives one answer. Refusals (status 300 and above) do not reach the sink.
#[expect(
    clippy::manual_async_fn,
    reason = "an async fn has room for its arguments twice"
)]
fn receive(
    conn: &mut Conn,
    to_head: bool,
    ids: &IdFields,
    decoder: &mut Option<Box<ChunkedDecoder>>,
    sink: &mut dyn Sink,
    probe: &mut Probe,
) -> impl Future<Output = Result<Reply, WireError>> {
    async move {
        let mut reply = Reply::default();
        let framing = conn
            .recv_with(|bytes| head_and_small_body(bytes, to_head, ids, &mut reply, sink, probe))
            .await?;
        let whole = match framing {
            Framing::Empty => true,
            Framing::Length(n) => reply.received == n,
            Framing::Chunked | Framing::UntilClose => false,
        };
        if !whole {
            park(body_of(conn, framing, decoder, &mut reply, sink, probe)).await?;
        }
        let overlong = reply
            .refusal
            .as_ref()
            .is_some_and(|r| r.body.len() >= MAX_ERROR);
        reply.reusable &= !overlong && !conn.is_broken() && conn.unconsumed() == 0;
        Ok(reply)
    }
}

/// Receives what of a body has not come with the head.
async fn body_of(
    conn: &mut Conn,
    framing: Framing,
    decoder: &mut Option<Box<ChunkedDecoder>>,
    reply: &mut Reply,
    sink: &mut dyn Sink,
    probe: &mut Probe,
) -> Result<(), WireError> {
    match framing {
        Framing::Empty => Ok(()),
        Framing::Length(n) => rest_of(conn, n, reply, sink, probe).await,
        Framing::Chunked => {
            let decoder = decoder.get_or_insert_with(|| Box::new(ChunkedDecoder::new()));
            chunks_of(conn, decoder, reply, sink, probe).await
        }
        Framing::UntilClose => all_of(conn, reply, sink, probe).await,
    }
}

/// Takes the head, and the body as far as it came with it.
fn head_and_small_body(
    bytes: &[u8],
    to_head: bool,
    ids: &IdFields,
    reply: &mut Reply,
    sink: &mut dyn Sink,
    probe: &mut Probe,
) -> Result<Step<Framing>, WireError> {
    let mut at = 0;
    loop {
        let Some(head) = http::parse_response(&bytes[at..], to_head)? else {
            probe.first_byte();
            return Ok(Step::More(at));
        };
        let fields = &bytes[at..at + head.len];
        at += head.len;
        if head.is_interim() {
            if at == bytes.len() {
                return Ok(Step::More(at));
            }
            continue;
        }
        reply.status = head.status;
        reply.reusable = head.keep_alive;
        reply.content_length = head.content_length;
        reply.range_start = head.range_start;
        if head.status >= 300 {
            reply.refusal = Some(Refusal::with_head(fields));
        } else if sink.wants_fields() {
            http::response_fields(fields, |name, value| sink.field(name, value));
        }
        let take = match head.body {
            Framing::Length(n) => (bytes.len() - at).min(usize::try_from(n).unwrap_or(usize::MAX)),
            _ => 0,
        };
        // The instant is taken before the bytes are looked at: checking them is not service time.
        match head.body {
            Framing::Length(n) if take as u64 == n => probe.first_byte_and_done(),
            Framing::Empty => probe.first_byte_and_done(),
            _ => probe.first_byte(),
        }
        probe.answered(head.status);
        if probe.wants_ids() {
            take_ids(&bytes[at - head.len..at], ids, probe);
        }
        deliver(reply, sink, &bytes[at..at + take]);
        return Ok(Step::Done(at + take, head.body));
    }
}

/// Keeps the store's identifiers of the request. Only for answers that are worth it: the head is
/// read once more.
#[cold]
fn take_ids(head: &[u8], fields: &IdFields, probe: &mut Probe) {
    let ids = probe.ids_mut();
    http::response_fields(head, |name, value| {
        if name.eq_ignore_ascii_case(fields.request) {
            ids.request_id.set(value);
        } else if name.eq_ignore_ascii_case(fields.extended) {
            ids.extended_id.set(value);
        }
    });
}

#[inline]
fn deliver(reply: &mut Reply, sink: &mut dyn Sink, bytes: &[u8]) {
    reply.received += bytes.len() as u64;
    match &mut reply.refusal {
        Some(refusal) => {
            let room = MAX_ERROR - refusal.body.len();
            refusal
                .body
                .extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
        None => sink.data(bytes),
    }
}

/// Receives the rest of a body of `n` bytes.
async fn rest_of(
    conn: &mut Conn,
    n: u64,
    reply: &mut Reply,
    sink: &mut dyn Sink,
    probe: &mut Probe,
) -> Result<(), WireError> {
    let left = n - reply.received;
    if reply.refusal.is_none() && !sink.looks() {
        conn.discard(left).await?;
        probe.done();
        reply.received = n;
        return Ok(());
    }
    if reply.refusal.is_some() && left > MAX_ERROR as u64 {
        // Not worth reading: the beginning says what there is to say.
        reply.reusable = false;
        probe.done();
        return Ok(());
    }
    conn.recv_body(left, |_, bytes| {
        if reply.received + bytes.len() as u64 == n {
            probe.done();
        }
        deliver(reply, sink, bytes);
        Ok::<_, WireError>(())
    })
    .await
}

/// Receives a body in chunked transfer coding.
async fn chunks_of(
    conn: &mut Conn,
    decoder: &mut ChunkedDecoder,
    reply: &mut Reply,
    sink: &mut dyn Sink,
    probe: &mut Probe,
) -> Result<(), WireError> {
    decoder.reset();
    conn.recv_with(|bytes| {
        let mut at = 0;
        loop {
            let (n, event) = decoder.decode(&bytes[at..])?;
            at += n;
            match event {
                Event::Data { len } => deliver(reply, sink, &bytes[at - len..at]),
                Event::NeedMore => return Ok(Step::More(at)),
                Event::End => {
                    probe.done();
                    return Ok::<_, WireError>(Step::Done(at, ()));
                }
                Event::Chunk { .. } | Event::ChunkEnd => {}
            }
        }
    })
    .await
}

/// Receives a body that ends with the connection.
async fn all_of(
    conn: &mut Conn,
    reply: &mut Reply,
    sink: &mut dyn Sink,
    probe: &mut Probe,
) -> Result<(), WireError> {
    let end = conn
        .recv_with(|bytes| {
            deliver(reply, sink, bytes);
            Ok::<_, WireError>(Step::<()>::More(bytes.len()))
        })
        .await;
    probe.done();
    match end {
        Err(WireError::Closed { clean: true }) => Ok(()),
        Err(error) => Err(error),
        Ok(()) => Ok(()),
    }
}

/// The meaning of a failure of the connection; `first` tells that the request was its first.
#[cold]
fn to_error(error: WireError, first: bool) -> OpError {
    let kind = match &error {
        WireError::Http(_) | WireError::TooLarge { .. } | WireError::ShortBody { .. } => {
            ErrorKind::Protocol
        }
        WireError::Tls(_) => ErrorKind::Tls,
        _ => ErrorKind::Reset,
    };
    let detail = match error {
        // A keep-alive connection that the server closed while it was idle looks like this when
        // the close crosses the request. Whether the server has acted on it is unknown, so the
        // request is not repeated here.
        WireError::ClosedBeforeAnswer if !first => {
            "the server closed the kept-alive connection before it answered".to_owned()
        }
        WireError::Http(HttpError::Head(_)) => format!("{error}; is this an HTTP endpoint?"),
        error => error.to_string(),
    };
    OpError::new(kind, detail)
}
