//! Sums of the arena's blocks in eight lanes of 64 bits, for processors with AVX-512 or AVX2.
//!
//! A block consists of rows of eight words. Each word `x` of a row updates its own lane, using the constant
//! `k` of its row and lane:
//!
//! ```text
//! sum   += x                            mod 2^64
//! mixed += low32(x ^ k) * high32(x ^ k) mod 2^64
//! ```
//!
//! There are constants for as many rows as fit in AVX-512's registers, a *group*. The next group uses the
//! same constants, and `mixed` is rotated in between. Blocks lie at multiples of [`BLOCK`] in the arena.
//! Partial blocks at either end of a run are compared byte by byte.
//!
//! Eight consecutive words fall into eight lanes, and a lane's `sum` changes if one of its words does: every
//! change within 57 bytes is found. Other changes must cancel out in both numbers of each lane they touch.
//! `mixed` is the function NH (Black, Halevi, Krawczyk, Krovetz, Rogaway, UMAC, CRYPTO '99, section 4) in the
//! form used by XXH3, with xor in place of addition.

use std::arch::x86_64::{
    __m256i, __m512i, _mm256_add_epi64, _mm256_loadu_si256, _mm256_mul_epu32, _mm256_or_si256,
    _mm256_setzero_si256, _mm256_slli_epi64, _mm256_srli_epi64, _mm256_testz_si256,
    _mm256_xor_si256, _mm512_add_epi64, _mm512_loadu_si512, _mm512_mul_epu32, _mm512_or_si512,
    _mm512_rol_epi64, _mm512_setzero_si512, _mm512_srli_epi64, _mm512_test_epi64_mask,
    _mm512_xor_si512,
};

use crate::generate::rng::mix64;

/// Bytes covered by one pair of sums.
const BLOCK: usize = 4096;
/// Words per row.
const LANES: usize = 8;
/// Rows per group.
const ROWS: usize = 16;
/// Bytes per group.
const GROUP: usize = ROWS * LANES * 8;
/// Bits by which `mixed` is rotated after each group.
const TURN: i32 = 21;

type Row = [u64; LANES];
type Block = [u8; BLOCK];

/// The constants of a group's rows and lanes. Any constants work as long as neither half repeats within a
/// lane.
static KEYS: [Row; ROWS] = {
    let mut keys = [[0; LANES]; ROWS];
    let mut i = 0;
    while i < ROWS * LANES {
        keys[i / LANES][i % LANES] = mix64(i as u64 + 1);
        i += 1;
    }
    keys
};

/// The sums of one block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Sum {
    sum: Row,
    mixed: Row,
}

impl Sum {
    fn of(block: &Block) -> Self {
        let mut sums = Self {
            sum: [0; LANES],
            mixed: [0; LANES],
        };
        let (words, _) = block.as_chunks::<8>();
        for (i, word) in words.iter().enumerate() {
            let (row, lane) = (i / LANES % ROWS, i % LANES);
            let x = u64::from_le_bytes(*word);
            let y = x ^ KEYS[row][lane];
            sums.sum[lane] = sums.sum[lane].wrapping_add(x);
            let product = (y & 0xffff_ffff) * (y >> 32);
            sums.mixed[lane] = sums.mixed[lane].wrapping_add(product);
            if row == ROWS - 1 {
                sums.mixed[lane] = sums.mixed[lane].rotate_left(TURN as u32);
            }
        }
        sums
    }
}

/// The sums of an arena's whole blocks.
pub(super) struct Sums {
    blocks: Box<[Sum]>,
    comparer: Comparer,
}

/// The instruction set used to compare blocks with their sums.
#[derive(Clone, Copy)]
enum Comparer {
    Avx512,
    Avx2,
}

impl Sums {
    /// `None` if the processor lacks the instructions.
    pub(super) fn of(arena: &[u8]) -> Option<Self> {
        let comparer = Comparer::all().next()?;
        Some(Self::made(arena, comparer))
    }

    fn made(arena: &[u8], comparer: Comparer) -> Self {
        let (blocks, _) = arena.as_chunks();
        Self {
            blocks: blocks.iter().map(Sum::of).collect(),
            comparer,
        }
    }

    /// One for each instruction set that the processor supports.
    #[cfg(test)]
    pub(super) fn all(arena: &[u8]) -> Vec<Self> {
        Comparer::all()
            .map(|comparer| Self::made(arena, comparer))
            .collect()
    }

    pub(super) fn matches(&self, arena: &[u8], from: usize, bytes: &[u8]) -> bool {
        let want = &arena[from..from + bytes.len()];
        let head = (from.next_multiple_of(BLOCK) - from).min(bytes.len());
        let (blocks, tail) = bytes[head..].as_chunks();
        let first = (from + head) / BLOCK;
        let sums = &self.blocks[first..first + blocks.len()];
        self.comparer.matches(sums, blocks)
            && bytes[..head] == want[..head]
            && *tail == want[want.len() - tail.len()..]
    }
}

