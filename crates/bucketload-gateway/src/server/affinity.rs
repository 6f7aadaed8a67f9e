//! CPU affinity of the connections' threads.
//!
//! A client that waits for its answer leaves its core idle. A server thread on the same core is woken without an
//! interrupt and finds the request in the core's cache; between two cores each wake-up costs more than a small
//! request. So when more clients are active than may busy-poll ([`crate::busy_poll`]), threads move to the cores of
//! their clients, which name their core in each request.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Number of requests between two checks of the client's core: a move costs as much as several small requests.
const REQUESTS_PER_CHECK: u32 = 16;

/// The cores that a server may use: those of the thread that started the server.
#[derive(Clone, Debug)]
pub(super) struct Cores(Option<CpuSet>);

impl Cores {
    pub(super) fn of_this_thread() -> Self {
        Self(sched_getaffinity(None).ok())
    }
}

/// The affinity of one connection's thread.
#[derive(Debug, Default)]
pub(super) struct Affinity {
    /// The core to which the thread is bound.
    core: Option<usize>,
    /// Number of requests until the next check.
    settled: u32,
}

impl Affinity {
    /// Handles a request that the client sent from `core` (`None` if unknown or on another host). If the server is
    /// `crowded` and may use that core, binds the calling thread to it; otherwise unbinds the thread.
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
        self.settled = REQUESTS_PER_CHECK;
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
        // The process may have lost the core meanwhile; then the thread stays where it is.
        if sched_setaffinity(None, &set).is_ok() {
            self.core = wanted;
        }
    }
}
