//! Joins the slowest requests of all load threads.

use bucketload_core::sink::RunSink;
use bucketload_core::slowest::{KEPT, SlowRequest, SlowTrail, Slowest};

/// The slowest requests of one phase, over all load threads.
pub(crate) struct SlowRequests {
    phase: u16,
    /// Keeps only response times; the requests themselves go to the sink.
    slowest: Slowest<()>,
}

impl SlowRequests {
    pub(crate) fn new(phase: u16) -> Self {
        Self {
            phase,
            slowest: Slowest::new(KEPT),
        }
    }

    /// Takes a thread's requests and passes those that are among the slowest of all to `sink`.
    pub(crate) fn add(&mut self, slow: Vec<(u64, SlowTrail)>, sink: &mut dyn RunSink) {
        let entered: Vec<SlowRequest> = slow
            .into_iter()
            .filter(|(response_ns, _)| self.slowest.offer(*response_ns, ()))
            .map(|(_, (trail, key))| SlowRequest::new(self.phase, &trail, key.text()))
            .collect();
        if !entered.is_empty() {
            sink.slow_requests(&entered);
        }
    }
}
