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

/// Something that operations of an interval may be, such as slow: how many chance allows.
#[derive(Clone, Copy, Debug)]
struct Chance {
    /// Counts it in an interval.
    count: fn(&Slot) -> u64,
    /// Its share in the baseline, with one operation of each kind added, so it is neither 0 nor 1.
    share: f64,
    /// The largest count in an interval of the baseline that chance alone does not explain.
    most: u64,
}

impl Chance {
    fn of(baseline: &[Slot], count: fn(&Slot) -> u64) -> Self {
        let such: u64 = baseline.iter().map(count).sum();
        let ended: u64 = baseline.iter().map(ended).sum();
        let share = (such + 1) as f64 / (ended + 2) as f64;
        Self {
            count,
            share,
            most: 1,
        }
    }

    /// Whether the interval has more of it than chance explains, with `slack` times the share.
    fn exceeds(&self, slot: &Slot, slack: u64) -> bool {
        let n = (self.count)(slot);
        n > self.most
            && Binomial::new((self.share * slack as f64).min(1.0), ended(slot))
                .is_ok_and(|law| law.sf(n - 1) < ALPHA)
    }
}

const fn ended(slot: &Slot) -> u64 {
    slot.ok + slot.failed
}

/// The band.
#[derive(Clone, Debug)]
pub(crate) struct Band {
    /// Slow or failed operations, and late or failed ones: few that are very slow, or many that are a little slow.
    chances: [Chance; 2],
    /// Largest backlog in the baseline.
    most_backlog: u64,
    /// Factor that makes the baseline itself stay inside.
    slack: u64,
    /// Offered per interval, and whether an interval of the baseline had no success.
    offered: f64,
    has_gaps: bool,
}

impl Band {
    /// The band of these intervals.
    pub(crate) fn of(baseline: &[Slot]) -> Self {
        let offered: u64 = baseline.iter().map(|slot| slot.offered).sum();
        let mut band = Self {
            chances: [
                Chance::of(baseline, |slot| slot.slow + slot.failed),
                Chance::of(baseline, |slot| slot.late + slot.failed),
            ],
            most_backlog: baseline.iter().map(|slot| slot.backlog).max().unwrap_or(0),
            slack: 1,
            offered: offered as f64 / baseline.len().max(1) as f64,
            has_gaps: baseline.iter().any(|slot| slot.ok == 0),
        };
        // Lonely intervals are not what the band is made for; the rest is.
        let out = band.out(baseline);
        for chance in &mut band.chances {
            let seen = baseline.iter().zip(&out).filter(|(_, out)| **out);
            chance.most = seen
                .map(|(slot, _)| (chance.count)(slot))
                .max()
                .unwrap_or(1)
                .max(1);
        }
        while band.slack < 64 && band.out(baseline).contains(&true) {
            band.slack *= 2;
        }
        band
    }

    /// Whether the interval alone is out.
    fn is_out(&self, slot: &Slot) -> bool {
        let piled = slot.backlog > self.slack * (self.most_backlog + self.most_backlog / 2 + 5);
        // Poisson arrivals leave an interval empty with probability exp(-offered).
        let silent = slot.ok == 0 && !self.has_gaps && self.offered > -ALPHA.ln();
        piled
            || silent
            || self
                .chances
                .iter()
                .any(|chance| chance.exceeds(slot, self.slack))
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
