//! Second pass: merges the histograms of each phase's measured window.

use std::collections::BTreeMap;

use bucketload_core::histogram::Histogram;
use bucketload_core::tally::{Cell, Gauges, Interval, Tally};

use super::balance::EndpointWindows;
use super::bins::Successes;
use super::fold::Fold;
use super::scan::{ClassKey, PhaseScan, end_with_work};
use super::window::{Marks, counts};
use crate::error::ResultsError;
use crate::result::{HeatMap, LatencyOverTime, Window};
use crate::rundir::{Damage, Metric, Owner, RunDir, Stored, empty_interval};

/// Limit on the columns of latency over time.
const COLUMNS: u64 = 240;
/// Columns that must remain for a coarser interval to be worth it.
const FEWEST_COLUMNS: u64 = 12;
/// Rows of the heat map per octave.
const ROWS_PER_OCTAVE: f64 = 4.0;
/// Rows of the heat map over the whole range of a histogram.
const ROWS: usize = 43 * 4;
/// Limit on the bins of a class's throughput series.
const BINS: usize = 16_384;

/// Data of a phase from the second pass.
pub(crate) struct PhaseGather {
    window: Window,
    start_ns: u64,
    /// Whether operations that end after the window are left out.
    baseline: bool,
    intervals_per_column: u64,
    seen: u64,
    /// All operations from the start of the window to the end of the drain.
    pub(crate) tally: Tally,
    pub(crate) classes: BTreeMap<ClassKey, ClassGather>,
    /// Readings at the start and the end of the window, and the number of operations that ended in between.
    pub(crate) gauges: Option<(Gauges, Gauges)>,
    pub(crate) gauges_ops: u64,
    pub(crate) gauges_ns: u64,
    pub(crate) endpoints: EndpointWindows,
    before: Option<Gauges>,
}

/// Data of a class from the second pass.
pub(crate) struct ClassGather {
    pub(crate) successes: Fold<Successes>,
    pub(crate) over_time: LatencyOverTime,
    pub(crate) heat: Vec<Vec<u64>>,
    column: Histogram,
}

/// Intervals per column of latency over time: as few as fit, but so many that the most frequent operation has enough
/// of them in a column for a percentile (ten values beyond it), if enough columns remain to see a course.
fn intervals_per_column(scan: &PhaseScan) -> u64 {
    let intervals = scan.totals.intervals;
    let least = intervals.div_ceil(COLUMNS).max(1);
    let most = scan
        .classes
        .values()
        .map(|class| class.ok)
        .max()
        .unwrap_or(0);
    // For p99, p90 and the median, with a reserve, because intervals vary.
    [1500, 150, 60]
        .into_iter()
        .map(|wanted| (wanted * intervals).div_ceil(most.max(1)).max(least))
        .find(|columns| intervals >= FEWEST_COLUMNS * columns)
        .unwrap_or(least)
}

impl PhaseGather {
    fn new(scan: &PhaseScan, window: Window, start_ns: u64, baseline: bool) -> Self {
        let columns = intervals_per_column(scan);
        let class = || ClassGather {
            successes: Fold::new(BINS),
            over_time: LatencyOverTime {
                intervals_per_column: columns,
                ..LatencyOverTime::default()
            },
            heat: Vec::new(),
            column: Histogram::new(),
        };
        Self {
            window,
            start_ns,
            baseline,
            intervals_per_column: columns,
            seen: 0,
            tally: Tally::new(),
            classes: scan.classes.keys().map(|&key| (key, class())).collect(),
            gauges: None,
            gauges_ops: 0,
            gauges_ns: 0,
            endpoints: EndpointWindows::new(),
            before: scan.before,
        }
    }

