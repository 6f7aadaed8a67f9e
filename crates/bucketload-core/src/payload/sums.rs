//! Checksums of the arena's beginnings: long runs of content are verified without reading the arena
//! beside them.
//!
//! A byte comparison reads two streams, one of them from the last-level cache; a CRC reads the
//! received bytes alone, while they are in the second-level cache, and is faster than either. The
//! CRC-64/NVME of the arena's first n bytes is kept for every multiple of [`STEP`]. Continued over
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

/// Runs shorter than this are compared byte by byte, in bytes: finding two values takes as long as
/// comparing some thousand bytes.
pub(super) const LONG: usize = 8 * 1024;

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{STEP, Sums};

    proptest! {
        #[test]
        fn a_run_matches_itself_and_nothing_else(
            arena in prop::collection::vec(any::<u8>(), 1..8 * STEP),
            cut in (0.0f64..1.0, 0.0f64..1.0), flip in (0.0f64..1.0, 1u8..), shift in 1usize..64,
        ) {
            let sums = Sums::of(&arena);
            let from = (cut.0 * arena.len() as f64) as usize;
            let len = (cut.1 * (arena.len() - from) as f64) as usize;
            let mut run = arena[from..from + len].to_vec();
            prop_assert!(sums.matches(&arena, from, &run));
            if let Some(last) = run.len().checked_sub(1) {
                let at = ((flip.0 * run.len() as f64) as usize).min(last);
                run[at] ^= flip.1;
                prop_assert!(!sums.matches(&arena, from, &run));
                run[at] ^= flip.1;
            }
            if len > 16 && from + shift + len <= arena.len() {
                // Random bytes repeat themselves with a probability of 2^-128.
                prop_assert!(!sums.matches(&arena, from + shift, &run));
            }
        }
    }

    #[test]
    fn the_end_of_the_arena_is_known() {
        let arena = vec![3; 3 * STEP];
        let sums = Sums::of(&arena);
        assert!(sums.matches(&arena, 0, &arena));
        assert!(sums.matches(&arena, 3 * STEP, &[]));
    }
}
