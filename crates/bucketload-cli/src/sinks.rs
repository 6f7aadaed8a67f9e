//! Passes the events of a run to several sinks: run directory, terminal, metrics endpoint.

use bucketload_core::sink::{Event, RunSink};
use bucketload_core::slowest::SlowRequest;
use bucketload_core::tally::Interval;

/// Passes everything to each of its sinks, in order.
#[derive(Default)]
pub(crate) struct FanOut<'a> {
    sinks: Vec<&'a mut dyn RunSink>,
}

impl<'a> FanOut<'a> {
    /// Adds a sink.
    pub(crate) fn add(&mut self, sink: &'a mut dyn RunSink) {
        self.sinks.push(sink);
    }
}

impl RunSink for FanOut<'_> {
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
