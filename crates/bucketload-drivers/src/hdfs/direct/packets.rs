//! What a data node answers to a read: a response, then packets of checked data, then an empty packet
//! (`datatransfer.proto`: `BlockOpResponseProto`, `PacketHeaderProto`).
//!
//! ```text
//! response   length, BlockOpResponseProto
//! packet     u32 (4 + sums + data) · u16 (header) · header · sums, 4 bytes per chunk · data
//! ```
//!
//! Data begin at the chunk that holds the first byte asked for and end with a chunk. Every chunk is
//! checked before any of it is delivered, so that another data node can go on where this one failed.

use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::record::Probe;
use bucketload_wire::{Error as WireError, Receiver, Step};
use crc_fast::CrcAlgorithm;

use super::failure::broken;
use super::proto::{self, Fields, Malformed, Value};
use crate::hadoop::exception::tidy;
use crate::http::pool::Buffer;
use crate::http::sink::Sink;

/// Bytes of the empty packet at the end: its lengths, and a header of fixed-length fields.
pub(super) const LAST: u64 = 4 + 2 + 25;
/// Fewest bytes of a response that grants the read.
const RESPONSE: u64 = 3;
/// Most bytes of sums that a packet may have: what one receive can hold beside its header.
const MAX_SUMS: usize = 60 << 10;

/// Why a read failed.
pub(super) struct Fault(pub(super) OpError);

impl From<WireError> for Fault {
    #[cold]
    fn from(error: WireError) -> Self {
        Self(broken("data node", &error))
    }
}

impl From<Malformed> for Fault {
    #[cold]
    fn from(_: Malformed) -> Self {
        Self(violation("the answer is not what the protocol says"))
    }
}

#[cold]
fn violation(what: &str) -> OpError {
    OpError::new(ErrorKind::Protocol, format!("data node: {what}"))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The empty packet of the read before.
    Owed,
    Response,
    Head,
    Data,
    /// The empty packet.
    Last,
}

/// Takes the answer to a read of one block.
pub(super) struct Packets<'a> {
    /// Next byte to deliver and end of the read, as offsets in the block.
    pub(super) from: u64,
    to: u64,
    stage: Stage,
    /// How data are checked, and bytes per sum.
    check: Option<(CrcAlgorithm, usize)>,
    /// Sums of the packet's chunks that were not checked yet.
    sums: Buffer,
    sums_used: usize,
    /// The beginning of a chunk; without memory until a chunk comes in pieces.
    chunk: Buffer,
    /// Bytes of the packet that were not checked yet, the chunk's beginning included.
    left: usize,
    /// Offset in the block of the first of them.
    at: u64,
    sink: &'a mut dyn Sink,
    probe: &'a mut Probe,
}

impl<'a> Packets<'a> {
    /// Takes the bytes from `from` to `to` of a block; `owed` tells that the empty packet of the
    /// connection's read before comes first.
    pub(super) fn new(
        (from, to): (u64, u64),
        owed: bool,
        sink: &'a mut dyn Sink,
        probe: &'a mut Probe,
    ) -> Self {
        Self {
            from,
            to,
            stage: if owed { Stage::Owed } else { Stage::Response },
            check: None,
            sums: Buffer::take(),
            sums_used: 0,
            chunk: Buffer::NONE,
            left: 0,
            at: 0,
            sink,
            probe,
        }
    }

    fn response(&mut self, message: &[u8]) -> Result<(), Fault> {
        let (mut status, mut info, mut text) = (None, Value::Bytes(b""), "");
        for field in Fields(message) {
            match field? {
                (1, value) => status = Some(value.number()),
                (4, value) => info = value,
                (5, value) => text = value.text(),
                _ => {}
            }
        }
        if status != Some(0) {
            return Err(Fault(refused(status, text)));
        }
        let (mut kind, mut chunk) = (0, 0);
        for field in Fields(info.bytes()) {
            match field? {
                (1, checksum) => {
                    for field in Fields(checksum.bytes()) {
                        match field? {
                            (1, value) => kind = value.number(),
                            (2, value) => chunk = value.number(),
                            _ => {}
                        }
                    }
                }
                (2, offset) => self.at = offset.number(),
                _ => {}
            }
        }
        let algorithm = match kind {
            0 => None,
            1 => Some(CrcAlgorithm::Crc32IsoHdlc),
            2 => Some(CrcAlgorithm::Crc32Iscsi),
            _ => return Err(Fault(violation("it sums in a way that is not known"))),
        };
        let chunk = usize::try_from(chunk).map_err(|_| Malformed)?;
        if algorithm.is_some() && chunk == 0 {
            return Err(Malformed.into());
        }
        self.check = algorithm.map(|algorithm| (algorithm, chunk));
        Ok(())
    }

