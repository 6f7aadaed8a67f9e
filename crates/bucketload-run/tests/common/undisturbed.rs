//! Repeats tests that bound real times if the machine stalled meanwhile.
//!
//! A shared machine can take the processor away for tens of milliseconds, and then a bound on a latency fails although
//! the code is right. [`undisturbed`] watches the machine while a test runs, and repeats the test only if it failed
//! *and* the machine was seen to stall.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};

use super::watch::{STOOD_STILL, Watch};

/// Most attempts on a disturbed machine.
const CHANCES: u32 = 12;

/// Runs `test`, and again if it panics while the machine stalled. Such tests of one program run one at a time, since
/// they would disturb each other.
///
/// # Panics
/// If `test` panics on an undisturbed machine, or in each of twelve attempts on a disturbed one.
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
