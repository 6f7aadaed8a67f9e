//! Updates the metrics page after each interval of a run.

use std::net::SocketAddr;
use std::sync::PoisonError;

use bucketload_core::plan::Plan;
use bucketload_core::sink::{Event, RunSink};
use bucketload_core::tally::Interval;
use bucketload_results::output::prometheus::{Snapshot, render};

use crate::prometheus::{self, Page};

/// The sink behind `--prometheus`.
pub(crate) struct Metrics {
    snapshot: Snapshot,
    page: Page,
    /// The address that answers scrapes.
    pub(crate) address: SocketAddr,
}

impl Metrics {
    /// Starts to answer scrapes at `address`.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub(crate) fn start(address: SocketAddr, run_id: &str, plan: &Plan) -> Result<Self, String> {
        let (address, page) = prometheus::start(address)?;
        let snapshot = Snapshot::new(run_id, env!("CARGO_PKG_VERSION"), plan);
        let metrics = Self {
            snapshot,
            page,
            address,
        };
        metrics.publish();
        Ok(metrics)
    }

    fn publish(&self) {
        let text = render(&self.snapshot);
        *self.page.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }
}

impl RunSink for Metrics {
    fn event(&mut self, _event: &Event) {}

    fn interval(&mut self, interval: &Interval) {
        self.snapshot.interval(interval);
        self.publish();
    }
}
