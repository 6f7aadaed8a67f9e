//! A counting allocator. A program installs it with `#[global_allocator]`, which affects the whole program, so such
//! tests are separate programs.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The system's allocator, with counters.
pub struct Counting;

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
    static LIVE: Cell<i64> = const { Cell::new(0) };
}

static OF_ALL: AtomicU64 = AtomicU64::new(0);

/// Allocations and reallocations of this thread so far.
pub fn calls() -> u64 {
    CALLS.get()
}

/// Bytes that this thread has allocated minus those it has freed.
pub fn live() -> i64 {
    LIVE.get()
}

/// Allocations and reallocations of all threads so far.
pub fn calls_of_all() -> u64 {
    OF_ALL.load(Relaxed)
}

/// The counters have constant initialisers and no destructor, so they never allocate and always exist.
fn count(calls: u64, bytes: i64) {
    CALLS.set(CALLS.get() + calls);
    LIVE.set(LIVE.get() + bytes);
    if calls > 0 {
        OF_ALL.fetch_add(calls, Relaxed);
    }
}

// SAFETY: every call goes to the system's allocator unchanged; counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size() as i64);
        // SAFETY: as promised by our caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size() as i64);
        // SAFETY: as promised by our caller.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(1, size as i64 - layout.size() as i64);
        // SAFETY: as promised by our caller.
        unsafe { System.realloc(ptr, layout, size) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        count(0, -(layout.size() as i64));
        // SAFETY: as promised by our caller.
        unsafe { System.dealloc(ptr, layout) }
    }
}
