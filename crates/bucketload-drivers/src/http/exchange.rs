//! One request and its response on a connection.
//!
//! Sends an [`Outgoing`] request and passes the response to a [`Sink`]. Everything that can be done in advance
//! (connecting, hashing, rendering, signing) happens before the probe's `started`. From then on, the probe records when
//! bytes move.

use bucketload_core::error::{ErrorKind, OpError, OpResult};
use bucketload_core::record::Probe;
use bucketload_wire::http::{self, Body as Framing, ChunkedDecoder, Event};
use bucketload_wire::{Conn, Error as WireError, SendEnd, Step};

use super::client::IdFields;
use super::outgoing::{Outgoing, Remaining};
use super::parked::park;
use super::sink::{Ignore, Sink};

/// Maximum size of an error document, in bytes. A longer one is cut and the connection closed.
const MAX_ERROR: usize = 64 * 1024;

/// The facts of a response, apart from the data passed to the sink. Kept small: it lives as long as the request.
#[derive(Debug)]
pub(crate) struct Reply {
    content_length: u64,
    range_start: u64,
    /// Body bytes received.
    pub(crate) received: u64,
    /// Body and header fields; set for refusals only.
    pub(crate) refusal: Option<Box<Refusal>>,
    pub(crate) status: u16,
    /// Whether the connection can be reused.
    pub(crate) reusable: bool,
}

impl Default for Reply {
    fn default() -> Self {
        Self {
            content_length: Self::UNKNOWN,
            range_start: Self::UNKNOWN,
            received: 0,
            refusal: None,
            status: 0,
            reusable: false,
        }
    }
}

impl Reply {
    /// Stands for a number that is missing in the response.
    const UNKNOWN: u64 = u64::MAX;

    /// Value of `Content-Length`.
    pub(crate) fn content_length(&self) -> Option<u64> {
        Some(self.content_length).filter(|n| *n != Self::UNKNOWN)
    }

    /// First byte of `Content-Range`.
    pub(crate) fn range_start(&self) -> Option<u64> {
        Some(self.range_start).filter(|n| *n != Self::UNKNOWN)
    }
}

/// The contents of a refusal.
#[derive(Debug, Default)]
pub(crate) struct Refusal {
    /// The body, cut at [`MAX_ERROR`].
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

    /// The value of the header field `name` (case-insensitive); empty if it is missing.
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

/// A response that is being received: its destination and the facts so far.
pub(crate) struct Answer<'a> {
    pub(crate) ids: &'a IdFields,
    pub(crate) sink: &'a mut dyn Sink,
    pub(crate) probe: &'a mut Probe,
    pub(crate) reply: &'a mut Reply,
    /// Whether the request was a HEAD, whose response has no body.
    to_head: bool,
}

impl<'a> Answer<'a> {
    /// The response to `outgoing`: facts go to `reply`, which must be a default [`Reply`], and the body to `sink`.
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

/// Sends a prepared request, releases the memory of its head, and receives the response.
///
/// The caller may keep the connection if the reply says `reusable`, and must close it after an error.
#[expect(
    clippy::manual_async_fn,
    reason = "the future of an async fn stores its arguments twice"
)]
pub(crate) fn exchange<'e, O: Outgoing>(
    conn: &'e mut Conn,
    outgoing: &'e mut O,
    decoder: &'e mut Option<Box<ChunkedDecoder>>,
    answer: &'e mut Answer<'_>,
) -> impl Future<Output = OpResult<()>> {
    // The result of each await is consumed before the next one, so the future does not store both.
    async move {
        let first = conn.is_fresh();
        // Boxed, so the future of a request that succeeds has no room for an error.
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
            // A request that was sent in one call has no separate sent instant: `started` is that of the call.
            if conn.calls().send > calls + 1 {
                answer.probe.sent();
            }
            outgoing.release();
            failure.or_else(|| incomplete(sent))
        };
        // When sending failed, the server may have sent a reason before it closed.
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

/// How sending a request ended, unless all of it was sent.
#[inline]
fn incomplete(sent: Result<SendEnd, WireError>) -> Option<Box<Result<SendEnd, WireError>>> {
    let complete = matches!(sent, Ok(SendEnd::Complete));
    (!complete).then(|| Box::new(sent))
}

/// Receives the response to a request that was not sent completely.
async fn refused(
    conn: &mut Conn,
    decoder: &mut Option<Box<ChunkedDecoder>>,
    answer: &mut Answer<'_>,
    sent: Box<Result<SendEnd, WireError>>,
    first: bool,
) -> OpResult<()> {
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

/// The meaning of a response to a request that was not sent completely.
#[cold]
fn unsent(
    sent: Result<SendEnd, WireError>,
    answer: Result<&mut Reply, WireError>,
    first: bool,
) -> OpResult<()> {
    match (sent, answer) {
        (_, Ok(reply)) if reply.refusal.is_some() => {
            reply.reusable = false;
            Ok(())
        }
        (Ok(SendEnd::Answered { sent }), Ok(reply)) => {
            let detail = format!(
                "the server sent status {} after {sent} bytes of the request body",
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

/// Receives the part of a body that did not arrive with the head.
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
    /// Consumes the head and the part of the body that arrived with it. Refusals (status 300 and above) do not reach the
    /// sink.
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
            reply.content_length = head.content_length.unwrap_or(Reply::UNKNOWN);
            reply.range_start = head.range_start.unwrap_or(Reply::UNKNOWN);
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
            // Take the time before the bytes are checked: checking is not service time.
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

    /// True if the body that `framing` delimits has arrived.
    const fn is_whole(&self, framing: Framing) -> bool {
        match framing {
            Framing::Empty => true,
            Framing::Length(n) => self.reply.received == n,
            Framing::Chunked | Framing::UntilClose => false,
        }
    }

    /// Passes bytes of the body on.
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

    /// Decides whether `conn` can be reused after the response.
    fn finish(&mut self, conn: &Conn) {
        let refusal = self.reply.refusal.as_ref();
        let overlong = refusal.is_some_and(|r| r.body.len() >= MAX_ERROR);
        self.reply.reusable &= !overlong && !conn.is_broken() && conn.unconsumed() == 0;
    }
}

/// Records the store's identifiers of the request. Parses the head once more, so it runs only if the probe wants them.
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
    if !refused && !answer.sink.wants_body() {
        conn.discard(left).await?;
        answer.probe.done();
        answer.reply.received = n;
        return Ok(());
    }
    if refused && left > MAX_ERROR as u64 {
        // Not worth reading: the beginning is enough for the message.
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

/// Receives a body that ends when the server closes the connection.
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

/// The error that a connection failure means. `first`: the request was the first on its connection.
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
        // This happens when the server closes an idle kept-alive connection while the request is on its way. It is
        // unknown whether the server has acted on the request, so the request is not repeated here.
        WireError::ClosedBeforeAnswer if !first => {
            "the server closed the kept-alive connection before it answered".to_owned()
        }
        error => error.to_string(),
    };
    OpError::new(kind, detail)
}
