//! The cores of servers that a study starts: those that the load threads of its runs leave free. A busy store then does
//! not delay arrivals, and its cost is its own.

use std::io;

use bucketload_run::{RunOptions, layout, usable_cores};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The cores for servers, ascending; empty if the machine has none to spare.
pub(super) fn spare() -> Vec<usize> {
    let runs = RunOptions {
        local_target: true,
        ..RunOptions::default()
    };
    let (Ok(load), Ok(all)) = (layout(&runs), usable_cores()) else {
        return Vec::new();
    };
    all.into_iter()
        .filter(|core| !load.contains(&Some(*core)))
        .collect()
}

/// The cores in words, `1` or `4, 5, 6, 7`; empty for none.
pub(super) fn words(cores: &[usize]) -> String {
    let words: Vec<String> = cores.iter().map(usize::to_string).collect();
    words.join(", ")
}

/// Pins the calling thread to `cores`, runs `spawn`, whose processes inherit the cores, and restores the thread.
/// Without cores, only runs `spawn`.
///
/// # Errors
/// When `spawn` fails, or the kernel refuses the cores.
pub(crate) fn on<T>(cores: &[usize], spawn: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    if cores.is_empty() {
        return spawn();
    }
    let before = sched_getaffinity(None)?;
    let mut set = CpuSet::new();
    for &core in cores {
        set.set(core);
    }
    sched_setaffinity(None, &set)?;
    let spawned = spawn();
    sched_setaffinity(None, &before)?;
    spawned
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use bucketload_run::usable_cores;

    use super::{on, spare, words};

    #[test]
    fn started_processes_stay_on_their_cores() {
        let all = usable_cores().unwrap();
        let last = &all[all.len() - 1..];
        let said = on(last, || {
            Command::new("grep")
                .args(["Cpus_allowed_list", "/proc/self/status"])
                .output()
        })
        .unwrap();
        let said = String::from_utf8(said.stdout).unwrap();
        assert_eq!(said.split_whitespace().last().unwrap(), words(last));
        assert_eq!(
            usable_cores().unwrap(),
            all,
            "the thread itself is restored"
        );
    }

    #[test]
    fn servers_get_the_cores_that_load_threads_leave() {
        let all = usable_cores().unwrap();
        let spare = spare();
        assert!(spare.iter().all(|core| all.contains(core)));
        assert!(
            spare.len() < all.len(),
            "the first core belongs to a load thread: {spare:?}"
        );
    }
}
