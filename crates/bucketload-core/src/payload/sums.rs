//! Checksums of the arena, stored beside it, so that long runs of content can be verified without reading the
//! arena.
//!
//! A byte comparison reads two streams, one of them from the last-level cache. A checksum reads only the
//! received bytes while they are in the second-level cache, which is faster:
//!
//! ```text
//! arena   0 ──────── a ═════════════════════ b ─────────
//! kept           sums of this part, compared with those of the received bytes a..b
//! ```
//!
//! Two kinds: [`lanes`] if the processor can multiply in vectors of 256 or 512 bits, otherwise [`crc`].

mod crc;
#[cfg(target_arch = "x86_64")]
mod lanes;

/// Runs shorter than this many bytes are compared byte by byte: the overhead of the checksums costs as much
/// as comparing several thousand bytes.
pub(super) const LONG: usize = 8 * 1024;

/// The sums of one arena.
pub(super) struct Sums(Kind);

enum Kind {
    #[cfg(target_arch = "x86_64")]
    Lanes(lanes::Sums),
    Crc(crc::Sums),
}

impl Sums {
    pub(super) fn of(arena: &[u8]) -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(sums) = lanes::Sums::of(arena) {
            return Self(Kind::Lanes(sums));
        }
        Self(Kind::Crc(crc::Sums::of(arena)))
    }

    /// Whether `bytes` equal those at `from` in `arena`, from which the sums were computed.
    ///
    /// # Panics
    /// If the arena is too short.
    pub(super) fn matches(&self, arena: &[u8], from: usize, bytes: &[u8]) -> bool {
        match &self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Lanes(sums) => sums.matches(arena, from, bytes),
            Kind::Crc(sums) => sums.matches(arena, from, bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    //! Requirements on every kind: a run matches itself and nothing else.

    use proptest::prelude::*;

    use super::{Kind, Sums, crc};

    fn kinds(arena: &[u8]) -> Vec<Sums> {
        let mut kinds = vec![Kind::Crc(crc::Sums::of(arena))];
        #[cfg(target_arch = "x86_64")]
        kinds.extend(super::lanes::Sums::all(arena).into_iter().map(Kind::Lanes));
        kinds.into_iter().map(Sums).collect()
    }

    proptest! {
        #[test]
        fn a_run_matches_itself_and_nothing_else(
            seed in any::<u64>(), len in 1usize..40_000,
            cut in (0.0f64..1.0, 0.0f64..1.0), flip in (0.0f64..1.0, 1u8..), shift in 1usize..9000,
        ) {
            let word = |i: u64| crate::generate::rng::mix64(seed ^ i).to_le_bytes();
            let mut arena: Vec<u8> = (0..len as u64 / 8 + 1).flat_map(word).collect();
            arena.truncate(len);
            let from = (cut.0 * arena.len() as f64) as usize;
            let len = (cut.1 * (arena.len() - from) as f64) as usize;
            for sums in kinds(&arena) {
                let mut run = arena[from..from + len].to_vec();
                prop_assert!(sums.matches(&arena, from, &run));
                if let Some(last) = run.len().checked_sub(1) {
                    let at = ((flip.0 * run.len() as f64) as usize).min(last);
                    run[at] ^= flip.1;
                    prop_assert!(!sums.matches(&arena, from, &run));
                    run[at] ^= flip.1;
                }
                if len > 16 && from + shift + len <= arena.len() {
                    // Random bytes repeat with a probability of 2^-128.
                    prop_assert!(!sums.matches(&arena, from + shift, &run));
                }
            }
        }
    }

    #[test]
    fn the_end_of_the_arena_is_known() {
        for len in [1536, 3 * 4096, 3 * 4096 + 7] {
            let arena = vec![3; len];
            for sums in kinds(&arena) {
                assert!(sums.matches(&arena, 0, &arena));
                assert!(sums.matches(&arena, len, &[]));
                assert!(sums.matches(&arena, 1, &arena[1..]));
            }
        }
    }

    #[test]
    fn changes_that_cancel_out_in_a_plain_sum_are_found() {
        let arena = vec![0; 5 * 4096];
        for sums in kinds(&arena) {
            for (bit, apart) in
                (0..8).flat_map(|bit| [64, 128, 512, 1024, 2048, 4096, 8192].map(|n| (bit, n)))
            {
                for at in [4096 + 7, 4096 + 3] {
                    let mut run = arena.clone();
                    run[at] ^= 1 << bit;
                    run[at + apart] ^= 1 << bit;
                    assert!(!sums.matches(&arena, 0, &run), "{bit} {apart} {at}");
                    // One word up, the other down by the same amount.
                    let word_end = (at + apart) / 8 * 8 + 8;
                    run[at] = 1 << bit;
                    run[at + apart] = (1u8 << bit).wrapping_neg();
                    run[at + apart + 1..word_end].fill(255);
                    assert!(!sums.matches(&arena, 0, &run), "{bit} {apart} {at}");
                }
            }
        }
    }

    #[test]
    fn pieces_in_another_order_are_found() {
        let word = |i: u64| crate::generate::rng::mix64(i).to_le_bytes();
        let arena: Vec<u8> = (0..4096).flat_map(word).collect();
        for sums in kinds(&arena) {
            let swaps = [
                (64, 64),
                (64, 1024),
                (512, 2048),
                (1024, 1024),
                (2048, 2048),
                (4096, 8192),
            ];
            for (piece, apart) in swaps {
                let mut run = arena.clone();
                let (left, right) = run[4096..].split_at_mut(apart);
                left[..piece].swap_with_slice(&mut right[..piece]);
                assert!(!sums.matches(&arena, 0, &run), "{piece} {apart}");
            }
        }
    }
}
