//! Why arrivals wait: no worker was free, or the thread was late.
//!
//! ```text
//!  baton    held ──┐ parked       ┌─ held ─┐ parked ┌─ held
//!                  └──────────────┘        └────────┘
//!  episode         ├──────────────────────────────────────── … until the thread has caught up
//!  arrival     due ┼ ─ dispatch wait ─ ┤ taken
//! ```

use std::cell::Cell;

/// Attributes the waits of arrivals to missing workers or to the thread itself.
///
/// An episode begins when the baton is parked. It ends when the thread has caught up with the schedule, which is when
/// an arrival falls due while the baton is held and every earlier arrival has been taken. If an arrival was due before
/// the episode, its dispatch wait is the whole parked time. If it was due later, the dispatch wait is its wait times
/// the parked fraction of the episode. That is exact for an episode of one park, the usual case, and an episode of
/// thousands of parks need not remember each.
#[derive(Default)]
pub(crate) struct DispatchWaits {
    /// Start of the episode; 0 outside of one.
    begun_ns: Cell<u64>,
    /// Total length of the completed parks of the episode, nanoseconds.
    parked_ns: Cell<u64>,
    /// Start of the current park; 0 when the baton is held.
    since_ns: Cell<u64>,
    /// Whether the in-flight cap caused a park of the episode.
    capped: Cell<bool>,
    /// Latest take or end of a park. Arrivals due before had to wait for it.
    settled_ns: Cell<u64>,
}

impl DispatchWaits {
    /// The baton is parked; `capped` if because of the in-flight cap.
    pub(crate) fn park(&self, now_ns: u64, capped: bool) {
        if self.begun_ns.get() == 0 {
            self.begun_ns.set(now_ns);
        }
        self.since_ns.set(now_ns);
        self.capped.set(self.capped.get() | capped);
    }

    /// The baton is held again.
    pub(crate) fn unpark(&self, now_ns: u64) {
        let since = self.since_ns.replace(0);
        if since > 0 {
            self.parked_ns
                .set(self.parked_ns.get() + now_ns.saturating_sub(since));
            self.settled_ns.set(now_ns);
        }
    }

    /// Whether the cap caused a park of the current episode.
    pub(crate) fn is_capped(&self) -> bool {
        self.capped.get()
    }

    /// Dispatch wait of an arrival due at `due_ns` and taken at `now_ns`, nanoseconds, and whether the cap caused it.
    pub(crate) fn of(&self, due_ns: u64, now_ns: u64) -> (u64, bool) {
        let caught_up = due_ns >= self.settled_ns.replace(now_ns);
        if caught_up && self.begun_ns.get() > 0 {
            self.begun_ns.set(0);
            self.parked_ns.set(0);
            self.capped.set(false);
        }
        let (begun, parked) = (self.begun_ns.get(), self.parked_ns.get());
        if begun == 0 || parked == 0 {
            return (0, false);
        }
        let wait = now_ns.saturating_sub(due_ns);
        let dispatch = if due_ns <= begun {
            parked.min(wait)
        } else {
            let share = parked as f64 / now_ns.saturating_sub(begun).max(1) as f64;
            ((wait as f64 * share.min(1.0)) as u64).min(wait)
        };
        (dispatch, self.capped.get() && dispatch > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::DispatchWaits;

    #[test]
    fn one_park_is_attributed_exactly() {
        let waits = DispatchWaits::default();
        assert_eq!(
            waits.of(100, 150),
            (0, false),
            "late, but a worker was free"
        );
        waits.park(1_000, true);
        waits.unpark(3_000);
        // Due before, at the start of, during and at the end of the park; taken when it ended.
        assert_eq!(waits.of(900, 3_000), (2_000, true));
        assert_eq!(waits.of(1_000, 3_000), (2_000, true));
        assert_eq!(waits.of(2_500, 3_000), (500, true));
        assert_eq!(waits.of(3_000, 3_050), (0, false));
        // The thread has caught up: a later arrival is late for another reason.
        assert_eq!(waits.of(3_100, 3_200), (0, false));
        waits.park(5_000, false);
        waits.unpark(6_000);
        assert_eq!(waits.of(5_400, 6_000), (600, false));
    }

    #[test]
    fn time_with_the_baton_held_is_lateness() {
        let waits = DispatchWaits::default();
        waits.park(1_000, false);
        waits.unpark(2_000);
        assert_eq!(waits.of(400, 2_900), (1_000, false));
        waits.park(3_000, false);
        waits.unpark(4_000);
        // The episode lasts 3000 ns, of which 2000 are parked.
        assert_eq!(waits.of(500, 4_000), (2_000, false));
        assert_eq!(waits.of(2_500, 4_000), (1_000, false));
    }
}
