//! SHA-256, HMAC and hexadecimal digits as Signature Version 4 uses them.

use sha2::{Digest, Sha256};

/// A 32-byte digest or signature.
pub(crate) type Hash = [u8; 32];

/// HMAC-SHA256 with the key's two blocks absorbed beforehand.
#[derive(Clone)]
pub(crate) struct HmacKey {
    inner: Sha256,
    outer: Sha256,
}

impl HmacKey {
    /// Absorbs `key` (RFC 2104).
    pub(crate) fn new(key: &[u8]) -> Self {
        let mut block = [0; 64];
        if key.len() > 64 {
            block[..32].copy_from_slice(&Sha256::digest(key));
        } else {
            block[..key.len()].copy_from_slice(key);
        }
        let (mut inner, mut outer) = (Sha256::new(), Sha256::new());
        inner.update(block.map(|b| b ^ 0x36));
        outer.update(block.map(|b| b ^ 0x5c));
        Self { inner, outer }
    }

    /// The MAC of the concatenated `parts`.
    pub(crate) fn mac(&self, parts: &[&[u8]]) -> Hash {
        let mut inner = self.inner.clone();
        for part in parts {
            inner.update(part);
        }
        let mut outer = self.outer.clone();
        outer.update(inner.finalize());
        outer.finalize().into()
    }
}

/// The key that signs requests of `date` (`YYYYMMDD`) in `region`.
pub(crate) fn signing_key(secret: &str, date: &str, region: &str) -> HmacKey {
    let start = [b"AWS4", secret.as_bytes()].concat();
    let mut key = HmacKey::new(&start).mac(&[date.as_bytes()]);
    for part in [region, "s3", "aws4_request"] {
        key = HmacKey::new(&key).mac(&[part.as_bytes()]);
    }
    HmacKey::new(&key)
}

/// Lower-case hexadecimal digits of `hash`.
pub(crate) fn to_hex(hash: &Hash) -> [u8; 64] {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut out = [0; 64];
    for (pair, byte) in out.chunks_exact_mut(2).zip(hash) {
        pair[0] = HEX[usize::from(byte >> 4)];
        pair[1] = HEX[usize::from(byte & 15)];
    }
    out
}

/// Reads 64 lower-case hexadecimal digits.
pub(crate) fn from_hex(text: &[u8]) -> Option<Hash> {
    let digit = |c: u8| match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'a'..=b'f' => Some(c - b'a' + 10),
        _ => None,
    };
    let mut hash = [0; 32];
    if text.len() != 64 {
        return None;
    }
    for (byte, pair) in hash.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(hash)
}

/// Compares in time that does not depend on where the two differ.
pub(crate) fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |diff, (x, y)| diff | (x ^ y)) == 0
}
