//! Division by a constant divisor, for the request path.

/// A divisor of at least 1 with its inverse. A multiplication takes 3 or 4 cycles where a division takes up
/// to 26 for 32 bits and 88 for 64 bits (Fog, "Instruction tables", Skylake).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Divisor {
    by: u64,
    /// 2^64 divided by `by`, rounded down (one less if `by` is a power of two).
    inverse: u64,
}

impl Divisor {
    /// Creates a divisor.
    ///
    /// # Panics
    /// If `by` is 0.
    pub(crate) const fn new(by: u64) -> Self {
        Self {
            by,
            inverse: u64::MAX / by,
        }
    }

    /// The divisor as a plain number.
    #[inline]
    pub(crate) const fn by(self) -> u64 {
        self.by
    }

    /// `n` divided by the divisor, rounded down. The stored inverse is less than 1 below the true one, so its
    /// product with `n`, divided by 2^64, is the quotient or one less.
    #[inline]
    pub(crate) const fn quotient(self, n: u64) -> u64 {
        let least = ((n as u128 * self.inverse as u128) >> 64) as u64;
        least + (n - least * self.by >= self.by) as u64
    }

    /// `n` modulo the divisor.
    #[inline]
    pub(crate) const fn remainder(self, n: u64) -> u64 {
        n - self.quotient(n) * self.by
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Divisor;

    proptest! {
        #[test]
        fn divides_like_the_division_operator(
            by in prop_oneof![1u64..1000, 1u64..1 << 40, 1u64.., (0u32..64).prop_map(|bit| 1 << bit)],
            anywhere in any::<u64>(),
            beside in 0u64..3,
        ) {
            let divisor = Divisor::new(by);
            // Multiples of the divisor, their neighbours and arbitrary numbers.
            let multiple = anywhere / by * by;
            for n in [anywhere, multiple.saturating_add(beside).saturating_sub(1), 0, u64::MAX] {
                prop_assert_eq!(divisor.quotient(n), n / by);
                prop_assert_eq!(divisor.remainder(n), n % by);
            }
        }
    }
}
