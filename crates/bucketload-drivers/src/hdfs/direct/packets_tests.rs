//! Answers of a data node, received in pieces of every size.

use bucketload_core::error::ErrorKind;
use bucketload_core::record::Probe;
use bucketload_wire::{Receiver as _, Step};

use super::{LAST, Packets, ReadFailure};
use crate::http::sink::Sink;

/// Bytes per checksum.
const CHUNK: usize = 16;

#[derive(Default)]
struct Keep(Vec<u8>);

impl Sink for Keep {
    fn wants_body(&self) -> bool {
        true
    }

    fn data(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}

fn packet(offset: u64, data: &[u8], last: bool) -> Vec<u8> {
    let sums: Vec<u8> = data
        .chunks(CHUNK)
        .flat_map(|chunk| {
            let sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, chunk);
            (sum as u32).to_be_bytes()
        })
        .collect();
    let mut out = ((4 + sums.len() + data.len()) as u32)
        .to_be_bytes()
        .to_vec();
    out.extend_from_slice(&[0, 25, 0x09]);
    out.extend_from_slice(&offset.to_le_bytes());
    out.extend_from_slice(b"\x11\x05\0\0\0\0\0\0\0\x18");
    out.push(u8::from(last));
    out.push(0x25);
    out.extend_from_slice(&(data.len() as u32).to_le_bytes());
    out.extend_from_slice(&sums);
    out.extend_from_slice(data);
    out
}

/// The answer to a read of `from..to` of `block`, in packets of 40 bytes: whole chunks at both ends.
fn answer(block: &[u8], from: usize, to: usize) -> Vec<u8> {
    let start = from / CHUNK * CHUNK;
    let end = to.next_multiple_of(CHUNK).min(block.len());
    // Status, checksum (CRC-32C, 16 bytes), offset of the first chunk.
    let mut out = vec![12, 8, 0, 0x22, 8, 0x0a, 4, 8, 2, 0x10, CHUNK as u8];
    out.extend_from_slice(&[0x10, start as u8]);
    let size = 3 * CHUNK;
    for (i, data) in block[start..end].chunks(size).enumerate() {
        out.extend_from_slice(&packet((start + i * size) as u64, data, false));
    }
    out.extend_from_slice(&packet(end as u64, b"", true));
    out
}

/// Feeds `stream` as a connection does, `step` bytes at a time. Returns the delivered bytes, and whether the
/// empty packet has not been received yet.
fn feed(
    stream: &[u8],
    range: (u64, u64),
    trailer_pending: bool,
    step: usize,
) -> (Vec<u8>, Result<bool, ReadFailure>) {
    let (mut keep, mut probe) = (Keep::default(), Probe::new(|| 1));
    let mut packets = Packets::new(range, trailer_pending, &mut keep, &mut probe);
    let mut held: Vec<u8> = Vec::new();
    let mut at = 0;
    let end = loop {
        let left = stream.len() - at;
        let least = (packets.least() as usize).saturating_sub(held.len());
        assert!(least <= left, "it would wait for {least} of {left} bytes");
        let piece = step.min(left);
        held.extend_from_slice(&stream[at..at + piece]);
        at += piece;
        match packets.take(&held) {
            Ok(Step::More(used)) => held.drain(..used),
            Ok(Step::Done(used, trailer_pending)) => {
                assert_eq!(used, held.len());
                break Ok(trailer_pending);
            }
            Err(fault) => break Err(fault),
        };
    };
    drop(packets);
    (keep.0, end)
}

fn block() -> Vec<u8> {
    (0..120u8).map(|i| i.wrapping_mul(7)).collect()
}

#[test]
fn the_requested_bytes_are_delivered_whatever_the_pieces() {
    let block = block();
    for (from, to) in [
        (0, 120),
        (0, 1),
        (5, 9),
        (16, 32),
        (17, 119),
        (96, 120),
        (119, 120),
    ] {
        let stream = answer(&block, from, to);
        for step in 1..=stream.len() {
            let (got, end) = feed(&stream, (from as u64, to as u64), false, step);
            assert!(end.is_ok());
            assert_eq!(got, block[from..to], "{from}..{to} by {step}");
        }
    }
}

#[test]
fn the_empty_packet_may_come_later() {
    let block = block();
    let (first, second) = (answer(&block, 0, 120), answer(&block, 32, 64));
    let cut = first.len() - LAST as usize;
    let (got, end) = feed(&first[..cut], (0, 120), false, cut);
    assert!(matches!(end, Ok(true)) && got == block);
    let mut stream = first[cut..].to_vec();
    stream.extend_from_slice(&second);
    for step in 1..=stream.len() {
        let (got, end) = feed(&stream, (32, 64), true, step);
        assert!(end.is_ok());
        assert_eq!(got, block[32..64]);
    }
}

#[test]
fn wrong_bytes_are_not_delivered() {
    let block = block();
    let mut stream = answer(&block, 0, 120);
    // In the last chunk of the second packet.
    let at = stream.len() - LAST as usize - (LAST as usize + 2 * 4 + 24) - 3;
    stream[at] ^= 1;
    for step in 1..=stream.len() {
        let (got, end) = feed(&stream, (0, 120), false, step);
        let Err(ReadFailure(error)) = end else {
            panic!("the wrong byte was not found");
        };
        assert_eq!(error.kind, ErrorKind::Corrupt);
        assert_eq!(got, block[..got.len()]);
        assert_eq!(got.len(), 80);
    }
}

#[test]
fn refusals_and_malformed_answers_are_errors() {
    let kind = |stream: &[u8]| match feed(stream, (0, 10), false, stream.len()).1 {
        Err(ReadFailure(error)) => error.kind,
        Ok(_) => panic!("{stream:?} was taken"),
    };
    let padded = |text: &[u8]| {
        let mut out = text.to_vec();
        out.resize(100, 0);
        out
    };
    assert_eq!(kind(&padded(b"\x05\x08\x01\x2a\x01m")), ErrorKind::Server);
    assert_eq!(kind(&padded(b"\x02\x08\x05")), ErrorKind::Auth);
    assert_eq!(
        kind(&padded(b"HTTP/1.1 400 Bad Request")),
        ErrorKind::Protocol
    );
    let block = block();
    let mut short = answer(&block, 0, 10)[..13].to_vec();
    short.extend_from_slice(&packet(0, b"", true));
    assert_eq!(kind(&padded(&short)), ErrorKind::Protocol);
    // The wrong place.
    let mut elsewhere = answer(&block, 0, 10)[..13].to_vec();
    elsewhere.extend_from_slice(&packet(16, &block[..16], false));
    assert_eq!(kind(&padded(&elsewhere)), ErrorKind::Protocol);
}
