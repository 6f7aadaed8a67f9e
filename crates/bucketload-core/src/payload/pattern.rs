//! The data pattern "timestamp" of IOR and mdtest (docs/spec/io500-mdworkbench.md section A.2).
//!
//! A rank has one buffer per tree of files and writes all of its transfers from it. Word `i` of the buffer is
//! `(rank << 32) | (seed + i)`, little endian, with `seed + i` sign-extended. The bytes after the last word
//! are the low bytes of their own indices. Content therefore identifies its writer but not its position:
//! every transfer is the same, easy to compress and to deduplicate.

use serde::{Deserialize, Serialize};

use crate::plan::ranks::split_key;

/// Number of trees of files that may have their own buffers: the first key sets of a plan.
const SETS: usize = 5;

/// The buffers of all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pattern {
    /// Number of ranks.
    pub ranks: u32,
    /// The buffers by key set.
    pub sets: [PatternSet; SETS],
}

/// The buffers of one key set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatternSet {
    /// Seed of the words.
    pub seed: i32,
    /// Length of a rank's buffer, bytes; 0 for none.
    pub len: u64,
    /// Whether the buffers of all ranks alternate within one file.
    pub interleaved: bool,
}

/// How buffers repeat within an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffer {
    /// Buffer length in bytes; 0 if nothing is written.
    pub(super) len: u64,
    /// Number of buffers that take turns.
    pub(super) turns: u32,
}

impl Buffer {
    const NONE: Self = Self { len: 0, turns: 1 };

    /// Bytes from object offset `offset` to the end of the buffer there.
    pub(super) const fn left(self, offset: u64) -> u64 {
        match self.len {
            0 => 0,
            len => len - offset % len,
        }
    }

    /// Position of the byte at object offset `offset`, relative to the first buffer.
    pub(super) const fn at(self, offset: u64) -> u64 {
        if self.len == 0 {
            return 0;
        }
        let turn = offset / self.len % self.turns as u64;
        turn * self.len + offset % self.len
    }
}

impl Pattern {
    /// Total bytes of all buffers.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        let of_rank: u64 = self.sets.iter().map(|set| set.len).sum();
        of_rank * u64::from(self.ranks)
    }

    /// All buffers, one after another.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.total_bytes() as usize);
        for set in &self.sets {
            for rank in 0..self.ranks {
                let words = set.len / 8;
                for i in 0..words {
                    out.extend_from_slice(&word(rank, set.seed, i).to_le_bytes());
                }
                out.extend((words * 8..set.len).map(|at| at as u8));
            }
        }
        out
    }

    /// The first byte of `have` that is not that of the buffers at `at` of [`Pattern::bytes`]. `have` ends with a buffer
    /// at the latest, and `bytes` are those of the buffers.
    ///
    /// Compares word by word with computed words, as IOR and mdtest do: their rates include that work, and IO500 scores
    /// those rates. Comparing memory is several times as fast and would raise the scores of fast file systems.
    pub(super) fn first_wrong(&self, bytes: &[u8], at: usize, have: &[u8]) -> Option<usize> {
        let (rank, set, inside) = self.buffer_at(at as u64)?;
        let bytewise = |from: usize, to: usize| {
            let mut pairs = have[from..to].iter().zip(&bytes[at + from..at + to]);
            Some(from + pairs.position(|(a, b)| a != b)?)
        };
        // Bytes before the first whole word, and after the last one.
        let head = (inside.next_multiple_of(8) - inside) as usize;
        let head = head.min(have.len());
        let words = (set.len - set.len % 8).saturating_sub(inside + head as u64) / 8;
        let words = (words as usize).min((have.len() - head) / 8);
        let tail = head + 8 * words;
        let first = (inside + head as u64) / 8;
        bytewise(0, head)
            .or_else(|| {
                let got = have[head..tail].chunks_exact(8);
                let mut got =
                    got.map(|chunk| u64::from_le_bytes(chunk.try_into().unwrap_or([0; 8])));
                let mut number = first;
                let wrong = got.position(|got| {
                    let differs = got != word(rank, set.seed, number);
                    number += 1;
                    differs
                })?;
                let from = head + 8 * wrong;
                bytewise(from, from + 8)
            })
            .or_else(|| bytewise(tail, have.len()))
    }

    /// The buffer at `at` of [`Pattern::bytes`]: its rank, its key set, and the position in it.
    fn buffer_at(&self, at: u64) -> Option<(u32, &PatternSet, u64)> {
        let mut left = at;
        for set in &self.sets {
            let all = set.len * u64::from(self.ranks);
            if left < all {
                return Some(((left / set.len) as u32, set, left % set.len));
            }
            left -= all;
        }
        None
    }

    /// Where the content of object `key` of key set `keyset` begins within [`Pattern::bytes`], and how it
    /// repeats.
    pub(super) fn locate(&self, keyset: u16, key: u64) -> (u64, Buffer) {
        let keyset = usize::from(keyset);
        let Some(set) = self.sets.get(keyset) else {
            return (0, Buffer::NONE);
        };
        let before: u64 = self.sets[..keyset].iter().map(|set| set.len).sum();
        let base = before * u64::from(self.ranks);
        match set.interleaved {
            true => (
                base,
                Buffer {
                    len: set.len,
                    turns: self.ranks.max(1),
                },
            ),
            false => {
                let rank = u64::from(split_key(key).0 % self.ranks.max(1));
                let buffer = Buffer {
                    len: set.len,
                    turns: 1,
                };
                (base + rank * set.len, buffer)
            }
        }
    }
}

