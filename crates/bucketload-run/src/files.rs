//! The limit on open files: each session needs at least one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files that the program needs in addition to its sessions.
const SPARE: u64 = 128;

/// Raises the soft limit on open files to what `sessions` sessions need, within the hard limit. Returns a warning if
/// that is not enough.
pub(crate) fn allow(sessions: u64) -> Option<String> {
    let needed = sessions.saturating_add(SPARE);
    let limit = getrlimit(Resource::Nofile);
    // `None` means no limit.
    if limit.current.is_none_or(|current| current >= needed) {
        return None;
    }
    let reachable = limit.maximum.map_or(needed, |maximum| needed.min(maximum));
    let raised = Rlimit {
        current: Some(reachable),
        maximum: limit.maximum,
    };
    let got = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => reachable,
        Err(_) => limit.current.unwrap_or(0),
    };
    (got < needed).then(|| {
        format!(
            "the workload may open {sessions} sessions but only {got} files may be open; raise the \
             limit (ulimit -n {needed}) or lower the in-flight cap"
        )
    })
}

#[cfg(test)]
mod tests {
    use rustix::process::{Resource, getrlimit};

    use super::{SPARE, allow};

    #[test]
    fn the_limit_is_raised_up_to_the_hard_limit_and_beyond_that_there_is_a_warning() {
        let limit = getrlimit(Resource::Nofile);
        let Some(maximum) = limit.maximum else {
            assert_eq!(allow(1 << 40), None);
            return;
        };
        assert_eq!(allow(maximum - SPARE), None);
        assert_eq!(getrlimit(Resource::Nofile).current, Some(maximum));
        let warning = allow(maximum).unwrap();
        assert!(warning.contains("ulimit -n"), "{warning}");
    }
}
