//! The methods that sessions of all HTTP services share: they send requests over the session's connection and turn
//! refusals into errors.
//!
//! The frequent S3 operations take a shortcut ([`Connection::perform_on`]).

use bucketload_core::driver::{DONE, OpError, OpResult, Probe};

use super::answer::{MAX_SMALL, too_long};
use super::client::Client;
use super::connection::Connection;
use super::endpoint::Endpoint;
use super::exchange::{Refusal, Reply};
use super::outgoing::{Body, Outgoing, Plain};
use super::pool::Buffer;
use super::render::Render as _;
use super::sink::{Collect, CollectWith, Ignore, OneField, Sink};

/// A session of a service over HTTP.
pub(crate) trait HttpSession {
    /// The session's connection, with the client and endpoint it belongs to.
    fn route(&mut self) -> (&mut Connection, &Client, &Endpoint);

    /// The error that a refusal means.
    fn refused(&mut self, status: u16, refusal: &Refusal) -> OpError;

    /// Connects, unless there is a connection that the server has not closed.
    async fn connect(&mut self, probe: &mut Probe) -> OpResult<()> {
        let (connection, client, endpoint) = self.route();
        connection.connect(client, endpoint, probe).await
    }

    /// Performs one request; refusals are returned as replies.
    async fn attempt<O: Outgoing>(
        &mut self,
        request: &mut O,
        sink: &mut dyn Sink,
        probe: &mut Probe,
    ) -> OpResult<Reply> {
        let (connection, client, endpoint) = self.route();
        connection
            .perform(client, endpoint, request, sink, probe)
            .await
    }

    /// Performs one request. The reply is a success (status below 300).
    async fn perform<O: Outgoing>(
        &mut self,
        request: &mut O,
        sink: &mut dyn Sink,
        probe: &mut Probe,
    ) -> OpResult<Reply> {
        let reply = self.attempt(request, sink, probe).await?;
        match &reply.refusal {
            None => Ok(reply),
            Some(refusal) => Err(self.refused(reply.status, refusal)),
        }
    }

    /// Performs a request whose response body does not matter.
    async fn complete<O: Outgoing>(&mut self, request: &mut O, probe: &mut Probe) -> OpResult {
        self.perform(request, &mut Ignore, probe).await?;
        Ok(DONE)
    }

    /// Performs a request and stores the response body, at most `limit` bytes, in `into`.
    async fn document<O: Outgoing>(
        &mut self,
        request: &mut O,
        into: &mut Vec<u8>,
        limit: usize,
        probe: &mut Probe,
    ) -> OpResult<Reply> {
        let mut sink = Collect::new(into, limit);
        let reply = self.perform(request, &mut sink, probe).await?;
        match sink.overflow {
            false => Ok(reply),
            true => Err(too_long(reply.status)),
        }
    }

    /// Performs an untimed request and returns the response body, at most `limit` bytes.
    async fn fetch<O: Outgoing>(&mut self, request: &mut O, limit: usize) -> OpResult<Vec<u8>> {
        let mut body = Vec::new();
        self.document(request, &mut body, limit, &mut Probe::untimed())
            .await?;
        Ok(body)
    }

    /// Reads a small object.
    async fn small<O: Outgoing>(&mut self, request: &mut O) -> OpResult<Vec<u8>> {
        self.fetch(request, MAX_SMALL).await
    }

    /// Reads a small object and the response header field `name`.
    async fn small_with<O: Outgoing>(
        &mut self,
        request: &mut O,
        name: &'static str,
    ) -> OpResult<(Vec<u8>, Option<String>)> {
        let (mut body, mut value) = (Vec::new(), Vec::new());
        let mut sink = CollectWith {
            body: Collect::new(&mut body, MAX_SMALL),
            field: OneField {
                name,
                value: &mut value,
            },
        };
        let reply = self
            .perform(request, &mut sink, &mut Probe::untimed())
            .await?;
        if sink.body.overflow {
            return Err(too_long(reply.status));
        }
        let value = String::from_utf8(value).ok();
        Ok((body, value.filter(|value| !value.is_empty())))
    }

    /// Performs an untimed request whose response body does not matter.
    async fn settle<O: Outgoing>(&mut self, request: &mut O) -> OpResult<()> {
        self.complete(request, &mut Probe::untimed())
            .await
            .map(drop)
    }
}

/// A session that renders every request from scratch. Services with signed requests keep a writer for the constant parts
/// instead.
pub(crate) trait Rendering: HttpSession {
    /// Appends the rest of the request line and the fields that every request has.
    fn fields(&mut self, head: &mut Vec<u8>);

    /// Starts a request: method and base path.
    fn begin(&mut self, method: &str) -> Buffer {
        self.route().2.begin(method)
    }

    /// A request without a body; `head` already holds path and query.
    fn bare(&mut self, mut head: Buffer) -> Plain<'static> {
        self.fields(&mut head);
        Plain::bare(head)
    }

    /// A request with `body`; `head` already holds path and query. `content_type` may be empty.
    fn with<'a>(&mut self, mut head: Buffer, content_type: &str, body: Body<'a>) -> Plain<'a> {
        self.fields(&mut head);
        if !content_type.is_empty() {
            head.field("Content-Type", content_type.as_bytes());
        }
        Plain::with(head, body)
    }
}
