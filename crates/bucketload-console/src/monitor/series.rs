//! The figures of one phase over time, in a bounded number of bins whatever its length.
//!
//! A bin begins at a multiple of the width. When there would be too many bins, the width doubles and pairs of bins
//! are merged. Counts add up, and percentiles come from the merged histograms, so a wide bin has the true percentile
//! of its time span, not a mean of percentiles.

use bucketload_core::op::OpClass;
use bucketload_core::tally::Interval;

use super::sketch::Sketch;
use super::view::{ClassPoint, Point};

/// Maximum number of bins of a running phase.
pub(crate) const LIVE_BINS: u64 = 360;
/// Maximum number of points of an ended phase.
pub(crate) const KEPT_POINTS: u64 = 120;
/// Minimum width of a bin, nanoseconds: the runner's usual interval.
const WIDTH_NS: u64 = 1_000_000_000;

/// The figures of one bin.
#[derive(Clone, Debug, Default)]
struct Bin {
    index: u64,
    /// Measured time in the bin, nanoseconds.
    len_ns: u64,
    offered: u64,
    in_flight: u64,
    /// Indexed like [`Series::classes`].
    cells: Vec<Cell>,
}

#[derive(Clone, Debug, Default)]
struct Cell {
    ok: u64,
    failed: u64,
    bytes: u64,
    response: Sketch,
}

impl Cell {
    fn merge(&mut self, other: &Self) {
        self.ok += other.ok;
        self.failed += other.failed;
        self.bytes += other.bytes;
        self.response.merge(&other.response);
    }
}

impl Bin {
    fn cell(&mut self, class: usize) -> &mut Cell {
        if self.cells.len() <= class {
            self.cells.resize_with(class + 1, Cell::default);
        }
        &mut self.cells[class]
    }

    fn merge(&mut self, other: &Self) {
        self.len_ns += other.len_ns;
        self.offered += other.offered;
        self.in_flight = self.in_flight.max(other.in_flight);
        for (class, cell) in other.cells.iter().enumerate() {
            self.cell(class).merge(cell);
        }
    }
}

/// A phase over time.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    origin_ns: Option<u64>,
    width_ns: u64,
    classes: Vec<OpClass>,
    bins: Vec<Bin>,
}

impl Default for Series {
    fn default() -> Self {
        Self {
            origin_ns: None,
            width_ns: WIDTH_NS,
            classes: Vec::new(),
            bins: Vec::new(),
        }
    }
}

impl Series {
    /// Width of a bin, nanoseconds.
    pub(crate) const fn width_ns(&self) -> u64 {
        self.width_ns
    }

    /// Number of bins.
    pub(crate) const fn len(&self) -> usize {
        self.bins.len()
    }

    /// The classes, in the order of [`Point::classes`].
    pub(crate) fn classes(&self) -> Vec<&'static str> {
        self.classes.iter().map(|class| class.name()).collect()
    }

    /// Adds an interval of the phase.
    pub(crate) fn add(&mut self, interval: &Interval) {
        let origin = *self.origin_ns.get_or_insert(interval.start_ns);
        let since = interval.start_ns.saturating_sub(origin);
        while since / self.width_ns >= LIVE_BINS {
            self.halve_resolution();
        }
        let index = since / self.width_ns;
        // If time seems to go backwards, the figures are added to the newest bin.
        if self.bins.last().is_none_or(|last| last.index < index) {
            self.bins.push(Bin {
                index,
                ..Bin::default()
            });
        }
        let classes: Vec<usize> = interval
            .tally
            .cells
            .iter()
            .map(|cell| self.class(cell.class))
            .collect();
        let Some(bin) = self.bins.last_mut() else {
            return;
        };
        bin.len_ns += interval.end_ns.saturating_sub(interval.start_ns);
        bin.offered += interval.tally.offered;
        bin.in_flight = bin.in_flight.max(interval.gauges.in_flight);
        for (cell, &class) in interval.tally.cells.iter().zip(&classes) {
            let target = bin.cell(class);
            target.ok += cell.ok;
            target.failed += cell.failures();
            target.bytes += cell.bytes;
            if !cell.response.is_empty() {
                target.response.add(&cell.response);
            }
        }
    }

    fn class(&mut self, class: OpClass) -> usize {
        self.classes
            .iter()
            .position(|known| *known == class)
            .unwrap_or_else(|| {
                self.classes.push(class);
                self.classes.len() - 1
            })
    }

    fn halve_resolution(&mut self) {
        self.width_ns *= 2;
        let mut merged: Vec<Bin> = Vec::with_capacity(self.bins.len() / 2 + 1);
        for mut bin in self.bins.drain(..) {
            bin.index /= 2;
            match merged.last_mut() {
                Some(last) if last.index == bin.index => last.merge(&bin),
                _ => merged.push(bin),
            }
        }
        self.bins = merged;
    }

    /// Widens the bins until there are at most [`KEPT_POINTS`], and drops the histograms.
    pub(crate) fn freeze(mut self) -> (u64, Vec<&'static str>, Vec<Point>) {
        while self.bins.len() as u64 > KEPT_POINTS {
            self.halve_resolution();
        }
        (self.width_ns, self.classes(), self.points(0))
    }

    /// The points from bin `from` on.
    pub(crate) fn points(&self, from: usize) -> Vec<Point> {
        self.bins
            .get(from..)
            .unwrap_or_default()
            .iter()
            .map(|bin| self.point(bin))
            .collect()
    }

    fn point(&self, bin: &Bin) -> Point {
        let seconds = bin.len_ns.max(1) as f64 / 1e9;
        let rate = |n: u64| round(n as f64 / seconds);
        Point {
            t_s: round(bin.index as f64 * self.width_ns as f64 / 1e9),
            offered_per_s: rate(bin.offered),
            in_flight: bin.in_flight,
            classes: bin
                .cells
                .iter()
                .map(|cell| {
                    (cell.ok + cell.failed > 0).then(|| ClassPoint {
                        ops_per_s: rate(cell.ok),
                        bytes_per_s: rate(cell.bytes),
                        failed_per_s: rate(cell.failed),
                        p50_ns: cell.response.quantile_ns(0.5),
                        p95_ns: cell.response.quantile_ns(0.95),
                        p99_ns: cell.response.quantile_ns(0.99),
                        max_ns: cell.response.max_ns(),
                    })
                })
                .collect(),
        }
    }
}

/// Rounds to a thousandth: finer than any chart shows, with a third of the digits.
fn round(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
