//! Whether the machine had time for the measurements made on it.
//!
//! A shared machine takes a core away for milliseconds, and a limit on a latency then fails although the code is
//! right. [`bare_timer`] measures what the machine can do. [`undisturbed`] repeats a check that failed *while* the
//! machine stood still. A check that never had a core to itself neither passes nor fails: it is listed as not judged.

use std::fmt;
use std::num::NonZeroU64;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::thread::{
    CpuSet, clock_nanosleep_absolute, sched_getaffinity, sched_setaffinity, set_current_timer_slack,
};
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::bench::median;
use crate::random::Random;
use crate::sh::Result;
use crate::watch::{STOOD_STILL, Watch};

/// `USER_HZ`, the unit of `/proc/stat`, on every architecture that the program is built for.
const TICKS_PER_S: f64 = 100.0;

/// Lateness of a sleeper, in µs.
#[derive(Clone, Copy)]
pub(crate) struct Late {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

impl Late {
    /// The medians of both figures.
    pub(crate) fn median(of: &[Self]) -> Self {
        Self::each(of, median)
    }

    /// The lower quartiles of both figures: at least a quarter of the values are not above them.
    pub(crate) fn quarter(of: &[Self]) -> Self {
        Self::each(of, |values| {
            let mut values = values.to_vec();
            values.sort_by(f64::total_cmp);
            values[values.len().div_ceil(4) - 1]
        })
    }

    fn each(of: &[Self], figure: impl Fn(&[f64]) -> f64) -> Self {
        let all = |what: fn(&Self) -> f64| figure(&of.iter().map(what).collect::<Vec<_>>());
        Self {
            p50: all(|late| late.p50),
            p99: all(|late| late.p99),
        }
    }
}

impl fmt::Display for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p50 {:.1} µs, p99 {:.1} µs", self.p50, self.p99)
    }
}

/// Share of time for which others may have a core before a 99th percentile becomes unreliable: a fifth of the
/// hundredth beyond it.
const STOLEN: f64 = 0.002;
/// Checks that could not be judged, one per line.
static NOT_JUDGED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Outcome of a check with time limits.
pub(crate) enum TimeLimits {
    Kept,
    /// A limit was missed; says by how much.
    Missed(String),
}

/// Next step after a check that did not pass.
#[derive(Debug, PartialEq)]
enum NextStep {
    Fail,
    Again,
    /// No try had the cores to itself, so the check neither passed nor failed.
    NotJudged,
}

/// `stolen` is the smallest share of a core that others had during any try.
fn next(stood_still: Duration, stolen: f64, last: bool, times: bool) -> NextStep {
    match (stood_still >= STOOD_STILL, last) {
        (false, _) => NextStep::Fail,
        (true, false) => NextStep::Again,
        (true, true) if times && stolen > STOLEN => NextStep::NotJudged,
        (true, true) => NextStep::Fail,
    }
}

/// Runs `check`, up to `chances` times if it fails while the machine stands still.
///
/// If the hypervisor gave the cores to others during every try, missed times are not a failure of the code, but not a
/// success either: a line about `what` is kept for [`take_not_judged`].
///
/// # Errors
/// The failure of `check`: an error, or times missed although the machine had time.
pub(crate) fn undisturbed(
    what: &str,
    chances: u32,
    mut check: impl FnMut() -> Result<TimeLimits>,
) -> Result {
    let mut stolen = f64::INFINITY;
    for chance in 1.. {
        let (watch, begun, before) = (Watch::start(), Instant::now(), stolen_s()?);
        let outcome = check();
        let stood_still = watch.end();
        let share = (stolen_s()? - before) / begun.elapsed().as_secs_f64();
        stolen = stolen.min(share);
        let (error, times) = match outcome {
            Ok(TimeLimits::Kept) => break,
            Ok(TimeLimits::Missed(line)) => (line, true),
            Err(error) => (error, false),
        };
        let seen = format!(
            "the machine paused for {stood_still:?}, others had {:.1} % of a core",
            share * 100.0
        );
        match next(stood_still, stolen, chance == chances, times) {
            NextStep::Fail => return Err(error),
            NextStep::Again => eprintln!("{error}\n{seen}: trying again"),
            NextStep::NotJudged => {
                let line = format!("{what}: {error}; but {seen}, in try {chance} of {chances}");
                NOT_JUDGED.lock().map_err(|e| e.to_string())?.push(line);
                break;
            }
        }
    }
    Ok(())
}

/// The checks that could not be judged since the last call.
pub(crate) fn take_not_judged() -> Vec<String> {
    NOT_JUDGED
        .lock()
        .map_or_else(|_| Vec::new(), |mut lines| std::mem::take(&mut *lines))
}

