//! The objects of an earlier run as the data set of a new run (cold reads).
//!
//! Names, sizes and content of objects are functions of the earlier run's plan, so its run directory is all that is
//! needed. There is no list of objects.

use std::path::Path;
use std::time::Duration;

use bucketload_core::op::OpClass;
use bucketload_core::plan::CheckpointPlan;
use bucketload_core::plan::checkpoint::CheckpointAction;
use bucketload_core::plan::{KeyLaw, PhaseKind, Plan, SizeAssign};
use bucketload_results::rundir::{Manifest, RunDir, Status};
use bucketload_run::EarlierRun;
use bucketload_workload::resolve::Resolved;

use crate::cli::run::DataArgs;
use crate::exit::Failure;
use crate::target::Target;

/// Default of `--min-age` (docs/spec/scenarios.md section 10).
const MIN_AGE: Duration = Duration::from_secs(72 * 3600);

/// Longest time between writing and reading checkpoints in two runs (docs/spec/ai-checkpoints.md section "Checkpoints").
const READ_SOON: Duration = Duration::from_secs(30);

/// The data set that an earlier run left.
#[derive(Clone, Debug)]
pub(crate) struct OldData {
    /// Where the objects are.
    pub(crate) data: EarlierRun,
    /// The note in the head of the result.
    pub(crate) note: String,
}

/// Replaces the workload's existing key set with the objects of the run that the flags name.
///
/// # Errors
/// When the workload needs an earlier run and none is named, or the other way round; when that run did not leave a
/// complete data set; or when its objects are too young.
pub(crate) fn apply(
    resolved: &mut Resolved,
    args: &DataArgs,
    target: &Target,
    now_unix_ns: u64,
) -> Result<Option<OldData>, Failure> {
    let wanted = resolved.plan.keysets.iter().any(|set| set.existing);
    let Some(dir) = &args.objects_of else {
        if wanted {
            return Err(Failure::usage(format!(
                "the workload {} reads the objects of an earlier run; name the directory of a run with --keep: \
                 --objects-of DIR",
                resolved.plan.workload
            )));
        }
        return Ok(None);
    };
    let refuse = |why: &str| Failure::usage(format!("--objects-of {}: {why}", dir.display()));
    if !wanted {
        return Err(refuse(
            "the workload creates its own objects; only a workload with `existing = true` in a key set reads \
             those of an earlier run",
        ));
    }
    if *target == Target::Memory {
        return Err(refuse(
            "a target in memory has kept no objects; name the --target of that run",
        ));
    }
    let manifest = manifest(dir).map_err(|e| refuse(&e))?;
    let checkpoints = checkpoints(&resolved.plan, CheckpointAction::Read);
    let keyset = match checkpoints.is_empty() {
        true => left_behind(&manifest).map_err(|e| refuse(&e))?,
        false => {
            same_checkpoints(&checkpoints, &manifest).map_err(|e| refuse(&e))?;
            0
        }
    };
    let age = |since_ns: u64| Duration::from_nanos(now_unix_ns.saturating_sub(since_ns));
    let (youngest, oldest) = (age(manifest.ended_unix_ns), age(manifest.started_unix_ns));
    // Cold reads need old objects; a checkpoint is read right after a failure.
    let usual = match checkpoints.is_empty() {
        true => MIN_AGE,
        false => Duration::ZERO,
    };
    let least = args.min_age.unwrap_or(usual);
    if youngest < least {
        return Err(refuse(&format!(
            "its objects are {} old, which is less than --min-age {}; wait, or lower --min-age",
            hours(youngest),
            hours(least)
        )));
    }
    let note = match checkpoints.is_empty() {
        true => format!(
            "{} objects of run {}, written {} to {} before",
            manifest.plan.keysets[keyset].count,
            manifest.run_id,
            hours(youngest),
            hours(oldest)
        ),
        false => format!(
            "the checkpoints of run {}, which ended {} before this run began: {} the {} s that MLPerf allows between \
             writing and reading",
            manifest.run_id,
            hours(youngest),
            if youngest <= READ_SOON {
                "within"
            } else {
                "LATER than"
            },
            READ_SOON.as_secs()
        ),
    };
    adopt(&mut resolved.plan, &manifest.plan, keyset)?;
    Ok(Some(OldData {
        data: EarlierRun {
            run_id: manifest.run_id.clone(),
            prefix: target.run_prefix(&manifest.run_id),
        },
        note,
    }))
}

fn manifest(dir: &Path) -> Result<Manifest, String> {
    let run = RunDir::open(dir).map_err(|e| e.to_string())?;
    Ok(run.manifest().clone())
}

/// The checkpoints of `plan` with which it does `action`, in order.
fn checkpoints(plan: &Plan, action: CheckpointAction) -> Vec<CheckpointPlan> {
    let works = plan.phases.iter().flat_map(|phase| &phase.works);
    let all = works.filter_map(|work| work.model.checkpoint());
    all.filter(|checkpoint| checkpoint.action == action)
        .cloned()
        .collect()
}

