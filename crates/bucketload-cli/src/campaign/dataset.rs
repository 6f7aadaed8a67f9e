//! The data that a plan needs in the target before it measures, and how measuring changes that data. Pure functions
//! of plans.

use std::collections::BTreeSet;

use bucketload_core::generate::objects::Population;
use bucketload_core::op::OpClass;
use bucketload_core::plan::{KeyLaw, MixEntry, PhaseKind, Plan, SizeAssign};
use sha2::{Digest as _, Sha256};

/// Everything that determines names and content of the prepared objects, as text. Plans with equal texts can measure
/// on the same objects.
pub(crate) fn identity(plan: &Plan) -> String {
    let mut keysets = plan.keysets.clone();
    for keyset in &mut keysets {
        // Whether a measurement overwrites the objects does not change what is prepared.
        keyset.overwritten = false;
    }
    let prepare: Vec<_> = plan
        .phases
        .iter()
        .filter(|phase| phase.kind == PhaseKind::Prepare)
        .collect();
    serde_json::json!([plan.seed, plan.payload, keysets, prepare, rankings(plan)]).to_string()
}

/// Sizes by popularity rank depend on the law by which the measuring phases choose keys.
fn rankings(plan: &Plan) -> Vec<String> {
    (0..plan.keysets.len())
        .filter(|&i| plan.keysets[i].assign == SizeAssign::LowDiscrepancy)
        .filter_map(|i| Population::new(plan, u16::try_from(i).ok()?).ok())
        .map(|population| format!("{:?}", population.ranking()))
        .collect()
}

/// As [`identity`], of the prepared objects alone, as a short digest: how they are prepared, and what else the plan
/// writes, do not matter.
pub(crate) fn identity_of_objects(plan: &Plan) -> String {
    let mut objects = plan.clone();
    objects
        .phases
        .retain(|phase| phase.kind == PhaseKind::Prepare);
    let sets: Vec<(usize, _)> = objects
        .keysets
        .iter()
        .enumerate()
        .filter(|(index, _)| prepares(plan, *index as u16).next().is_some())
        .map(|(index, set)| {
            let mut set = set.clone();
            set.overwritten = false;
            (index, set)
        })
        .collect();
    let works = objects.phases.iter().flat_map(|phase| &phase.works);
    let mixes: Vec<_> = works.map(|work| &work.mix).collect();
    let all = serde_json::json!([plan.seed, plan.payload, sets, mixes, rankings(plan)]);
    let digest = Sha256::digest(all.to_string());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// How measurements changed a data set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wear {
    /// Something was written beyond the prepared objects.
    pub(crate) written: bool,
    /// Key sets whose prepared objects were deleted or overwritten.
    pub(crate) damaged: BTreeSet<u16>,
}

impl Wear {
    /// Adds the changes that the measuring phases of `plan` make.
    pub(crate) fn add(&mut self, plan: &Plan) {
        for entry in measuring_entries(plan) {
            let existing = entry.keys != KeyLaw::Fresh;
            let prepared = prepares(plan, entry.keyset).next().is_some();
            let deletes = entry.class.removes_objects();
            let overwrites = entry.class.writes_body() && existing;
            if prepared && (deletes || overwrites) {
                self.damaged.insert(entry.keyset);
            }
            self.written |= matches!(entry.class, OpClass::MakeBucket | OpClass::Touch);
            self.written |= entry.class.creates_object() && !(prepared && overwrites);
        }
    }

    /// Indices of the plan's phases that restore the data set.
    pub(crate) fn repairs(&self, plan: &Plan) -> Vec<usize> {
        let mut phases: Vec<usize> = self
            .damaged
            .iter()
            .flat_map(|&keyset| prepares(plan, keyset))
            .collect();
        phases.sort_unstable();
        phases.dedup();
        phases
    }
}

fn measuring_entries(plan: &Plan) -> impl Iterator<Item = &MixEntry> {
    plan.phases
        .iter()
        .filter(|phase| phase.kind == PhaseKind::Run)
        .flat_map(|phase| &phase.works)
        .flat_map(|work| &work.mix)
}

