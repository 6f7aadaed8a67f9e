//! Settings of the C library's allocator that hold for the whole program.

/// Keeps large allocations in mappings of their own, so that zeroed ones take no memory before they are
/// touched.
///
/// The GNU allocator raises its threshold whenever a large block is freed; later histograms (270 KiB of
/// counts each, few of them used) would then come from recycled memory and be zeroed by hand: 11 MiB more
/// in a small run. Setting the threshold, here to its initial value, turns that off (mallopt(3)).
pub(crate) fn keep_large_blocks_apart() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: mallopt has no precondition; no other thread exists yet. A refusal changes nothing.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 128 << 10);
    }
}