/// Refuses to read checkpoints that the run did not write, or deleted.
fn same_checkpoints(read: &[CheckpointPlan], manifest: &Manifest) -> Result<(), String> {
    if manifest.status != Status::Finished {
        return Err("that run did not finish".to_owned());
    }
    let plan = &manifest.plan;
    if plan.phases.iter().any(|p| p.kind == PhaseKind::Cleanup) {
        return Err("that run deleted its checkpoints; repeat it with --keep".to_owned());
    }
    let written = checkpoints(plan, CheckpointAction::Write);
    let Some(first) = written.first() else {
        return Err("that run wrote no checkpoints".to_owned());
    };
    if read.len() > written.len() {
        return Err(format!(
            "that run wrote {} checkpoints, so {} cannot be read; set count",
            written.len(),
            read.len()
        ));
    }
    let of = |plan: &CheckpointPlan| {
        let CheckpointPlan {
            model,
            ranks,
            scale,
            extension,
            ..
        } = plan;
        (model.clone(), *ranks, *scale, extension.clone())
    };
    match read.iter().all(|one| of(one) == of(first)) {
        true => Ok(()),
        false => Err(format!(
            "that run wrote checkpoints of {} with {} ranks at scale {}/{}, which are not those of the workload",
            first.model.name, first.ranks, first.scale.parts, first.scale.of
        )),
    }
}

/// The key set that the run wrote completely and then neither changed nor deleted.
fn left_behind(manifest: &Manifest) -> Result<usize, String> {
    let plan = &manifest.plan;
    if manifest.status != Status::Finished {
        return Err("that run did not finish".to_owned());
    }
    if plan
        .phases
        .iter()
        .any(|phase| phase.kind == PhaseKind::Cleanup)
    {
        return Err("that run deleted its objects; repeat it with --keep".to_owned());
    }
    let candidates: Vec<usize> = (0..plan.keysets.len())
        .filter(|&index| is_complete(plan, index))
        .collect();
    match candidates[..] {
        [index] => Ok(index),
        [] => {
            Err("that run did not write any key set completely and leave it unchanged".to_owned())
        }
        _ => Err(format!(
            "that run left several key sets ({}), but exactly one is needed",
            candidates
                .iter()
                .map(|&index| plan.keysets[index].name.as_str())
                .collect::<Vec<_>>()
                .join(", ")
        )),
    }
}

/// Whether the plan writes exactly the initial objects of a key set and never deletes any. Key sets whose sizes
/// depend on the popularity law of the earlier run's reads do not qualify, because the sizes are unknown without that
/// law.
fn is_complete(plan: &Plan, index: usize) -> bool {
    let set = &plan.keysets[index];
    let mut written = false;
    for phase in &plan.phases {
        for entry in phase.works.iter().flat_map(|work| &work.mix) {
            if usize::from(entry.keyset) != index || entry.class.only_reads() {
                continue;
            }
            let puts = matches!(entry.class, OpClass::Put | OpClass::MultipartPut);
            if !puts || entry.keys != KeyLaw::Sequential {
                return false;
            }
            let alone = phase.works.len() == 1 && phase.works[0].mix.len() == 1;
            written |= alone && phase.limits.ops >= set.count && phase.limits.duration_ns == 0;
        }
    }
    written && !set.overwritten && set.count > 0 && set.assign == SizeAssign::Random
}

/// Replaces the key sets and content of `plan` with those of the earlier run. A limit of one pass over the workload's
/// own objects becomes one pass over the earlier run's objects.
fn adopt(plan: &mut Plan, old: &Plan, keyset: usize) -> Result<(), Failure> {
    let [own] = plan.keysets.as_slice() else {
        return Err(Failure::usage(
            "a workload that reads an earlier run's objects must have exactly one key set",
        ));
    };
    let own_count = own.count;
    plan.keysets.clone_from(&old.keysets);
    for set in &mut plan.keysets {
        set.existing = true;
    }
    (plan.seed, plan.payload, plan.scale) = (old.seed, old.payload, old.scale);
    let count = old.keysets[keyset].count;
    for phase in &mut plan.phases {
        if phase.limits.ops == own_count {
            phase.limits.ops = count;
        }
        for entry in phase.works.iter_mut().flat_map(|work| &mut work.mix) {
            entry.keyset = u16::try_from(keyset).unwrap_or(u16::MAX);
        }
    }
    Ok(())
}

fn hours(age: Duration) -> String {
    let hours = age.as_secs_f64() / 3600.0;
    if hours < 1.0 {
        format!("{:.0} s", age.as_secs_f64())
    } else {
        format!("{hours:.1} h")
    }
}
