//! One request and its answer on a connection.
//!
//! An [`Outgoing`] request goes out, a [`Sink`] takes the answer. Everything that can be done in
//! advance (connecting, hashing, rendering, signing) lies before the probe's `started`; from there
//! on the probe is marked as bytes move.

use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::record::Probe;
use bucketload_wire::http::{self, Body as Framing, ChunkedDecoder, Event, HttpError};
use bucketload_wire::{Conn, Error as WireError, SendEnd, Step};

use super::client::IdFields;
use super::outgoing::{Outgoing, Remaining};
use super::parked::park;
use super::sink::{Ignore, Sink};

/// Bytes of an error document that are read; what is longer costs the connection.
const MAX_ERROR: usize = 64 * 1024;

/// What an answer said, besides what went to the sink. Small, since it lives as long as the request.
#[derive(Debug)]
pub(crate) struct Reply {
    content_length: u64,
    range_start: u64,
    /// Body bytes received.
    pub(crate) received: u64,
    /// Filled for refusals only: the body, and the fields that tell where to go instead.
    pub(crate) refusal: Option<Box<Refusal>>,
    pub(crate) status: u16,
    /// Whether the connection can be used again.
    pub(crate) reusable: bool,
}

impl Default for Reply {
    fn default() -> Self {
        Self {
            content_length: Self::UNTOLD,
            range_start: Self::UNTOLD,
            received: 0,
            refusal: None,
            status: 0,
            reusable: false,
        }
    }
}

impl Reply {
    /// In place of a number that the answer did not tell.
    const UNTOLD: u64 = u64::MAX;

    /// Value of `Content-Length`.
    pub(crate) fn content_length(&self) -> Option<u64> {
        Some(self.content_length).filter(|n| *n != Self::UNTOLD)
    }

    /// First byte of `Content-Range`.
    pub(crate) fn range_start(&self) -> Option<u64> {
        Some(self.range_start).filter(|n| *n != Self::UNTOLD)
    }
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

/// An answer on its way: who takes it, and what it has said so far.
pub(crate) struct Answer<'a> {
    pub(crate) ids: &'a IdFields,
    pub(crate) sink: &'a mut dyn Sink,
    pub(crate) probe: &'a mut Probe,
    pub(crate) reply: &'a mut Reply,
    /// Whether the request was one whose answers have no body.
    to_head: bool,
}

impl<'a> Answer<'a> {
    /// The answer to `outgoing`, which goes to `reply`, as it is by default, and to `sink`.
    pub(crate) fn new(
        outgoing: &impl Outgoing,
        ids: &'a IdFields,
        sink: &'a mut dyn Sink,
        probe: &'a mut Probe,
        reply: &'a mut Reply,
    ) -> Self {
        Self {
            ids,
            sink,
            probe,
            reply,
            to_head: outgoing.to_head(),
        }
    }
}

/// Sends a prepared request, gives its head's memory back and receives the answer.
///
/// The connection may be kept when the reply says `reusable`; after an error it must not be.
#[expect(
    clippy::manual_async_fn,
    reason = "an async fn has room for its arguments twice"
)]
pub(crate) fn exchange<'e, O: Outgoing>(
    conn: &'e mut Conn,
    outgoing: &'e mut O,
    decoder: &'e mut Option<Box<ChunkedDecoder>>,
    answer: &'e mut Answer<'_>,
) -> impl Future<Output = Result<(), OpError>> {
    // What an await has given is taken apart before the next one: the future would have room for both.
    async move {
        let first = conn.is_fresh();
        // In a box: an answer that arrives as it should is received without room for what went wrong.
        let failure = {
            answer.probe.started();
            let calls = conn.calls().send;
            let mut failure = None;
            let rest = match outgoing.send(conn) {
                Ok(rest) => rest,
                Err(error) => {
                    failure = Some(Box::new(Err(error)));
                    None
                }
            };
            let sent = Remaining(rest).await;
            // What left in one call has left when that call was made, as far as the client can tell.
            if conn.calls().send > calls + 1 {
                answer.probe.sent();
            }
            outgoing.release();
            failure.or_else(|| incomplete(sent))
        };
        // When sending failed the server may have said why before it closed.
        if let Some(refused) = failure.map(|sent| park(refused(conn, decoder, answer, sent, first)))
        {
            return refused.await;
        }
        let framing = conn
            .recv_with(|bytes| answer.take(bytes))
            .await
            .map_err(|error| to_error(error, first))?;
        if !answer.is_whole(framing) {
            park(body_of(conn, framing, decoder, answer))
                .await
                .map_err(|error| to_error(error, first))?;
        }
        answer.finish(conn);
        Ok(())
    }
}

