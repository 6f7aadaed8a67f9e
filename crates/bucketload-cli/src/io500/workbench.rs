//! MD-Workbench in the extended mode: data sets are created, used in two iterations, and deleted
//! (docs/spec/io500-mdworkbench.md section B.4).

use bucketload_core::op::OpClass;
use bucketload_core::plan::ranks::{Fraction, RankMapping, RankTask, RanksPlan, WorkbenchStage};
use bucketload_core::plan::{MixEntry, PhasePlan, WorkPlan};

use super::Config;
use super::config::Deletes;
use super::plan::PlannedPhase;
use crate::rank_plan::entry;

/// Key set of the objects.
const TREE: u16 = 4;
/// Data sets per rank, bytes per object, and distance between the rank that creates an object and the rank that
/// consumes it (`-D=10 -O=1`, and MD-Workbench's default size).
const SETS: u32 = 10;
const BYTES: u64 = 3_901;
const OFFSET: u32 = 1;
/// Most seconds of mdtest-easy-write whose number of files is created.
const SECONDS: u64 = 60;

/// Plans phase `name`, which follows the phases `before`; `base` has the common settings of all phases.
///
/// # Errors
/// When the configuration is wrong.
pub(super) fn work(
    config: &Config,
    (name, base): (&str, RanksPlan),
    before: &[PhasePlan],
) -> Result<PlannedPhase, String> {
    let index = |name: &str| {
        let at = before.iter().position(|phase| phase.name == name)?;
        u16::try_from(at).ok()
    };
    let stage = match name.rsplit('-').next() {
        Some("create") => WorkbenchStage::Precreate,
        Some("bench") => WorkbenchStage::Benchmark,
        _ => WorkbenchStage::Cleanup,
    };
    if stage != WorkbenchStage::Precreate && index("mdworkbench-create").is_none() {
        return Ok(PlannedPhase::Skipped(
            "mdworkbench-create is skipped".to_owned(),
        ));
    }
    let stated = config.workbench()?;
    let follows = match stated {
        Some(_) => None,
        None => match index("mdtest-easy-write") {
            Some(phase) => Some(phase),
            None => {
                let why = "mdtest-easy-write, whose rate determines the number of objects, is skipped; set \
                           precreatePerSet and filesPerProc";
                return Ok(PlannedPhase::Skipped(why.to_owned()));
            }
        },
    };
    let (objects, steps) = stated.unwrap_or((u64::MAX, u64::MAX));
    let wall_s = config.stonewall_ns()? / 1_000_000_000;
    let benches = (0..2u8).filter_map(|n| index(&format!("mdworkbench-bench-{n}")));
    let plan = RanksPlan {
        task: RankTask::Workbench {
            sets: SETS,
            objects,
            stage,
            offset: OFFSET,
        },
        steps: match stage {
            WorkbenchStage::Precreate => objects,
            WorkbenchStage::Benchmark => steps,
            WorkbenchStage::Cleanup => objects.saturating_mul(u64::from(SETS)),
        },
        follows,
        // The files of a rank per second, times the seconds, divided by the data sets, so that a phase lasts as long as
        // the stonewall.
        part: follows.map(|_| Fraction {
            parts: wall_s.min(SECONDS),
            of: wall_s.max(1) * u64::from(SETS),
        }),
        after: match stage {
            WorkbenchStage::Cleanup => benches.collect(),
            _ => Vec::new(),
        },
        waiting: match stage {
            WorkbenchStage::Benchmark => config.waiting()?,
            _ => 0.0,
        },
        ..base
    };
    let work = Box::new(WorkPlan {
        name: name.to_owned(),
        mix: mix(config, plan.mapping, stage)?,
        model: plan.into(),
    });
    Ok(match stage {
        WorkbenchStage::Benchmark => PlannedPhase::Twice(work),
        _ => PlannedPhase::Work(work),
    })
}

/// The requests of a step on a data set: one per operation, or those of IOR's backend (section A.6).
fn mix(
    config: &Config,
    mapping: RankMapping,
    stage: WorkbenchStage,
) -> Result<Vec<MixEntry>, String> {
    use OpClass::{Delete, Get, Head, List, Put};
    let libs3 = mapping == RankMapping::Libs3Single;
    let heuristics = config.deletes()? == Deletes::Heuristics;
    let one = |class, bytes| entry(class, TREE, bytes);
    let mut create = vec![one(Put, Some(BYTES))];
    let mut read = vec![one(Get, Some(BYTES))];
    let mut delete = vec![one(Delete, None)];
    if libs3 {
        create.insert(0, one(Put, Some(0)));
        read.insert(0, one(Head, None));
        match heuristics {
            true => delete.insert(0, one(Head, None)),
            false => delete.push(one(List, None)),
        }
    }
    Ok(match stage {
        WorkbenchStage::Precreate => create,
        WorkbenchStage::Benchmark => {
            let mut all = vec![one(Head, None)];
            all.extend(read.into_iter().chain(delete).chain(create));
            all
        }
        WorkbenchStage::Cleanup => delete,
    })
}