/// Indices of the phases that prepare key set `keyset`.
fn prepares(plan: &Plan, keyset: u16) -> impl Iterator<Item = usize> {
    let writes = move |entry: &MixEntry| entry.keyset == keyset;
    indices(plan, PhaseKind::Prepare).filter(move |&i| {
        let mut works = plan.phases[i].works.iter();
        works.any(|work| work.mix.iter().any(writes))
    })
}

/// Indices of the plan's phases of `kind`.
pub(crate) fn indices(plan: &Plan, kind: PhaseKind) -> impl Iterator<Item = usize> {
    let phases = plan.phases.iter().enumerate();
    phases
        .filter(move |(_, phase)| phase.kind == kind)
        .map(|(index, _)| index)
}

#[cfg(test)]
mod tests {
    use bucketload_core::plan::Plan;
    use bucketload_workload::resolve::{Field, Override, Overrides, ResolveContext, resolve};
    use bucketload_workload::spec::WorkloadFile;

    use super::{Wear, identity, identity_of_objects};

    fn plan(name: &str, settings: &[(Field, &str)]) -> Plan {
        let overrides = Overrides {
            profile: None,
            settings: settings
                .iter()
                .map(|(field, value)| Override::new(field.clone(), value))
                .collect(),
        };
        let file = WorkloadFile::builtin(name).unwrap();
        resolve(&file, &overrides, &ResolveContext::default())
            .unwrap()
            .plan
    }

    #[test]
    fn load_does_not_change_the_data_set_but_sizes_seed_and_counts_do() {
        let base = identity(&plan("online-service", &[]));
        for same in [
            (Field::Rate, "7/s"),
            (Field::Duration, "1s"),
            (Field::Workers, "3"),
        ] {
            assert_eq!(
                identity(&plan("online-service", std::slice::from_ref(&same))),
                base,
                "{same:?}"
            );
        }
        for other in [
            (Field::Seed, "9"),
            (Field::Objects, "77"),
            (Field::Size, "4KiB"),
            (Field::Payload, "zeros"),
            // Sizes are assigned by popularity rank, which this changes.
            (Field::Keys, "uniform"),
        ] {
            assert_ne!(
                identity(&plan("online-service", std::slice::from_ref(&other))),
                base,
                "{other:?}"
            );
        }
    }

    #[test]
    fn kept_objects_are_told_apart_by_names_and_content_alone() {
        let workers = Field::Path("phases.prepare.workers".to_owned());
        let base = identity_of_objects(&plan("get", &[]));
        for same in [(Field::Rate, "7/s"), (workers, "3"), (Field::Timeout, "9s")] {
            let other = identity_of_objects(&plan("get", std::slice::from_ref(&same)));
            assert_eq!(other, base, "{same:?}");
        }
        for other in [
            (Field::Seed, "9"),
            (Field::Objects, "77"),
            (Field::Size, "4KiB"),
            (Field::Payload, "zeros"),
        ] {
            let plan = plan("get", std::slice::from_ref(&other));
            assert_ne!(identity_of_objects(&plan), base, "{other:?}");
        }
    }

    #[test]
    fn wear_says_which_phases_to_repeat() {
        let wear = |plan: &Plan| {
            let mut wear = Wear::default();
            wear.add(plan);
            wear
        };
        let get = plan("get", &[]);
        assert_eq!(wear(&get), Wear::default());
        let online = plan("online-service", &[]);
        assert!(wear(&online).written && wear(&online).damaged.is_empty());
        // The built-in `put` overwrites a key set that no phase prepares.
        let put = plan("put", &[]);
        assert!(wear(&put).written && wear(&put).repairs(&put).is_empty());
        let delete = plan("delete", &[]);
        let damaged = wear(&delete);
        assert_eq!(damaged.repairs(&delete), [1]);
        assert!(!damaged.written);
        let keys = Field::Path("phases.run.mix.put.keys".to_owned());
        let overwrite = plan("get", &[(Field::Mix, "get=1,put=1"), (keys, "uniform")]);
        assert_eq!(wear(&overwrite).repairs(&overwrite), [1]);
        assert!(!wear(&overwrite).written);
    }
}
