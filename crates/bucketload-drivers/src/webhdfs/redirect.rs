//! The data nodes to which a session has been redirected, each with its connection.
//!
//! Stock data nodes close the connection after each operation, gateways keep it open. In both cases the
//! session keeps the parsed addresses of the last [`MAX_NODES`] nodes.

use std::net::IpAddr;

use bucketload_core::driver::{ErrorKind, OpError, OpResult, Probe};

use super::request;
use crate::http::endpoint::Endpoint;
use crate::http::{Client, Connection, Outgoing, Reply, Sink};

/// Most data nodes that a session keeps.
const MAX_NODES: usize = 32;

#[derive(Debug)]
struct DataNode {
    /// `SCHEME://HOST:PORT`.
    origin: Box<str>,
    endpoint: Endpoint,
    connection: Connection,
}

/// The data nodes of a session.
#[derive(Debug)]
pub(super) struct DataNodes {
    nodes: Vec<DataNode>,
    source: Option<IpAddr>,
}

impl DataNodes {
    /// No nodes yet; connections will use the local address `source`.
    pub(super) const fn new(source: Option<IpAddr>) -> Self {
        Self {
            nodes: Vec::new(),
            source,
        }
    }

    /// The node that `location` names.
    fn node(&mut self, client: &Client, location: &str) -> OpResult<&mut DataNode> {
        let origin = request::origin(location).map_or("", |(origin, _)| origin);
        if let Some(at) = self.nodes.iter().position(|node| *node.origin == *origin) {
            return Ok(&mut self.nodes[at]);
        }
        let endpoint = Endpoint::parse(origin, "the name node's redirect")
            .map_err(|error| OpError::new(ErrorKind::Protocol, error.to_string()))?;
        if endpoint.tls && client.tls_for(&endpoint).is_none() {
            let detail = format!(
                "the name node is reached over http and redirects to {}; set --endpoint-url https://…",
                endpoint.url()
            );
            return Err(OpError::new(ErrorKind::Protocol, detail));
        }
        if self.nodes.len() >= MAX_NODES {
            self.nodes.remove(0);
        }
        self.nodes.push(DataNode {
            origin: origin.into(),
            endpoint,
            connection: Connection::new(0, self.source),
        });
        let last = self.nodes.len() - 1;
        Ok(&mut self.nodes[last])
    }

    /// Performs the second step at `location`. Connecting is part of the operation, so it is not reported
    /// to the probe as a connection; it counts as time after the first answer.
    ///
    /// # Errors
    /// As [`Connection::perform`].
    pub(super) async fn perform<O: Outgoing>(
        &mut self,
        client: &Client,
        location: &str,
        outgoing: &mut O,
        sink: &mut dyn Sink,
        probe: &mut Probe,
    ) -> OpResult<Reply> {
        let node = self.node(client, location)?;
        let mut untimed = Probe::untimed();
        let connected = node
            .connection
            .connect(client, &node.endpoint, &mut untimed)
            .await;
        if let Err(mut error) = connected {
            error.detail =
                format!("data node {}: {}", node.endpoint.authority, error.detail).into();
            return Err(error);
        }
        let performed = node
            .connection
            .perform(client, &node.endpoint, outgoing, sink, probe);
        performed.await
    }
}
