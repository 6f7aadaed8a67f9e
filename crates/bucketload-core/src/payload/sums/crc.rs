//! Checksums of the arena's prefixes, for processors without wide vectors.
//!
//! The CRC-64/NVME of the arena's first n bytes is stored for every multiple of [`STEP`]. Starting from the
//! stored value before the received bytes, the CRC over them must yield the value after them:
//!
//! ```text
//! arena   0 ───────────── a ═══════════════ b ─────────
//! kept       s(a) ────────┘ received a..b   └── s(b) ?
//! ```
//!
//! Every change confined to 64 bits is found, and any other change except with probability 2^-64.

use crc_fast::{CrcAlgorithm, Digest};

/// Bytes between stored values: computing the value at an arbitrary offset reads half as many on average.
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

    /// The CRC of the first `n` bytes of `arena`, from which the sums were computed.
    fn at(&self, arena: &[u8], n: usize) -> Digest {
        let block = n / STEP;
        let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc64Nvme, self.0[block]);
        digest.update(&arena[block * STEP..n]);
        digest
    }

    /// Whether `bytes` equal those at `from` in `arena`.
    ///
    /// # Panics
    /// If the arena is too short.
    pub(super) fn matches(&self, arena: &[u8], from: usize, bytes: &[u8]) -> bool {
        let mut digest = self.at(arena, from);
        digest.update(bytes);
        digest.get_state() == self.at(arena, from + bytes.len()).get_state()
    }
}
