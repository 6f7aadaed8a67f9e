//! Turns the effective workload into a plan: defaults, cross-field checks, order of phases.

use super::defaults;
use super::keysets::Keyset;
use super::scale;
use super::{ResolveContext, layers::RESERVED_PHASES};
use crate::spec::node::Node;
use crate::spec::{Errors, NotFound, WorkloadSpec};
use bucketload_core::op::OpClass;
use bucketload_core::payload::PayloadKind;
use bucketload_core::plan::{
    ClosedPlan, KeyLaw, Limits, MixEntry, PhaseKind, PhasePlan, Plan, RetryPlan, WorkPlan,
};

/// The state while turning one workload into a plan.
pub(super) struct PlanBuilder<'a> {
    pub(super) root: &'a Node,
    pub(super) errors: Errors,
    pub(super) notes: Vec<String>,
    /// Factor on all sizes.
    pub(super) size_scale: f64,
}

impl PlanBuilder<'_> {
    /// Reports a problem with the field at `path`, or with the table that lacks it.
    pub(super) fn error(
        &mut self,
        path: &str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let origin = self.root.origin_of(path);
        self.errors.push(origin, path, message, remedy);
    }

    /// Adds a note for the user.
    pub(super) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Builds the plan; it is meaningless if a problem was reported.
    pub(super) fn plan(
        &mut self,
        file: &str,
        profile: &str,
        spec: &WorkloadSpec,
        context: &ResolveContext,
    ) -> Plan {
        let name = spec.name.clone().unwrap_or_else(|| file_stem(file));
        if let Some(checkpoint) = &spec.checkpoint {
            return self.checkpoint_plan(&name, profile, spec, checkpoint, context);
        }
        let timeout_ns = spec.timeout.map_or(defaults::TIMEOUT_NS, |t| t.0);
        if timeout_ns == 0 {
            self.error(
                "timeout",
                "a timeout of 0 fails every operation",
                "write it such as \"30s\"",
            );
        }
        let mut keysets = self.keysets(spec);
        let mut runs = self.run_phases(spec, &keysets, timeout_ns);
        self.check_populations(&mut keysets, &runs);
        self.keysets_of_rounds(&mut keysets, &runs);
        self.check_buckets(&keysets, &runs, spec);
        let oracle = spec.oracle.unwrap_or(false);
        let verify = spec.verify.unwrap_or(false) && !oracle;
        if verify {
            self.check_verification(&keysets, &runs);
        }
        if oracle {
            self.check_oracle(spec);
            let mut works = runs.iter().flat_map(|run| &run.plan.works);
            if works.any(|work| work.model.rounds().is_some()) {
                let message = "works in rounds judge listings themselves, without the oracle";
                self.error("oracle", message, "turn the oracle off");
            }
        }
        let scale = scale::apply(self, spec, &mut keysets, context.memory_budget);
        self.fit_caches(spec, &mut keysets, &runs, context.memory_budget);
        self.limit_deletes(&mut runs, &keysets);
        self.fit_trainings(&mut runs, &keysets);
        self.limit_once(&mut runs, &keysets);
        self.check_job_keysets(&runs);
        let fitted = self.fit_jobs(spec, &mut keysets, &mut runs, context.memory_budget);

        let phase =
            |name: &str, kind: PhaseKind| PhasePlan::new(name, kind, Vec::new(), Limits::default());
        let mut phases = vec![phase("init", PhaseKind::Init)];
        phases.extend(self.prepare_phases(spec, &keysets, timeout_ns));
        phases.extend(runs.iter().map(|run| run.plan.clone()));
        if oracle {
            phases.push(phase("audit", PhaseKind::Audit));
        }
        if !spec.keep.unwrap_or(false) {
            phases.push(phase("cleanup", PhaseKind::Cleanup));
        }
        let plan = Plan {
            workload: name,
            profile: profile.to_owned(),
            compat: spec.compat.clone().unwrap_or_default(),
            seed: spec.seed.unwrap_or(defaults::SEED),
            scale,
            size_scale: self.size_scale * fitted,
            payload: spec.payload.map_or(PayloadKind::Random, |p| p.0),
            verify,
            timeout_ns,
            retry: self.retry(spec),
            not_found_is_failure: spec.not_found != Some(NotFound::Expected),
            keysets: keysets.into_iter().map(|keyset| keyset.plan).collect(),
            phases,
        };
        if self.errors.is_empty() {
            self.check_generators(&plan, &runs);
        }
        plan
    }

    /// Checks that the payload lets the oracle recognise versions by their content.
    fn check_oracle(&mut self, spec: &WorkloadSpec) {
        let payload = spec.payload.map_or(PayloadKind::Random, |p| p.0);
        if payload != PayloadKind::Random {
            self.error(
                "oracle",
                "the oracle tells versions apart by their content, which this payload does not allow",
                "use payload = \"random\", or turn the oracle off",
            );
        }
        if spec.verify == Some(true) {
            self.note(
                "the oracle replaces verification: it checks every byte of the objects \
                 that it tracks",
            );
        }
    }

    pub(super) fn retry(&mut self, spec: &WorkloadSpec) -> RetryPlan {
        let retry = spec.retry.clone().unwrap_or_default();
        let backoff_ns = retry.backoff.map_or(defaults::BACKOFF_NS, |t| t.0);
        let plan = RetryPlan {
            max_attempts: retry.attempts.unwrap_or(1),
            backoff_ns,
            max_backoff_ns: retry
                .max_backoff
                .map_or(defaults::MAX_BACKOFF_NS.max(backoff_ns), |t| t.0),
        };
        if plan.max_attempts == 0 {
            let remedy = "write 1 for no retry, 2 for one retry";
            self.error("retry.attempts", "0 attempts perform nothing", remedy);
        }
        if plan.max_backoff_ns < plan.backoff_ns {
            self.error(
                "retry.max-backoff",
                "the longest pause is shorter than the first",
                "make it at least `backoff`",
            );
        }
        plan
    }

    /// One phase per key set to prepare, so each phase ends exactly with the key set's last object; for objects with
    /// several versions one phase per version, so the newest version of an object is the last one.
    fn prepare_phases<'k>(
        &mut self,
        spec: &WorkloadSpec,
        keysets: &'k [Keyset],
        timeout_ns: u64,
    ) -> Vec<PhasePlan> {
        let workers = self.reserved_phases(spec);
        let prepared: Vec<_> = keysets
            .iter()
            .enumerate()
            .filter(|(_, keyset)| keyset.is_prepared())
            .collect();
        let single = prepared.len() == 1;
        let phase = |(version, (index, keyset)): (u32, (usize, &Keyset))| {
            let name = &keyset.plan.name;
            let (class, count) = match keyset.part_size {
                Some(part) => (OpClass::MultipartPut, part),
                None => (OpClass::Put, 0),
            };
            let entry = MixEntry {
                count,
                ..MixEntry::new(class, index as u16, KeyLaw::Sequential)
            };
            let work = WorkPlan {
                name: name.clone(),
                model: ClosedPlan::without_pauses(workers).into(),
                mix: vec![entry],
            };
            let limits = Limits {
                ops: keyset.plan.count,
                drain_ns: timeout_ns,
                ..Limits::default()
            };
            let name = match single {
                true => "prepare".to_owned(),
                false => format!("prepare-{name}"),
            };
            let name = match version {
                1 => name,
                later => format!("{name}-version-{later}"),
            };
            PhasePlan::new(&name, PhaseKind::Prepare, vec![work], limits)
        };
        let each = |(index, keyset): (usize, &'k Keyset)| {
            (1..=keyset.versions).map(move |version| (version, (index, keyset)))
        };
        prepared.into_iter().flat_map(each).map(phase).collect()
    }

    /// Checks the tables of the phases that Bucketload itself performs; returns the number of preparation
    /// workers.
    fn reserved_phases(&mut self, spec: &WorkloadSpec) -> u32 {
        let mut workers = defaults::PREPARE_WORKERS;
        for name in RESERVED_PHASES {
            let given = |phases: &crate::spec::Named<_>| phases.index(name).is_some();
            if !spec.phases.as_ref().is_some_and(given) {
                continue;
            }
            let path = format!("phases.{name}");
            let table = self.root.find(&path).and_then(Node::as_table);
            let keys: Vec<String> = table
                .into_iter()
                .flat_map(|table| table.keys().map(str::to_owned))
                .collect();
            for key in keys {
                if name != "prepare" || key != "workers" {
                    self.error(
                        &format!("{path}.{key}"),
                        format!("the phase `{name}` has no field `{key}`"),
                        match name {
                            "prepare" => {
                                "its only field is `workers`; key sets describe the objects"
                            }
                            "cleanup" => "it has no fields; `keep = true` leaves the objects",
                            _ => "it has no fields",
                        },
                    );
                }
            }
            let phase = spec.phases.as_ref().and_then(|phases| phases.get(name));
            if let Some(given) = phase.and_then(|phase| phase.work.workers) {
                workers = given;
                if given == 0 && name == "prepare" {
                    self.error("phases.prepare.workers", "at least 1 worker is needed", "");
                }
            }
        }
        workers
    }
}

/// Returns `online` for `some/where/online.toml`.
fn file_stem(file: &str) -> String {
    let base = file.rsplit(['/', '\\']).next().unwrap_or(file);
    let stem = base.strip_suffix(".toml").unwrap_or(base);
    if stem.is_empty() { "workload" } else { stem }.to_owned()
}
