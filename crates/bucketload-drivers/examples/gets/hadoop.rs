//! A name node and a data node for the thread that answers everything alike: every file is one block of 4 KiB
//! with two replicas, and every answer is one write.
//!
//! What they send has the fields and about the lengths of what Hadoop 3.4 sends: 994 bytes for a call, 4204
//! for a block (`RpcHeader.proto`, `hdfs.proto`, `datatransfer.proto`).

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::SIZE;

/// Bytes per checksum.
const CHUNK: usize = 512;

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value > 127 {
        out.push(value as u8 | 128);
        value >>= 7;
    }
    out.push(value as u8);
}

fn number(out: &mut Vec<u8>, field: u8, value: u64) {
    out.push(field << 3);
    varint(out, value);
}

/// Fields above 15 have a tag of two bytes.
fn bytes(out: &mut Vec<u8>, field: u8, value: &[u8]) {
    varint(out, u64::from(field) << 3 | 2);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

fn message(fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    fill(&mut out);
    out
}

/// `message` with its length in front.
fn delimited(message: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    varint(&mut out, message.len() as u64);
    out.extend_from_slice(message);
    out
}

/// Takes a message with its length in front from the front of `at`; `None` when it is cut off.
fn take<'a>(at: &mut &'a [u8]) -> Option<&'a [u8]> {
    let mut rest = *at;
    let length = take_varint(&mut rest)?;
    let message = rest.get(..length)?;
    *at = &rest[length..];
    Some(message)
}

fn take_varint(at: &mut &[u8]) -> Option<usize> {
    let mut value = 0;
    for (i, byte) in at.iter().take(9).enumerate() {
        value |= usize::from(byte & 127) << (7 * i);
        if *byte < 128 {
            *at = &at[i + 1..];
            return Some(value);
        }
    }
    None
}

/// `DatanodeInfoProto` of the data node at `address`.
fn data_node_info(address: SocketAddr) -> Vec<u8> {
    let id = message(|id| {
        bytes(id, 1, address.ip().to_string().as_bytes());
        bytes(id, 2, b"localhost");
        bytes(id, 3, b"b1b0ed2c-0f32-4e28-9a1d-6cf2d4b5a7c3");
        for (field, port) in [(4, address.port()), (5, 9864), (6, 9867), (7, 0)] {
            number(id, field, port.into());
        }
    });
    message(|info| {
        bytes(info, 1, &id);
        for (field, value) in [(2, 270_000_000_000), (3, 9_000_000), (4, 190_000_000_000)] {
            number(info, field, value);
        }
        for (field, value) in [(5, 9_000_000), (6, 1_700_000_000_000), (7, 8)] {
            number(info, field, value);
        }
        bytes(info, 8, b"/default-rack");
        for field in 10..=15 {
            number(info, field, 0);
        }
    })
}

/// `GetBlockLocationsResponseProto`: both replicas at `address`.
fn locations(address: SocketAddr) -> Vec<u8> {
    let node = data_node_info(address);
    let block = message(|block| {
        let id = message(|id| {
            bytes(id, 1, b"BP-1598756159-127.0.0.1-1795000000000");
            for (field, value) in [(2, 1_073_741_824), (3, 1001), (4, SIZE as u64)] {
                number(id, field, value);
            }
        });
        bytes(block, 1, &id);
        number(block, 2, 0);
        bytes(block, 3, &node);
        bytes(block, 3, &node);
        number(block, 4, 0);
        bytes(block, 5, b"\x0a\0\x12\0\x1a\0\x22\0");
        bytes(block, 6, &[0, 0]);
        bytes(block, 7, &[1, 1]);
        bytes(block, 8, b"DS-7c2f4a60-45a4-4b0c-8a51-0f3a0f2f9c11");
        bytes(block, 8, b"DS-1f0a9f7e-6f0b-4a55-9b06-1f8f7f1b6f22");
    });
    let blocks = message(|blocks| {
        number(blocks, 1, SIZE as u64);
        bytes(blocks, 2, &block);
        number(blocks, 3, 0);
        bytes(blocks, 4, &block);
        number(blocks, 5, 1);
    });
    message(|answer| bytes(answer, 1, &blocks))
}

/// `GetServerDefaultsResponseProto`: nothing is encrypted.
fn defaults() -> Vec<u8> {
    message(|answer| {
        bytes(answer, 1, &message(|defaults| number(defaults, 6, 0)));
    })
}

