//! Joins the slowest requests of all load threads.

use bucketload_core::sink::RunSink;
use bucketload_core::slowest::{KEPT, SlowRequest, Slowest};
use bucketload_core::trail::{KeyText, Trail};

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
    pub(crate) fn add(&mut self, slow: Vec<(Trail, KeyText)>, sink: &mut dyn RunSink) {
        let entered: Vec<SlowRequest> = slow
            .into_iter()
            .filter(|(trail, _)| self.slowest.offer(trail.record.response_ns(), ()))
            .map(|(trail, key)| SlowRequest::new(self.phase, &trail, key.text()))
            .collect();
        if !entered.is_empty() {
            sink.slow_requests(&entered);
        }
    }
}
