//! Tests that bound real times, told apart from a machine that stood still meanwhile.
//!
//! A shared machine takes the processor away for tens of milliseconds; a bound on a latency then
//! fails although the code is right. [`undisturbed`] watches the machine while a test runs and gives
//! it another chance only if it failed *and* the machine was seen to stand still.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};

use super::watch::{STOOD_STILL, Watch};

/// Chances on a disturbed machine.
const CHANCES: u32 = 12;

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
