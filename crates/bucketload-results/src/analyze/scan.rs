//! First pass: counters, and the series that determine the measured window.

use std::collections::BTreeMap;

use bucketload_core::error::ErrorKind;
use bucketload_core::op::OpClass;
use bucketload_core::tally::{Gauges, JobCounts, KvCounts, ReplayCounts};

use super::bins::{Counts, Median};
use super::fold::Fold;
use super::window::Marks;
use crate::error::ResultsError;
use crate::result::Totals;
use crate::rundir::{Damage, IntervalLine, Metric, Owner, RunDir};

/// Limit on the bins for statistics: four and a half hours of one-second intervals. Longer runs have longer
/// bins.
const BINS: usize = 16_384;

/// A work and an operation class.
pub(crate) type ClassKey = (u16, OpClass);

/// Data of a class from the first pass.
#[derive(Debug)]
pub(crate) struct ClassScan {
    pub(crate) ok: u64,
    pub(crate) ended: u64,
    pub(crate) medians: Fold<Median>,
}

/// Data of a phase from the first pass.
#[derive(Debug)]
pub(crate) struct PhaseScan {
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) totals: Totals,
    pub(crate) series: Fold<Counts>,
    pub(crate) classes: BTreeMap<ClassKey, ClassScan>,
    /// Readings at the start of the phase, if known.
    pub(crate) before: Option<Gauges>,
    /// Largest change of wall clock minus monotonic clock between two intervals, nanoseconds.
    pub(crate) wall_step_ns: u64,
    pub(crate) rss_max_bytes: u64,
    /// Counts of jobs, of a replay and of a cache over the whole phase.
    pub(crate) jobs: JobCounts,
    pub(crate) replay: ReplayCounts,
    pub(crate) kvcache: KvCounts,
}

/// Shortens the last interval of a phase to end with the last operation. Intervals have a fixed length, so
/// the idle rest would dilute the rate of a phase with a fixed amount of work.
pub(crate) fn end_with_work(line: &mut IntervalLine, marks: &BTreeMap<u16, Marks>) {
    let ended = marks.get(&line.phase).and_then(|marks| marks.ended);
    if let Some((.., drained_ns)) = ended
        && (line.start_ns + 1..line.end_ns).contains(&drained_ns)
    {
        line.end_ns = drained_ns;
    }
}

/// Scans every interval of `run`.
pub(crate) fn scan(
    run: &RunDir,
    marks: &BTreeMap<u16, Marks>,
) -> Result<(BTreeMap<u16, PhaseScan>, Damage), ResultsError> {
    let mut phases: BTreeMap<u16, PhaseScan> = BTreeMap::new();
    let mut reader = run.intervals()?;
    let mut medians = Vec::new();
    let mut last: Option<(u64, Gauges)> = None;
    while let Some(mut line) = reader.next_line()? {
        end_with_work(&mut line, marks);
        let mut late = 0;
        medians.clear();
        let wanted = |metric| matches!(metric, Metric::Service | Metric::Late);
        reader.histograms(&line, wanted, |stored| match stored.owner {
            Owner::Tally => late = stored.quantile_ns(0.99),
            Owner::Cell(work, class) => medians.push(((work, class), stored.quantile_ns(0.5))),
            _ => {}
        })?;
        // Cumulative readings at the start of this interval: those at the end of the previous one, or zero
        // at the epoch.
        let before = match last {
            Some((end_ns, gauges)) if line.start_ns.saturating_sub(end_ns) <= line.len_ns() => {
                Some(gauges)
            }
            None if line.start_ns <= line.len_ns() => Some(Gauges {
                wall_offset_ns: line.gauges.wall_offset_ns,
                nic_rx_bytes: line.gauges.nic_rx_bytes,
                nic_tx_bytes: line.gauges.nic_tx_bytes,
                ..Gauges::default()
            }),
            _ => None,
        };
        let phase = phases.entry(line.phase).or_insert_with(|| PhaseScan {
            start_ns: line.start_ns,
            end_ns: line.end_ns,
            totals: Totals::default(),
            series: Fold::new(BINS),
            classes: BTreeMap::new(),
            before,
            wall_step_ns: 0,
            rss_max_bytes: 0,
            jobs: JobCounts::default(),
            replay: ReplayCounts::default(),
            kvcache: KvCounts::default(),
        });
        phase.jobs.merge(&line.jobs);
        phase.replay.merge(&line.replay);
        phase.kvcache.merge(&line.kvcache);
        phase.end_ns = phase.end_ns.max(line.end_ns);
        phase.rss_max_bytes = phase.rss_max_bytes.max(line.gauges.rss_bytes);
        if let Some((_, gauges)) = last {
            let step = line.gauges.wall_offset_ns.abs_diff(gauges.wall_offset_ns);
            phase.wall_step_ns = phase.wall_step_ns.max(step);
        }
        phase.series.push(&Counts::of(&line, before.as_ref(), late));
        let totals = &mut phase.totals;
        totals.intervals += 1;
        totals.offered += line.offered;
        totals.offered_bytes += line.offered_bytes;
        totals.issued += line.issued;
        totals.capped += line.capped;
        totals.connects += line.connects;
        totals.ok += line.ok();
        totals.failed += line.failures();
        totals.bytes += line.bytes();
        for cell in &line.cells {
            totals.retries += cell.retries;
            totals.cancelled += cell.failed.get(&ErrorKind::Cancelled).copied().unwrap_or(0);
            let class = phase
                .classes
                .entry((cell.work, cell.class))
                .or_insert_with(|| ClassScan {
                    ok: 0,
                    ended: 0,
                    medians: Fold::new(BINS),
                });
            class.ok += cell.ok;
            class.ended += cell.ok + cell.failed.values().sum::<u64>();
            let key = (cell.work, cell.class);
            if let Some((_, median)) = medians.iter().find(|(of, _)| *of == key) {
                class
                    .medians
                    .push(&Median::new(line.start_ns, line.end_ns, *median));
            }
        }
        last = Some((line.end_ns, line.gauges));
    }
    Ok((phases, reader.into_damage()))
}
