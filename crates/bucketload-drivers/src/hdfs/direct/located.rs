//! Where the blocks of a file are: the name node's answer to `getBlockLocations`, read where it lies
//! (`hdfs.proto`: `LocatedBlocksProto`, `LocatedBlockProto`, `DatanodeIDProto`).

use std::net::SocketAddr;

use bucketload_core::error::{ErrorKind, OpError};

use super::proto::{Fields, Malformed};

/// The answer for one file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Located<'a> {
    /// Bytes of the file.
    pub(super) length: u64,
    /// Whether only the library reads it: it is encrypted, erasure-coded or still being written.
    pub(super) special: bool,
    /// What they are read from.
    pub(super) message: &'a [u8],
}

/// A block of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Block<'a> {
    /// Offset of its first byte in the file.
    pub(super) offset: u64,
    /// Its bytes.
    pub(super) length: u64,
    /// `ExtendedBlockProto`, as the data node wants it back.
    pub(super) id: &'a [u8],
    /// `TokenProto`, as the data node wants it back.
    pub(super) token: &'a [u8],
    /// What they are read from.
    pub(super) message: &'a [u8],
}

impl From<Malformed> for OpError {
    #[cold]
    fn from(_: Malformed) -> Self {
        Self::new(
            ErrorKind::Protocol,
            "the answer is not what Hadoop's protocol says; is this a name node's RPC port?",
        )
    }
}

impl<'a> Located<'a> {
    /// Reads `GetBlockLocationsResponseProto`; `None` when there is no such file.
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
        let mut located = Self {
            message,
            ..Self::default()
        };
        for field in Fields(message) {
            match field? {
                (1, length) => located.length = length.number(),
                (3, under_construction) => located.special |= under_construction.number() != 0,
                // Encryption, erasure coding.
                (6 | 7, _) => located.special = true,
                _ => {}
            }
        }
        Ok(Some(located))
    }

    /// The block that holds byte `at`.
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
        for field in Fields(message) {
            match field? {
                (1, id) => block.id = id.bytes(),
                (2, offset) => block.offset = offset.number(),
                (5, token) => block.token = token.bytes(),
                _ => {}
            }
        }
        for field in Fields(block.id) {
            if let (4, length) = field? {
                block.length = length.number();
            }
        }
        Ok(block)
    }

    /// The data nodes that hold it, the nearest first.
    pub(super) fn nodes(&self) -> impl Iterator<Item = Result<SocketAddr, Malformed>> + use<'a> {
        Fields(self.message).filter_map(|field| match field {
            Ok((3, node)) => Some(address(node.bytes())),
            Ok(_) => None,
            Err(malformed) => Some(Err(malformed)),
        })
    }
}

/// Where the data node of a `DatanodeInfoProto` gives blocks.
fn address(info: &[u8]) -> Result<SocketAddr, Malformed> {
    let mut found = (None, 0);
    for field in Fields(info) {
        if let (1, id) = field? {
            for field in Fields(id.bytes()) {
                match field? {
                    (1, ip) => found.0 = ip.text().parse().ok(),
                    (4, port) => found.1 = port.number(),
                    _ => {}
                }
            }
        }
    }
    let ip = found.0.ok_or(Malformed)?;
    let port = u16::try_from(found.1).map_err(|_| Malformed)?;
    Ok(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::super::proto::{put_bytes, put_number};
    use super::Located;

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
        let located = Located::parse(&answer).unwrap().unwrap();
        assert_eq!((located.length, located.special), (150, false));
        let at = |at| located.block_at(at).unwrap().map(|block| block.offset);
        assert_eq!(
            [0, 99, 100, 149, 150].map(at),
            [Some(0), Some(0), Some(100), Some(100), None]
        );
        let block = located.block_at(120).unwrap().unwrap();
        assert_eq!((block.length, block.token), (50, &b"token"[..]));
        let nodes: Vec<_> = block
            .nodes()
            .map(|node| node.unwrap().to_string())
            .collect();
        assert_eq!(nodes, ["10.0.0.1:9866", "10.0.0.2:9867"]);
    }

    #[test]
    fn special_files_are_told_apart() {
        assert!(Located::parse(b"").unwrap().is_none());
        for (parts, numbers) in [
            (&[][..], &[(3, 1)][..]),
            (&[(6, &b"key"[..])][..], &[][..]),
            (&[(7, &b"ec"[..])][..], &[][..]),
        ] {
            let answer = message(&[(1, &message(parts, numbers))], &[]);
            assert!(Located::parse(&answer).unwrap().unwrap().special);
        }
        assert!(Located::parse(b"\x0a\x05ab").is_err());
    }
}
