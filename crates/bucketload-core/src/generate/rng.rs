//! Counter-based random numbers: Philox4x32-10 addressed by (seed, stream, index, draw).
//!
//! There is no generator state: the draws of operation `index` in one stream are the Philox blocks with the
//! 64-bit seed as key and this counter:
//!
//! ```text
//! word      0          1          2                         3
//!           index low  index high purpose.phase.scope       draw (0, 1, …: two 64-bit words each)
//! bits                            6       10    16
//! ```
//!
//! Streams are independent of one another, so a change in one (another metric, another mix entry) leaves all
//! others unchanged.

/// Stafford's variant 13 of the MurmurHash3 finaliser, as used by SplitMix64 (Steele, Lea, Flood
/// 2014): a bijection of 64-bit words with good avalanche.
#[inline]
#[must_use]
pub const fn mix64(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The inverse of [`mix64`]: multiplies by the inverses of its factors modulo 2^64.
#[inline]
#[must_use]
pub const fn unmix64(mut z: u64) -> u64 {
    z ^= (z >> 31) ^ (z >> 62);
    z = z.wrapping_mul(0x3196_42b2_d24d_8ec3);
    z ^= (z >> 27) ^ (z >> 54);
    z = z.wrapping_mul(0x96de_1b17_3f11_9089);
    z ^= (z >> 30) ^ (z >> 60);
    z.wrapping_sub(0x9e37_79b9_7f4a_7c15)
}

/// One Philox round: two 32x32→64 bit multiplications.
#[inline(always)]
const fn round(c: [u32; 4], k: [u32; 2]) -> [u32; 4] {
    let p0 = c[0] as u64 * 0xd251_1f53;
    let p1 = c[2] as u64 * 0xcd9e_8d57;
    [
        (p1 >> 32) as u32 ^ c[1] ^ k[0],
        p1 as u32,
        (p0 >> 32) as u32 ^ c[3] ^ k[1],
        p0 as u32,
    ]
}

/// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3",
/// SC 2011): 128 random bits from a 128-bit counter and a 64-bit key.
#[inline]
#[must_use]
pub const fn philox4x32_10(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let mut c = counter;
    let mut k = key;
    let mut i = 0;
    while i < 10 {
        c = round(c, k);
        k = [
            k[0].wrapping_add(0x9e37_79b9),
            k[1].wrapping_add(0xbb67_ae85),
        ];
        i += 1;
    }
    c
}

/// The decision that a stream of random numbers makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Purpose {
    /// Gaps between arrivals. Index: arrival.
    Arrival = 1,
    /// Rates of a random-rate process. Index: slot.
    Rate = 2,
    /// Phase of a periodic client. Index: client.
    ClientPhase = 3,
    /// Length of a batch. Index: batch.
    BatchLength = 4,
    /// Instants inside a batch. Index: batch.
    BatchSpread = 5,
    /// The entry of the mix. Index: operation.
    Choice = 6,
    /// The object. Index: operation.
    Key = 7,
    /// Size of a written object. Index: operation.
    Size = 8,
    /// The range to read. Index: operation.
    Range = 9,
    /// Think time. Index: iteration; draw: worker.
    Think = 10,
    /// Size of an initial object. Index: object; scope: key set.
    ObjectSize = 11,
    /// Scrambling permutation. Scope: key set.
    Scramble = 12,
    /// Source object of a copy whose key law chooses the destination. Index: operation.
    Source = 13,
    /// Number of operations of a job's stage. Index: stage of a job.
    StageLength = 14,
    /// Gaps between the operations of a stage. Index: operation.
    StageGap = 15,
    /// What a user of a language model keeps. Index: user.
    Profile = 16,
    /// A request of a user. Index: user; draw: request.
    Turn = 17,
}

/// A stream of random numbers: a purpose within a phase and a work (or, for decisions about the whole plan,
/// phase 0 and a key set).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream(u32);

impl Stream {
    /// Maximum number of distinguishable phases.
    pub const MAX_PHASES: usize = 1 << 10;

    /// The stream for `purpose` in `phase` and `scope` (a work or a key set).
    ///
    /// # Panics
    /// If `phase` is not below [`Stream::MAX_PHASES`].
    #[must_use]
    pub const fn new(purpose: Purpose, phase: u16, scope: u16) -> Self {
        assert!((phase as usize) < Self::MAX_PHASES);
        Self(((purpose as u32) << 26) | ((phase as u32) << 16) | scope as u32)
    }
}

/// 2^-53.
const ULP: f64 = 1.0 / (1u64 << 53) as f64;

/// A number in [0, 1) from the 53 high bits of `word`.
#[inline]
#[must_use]
pub const fn unit(word: u64) -> f64 {
    (word >> 11) as f64 * ULP
}

/// A number in the open interval (0, 1) from the 52 high bits of `word`: the middle of its cell,
/// at least 2^-53 and at most 1 - 2^-53.
#[inline]
#[must_use]
pub const fn open_unit(word: u64) -> f64 {
    ((word >> 12) as f64 + 0.5) * (2.0 * ULP)
}

