//! A session's data nodes, each with its kept-alive connection, and the read of one block.
//!
//! A data node keeps an idle connection open for 4 s (`dfs.datanode.socket.reuse.keepalive`). A session
//! does not reuse one that was idle for [`KEPT_NS`]. If a kept-alive connection turns out to be closed
//! before any answer, the session repeats the read on a new connection. If a data node fails, the read
//! continues at the next node with a copy, as in every HDFS client. Each of these attempts counts as a
//! request of the operation.

use std::net::SocketAddr;

use bucketload_core::error::{ErrorKind, OpError, OpResult};
use bucketload_core::record::Probe;
use bucketload_wire::{Conn, Sock};

use super::failure::broken;
use super::located::Block;
use super::packets::{LAST, Packets, ReadFailure, Trailer};
use super::proto;
use crate::http::pool::Buffer;
use crate::http::sink::Sink;

/// Most data nodes that a session keeps.
const MAX_NODES: usize = 32;
/// How long an idle connection is reused, in nanoseconds: less than data nodes keep it open.
const KEPT_NS: u64 = 3_000_000_000;
/// Version of the data transfer protocol, and its operation `READ_BLOCK`.
const READ_BLOCK: [u8; 3] = [0, 28, 81];
/// `ClientReadStatusProto` with its length: the checksums were correct (`CHECKSUM_OK`).
const ALL_RIGHT: [u8; 3] = [2, 8, 6];

#[derive(Debug)]
struct DataNode {
    address: SocketAddr,
    conn: Option<Conn>,
    /// Whether the last read is complete.
    idle: bool,
    /// Whether the final empty packet of the last read has not been received yet.
    trailer_pending: bool,
    /// When the last read ended.
    used_ns: u64,
}

/// The data nodes of a session.
#[derive(Debug)]
pub(super) struct DataNodes {
    nodes: Vec<DataNode>,
    /// The session's client name for data nodes.
    client: Box<str>,
}

/// A read of a part of a block.
struct BlockRead<'a> {
    block: &'a Block<'a>,
    /// Next byte and end, as offsets in the block.
    from: u64,
    to: u64,
}

impl DataNodes {
    pub(super) const fn new(client: Box<str>) -> Self {
        Self {
            nodes: Vec::new(),
            client,
        }
    }

    /// Reads the bytes `from` to `to` of `block` into `sink`, from the first data node that returns them.
    ///
    /// # Errors
    /// When none does: `Corrupt` if any node returned wrong bytes, else the last node's error.
    pub(super) async fn read(
        &mut self,
        block: &Block<'_>,
        (from, to): (u64, u64),
        sink: &mut dyn Sink,
        probe: &mut Probe,
    ) -> OpResult<()> {
        let mut read = BlockRead { block, from, to };
        let mut failure: Option<OpError> = None;
        for address in block.nodes() {
            // The name node's answer has just arrived, so reuse its time instead of reading the clock.
            let now_ns = match failure {
                None => probe.done_ns(),
                Some(_) => probe.now(),
            };
            let node = (self.node(address?), now_ns);
            let Err(error) = self.read_from(node, &mut read, sink, probe).await else {
                return Ok(());
            };
            let kept = failure.filter(|first| first.kind == ErrorKind::Corrupt);
            failure = Some(kept.unwrap_or(error));
        }
        Err(failure.unwrap_or_else(no_node))
    }

    /// The index of the node at `address`.
    fn node(&mut self, address: SocketAddr) -> usize {
        if let Some(at) = self.nodes.iter().position(|node| node.address == address) {
            return at;
        }
        if self.nodes.len() >= MAX_NODES {
            self.nodes.remove(0);
        }
        self.nodes.push(DataNode {
            address,
            conn: None,
            idle: false,
            trailer_pending: false,
            used_ns: 0,
        });
        self.nodes.len() - 1
    }

    async fn read_from(
        &mut self,
        (at, now_ns): (usize, u64),
        read: &mut BlockRead<'_>,
        sink: &mut dyn Sink,
        probe: &mut Probe,
    ) -> OpResult<()> {
        let node = &mut self.nodes[at];
        let kept = node.is_fresh(now_ns);
        let from = read.from;
        if kept {
            match node.ask(&self.client, read, sink, probe).await {
                // The idle connection was closed: no byte arrived.
                Err(error) if error.kind == ErrorKind::Reset && read.from == from => {}
                result => return result.map_err(|error| node.named(error)),
            }
        }
        node.connect().await?;
        let asked = node.ask(&self.client, read, sink, probe).await;
        asked.map_err(|error| node.named(error))
    }
}

