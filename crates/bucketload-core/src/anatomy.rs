//! Response times by component: a histogram per [`Part`], over the operations in which that part took any
//! time.
//!
//! Most parts are zero in most operations (a request sent in one system call has no send time, a reused
//! connection no connect time), so zeros are not recorded. [`Anatomy::over`] adds them when it computes
//! figures over all operations. A histogram is allocated when its part first occurs and is kept from then on.

use crate::histogram::Histogram;
use crate::record::{OpRecord, Part};

/// Histograms of the response time's parts.
#[derive(Clone, Debug, Default)]
pub struct Anatomy {
    parts: [Option<Box<Histogram>>; Part::ALL.len()],
}

/// A part that never occurred compares equal to an empty histogram.
impl PartialEq for Anatomy {
    fn eq(&self, other: &Self) -> bool {
        Part::ALL
            .into_iter()
            .all(|part| match (self.part(part), other.part(part)) {
                (Some(a), Some(b)) => a == b,
                (a, b) => a.or(b).is_none(),
            })
    }
}

impl Anatomy {
    /// Records the parts between an operation's intended start and its real start.
    #[inline]
    pub fn record_start(&mut self, record: &OpRecord) {
        self.record(0, &record.start_parts_ns());
    }

    /// Records the parts between an operation's start and its end.
    #[inline]
    pub fn record_service(&mut self, record: &OpRecord) {
        self.record(Part::Send as usize, &record.service_parts_ns());
    }

    /// Records consecutive parts, starting at part number `first`.
    #[inline]
    fn record(&mut self, first: usize, parts_ns: &[u64]) {
        for (part, &ns) in self.parts[first..].iter_mut().zip(parts_ns) {
            if ns > 0 {
                part.get_or_insert_default().record(ns);
            }
        }
    }

    /// The nonzero times of `part`; `None` if there are none.
    #[must_use]
    pub fn part(&self, part: Part) -> Option<&Histogram> {
        self.parts[part as usize]
            .as_deref()
            .filter(|histogram| !histogram.is_empty())
    }

    /// The histogram of `part`, created on first use.
    #[inline]
    pub fn part_mut(&mut self, part: Part) -> &mut Histogram {
        self.parts[part as usize].get_or_insert_default()
    }

    /// Exact sum of the times of `part`, nanoseconds.
    #[must_use]
    pub fn sum_ns(&self, part: Part) -> u128 {
        self.part(part).map_or(0, Histogram::sum_ns)
    }

    /// The times of `part` over all of `operations`, zeros included; `None` if the part never took any time.
    #[must_use]
    pub fn over(&self, part: Part, operations: u64) -> Option<Histogram> {
        let mut all = self.part(part)?.clone();
        all.record_n(0, operations.saturating_sub(all.count()));
        Some(all)
    }

    /// Adds all of `other`. Associative and commutative; an empty anatomy is neutral.
    pub fn merge(&mut self, other: &Self) {
        for part in Part::ALL {
            if let Some(histogram) = other.part(part) {
                self.part_mut(part).merge(histogram);
            }
        }
    }

    /// Clears all histograms and keeps their memory.
    pub fn clear(&mut self) {
        self.parts
            .iter_mut()
            .flatten()
            .for_each(|histogram| histogram.clear());
    }
}

#[cfg(test)]
mod tests {
    use super::Anatomy;
    use crate::record::Part;

    #[test]
    fn figures_over_all_operations_contain_the_zeros() {
        let mut anatomy = Anatomy::default();
        assert_eq!(anatomy.over(Part::Tls, 100), None);
        for ns in [1_000_000, 3_000_000] {
            anatomy.part_mut(Part::Tls).record(ns);
        }
        let all = anatomy.over(Part::Tls, 100).unwrap();
        assert_eq!(
            (all.count(), all.min_ns(), all.max_ns()),
            (100, 0, 3_000_000)
        );
        assert_eq!(all.quantile_ns(0.98), 0);
        assert!(all.quantile_ns(0.99) >= 1_000_000);
        assert_eq!(all.mean_ns(), 40_000.0);
    }

    #[test]
    fn clearing_keeps_memory_and_a_cleared_part_equals_an_unused_one() {
        let mut anatomy = Anatomy::default();
        anatomy.part_mut(Part::Wait).record(5);
        anatomy.clear();
        assert_eq!(anatomy, Anatomy::default());
        assert!(anatomy.parts[Part::Wait as usize].is_some());
    }
}
