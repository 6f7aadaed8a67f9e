//! Joins the slowest requests of all load threads and gives them their names.

use std::sync::Arc;

use bucketload_core::sink::RunSink;
use bucketload_core::slowest::{KEPT, SlowRequest, Slowest};
use bucketload_core::trail::Trail;

use crate::shard::Shared;

/// The slowest requests of one phase, over all load threads.
pub(crate) struct SlowRequests {
    phase: u16,
    shared: Arc<Shared>,
    /// Only the response times matter here: the requests themselves go to the sink.
    slowest: Slowest<()>,
    key: String,
    source: String,
}

impl SlowRequests {
    pub(crate) fn new(phase: u16, shared: Arc<Shared>) -> Self {
        Self {
            phase,
            shared,
            slowest: Slowest::new(KEPT),
            key: String::new(),
            source: String::new(),
        }
    }

    /// Takes what a thread delivers and tells `sink` what of it is among the slowest of all.
    pub(crate) fn add(&mut self, slow: Vec<(u64, Trail)>, sink: &mut dyn RunSink) {
        let mut entered = Vec::new();
        for (response_ns, trail) in slow {
            if self.slowest.offer(response_ns, ()) {
                let source = &self.shared.sources[usize::from(trail.record.work)];
                source.render(&trail.op, &mut self.key, &mut self.source);
                entered.push(SlowRequest::new(self.phase, &trail, self.key.clone()));
            }
        }
        if !entered.is_empty() {
            sink.slow_requests(&entered);
        }
    }
}
