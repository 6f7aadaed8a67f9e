//! Random numbers for generated input.

/// SplitMix64 (Steele, Lea, Flood 2014).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// The next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// An exponentially distributed gap with this mean.
    pub(crate) fn gap(&mut self, mean: f64) -> f64 {
        let u = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        -(1.0 - u).ln() * mean
    }
}
