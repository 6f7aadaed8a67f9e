//! The order in which the runs of two sides are measured.

use bucketload_core::generate::rng::mix64;

use crate::cli::compare::Order;

/// One of two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SideName {
    /// The baseline.
    A,
    /// The side that is compared with the baseline.
    B,
}

/// The side that goes first in pair number `pair`, from 0. ABBA alternates, starting with A, so that a drift that is
/// linear in time cancels over two pairs. Random tosses a coin for each pair.
pub(crate) fn first(order: Order, seed: u64, pair: u32) -> SideName {
    let a = match order {
        Order::Abba => pair.is_multiple_of(2),
        Order::Random => mix64(mix64(seed).wrapping_add(u64::from(pair))) >> 63 == 0,
    };
    if a { SideName::A } else { SideName::B }
}

/// The order of a pair.
pub(crate) fn of_pair(order: Order, seed: u64, pair: u32) -> [SideName; 2] {
    match first(order, seed, pair) {
        SideName::A => [SideName::A, SideName::B],
        SideName::B => [SideName::B, SideName::A],
    }
}

/// The order of `pairs` in words, for reports.
pub(crate) fn describe(order: Order, seed: u64, pairs: impl IntoIterator<Item = u32>) -> String {
    let list: Vec<&str> = pairs
        .into_iter()
        .map(|pair| match first(order, seed, pair) {
            SideName::A => "AB",
            SideName::B => "BA",
        })
        .collect();
    match order {
        Order::Abba => format!("ABBA ({})", list.join(" ")),
        Order::Random => format!("random pairs, seed {seed} ({})", list.join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::{SideName, describe, first};
    use crate::cli::compare::Order;

    #[test]
    fn abba_cancels_a_linear_drift() {
        assert_eq!(describe(Order::Abba, 1, 0..5), "ABBA (AB BA AB BA AB)");
        // Positions of A and B over four pairs have the same sum.
        let (mut a, mut b) = (0, 0);
        for pair in 0..4 {
            let (one, two) = (2 * pair, 2 * pair + 1);
            match first(Order::Abba, 1, pair) {
                SideName::A => (a, b) = (a + one, b + two),
                SideName::B => (a, b) = (a + two, b + one),
            }
        }
        assert_eq!(a, b);
    }

    #[test]
    fn random_pairs_follow_the_seed_and_are_balanced() {
        assert_eq!(
            describe(Order::Random, 7, 0..9),
            describe(Order::Random, 7, 0..9)
        );
        assert_ne!(
            describe(Order::Random, 7, 0..9),
            describe(Order::Random, 8, 0..9)
        );
        let heads = (0..10_000)
            .filter(|&p| first(Order::Random, 3, p) == SideName::A)
            .count();
        // 4 standard errors of a fair coin.
        assert!((4_800..=5_200).contains(&heads), "{heads}");
    }
}
