//! Load balance over several endpoints, overall and in time windows.

use bucketload_core::endpoint::EndpointTally;
use bucketload_core::histogram::Histogram;
use bucketload_core::stats::balance::windows::{OverTime, TailLink};
use bucketload_core::stats::balance::{Indices, Null};
use bucketload_core::tally::Interval;

use super::fold::{Bin, Fold};
use crate::result::{EndpointBalance, EndpointResult, Latency};
use crate::rundir::Stored;

/// Length of a window (docs/spec/statistics.md section 8), nanoseconds.
const WINDOW_NS: u64 = 10_000_000_000;
/// Limit on the number of windows; longer runs merge neighbouring ones.
const WINDOWS: usize = 4096;

/// Requests per endpoint in one window.
#[derive(Clone, Debug)]
struct EndpointWindow {
    requests: Vec<f64>,
    /// 99th percentile of the response times of all classes; for merged windows the largest.
    p99_ns: u64,
}

impl Bin for EndpointWindow {
    fn absorb(&mut self, next: &Self) {
        for (mine, theirs) in self.requests.iter_mut().zip(&next.requests) {
            *mine += theirs;
        }
        self.p99_ns = self.p99_ns.max(next.p99_ns);
    }
}

/// Collects windows from intervals; stays empty with a single endpoint.
pub(crate) struct EndpointWindows {
    windows: Fold<EndpointWindow>,
    current: Vec<f64>,
    response: Histogram,
    /// Time covered by `current`, nanoseconds.
    covered_ns: u64,
}

impl EndpointWindows {
    pub(crate) fn new() -> Self {
        Self {
            windows: Fold::new(WINDOWS),
            current: Vec::new(),
            response: Histogram::new(),
            covered_ns: 0,
        }
    }

    /// Adds response times of an interval of the measured window, before the interval itself.
    pub(crate) fn add_response(&mut self, stored: &Stored<'_>) {
        stored.add_into(&mut self.response);
    }

    /// Adds an interval of the measured window.
    pub(crate) fn add(&mut self, interval: &Interval) {
        let endpoints = &interval.tally.endpoints;
        if endpoints.is_empty() {
            return;
        }
        self.current.resize(endpoints.len(), 0.0);
        for (sum, endpoint) in self.current.iter_mut().zip(endpoints) {
            *sum += endpoint.requests() as f64;
        }
        self.covered_ns += interval.end_ns.saturating_sub(interval.start_ns);
        if self.covered_ns >= WINDOW_NS {
            self.windows.push(&EndpointWindow {
                requests: std::mem::take(&mut self.current),
                p99_ns: self.response.quantile_ns(0.99),
            });
            self.response.clear();
            self.covered_ns = 0;
        }
    }

    /// The balance over `endpoints`, which are called `names`; `None` for a single endpoint.
    pub(crate) fn finish(
        &self,
        endpoints: &[EndpointTally],
        names: &[String],
    ) -> Option<EndpointBalance> {
        if endpoints.len() < 2 {
            return None;
        }
        let loads = |of: fn(&EndpointTally) -> f64| -> Option<Indices> {
            Indices::of(&endpoints.iter().map(of).collect::<Vec<_>>())
        };
        let requests: Vec<u64> = endpoints.iter().map(EndpointTally::requests).collect();
        let bins = self.windows.bins();
        let windows: Vec<Vec<f64>> = bins.iter().map(|w| w.requests.clone()).collect();
        let (peaks, tails): (Vec<f64>, Vec<f64>) = bins
            .iter()
            .filter_map(|w| Some((Indices::of(&w.requests)?.peak, w.p99_ns as f64)))
            .unzip();
        let empty = Histogram::new();
        let result = |(i, e): (usize, &EndpointTally)| EndpointResult {
            name: names
                .get(i)
                .cloned()
                .unwrap_or_else(|| format!("unknown host {}", i + 1)),
            requests: e.requests(),
            failed: e.failed,
            bytes: e.bytes,
            busy_s: e.busy_ns as f64 / 1e9,
            service: Latency::of(e.service.as_deref().unwrap_or(&empty)),
        };
        Some(EndpointBalance {
            endpoints: endpoints.iter().enumerate().map(result).collect(),
            requests: loads(|e| e.requests() as f64),
            bytes: loads(|e| e.bytes as f64),
            busy: loads(|e| e.busy_ns as f64),
            null: Null::even(&requests),
            over_time: OverTime::of(&windows),
            window_s: WINDOW_NS as f64 / 1e9 * self.windows.stride() as f64,
            tail: TailLink::of(&peaks, &tails),
        })
    }
}