    /// Begins a packet with data.
    fn packet(&mut self, packet: &Packet<'_>) -> Result<(), Fault> {
        let sums = match self.check {
            Some((_, chunk)) => 4 * packet.data.div_ceil(chunk),
            None => 0,
        };
        if packet.offset != self.at || packet.offset > self.from || packet.sums.len() != sums {
            return Err(Fault(violation("its packets do not fit together")));
        }
        self.sums.clear();
        self.sums.extend_from_slice(packet.sums);
        self.sums_used = 0;
        self.left = packet.data;
        Ok(())
    }

    /// Takes data of the packet, as far as `bytes` has them; returns how many.
    fn data(&mut self, bytes: &[u8]) -> Result<usize, Fault> {
        let taken = bytes.len().min(self.left - self.chunk.len());
        let mut data = &bytes[..taken];
        let Some((algorithm, chunk)) = self.check else {
            self.deliver(data);
            return Ok(taken);
        };
        while !data.is_empty() {
            let size = chunk.min(self.left);
            if self.chunk.is_empty() && data.len() >= size {
                let (mut whole, mut checked) = (0, Ok(()));
                while whole < self.left && data.len() - whole >= chunk.min(self.left - whole) {
                    let end = whole + chunk.min(self.left - whole);
                    checked = self.verify(algorithm, &data[whole..end], whole);
                    if checked.is_err() {
                        break;
                    }
                    whole = end;
                }
                self.deliver(&data[..whole]);
                checked?;
                data = &data[whole..];
                continue;
            }
            let more = data.len().min(size - self.chunk.len());
            if self.chunk.capacity() == 0 {
                self.chunk = Buffer::take();
            }
            self.chunk.extend_from_slice(&data[..more]);
            data = &data[more..];
            if self.chunk.len() == size {
                let held = std::mem::replace(&mut self.chunk, Buffer::NONE);
                let checked = self.verify(algorithm, &held, 0);
                if checked.is_ok() {
                    self.deliver(&held);
                }
                self.chunk = held;
                self.chunk.clear();
                checked?;
            }
        }
        Ok(taken)
    }

    /// Checks the next chunk, which lies `ahead` bytes behind those that were delivered.
    fn verify(&mut self, with: CrcAlgorithm, chunk: &[u8], ahead: usize) -> Result<(), Fault> {
        let sum = self.sums[self.sums_used..].first_chunk().ok_or(Malformed)?;
        self.sums_used += 4;
        if crc_fast::checksum(with, chunk) != u64::from(u32::from_be_bytes(*sum)) {
            let at = self.at + ahead as u64;
            return Err(Fault(OpError::new(
                ErrorKind::Corrupt,
                format!("data node: the checksum of the block's bytes from {at} on is wrong"),
            )));
        }
        Ok(())
    }

    /// Hands on what was asked for of `data`, which is all right.
    fn deliver(&mut self, data: &[u8]) {
        let end = self.at + data.len() as u64;
        let (from, to) = (self.from.max(self.at), self.to.min(end));
        if from < to {
            let data = &data[(from - self.at) as usize..(to - self.at) as usize];
            if self.sink.wants_body() {
                self.sink.data(data);
            }
            self.from = to;
        }
        self.left -= data.len();
        self.at = end;
    }
}

