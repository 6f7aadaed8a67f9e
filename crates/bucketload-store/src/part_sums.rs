//! The checksums of the parts that an object was assembled from, kept with it in little memory.

use std::sync::Arc;

use crate::content::{Budget, Charge};
use crate::error::Result;
use crate::types::{Checksum, ChecksumAlgorithm, ChecksumKind};

/// Checksums by one algorithm, one after the other: their values have the same length.
#[derive(Debug)]
pub(crate) struct PartSums {
    algorithm: ChecksumAlgorithm,
    values: String,
    length: usize,
    _charge: Charge,
}

impl PartSums {
    /// The checksums by `algorithm` of all `parts`; `None` if one lacks it.
    ///
    /// # Errors
    /// [`InsufficientStorage`](crate::StoreError::InsufficientStorage).
    pub(crate) fn of<'p>(
        algorithm: ChecksumAlgorithm,
        parts: impl Iterator<Item = &'p [Checksum]> + Clone,
        budget: &Arc<Budget>,
    ) -> Result<Option<Self>> {
        let value = |sums: &'p [Checksum]| {
            let sum = sums.iter().find(|sum| sum.algorithm == algorithm)?;
            Some(sum.value.as_str())
        };
        let Some(Some(length)) = parts.clone().next().map(|sums| value(sums).map(str::len)) else {
            return Ok(None);
        };
        let same = |sums| value(sums).is_some_and(|value| value.len() == length);
        if !parts.clone().all(same) {
            return Ok(None);
        }
        let values: String = parts.filter_map(value).collect();
        Ok(Some(Self {
            algorithm,
            length,
            _charge: budget.charge(values.len() as u64)?,
            values,
        }))
    }

    /// The checksum of part `number` (from 1).
    pub(crate) fn get(&self, number: u32) -> Option<Checksum> {
        let from = self.length * usize::try_from(number.checked_sub(1)?).ok()?;
        Some(Checksum {
            algorithm: self.algorithm,
            kind: ChecksumKind::FullObject,
            value: self.values.get(from..from + self.length)?.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(algorithm: ChecksumAlgorithm, value: &str) -> Vec<Checksum> {
        vec![Checksum {
            algorithm,
            kind: ChecksumKind::FullObject,
            value: value.to_owned(),
        }]
    }

    #[test]
    fn each_part_has_its_checksum_or_none_has() {
        let budget = Arc::new(Budget::new(16));
        let algorithm = ChecksumAlgorithm::Crc32;
        let of = |parts: &[Vec<Checksum>]| {
            PartSums::of(algorithm, parts.iter().map(Vec::as_slice), &budget)
        };
        let (one, two) = (sum(algorithm, "AAAAAA=="), sum(algorithm, "y/Q5Jg=="));
        let kept = of(&[one.clone(), two.clone()]).unwrap().unwrap();
        assert_eq!(
            (kept.get(1).as_ref(), kept.get(2).as_ref()),
            (one.first(), two.first())
        );
        assert_eq!((kept.get(0), kept.get(3)), (None, None));
        assert_eq!(budget.used(), 16);
        assert!(of(std::slice::from_ref(&one)).is_err(), "beyond the limit");
        drop(kept);
        assert_eq!(budget.used(), 0);
        let other = sum(ChecksumAlgorithm::Sha1, "3oqEe/+MND1puFOiFebud17y75Y=");
        for parts in [
            vec![],
            vec![one.clone(), vec![]],
            vec![vec![], one.clone()],
            vec![one, other],
        ] {
            assert!(of(&parts).unwrap().is_none());
        }
    }
}
