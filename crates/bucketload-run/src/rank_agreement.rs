//! What ranks in several processes agree on: how far they go, and when phases began.
//!
//! ```text
//!  last rank of this process ── reached(phase, steps) ──▶ controller
//!  ranks behind the stonewall ◀── agree(phase, most) ──── the highest number of all
//! ```
//!
//! Everything here happens a few times per phase, never per operation.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Called with a phase and the highest number of steps of this process's ranks in it.
pub type Reached = Box<dyn Fn(u16, u64) + Send + Sync>;

/// An agreement between processes.
pub struct RankAgreement {
    reached: Reached,
    known: Mutex<Known>,
    changed: Notify,
}

/// What has been agreed on, by phase.
#[derive(Debug, Default)]
struct Known {
    steps: BTreeMap<u16, u64>,
    began_s: BTreeMap<u16, i64>,
}

impl fmt::Debug for RankAgreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RankAgreement")
            .field("known", &*self.known())
            .finish_non_exhaustive()
    }
}

impl RankAgreement {
    /// An agreement that calls `reached` from a load thread, once per phase, when no rank of this process has a step
    /// left to make.
    #[must_use]
    pub fn new(reached: Reached) -> Self {
        Self {
            reached,
            known: Mutex::default(),
            changed: Notify::new(),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The ranks of all processes go on to step `steps` of phase `phase`.
    pub fn agree(&self, phase: u16, steps: u64) {
        self.known().steps.insert(phase, steps);
        self.changed.notify_waiters();
    }

    /// Phase `phase` began `unix_s` seconds after 1970, by a clock that all processes share.
    pub fn begins(&self, phase: u16, unix_s: i64) {
        let mut known = self.known();
        // Those of an earlier measurement of the same phase.
        known.steps.remove(&phase);
        known.began_s.insert(phase, unix_s);
    }

    /// Every rank of this process has reached its end or its stonewall in phase `phase`, the foremost after `steps`
    /// steps.
    pub(crate) fn reached(&self, phase: u16, steps: u64) {
        (self.reached)(phase, steps);
    }

    /// The highest number of steps in phase `phase`, once it is known.
    pub(crate) fn steps(&self, phase: u16) -> Option<u64> {
        self.known().steps.get(&phase).copied()
    }

    /// When phase `phase` began, seconds since 1970.
    pub(crate) fn began_s(&self, phase: u16) -> Option<i64> {
        self.known().began_s.get(&phase).copied()
    }

    /// Notified when something is agreed on.
    pub(crate) const fn changed(&self) -> &Notify {
        &self.changed
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::RankAgreement;

    #[test]
    fn agreements_are_kept_per_phase() {
        let told = Arc::new(AtomicU64::new(0));
        let sum = Arc::clone(&told);
        let agreement = RankAgreement::new(Box::new(move |phase, steps| {
            sum.fetch_add(u64::from(phase) * 100 + steps, Ordering::Relaxed);
        }));
        agreement.reached(3, 7);
        assert_eq!(told.load(Ordering::Relaxed), 307);
        assert_eq!(agreement.steps(3), None);
        agreement.begins(3, 1_795_163_891);
        agreement.agree(3, 9);
        assert_eq!((agreement.steps(3), agreement.steps(2)), (Some(9), None));
        assert_eq!(agreement.began_s(3), Some(1_795_163_891));
    }
}
