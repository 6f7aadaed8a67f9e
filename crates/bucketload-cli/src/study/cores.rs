//! The cores of servers that a study starts: those that the load threads of its runs leave free, so that a store
//! that is busy delays no arrival, and what it costs is its own.

use std::io;

use bucketload_run::{RunOptions, layout, usable_cores};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The cores for servers, ascending; empty where the machine has none to spare.
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

/// Runs `spawn` with the calling thread on `cores`, which the processes that it starts inherit, and puts the thread
/// back. Without cores it only runs it.
///
/// # Errors
/// What `spawn` says, or the kernel.
pub(super) fn on<T>(cores: &[usize], spawn: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
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
    fn what_is_started_stays_on_its_cores() {
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
        assert_eq!(usable_cores().unwrap(), all, "the thread itself is back");
    }

    #[test]
    fn servers_get_what_load_threads_leave() {
        let all = usable_cores().unwrap();
        let spare = spare();
        assert!(spare.iter().all(|core| all.contains(core)));
        assert!(
            spare.len() < all.len(),
            "the first core is a load thread's: {spare:?}"
        );
    }
}
