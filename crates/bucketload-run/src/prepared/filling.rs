//! One key set that several processes fill together, as their coordinator sees it.
//!
//! The coordinator alone writes the journal. Each process has a part of its own, consecutive numbers, and reports which
//! of them the store has acknowledged; so what a process wrote survives it once it is reported, and the journal says
//! the same as that of a single process. Memory is bounded by the number of blocks and of processes.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::progress::{Known, Part};
use super::ranges::{Range, are_within, divide, union};

/// A key set that several processes fill.
#[derive(Debug)]
pub struct Filling {
    parts: Vec<Part>,
    /// What each process has reported.
    known: Mutex<Vec<Vec<Range>>>,
    given_up: AtomicBool,
}

impl Filling {
    /// Divides `part` over processes with these numbers of workers.
    pub(super) fn new(part: &Part, workers: &[u32]) -> Self {
        let parts = divide(&part.missing, part.block(), workers);
        let count = part.count;
        Self {
            known: Mutex::new(vec![Vec::new(); parts.len()]),
            parts: parts
                .into_iter()
                .map(|missing| Part { count, missing })
                .collect(),
            given_up: AtomicBool::new(false),
        }
    }

    /// What process `number` is to write; `None` if there is no such process.
    #[must_use]
    pub fn part(&self, number: u32) -> Option<&Part> {
        self.parts.get(number as usize)
    }

    /// Process `number` has written `ranges` so far. `false` if they are damaged or not inside its part.
    #[must_use]
    pub fn acknowledged(&self, number: u32, ranges: Vec<Range>) -> bool {
        let sound = self
            .part(number)
            .is_some_and(|part| are_within(&ranges, &part.missing));
        if sound {
            self.known()[number as usize] = ranges;
        }
        sound
    }

    /// Whether the preparation is to end, because the data set has another holder.
    #[must_use]
    pub fn is_given_up(&self) -> bool {
        self.given_up.load(Relaxed)
    }

    fn known(&self) -> MutexGuard<'_, Vec<Vec<Range>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known for Filling {
    fn filled(&self) -> Vec<Range> {
        union(self.known().iter().flatten().copied().collect())
    }

    fn give_up(&self) {
        self.given_up.store(true, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{Filling, Known as _};
    use crate::prepared::progress::{MOST_BLOCKS, Part, Progress};
    use crate::prepared::ranges::{Range, gaps, total, union};

    const COUNT: u64 = 1_000_000_000;

    /// A session of `agents` agents on a set of 10^9 objects, in which agent `n` gets as far as `reach(n, its objects)`.
    /// Returns what the journal says afterwards, and how many objects are written a second time in the next session.
    fn session(done: &[Range], agents: u32, reach: impl Fn(u32, u64) -> u64) -> (Vec<Range>, u64) {
        let part = Part {
            count: COUNT,
            missing: gaps(done, COUNT).collect(),
        };
        let block = part.block();
        let filling = Filling::new(&part, &vec![32; agents as usize]);
        let mut again = 0;
        for agent in 0..agents {
            let part = filling.part(agent).unwrap();
            assert!(part.missing.len() as u64 <= MOST_BLOCKS);
            // Objects are taken in order, so what is reported is every complete block of the first `reached`.
            let mut reached = reach(agent, total(&part.missing));
            let mut reported = Vec::new();
            for &(first, end) in &part.missing {
                let stop = end.min(first + reached);
                let known = if stop == end {
                    end
                } else {
                    stop - stop % block
                };
                again += stop.saturating_sub(known.max(first));
                if known > first {
                    reported.push((first, known));
                }
                reached -= stop - first;
            }
            assert!(filling.acknowledged(agent, reported));
        }
        let all = union(done.iter().copied().chain(filling.filled()).collect());
        (all, again)
    }

    #[test]
    fn a_billion_objects_take_constant_memory_over_sessions_of_many_agents() {
        let (mut done, mut sessions) = (Vec::new(), 0);
        while total(&done) < COUNT {
            sessions += 1;
            let agents = [3, 64, 1_000, 7][sessions % 4];
            // Every third agent is killed on its way; the others are stopped at four fifths.
            let reach = |n: u32, all: u64| match n % 3 {
                0 if sessions < 6 => all * u64::from(n % 7) / 9,
                _ if sessions < 6 => all * 4 / 5,
                _ => all,
            };
            let before = total(&done);
            let (now, again) = session(&done, agents, reach);
            let block = COUNT.div_ceil(MOST_BLOCKS);
            assert!(now.len() as u64 <= MOST_BLOCKS / 2 + 1, "{}", now.len());
            assert!(again < u64::from(agents) * block, "{again} with {agents}");
            assert!(total(&now) > before);
            done = now;
        }
        assert_eq!(done, [(0, COUNT)]);
        assert!(sessions == 6, "{sessions}");
    }

    #[test]
    fn reports_outside_the_part_are_refused() {
        let part = Part {
            count: 100,
            missing: vec![(10, 30), (50, 90)],
        };
        let filling = Filling::new(&part, &[2, 1]);
        assert_eq!(filling.part(0).unwrap().missing, [(10, 30), (50, 70)]);
        assert_eq!(filling.part(1).unwrap().missing, [(70, 90)]);
        assert!(filling.acknowledged(0, vec![(10, 12), (50, 51)]));
        for (number, bad) in [(0, (10, 71)), (1, (60, 80)), (1, (80, 80)), (2, (10, 12))] {
            assert!(!filling.acknowledged(number, vec![bad]), "{bad:?}");
        }
        assert_eq!(filling.filled(), [(10, 12), (50, 51)]);
        // A process that reads its part anew goes on with what is left.
        let progress = Progress::new(filling.part(1).unwrap());
        assert_eq!(progress.take(), Some(70));
    }
}
