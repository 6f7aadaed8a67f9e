//! Tests that bound real times, told apart from a machine that stood still meanwhile.
//!
//! A shared machine takes the processor away for tens of milliseconds; a bound on a latency then
//! fails although the code is right. [`undisturbed`] watches the machine while a test runs and gives
//! it another chance only if it failed *and* the machine was seen to stand still.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

/// A nap that ends later than this after its time says that the machine was busy with others.
const STOOD_STILL: Duration = Duration::from_millis(2);
/// Chances on a disturbed machine.
const CHANCES: u32 = 12;

/// Takes naps of one millisecond and keeps by how much the worst was too long.
struct Watch {
    end: Arc<AtomicBool>,
    worst_ns: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Watch {
    fn start() -> Self {
        let (end, worst_ns) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let (ended, worst) = (Arc::clone(&end), Arc::clone(&worst_ns));
        let thread = spawn(move || {
            let nap = Duration::from_millis(1);
            while !ended.load(Ordering::Relaxed) {
                let begun = Instant::now();
                sleep(nap);
                let late = begun.elapsed().saturating_sub(nap);
                worst.fetch_max(late.as_nanos() as u64, Ordering::Relaxed);
            }
        });
        Self {
            end,
            worst_ns,
            thread,
        }
    }

    /// The longest time by which a nap was late.
    fn end(self) -> Duration {
        self.end.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        Duration::from_nanos(self.worst_ns.load(Ordering::Relaxed))
    }
}

/// Runs `test`, again if it panics while the machine stood still. Such tests of one program take
/// turns, for they would disturb one another.
///
/// # Panics
/// As `test` does on a machine that had time for it, or after twelve chances on one that never had.
pub fn undisturbed(test: impl Fn()) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    for chance in 1.. {
        let watch = Watch::start();
        let outcome = catch_unwind(AssertUnwindSafe(&test));
        let stood_still = watch.end();
        let Err(panic) = outcome else { return };
        if stood_still < STOOD_STILL || chance == CHANCES {
            resume_unwind(panic);
        }
        eprintln!("the machine stood still for {stood_still:?}: once more");
    }
}
