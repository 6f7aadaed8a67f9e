//! A data node's answer to a read: a response, then packets of checksummed data, then an empty packet
//! (`datatransfer.proto`: `BlockOpResponseProto`, `PacketHeaderProto`).
//!
//! ```text
//! response   length, BlockOpResponseProto
//! packet     u32 (4 + sums + data) · u16 (header) · header · sums, 4 bytes per chunk · data
//! ```
//!
//! The data consist of whole chunks, starting with the chunk of the first requested byte. Every chunk is
//! verified before any of it is delivered, so another data node can continue where this one failed.

use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::record::Probe;
use bucketload_wire::{Error as WireError, Receiver, Step};
use crc_fast::CrcAlgorithm;

use super::failure::broken;
use super::proto::{self, Fields, Malformed, Value};
use crate::hadoop::exception::tidy;
use crate::http::pool::Buffer;
use crate::http::sink::Sink;

/// Bytes of the final empty packet: its lengths, and a header of fixed-length fields.
pub(super) const LAST: u64 = 4 + 2 + 25;
/// Fewest bytes of a response that grants the read.
const RESPONSE: u64 = 3;
/// Most bytes of checksums in a packet: the space of one receive beside its header.
const MAX_SUMS: usize = 60 << 10;

/// The error of a failed read.
pub(super) struct ReadFailure(pub(super) OpError);

impl From<WireError> for ReadFailure {
    #[cold]
    fn from(error: WireError) -> Self {
        Self(broken("data node", &error))
    }
}

impl From<Malformed> for ReadFailure {
    #[cold]
    fn from(_: Malformed) -> Self {
        Self(violation("the answer does not follow the protocol"))
    }
}

#[cold]
fn violation(what: &str) -> OpError {
    OpError::new(ErrorKind::Protocol, format!("data node: {what}"))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The empty packet of the previous read.
    PreviousTrailer,
    Response,
    Head,
    Data,
    /// The empty packet of this read.
    Last,
}

/// Receives the answer to a read of one block.
pub(super) struct Packets<'a> {
    /// Next byte to deliver and end of the read, as offsets in the block.
    pub(super) from: u64,
    to: u64,
    stage: Stage,
    /// Checksum algorithm and bytes per checksum.
    check: Option<(CrcAlgorithm, usize)>,
    /// Checksums of the packet.
    sums: Buffer,
    /// Bytes of `sums` already used.
    sums_used: usize,
    /// The received part of an incomplete chunk; unallocated until a chunk arrives in pieces.
    chunk: Buffer,
    /// Unverified bytes of the packet, including those in `chunk`.
    left: usize,
    /// Offset in the block of the first unverified byte.
    at: u64,
    sink: &'a mut dyn Sink,
    probe: &'a mut Probe,
}

