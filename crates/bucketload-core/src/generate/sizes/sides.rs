//! Sizes of samples as DLIO lays them out (docs/spec/ai-training.md section 3): a two-dimensional array of bytes
//! whose sides are drawn independently, so the size is a product of two normal variables.

use crate::generate::math::{normal_cdf, normal_quantile};
use crate::generate::rng::Draws;
use crate::generate::{LawError, not_negative};

/// Standard deviations from the mean within which every draw lies: a draw has 53 bits.
const REACH: f64 = 8.5;
/// Most terms of a distribution function; more sides than this are taken in groups.
const TERMS: u64 = 1024;

/// `side · side + offset` with sides from N(⌊√record⌋, stdev / (2·√record)), cut to whole numbers, at least 1.
#[derive(Clone, Debug)]
pub(super) struct Sides {
    mean: f64,
    stdev: f64,
    offset: u64,
}

impl Sides {
    pub(super) fn new(record: f64, stdev: f64, offset: u64) -> Result<Self, LawError> {
        if !(1.0..1e18).contains(&record) {
            let reason = format!("is {record}, must be at least 1 and below 10^18");
            return Err(LawError::new("record", reason));
        }
        not_negative("stdev", stdev)?;
        if stdev > record {
            let reason = format!("is {stdev}, must be at most the record, {record}");
            return Err(LawError::new("stdev", reason));
        }
        let root = record.sqrt();
        Ok(Self {
            mean: root.floor(),
            stdev: stdev / (2.0 * root),
            offset,
        })
    }

    fn side(&self, z: f64) -> u64 {
        // Cut towards 0, as a conversion to an integer does.
        ((self.mean + self.stdev * z) as u64).max(1)
    }

    pub(super) fn sample(&self, draws: &mut Draws) -> u64 {
        let mut side = || self.side(normal_quantile(draws.next_open()));
        side() * side() + self.offset
    }

    /// P(side ≤ n).
    fn side_cdf(&self, n: u64) -> f64 {
        match n {
            0 => 0.0,
            n if self.stdev == 0.0 => f64::from(u8::from(self.mean.max(1.0) <= n as f64)),
            n => normal_cdf((n as f64 + 1.0 - self.mean) / self.stdev),
        }
    }

    /// P(size ≤ x): the sum over one side of what the other may be.
    pub(super) fn cdf(&self, x: u64) -> f64 {
        let Some(area) = x.checked_sub(self.offset) else {
            return 0.0;
        };
        let (low, high) = (self.side(-REACH), self.side(REACH));
        let step = (high - low + 1).div_ceil(TERMS);
        let (mut sum, mut below, mut at) = (0.0, 0.0, low);
        while at <= high {
            let last = (at + step - 1).min(high);
            let upto = if last == high {
                1.0
            } else {
                self.side_cdf(last)
            };
            sum += (upto - below) * self.side_cdf(area / (at + (last - at) / 2));
            (below, at) = (upto, last + 1);
        }
        sum.min(1.0)
    }

    pub(super) fn support(&self) -> (u64, u64) {
        let (low, high) = (self.side(-REACH), self.side(REACH));
        (low * low + self.offset, high * high + self.offset)
    }

    /// Mean size. The sides are independent, so it is the square of their mean.
    pub(super) fn mean(&self) -> f64 {
        let (low, high) = (self.side(-REACH), self.side(REACH));
        let above: f64 = (low..high).map(|n| 1.0 - self.side_cdf(n)).sum();
        (low as f64 + above).powi(2) + self.offset as f64
    }
}
