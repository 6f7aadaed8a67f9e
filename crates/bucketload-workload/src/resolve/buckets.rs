//! Key sets with their own buckets, and phases that go through their objects once.

use super::builder::PlanBuilder;
use super::keysets::Keyset;
use super::phases::RunPhase;
use crate::spec::{KeysetSpec, WorkloadSpec};
use bucketload_core::op::OpClass;
use bucketload_core::plan::buckets::{LONGEST_STEM, MOST_BUCKETS};
use bucketload_core::plan::{BucketsPlan, ClosedPlan, JobsPlan, KeyLaw, MixEntry};

/// A run identifier of the length that the program generates, for checking names.
const SAMPLE_ID: &str = "1769903999-5c1f09aa";

impl PlanBuilder<'_> {
    /// The buckets of a key set.
    pub(super) fn buckets(&mut self, keyset: &str, spec: &KeysetSpec) -> Option<BucketsPlan> {
        let buckets = spec.buckets.as_ref()?;
        let path = |field: &str| format!("keysets.{keyset}.buckets.{field}");
        let plan = BucketsPlan {
            count: buckets.count.unwrap_or(1),
            name: buckets
                .name
                .clone()
                .unwrap_or_else(|| "bucketload".to_owned()),
            exact: buckets.exact.unwrap_or(false),
            service: buckets.service.unwrap_or_default(),
            per_rank: 0,
        };
        if !(1..=MOST_BUCKETS).contains(&plan.count) {
            let message = format!("{} buckets lie outside 1 to {MOST_BUCKETS}", plan.count);
            self.error(&path("count"), message, "");
            return None;
        }
        if plan.exact && plan.count > 1 {
            self.error(
                &path("exact"),
                format!("{} buckets cannot share one name", plan.count),
                "remove `exact`: names then end in the run's identifier and a number",
            );
        }
        if !plan.exact && plan.name.len() > LONGEST_STEM {
            self.error(
                &path("name"),
                format!("it is longer than {LONGEST_STEM} bytes, and the run's identifier is appended to it"),
                "choose a shorter one",
            );
        } else if let Err(rule) = plan.service.check(&plan.bucket_name(SAMPLE_ID, 0)) {
            let name = plan.bucket_name(SAMPLE_ID, 0);
            self.error(
                &path("name"),
                format!("no bucket can be called `{name}`: the name {rule}"),
                "choose another name, or name the service with `service`",
            );
        }
        for (field, given, why) in [
            (
                "prepare",
                spec.prepare != Some(false),
                "its buckets do not exist before a phase creates them, so nothing can be prepared",
            ),
            (
                "shards",
                spec.shards.unwrap_or(1) > 1,
                "its objects are spread over buckets and cannot be spread over prefixes as well",
            ),
            (
                "existing",
                spec.existing == Some(true),
                "the buckets of an earlier run belong to that run",
            ),
        ] {
            if given {
                let remedy = match field {
                    "prepare" => "write prepare = false",
                    _ => "remove it",
                };
                self.error(&format!("keysets.{keyset}.{field}"), why, remedy);
            }
        }
        Some(plan)
    }

    /// Checks that a phase creates the buckets of every key set with its own buckets.
    pub(super) fn check_buckets(
        &mut self,
        keysets: &[Keyset],
        runs: &[RunPhase],
        spec: &WorkloadSpec,
    ) {
        for (index, keyset) in keysets.iter().enumerate() {
            if keyset.plan.buckets.is_none() {
                continue;
            }
            let of_set = |entry: &&MixEntry| usize::from(entry.keyset) == index;
            let entries = || {
                runs.iter()
                    .flat_map(RunPhase::entries)
                    .map(|(entry, _)| entry)
            };
            let used = entries().any(|entry| of_set(&entry));
            let made = entries()
                .filter(of_set)
                .any(|entry| entry.class == OpClass::MakeBucket);
            let name = keyset.plan.name.clone();
            if used && !made {
                self.error(
                    &format!("keysets.{name}.buckets"),
                    "no phase creates these buckets",
                    "add a phase with mix.make-bucket before the others",
                );
            }
            let jobs = |run: &RunPhase| {
                let works = &run.plan.works;
                works.iter().any(|work| {
                    let has_set = || work.mix.iter().any(|entry| of_set(&entry));
                    let of_jobs =
                        |jobs: &JobsPlan| [jobs.temp, jobs.results].contains(&(index as u16));
                    work.model.jobs().is_some_and(of_jobs)
                        || work.model.rounds().is_some() && has_set()
                })
            };
            if runs.iter().any(jobs) {
                self.error(
                    &format!("keysets.{name}.buckets"),
                    "jobs and rounds work in the target's bucket",
                    "remove `buckets`",
                );
            }
            if spec.oracle == Some(true) {
                self.error(
                    "oracle",
                    format!(
                        "key set `{name}` has its own buckets, which the oracle does not track"
                    ),
                    "turn the oracle off; `verify` compares every byte",
                );
            }
        }
    }

    /// Sets the limit of phases that go through their objects once, and lowers the number of workers to the
    /// number of objects if it is higher.
    pub(super) fn limit_once(&mut self, runs: &mut [RunPhase], keysets: &[Keyset]) {
        for run in runs.iter_mut().filter(|run| run.once) {
            let path = format!("phases.{}.once", run.plan.name);
            let [work] = run.plan.works.as_mut_slice() else {
                let message = "the phase has several works, so it is unclear which one ends it";
                self.error(&path, message, "put each work into a separate phase");
                continue;
            };
            let Some(ClosedPlan { workers, .. }) = work.model.get_mut() else {
                let message = "only a closed loop goes through its objects once";
                self.error(&path, message, "use `workers`, or limit the phase by `ops`");
                continue;
            };
            let Some(first) = work.mix.first() else {
                continue;
            };
            let set = &keysets[usize::from(first.keyset)].plan;
            let chained = first.keys == KeyLaw::Chained;
            if !chained && (work.mix.len() > 1 || first.keys != KeyLaw::Sequential) {
                self.error(
                    &path,
                    "the operations of the phase do not go through the objects in order",
                    "use a mix of one entry with keys = \"sequential\", or keys = \"chained\"",
                );
                continue;
            }
            let of = |entry: &MixEntry| match (&set.buckets, entry.class) {
                (Some(buckets), class) if class.on_bucket() => buckets.count,
                (_, OpClass::DeleteMany) => {
                    set.count.div_ceil(entry.count.clamp(1, set.count.max(1)))
                }
                (buckets, class) if class.lists() => {
                    let in_buckets = buckets.as_ref().map_or(1, |buckets| buckets.count);
                    u64::from(set.shards) * in_buckets
                }
                _ => set.count,
            };
            let objects = of(first);
            if chained {
                let each = u64::from(*workers).min(objects.max(1));
                let same_count = work
                    .mix
                    .iter()
                    .all(|entry| entry.keyset == first.keyset && of(entry) == objects);
                if !same_count || !objects.is_multiple_of(each) {
                    self.error(
                        &path,
                        "the chain does not divide evenly: its entries need the same number of objects (and \
                         buckets), and the number of workers must divide it",
                        format!("give every entry {objects} objects, and use 1 worker"),
                    );
                    continue;
                }
            }
            run.plan.limits.ops = objects * if chained { work.mix.len() as u64 } else { 1 };
            *workers = u64::from(*workers).min(objects.max(1)) as u32;
        }
    }
}
