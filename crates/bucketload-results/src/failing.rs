//! When a phase ends early because nearly all of its operations fail.
//!
//! A client that meets a full or closed store spins through failures and measures nothing. Yet an outage in the middle
//! of a run may be what the run is about. So the rule is quick only where nothing can come any more: when nearly
//! nothing has succeeded since the phase began, and when the store is full.

use bucketload_core::error::ErrorKind;
use bucketload_core::plan::{PhaseKind, PhasePlan};
use bucketload_core::tally::Interval;

/// Share of failed operations from which nearly all fail.
const NEARLY_ALL: f64 = 0.99;
/// Number of operations without which nothing is decided.
const OPERATIONS: u64 = 1_000;
/// How long nearly all operations fail before a phase ends that never worked, or whose store is full, nanoseconds.
const HOPELESS_NS: u64 = 5_000_000_000;
/// The same for a phase that worked before, nanoseconds.
const OUTAGE_NS: u64 = 60_000_000_000;
/// Counts of operations that ended.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    len_ns: u64,
    ok: u64,
    failed: u64,
    full: u64,
}

/// Watches the intervals of one phase.
#[derive(Clone, Debug)]
pub struct Failing {
    absent_fails: bool,
    /// Whether operations succeeded in some interval.
    worked: bool,
    /// The intervals since nearly all operations fail.
    since: Counts,
}

impl Failing {
    /// The state before the first interval of `phase`; `None` if it may fail: it does not measure, it allows nearly
    /// all operations to fail, or its model counts on going through all of its steps. `absent_fails`: whether a
    /// missing object is a failure.
    #[must_use]
    pub fn new(phase: &PhasePlan, absent_fails: bool) -> Option<Self> {
        let allowed = phase
            .accounting
            .max_failed
            .is_some_and(|share| share >= NEARLY_ALL);
        let loops = |phase: &PhasePlan| phase.works.iter().all(|work| work.model.has_any_mix());
        (phase.kind == PhaseKind::Run && !allowed && loops(phase)).then(|| Self {
            absent_fails,
            worked: false,
            since: Counts::default(),
        })
    }

    /// Adds an interval. Returns whether the phase should end: nearly all operations failed, at least a thousand, for
    /// 5 s if nearly nothing worked before or the store is full, else for a minute.
    pub fn interval(&mut self, interval: &Interval) -> bool {
        let cells = || interval.tally.cells.iter();
        let of_kind = |kind: ErrorKind| cells().map(|cell| cell.failed[kind as usize]).sum::<u64>();
        let absent = match self.absent_fails {
            true => 0,
            false => of_kind(ErrorKind::NotFound),
        };
        let now = Counts {
            len_ns: interval.end_ns.saturating_sub(interval.start_ns),
            ok: interval.tally.ok() + absent,
            failed: interval.tally.failures() - absent,
            full: of_kind(ErrorKind::Full),
        };
        if now.ok as f64 > (1.0 - NEARLY_ALL) * (now.ok + now.failed) as f64 {
            (self.worked, self.since) = (true, Counts::default());
            return false;
        }
        let since = &mut self.since;
        since.len_ns += now.len_ns;
        since.ok += now.ok;
        since.failed += now.failed;
        since.full += now.full;
        let is_final = !self.worked || since.full * 2 > since.failed;
        let patience = if is_final { HOPELESS_NS } else { OUTAGE_NS };
        since.ok + since.failed >= OPERATIONS && since.len_ns >= patience
    }
}

#[cfg(test)]
mod tests {
    use bucketload_core::error::ErrorKind::{self, Full, NotFound, Server};
    use bucketload_core::op::OpClass;
    use bucketload_core::tally::{Interval, Tally};

    use super::{Counts, Failing};

    fn watch() -> Failing {
        Failing {
            absent_fails: false,
            worked: false,
            since: Counts::default(),
        }
    }

    /// The second after which a phase ends whose seconds have these numbers of successes and failures.
    fn ends(seconds: &[(u64, u64, ErrorKind)]) -> Option<usize> {
        let mut watch = watch();
        let mut ended = seconds.iter().map(|(ok, failed, kind)| {
            let mut tally = Tally::new();
            let cell = tally.cell_mut(0, OpClass::Put);
            cell.ok = *ok;
            cell.failed[*kind as usize] = *failed;
            watch.interval(&Interval {
                phase: 0,
                index: 0,
                start_ns: 0,
                end_ns: 1_000_000_000,
                tally,
                gauges: Default::default(),
            })
        });
        ended.position(|end| end).map(|at| at + 1)
    }

    #[test]
    fn a_phase_that_never_worked_ends_after_five_seconds() {
        assert_eq!(ends(&[(0, 1000, Server); 20]), Some(5));
        assert_eq!(ends(&[(1, 999, Server); 20]), Some(5));
        // Too few to judge, until a thousand have failed.
        assert_eq!(ends(&[(0, 100, Server); 20]), Some(10));
        assert_eq!(ends(&[(0, 0, Server); 20]), None);
    }

    #[test]
    fn a_full_store_ends_a_phase_that_worked() {
        let filled = [[(1000, 0, Full); 30].as_slice(), &[(0, 9000, Full); 10]].concat();
        assert_eq!(ends(&filled), Some(35));
    }

    #[test]
    fn an_outage_of_less_than_a_minute_is_part_of_the_measurement() {
        let works = [(1000, 0, Server); 30];
        let outage = |seconds| {
            [
                works.as_slice(),
                &vec![(0, 90_000, Server); seconds],
                &works,
            ]
            .concat()
        };
        assert_eq!(ends(&outage(59)), None);
        assert_eq!(ends(&outage(60)), Some(90));
    }

    #[test]
    fn some_successes_let_a_phase_go_on() {
        assert_eq!(ends(&[(20, 980, Full); 100]), None);
        // The workload counts missing objects as answers.
        assert_eq!(ends(&[(0, 1000, NotFound); 100]), None);
    }
}
