//! Counters of a server. Each thread writes its own without locking; readers sum them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bucketload_wire::clock;
use serde::Serialize;

use super::faults::FaultStats;
use super::router::Operation;

/// A server's counters so far. The statistics page returns them serialised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ServerStats {
    /// Connections accepted.
    pub connections: u64,
    /// Connections open now.
    pub open_connections: u64,
    /// Connections refused because the limit was reached.
    pub refused_connections: u64,
    /// Nonzero request counts by operation (see [`Operation::name`]), in a fixed order.
    pub requests: Vec<(&'static str, u64)>,
    /// Requests rejected before their operation was known.
    pub unknown_requests: u64,
    /// Responses with a 4xx status.
    pub client_errors: u64,
    /// Responses with a 5xx status.
    pub server_errors: u64,
    /// Bytes of request bodies received, including their framing.
    pub body_bytes_in: u64,
    /// Bytes of response bodies sent.
    pub body_bytes_out: u64,
    /// CPU time of the whole process in nanoseconds, user and system.
    pub process_cpu_ns: u64,
    /// Objects held, if the store counts them.
    pub objects: Option<u64>,
    /// Bytes charged against the store's limit, if the store counts them.
    pub charged_bytes: Option<u64>,
    /// The fault rules, in the order given.
    pub faults: Vec<FaultStats>,
}

impl ServerStats {
    /// All requests.
    #[must_use]
    pub fn total_requests(&self) -> u64 {
        self.requests.iter().map(|(_, n)| n).sum::<u64>() + self.unknown_requests
    }

    /// Requests for `operation`.
    #[must_use]
    pub fn requests_of(&self, operation: Operation) -> u64 {
        let name = operation.name();
        self.requests
            .iter()
            .find(|(n, _)| *n == name)
            .map_or(0, |(_, n)| *n)
    }
}

/// The counters of one thread, aligned so that no two threads share a cache line.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Counters {
    pub(crate) connections: Counter,
    pub(crate) refused: Counter,
    pub(crate) unknown: Counter,
    pub(crate) client_errors: Counter,
    pub(crate) server_errors: Counter,
    pub(crate) bytes_in: Counter,
    pub(crate) bytes_out: Counter,
    requests: Requests,
}

/// A counter for each operation.
#[derive(Debug)]
struct Requests([Counter; Operation::ALL.len()]);

impl Default for Requests {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Counter::default()))
    }
}

impl Counters {
    /// Counts a request for `operation`.
    pub(crate) fn request(&self, operation: Operation) {
        self.requests.0[operation as usize].add(1);
    }

    /// Counts a response by its status.
    pub(crate) fn answer(&self, status: u16) {
        match status {
            400..500 => self.client_errors.add(1),
            500.. => self.server_errors.add(1),
            _ => {}
        }
    }
}

/// A counter with one writer.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`. Only the owning thread may call this.
    pub(crate) fn add(&self, n: u64) {
        self.0.store(self.0.load(Relaxed) + n, Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Sums the threads' counters.
pub(crate) fn sum<'a>(threads: impl Iterator<Item = &'a Counters>) -> ServerStats {
    let mut stats = ServerStats {
        connections: 0,
        open_connections: 0,
        refused_connections: 0,
        requests: Vec::new(),
        unknown_requests: 0,
        client_errors: 0,
        server_errors: 0,
        body_bytes_in: 0,
        body_bytes_out: 0,
        process_cpu_ns: clock::process_cpu_ns(),
        objects: None,
        charged_bytes: None,
        faults: Vec::new(),
    };
    let mut requests = [0; Operation::ALL.len()];
    for thread in threads {
        stats.connections += thread.connections.get();
        stats.refused_connections += thread.refused.get();
        stats.unknown_requests += thread.unknown.get();
        stats.client_errors += thread.client_errors.get();
        stats.server_errors += thread.server_errors.get();
        stats.body_bytes_in += thread.bytes_in.get();
        stats.body_bytes_out += thread.bytes_out.get();
        for (total, counter) in requests.iter_mut().zip(&thread.requests.0) {
            *total += counter.get();
        }
    }
    let named = Operation::ALL
        .iter()
        .zip(requests)
        .map(|(operation, n)| (operation.name(), n));
    stats.requests = named.filter(|(_, n)| *n > 0).collect();
    stats
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_add_up_over_threads() {
        let threads = [Counters::default(), Counters::default()];
        threads[0].request(Operation::Get);
        threads[1].request(Operation::Get);
        threads[1].request(Operation::Put);
        threads[1].unknown.add(2);
        for status in [200, 404, 503, 206] {
            threads[0].answer(status);
        }
        let stats = sum(threads.iter());
        assert_eq!(stats.requests, [("get", 2), ("put", 1)]);
        assert_eq!(
            (stats.total_requests(), stats.requests_of(Operation::Get)),
            (5, 2)
        );
        assert_eq!((stats.client_errors, stats.server_errors), (1, 1));
        assert_eq!(Operation::ALL.len(), Operation::Stats as usize + 1);
    }
}
