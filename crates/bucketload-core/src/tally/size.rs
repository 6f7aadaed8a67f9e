//! Successes per range of sizes, for workloads that mix objects of very different sizes (docs/spec/scenarios.md
//! sections 4.2 and 7.1).

use crate::histogram::Histogram;
use crate::op::OpClass;

/// Counts and latencies of the successes of a work and class that transferred `from..to` bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeCell {
    /// Index of the work within the phase.
    pub work: u16,
    /// Operation class.
    pub class: OpClass,
    /// Smallest size, bytes.
    pub from: u64,
    /// First size beyond the range, bytes.
    pub to: u64,
    /// Number of operations that succeeded.
    pub ok: u64,
    /// Object bytes transferred.
    pub bytes: u64,
    /// Response times.
    pub response: Histogram,
    /// Service times.
    pub service: Histogram,
}

impl SizeCell {
    /// An empty cell.
    #[must_use]
    pub fn new(work: u16, class: OpClass, from: u64, to: u64) -> Self {
        Self {
            work,
            class,
            from,
            to,
            ok: 0,
            bytes: 0,
            response: Histogram::new(),
            service: Histogram::new(),
        }
    }

    /// Adds all of `other`, which must be of the same work, class and range.
    pub fn merge(&mut self, other: &Self) {
        debug_assert_eq!(
            (self.work, self.class, self.from),
            (other.work, other.class, other.from)
        );
        self.ok += other.ok;
        self.bytes += other.bytes;
        self.response.merge(&other.response);
        self.service.merge(&other.service);
    }

    pub(super) fn clear(&mut self) {
        self.ok = 0;
        self.bytes = 0;
        self.response.clear();
        self.service.clear();
    }
}