impl DataNode {
    /// Whether there is a reusable connection at `now_ns`.
    fn is_fresh(&mut self, now_ns: u64) -> bool {
        let usable = self.idle && now_ns.saturating_sub(self.used_ns) < KEPT_NS;
        self.conn
            .as_mut()
            .is_some_and(|conn| usable && conn.is_silent())
    }

    async fn connect(&mut self) -> OpResult<()> {
        self.conn = None;
        self.trailer_pending = false;
        // Boxed: connecting is rare and would enlarge every operation's future.
        match Box::pin(Sock::connect(self.address, None)).await {
            Ok(sock) => {
                self.conn = Some(Conn::plain(sock));
                Ok(())
            }
            Err(error) => Err(OpError::new(
                ErrorKind::Connect,
                format!("data node {}: cannot connect: {error}", self.address),
            )),
        }
    }

    /// Performs the read on the current connection and records the progress in `read`.
    async fn ask(
        &mut self,
        client: &str,
        read: &mut BlockRead<'_>,
        sink: &mut dyn Sink,
        probe: &mut Probe,
    ) -> OpResult<()> {
        self.idle = false;
        let Some(conn) = &mut self.conn else {
            return Err(no_node());
        };
        {
            let mut request = Buffer::take();
            render(&mut request, client, read);
            probe.started();
            let sent = conn.send(&request, b"").await;
            sent.map_err(|error| broken("data node", &error))?;
        }
        let mut packets = Packets::new((read.from, read.to), self.trailer_pending, sink, probe);
        let received = conn.recv_stream(&mut packets).await;
        read.from = packets.from;
        self.trailer_pending = received.map_err(|ReadFailure(error)| error)?;
        // The data node waits for this status before it accepts another request.
        let told = conn.send(&ALL_RIGHT, b"").await;
        told.map_err(|error| broken("data node", &error))?;
        if self.trailer_pending && u64::from(conn.low_water()) <= LAST {
            // Left unread, the empty packet would look like unsolicited bytes.
            let taken = conn.recv_stream(&mut Trailer).await;
            taken.map_err(|ReadFailure(error)| error)?;
            self.trailer_pending = false;
        }
        self.used_ns = probe.done_ns();
        self.idle = true;
        Ok(())
    }

    /// Adds the data node's address to `error`.
    #[cold]
    fn named(&self, mut error: OpError) -> OpError {
        let text = error
            .detail
            .strip_prefix("data node")
            .unwrap_or(&error.detail);
        error.detail = format!("data node {}{text}", self.address).into();
        error
    }
}

#[cold]
fn no_node() -> OpError {
    OpError::new(ErrorKind::Server, "no data node has a block of the file")
}

/// Appends the request: operation, length and `OpReadBlockProto`.
fn render(out: &mut Vec<u8>, client: &str, read: &BlockRead<'_>) {
    let block = read.block;
    let length = read.to - read.from;
    let base = proto::bytes_len(block.id.len()) + proto::bytes_len(block.token.len());
    let header = proto::bytes_len(base) + proto::bytes_len(client.len());
    let numbers = 1 + proto::varint_len(read.from) + 1 + proto::varint_len(length) + 2;
    out.extend_from_slice(&READ_BLOCK);
    proto::put_varint(out, (proto::bytes_len(header) + numbers) as u64);
    proto::put_head(out, 1, header);
    proto::put_head(out, 1, base);
    proto::put_bytes(out, 1, block.id);
    proto::put_bytes(out, 2, block.token);
    proto::put_bytes(out, 2, client.as_bytes());
    proto::put_number(out, 2, read.from);
    proto::put_number(out, 3, length);
    // Ask for checksums.
    proto::put_number(out, 4, 1);
}

#[cfg(test)]
mod tests {
    use super::{BlockRead, render};
    use crate::hdfs::direct::located::Block;

    #[test]
    fn read_requests_follow_hadoops_protocol() {
        let block = Block {
            id: b"\x0a\x04BP-1\x10\x07\x18\x08",
            token: b"\x0a\x00",
            ..Block::default()
        };
        let read = BlockRead {
            block: &block,
            from: 512,
            to: 4608,
        };
        let mut out = Vec::new();
        render(&mut out, "me", &read);
        let golden = b"\x00\x1c\x51\x20\
            \x0a\x16\x0a\x10\x0a\x0a\x0a\x04BP-1\x10\x07\x18\x08\x12\x02\x0a\x00\x12\x02me\
            \x10\x80\x04\x18\x80\x20\x20\x01";
        assert_eq!(out, golden);
    }
}
