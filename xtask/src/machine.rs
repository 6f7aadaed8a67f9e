//! Whether the machine had time for what was measured on it.
//!
//! A shared machine takes a core away for milliseconds, and a bound on a latency then fails although the code is
//! right. [`bare_timer`] says what the machine can do, [`undisturbed`] gives a check another chance if it failed
//! *and* the machine was seen to stand still.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::random::Random;
use crate::sh::Result;

/// A nap that ends later than this after its time says that the machine was busy with others.
const STOOD_STILL: Duration = Duration::from_millis(2);

/// By how much a sleeper was late, µs.
#[derive(Clone, Copy)]
pub(crate) struct Late {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

impl Late {
    /// The medians of the two.
    pub(crate) fn median(of: &[Self]) -> Self {
        let middle = |what: fn(&Self) -> f64| {
            let mut sorted: Vec<f64> = of.iter().map(what).collect();
            sorted.sort_unstable_by(f64::total_cmp);
            sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
        };
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
        let (outcome, stood_still) = watched(&mut check);
        if outcome.is_ok() || stood_still < STOOD_STILL || chance == chances {
            return outcome;
        }
        if let Err(what) = outcome {
            eprintln!("{what}\nthe machine stood still for {stood_still:?}: once more");
        }
        chance += 1;
    }
}

struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What `check` gave, and by how much the worst of many naps of a millisecond was too long meanwhile.
fn watched<T>(check: impl FnOnce() -> T) -> (T, Duration) {
    let (ended, worst_ns) = (AtomicBool::new(false), AtomicU64::new(0));
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            let nap = Duration::from_millis(1);
            while !ended.load(Ordering::Relaxed) {
                let begun = Instant::now();
                std::thread::sleep(nap);
                let late = begun.elapsed().saturating_sub(nap);
                worst_ns.fetch_max(late.as_nanos() as u64, Ordering::Relaxed);
            }
        });
        // Ends the naps however the check ends.
        let _end = Ended(&ended);
        check()
    });
    (outcome, Duration::from_nanos(worst_ns.into_inner()))
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
    // SAFETY: a set of cores is plain bits, for which all zeros are the empty set.
    let (mut usable, mut first): (libc::cpu_set_t, libc::cpu_set_t) = unsafe { std::mem::zeroed() };
    let bytes = size_of::<libc::cpu_set_t>();
    // SAFETY: the kernel writes at most `bytes` into the set, which lives for the length of the call.
    let asked = unsafe { libc::sched_getaffinity(0, bytes, &raw mut usable) };
    // SAFETY: the numbers are below the size of the set.
    let core = (0..libc::CPU_SETSIZE as usize).find(|&i| unsafe { libc::CPU_ISSET(i, &usable) });
    let Some(core) = core.filter(|_| asked == 0) else {
        return Err("the kernel does not tell which cores are usable".to_owned());
    };
    // SAFETY: the number is below the size of the set.
    unsafe { libc::CPU_SET(core, &mut first) };
    // SAFETY: the set is read during the call, and the slack is a number.
    let settled = unsafe {
        libc::sched_setaffinity(0, bytes, &raw const first) == 0
            && libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64) == 0
    };
    match settled {
        true => Ok(()),
        false => Err(std::io::Error::last_os_error().to_string()),
    }
}

/// `CLOCK_MONOTONIC`, nanoseconds.
fn now_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one `timespec`.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn sleep_until(due_ns: u64) {
    let time = libc::timespec {
        tv_sec: (due_ns / 1_000_000_000) as _,
        tv_nsec: (due_ns % 1_000_000_000) as _,
    };
    while now_ns() < due_ns {
        // SAFETY: the time is read during the call; nothing is written, for the instant is absolute.
        unsafe {
            libc::clock_nanosleep(
                libc::CLOCK_MONOTONIC,
                libc::TIMER_ABSTIME,
                &raw const time,
                std::ptr::null_mut(),
            )
        };
    }
}