    /// Adds the counters of an interval and the histograms that `read` passes.
    fn add(
        &mut self,
        interval: &Interval,
        read: impl FnOnce(&mut dyn FnMut(&Stored<'_>)) -> Result<(), ResultsError>,
    ) -> Result<(), ResultsError> {
        if self.seen.is_multiple_of(self.intervals_per_column) {
            let t_s = interval.start_ns.saturating_sub(self.start_ns) as f64 / 1e9;
            for class in self.classes.values_mut() {
                class.next_column(t_s);
            }
        }
        self.seen += 1;
        let (start, until) = (self.window.start_ns, self.window.end_ns);
        let within = counts(interval.start_ns, interval.end_ns, start, until);
        let kept = interval.start_ns >= start && (!self.baseline || interval.end_ns <= until);
        if kept {
            // First the counters, because the endpoints of the interval make those of the tally.
            self.tally.merge(&interval.tally);
        }
        read(&mut |stored| {
            if let (Owner::Cell(work, class), Metric::Response) = (stored.owner, stored.metric) {
                if let Some(class) = self.classes.get_mut(&(work, class)) {
                    stored.add_into(&mut class.column);
                }
                if within && !interval.tally.endpoints.is_empty() {
                    self.endpoints.add_response(stored);
                }
            }
            if kept {
                stored.add_to(&mut self.tally);
            }
        })?;
        if within {
            self.add_rates(interval);
            self.endpoints.add(interval);
        }
        self.before = Some(interval.gauges);
        Ok(())
    }

    fn add_rates(&mut self, interval: &Interval) {
        let len_ns = interval.end_ns.saturating_sub(interval.start_ns).max(1);
        for (&(work, class), gather) in &mut self.classes {
            let cell = find(&interval.tally, work, class);
            gather.successes.push(&Successes {
                len_ns,
                ok: cell.map_or(0, |c| c.ok),
                bytes: cell.map_or(0, |c| c.bytes),
            });
        }
        match (&mut self.gauges, self.before) {
            (Some((_, last)), _) => *last = interval.gauges,
            (none, Some(before)) => *none = Some((before, interval.gauges)),
            // The readings at the start are unknown: count from the end of this interval.
            (none, None) => {
                *none = Some((interval.gauges, interval.gauges));
                return;
            }
        }
        self.gauges_ops += interval.tally.ended();
        self.gauges_ns += len_ns;
    }

    fn finish(&mut self) {
        for class in self.classes.values_mut() {
            class.end_column();
        }
    }
}

/// The cell of a work's class.
pub(crate) fn find(tally: &Tally, work: u16, class: bucketload_core::op::OpClass) -> Option<&Cell> {
    tally
        .cells
        .iter()
        .find(|c| c.work == work && c.class == class)
}

impl ClassGather {
    fn next_column(&mut self, t_s: f64) {
        self.end_column();
        self.over_time.t_s.push(t_s);
    }

    fn end_column(&mut self) {
        let (bands, h) = (&mut self.over_time, &mut self.column);
        if bands.t_s.len() == bands.n.len() {
            return;
        }
        let ms = |ns: u64| ns as f64 / 1e6;
        bands.n.push(h.count());
        bands.p50_ms.push(ms(h.quantile_ns(0.5)));
        bands.p90_ms.push(ms(h.quantile_ns(0.9)));
        bands.p99_ms.push(ms(h.quantile_ns(0.99)));
        bands.p999_ms.push(ms(h.quantile_ns(0.999)));
        bands.max_ms.push(ms(h.max_ns()));
        let mut rows = vec![0; ROWS];
        for (index, count) in h.buckets() {
            rows[row_of(Histogram::lowest_of(index))] += count;
        }
        self.heat.push(rows);
        h.clear();
    }

    /// The heat map, without empty rows at the bottom and top.
    pub(crate) fn heat_map(&self) -> HeatMap {
        let used = |row: &usize| self.heat.iter().any(|column| column[*row] > 0);
        let (Some(first), Some(last)) = ((0..ROWS).find(used), (0..ROWS).rfind(used)) else {
            return HeatMap::default();
        };
        HeatMap {
            edges_ns: (first..=last + 1).map(edge_of).collect(),
            counts: self
                .heat
                .iter()
                .map(|column| column[first..=last].to_vec())
                .collect(),
        }
    }
}

fn row_of(ns: u64) -> usize {
    let row = (ROWS_PER_OCTAVE * (ns.max(1) as f64).log2()).floor() as usize;
    row.min(ROWS - 1)
}

fn edge_of(row: usize) -> u64 {
    (row as f64 / ROWS_PER_OCTAVE).exp2().round() as u64
}

/// Collects the data of the phases in `run`, given their windows and starts.
pub(crate) fn gather(
    run: &RunDir,
    phases: &BTreeMap<u16, (&PhaseScan, Window, u64)>,
    marks: &BTreeMap<u16, Marks>,
) -> Result<(BTreeMap<u16, PhaseGather>, Damage), ResultsError> {
    let mut gathered: BTreeMap<u16, PhaseGather> = phases
        .iter()
        .map(|(&phase, &(scan, window, start_ns))| {
            let baseline = run
                .manifest()
                .plan
                .phases
                .get(usize::from(phase))
                .is_some_and(|plan| plan.accounting.baseline);
            (phase, PhaseGather::new(scan, window, start_ns, baseline))
        })
        .collect();
    let mut reader = run.intervals()?;
    let mut interval = empty_interval();
    while let Some(mut line) = reader.next_line()? {
        end_with_work(&mut line, marks);
        if let Some(phase) = gathered.get_mut(&line.phase) {
            line.fill(&mut interval);
            phase.add(&interval, |each| reader.histograms(&line, |_| true, each))?;
        }
    }
    gathered.values_mut().for_each(PhaseGather::finish);
    Ok((gathered, reader.into_damage()))
}

#[cfg(test)]
mod tests {
    use super::{ROWS, edge_of, row_of};

    #[test]
    fn rows_hold_the_values_between_their_edges() {
        for ns in [1, 2, 3, 999, 1000, 123_456, 1 << 30, 1 << 41] {
            let row = row_of(ns);
            assert!(
                edge_of(row) <= ns && ns <= edge_of(row + 1),
                "{ns} in row {row}"
            );
        }
        assert_eq!(row_of(u64::MAX), ROWS - 1);
    }
}
