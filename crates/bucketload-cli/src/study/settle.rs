//! The pause before a cell: a fixed time, and then until the machine is idle, so that background work of a store for
//! one cell is not charged to the next.

use std::thread::sleep;
use std::time::{Duration, Instant};

use bucketload_run::{StopHandle, StopLevel};

/// The machine counts as idle if less than this share of the processors is busy.
const IDLE: f64 = 0.25;
/// Length of a measurement of the processors' load.
const WINDOW: Duration = Duration::from_millis(500);

/// A pause that is over.
pub(super) struct Pause {
    /// Length in nanoseconds.
    pub(super) took_ns: u64,
    /// Busy share of the processors at its end; `None` if it is unknown or was not measured.
    pub(super) busy: Option<f64>,
}

/// Waits for `recovery_ns`, then at most `settle_ns` more for an idle machine.
pub(super) fn pause(recovery_ns: u64, settle_ns: u64, stop: &StopHandle) -> Pause {
    let begun = Instant::now();
    let going_on = || stop.level() == StopLevel::Run;
    let until = begun + Duration::from_nanos(recovery_ns);
    while going_on() && Instant::now() < until {
        sleep(
            until
                .saturating_duration_since(Instant::now())
                .min(Duration::from_millis(50)),
        );
    }
    let until = Instant::now() + Duration::from_nanos(settle_ns);
    let mut busy = None;
    while going_on() && settle_ns > 0 {
        busy = share();
        if busy.is_none_or(|share| share < IDLE) || Instant::now() >= until {
            break;
        }
    }
    Pause {
        took_ns: u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX),
        busy,
    }
}

/// The busy share of the processors over the next window.
fn share() -> Option<f64> {
    let look = || times(&std::fs::read_to_string("/proc/stat").ok()?);
    let (idle, all) = look()?;
    sleep(WINDOW);
    let (idle_now, all_now) = look()?;
    let all = all_now.saturating_sub(all);
    (all > 0).then(|| 1.0 - idle_now.saturating_sub(idle) as f64 / all as f64)
}

/// Idle ticks and all ticks of the processors, as in proc(5): `idle` and `iowait` count as idle; user time already
/// includes guest time.
fn times(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line
        .split_whitespace()
        .take(8)
        .filter_map(|word| word.parse().ok())
        .collect();
    let idle = ticks.get(3)? + ticks.get(4)?;
    Some((idle, ticks.iter().sum()))
}

#[cfg(test)]
mod tests {
    use super::times;

    #[test]
    fn idle_and_all_ticks() {
        let stat = "cpu  10 1 5 80 4 0 0 0 3 0\ncpu0 10 1 5 80 4 0 0 0 3 0\n";
        assert_eq!(times(stat), Some((84, 100)));
        assert_eq!(times("intr 5"), None);
    }
}
