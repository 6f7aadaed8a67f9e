//! What the library writes to standard error, because many applications report neither: why `S3_initialize` failed,
//! and how many requests failed.
//!
//! The summary comes with the last `S3_deinitialize`, or at the end of the process. A missing bucket or object, an
//! unmet condition and a callback that stops its own request are answers, not failures.

use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once, PoisonError};

static COUNT: AtomicU64 = AtomicU64::new(0);
static FIRST: Mutex<Option<String>> = Mutex::new(None);

extern "C" fn at_exit() {
    summarize();
}

/// Writes a line with a single system call, so that lines of several ranks do not mix.
fn say(text: &str) {
    let line = format!("libs3 (Bucketload): {text}\n");
    // Nobody can be told that standard error is closed.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Reports that the library was not initialized.
pub(crate) fn not_initialized(why: &str) {
    say(&format!("S3_initialize failed: {why}"));
}

/// Counts a failed request. `text` describes it.
pub(crate) fn failed(text: impl FnOnce() -> String) {
    static REGISTER: Once = Once::new();
    REGISTER.call_once(|| {
        // SAFETY: the function takes no arguments and does not unwind. Without memory to register it, the summary
        // is missing for programs that do not call `S3_deinitialize`.
        let _ = unsafe { libc::atexit(at_exit) };
    });
    if COUNT.fetch_add(1, Ordering::Relaxed) == 0 {
        *FIRST.lock().unwrap_or_else(PoisonError::into_inner) = Some(text());
    }
}

/// Forgets the failures: in the child of a fork, they are the parent's.
pub(crate) fn forget() {
    COUNT.store(0, Ordering::Relaxed);
}

/// Reports the failures since the last summary, if there are any.
pub(crate) fn summarize() {
    let count = COUNT.swap(0, Ordering::Relaxed);
    if count > 0 {
        let first = FIRST.lock().unwrap_or_else(PoisonError::into_inner).take();
        let first = first.unwrap_or_default();
        let requests = if count == 1 { "request" } else { "requests" };
        say(&format!(
            "{count} {requests} failed, the first with {first}"
        ));
    }
}
