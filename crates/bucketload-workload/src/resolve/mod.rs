//! From a workload to a plan: profile, command-line settings, defaults, checks.
//!
//! ```text
//! WorkloadFile ── tree ──┐
//! profile ───────────────┼─ layers ── effective tree ── WorkloadSpec ── builder ── Plan
//! Overrides (flags) ─────┘                                   (defaults, checks, scale)
//! ```
//!
//! The effective tree still records where every value comes from, so a problem found after merging names the
//! line or flag that caused it.

mod buckets;
mod builder;
mod check;
mod defaults;
mod drill;
mod dryrun;
mod entries;
mod flags;
mod keysets;
mod layers;
mod models;
mod overrides;
mod phases;
mod scale;
mod settings;
mod sizes;

use std::sync::Arc;

pub use defaults::EMBEDDED_MEMORY_BUDGET;
pub use dryrun::{DryRun, Outlook, PhaseOutlook, WorkOutlook};
pub use models::describe;
pub use overrides::{Field, Override, Overrides};
pub use settings::Setting;

use bucketload_core::drill::DrillPlan;

use crate::spec::{Errors, SpecError, TargetSpec, WorkloadFile};
use bucketload_core::plan::Plan;

/// Properties of the run's environment that the resolver needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResolveContext {
    /// Bytes of objects that the target can hold if it keeps them in this machine's memory
    /// ([`EMBEDDED_MEMORY_BUDGET`] for the embedded memory store). Unless a scale is given, object counts are
    /// scaled down to fit. `None` if the target has its own storage.
    pub memory_budget: Option<u64>,
}

/// A workload that is ready to run.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// The plan to run.
    pub plan: Plan,
    /// Notes for the user: the chosen scale, settings that change the model, likely surprises.
    pub notes: Vec<String>,
    /// Target settings of the workload file, if any.
    pub target: TargetSpec,
    /// The effective value and origin of everything that was set.
    pub settings: Vec<Setting>,
    /// The drill, if the workload was resolved as one.
    pub drill: Option<Drill>,
}

/// A drill that is ready to run.
#[derive(Clone, Debug, PartialEq)]
pub struct Drill {
    /// What breaks, and when.
    pub plan: DrillPlan,
    /// Where the file names the endpoints of each fault, for messages.
    pub places: Vec<String>,
}

/// What the command line adds to a drill. Times are written as in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DrillFlags {
    /// Commands of hooks that name none: `break`, `mend` or `check`, and the command.
    pub hooks: Vec<(String, String)>,
}

/// Resolves a workload into a plan.
///
/// # Errors
/// All problems found, each with its location (file, line and column, or command-line flag), field and
/// remedy.
pub fn resolve(
    file: &WorkloadFile,
    overrides: &Overrides,
    context: &ResolveContext,
) -> Result<Resolved, SpecError> {
    resolved(file, overrides, context, None)
}

/// As [`resolve`], for a drill: the phase becomes as long as its stages, and its measured window is the baseline.
///
/// # Errors
/// As [`resolve`], and when the workload breaks nothing or its faults contradict themselves.
pub fn resolve_drill(
    file: &WorkloadFile,
    overrides: &Overrides,
    context: &ResolveContext,
    flags: &DrillFlags,
) -> Result<Resolved, SpecError> {
    resolved(file, overrides, context, Some(flags))
}

fn resolved(
    file: &WorkloadFile,
    overrides: &Overrides,
    context: &ResolveContext,
    flags: Option<&DrillFlags>,
) -> Result<Resolved, SpecError> {
    let mut errors = Errors::new(Arc::clone(&file.source));
    let mut notes = Vec::new();
    let (root, profile) = layers::apply(&file.root, overrides, &mut errors, &mut notes);
    let spec = crate::spec::decode_workload(&root, &mut errors);
    if !errors.is_empty() {
        return Err(errors.into_error());
    }
    let mut builder = builder::PlanBuilder {
        root: &root,
        errors,
        notes,
        size_scale: spec.size_scale.map_or(1.0, |factor| factor.0),
    };
    let mut plan = builder.plan(file.name(), &profile, &spec, context);
    let drill = match flags {
        Some(flags) => builder.drill(&spec, flags, &mut plan),
        None => {
            builder.refuse_faults(&spec);
            None
        }
    };
    if builder.errors.is_empty() {
        builder.note_memory(&plan, context);
    }
    let settings = settings::list(&root, &builder.errors.source);
    let resolved = Resolved {
        plan,
        notes: std::mem::take(&mut builder.notes),
        target: spec.target.unwrap_or_default(),
        settings,
        drill,
    };
    builder.errors.finish(resolved)
}
