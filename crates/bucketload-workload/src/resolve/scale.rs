//! Fits the number of objects into a target in memory.

use super::ResolveContext;
use super::builder::PlanBuilder;
use super::dryrun::DryRun;
use super::keysets::Keyset;
use crate::spec::{ScaleSpec, WorkloadSpec};
use bucketload_core::generate::sizes::SizeSampler;
use bucketload_core::plan::{KeyLaw, MixEntry, Plan};
use bucketload_core::units::format_size;

/// Memory that a stored object takes in addition to its content: name, map entry, metadata. A conservative
/// estimate.
const OBJECT_OVERHEAD: f64 = 512.0;

const GIB: f64 = 1_073_741_824.0;

/// Chooses the scale, multiplies the counts of scaled key sets by it, notes the reason and returns the scale.
pub(super) fn apply(
    builder: &mut PlanBuilder<'_>,
    spec: &WorkloadSpec,
    keysets: &mut [Keyset],
    budget: Option<u64>,
) -> f64 {
    let (mut scaled, mut fixed) = (0.0, 0.0);
    for keyset in keysets.iter().filter(|k| k.plan.count > 0 && k.occupies()) {
        let size = match SizeSampler::new(&keyset.plan.size) {
            Ok(sampler) => sampler.mean(),
            Err(error) => {
                let path = format!("keysets.{}.size", keyset.plan.name);
                builder.error(&path, error.to_string(), "");
                return 1.0;
            }
        };
        let bytes = keyset.plan.count as f64 * (size + OBJECT_OVERHEAD);
        *(if keyset.scaled {
            &mut scaled
        } else {
            &mut fixed
        }) += bytes;
    }
    let scale = match (spec.scale, budget) {
        (Some(ScaleSpec::Factor(factor)), _) => factor,
        (_, Some(budget)) if scaled + fixed > budget as f64 && scaled > 0.0 => {
            // Three digits, rounded down: readable, and the same on every machine.
            let fits = ((budget as f64 - fixed) / scaled).max(1e-9);
            let digit = 10f64.powi(fits.log10().floor() as i32 - 2);
            let steps = (fits / digit).floor();
            // Dividing by the power of ten gives the float nearest to the short decimal.
            if digit < 1.0 {
                steps / (1.0 / digit).round()
            } else {
                steps * digit
            }
        }
        _ => 1.0,
    };
    let mut changes = Vec::new();
    let scalable = |k: &&mut Keyset| k.scaled && k.plan.count > 0 && k.occupies();
    for keyset in keysets.iter_mut().filter(scalable) {
        let whole = keyset.plan.count;
        keyset.plan.count = ((whole as f64 * scale).round() as u64).max(1);
        if keyset.plan.count != whole {
            let (count, name) = (keyset.plan.count, &keyset.plan.name);
            changes.push(format!("{count} of {whole} objects of key set `{name}`"));
        }
    }
    let automatic = !matches!(spec.scale, Some(ScaleSpec::Factor(_)));
    if let (true, Some(budget), false) = (automatic, budget, changes.is_empty()) {
        builder.note(format!(
            "scale {scale}: {}, because the target keeps objects in memory ({} allowed); --scale 1 \
             keeps all objects",
            changes.join(", "),
            format_size(budget)
        ));
    } else if !changes.is_empty() {
        builder.note(format!("scale {scale}: {}", changes.join(", ")));
    }
    if let Some(budget) = budget {
        let needed = scaled * scale + fixed;
        if needed > budget as f64 * 1.001 {
            builder.note(format!(
                "the objects need about {:.1} GiB of memory in a target that is allowed {}",
                needed / GIB,
                format_size(budget)
            ));
        }
    }
    scale
}

impl PlanBuilder<'_> {
    /// Notes how much memory new objects take in a target that keeps everything in memory.
    pub(super) fn note_memory(&mut self, plan: &Plan, context: &ResolveContext) {
        let Some(budget) = context.memory_budget else {
            return;
        };
        let fresh = plan
            .phases
            .iter()
            .flat_map(|phase| &phase.works)
            // Jobs delete what they write; their retained data is noted where their sizes are fitted.
            .filter(|work| work.model.jobs().is_none())
            .any(|work| {
                let writes_fresh =
                    |entry: &MixEntry| entry.class.writes_body() && entry.keys == KeyLaw::Fresh;
                work.mix.iter().any(writes_fresh)
            });
        if !fresh {
            return;
        }
        match DryRun::new(plan)
            .ok()
            .and_then(|run| run.measured.bytes_written)
        {
            Some(written) if written > 0.1 * budget as f64 => self.note(format!(
                "the run writes about {:.1} GiB of new objects, which the target keeps in memory",
                written / GIB
            )),
            Some(_) => {}
            None => self.note("new objects accumulate in the target's memory for the whole run"),
        }
    }
}
