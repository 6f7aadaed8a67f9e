//! Counts and service times per endpoint.

use crate::error::ErrorKind;
use crate::histogram::Histogram;
use crate::record::{OpRecord, Outcome};

/// Number of endpoints whose service times are recorded. Further endpoints are only counted, to bound memory.
pub const MAX_TIMED: usize = 64;

/// Counts and service times of one endpoint.
#[derive(Clone, Debug, Default)]
pub struct EndpointTally {
    /// Operations that succeeded.
    pub ok: u64,
    /// Operations that failed (without cancelled ones).
    pub failed: u64,
    /// Object bytes of operations that succeeded.
    pub bytes: u64,
    /// Time that operations spent at the endpoint, including failed ones, nanoseconds.
    pub busy_ns: u64,
    /// Service times of successful operations; `None` if the endpoint is not timed or has none yet.
    pub service: Option<Box<Histogram>>,
}

/// An endpoint without service times compares equal to one with an empty histogram.
impl PartialEq for EndpointTally {
    fn eq(&self, other: &Self) -> bool {
        let times = |e: &Self| e.service.as_deref().filter(|h| !h.is_empty()).cloned();
        (self.ok, self.failed, self.bytes, self.busy_ns)
            == (other.ok, other.failed, other.bytes, other.busy_ns)
            && times(self) == times(other)
    }
}

impl EndpointTally {
    /// Tallies for `endpoints` endpoints, the first [`MAX_TIMED`] of them timed. Empty for a single endpoint,
    /// whose figures equal the totals.
    #[must_use]
    pub fn all(endpoints: usize) -> Vec<Self> {
        let endpoints = if endpoints > 1 { endpoints } else { 0 };
        (0..endpoints)
            .map(|i| Self {
                service: (i < MAX_TIMED).then(Box::default),
                ..Self::default()
            })
            .collect()
    }

    /// Records an operation that went to this endpoint.
    #[inline]
    pub fn record(&mut self, record: &OpRecord) {
        match record.outcome {
            Outcome::Ok => {
                self.ok += 1;
                self.bytes += record.bytes;
                if let Some(service) = &mut self.service {
                    service.record(record.service_ns());
                }
            }
            Outcome::Failed(ErrorKind::Cancelled) => return,
            Outcome::Failed(_) => self.failed += 1,
        }
        self.busy_ns += record.service_ns();
    }

    /// Operations that ended.
    #[must_use]
    pub const fn requests(&self) -> u64 {
        self.ok + self.failed
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.ok += other.ok;
        self.failed += other.failed;
        self.bytes += other.bytes;
        self.busy_ns += other.busy_ns;
        if let Some(theirs) = &other.service {
            self.service.get_or_insert_default().merge(theirs);
        }
    }

    /// Clears the tally and keeps its memory.
    pub fn clear(&mut self) {
        self.ok = 0;
        self.failed = 0;
        self.bytes = 0;
        self.busy_ns = 0;
        if let Some(service) = &mut self.service {
            service.clear();
        }
    }
}
