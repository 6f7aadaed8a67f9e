//! The theoretical properties of a work's operations: shares of the mix, popularity, bytes.

use super::OpGen;
use super::entry::{Keys, Role};
use crate::generate::popularity::Shares;
use crate::op::OpClass;

impl OpGen {
    /// Share of operations that belong to mix entry `entry`.
    ///
    /// # Panics
    /// If the mix has no such entry.
    #[must_use]
    pub fn probability(&self, entry: u16) -> f64 {
        self.entries[usize::from(entry)].probability
    }

    /// Theoretical popularity of the objects that mix entry `entry` works on; `None` for fresh objects, which
    /// are each used once.
    ///
    /// # Panics
    /// If the mix has no such entry.
    #[must_use]
    pub fn shares(&self, entry: u16) -> Option<Shares> {
        match &self.entries[usize::from(entry)].keys {
            Keys::Sequential { count, .. } => Some(Shares::uniform(count.by())),
            Keys::Chained { count } => Some(Shares::uniform(*count)),
            Keys::Fresh => None,
            Keys::Ranked { popularity, .. } => Some(popularity.shares()),
            Keys::Latest(latest) => Some(latest.shares()),
        }
    }

    /// Expected object bytes that one operation of mix entry `entry` transfers.
    ///
    /// Reads are weighted by popularity: the sizes of the 1000 most popular objects exactly, all others with
    /// the mean of the size law. Ranges and parts count as the smaller of the mean length and the mean size.
    ///
    /// # Panics
    /// If the mix has no such entry.
    #[must_use]
    pub fn mean_bytes(&self, entry: u16) -> f64 {
        let entry = &self.entries[usize::from(entry)];
        let set = &self.sets[entry.set].1;
        let mean = set.sizes().mean();
        match entry.role {
            Role::WriteFresh | Role::Overwrite => {
                entry.sizes.as_ref().map_or(mean, |sizes| sizes.mean())
            }
            Role::WriteInitial | Role::ReadVersion => mean,
            Role::Read if entry.class == OpClass::Get => match &entry.keys {
                Keys::Ranked {
                    popularity,
                    ranking,
                    ..
                } if !set.overwritten() => {
                    let mut below = 0.0;
                    let mut bytes = 0.0;
                    for rank in 0..popularity.n().min(1000) {
                        let share = popularity.share_of_ranks(rank + 1);
                        bytes += (share - below) * set.object_size(ranking.object(rank)) as f64;
                        below = share;
                    }
                    bytes + (1.0 - below) * mean
                }
                _ => mean,
            },
            Role::ReadRange => entry.range.as_ref().map_or(0.0, |r| r.len.mean().min(mean)),
            // The last part is smaller, which the sizes of all objects would tell; of one size it is known.
            Role::ReadPart if entry.class.reads_body() => match set.fixed_size() {
                Some(size) => size as f64 / size.div_ceil(entry.count).max(1) as f64,
                None => mean.min(entry.count as f64),
            },
            Role::ReadPart | Role::Read | Role::Plain | Role::Copy => 0.0,
        }
    }
}
