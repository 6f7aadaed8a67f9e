//! Measurements of a phase, from its operation log and its ranks.

use std::path::Path;

use bucketload_core::op::OpClass;
use bucketload_core::plan::Plan;
use bucketload_core::plan::ranks::{RankTask, RanksPlan, WorkbenchStage};
use bucketload_core::ranks::PhaseRanks;
use bucketload_core::sink::Event;

use crate::error::ResultsError;
use crate::oplog::read;
use crate::rundir::RunDir;

/// Kind of an operation, in the order of the result lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// GET.
    Read,
    /// HEAD.
    Stat,
    /// PUT.
    Create,
    /// DELETE.
    Delete,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Read, Self::Stat, Self::Create, Self::Delete];

    /// The name in result lines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Stat => "stat",
            Self::Create => "create",
            Self::Delete => "delete",
        }
    }

    fn of(class: &str) -> Option<Self> {
        match OpClass::from_name(class)? {
            OpClass::Get => Some(Self::Read),
            OpClass::Head => Some(Self::Stat),
            OpClass::Put => Some(Self::Create),
            OpClass::Delete => Some(Self::Delete),
            _ => None,
        }
    }
}

/// Kind of a phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StageKind {
    /// Precreation.
    Precreate,
    /// An iteration of the benchmark.
    Benchmark,
    /// Cleanup.
    Cleanup,
    /// The listing that counts the objects.
    Audit,
}

/// One successful operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Its kind.
    pub kind: Kind,
    /// The rank that performed it.
    pub rank: u32,
    /// Its start, nanoseconds after the start of the phase.
    pub at_ns: u64,
    /// Its duration, nanoseconds.
    pub took_ns: u64,
}

impl Sample {
    /// Its duration in seconds, in the precision of the original.
    #[must_use]
    pub fn seconds(&self) -> f32 {
        (self.took_ns as f64 / 1e9) as f32
    }
}

/// A phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// Name of the phase.
    pub name: String,
    /// Its kind.
    pub kind: StageKind,
    /// Its plan.
    pub plan: RanksPlan,
    /// Size of an object, bytes.
    pub bytes: u64,
    /// Measurements of the ranks.
    pub ranks: PhaseRanks,
    /// Time of each rank since the start of the phase, seconds.
    pub times_s: Vec<f64>,
    /// The successful operations, rank by rank in order of execution.
    pub samples: Vec<Sample>,
    /// Operations that failed, per rank.
    pub failed: Vec<(u32, u64)>,
}

/// Calls `show` for each phase of the run in `dir`, in order. One phase is in memory at a time, with about 24 bytes per
/// operation. Returns the number of operations missing from the log.
///
/// # Errors
/// When the directory or its operation log cannot be read.
pub fn stages(dir: &Path, mut show: impl FnMut(&Stage)) -> Result<u64, ResultsError> {
    let run = RunDir::open(dir)?;
    let (events, _) = run.events()?;
    let plan = &run.manifest().plan;
    let mut missing = 0;
    for (index, phase) in plan.phases.iter().enumerate() {
        let Some(ranks_plan) = phase.works.first().and_then(|work| work.model.ranks()) else {
            continue;
        };
        let number = u16::try_from(index).unwrap_or(u16::MAX);
        let started = events.iter().find_map(|event| match event {
            Event::PhaseStarted { phase, at_ns } if *phase == number => Some(*at_ns),
            _ => None,
        });
        let ranks = events.iter().find_map(|event| match event {
            Event::Ranks(ranks) if ranks.phase == number => Some(ranks.clone()),
            _ => None,
        });
        let (Some(start_ns), Some(ranks)) = (started, ranks) else {
            continue;
        };
        let kind = match ranks_plan.task {
            RankTask::Workbench {
                stage: WorkbenchStage::Precreate,
                ..
            } => StageKind::Precreate,
            RankTask::Workbench {
                stage: WorkbenchStage::Benchmark,
                ..
            } => StageKind::Benchmark,
            RankTask::Workbench {
                stage: WorkbenchStage::Cleanup,
                ..
            } => StageKind::Cleanup,
            _ => StageKind::Audit,
        };
        let times = ranks
            .ranks
            .iter()
            .map(|rank| rank.last_ns.saturating_sub(start_ns) as f64 / 1e9);
        let mut stage = Stage {
            name: phase.name.clone(),
            kind,
            plan: ranks_plan.clone(),
            bytes: object_bytes(plan),
            times_s: times.collect(),
            samples: Vec::new(),
            failed: ranks
                .ranks
                .iter()
                .map(|rank| (rank.rank, rank.failed))
                .collect(),
            ranks,
        };
        if kind != StageKind::Audit {
            samples(
                dir,
                &phase.name,
                (start_ns, ranks_plan.ranks),
                &mut stage.samples,
            )?;
            stage
                .samples
                .sort_by_key(|sample| (sample.rank, sample.at_ns));
            missing += stage.ranks.sum(|rank| rank.ops)
                - (stage.samples.len() as u64).min(stage.ranks.sum(|rank| rank.ops));
        }
        show(&stage);
    }
    Ok(missing)
}

/// Size of the plan's objects, bytes.
fn object_bytes(plan: &Plan) -> u64 {
    plan.keysets.first().map_or(0, |set| set.size.max)
}

fn samples(
    dir: &Path,
    phase: &str,
    (start_ns, ranks): (u64, u32),
    out: &mut Vec<Sample>,
) -> Result<(), ResultsError> {
    let columns = ["phase", "class", "seq", "taken_ns", "done_ns", "outcome"];
    read(dir, &columns, |rows| {
        for row in 0..rows.len {
            let text = |at: usize| rows.columns[at].text(row).unwrap_or_default();
            let int = |at: usize| {
                let int = rows.columns[at].int(row);
                int.and_then(|n| u64::try_from(n).ok()).unwrap_or(0)
            };
            let wanted = text(0) == phase && text(5) == "ok";
            let Some(kind) = Kind::of(text(1)).filter(|_| wanted) else {
                continue;
            };
            let (taken, done) = (int(3), int(4));
            out.push(Sample {
                kind,
                // See `bucketload_core::generate::ranks` for the sequence numbers of ranks.
                rank: u32::try_from(int(2) % u64::from(ranks.max(1))).unwrap_or(u32::MAX),
                at_ns: taken.saturating_sub(start_ns),
                took_ns: done.saturating_sub(taken),
            });
        }
    })?;
    Ok(())
}