/// Word `i` of the buffer of `rank`.
const fn word(rank: u32, seed: i32, i: u64) -> u64 {
    // C sign-extends an `int` when combining it with a 64-bit word.
    let low = seed.wrapping_add(i as i32) as i64 as u64;
    (rank as u64) << 32 | low
}

#[cfg(test)]
mod tests {
    use super::{Pattern, PatternSet, word};
    use crate::payload::{Arena, PayloadKind};
    use crate::plan::ranks::key_of;

    fn pattern(interleaved: bool) -> Pattern {
        let set = |seed, len, interleaved| PatternSet {
            seed,
            len,
            interleaved,
        };
        Pattern {
            ranks: 3,
            sets: [
                set(100, 64, false),
                set(-5, 47_008, interleaved),
                PatternSet::default(),
                set(7, 3901, false),
                PatternSet::default(),
            ],
        }
    }

    fn bytes(pattern: Pattern, keyset: u16, key: u64, size: u64) -> Vec<u8> {
        let arena = Arena::new(PayloadKind::Timestamp(pattern), 1);
        let content = arena.content(keyset, key, 0, size);
        let mut out = vec![0; size as usize];
        assert_eq!(content.fill(0, &mut out), size as usize);
        assert_eq!(content.verify(0, &out), Ok(()));
        out
    }

    /// docs/spec/io500-mdworkbench.md section A.2.
    #[test]
    fn words_hold_rank_and_seed_and_the_tail_counts_up() {
        let got = bytes(pattern(false), 3, key_of(2, 9), 3901);
        let words = |at: usize| u64::from_le_bytes(got[at * 8..at * 8 + 8].try_into().unwrap());
        assert_eq!(words(0), (2 << 32) | 7);
        assert_eq!(words(486), (2 << 32) | (7 + 486));
        // 3901 = 487 words and 5 bytes.
        assert_eq!(
            &got[3896..],
            [3896u32, 3897, 3898, 3899, 3900].map(|n| n as u8)
        );
        // The sign of a negative seed fills the upper half.
        assert_eq!(word(1, -5, 0), u64::MAX - 4);
        assert_eq!(word(1, -5, 5), 1 << 32);
    }

    #[test]
    fn another_rank_or_a_changed_byte_is_noticed() {
        let pattern = pattern(false);
        let mut got = bytes(pattern, 1, key_of(1, 0), 47_008);
        let arena = Arena::new(PayloadKind::Timestamp(pattern), 1);
        assert!(
            arena
                .content(1, key_of(2, 0), 0, 47_008)
                .verify(0, &got)
                .is_err()
        );
        got[47_007] ^= 1;
        let content = arena.content(1, key_of(1, 0), 0, 47_008);
        assert_eq!(content.verify(0, &got), Err(47_007));
    }

    #[test]
    fn any_wrong_byte_of_any_range_is_found() {
        for interleaved in [false, true] {
            let pattern = pattern(interleaved);
            let arena = Arena::new(PayloadKind::Timestamp(pattern), 1);
            for (keyset, key, size) in [(1, key_of(1, 0), 3 * 47_008), (3, key_of(2, 5), 3901)] {
                let content = arena.content(keyset, key, 0, size);
                let whole = bytes(pattern, keyset, key, size);
                for from in [0, 1, 7, 8, 3889, 3896, 3900] {
                    let mut got = whole[from..].to_vec();
                    assert_eq!(content.verify(from as u64, &got), Ok(()), "{from}");
                    for at in [0, 3.min(got.len() - 1), got.len() / 2, got.len() - 1] {
                        got[at] ^= 0x80;
                        let wrong = Err((from + at) as u64);
                        assert_eq!(content.verify(from as u64, &got), wrong, "{from} {at}");
                        got[at] ^= 0x80;
                    }
                }
            }
        }
    }

    #[test]
    fn ranks_take_turns_in_a_file_that_they_share() {
        let pattern = pattern(true);
        let got = bytes(pattern, 1, 0, 47_008 * 5);
        for (turn, rank) in [(0usize, 0u32), (1, 1), (2, 2), (3, 0)] {
            let at = turn * 47_008 + 40;
            let word = u64::from_le_bytes(got[at..at + 8].try_into().unwrap());
            assert_eq!(word, u64::from(rank) << 32, "{turn}");
        }
        // One file per rank: the same buffer again and again.
        let easy = bytes(pattern, 0, key_of(1, 0), 200);
        assert_eq!(easy[..64], easy[64..128]);
    }
}
