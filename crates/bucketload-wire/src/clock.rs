//! The time of day, for the signatures of requests and the dates of responses.

/// The wall clock in seconds since 1970, from the kernel's coarse clock (4 ms steps).
#[must_use]
pub fn wall_seconds() -> u64 {
    u64::try_from(read(libc::CLOCK_REALTIME_COARSE).tv_sec).unwrap_or(0)
}

/// User and system CPU time of the process, in nanoseconds.
#[must_use]
pub fn process_cpu_ns() -> u64 {
    let time = read(libc::CLOCK_PROCESS_CPUTIME_ID);
    let (secs, nanos) = (u64::try_from(time.tv_sec), u64::try_from(time.tv_nsec));
    secs.unwrap_or(0) * 1_000_000_000 + nanos.unwrap_or(0)
}

/// Reads a clock through the C library, as valgrind requires.
fn read(clock: libc::clockid_t) -> libc::timespec {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call writes only to `time`; for an unknown clock it writes nothing.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time
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