impl Receiver for Packets<'_> {
    /// Whether the empty packet is still to come.
    type Value = bool;
    type Error = Fault;

    fn least(&self) -> u64 {
        let data = self.to - self.from;
        match self.stage {
            Stage::Owed => LAST + RESPONSE + LAST + data,
            Stage::Response => RESPONSE + LAST + data,
            Stage::Head => LAST + data,
            Stage::Data => data.saturating_sub(self.chunk.len() as u64).max(1),
            Stage::Last => LAST,
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<Step<bool>, Fault> {
        // Before they are looked at: checking them is not service time.
        self.probe.done();
        let mut used = 0;
        loop {
            let mut rest = &bytes[used..];
            match self.stage {
                Stage::Response => {
                    let Some(message) = proto::delimited(&mut rest) else {
                        return Ok(Step::More(used));
                    };
                    self.response(message)?;
                    self.stage = Stage::Head;
                    used = bytes.len() - rest.len();
                }
                Stage::Data => {
                    used += self.data(rest)?;
                    if self.left > 0 {
                        return Ok(Step::More(used));
                    }
                    self.stage = match self.from < self.to {
                        true => Stage::Head,
                        false => Stage::Last,
                    };
                }
                // All that was asked for is there. The rest says nothing.
                Stage::Last if rest.is_empty() => return Ok(Step::Done(used, true)),
                Stage::Owed | Stage::Head | Stage::Last => {
                    let Some(packet) = Packet::parse(rest)? else {
                        return Ok(Step::More(used));
                    };
                    used += packet.length;
                    match (self.stage, packet.data) {
                        (Stage::Owed, 0) => self.stage = Stage::Response,
                        (Stage::Last, 0) => return Ok(Step::Done(used, false)),
                        (Stage::Head, 1..) => {
                            self.packet(&packet)?;
                            self.stage = Stage::Data;
                        }
                        (Stage::Head, 0) => {
                            return Err(Fault(violation("the block ends too early")));
                        }
                        _ => return Err(Fault(violation("it sent more than was asked for"))),
                    }
                }
            }
        }
    }
}

/// The empty packet alone.
pub(super) struct Trailer;

impl Receiver for Trailer {
    type Value = ();
    type Error = Fault;

    fn least(&self) -> u64 {
        LAST
    }

    fn take(&mut self, bytes: &[u8]) -> Result<Step<()>, Fault> {
        match Packet::parse(bytes)? {
            Some(packet) if packet.data == 0 => Ok(Step::Done(packet.length, ())),
            Some(_) => Err(Fault(violation("it sent more than was asked for"))),
            None => Ok(Step::More(0)),
        }
    }
}

/// What stands before a packet's data.
struct Packet<'a> {
    /// Bytes up to the data.
    length: usize,
    /// Offset of the data in the block.
    offset: u64,
    sums: &'a [u8],
    /// Bytes of data.
    data: usize,
}

impl<'a> Packet<'a> {
    /// Reads it; `None` when it is cut off.
    fn parse(bytes: &'a [u8]) -> Result<Option<Self>, Fault> {
        let mut at = bytes;
        let lengths = (at.split_off(..4), at.split_off(..2));
        let (Some(payload), Some(header)) = lengths else {
            return Ok(None);
        };
        let number = |bytes: &[u8]| bytes.iter().fold(0, |n, b| n << 8 | usize::from(*b));
        let (payload, header) = (number(payload), number(header));
        let Some(header) = at.split_off(..header) else {
            return Ok(None);
        };
        let (mut offset, mut data) = (0, 0);
        for field in Fields(header) {
            match field? {
                (1, value) => offset = value.number(),
                (4, value) => data = value.number(),
                _ => {}
            }
        }
        let data = usize::try_from(data).map_err(|_| Malformed)?;
        let sums = payload.checked_sub(4 + data).ok_or(Malformed)?;
        if sums > MAX_SUMS {
            return Err(Fault(violation("a packet has too many checksums")));
        }
        let Some(sums) = at.split_off(..sums) else {
            return Ok(None);
        };
        Ok(Some(Self {
            length: bytes.len() - at.len(),
            offset,
            sums,
            data,
        }))
    }
}

/// The meaning of a response that grants nothing (`Status` of `datatransfer.proto`).
#[cold]
fn refused(status: Option<u64>, text: &str) -> OpError {
    let kind = match status {
        Some(2) => ErrorKind::Corrupt,
        Some(5) => ErrorKind::Auth,
        Some(7) => ErrorKind::Unsupported,
        Some(1..=15) => ErrorKind::Server,
        _ => return violation("the answer is not what the protocol says"),
    };
    let status = status.unwrap_or_default();
    OpError::new(kind, format!("data node: status {status}: {}", tidy(text)))
}

#[cfg(test)]
#[path = "packets_tests.rs"]
mod tests;
