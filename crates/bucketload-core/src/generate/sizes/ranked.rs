//! Sizes as a number of units whose rank follows a power law: zipf and zipf-mandelbrot.

use crate::generate::LawError;
use crate::generate::power::PowerLaw;
use crate::generate::rng::Draws;
use crate::plan::SizeKind;

/// unit · (k + first), optionally filled down within the unit.
#[derive(Clone, Debug)]
pub(super) struct Ranked {
    law: PowerLaw,
    unit: u64,
    /// 1 for zipf (ranks from 1), 0 for zipf-mandelbrot (k from 0).
    first: u64,
    /// Whether U{0..unit-1} is subtracted.
    spread: bool,
}

impl Ranked {
    pub(super) fn new(kind: &SizeKind) -> Result<Self, LawError> {
        let (n, s, v, unit, first, spread) = match *kind {
            SizeKind::Zipf { n, s, unit, align } => (n, s, 1.0, unit, 1, !align),
            SizeKind::ZipfMandelbrot { n, s, v, unit } => {
                (n.saturating_add(1), s, v, unit, 0, false)
            }
            _ => return Err(LawError::new("kind", "is not a ranked law")),
        };
        if unit == 0 || unit.checked_mul(n).is_none() {
            let reason = format!("is {unit}, must be at least 1 and n · unit below 2^64");
            return Err(LawError::new("unit", reason));
        }
        Ok(Self {
            law: PowerLaw::new(n, s, v)?,
            unit,
            first,
            spread,
        })
    }

    #[inline]
    pub(super) fn sample(&self, draws: &mut Draws) -> u64 {
        let top = self.unit * (self.law.sample(draws) + self.first);
        if self.spread {
            top - draws.below(self.unit)
        } else {
            top
        }
    }

    pub(super) fn quantile(&self, u: f64) -> u64 {
        let k = self.law.quantile(u);
        let top = self.unit * (k + self.first);
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
        let units = x / self.unit;
        if !self.spread {
            // Values up to `units` are the first `units + 1 - first` ranks.
            return self.law.share_below(units + 1 - self.first);
        }
        let below = self.law.share_below(units);
        let inside = (x % self.unit) as f64 / self.unit as f64;
        below + (self.law.share_below(units + 1) - below) * inside
    }

    /// Sums of ranks weighted by probability; where sizes are spread within a unit each rank counts
    /// with its mean size, so only the two ranks that the limits cut are approximate.
    pub(super) fn clamped_mean(&self, min: u64, max: u64) -> f64 {
        let n = self.law.n();
        let unit = self.unit as f64;
        let shift = if self.spread { (unit - 1.0) / 2.0 } else { 0.0 };
        // Ranks whose size is below a limit.
        let below = |limit: u64| {
            let units = ((limit as f64 + shift) / unit - self.first as f64).ceil();
            (units.max(0.0) as u64).min(n)
        };
        let (low, high) = (below(min), below(max));
        let (p_low, p_high) = (self.law.share_below(low), self.law.share_below(high));
        // E[k + first] between the limits, from E[v + k].
        let ranks = self.law.moment_below(high) - self.law.moment_below(low)
            + (self.first as f64 - self.law.v()) * (p_high - p_low);
        min as f64 * p_low + unit * ranks - shift * (p_high - p_low) + max as f64 * (1.0 - p_high)
    }

    pub(super) fn support(&self) -> (u64, u64) {
        let low = self.unit * self.first;
        let low = if self.spread {
            low - self.unit + 1
        } else {
            low
        };
        (low, self.unit * (self.law.n() - 1 + self.first))
    }
}
