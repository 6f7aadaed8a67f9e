//! Settings of the C library's allocator for the whole program.

/// Keeps large allocations in separate mappings, so that zeroed allocations take no memory until they are touched.
///
/// The GNU allocator raises its threshold whenever a large block is freed. Later histograms (270 KiB of counts each,
/// few of them used) would then come from recycled memory, which must be zeroed explicitly: 11 MiB more in a small
/// run. Setting the threshold, here to its initial value, disables this (mallopt(3)).
pub(crate) fn keep_large_blocks_apart() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: mallopt has no preconditions, and no other thread exists yet. If it fails, nothing changes.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 128 << 10);
    }
}
