//! The one-word result of a comparison (docs/spec/statistics.md section 5).

use serde::{Deserialize, Serialize};

use super::ratio::Interval;

/// The default practical margin: differences below 5 % do not matter.
pub const DEFAULT_MARGIN: f64 = 0.05;

/// Which direction is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Throughput.
    Higher,
    /// Latency, cost, errors.
    Lower,
}

/// The verdict on one quantity, or on a whole comparison: B relative to A.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    strum::Display,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Decision {
    /// B is better by more than the margin.
    Faster,
    /// A and B differ by less than the margin.
    Equivalent,
    /// The runs do not decide.
    Inconclusive,
    /// B is worse by more than the margin.
    Slower,
}

impl Decision {
    /// The word as printed.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Judges `interval`, a ratio (`neutral` 1) or a difference (`neutral` 0), at significance `alpha` (0.05 for
/// 95 % intervals). `adjusted_p` is its p-value corrected for multiple comparisons.
///
/// `faster` and `slower` need a significant difference whose estimate exceeds the margin; `equivalent` needs
/// the whole interval within the margin. A significance test alone would call any difference real given
/// enough runs, and would never call two systems equal.
#[must_use]
pub fn decide(
    interval: &Interval,
    neutral: f64,
    adjusted_p: f64,
    alpha: f64,
    better: Better,
    margin: f64,
) -> Decision {
    let distance = interval.estimate - neutral;
    let inside = |value: f64| (value - neutral).abs() <= margin;
    if adjusted_p <= alpha && distance.abs() > margin {
        let higher = distance > 0.0;
        if higher == (better == Better::Higher) {
            Decision::Faster
        } else {
            Decision::Slower
        }
    } else if inside(interval.low) && inside(interval.high) {
        Decision::Equivalent
    } else {
        Decision::Inconclusive
    }
}

/// The word for a whole comparison, from the words of all quantities and of the primary ones among them:
/// `slower` if anything is slower; else `faster` if a primary quantity is faster; else `equivalent` if all
/// primary ones are; else `inconclusive`.
#[must_use]
pub fn overall(all: &[Decision], primary: &[Decision]) -> Decision {
    if all.contains(&Decision::Slower) {
        Decision::Slower
    } else if primary.contains(&Decision::Faster) {
        Decision::Faster
    } else if !primary.is_empty() && primary.iter().all(|d| *d == Decision::Equivalent) {
        Decision::Equivalent
    } else {
        Decision::Inconclusive
    }
}

#[cfg(test)]
mod tests {
    use super::{Better, Decision, decide, overall};
    use crate::stats::ratio::Interval;

    fn word(low: f64, estimate: f64, high: f64, p: f64, better: Better) -> Decision {
        let interval = Interval {
            estimate,
            low,
            high,
            p_value: p,
            df: 8.0,
        };
        decide(&interval, 1.0, p, 0.05, better, 0.05)
    }

    #[test]
    fn words_need_significance_and_size() {
        use Better::{Higher, Lower};
        assert_eq!(word(1.06, 1.1, 1.14, 0.001, Higher), Decision::Faster);
        assert_eq!(word(1.06, 1.1, 1.14, 0.001, Lower), Decision::Slower);
        assert_eq!(word(0.86, 0.9, 0.94, 0.001, Higher), Decision::Slower);
        assert_eq!(word(0.86, 0.9, 0.94, 0.001, Lower), Decision::Faster);
        // Significant but too small to matter, and entirely within the margin.
        assert_eq!(word(1.01, 1.02, 1.03, 0.001, Lower), Decision::Equivalent);
        assert_eq!(word(1.01, 1.04, 1.07, 0.01, Lower), Decision::Inconclusive);
        // Large, but not significant after correction.
        assert_eq!(word(1.01, 1.2, 1.4, 0.2, Lower), Decision::Inconclusive);
        assert_eq!(word(0.97, 1.0, 1.03, 0.9, Lower), Decision::Equivalent);
    }

    #[test]
    fn one_slower_quantity_makes_the_decision_slower() {
        use Decision::{Equivalent, Faster, Inconclusive, Slower};
        assert_eq!(overall(&[Equivalent, Slower], &[Equivalent]), Slower);
        assert_eq!(overall(&[Faster, Inconclusive], &[Faster]), Faster);
        assert_eq!(overall(&[Faster, Equivalent], &[Equivalent]), Equivalent);
        assert_eq!(
            overall(&[Inconclusive], &[Inconclusive, Equivalent]),
            Inconclusive
        );
        assert_eq!(overall(&[], &[]), Inconclusive);
    }
}
