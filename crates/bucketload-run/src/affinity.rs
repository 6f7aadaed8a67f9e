//! Which cores load threads run on.

use std::io;
use std::num::NonZeroU64;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};

use crate::error::RunError;
use crate::options::{Cores, RunOptions};

/// The load threads of a run with `options`: one entry per thread, with its core if it is pinned. A caller that starts
/// the target itself should keep it off these cores.
///
/// # Errors
/// When a requested core is not in this process's affinity mask.
pub fn layout(options: &RunOptions) -> Result<Vec<Option<usize>>, RunError> {
    let mask = usable_cores().map_err(RunError::Thread)?;
    // The count respects container CPU quotas, which the mask does not show.
    let quota = std::thread::available_parallelism().map_or(1, usize::from);
    choose(&mask, quota, options)
}

fn choose(
    mask: &[usize],
    quota: usize,
    options: &RunOptions,
) -> Result<Vec<Option<usize>>, RunError> {
    let cores = match &options.cores {
        Cores::List(list) => {
            if let Some(missing) = list.iter().find(|core| !mask.contains(core)) {
                return Err(RunError::Options(format!(
                    "core {missing} is not in this process's affinity mask {mask:?}"
                )));
            }
            list.clone()
        }
        Cores::First | Cores::Unpinned => mask.to_vec(),
    };
    let usable = cores.len().min(quota).max(1);
    let default = match options.cores {
        Cores::List(_) => cores.len(),
        _ if options.local_target => (usable / 2).max(1),
        _ => usable,
    };
    let threads = options.threads.unwrap_or(default);
    Ok((0..threads)
        .map(|i| (options.cores != Cores::Unpinned).then(|| cores[i % cores.len()]))
        .collect())
}

/// The cores that this process may run on, ascending.
///
/// # Errors
/// When the kernel does not report them.
pub fn usable_cores() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&i| set.is_set(i)).collect())
}

/// Makes the calling thread a load thread: pins it to `core` and asks the kernel for exact timers.
pub(crate) fn settle(core: Option<usize>) -> io::Result<()> {
    if let Some(core) = core {
        let mut set = CpuSet::new();
        set.set(core);
        sched_setaffinity(None, &set)?;
    }
    // The default slack of 50 µs would make every sleep in epoll that much later.
    set_current_timer_slack(NonZeroU64::new(1))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::choose;
    use crate::options::{Cores, RunOptions};

    fn with(cores: Cores, threads: Option<usize>, local_target: bool) -> RunOptions {
        RunOptions {
            cores,
            threads,
            local_target,
            ..RunOptions::default()
        }
    }

    #[test]
    fn a_local_target_gets_half_of_the_cores() {
        let mask = [2, 3, 5, 7];
        let first = |local| choose(&mask, 4, &with(Cores::First, None, local)).unwrap();
        assert_eq!(first(true), [Some(2), Some(3)]);
        assert_eq!(first(false), [Some(2), Some(3), Some(5), Some(7)]);
        let quota = choose(&mask, 2, &with(Cores::First, None, true)).unwrap();
        assert_eq!(quota, [Some(2)]);
        let one = choose(&[0], 1, &with(Cores::First, None, true)).unwrap();
        assert_eq!(one, [Some(0)]);
    }

    #[test]
    fn explicit_choices_are_followed_or_rejected() {
        let mask = [0, 1, 2];
        let list = choose(&mask, 3, &with(Cores::List(vec![2, 0]), Some(3), true)).unwrap();
        assert_eq!(list, [Some(2), Some(0), Some(2)]);
        let unpinned = choose(&mask, 3, &with(Cores::Unpinned, Some(2), false)).unwrap();
        assert_eq!(unpinned, [None, None]);
        let refused = choose(&mask, 3, &with(Cores::List(vec![9]), None, false));
        assert!(refused.unwrap_err().to_string().contains("core 9"));
    }
}