/// The random numbers of one index of a stream, in order.
#[derive(Clone, Debug)]
pub struct Draws {
    key: [u32; 2],
    counter: [u32; 4],
    spare: u64,
    has_spare: bool,
}

impl Draws {
    /// The draws of `index` in `stream`.
    #[inline]
    #[must_use]
    pub const fn new(seed: u64, stream: Stream, index: u64) -> Self {
        Self::from_draw(seed, stream, index, 0)
    }

    /// Like [`Draws::new`], but starting at block number `draw`. Each block holds two words.
    #[inline]
    #[must_use]
    pub const fn from_draw(seed: u64, stream: Stream, index: u64, draw: u32) -> Self {
        Self {
            key: [seed as u32, (seed >> 32) as u32],
            counter: [index as u32, (index >> 32) as u32, stream.0, draw],
            spare: 0,
            has_spare: false,
        }
    }

    /// The next block as two words.
    #[inline]
    pub fn next_block(&mut self) -> [u64; 2] {
        let [a, b, c, d] = philox4x32_10(self.counter, self.key);
        self.counter[3] = self.counter[3].wrapping_add(1);
        [
            u64::from(a) | u64::from(b) << 32,
            u64::from(c) | u64::from(d) << 32,
        ]
    }

    /// The next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        if self.has_spare {
            self.has_spare = false;
            return self.spare;
        }
        let [first, second] = self.next_block();
        self.spare = second;
        self.has_spare = true;
        first
    }

    /// The next number in [0, 1), 53 bits.
    #[inline]
    pub fn next_unit(&mut self) -> f64 {
        unit(self.next_u64())
    }

    /// The next number in (0, 1), 52 bits.
    #[inline]
    pub fn next_open(&mut self) -> f64 {
        open_unit(self.next_u64())
    }

    /// A uniform integer below `n`, exactly uniform (Lemire, "Fast random integer generation in an
    /// interval", ACM TOMACS 2019).
    ///
    /// # Panics
    /// If `n` is 0.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "no integer is below 0");
        let mut product = u128::from(self.next_u64()) * u128::from(n);
        if (product as u64) < n {
            let reject = n.wrapping_neg() % n;
            while (product as u64) < reject {
                product = u128::from(self.next_u64()) * u128::from(n);
            }
        }
        (product >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::{Draws, Purpose, Stream, mix64, open_unit, philox4x32_10, unit, unmix64};

    #[test]
    fn unmix64_inverts_mix64() {
        for z in (0..1000).map(mix64).chain([0, 1, u64::MAX]) {
            assert_eq!(unmix64(mix64(z)), z);
        }
    }

    /// Known answers published with the Random123 library.
    #[test]
    fn philox_known_answers() {
        let zero = philox4x32_10([0; 4], [0; 2]);
        assert_eq!(zero, [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        let ones = philox4x32_10([u32::MAX; 4], [u32::MAX; 2]);
        assert_eq!(ones, [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        let pi = philox4x32_10(
            [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
            [0xa409_3822, 0x299f_31d0],
        );
        assert_eq!(pi, [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]);
    }

    #[test]
    fn streams_indices_and_draws_are_distinct() {
        let mut seen = std::collections::HashSet::new();
        for seed in [0, 1, 1 << 32] {
            for purpose in [Purpose::Key, Purpose::Size] {
                for (phase, scope) in [(0, 0), (0, 1), (1, 0), (1023, 65_535)] {
                    for index in [0, 1, 1 << 32] {
                        let mut draws = Draws::new(seed, Stream::new(purpose, phase, scope), index);
                        for _ in 0..4 {
                            assert!(seen.insert(draws.next_u64()));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_later_draw_is_addressable() {
        let stream = Stream::new(Purpose::Think, 0, 0);
        let mut all = Draws::new(3, stream, 9);
        let words: Vec<u64> = (0..8).map(|_| all.next_u64()).collect();
        let mut tail = Draws::from_draw(3, stream, 9, 2);
        assert_eq!([tail.next_u64(), tail.next_u64()], [words[4], words[5]]);
    }

    #[test]
    fn unit_intervals_keep_their_ends() {
        assert_eq!(unit(0), 0.0);
        assert!(unit(u64::MAX) < 1.0);
        assert!(open_unit(0) > 0.0);
        assert!(open_unit(u64::MAX) < 1.0);
    }

    #[test]
    fn below_is_uniform() {
        // Chi-square over 7 cells, 6 degrees of freedom: 22.5 is the 0.999 quantile.
        let mut draws = Draws::new(5, Stream::new(Purpose::Key, 0, 0), 0);
        let mut cells = [0f64; 7];
        for _ in 0..70_000 {
            cells[draws.below(7) as usize] += 1.0;
        }
        let chi2: f64 = cells.iter().map(|c| (c - 1e4).powi(2) / 1e4).sum();
        assert!(chi2 < 22.5, "{chi2}");
        // Just above half the range about every second word is rejected, and results stay in range.
        for _ in 0..1000 {
            assert!(draws.below((1 << 63) + 1) <= 1 << 63);
        }
    }
}
