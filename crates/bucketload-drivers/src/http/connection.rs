//! One worker's connection: opened when needed, kept while it is usable, closed when an operation fails half-way or is
//! abandoned.
//!
//! **Kept-alive connections that the server closes while they are idle.** Before each request, the driver checks whether
//! the runtime has seen any event on the connection. Between two responses, an event can only mean that the server has
//! closed it or sent unrequested bytes. The check costs no system call on a usable connection. A closed connection is
//! replaced, and the time for that is recorded as connect time, before the operation's start. If the server's close and
//! the request cross on the network, the operation fails with `Reset`. The server may have acted on the request, and
//! repeating it would hide a second request in one operation's time. The workload's retry policy may repeat it visibly.

use std::net::IpAddr;

use bucketload_core::driver::RequestRoute;
use bucketload_core::error::{ErrorKind, OpError, OpResult};
use bucketload_core::record::Probe;
use bucketload_wire::http::ChunkedDecoder;
use bucketload_wire::{Calls, Conn};

use super::client::Client;
use super::connect;
use super::endpoint::Endpoint;
use super::exchange::{Answer, Reply, exchange};
use super::outgoing::Outgoing;
use super::sink::Sink;

/// One worker's connection to one endpoint; not always open.
#[derive(Debug)]
pub(crate) struct Connection {
    /// Boxed to keep connections small: few are bound to a local address.
    source: Option<Box<IpAddr>>,
    conn: Option<Conn>,
    route: RequestRoute,
    /// Made for the first answer in chunks.
    decoder: Option<Box<ChunkedDecoder>>,
}

impl Connection {
    /// A connection to the endpoint with index `endpoint`, from the local address `source`; not open yet.
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

    /// The local address that it is bound to.
    pub(crate) fn source(&self) -> Option<IpAddr> {
        self.source.as_deref().copied()
    }

    /// System calls made on the current connection; `None` if there is none.
    pub(crate) fn calls(&self) -> Option<Calls> {
        self.conn.as_ref().map(Conn::calls)
    }

    /// Connects, unless there is a connection that the server has not closed.
    ///
    /// # Errors
    /// When connecting fails.
    pub(crate) async fn connect(
        &mut self,
        client: &Client,
        endpoint: &Endpoint,
        probe: &mut Probe,
    ) -> OpResult<()> {
        if let Some(conn) = &mut self.conn {
            if conn.is_silent() {
                return Ok(());
            }
            self.conn = None;
        }
        // Boxed to keep the state of a handshake out of every session's future.
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

    /// True if there is a connection that the server has not closed.
    #[inline]
    fn is_sound(&mut self) -> bool {
        self.conn.as_mut().is_some_and(Conn::is_silent)
    }

    /// Performs one request, connecting first if necessary. Refusals (status 300 and above) are returned as replies.
    ///
    /// # Errors
    /// When no complete response arrived.
    pub(crate) async fn perform<O: Outgoing>(
        &mut self,
        client: &Client,
        endpoint: &Endpoint,
        outgoing: &mut O,
        sink: &mut dyn Sink,
        probe: &mut Probe,
    ) -> OpResult<Reply> {
        let mut reply = Reply::default();
        let target = AcceptAll { client, endpoint };
        self.perform_on(&target, outgoing, sink, probe, &mut reply)
            .await?;
        Ok(reply)
    }

    /// As [`Connection::perform`], but writes the result to `reply`, which must be a default [`Reply`]. Returning it by
    /// value would move bytes that were just written, which stalls the processor. `target` decides whether a refusal is
    /// an error.
    pub(crate) fn perform_on<'p, T: RequestTarget, O: Outgoing>(
        &'p mut self,
        target: &'p T,
        outgoing: &'p mut O,
        sink: &'p mut dyn Sink,
        probe: &'p mut Probe,
        reply: &'p mut Reply,
    ) -> impl Future<Output = OpResult<()>> {
        let mut answer = Answer::new(outgoing, &target.client().ids, sink, probe, reply);
        async move {
            if !self.is_sound() {
                self.connect(target.client(), target.endpoint(), answer.probe)
                    .await?;
            }
            let mut lease = Lease::new(&mut self.conn);
            let Some(conn) = lease.conn.as_mut() else {
                return Err(gone());
            };
            exchange(conn, outgoing, &mut self.decoder, &mut answer).await?;
            lease.sound = answer.reply.reusable;
            drop(lease);
            target.judge(answer.reply)
        }
    }
}

/// Where a connection's requests go, and which replies are errors.
pub(crate) trait RequestTarget {
    fn client(&self) -> &Client;

    fn endpoint(&self) -> &Endpoint;

    /// Checks a reply.
    ///
    /// # Errors
    /// If the target treats the refusal in `reply` as an error.
    fn judge(&self, reply: &Reply) -> OpResult<()>;
}

/// A target that returns every refusal as a reply.
struct AcceptAll<'a> {
    client: &'a Client,
    endpoint: &'a Endpoint,
}

impl RequestTarget for AcceptAll<'_> {
    fn client(&self) -> &Client {
        self.client
    }

    fn endpoint(&self) -> &Endpoint {
        self.endpoint
    }

    fn judge(&self, _reply: &Reply) -> OpResult<()> {
        Ok(())
    }
}

/// Holds the connection until the response is complete. Dropped earlier, when an operation is abandoned, it closes the
/// connection, and the next operation opens a new one.
struct Lease<'a> {
    conn: &'a mut Option<Conn>,
    /// Whether the connection can be reused.
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
