//! Checksums of the arena's beginnings, for processors without wide vectors.
//!
//! The CRC-64/NVME of the arena's first n bytes is kept for every multiple of [`STEP`]. Continued over
//! the received bytes from the value before them, the CRC must arrive at the value after them:
//!
//! ```text
//! arena   0 ───────────── a ═══════════════ b ─────────
//! kept       s(a) ────────┘ received a..b   └── s(b) ?
//! ```
//!
//! Every change within 64 bits is found, any other but for one in 2^64.

use crc_fast::{CrcAlgorithm, Digest};

/// Bytes between the values kept: finding the one at any offset reads half as much on average.
const STEP: usize = 512;

/// The CRC after every [`STEP`] bytes of the arena.
pub(super) struct Sums(Box<[u64]>);

impl Sums {
    pub(super) fn of(arena: &[u8]) -> Self {
        let mut digest = Digest::new(CrcAlgorithm::Crc64Nvme);
        let mut sums = Vec::with_capacity(arena.len() / STEP + 1);
        for block in arena.chunks(STEP) {
            sums.push(digest.get_state());
            digest.update(block);
        }
        sums.push(digest.get_state());
        Self(sums.into())
    }

    /// The CRC of the first `n` bytes of `arena`, which the sums were made of.
    fn at(&self, arena: &[u8], n: usize) -> Digest {
        let block = n / STEP;
        let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc64Nvme, self.0[block]);
        digest.update(&arena[block * STEP..n]);
        digest
    }

    /// Whether `bytes` are those that stand at `from` in `arena`.
    ///
    /// # Panics
    /// When the arena is not long enough.
    pub(super) fn matches(&self, arena: &[u8], from: usize, bytes: &[u8]) -> bool {
        let mut digest = self.at(arena, from);
        digest.update(bytes);
        digest.get_state() == self.at(arena, from + bytes.len()).get_state()
    }
}
