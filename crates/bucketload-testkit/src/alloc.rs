//! An allocator that counts. A program that wants it says so with `#[global_allocator]`; such programs are apart
//! from the other tests of their crate, for it replaces the allocator of them all.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The system's allocator, with counts of what is asked of it.
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

/// Bytes that this thread has allocated and not freed; what other threads free of it counts as theirs.
pub fn live() -> i64 {
    LIVE.get()
}

/// Allocations and reallocations of all threads so far.
pub fn calls_of_all() -> u64 {
    OF_ALL.load(Relaxed)
}

/// The counters are initialised by constants and have no destructor: they neither allocate nor ever go away.
fn count(calls: u64, bytes: i64) {
    CALLS.set(CALLS.get() + calls);
    LIVE.set(LIVE.get() + bytes);
    if calls > 0 {
        OF_ALL.fetch_add(calls, Relaxed);
    }
}

// SAFETY: every call is passed on to the system's allocator unchanged; counting does not allocate.
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
