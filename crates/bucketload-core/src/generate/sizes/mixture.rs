//! Finite mixtures of size laws and weighted lists of sizes.

use super::kind::{Kind, smallest};
use crate::generate::LawError;
use crate::generate::alias::AliasTable;
use crate::generate::rng::Draws;
use crate::plan::SizeKind;

/// Number of intervals in the table that brackets a mixture's quantiles.
const GRID: usize = 1024;

/// Chooses a part by its weight, then a size from that part.
#[derive(Clone, Debug)]
pub(super) struct Mixture {
    alias: AliasTable,
    parts: Box<[(f64, Kind)]>,
    /// `grid[i]` is the quantile of i / GRID.
    grid: Box<[u64]>,
}

impl Mixture {
    pub(super) fn new(parts: &[(f64, SizeKind)]) -> Result<Self, LawError> {
        let weights: Vec<f64> = parts.iter().map(|part| part.0).collect();
        let alias = AliasTable::new(&weights, "parts")?;
        let total: f64 = weights.iter().sum();
        let parts = parts
            .iter()
            .enumerate()
            .map(|(i, (weight, kind))| match Kind::new(kind) {
                Ok(kind) => Ok((weight / total, kind)),
                Err(error) => Err(error.within(&format!("parts[{i}]"))),
            })
            .collect::<Result<_, _>>()?;
        let mut mixture = Self {
            alias,
            parts,
            grid: Box::default(),
        };
        let mut low = mixture.support().0;
        mixture.grid = (0..=GRID)
            .map(|i| {
                let high = mixture.support().1;
                low = mixture.search(i as f64 / GRID as f64, low, high);
                low
            })
            .collect();
        Ok(mixture)
    }

    #[inline]
    pub(super) fn sample(&self, draws: &mut Draws) -> u64 {
        let part = self.alias.choose(draws.next_unit());
        self.parts[part].1.sample(draws)
    }

    pub(super) fn cdf(&self, x: u64) -> f64 {
        self.parts.iter().map(|(p, kind)| p * kind.cdf(x)).sum()
    }

    pub(super) fn quantile(&self, u: f64) -> u64 {
        let cell = ((u * GRID as f64) as usize).min(GRID - 1);
        self.search(u, self.grid[cell], self.grid[cell + 1])
    }

    /// The smallest x in `low..=high` with F(x) ≥ u, or `high`.
    fn search(&self, u: f64, low: u64, high: u64) -> u64 {
        smallest(low, high, |x| self.cdf(x) >= u)
    }

    pub(super) fn clamped_mean(&self, min: u64, max: u64) -> f64 {
        let parts = self.parts.iter();
        parts.map(|(p, kind)| p * kind.clamped_mean(min, max)).sum()
    }

    pub(super) fn support(&self) -> (u64, u64) {
        // A part of weight 0 never occurs.
        let parts = self.parts.iter().filter(|part| part.0 > 0.0);
        parts.fold((u64::MAX, 0), |(low, high), (_, kind)| {
            let (a, b) = kind.support();
            (low.min(a), high.max(b))
        })
    }
}

/// Sizes with weights.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    alias: AliasTable,
    /// Sizes in ascending order, each with its cumulative probability.
    bins: Box<[(u64, f64)]>,
}

impl Histogram {
    pub(super) fn new(bins: &[(u64, f64)]) -> Result<Self, LawError> {
        let mut sorted = bins.to_vec();
        sorted.sort_by_key(|bin| bin.0);
        let weights: Vec<f64> = sorted.iter().map(|bin| bin.1).collect();
        let alias = AliasTable::new(&weights, "bins")?;
        let total: f64 = weights.iter().sum();
        let mut sum = 0.0;
        for bin in &mut sorted {
            sum += bin.1;
            bin.1 = sum / total;
        }
        Ok(Self {
            alias,
            bins: sorted.into_boxed_slice(),
        })
    }

    #[inline]
    pub(super) fn sample(&self, draws: &mut Draws) -> u64 {
        self.bins[self.alias.choose(draws.next_unit())].0
    }

    pub(super) fn cdf(&self, x: u64) -> f64 {
        match self.bins.partition_point(|bin| bin.0 <= x) {
            0 => 0.0,
            i => self.bins[i - 1].1,
        }
    }

    pub(super) fn quantile(&self, u: f64) -> u64 {
        let at = self.bins.partition_point(|bin| bin.1 < u);
        self.bins[at.min(self.bins.len() - 1)].0
    }

    pub(super) fn clamped_mean(&self, min: u64, max: u64) -> f64 {
        let mut below = 0.0;
        let mut mean = 0.0;
        for &(size, cumulated) in &self.bins {
            mean += size.clamp(min, max) as f64 * (cumulated - below);
            below = cumulated;
        }
        mean
    }

    pub(super) fn support(&self) -> (u64, u64) {
        (self.bins[0].0, self.bins[self.bins.len() - 1].0)
    }
}
