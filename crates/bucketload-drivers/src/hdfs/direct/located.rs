//! The locations of a file's blocks: the name node's answer to `getBlockLocations`, decoded in place
//! (`hdfs.proto`: `LocatedBlocksProto`, `LocatedBlockProto`, `DatanodeIDProto`).

use std::net::SocketAddr;

use bucketload_core::error::{ErrorKind, OpError};

use super::proto::{Fields, Malformed};

/// The answer for one file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LocatedFile<'a> {
    /// Bytes of the file.
    pub(super) length: u64,
    /// Whether only the library can read the file: it is encrypted, erasure-coded or still being written.
    pub(super) special: bool,
    /// The encoded `LocatedBlocksProto`.
    pub(super) message: &'a [u8],
}

/// A block of a file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Block<'a> {
    /// Offset of its first byte in the file.
    pub(super) offset: u64,
    /// Length in bytes.
    pub(super) length: u64,
    /// The encoded `ExtendedBlockProto`, to be sent to the data node.
    pub(super) id: &'a [u8],
    /// The encoded `TokenProto`, to be sent to the data node.
    pub(super) token: &'a [u8],
    /// The encoded `LocatedBlockProto`.
    pub(super) message: &'a [u8],
}

impl From<Malformed> for OpError {
    #[cold]
    fn from(_: Malformed) -> Self {
        Self::new(
            ErrorKind::Protocol,
            "the answer does not follow Hadoop's protocol; is this a name node's RPC port?",
        )
    }
}

impl<'a> LocatedFile<'a> {
    /// Reads `GetBlockLocationsResponseProto`; `None` if the file does not exist.
    pub(super) fn parse(answer: &'a [u8]) -> Result<Option<Self>, Malformed> {
        let mut found = None;
        for field in Fields(answer) {
            if let (1, message) = field? {
                found = Some(message.bytes());
            }
        }
        let Some(message) = found else {
            return Ok(None);
        };
        let mut file_location = Self {
            message,
            ..Self::default()
        };
        for field in Fields(message) {
            match field? {
                (1, length) => file_location.length = length.number(),
                (3, under_construction) => {
                    file_location.special |= under_construction.number() != 0
                }
                // Encryption, erasure coding.
                (6 | 7, _) => file_location.special = true,
                _ => {}
            }
        }
        Ok(Some(file_location))
    }

    /// The block with the file's byte `at`.
    pub(super) fn block_at(&self, at: u64) -> Result<Option<Block<'a>>, Malformed> {
        for field in Fields(self.message) {
            if let (2, message) = field? {
                let block = Block::parse(message.bytes())?;
                if at >= block.offset && at - block.offset < block.length {
                    return Ok(Some(block));
                }
            }
        }
        Ok(None)
    }
}

impl<'a> Block<'a> {
    fn parse(message: &'a [u8]) -> Result<Self, Malformed> {
        let mut block = Self {
            message,
            ..Self::default()
        };
        // Each field occurs once, in any order. Stop early: they are less than half of the message.
        let mut missing = 3;
        for field in Fields(message) {
            match field? {
                (1, id) => block.id = id.bytes(),
                (2, offset) => block.offset = offset.number(),
                (5, token) => block.token = token.bytes(),
                _ => continue,
            }
            missing -= 1;
            if missing == 0 {
                break;
            }
        }
        for field in Fields(block.id) {
            if let (4, length) = field? {
                block.length = length.number();
            }
        }
        Ok(block)
    }

    /// The data nodes with a copy, nearest first.
    pub(super) fn nodes(&self) -> impl Iterator<Item = Result<SocketAddr, Malformed>> + use<'a> {
        Fields(self.message).filter_map(|field| match field {
            Ok((3, node)) => Some(address(node.bytes())),
            Ok(_) => None,
            Err(malformed) => Some(Err(malformed)),
        })
    }
}

/// The data transfer address of a `DatanodeInfoProto`.
fn address(info: &[u8]) -> Result<SocketAddr, Malformed> {
    for field in Fields(info) {
        let (1, id) = field? else {
            continue;
        };
        let (mut ip, mut port) = (None, None);
        for field in Fields(id.bytes()) {
            match field? {
                (1, text) => ip = text.text().parse().ok(),
                (4, number) => port = u16::try_from(number.number()).ok(),
                _ => continue,
            }
            if let (Some(ip), Some(port)) = (ip, port) {
                return Ok(SocketAddr::new(ip, port));
            }
        }
        break;
    }
    Err(Malformed)
}

#[cfg(test)]
mod tests {
    use super::super::proto::{put_bytes, put_number};
    use super::LocatedFile;

    fn message(parts: &[(u8, &[u8])], numbers: &[(u8, u64)]) -> Vec<u8> {
        let mut out = Vec::new();
        for &(field, bytes) in parts {
            put_bytes(&mut out, field, bytes);
        }
        for &(field, number) in numbers {
            put_number(&mut out, field, number);
        }
        out
    }