/// The packet with `data`, the block's beginning, or the empty one behind it.
fn packet(data: &[u8]) -> Vec<u8> {
    let sums: Vec<u8> = data
        .chunks(CHUNK)
        .flat_map(|chunk| {
            let sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, chunk);
            (sum as u32).to_be_bytes()
        })
        .collect();
    let (offset, last) = match data {
        [] => (SIZE as u64, 1),
        _ => (0, 0),
    };
    message(|out| {
        out.extend_from_slice(&((4 + sums.len() + data.len()) as u32).to_be_bytes());
        out.extend_from_slice(&[0, 25, 0x09]);
        out.extend_from_slice(&offset.to_le_bytes());
        out.extend_from_slice(&[0x11, last, 0, 0, 0, 0, 0, 0, 0, 0x18, last, 0x25]);
        out.extend_from_slice(&(data.len() as u32).to_le_bytes());
        out.extend_from_slice(&sums);
        out.extend_from_slice(data);
    })
}

/// What a data node answers to the read of the block.
pub(crate) fn block() -> Rc<[u8]> {
    let info = message(|info| {
        let sums = message(|sums| {
            number(sums, 1, 2);
            number(sums, 2, CHUNK as u64);
        });
        bytes(info, 1, &sums);
        number(info, 2, 0);
    });
    let response = message(|response| {
        number(response, 1, 0);
        bytes(response, 4, &info);
    });
    let parts = [delimited(&response), packet(&[b'x'; SIZE]), packet(b"")];
    parts.concat().into()
}

/// Answers calls: with the place of the block, which is at `data_node`, or with the defaults.
pub(crate) async fn name_node(mut stream: TcpStream, data_node: SocketAddr) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let answers = [locations(data_node), defaults()].map(|answer| delimited(&answer));
    let mut held = Vec::with_capacity(16 << 10);
    while held.len() < 7 {
        if stream.read_buf(&mut held).await? == 0 {
            return Ok(());
        }
    }
    held.drain(..7);
    // The connection's context is a frame, too.
    let mut context = true;
    let mut out = Vec::new();
    loop {
        out.clear();
        while let Some(length) = held.first_chunk::<4>() {
            let length = u32::from_be_bytes(*length) as usize;
            let Some(frame) = held.get(4..4 + length) else {
                break;
            };
            if !std::mem::take(&mut context) {
                answer(frame, &answers, &mut out).ok_or(io::ErrorKind::InvalidData)?;
            }
            held.drain(..4 + length);
        }
        if !out.is_empty() {
            stream.write_all(&out).await?;
        }
        if stream.read_buf(&mut held).await? == 0 {
            return Ok(());
        }
    }
}

/// Appends the answer to the call `frame`; `None` when it is none.
fn answer(frame: &[u8], [locations, defaults]: &[Vec<u8>; 2], out: &mut Vec<u8>) -> Option<()> {
    const ASKED: &[u8] = b"getBlockLocations";
    let mut at = frame;
    let (header, method) = (take(&mut at)?, take(&mut at)?);
    // Kind, operation and call come first, in that order, and then the client's identity.
    let mut rest = header.strip_prefix(&[0x08, 2, 0x10, 0, 0x18])?;
    let call = take_varint(&mut rest)? as u64 >> 1;
    let client = rest.strip_prefix(&[0x22, 16])?.get(..16)?;
    let header = message(|header| {
        number(header, 1, call);
        number(header, 2, 0);
        number(header, 3, 9);
        bytes(header, 7, client);
        number(header, 8, 0);
    });
    let header = delimited(&header);
    let body = match method.get(2..2 + ASKED.len()) {
        Some(ASKED) => locations,
        _ => defaults,
    };
    out.extend_from_slice(&((header.len() + body.len()) as u32).to_be_bytes());
    out.extend_from_slice(&header);
    out.extend_from_slice(body);
    Some(())
}

/// Answers every read with `block`, and takes the client's judgement of it.
pub(crate) async fn data_node(mut stream: TcpStream, block: Rc<[u8]>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut held = Vec::with_capacity(16 << 10);
    // Whether a judgement comes next.
    let mut asked = false;
    loop {
        loop {
            let mut at = &held[..];
            if asked {
                if take(&mut at).is_none() {
                    break;
                }
            } else {
                let Some(rest) = at.strip_prefix(&[0, 28, 81]) else {
                    match at.len() {
                        0..3 => break,
                        _ => return Err(io::ErrorKind::InvalidData.into()),
                    }
                };
                at = rest;
                if take(&mut at).is_none() {
                    break;
                }
                stream.write_all(&block).await?;
            }
            let used = held.len() - at.len();
            held.drain(..used);
            asked = !asked;
        }
        if stream.read_buf(&mut held).await? == 0 {
            return Ok(());
        }
    }
}
