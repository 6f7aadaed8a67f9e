//! The time of day, for requests that state it in their signature.

/// The wall clock in seconds since 1970, from the kernel's coarse clock (4 ms steps): a signature
/// needs the second only.
pub(crate) fn wall_seconds() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is a valid timespec that the call fills in; the clock id is a constant that
    // Linux has had since 2.6.32, so the call cannot fail.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME_COARSE, &raw mut now) };
    u64::try_from(now.tv_sec).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_coarse_clock_is_the_system_clock() {
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap()
            .as_secs();
        assert!(super::wall_seconds().abs_diff(now) <= 2);
    }
}