/// How sending a request ended, unless all of it has left.
#[inline]
fn incomplete(sent: Result<SendEnd, WireError>) -> Option<Box<Result<SendEnd, WireError>>> {
    let complete = matches!(sent, Ok(SendEnd::Complete));
    (!complete).then(|| Box::new(sent))
}

/// Receives what a server says to a request that it has not taken.
async fn refused(
    conn: &mut Conn,
    decoder: &mut Option<Box<ChunkedDecoder>>,
    answer: &mut Answer<'_>,
    sent: Box<Result<SendEnd, WireError>>,
    first: bool,
) -> Result<(), OpError> {
    let mut answer = Answer {
        ids: answer.ids,
        sink: &mut Ignore,
        probe: answer.probe,
        reply: answer.reply,
        to_head: answer.to_head,
    };
    let received = match conn.recv_with(|bytes| answer.take(bytes)).await {
        Ok(framing) if answer.is_whole(framing) => Ok(()),
        Ok(framing) => body_of(conn, framing, decoder, &mut answer).await,
        Err(error) => Err(error),
    };
    let answered = received.map(|()| {
        answer.finish(conn);
        answer.reply
    });
    unsent(*sent, answered, first)
}

/// What the answer to a request that did not leave completely means.
#[cold]
fn unsent(
    sent: Result<SendEnd, WireError>,
    answer: Result<&mut Reply, WireError>,
    first: bool,
) -> Result<(), OpError> {
    match (sent, answer) {
        (_, Ok(reply)) if reply.refusal.is_some() => {
            reply.reusable = false;
            Ok(())
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
        (Ok(SendEnd::Complete), Ok(_)) => Ok(()),
    }
}

/// Receives what of a body has not come with the head.
async fn body_of(
    conn: &mut Conn,
    framing: Framing,
    decoder: &mut Option<Box<ChunkedDecoder>>,
    answer: &mut Answer<'_>,
) -> Result<(), WireError> {
    match framing {
        Framing::Empty => Ok(()),
        Framing::Length(n) => rest_of(conn, n, answer).await,
        Framing::Chunked => {
            let decoder = decoder.get_or_insert_with(|| Box::new(ChunkedDecoder::new()));
            chunks_of(conn, decoder, answer).await
        }
        Framing::UntilClose => all_of(conn, answer).await,
    }
}

impl Answer<'_> {
    /// Takes the head, and the body as far as it came with it. Refusals (status 300 and above) do not
    /// reach the sink.
    fn take(&mut self, bytes: &[u8]) -> Result<Step<Framing>, WireError> {
        let mut at = 0;
        loop {
            let Some(head) = http::parse_response(&bytes[at..], self.to_head)? else {
                self.probe.first_byte();
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
            let reply = &mut *self.reply;
            reply.status = head.status;
            reply.reusable = head.keep_alive;
            reply.content_length = head.content_length.unwrap_or(Reply::UNTOLD);
            reply.range_start = head.range_start.unwrap_or(Reply::UNTOLD);
            if head.status >= 300 {
                reply.refusal = Some(Refusal::with_head(fields));
            } else if self.sink.wants_fields() {
                http::response_fields(fields, |name, value| self.sink.field(name, value));
            }
            let take = match head.body {
                Framing::Length(n) => {
                    (bytes.len() - at).min(usize::try_from(n).unwrap_or(usize::MAX))
                }
                _ => 0,
            };
            // The instant is taken before the bytes are looked at: checking them is not service time.
            match head.body {
                Framing::Length(n) if take as u64 == n => self.probe.first_byte_and_done(),
                Framing::Empty => self.probe.first_byte_and_done(),
                _ => self.probe.first_byte(),
            }
            self.probe.answered(head.status);
            if self.probe.wants_ids() {
                take_ids(&bytes[at - head.len..at], self.ids, self.probe);
            }
            self.deliver(&bytes[at..at + take]);
            return Ok(Step::Done(at + take, head.body));
        }
    }

    /// Whether a body that `framing` delimits has arrived.
    const fn is_whole(&self, framing: Framing) -> bool {
        match framing {
            Framing::Empty => true,
            Framing::Length(n) => self.reply.received == n,
            Framing::Chunked | Framing::UntilClose => false,
        }
    }

    /// Takes bytes of the body.
    #[inline]
    fn deliver(&mut self, bytes: &[u8]) {
        self.reply.received += bytes.len() as u64;
        match &mut self.reply.refusal {
            Some(refusal) => {
                let room = MAX_ERROR - refusal.body.len();
                refusal
                    .body
                    .extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
            None => self.sink.data(bytes),
        }
    }

    /// Settles whether `conn`, on which the answer has arrived, can be used again.
    fn finish(&mut self, conn: &Conn) {
        let refusal = self.reply.refusal.as_ref();
        let overlong = refusal.is_some_and(|r| r.body.len() >= MAX_ERROR);
        self.reply.reusable &= !overlong && !conn.is_broken() && conn.unconsumed() == 0;
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

/// Receives the rest of a body of `n` bytes.
async fn rest_of(conn: &mut Conn, n: u64, answer: &mut Answer<'_>) -> Result<(), WireError> {
    let left = n - answer.reply.received;
    let refused = answer.reply.refusal.is_some();
    if !refused && !answer.sink.looks() {
        conn.discard(left).await?;
        answer.probe.done();
        answer.reply.received = n;
        return Ok(());
    }
    if refused && left > MAX_ERROR as u64 {
        // Not worth reading: the beginning says what there is to say.
        answer.reply.reusable = false;
        answer.probe.done();
        return Ok(());
    }
    conn.recv_body(left, |_, bytes| {
        if answer.reply.received + bytes.len() as u64 == n {
            answer.probe.done();
        }
        answer.deliver(bytes);
        Ok::<_, WireError>(())
    })
    .await
}

/// Receives a body in chunked transfer coding.
async fn chunks_of(
    conn: &mut Conn,
    decoder: &mut ChunkedDecoder,
    answer: &mut Answer<'_>,
) -> Result<(), WireError> {
    decoder.reset();
    conn.recv_with(|bytes| {
        let mut at = 0;
        loop {
            let (n, event) = decoder.decode(&bytes[at..])?;
            at += n;
            match event {
                Event::Data { len } => answer.deliver(&bytes[at - len..at]),
                Event::NeedMore => return Ok(Step::More(at)),
                Event::End => {
                    answer.probe.done();
                    return Ok::<_, WireError>(Step::Done(at, ()));
                }
                Event::Chunk { .. } | Event::ChunkEnd => {}
            }
        }
    })
    .await
}

/// Receives a body that ends with the connection.
async fn all_of(conn: &mut Conn, answer: &mut Answer<'_>) -> Result<(), WireError> {
    let end = conn
        .recv_with(|bytes| {
            answer.deliver(bytes);
            Ok::<_, WireError>(Step::<()>::More(bytes.len()))
        })
        .await;
    answer.probe.done();
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
