//! The offset of an agent's clock from the coordinator's, with its error bound.
//!
//! ```text
//!  coordinator  t0 ───────────────────────────── t3
//!                  ╲ ping                 pong ╱
//!  agent            t1 ───────────────────── t2
//! ```
//!
//! As in NTP (RFC 5905 section 8): offset = ((t1 - t0) + (t2 - t3)) / 2. However the delay splits between
//! the two directions, the error is at most half of the round trip (t3 - t0) - (t2 - t1), so the exchange
//! with the shortest round trip is the most accurate. Clocks drift, so the bound of an exchange grows with
//! its age.

use std::collections::VecDeque;

/// Assumed maximum drift between two clocks, parts per million. Crystals are specified to about 50 ppm each;
/// a clock that NTP steers is far better.
pub const DRIFT_PPM: u64 = 100;
/// Number of exchanges kept.
const KEPT: usize = 64;

/// The clock offset of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offset {
    /// The agent's run clock minus the coordinator's, nanoseconds.
    pub offset_ns: i64,
    /// Maximum error of the offset, nanoseconds.
    pub bound_ns: u64,
}

/// One ping and its answer.
#[derive(Clone, Copy, Debug)]
struct Exchange {
    at_ns: u64,
    offset_ns: i64,
    round_trip_ns: u64,
}

/// Estimates the offset from the latest exchanges.
#[derive(Debug, Default)]
pub struct OffsetEstimate {
    exchanges: VecDeque<Exchange>,
}

impl OffsetEstimate {
    /// Adds an exchange: sent at `t0` and its answer received at `t3` on this clock, received at `t1` and
    /// answered at `t2` on the other clock, all in nanoseconds. Returns the round trip.
    pub fn add(&mut self, t0: u64, t1: u64, t2: u64, t3: u64) -> u64 {
        let processing_ns = t2.saturating_sub(t1);
        let round_trip_ns = t3.saturating_sub(t0).saturating_sub(processing_ns);
        let out = i128::from(t1) - i128::from(t0);
        let back = i128::from(t2) - i128::from(t3);
        let offset = (out + back).div_euclid(2);
        if self.exchanges.len() == KEPT {
            self.exchanges.pop_front();
        }
        self.exchanges.push_back(Exchange {
            at_ns: t3,
            offset_ns: i64::try_from(offset).unwrap_or_default(),
            round_trip_ns,
        });
        round_trip_ns
    }

    /// Number of exchanges so far, at most 64.
    #[must_use]
    pub fn exchanges(&self) -> usize {
        self.exchanges.len()
    }

    /// The best estimate at `now_ns`; `None` before the first exchange.
    #[must_use]
    pub fn at(&self, now_ns: u64) -> Option<Offset> {
        let known = self.exchanges.iter().map(|exchange| {
            let age_ns = now_ns.saturating_sub(exchange.at_ns);
            Offset {
                offset_ns: exchange.offset_ns,
                // Half of an odd round trip is rounded up.
                bound_ns: exchange.round_trip_ns.div_ceil(2) + age_ns / 1_000_000 * DRIFT_PPM,
            }
        });
        known.min_by_key(|offset| offset.bound_ns)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{DRIFT_PPM, OffsetEstimate};

    proptest! {
        /// Holds for any delay in either direction.
        #[test]
        fn the_true_offset_lies_within_the_bound(
            offset in -1_000_000_000i64..1_000_000_000,
            ways in prop::collection::vec((1u64..300_000_000, 0u64..10_000, 1u64..300_000_000), 1..80),
        ) {
            let mut estimate = OffsetEstimate::default();
            let mut now = 10_000_000_000u64;
            for (out, busy, back) in ways {
                let t0 = now;
                let t1 = (t0 + out).saturating_add_signed(offset);
                let t2 = t1 + busy;
                let t3 = t0 + out + busy + back;
                prop_assert_eq!(estimate.add(t0, t1, t2, t3), out + back);
                now = t3 + 1_000;
                let known = estimate.at(now).unwrap();
                prop_assert!(known.offset_ns.abs_diff(offset) <= known.bound_ns);
            }
        }
    }

    #[test]
    fn the_shortest_round_trip_wins_until_it_is_too_old() {
        let mut estimate = OffsetEstimate::default();
        assert_eq!(estimate.at(5), None);
        // A round trip of 2 µs, offset 0; then one of 10 µs, lopsided by 4 µs.
        estimate.add(1_000, 2_000, 2_000, 3_000);
        estimate.add(10_000, 19_000, 19_000, 20_000);
        let known = estimate.at(20_000).unwrap();
        assert_eq!((known.offset_ns, known.bound_ns), (0, 1_000));
        // A second later the first may be off by 100 µs more than a fresh exchange of 10 µs.
        let later = 1_000_000_000;
        estimate.add(later, later + 9_000, later + 9_000, later + 10_000);
        let known = estimate.at(later + 10_000).unwrap();
        assert_eq!((known.offset_ns, known.bound_ns), (4_000, 5_000));
        let aged = estimate.at(later + 10_000 + 1_000_000_000).unwrap();
        assert_eq!(aged.bound_ns, 5_000 + 1_000 * DRIFT_PPM);
    }
}
