//! Everyone who wants to know how a run goes: run directory, terminal, metrics endpoint.

use bucketload_core::sink::{Event, RunSink};
use bucketload_core::slowest::SlowRequest;
use bucketload_core::tally::Interval;

/// Hands everything to each of its sinks, in order.
#[derive(Default)]
pub(crate) struct Fan<'a> {
    sinks: Vec<&'a mut dyn RunSink>,
}

impl<'a> Fan<'a> {
    /// Adds a sink.
    pub(crate) fn add(&mut self, sink: &'a mut dyn RunSink) {
        self.sinks.push(sink);
    }
}

impl RunSink for Fan<'_> {
    fn event(&mut self, event: &Event) {
        self.sinks.iter_mut().for_each(|sink| sink.event(event));
    }

    fn interval(&mut self, interval: &Interval) {
        self.sinks
            .iter_mut()
            .for_each(|sink| sink.interval(interval));
    }

    fn slow_requests(&mut self, requests: &[SlowRequest]) {
        self.sinks
            .iter_mut()
            .for_each(|sink| sink.slow_requests(requests));
    }
}