/// Time in seconds since boot, summed over all cores, for which a core wanted to run but the hypervisor did not let
/// it; 0 if the hypervisor does not report it.
fn stolen_s() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/stat").map_err(|e| format!("/proc/stat: {e}"))?;
    Ok(steal_ticks(&stat) as f64 / TICKS_PER_S)
}

/// The eighth field of the line of all cores (proc_stat(5)).
fn steal_ticks(stat: &str) -> u64 {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "));
    let figure = line.and_then(|line| line.split_whitespace().nth(7));
    figure.and_then(|ticks| ticks.parse().ok()).unwrap_or(0)
}

/// Waits for Poisson arrivals for `time` with only the kernel's timer, on the core that a single load thread uses,
/// and returns the lateness.
pub(crate) fn bare_timer(rate_per_s: u32, time: Duration) -> Result<Late> {
    let keeper = std::thread::spawn(move || {
        settle()?;
        let count = (f64::from(rate_per_s) * time.as_secs_f64()) as u32;
        let mut random = Random(1);
        let mut due = now_ns() as f64;
        let mut late: Vec<f64> = (0..count)
            .map(|_| {
                due += random.gap(1e9 / f64::from(rate_per_s));
                sleep_until(due as u64);
                (now_ns() as f64 - due) / 1e3
            })
            .collect();
        late.sort_unstable_by(f64::total_cmp);
        let at = |q: f64| late[(q * late.len() as f64) as usize];
        Ok(Late {
            p50: at(0.5),
            p99: at(0.99),
        })
    });
    keeper.join().map_err(|_| "the bare timer panicked")?
}

/// Pins the thread to the first usable core and removes timer slack, as for a load thread.
fn settle() -> Result {
    let alone = || {
        let usable = sched_getaffinity(None)?;
        let mut first = CpuSet::new();
        first.set(
            (0..CpuSet::MAX_CPU)
                .find(|&core| usable.is_set(core))
                .unwrap_or(0),
        );
        sched_setaffinity(None, &first)?;
        set_current_timer_slack(NonZeroU64::new(1))
    };
    alone().map_err(|e| format!("the bare timer: {e}"))
}

/// `CLOCK_MONOTONIC`, nanoseconds.
fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn sleep_until(due_ns: u64) {
    let time = Timespec {
        tv_sec: (due_ns / 1_000_000_000) as _,
        tv_nsec: (due_ns % 1_000_000_000) as _,
    };
    while now_ns() < due_ns {
        // A signal may end the sleep early; the clock tells.
        let _ = clock_nanosleep_absolute(ClockId::Monotonic, &time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lower_quartile_bounds_a_quarter_of_the_runs() {
        let late = |us: f64| Late {
            p50: us,
            p99: us * 10.0,
        };
        let seven = [7.0, 1.0, 6.0, 2.0, 5.0, 3.0, 4.0].map(late);
        let quiet = Late::quarter(&seven);
        assert_eq!((quiet.p50, quiet.p99), (2.0, 20.0));
        assert_eq!(Late::quarter(&seven[..1]).p50, 7.0);
    }

    #[test]
    fn only_times_missed_on_stolen_cores_are_not_judged() {
        let still = STOOD_STILL;
        assert_eq!(next(still, 1.0, true, true), NextStep::NotJudged);
        assert_eq!(next(still, 1.0, true, false), NextStep::Fail);
        assert_eq!(next(still, STOLEN, true, true), NextStep::Fail);
        assert_eq!(next(still / 2, 1.0, true, true), NextStep::Fail);
        assert_eq!(next(still / 2, 1.0, false, true), NextStep::Fail);
        assert_eq!(next(still, 0.0, false, true), NextStep::Again);
        assert_eq!(next(still, 1.0, false, false), NextStep::Again);
    }

    #[test]
    fn errors_stay_errors_and_passed_checks_are_not_repeated() {
        // Whatever the machine does: an error is never "not judged".
        let ended = undisturbed("error", 2, || Err("wrong".to_owned()));
        assert_eq!(ended, Err("wrong".to_owned()));
        let mut left = 1;
        let ended = undisturbed("kept", 1, || {
            left -= 1;
            Ok(TimeLimits::Kept)
        });
        assert_eq!((ended, left), (Ok(()), 0));
    }

    #[test]
    fn steal_is_read_from_the_line_of_all_cores() {
        let stat = "cpu  1 2 3 4 5 6 7 800 9 10\ncpu0 1 2 3 4 5 6 7 400 9 10\n";
        assert_eq!(steal_ticks(stat), 800);
        assert_eq!(steal_ticks("cpu  1 2 3 4\n"), 0);
    }
}
