//! Figures over time, from the intervals of a run directory.
//!
//! Intervals hold figures per work and class of operation, so two operations of the same class in a work share a
//! column.

use std::collections::BTreeMap;

use bucketload_core::op::OpClass;
use bucketload_core::plan::Plan;
use bucketload_core::record::Part;
use bucketload_core::tally::{Cell, Interval};
use bucketload_cosbench::artifacts::{Figures, Snapshot};
use bucketload_cosbench::{Stage, Workload};
use bucketload_results::rundir::RunDir;

use super::plan::StagePhase;

/// The columns of a stage's timeline: each combination of work and class once, with its title.
fn columns(stage: &Stage, plan: &Plan, phase: usize) -> Vec<(u16, OpClass, String)> {
    let mut out: Vec<(u16, OpClass, String)> = Vec::new();
    for (index, (work, planned)) in stage
        .works
        .iter()
        .zip(&plan.phases[phase].works)
        .enumerate()
    {
        for (operation, mix) in work.operations.iter().zip(&planned.mix) {
            let known = out
                .iter()
                .any(|(w, class, _)| usize::from(*w) == index && *class == mix.class);
            if !known {
                let sample = operation.kind.sample_type();
                let title = match operation.display_name == sample {
                    true => sample.to_owned(),
                    false => format!("{}-{sample}", operation.display_name),
                };
                out.push((index as u16, mix.class, title));
            }
        }
    }
    out
}

/// Sums over the intervals of a snapshot.
#[derive(Clone, Copy, Default)]
struct Sum {
    ok: u64,
    failed: u64,
    bytes: u64,
    response_ns: u128,
    transfer_ns: u128,
}

impl Sum {
    fn add(&mut self, cell: &Cell) {
        self.ok += cell.ok;
        self.failed += cell.failures();
        self.bytes += cell.bytes;
        self.response_ns += cell.response.sum_ns();
        let part = match cell.class.writes_body() {
            true => Part::Send,
            false => Part::Body,
        };
        self.transfer_ns += cell.anatomy.sum_ns(part);
    }

    fn figures(&self, seconds: f64) -> Figures {
        let all = self.ok + self.failed;
        let mean = |ns: u128| ns as f64 / self.ok.max(1) as f64 / 1e6;
        Figures {
            ops: self.ok,
            bytes: self.bytes,
            response_ms: mean(self.response_ns),
            processing_ms: mean(self.response_ns.saturating_sub(self.transfer_ns)),
            throughput: self.ok as f64 / seconds,
            bandwidth: self.bytes as f64 / seconds,
            success: (all > 0).then(|| self.ok as f64 / all as f64),
        }
    }
}

/// A snapshot that is being filled.
struct OpenSnapshot {
    phase: usize,
    from_ns: u64,
    to_ns: u64,
    columns: Vec<(u16, OpClass, String)>,
    sums: Vec<Sum>,
}

impl OpenSnapshot {
    fn add(&mut self, interval: &Interval, drained_ns: u64) {
        // The last interval ends with its phase.
        self.to_ns = interval.end_ns.min(drained_ns).max(interval.start_ns);
        for cell in &interval.tally.cells {
            let same = |(work, class, _): &(u16, OpClass, String)| {
                (*work, *class) == (cell.work, cell.class)
            };
            if let Some(column) = self.columns.iter().position(same) {
                self.sums[column].add(cell);
            }
        }
    }

    fn close(self, start_unix_ns: u64) -> (usize, Snapshot) {
        let seconds = (self.to_ns.saturating_sub(self.from_ns) as f64 / 1e9).max(1e-9);
        let snapshot = Snapshot {
            at_ms: (start_unix_ns + self.to_ns) / 1_000_000,
            figures: self.sums.iter().map(|sum| sum.figures(seconds)).collect(),
            names: self.columns.into_iter().map(|column| column.2).collect(),
        };
        (self.phase, snapshot)
    }
}

/// A snapshot per interval of each stage's first work, and one for the rest, so that the snapshots add up to the totals
/// (docs/spec/cosbench.md section 7, B8). `drained_ns` returns the end of a phase.
///
/// # Errors
/// When the intervals cannot be read.
pub(super) fn snapshots(
    dir: &RunDir,
    workload: &Workload,
    steps: &[StagePhase],
    drained_ns: impl Fn(usize) -> u64,
) -> Result<BTreeMap<usize, Vec<Snapshot>>, String> {
    let plan = &dir.manifest().plan;
    let start_unix_ns = dir.manifest().started_unix_ns;
    let mut all: BTreeMap<usize, Vec<Snapshot>> = BTreeMap::new();
    let mut open: Option<OpenSnapshot> = None;
    let mut keep = |open: Option<OpenSnapshot>| {
        if let Some((phase, snapshot)) = open.map(|open| open.close(start_unix_ns)) {
            all.entry(phase).or_default().push(snapshot);
        }
    };
    let mut reader = dir.intervals().map_err(|e| e.to_string())?;
    while let Some(interval) = reader.next_interval().map_err(|e| e.to_string())? {
        let phase = usize::from(interval.phase);
        let Some(step) = steps.get(phase).filter(|step| !step.pause) else {
            continue;
        };
        let stage = &workload.stages[step.stage];
        if open.as_ref().is_some_and(|open| open.phase != phase) {
            keep(open.take());
        }
        let filled = open.get_or_insert_with(|| {
            let columns = columns(stage, plan, phase);
            OpenSnapshot {
                phase,
                from_ns: interval.start_ns,
                to_ns: interval.start_ns,
                sums: vec![Sum::default(); columns.len()],
                columns,
            }
        });
        filled.add(&interval, drained_ns(phase));
        let every_s = stage.works.first().map_or(5, |work| work.interval_s);
        if filled.to_ns - filled.from_ns >= u64::from(every_s) * 1_000_000_000 {
            keep(open.take());
        }
    }
    keep(open);
    Ok(all)
}
