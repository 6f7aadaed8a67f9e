//! Sizes as a number of units whose rank follows a power law: zipf and zipf-mandelbrot.

use crate::generate::LawError;
use crate::generate::power::PowerLaw;
use crate::generate::rng::Draws;
use crate::plan::SizeKind;

/// unit · (k + first), optionally reduced by a random part of the unit.
#[derive(Clone, Debug)]
pub(super) struct Ranked {
    law: PowerLaw,
    unit: u64,
    /// 1 for zipf (ranks from 1), 0 for zipf-mandelbrot (k from 0).
    first: u64,
    /// Whether U{0..unit-1} is subtracted.
    spread: bool,
    /// Added to every size.
    offset: u64,
}

impl Ranked {
    pub(super) fn new(kind: &SizeKind) -> Result<Self, LawError> {
        let (n, s, v, unit, first, spread, offset) = match *kind {
            SizeKind::Zipf { n, s, unit, align } => (n, s, 1.0, unit, 1, !align, 0),
            SizeKind::ZipfMandelbrot {
                n,
                s,
                v,
                unit,
                offset,
            } => (n.saturating_add(1), s, v, unit, 0, false, offset),
            _ => return Err(LawError::new("kind", "is not a ranked law")),
        };
        let largest = unit.checked_mul(n).and_then(|x| x.checked_add(offset));
        if unit == 0 || largest.is_none() {
            let reason = format!("is {unit}, must be at least 1 and n · unit below 2^64");
            return Err(LawError::new("unit", reason));
        }
        Ok(Self {
            law: PowerLaw::new(n, s, v)?,
            unit,
            first,
            spread,
            offset,
        })
    }

    #[inline]
    pub(super) fn sample(&self, draws: &mut Draws) -> u64 {
        let top = self.unit * (self.law.sample(draws) + self.first) + self.offset;
        if self.spread {
            top - draws.below(self.unit)
        } else {
            top
        }
    }

    pub(super) fn quantile(&self, u: f64) -> u64 {
        let k = self.law.quantile(u);
        let top = self.unit * (k + self.first) + self.offset;
        if !self.spread {
            return top;
        }
        // Position within the unit: the share of the rank's probability that lies at or below u.
        let below = self.law.share_below(k);
        let inside = (u - below) / (self.law.share_below(k + 1) - below);
        let step = (inside * self.unit as f64).ceil() as u64;
        top - self.unit + step.clamp(1, self.unit)
    }

    pub(super) fn cdf(&self, x: u64) -> f64 {
        let Some(x) = x.checked_sub(self.offset) else {
            return 0.0;
        };
        let units = x / self.unit;
        if !self.spread {
            // Values up to `units` are the first `units + 1 - first` ranks.
            return self.law.share_below(units + 1 - self.first);
        }
        let below = self.law.share_below(units);
        let inside = (x % self.unit) as f64 / self.unit as f64;
        below + (self.law.share_below(units + 1) - below) * inside
    }

    /// Mean of the clamped size. Ranks that a limit cuts are computed one by one, ranks beyond a limit count
    /// as the limit, and the ranks between are summed.
    pub(super) fn clamped_mean(&self, min: u64, max: u64) -> f64 {
        // The mean without the offset, clamped to the limits minus the offset.
        let below = min.saturating_sub(self.offset);
        let Some(above) = max.checked_sub(self.offset) else {
            return max as f64;
        };
        self.offset as f64 + self.clamped_mean_of_units(below, above)
    }

    fn clamped_mean_of_units(&self, min: u64, max: u64) -> f64 {
        let n = self.law.n();
        // All sizes of ranks below `low` are at most min, and all from rank `high` on at least max.
        let low = (min / self.unit).saturating_sub(self.first).min(n);
        let high = (max / self.unit).saturating_add(2).min(n);
        let inner_low = low.saturating_add(3).min(high);
        let inner_high = high.saturating_sub(3).max(inner_low);
        let share = |k| self.law.share_below(k);
        let probability = share(inner_high) - share(inner_low);
        // Σ (k + first)·P(k), from Σ (v + k)·P(k).
        let ranks = self.law.moment_below(inner_high) - self.law.moment_below(inner_low)
            + (self.first as f64 - self.law.v()) * probability;
        let half_unit = if self.spread {
            0.5 * (self.unit - 1) as f64
        } else {
            0.0
        };
        let cut = (low..inner_low)
            .chain(inner_high..high)
            .map(|k| (share(k + 1) - share(k)) * self.mean_of_rank(k, min, max));
        min as f64 * share(low)
            + cut.sum::<f64>()
            + (self.unit as f64 * ranks - half_unit * probability)
            + max as f64 * (1.0 - share(high))
    }

    /// Mean of the clamped sizes of rank k.
    fn mean_of_rank(&self, k: u64, min: u64, max: u64) -> f64 {
        let top = self.unit * (k + self.first);
        let bottom = if self.spread {
            top - self.unit + 1
        } else {
            top
        };
        let (low, high) = (bottom.clamp(min, max), top.clamp(min, max));
        if low == high {
            return low as f64;
        }
        // Sizes beyond a limit count as the limit.
        let middle = (high - low + 1) as f64 * 0.5 * (low as f64 + high as f64);
        let outside = (low - bottom) as f64 * low as f64 + (top - high) as f64 * high as f64;
        (middle + outside) / (top - bottom + 1) as f64
    }

    pub(super) fn support(&self) -> (u64, u64) {
        let low = self.unit * self.first;
        let low = if self.spread {
            low - self.unit + 1
        } else {
            low
        };
        let high = self.unit * (self.law.n() - 1 + self.first);
        (low + self.offset, high + self.offset)
    }
}
