//! Works in rounds: the fields they accept, and the key set that they need.

use crate::resolve::builder::PlanBuilder;
use crate::resolve::keysets::Keyset;
use crate::resolve::models::DescribedModel;
use crate::resolve::phases::RunPhase;
use crate::spec::{RoundsSpec, WorkSpec};
use bucketload_core::op::OpClass;
use bucketload_core::plan::{KeyLaw, MixEntry, ModelPlan, RoundsPlan};

/// PerfKitBenchmarker's constants (docs/spec/scenarios.md section 10).
const WORKERS: u32 = 100;
const ITERATIONS: u32 = 200;
const OBJECTS: u32 = 50;
const DELETE: f64 = 0.1;
const LIMIT_NS: u64 = 300_000_000_000;

impl PlanBuilder<'_> {
    /// Model and mix (with the path of each entry) of a work in rounds.
    pub(in crate::resolve) fn rounds(
        &mut self,
        path: &str,
        work: &WorkSpec,
        spec: &RoundsSpec,
        keysets: &[Keyset],
    ) -> (ModelPlan, (Vec<MixEntry>, Vec<String>)) {
        let foreign = [
            ("think", work.think.is_some()),
            ("arrival", work.arrival.is_some()),
            ("rate", work.rate.is_some()),
            ("max-in-flight", work.max_in_flight.is_some()),
            ("mix", work.mix.is_some()),
            ("keys", work.keys.is_some()),
            ("size", work.size.is_some()),
        ];
        for (field, _) in foreign.into_iter().filter(|(_, given)| *given) {
            self.error(
                &format!("{path}.{field}"),
                format!(
                    "`rounds` defines the operations and their order, so `{field}` does not apply"
                ),
                "remove it, or `rounds`",
            );
        }
        let plan = RoundsPlan {
            workers: work.workers.unwrap_or(WORKERS),
            iterations: spec.iterations.unwrap_or(ITERATIONS),
            objects: spec.objects.unwrap_or(OBJECTS),
            delete: spec.delete.map_or(DELETE, |share| share.0),
            limit_ns: spec.limit.map_or(LIMIT_NS, |limit| limit.0),
        };
        let bounds = [
            ("workers", plan.workers, 10_000),
            ("rounds.iterations", plan.iterations, 10_000),
            ("rounds.objects", plan.objects, 100_000),
        ];
        for (field, value, most) in bounds {
            if value == 0 || value > most {
                let message = format!("{value} lies outside 1 to {most}");
                self.error(&format!("{path}.{field}"), message, "");
            }
        }
        if !(0.0..1.0).contains(&plan.delete) {
            self.error(
                &format!("{path}.rounds.delete"),
                "the deleted share must leave something to list",
                "write it such as \"10%\"",
            );
        }
        if plan.limit_ns == 0 {
            let message = "with a limit of 0 no listing could ever be correct";
            self.error(&format!("{path}.rounds.limit"), message, "");
        }
        let Some(keyset) = self.only_keyset(path, work, keysets, "the rounds need") else {
            return (plan.into(), (Vec::new(), Vec::new()));
        };
        let entry = |class: OpClass, keys| MixEntry::new(class, keyset as u16, keys);
        let mix = vec![
            entry(OpClass::Put, KeyLaw::Sequential),
            MixEntry {
                count: crate::resolve::defaults::PAGE_SIZE,
                ..entry(OpClass::List, KeyLaw::Fresh)
            },
            entry(OpClass::Delete, KeyLaw::Sequential),
        ];
        let paths = vec![path.to_owned(); mix.len()];
        (plan.into(), (mix, paths))
    }

    /// Index of the single key set of a work, which `keyset` names unless the workload has one only. `who` needs it,
    /// in words.
    pub(in crate::resolve) fn only_keyset(
        &mut self,
        path: &str,
        work: &WorkSpec,
        keysets: &[Keyset],
        who: &str,
    ) -> Option<usize> {
        let names: Vec<&str> = keysets.iter().map(|set| set.plan.name.as_str()).collect();
        let keyset = match &work.keyset {
            Some(name) => names.iter().position(|known| known == name),
            None if names.len() == 1 && self.root.find("keysets").is_some() => Some(0),
            None => None,
        };
        if keyset.is_none() {
            let remedy = format!("add `keyset`, one of {}", names.join(", "));
            self.error(path, format!("{who} a key set to work on"), remedy);
        }
        keyset
    }

    /// Sets the object counts and prefixes that the rounds need in their key sets.
    pub(in crate::resolve) fn keysets_of_rounds(
        &mut self,
        keysets: &mut [Keyset],
        runs: &[RunPhase],
    ) {
        for run in runs {
            for (number, work) in run.plan.works.iter().enumerate() {
                let (Some(rounds), Some(entry)) = (work.model.rounds(), work.mix.first()) else {
                    continue;
                };
                let users = runs.iter().flat_map(RunPhase::entries);
                let entries = users
                    .filter(|(other, _)| other.keyset == entry.keyset)
                    .count();
                let keyset = &mut keysets[usize::from(entry.keyset)];
                if entries > work.mix.len() || keyset.plan.count > 0 {
                    let name = keyset.plan.name.clone();
                    self.error(
                        run.work_path(number),
                        format!("the rounds need exclusive use of key set `{name}`, and it must be empty"),
                        "use a key set without `count` that nothing else uses",
                    );
                    continue;
                }
                let objects = u64::from(rounds.workers) * u64::from(rounds.objects);
                keyset.plan.count = u64::from(rounds.iterations) * objects;
                keyset.plan.shards = rounds.iterations.max(1);
                keyset.prepare = false;
                keyset.scaled = false;
                keyset.plan.overwritten = false;
            }
        }
    }
}

impl DescribedModel for RoundsPlan {
    fn in_outlook(&self) -> String {
        format!(
            "{} rounds of {} workers writing {} objects each",
            self.iterations, self.workers, self.objects
        )
    }

    fn in_results(&self) -> String {
        format!(
            "{} rounds, {} workers write {} objects each and delete {:.0} % of them",
            self.iterations,
            self.workers,
            self.objects,
            self.delete * 100.0
        )
    }
}