impl<'a> Packets<'a> {
    /// Receives the bytes `from` to `to` of a block. With `trailer_pending` the empty packet of the
    /// connection's previous read comes first.
    pub(super) fn new(
        (from, to): (u64, u64),
        trailer_pending: bool,
        sink: &'a mut dyn Sink,
        probe: &'a mut Probe,
    ) -> Self {
        Self {
            from,
            to,
            stage: if trailer_pending {
                Stage::PreviousTrailer
            } else {
                Stage::Response
            },
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

    fn response(&mut self, message: &[u8]) -> Result<(), ReadFailure> {
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
            return Err(ReadFailure(refused(status, text)));
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
            _ => return Err(ReadFailure(violation("it uses an unknown checksum"))),
        };
        let chunk = usize::try_from(chunk).map_err(|_| Malformed)?;
        if algorithm.is_some() && chunk == 0 {
            return Err(Malformed.into());
        }
        self.check = algorithm.map(|algorithm| (algorithm, chunk));
        Ok(())
    }

    /// Starts a packet with data.
    fn packet(&mut self, packet: &Packet<'_>) -> Result<(), ReadFailure> {
        let sums = match self.check {
            Some((_, chunk)) => 4 * packet.data.div_ceil(chunk),
            None => 0,
        };
        if packet.offset != self.at || packet.offset > self.from || packet.sums.len() != sums {
            return Err(ReadFailure(violation("its packets do not fit together")));
        }
        self.sums.clear();
        self.sums.extend_from_slice(packet.sums);
        self.sums_used = 0;
        self.left = packet.data;
        Ok(())
    }

    /// Consumes the packet's data in `bytes`; returns the number of bytes consumed.
    fn data(&mut self, bytes: &[u8]) -> Result<usize, ReadFailure> {
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

    /// Verifies the next chunk, which starts `ahead` bytes after the delivered ones.
    fn verify(
        &mut self,
        with: CrcAlgorithm,
        chunk: &[u8],
        ahead: usize,
    ) -> Result<(), ReadFailure> {
        let sum = self.sums[self.sums_used..].first_chunk().ok_or(Malformed)?;
        self.sums_used += 4;
        if crc_fast::checksum(with, chunk) != u64::from(u32::from_be_bytes(*sum)) {
            let at = self.at + ahead as u64;
            return Err(ReadFailure(OpError::new(
                ErrorKind::Corrupt,
                format!("data node: wrong checksum for the block's bytes from {at} on"),
            )));
        }
        Ok(())
    }

    /// Delivers the requested part of the verified `data`.
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
    /// Whether the empty packet has not been received yet.
    type Value = bool;
    type Error = ReadFailure;

    fn least(&self) -> u64 {
        let data = self.to - self.from;
        match self.stage {
            Stage::PreviousTrailer => LAST + RESPONSE + LAST + data,
            Stage::Response => RESPONSE + LAST + data,
            Stage::Head => LAST + data,
            Stage::Data => data.saturating_sub(self.chunk.len() as u64).max(1),
            Stage::Last => LAST,
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<Step<bool>, ReadFailure> {
        // Take the time before looking at the bytes: verification is not service time.
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
                // All requested bytes have arrived; the empty packet carries no information.
                Stage::Last if rest.is_empty() => return Ok(Step::Done(used, true)),
                Stage::PreviousTrailer | Stage::Head | Stage::Last => {
                    let Some(packet) = Packet::parse(rest)? else {
                        return Ok(Step::More(used));
                    };
                    used += packet.length;
                    match (self.stage, packet.data) {
                        (Stage::PreviousTrailer, 0) => self.stage = Stage::Response,
                        (Stage::Last, 0) => return Ok(Step::Done(used, false)),
                        (Stage::Head, 1..) => {
                            self.packet(&packet)?;
                            self.stage = Stage::Data;
                        }
                        (Stage::Head, 0) => {
                            return Err(ReadFailure(violation("the block ends too early")));
                        }
                        _ => return Err(ReadFailure(violation("it sent more than was asked for"))),
                    }
                }
            }
        }
    }
}

/// Receives only the empty packet.
pub(super) struct Trailer;

impl Receiver for Trailer {
    type Value = ();
    type Error = ReadFailure;

    fn least(&self) -> u64 {
        LAST
    }

    fn take(&mut self, bytes: &[u8]) -> Result<Step<()>, ReadFailure> {
        match Packet::parse(bytes)? {
            Some(packet) if packet.data == 0 => Ok(Step::Done(packet.length, ())),
            Some(_) => Err(ReadFailure(violation("it sent more than was asked for"))),
            None => Ok(Step::More(0)),
        }
    }
}

/// The part of a packet before its data.
struct Packet<'a> {
    /// Bytes before the data.
    length: usize,
    /// Offset of the data in the block.
    offset: u64,
    sums: &'a [u8],
    /// Bytes of data.
    data: usize,
}

impl<'a> Packet<'a> {
    /// Parses a packet's head; `None` if it is incomplete.
    fn parse(bytes: &'a [u8]) -> Result<Option<Self>, ReadFailure> {
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
            return Err(ReadFailure(violation("a packet has too many checksums")));
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

/// The error for a refusal (`Status` of `datatransfer.proto`).
#[cold]
fn refused(status: Option<u64>, text: &str) -> OpError {
    let kind = match status {
        Some(2) => ErrorKind::Corrupt,
        Some(5) => ErrorKind::Auth,
        Some(7) => ErrorKind::Unsupported,
        Some(1..=15) => ErrorKind::Server,
        _ => return violation("the answer does not follow the protocol"),
    };
    let status = status.unwrap_or_default();
    OpError::new(kind, format!("data node: status {status}: {}", tidy(text)))
}

#[cfg(test)]
#[path = "packets_tests.rs"]
mod tests;
