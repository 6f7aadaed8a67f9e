//! Stable hashes of names. They are the same on every machine and in every release, so that sampling and anonymised
//! keys can be compared between runs.

use sha2::{Digest, Sha256};

/// The first 128 bits of SHA-256 over the parts, each preceded by its length.
pub(crate) fn hash128(parts: &[&[u8]]) -> [u8; 16] {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    let mut out = [0; 16];
    out.copy_from_slice(&digest.finalize()[..16]);
    out
}

/// The first 64 bits of [`hash128`]; never 0, which stands for "none" in records.
pub(crate) fn hash64(parts: &[&[u8]]) -> u64 {
    first64(&hash128(parts)).max(1)
}

/// The first 64 bits of a hash.
pub(crate) fn first64(hash: &[u8; 16]) -> u64 {
    u64::from_le_bytes([
        hash[0], hash[1], hash[2], hash[3], hash[4], hash[5], hash[6], hash[7],
    ])
}
