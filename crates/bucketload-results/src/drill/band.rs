//! The baseline's band: which intervals are out of it (docs/spec/drills.md section 2).
//!
//! An interval is out if it has more slow or failed operations than chance explains, or if operations pile up. Chance is
//! binomial with the baseline's own share, at one in a million; what the baseline itself showed is always inside. One lonely
//! interval out is a hiccup of the machine, not a fault: only intervals that have another one next to them, or next but one,
//! count.

use statrs::distribution::{Binomial, DiscreteCDF as _};

use super::slots::Slot;

/// Probability of an interval that is out by chance.
const ALPHA: f64 = 1e-6;
/// How far the next interval may be that is out too.
const NEAR: usize = 2;

/// The band.
#[derive(Clone, Debug)]
pub(crate) struct Band {
    /// Share of slow or failed operations in the baseline, with one of each kind added, so it is never 0.
    share: f64,
    /// Most slow or failed operations in an interval of the baseline.
    most_bad: u64,
    /// Largest backlog in the baseline.
    most_backlog: u64,
    /// Factor on both that makes the baseline itself stay inside.
    slack: u64,
    /// Offered per interval, and whether an interval of the baseline had no success.
    offered: f64,
    has_gaps: bool,
}

impl Band {
    /// The band of these intervals.
    pub(crate) fn of(baseline: &[Slot]) -> Self {
        let (bad, ended) = baseline.iter().fold((0, 0), |(bad, ended), slot| {
            (bad + slot.slow + slot.failed, ended + slot.ok + slot.failed)
        });
        let offered: u64 = baseline.iter().map(|slot| slot.offered).sum();
        let mut band = Self {
            share: (bad + 1) as f64 / (ended + 2) as f64,
            most_bad: 0,
            most_backlog: baseline.iter().map(|slot| slot.backlog).max().unwrap_or(0),
            slack: 1,
            offered: offered as f64 / baseline.len().max(1) as f64,
            has_gaps: baseline.iter().any(|slot| slot.ok == 0),
        };
        // Lonely intervals are not what the band is made for; the rest is.
        let out = band.out(baseline);
        let seen = baseline.iter().zip(&out).filter(|(_, out)| **out);
        band.most_bad = seen
            .map(|(slot, _)| slot.slow + slot.failed)
            .max()
            .unwrap_or(0);
        while band.slack < 64 && band.out(baseline).contains(&true) {
            band.slack *= 2;
        }
        band
    }

    /// Whether the interval alone is out.
    fn is_out(&self, slot: &Slot) -> bool {
        let (bad, ended) = (slot.slow + slot.failed, slot.ok + slot.failed);
        // Chance: the probability of so many or more.
        let rare = bad > self.most_bad.max(1)
            && Binomial::new((self.share * self.slack as f64).min(1.0), ended)
                .is_ok_and(|law| law.sf(bad - 1) < ALPHA);
        let piled = slot.backlog > self.slack * (self.most_backlog + self.most_backlog / 2 + 5);
        // Poisson arrivals leave an interval empty with probability exp(-offered).
        let silent = slot.ok == 0 && !self.has_gaps && self.offered > -ALPHA.ln();
        rare || piled || silent
    }

    /// Whether each interval is out, lonely ones aside.
    pub(crate) fn out(&self, slots: &[Slot]) -> Vec<bool> {
        let alone: Vec<bool> = slots.iter().map(|slot| self.is_out(slot)).collect();
        let near = |i: usize| {
            let from = i.saturating_sub(NEAR);
            let to = (i + NEAR + 1).min(alone.len());
            (from..to).any(|j| j != i && alone[j])
        };
        (0..alone.len()).map(|i| alone[i] && near(i)).collect()
    }

    /// The largest backlog that is still inside.
    pub(crate) const fn backlog(&self) -> u64 {
        self.most_backlog
    }
}
