//! Counter-based random numbers.

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
