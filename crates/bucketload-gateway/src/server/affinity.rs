//! Affinity: on which core a connection's thread runs.
//!
//! A client that waits for its answer leaves its core free. A thread that answers on that very core is woken without
//! an interrupt and finds the request in the core's cache; between two cores each wake-up costs more than a small
//! request. So where more clients are at work than may look for each other from two cores ([`crate::patience`]),
//! threads follow their clients, which say with each request where they run.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Requests between two looks at where the client is: a move costs as much as several small requests.
const REQUESTS_APART: u32 = 16;

/// The cores that a server may use: those of the thread that started it.
#[derive(Clone, Debug)]
pub(super) struct Cores(Option<CpuSet>);

impl Cores {
    pub(super) fn of_this_thread() -> Self {
        Self(sched_getaffinity(None).ok())
    }
}

/// The core that a connection's thread is bound to.
#[derive(Debug, Default)]
pub(super) struct Affinity {
    /// The core that it is bound to.
    core: Option<usize>,
    /// Requests until it may move.
    settled: u32,
}

impl Affinity {
    /// The client has made a request on core `core`, if that is known and of this host. Binds the calling thread to
    /// it if it is `crowded` and the server may use that core; otherwise to nothing.
    pub(super) fn follow(
        &mut self,
        core: Option<usize>,
        cores: &Cores,
        crowded: impl FnOnce() -> bool,
    ) {
        if self.settled > 0 {
            self.settled -= 1;
            return;
        }
        self.settled = REQUESTS_APART;
        let Some(all) = &cores.0 else {
            return;
        };
        let may = |core: &usize| *core < CpuSet::MAX_CPU && all.is_set(*core);
        let wanted = core.filter(may).filter(|_| crowded());
        if wanted == self.core {
            return;
        }
        let set = wanted.map_or_else(
            || *all,
            |core| {
                let mut only = CpuSet::new();
                only.set(core);
                only
            },
        );
        // A core may have been taken from the process meanwhile: then the thread stays where it is.
        if sched_setaffinity(None, &set).is_ok() {
            self.core = wanted;
        }
    }
}
