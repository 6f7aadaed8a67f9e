//! Name and clocks of this machine.

pub(crate) fn name() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}

/// Wall clock minus the run's clock, nanoseconds: the Unix time at which the run's clock began.
pub(crate) fn wall_minus_run_clock_ns() -> i64 {
    let wall = i64::try_from(unix_ns()).unwrap_or(i64::MAX);
    wall.saturating_sub(i64::try_from(bucketload_run::now_ns()).unwrap_or(i64::MAX))
}

/// Unix time, nanoseconds.
pub(crate) fn unix_ns() -> u64 {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