    fn block(offset: u64, length: u64) -> Vec<u8> {
        let id = message(&[(1, b"BP-1")], &[(2, 7), (3, 8), (4, length)]);
        let node = |ip: &[u8], port| {
            let id = message(
                &[(1, ip), (2, b"host"), (3, b"uuid")],
                &[(4, port), (5, 9), (6, 9)],
            );
            message(&[(1, &id)], &[(2, 1 << 40)])
        };
        let (one, two) = (node(b"10.0.0.1", 9866), node(b"10.0.0.2", 9867));
        message(
            &[(1, &id), (3, &one), (3, &two), (5, b"token")],
            &[(2, offset), (4, 0)],
        )
    }

    #[test]
    fn blocks_are_found() {
        let (first, second) = (block(0, 100), block(100, 50));
        let blocks = message(&[(2, &first), (2, &second)], &[(1, 150), (3, 0), (5, 1)]);
        let answer = message(&[(1, &blocks)], &[]);
        let file_location = LocatedFile::parse(&answer).unwrap().unwrap();
        assert_eq!((file_location.length, file_location.special), (150, false));
        let at = |at| {
            file_location
                .block_at(at)
                .unwrap()
                .map(|block| block.offset)
        };
        assert_eq!(
            [0, 99, 100, 149, 150].map(at),
            [Some(0), Some(0), Some(100), Some(100), None]
        );
        let block = file_location.block_at(120).unwrap().unwrap();
        assert_eq!((block.length, block.token), (50, &b"token"[..]));
        let nodes: Vec<_> = block
            .nodes()
            .map(|node| node.unwrap().to_string())
            .collect();
        assert_eq!(nodes, ["10.0.0.1:9866", "10.0.0.2:9867"]);
    }

    /// Concatenates fields of a message in an order that depends on `order`.
    fn shuffled(mut parts: Vec<Vec<u8>>, mut order: u64) -> Vec<u8> {
        let mut out = Vec::new();
        while !parts.is_empty() {
            let next = parts.remove((order % parts.len() as u64) as usize);
            out.extend(next);
            order = order.wrapping_mul(6_364_136_223_846_793_005) >> 1;
        }
        out
    }

    proptest::proptest! {
        #[test]
        fn the_order_of_fields_does_not_matter(
            order: u64, offset in 0u64..1 << 62, length in 1u64..1 << 62, port: u16, ip: [u8; 4],
            pool in "[a-zA-Z0-9-]{0,200}", token in "[a-z]{0,300}",
        ) {
            let ip = std::net::Ipv4Addr::from(ip);
            let field = |number: u8, bytes: &[u8]| message(&[(number, bytes)], &[]);
            let number = |field: u8, value: u64| message(&[], &[(field, value)]);
            let id = shuffled(
                vec![field(1, pool.as_bytes()), number(2, 7), number(3, 8), number(4, length)],
                order,
            );
            let node = shuffled(
                vec![
                    field(1, ip.to_string().as_bytes()),
                    field(2, b"host"),
                    field(3, b"uuid"),
                    number(4, port.into()),
                    number(5, 1),
                    number(6, 2),
                ],
                order >> 3,
            );
            let info = shuffled(vec![number(2, offset), field(1, &node), field(8, b"/rack")], order >> 5);
            let block = shuffled(
                vec![
                    field(1, &id),
                    number(2, offset),
                    field(3, &info),
                    number(4, 0),
                    field(5, token.as_bytes()),
                    field(6, &[0, 0]),
                ],
                order >> 7,
            );
            let blocks = shuffled(vec![number(1, length), field(2, &block), number(3, 0)], order >> 11);
            let answer = field(1, &blocks);
            let file_location = LocatedFile::parse(&answer).unwrap().unwrap();
            proptest::prop_assert_eq!((file_location.length, file_location.special), (length, false));
            let found = file_location.block_at(offset + length - 1).unwrap().unwrap();
            proptest::prop_assert_eq!((found.offset, found.length), (offset, length));
            proptest::prop_assert_eq!((found.id, found.token), (&id[..], token.as_bytes()));
            let nodes: Vec<_> = found.nodes().map(Result::unwrap).collect();
            proptest::prop_assert_eq!(nodes, [std::net::SocketAddr::new(ip.into(), port)]);
            // A truncated answer is recognised.
            let cut = (order % answer.len() as u64) as usize;
            let short = LocatedFile::parse(&answer[..cut]);
            proptest::prop_assert!(matches!(short, Ok(None) if cut == 0) || short.is_err());
        }
    }

    #[test]
    fn special_files_are_recognised() {
        assert!(LocatedFile::parse(b"").unwrap().is_none());
        for (parts, numbers) in [
            (&[][..], &[(3, 1)][..]),
            (&[(6, &b"key"[..])][..], &[][..]),
            (&[(7, &b"ec"[..])][..], &[][..]),
        ] {
            let answer = message(&[(1, &message(parts, numbers))], &[]);
            assert!(LocatedFile::parse(&answer).unwrap().unwrap().special);
        }
        assert!(LocatedFile::parse(b"\x0a\x05ab").is_err());
    }
}
