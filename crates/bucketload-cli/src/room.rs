//! How much a run is going to write, said beforehand, and whether the file system of the target has room for it.
//!
//! The volume of a checkpoint and of a data set follows from the plan. That of phases with a stonewall depends on the
//! target's rate ([`crate::io500::room`]).

use std::path::Path;

use bucketload_core::plan::checkpoint::CheckpointAction;
use bucketload_core::plan::{PhaseKind, Plan};
use bucketload_results::units;
use bucketload_workload::resolve::DryRun;

use crate::exit::{Failure, OrFail};
use crate::kept::Kept;
use crate::target::Target;

/// The directory on whose file system `target` keeps its objects, if it has one that exists.
pub(crate) fn root(target: &Target) -> Option<&Path> {
    match target {
        Target::Files(root) | Target::Directory(root) => Some(root.as_path()),
        Target::Null | Target::Memory | Target::Service { .. } => None,
    }
    .filter(|root| root.is_dir())
}

/// Adds to `said`, which says that a run writes `bytes` bytes, how much room there is at `root`.
///
/// # Errors
/// When the file system has no room for that many bytes: what to do about it is `remedy`.
pub(crate) fn fits(
    said: &str,
    bytes: f64,
    root: Option<&Path>,
    remedy: &str,
) -> Result<String, String> {
    let Some(root) = root else {
        return Ok(said.to_owned());
    };
    let free = free(root).map_err(|e| format!("{}: {e}", root.display()))?;
    let room = units::bytes(free as f64);
    if bytes > free as f64 {
        return Err(format!(
            "{}: {said}, but the file system has room for {room}; name another directory, {remedy}",
            root.display(),
        ));
    }
    Ok(format!("{said}; the file system has room for {room}"))
}

/// Bytes that the file system of `root` has left for its users.
fn free(root: &Path) -> std::io::Result<u64> {
    let about = rustix::fs::statvfs(root)?;
    Ok(about.f_bavail.saturating_mul(about.f_frsize))
}

/// What a plan writes: checkpoints, or the data set of a training.
#[derive(Clone, Debug, PartialEq)]
struct Volume {
    bytes: f64,
    objects: u64,
    what: String,
    remedy: &'static str,
}

impl Volume {
    /// The volume of `plan`, if it follows from the plan; `None` for other plans and if nothing is written.
    fn of(plan: &Plan) -> Result<Option<Self>, Failure> {
        let works = || plan.phases.iter().flat_map(|phase| &phase.works);
        let checkpoints = works().filter_map(|work| work.model.checkpoint());
        let written: Vec<(u64, u64)> = checkpoints
            .filter(|checkpoint| checkpoint.action == CheckpointAction::Write)
            .map(|checkpoint| checkpoint.total())
            .collect();
        if let Some((_, each)) = written.first() {
            let each = units::bytes(*each as f64);
            return Ok(Some(Self {
                bytes: written.iter().map(|(_, bytes)| *bytes as f64).sum(),
                objects: written.iter().map(|(objects, _)| objects).sum(),
                what: match written.len() {
                    1 => "1 checkpoint".to_owned(),
                    n => format!("{n} checkpoints of {each}"),
                },
                remedy: "write fewer checkpoints (--count), or smaller ones (--scale, --subset)",
            }));
        }
        let prepares = plan.phases.iter().any(|p| p.kind == PhaseKind::Prepare);
        if !prepares || !works().any(|work| work.model.train().is_some()) {
            return Ok(None);
        }
        let outlook = DryRun::new(plan).or_usage()?;
        Ok(Some(Self {
            bytes: outlook.prepared_bytes,
            objects: outlook.prepared_objects,
            what: "the data set".to_owned(),
            remedy: "use fewer objects (--objects), or smaller ones (--scale)",
        }))
    }

    fn said(&self, rate: Option<u64>) -> String {
        let time = rate.filter(|rate| *rate > 0).map(|rate| {
            let seconds = units::seconds(self.bytes / rate as f64);
            let rate = units::bytes(rate as f64);
            format!(", {seconds} at the {rate}/s of --expect-rate")
        });
        format!(
            "the run writes about {} in {} objects ({}){}",
            units::bytes(self.bytes),
            units::count(self.objects),
            self.what,
            time.unwrap_or_default()
        )
    }
}

/// What a run of `plan` is going to write, in words, if the plan determines it. `kept` is its data set, of which an
/// earlier run may have written a part; `rate` is what the user expects of the target, bytes per second.
///
/// # Errors
/// When the target's file system has no room for it, with the remedy.
pub(crate) fn announced(
    plan: &Plan,
    target: &Target,
    kept: Option<&Kept>,
    rate: Option<u64>,
) -> Result<Option<String>, Failure> {
    let there = kept.is_some_and(|kept| kept.run_id.is_some());
    if there || *target == Target::Null {
        return Ok(None);
    }
    let Some(volume) = Volume::of(plan)? else {
        return Ok(None);
    };
    let said = volume.said(rate);
    let said = fits(&said, volume.bytes, root(target), volume.remedy).or_usage()?;
    Ok(Some(said))
}