impl Comparer {
    /// The supported instruction sets, fastest first.
    fn all() -> impl Iterator<Item = Self> {
        let avx512 = is_x86_feature_detected!("avx512f");
        let avx2 = is_x86_feature_detected!("avx2");
        [avx512.then_some(Self::Avx512), avx2.then_some(Self::Avx2)]
            .into_iter()
            .flatten()
    }

    fn matches(self, sums: &[Sum], blocks: &[Block]) -> bool {
        match self {
            // SAFETY: this variant is only created if the processor has AVX-512F.
            Self::Avx512 => unsafe { equal_avx512(sums, blocks) },
            // SAFETY: this variant is only created if the processor has AVX2.
            Self::Avx2 => unsafe { equal_avx2(sums, blocks) },
        }
    }
}

#[target_feature(enable = "avx512f")]
fn equal_avx512(sums: &[Sum], blocks: &[Block]) -> bool {
    let load = |row: &[u8; 64]| {
        // SAFETY: the reference covers 64 bytes, and the load requires no alignment.
        unsafe { _mm512_loadu_si512(row.as_ptr().cast()) }
    };
    let words = |row: &Row| {
        // SAFETY: as above.
        unsafe { _mm512_loadu_si512(row.as_ptr().cast()) }
    };
    let keys: [__m512i; ROWS] = KEYS.each_ref().map(words);
    let mut wrong = _mm512_setzero_si512();
    for (want, block) in sums.iter().zip(blocks) {
        let mut sum = _mm512_setzero_si512();
        let mut mixed = _mm512_setzero_si512();
        for group in block.as_chunks::<GROUP>().0 {
            for (row, key) in group.as_chunks().0.iter().zip(keys) {
                let x = load(row);
                let y = _mm512_xor_si512(x, key);
                sum = _mm512_add_epi64(sum, x);
                let product = _mm512_mul_epu32(y, _mm512_srli_epi64::<32>(y));
                mixed = _mm512_add_epi64(mixed, product);
            }
            mixed = _mm512_rol_epi64::<TURN>(mixed);
        }
        wrong = _mm512_or_si512(wrong, _mm512_xor_si512(sum, words(&want.sum)));
        wrong = _mm512_or_si512(wrong, _mm512_xor_si512(mixed, words(&want.mixed)));
    }
    _mm512_test_epi64_mask(wrong, wrong) == 0
}

#[target_feature(enable = "avx2")]
fn equal_avx2(sums: &[Sum], blocks: &[Block]) -> bool {
    let load = |half: &[u8; 32]| {
        // SAFETY: the reference covers 32 bytes, and the load requires no alignment.
        unsafe { _mm256_loadu_si256(half.as_ptr().cast()) }
    };
    let words = |half: &[u64; 4]| {
        // SAFETY: as above.
        unsafe { _mm256_loadu_si256(half.as_ptr().cast()) }
    };
    let mut wrong = _mm256_setzero_si256();
    for (want, block) in sums.iter().zip(blocks) {
        let mut sum: [__m256i; 2] = [_mm256_setzero_si256(); 2];
        let mut mixed = sum;
        for group in block.as_chunks::<GROUP>().0 {
            for (row, key) in group.as_chunks::<64>().0.iter().zip(&KEYS) {
                for half in 0..2 {
                    let x = load(&row.as_chunks().0[half]);
                    let y = _mm256_xor_si256(x, words(&key.as_chunks().0[half]));
                    sum[half] = _mm256_add_epi64(sum[half], x);
                    let product = _mm256_mul_epu32(y, _mm256_srli_epi64::<32>(y));
                    mixed[half] = _mm256_add_epi64(mixed[half], product);
                }
            }
            mixed = mixed.map(|lanes| {
                let up = _mm256_slli_epi64::<TURN>(lanes);
                _mm256_or_si256(up, _mm256_srli_epi64::<{ 64 - TURN }>(lanes))
            });
        }
        for half in 0..2 {
            let is = [sum[half], mixed[half]];
            let want = [&want.sum, &want.mixed].map(|row| words(&row.as_chunks().0[half]));
            wrong = _mm256_or_si256(wrong, _mm256_xor_si256(is[0], want[0]));
            wrong = _mm256_or_si256(wrong, _mm256_xor_si256(is[1], want[1]));
        }
    }
    _mm256_testz_si256(wrong, wrong) == 1
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{KEYS, LANES};

    #[test]
    fn neither_half_of_a_constant_repeats_within_a_lane() {
        for lane in 0..LANES {
            let low: HashSet<u32> = KEYS.iter().map(|row| row[lane] as u32).collect();
            let high: HashSet<u64> = KEYS.iter().map(|row| row[lane] >> 32).collect();
            assert_eq!((low.len(), high.len()), (KEYS.len(), KEYS.len()));
            assert!(!low.contains(&0) && !high.contains(&0));
        }
    }
}
