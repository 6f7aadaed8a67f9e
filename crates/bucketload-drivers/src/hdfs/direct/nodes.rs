//! A session's data nodes, each with the connection that is kept to it, and a read of one block.
//!
//! A data node keeps a connection for 4 s (`dfs.datanode.socket.reuse.keepalive`). One that was idle for
//! [`KEPT_NS`] is not used any more. Where a kept connection turns out to be closed before any answer, the
//! read is repeated on a new one; where a data node fails, it goes on at the next that holds the block, as
//! every client of HDFS does. Each of these counts as a request of the operation.

use std::net::SocketAddr;

use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::record::Probe;
use bucketload_wire::{Conn, Sock};

use super::failure::broken;
use super::located::Block;
use super::packets::{Fault, LAST, Packets, Trailer};
use super::proto;
use crate::http::pool::Buffer;
use crate::http::sink::Sink;

/// Data nodes that a session remembers.
const MOST: usize = 32;
/// Nanoseconds for which an idle connection is trusted: less than data nodes keep it.
const KEPT_NS: u64 = 3_000_000_000;
/// Version of the data transfer protocol, and its operation `READ_BLOCK`.
const READ_BLOCK: [u8; 3] = [0, 28, 81];
/// `ClientReadStatusProto` with its length: the sums were right (`CHECKSUM_OK`).
const ALL_RIGHT: [u8; 3] = [2, 8, 6];

/// A data node.
#[derive(Debug)]
struct Node {
    address: SocketAddr,
    conn: Option<Conn>,
    /// No read is under way.
    sound: bool,
    /// The empty packet of the last read has not been taken yet.
    owed: bool,
    /// When the last read ended.
    used_ns: u64,
}

/// The data nodes of a session.
#[derive(Debug)]
pub(super) struct DataNodes {
    nodes: Vec<Node>,
    /// What data nodes know the session by.
    client: Box<str>,
}

/// A read of a part of a block.
struct Read<'a> {
    block: &'a Block<'a>,
    /// Next byte and end, as offsets in the block.
    from: u64,
    to: u64,
}

impl DataNodes {
    /// None yet.
    pub(super) const fn new(client: Box<str>) -> Self {
        Self {
            nodes: Vec::new(),
            client,
        }
    }

    /// Reads the bytes `from` to `to` of `block` into `sink`, from the first data node that gives them.
    ///
    /// # Errors
    /// When none does: `Corrupt` if one had wrong bytes, else what the last one did.
    pub(super) async fn read(
        &mut self,
        block: &Block<'_>,
        (from, to): (u64, u64),
        sink: &mut dyn Sink,
        probe: &mut Probe,
    ) -> Result<(), OpError> {
        let mut read = Read { block, from, to };
        let mut failure: Option<OpError> = None;
        for address in block.nodes() {
            // An answer, of the name node at least, has just come: the clock need not be asked again.
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
        Err(failure.unwrap_or_else(nobody))
    }

    /// The index of the node at `address`.
    fn node(&mut self, address: SocketAddr) -> usize {
        if let Some(at) = self.nodes.iter().position(|node| node.address == address) {
            return at;
        }
        if self.nodes.len() >= MOST {
            self.nodes.remove(0);
        }
        self.nodes.push(Node {
            address,
            conn: None,
            sound: false,
            owed: false,
            used_ns: 0,
        });
        self.nodes.len() - 1
    }

    async fn read_from(
        &mut self,
        (at, now_ns): (usize, u64),
        read: &mut Read<'_>,
        sink: &mut dyn Sink,
        probe: &mut Probe,
    ) -> Result<(), OpError> {
        let node = &mut self.nodes[at];
        let kept = node.is_fresh(now_ns);
        let from = read.from;
        if kept {
            match node.ask(&self.client, read, sink, probe).await {
                // It was closed while nobody looked: nothing came.
                Err(error) if error.kind == ErrorKind::Reset && read.from == from => {}
                result => return result.map_err(|error| node.named(error)),
            }
        }
        node.connect().await?;
        let asked = node.ask(&self.client, read, sink, probe).await;
        asked.map_err(|error| node.named(error))
    }
}

impl Node {
    /// Whether there is a connection that can be used at `now_ns`.
    fn is_fresh(&mut self, now_ns: u64) -> bool {
        let usable = self.sound && now_ns.saturating_sub(self.used_ns) < KEPT_NS;
        self.conn
            .as_mut()
            .is_some_and(|conn| usable && conn.is_silent())
    }

    async fn connect(&mut self) -> Result<(), OpError> {
        self.conn = None;
        self.owed = false;
        // Rare, and its state would otherwise be part of every operation's.
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

    /// Asks for the read on the connection there is. `read` tells how far it came.
    async fn ask(
        &mut self,
        client: &str,
        read: &mut Read<'_>,
        sink: &mut dyn Sink,
        probe: &mut Probe,
    ) -> Result<(), OpError> {
        self.sound = false;
        let Some(conn) = &mut self.conn else {
            return Err(nobody());
        };
        {
            let mut request = Buffer::take();
            render(&mut request, client, read);
            probe.started();
            let sent = conn.send(&request, b"").await;
            sent.map_err(|error| broken("data node", &error))?;
        }
        let mut packets = Packets::new((read.from, read.to), self.owed, sink, probe);
        let received = conn.recv_stream(&mut packets).await;
        read.from = packets.from;
        self.owed = received.map_err(|Fault(error)| error)?;
        // The data node waits for this before it takes another request.
        let told = conn.send(&ALL_RIGHT, b"").await;
        told.map_err(|error| broken("data node", &error))?;
        if self.owed && u64::from(conn.low_water()) <= LAST {
            // It would look like bytes that nobody asked for.
            let taken = conn.recv_stream(&mut Trailer).await;
            taken.map_err(|Fault(error)| error)?;
            self.owed = false;
        }
        self.used_ns = probe.done_ns();
        self.sound = true;
        Ok(())
    }

    /// `error` with the data node's address.
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
fn nobody() -> OpError {
    OpError::new(ErrorKind::Server, "no data node holds a block of the file")
}

/// Appends the request: `OpReadBlockProto` with operation and length in front.
fn render(out: &mut Vec<u8>, client: &str, read: &Read<'_>) {
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
    // With sums.
    proto::put_number(out, 4, 1);
}

#[cfg(test)]
mod tests {
    use super::{Read, render};
    use crate::hdfs::direct::located::Block;

    #[test]
    fn reads_are_asked_for_as_hadoop_says() {
        let block = Block {
            id: b"\x0a\x04BP-1\x10\x07\x18\x08",
            token: b"\x0a\x00",
            ..Block::default()
        };
        let read = Read {
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
