//! Whether the machine had time for what was measured on it.
//!
//! A shared machine takes a core away for milliseconds, and a bound on a latency then fails although the code is
//! right. [`bare_timer`] says what the machine can do, [`undisturbed`] gives a check another chance if it failed
//! *and* the machine was seen to stand still.

use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

use rustix::thread::{
    CpuSet, clock_nanosleep_absolute, sched_getaffinity, sched_setaffinity, set_current_timer_slack,
};
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::bench::median;
use crate::random::Random;
use crate::sh::Result;
use crate::watch::{STOOD_STILL, Watch};

/// By how much a sleeper was late, µs.
#[derive(Clone, Copy)]
pub(crate) struct Late {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

impl Late {
    /// The medians of the two.
    pub(crate) fn median(of: &[Self]) -> Self {
        let middle = |what: fn(&Self) -> f64| median(&of.iter().map(what).collect::<Vec<_>>());
        Self {
            p50: middle(|late| late.p50),
            p99: middle(|late| late.p99),
        }
    }
}

impl fmt::Display for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p50 {:.1} µs, p99 {:.1} µs", self.p50, self.p99)
    }
}

/// Runs `check`, up to `chances` times if it fails while the machine stands still.
pub(crate) fn undisturbed<T>(chances: u32, mut check: impl FnMut() -> Result<T>) -> Result<T> {
    let mut chance = 1;
    loop {
        let watch = Watch::start();
        let outcome = check();
        let stood_still = watch.end();
        if outcome.is_ok() || stood_still < STOOD_STILL || chance == chances {
            return outcome;
        }
        if let Err(what) = outcome {
            eprintln!("{what}\nthe machine stood still for {stood_still:?}: once more");
        }
        chance += 1;
    }
}

/// Keeps Poisson instants for `time` with nothing but the kernel's timer, on the core that a single load
/// thread runs on.
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

/// The first of the usable cores, and timers without slack: as a load thread has it.
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
        // Where a signal ends it, the clock says so.
        let _ = clock_nanosleep_absolute(ClockId::Monotonic, &time);
    }
}
