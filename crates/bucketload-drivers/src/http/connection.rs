//! One worker's connection: opened when needed, kept while it is sound, closed when an operation
//! fails half-way or is abandoned.
//!
//! **Kept-alive connections that the server closes while they are idle.** Before each request the
//! connection asks whether the runtime has heard from the connection, which between two answers can only
//! mean its end (or bytes nobody asked for). That costs no system call on a sound
//! connection. A connection found closed is replaced, and the time that takes is recorded as a
//! connection, before the timed start. If the close crosses the request on the way, the operation
//! fails with `Reset`: the server may have acted on the request, and repeating it would hide a
//! second request in one operation's time. A retry policy of the workload may repeat it visibly.

use std::net::IpAddr;

use bucketload_core::driver::RequestRoute;
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::record::Probe;
use bucketload_wire::http::ChunkedDecoder;
use bucketload_wire::{Calls, Conn};

use super::client::Client;
use super::connect;
use super::endpoint::Endpoint;
use super::exchange::{Answer, Reply, exchange};
use super::outgoing::Outgoing;
use super::sink::Sink;

/// A connection of one worker to one endpoint, or the place of one.
#[derive(Debug)]
pub(crate) struct Connection {
    /// In a box: few connections are bound to an address, and all would have room for one.
    source: Option<Box<IpAddr>>,
    conn: Option<Conn>,
    route: RequestRoute,
    /// Made for the first answer in chunks.
    decoder: Option<Box<ChunkedDecoder>>,
}

impl Connection {
    /// A connection to the endpoint with index `endpoint`, from the local address `source`; not connected
    /// yet.
    pub(crate) fn new(endpoint: usize, source: Option<IpAddr>) -> Self {
        Self {
            route: RequestRoute {
                endpoint: u16::try_from(endpoint).unwrap_or(u16::MAX),
                ..RequestRoute::default()
            },
            source: source.map(Box::new),
            conn: None,
            decoder: None,
        }
    }

    /// Where requests go.
    pub(crate) const fn route(&self) -> RequestRoute {
        self.route
    }

    /// System calls made by the current connection; `None` while there is none.
    pub(crate) fn calls(&self) -> Option<Calls> {
        self.conn.as_ref().map(Conn::calls)
    }

    /// Makes sure that there is a connection that the server has not closed.
    ///
    /// # Errors
    /// When none can be made.
    pub(crate) async fn connect(
        &mut self,
        client: &Client,
        endpoint: &Endpoint,
        probe: &mut Probe,
    ) -> Result<(), OpError> {
        if let Some(conn) = &mut self.conn {
            if conn.is_silent() {
                return Ok(());
            }
            self.conn = None;
        }
        // On the heap: a handshake's state would otherwise be part of every session's task.
        let tls = client.tls_for(endpoint);
        let connecting = Box::pin(connect::connect(
            endpoint,
            tls,
            self.source.as_deref().copied(),
            probe,
        ));
        let conn = connecting.await?;
        self.route.connection = client.next_connection();
        self.route.local_port = conn.local_addr().map_or(0, |addr| addr.port());
        self.conn = Some(conn);
        Ok(())
    }

    /// Whether there is a connection that the server has not closed.
    #[inline]
    fn is_sound(&mut self) -> bool {
        self.conn.as_mut().is_some_and(Conn::is_silent)
    }

    /// Performs one request, connecting first if need be. A refusal (status 300 and above) is an
    /// answer too: the reply then holds what the server said.
    ///
    /// # Errors
    /// When there was no answer, or no complete one.
    pub(crate) async fn perform<O: Outgoing>(
        &mut self,
        client: &Client,
        endpoint: &Endpoint,
        outgoing: &mut O,
        sink: &mut dyn Sink,
        probe: &mut Probe,
    ) -> Result<Reply, OpError> {
        let mut reply = Reply::default();
        let way = AnyAnswer { client, endpoint };
        self.perform_on(&way, outgoing, sink, probe, &mut reply)
            .await?;
        Ok(reply)
    }

    /// As [`Connection::perform`], into `reply`, which is as it is by default: the processor waits for bytes that are
    /// moved to another place just after they were written. Refusals are errors where `way` says so.
    pub(crate) fn perform_on<'p, W: Route, O: Outgoing>(
        &'p mut self,
        way: &'p W,
        outgoing: &'p mut O,
        sink: &'p mut dyn Sink,
        probe: &'p mut Probe,
        reply: &'p mut Reply,
    ) -> impl Future<Output = Result<(), OpError>> {
        let mut answer = Answer::new(outgoing, &way.client().ids, sink, probe, reply);
        async move {
            if !self.is_sound() {
                self.connect(way.client(), way.endpoint(), answer.probe)
                    .await?;
            }
            let mut lease = Lease::new(&mut self.conn);
            let Some(conn) = lease.conn.as_mut() else {
                return Err(gone());
            };
            exchange(conn, outgoing, &mut self.decoder, &mut answer).await?;
            lease.sound = answer.reply.reusable;
            drop(lease);
            way.judge(answer.reply)
        }
    }
}

/// Where a connection's requests go.
pub(crate) trait Route {
    fn client(&self) -> &Client;

    fn endpoint(&self) -> &Endpoint;

    /// What a reply means.
    ///
    /// # Errors
    /// Where a refusal is an error.
    fn judge(&self, reply: &Reply) -> Result<(), OpError>;
}

/// A way on which every reply is an answer.
struct AnyAnswer<'a> {
    client: &'a Client,
    endpoint: &'a Endpoint,
}

impl Route for AnyAnswer<'_> {
    fn client(&self) -> &Client {
        self.client
    }

    fn endpoint(&self) -> &Endpoint {
        self.endpoint
    }

    fn judge(&self, _reply: &Reply) -> Result<(), OpError> {
        Ok(())
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
