//! Works that consist of jobs: the fields they accept and need, and their defaults.

use crate::resolve::builder::PlanBuilder;
use crate::resolve::defaults;
use crate::resolve::dryrun::{Rates, by_class};
use crate::resolve::keysets::Keyset;
use crate::resolve::models::DescribedModel;
use crate::resolve::phases::RunPhase;
use crate::resolve::sizes;
use crate::spec::law::ArrivalSpec;
use crate::spec::{JobsSpec, OpsRange, Pace, ScaleSpec, WorkSpec, WorkloadSpec};
use bucketload_core::generate::LawError;
use bucketload_core::generate::jobs::{self as generate, JobGen};
use bucketload_core::generate::sizes::SizeSampler;
use bucketload_core::plan::{
    ArrivalLaw, JobStart, JobsPlan, MixEntry, ModelPlan, PhasePlan, Plan, StageKind, StagePace,
    StagePlan,
};
use bucketload_core::units::format_size;

impl PlanBuilder<'_> {
    /// The model and the mix of a work with `model = "jobs"`, with the path of each entry.
    pub(in crate::resolve) fn jobs(
        &mut self,
        path: &str,
        work: &WorkSpec,
        keysets: &[Keyset],
    ) -> (ModelPlan, Vec<MixEntry>, Vec<String>) {
        let none = JobsSpec::default();
        let spec = work.jobs.as_ref().unwrap_or(&none);
        self.deny_fields_of_others(path, work);
        let field = |name: &str| format!("{path}.jobs.{name}");
        let start = match work.workers {
            Some(jobs) => JobStart::Closed { jobs },
            None => JobStart::Open {
                arrival: self.job_arrivals(path, work),
            },
        };
        if work.workers == Some(0) {
            let remedy = "give at least 1";
            self.error(
                &format!("{path}.workers"),
                "at least 1 job is needed",
                remedy,
            );
        }
        let rate = spec.stage_rate.map_or(defaults::STAGE_RATE, |rate| rate.0);
        let pace = match spec.pace.unwrap_or(Pace::Poisson) {
            Pace::Poisson => StagePace::Poisson { rate },
            Pace::Burst => StagePace::Burst,
            Pace::Sequential => StagePace::Sequential,
        };
        if spec.stage_rate.is_some() && !matches!(pace, StagePace::Poisson { .. }) {
            self.error(
                &field("stage-rate"),
                "only the pace `poisson` has a rate",
                "remove it, or write pace = \"poisson\"",
            );
        }
        let ops = spec.ops.unwrap_or(OpsRange { min: 10, max: 19 });
        let kinds = match &spec.stages {
            Some(stages) => stages.0.clone(),
            None => {
                use StageKind::{Read, Write};
                vec![Write, Read, Write, Read, Write]
            }
        };
        let retain = spec.retain_jobs.unwrap_or(defaults::RETAIN_JOBS);
        for (name, value) in [
            ("max-jobs", spec.max_jobs.map(u64::from)),
            ("limit", spec.limit),
        ] {
            if value == Some(0) {
                let remedy = "give at least 1, or remove it";
                self.error(&field(name), "with 0 no job could ever start", remedy);
            }
        }
        let jobs = JobsPlan {
            start,
            stages: kinds
                .into_iter()
                .map(|kind| StagePlan {
                    kind,
                    min: ops.min,
                    max: ops.max,
                })
                .collect(),
            pace,
            limit: spec.limit.unwrap_or(0),
            max_jobs: spec.max_jobs.unwrap_or(defaults::MAX_JOBS),
            retain,
            max_in_flight: work.max_in_flight.unwrap_or(defaults::JOBS_IN_FLIGHT),
            temp: self.job_keyset(path, "temp", spec.temp.as_deref(), keysets),
            results: self.job_keyset(path, "results", spec.results.as_deref(), keysets),
        };
        if jobs.max_in_flight == 0 {
            self.error(
                &format!("{path}.max-in-flight"),
                "with a cap of 0 no operation could ever start",
                "give at least 1, or remove it",
            );
        }
        if jobs.temp == jobs.results && jobs.stages.len() > 1 {
            self.error(
                &field("results"),
                "temporary objects and results are in the same key set",
                "use a separate key set for each",
            );
        }
        let plans: Vec<_> = keysets.iter().map(|set| set.plan.clone()).collect();
        let mix = match generate::mix(&jobs, &plans) {
            Ok(mix) => mix,
            Err(error) => {
                let at = error.field.split(['[', '.']).next().unwrap_or_default();
                let at = if at == "stages" {
                    field("stages")
                } else {
                    field(at)
                };
                self.error(&at, format!("`{}` {}", error.field, error.reason), "");
                Vec::new()
            }
        };
        let paths = vec![format!("{path}.jobs"); mix.len()];
        (jobs.into(), mix, paths)
    }

    /// Rejects fields that only other models have.
    fn deny_fields_of_others(&mut self, path: &str, work: &WorkSpec) {
        let given = [
            (
                "mix",
                work.mix.is_some(),
                "its stages define the operations",
            ),
            (
                "keyset",
                work.keyset.is_some(),
                "jobs.temp and jobs.results name its key sets",
            ),
            (
                "keys",
                work.keys.is_some(),
                "a stage reads the objects of the write stage before it",
            ),
            ("size", work.size.is_some(), "its key sets define the sizes"),
            (
                "think",
                work.think.is_some(),
                "jobs.pace defines when operations are due",
            ),
        ];
        for (name, is_given, why) in given {
            if is_given {
                let message = format!("a work that consists of jobs has no `{name}`: {why}");
                self.error(&format!("{path}.{name}"), message, "remove it");
            }
        }
        if work.workers.is_some() && (work.arrival.is_some() || work.rate.is_some()) {
            self.error(
                &format!("{path}.workers"),
                "`workers` makes a closed loop of jobs, `arrival` and `rate` an open one",
                "give one of them",
            );
        }
    }

    fn job_arrivals(&mut self, path: &str, work: &WorkSpec) -> ArrivalLaw {
        if work.arrival.is_none() && work.rate.is_none() {
            return ArrivalLaw::Poisson {
                rate: defaults::JOB_RATE,
            };
        }
        self.arrival(path, work)
    }

    fn job_keyset(
        &mut self,
        path: &str,
        field: &str,
        name: Option<&str>,
        keysets: &[Keyset],
    ) -> u16 {
        let wanted = name.unwrap_or(field);
        let found = keysets.iter().position(|set| set.plan.name == wanted);
        let Some(index) = found.filter(|_| self.root.find("keysets").is_some()) else {
            self.error(
                &format!("{path}.jobs.{field}"),
                format!("there is no key set `{wanted}`"),
                format!("add a table [keysets.{wanted}] with `size`"),
            );
            return 0;
        };
        let set = &keysets[index];
        if set.plan.count > 0 {
            self.error(
                &format!("keysets.{wanted}.count"),
                "jobs create their own objects, but this key set already has others",
                "remove `count`",
            );
        }
        if !set.sized {
            let remedy = "add it, such as size = \"64KiB\"";
            let path = format!("keysets.{wanted}.size");
            self.error(&path, "the size of the objects is missing", remedy);
        }
        index as u16
    }

    /// Checks that the key sets of jobs belong to a single work.
    pub(in crate::resolve) fn check_job_keysets(&mut self, runs: &[RunPhase]) {
        let mut owners: Vec<(u16, String)> = Vec::new();
        for run in runs {
            for (work, plan) in run.plan.works.iter().enumerate() {
                let Some(jobs) = plan.model.jobs() else {
                    continue;
                };
                let path = run.work_path(work).to_owned();
                for set in [jobs.temp, jobs.results] {
                    let in_use = owners
                        .iter()
                        .any(|(other, by)| *other == set && *by != path)
                        || runs
                            .iter()
                            .flat_map(RunPhase::entries)
                            .any(|(e, _)| e.keyset == set);
                    if in_use {
                        self.error(
                            &format!("{path}.jobs"),
                            "another work uses the key set of these jobs",
                            "give the jobs separate key sets",
                        );
                    }
                    owners.push((set, path.clone()));
                }
            }
        }
    }

    /// Makes objects smaller until the data kept by the jobs fits into a target in memory, unless the user
    /// set a scale. Returns the factor on the sizes of the jobs' key sets.
    pub(in crate::resolve) fn fit_jobs(
        &mut self,
        spec: &WorkloadSpec,
        keysets: &mut [Keyset],
        runs: &mut [RunPhase],
        budget: Option<u64>,
    ) -> f64 {
        let needed: f64 = runs.iter().map(|run| resident(&run.plan, keysets)).sum();
        let Some(budget) = budget.filter(|budget| needed > *budget as f64) else {
            return 1.0;
        };
        let message = |factor: f64| {
            format!(
                "the jobs keep about {:.1} GiB of objects in a target that is allowed {}{}",
                needed * factor / 1_073_741_824.0,
                format_size(budget),
                if factor < 1.0 {
                    ""
                } else {
                    "; lower `size-scale` or `retain-jobs`"
                },
            )
        };
        if matches!(spec.scale, Some(ScaleSpec::Factor(_))) {
            self.note(message(1.0));
            return 1.0;
        }
        let halvings = (needed / budget as f64).log2().ceil();
        let factor = (-halvings).exp2();
        for run in runs.iter_mut() {
            for bound in &mut run.plan.accounting.size_classes {
                *bound = sizes::bytes(*bound, factor);
            }
            for work in &mut run.plan.works {
                let Some(jobs) = work.model.get_mut::<JobsPlan>() else {
                    continue;
                };
                let mut sets = vec![jobs.temp, jobs.results];
                sets.dedup();
                for set in sets {
                    let plan = &mut keysets[usize::from(set)].plan;
                    match sizes::scaled(&plan.size, factor) {
                        Ok(law) => plan.size = law,
                        Err(_) => return 1.0,
                    }
                }
                let plans: Vec<_> = keysets.iter().map(|set| set.plan.clone()).collect();
                if let Ok(mix) = generate::mix(jobs, &plans) {
                    work.mix = mix;
                }
            }
        }
        self.note(format!(
            "size scale {}: objects are {} times smaller than the workload states, because the \
             target keeps them in memory ({} allowed); --scale 1 keeps full sizes",
            Factor(self.size_scale * factor),
            1.0 / factor,
            format_size(budget)
        ));
        factor
    }
}

/// Expected bytes that a phase's jobs keep in the store at any time: retained results, and two stages of
/// temporary objects per running job.
fn resident(phase: &PhasePlan, keysets: &[Keyset]) -> f64 {
    let mean = |set: u16| {
        let law = &keysets[usize::from(set)].plan.size;
        SizeSampler::new(law).map_or(0.0, |sizes| sizes.mean())
    };
    let of = |jobs: &JobsPlan| {
        let ops = jobs.mean_ops(0);
        let seconds = phase.limits.duration_ns as f64 / 1e9;
        let stage_s = match jobs.pace {
            StagePace::Poisson { rate } => ops / rate,
            StagePace::Burst | StagePace::Sequential => 1.0,
        };
        let job_s = stage_s * jobs.stages.len() as f64;
        let (running, begun) = match &jobs.start {
            JobStart::Closed { jobs } => (f64::from(*jobs), f64::from(*jobs) * seconds / job_s),
            JobStart::Open { arrival } => {
                let schedule = bucketload_core::generate::arrivals::Schedule::new(0, 0, 0, arrival);
                let rate = schedule.map_or(0.0, |s| s.mean_rate(phase.limits.duration_ns.max(1)));
                ((rate * job_s).max(1.0), rate * seconds)
            }
        };
        let begun = match (jobs.limit, phase.limits.duration_ns) {
            (0, _) => begun,
            (limit, 0) => limit as f64,
            (limit, _) => begun.min(limit as f64),
        };
        let kept = match jobs.retain {
            0 => begun,
            retain => begun.min(f64::from(retain)),
        };
        kept * ops * mean(jobs.results) + running * 2.0 * ops * mean(jobs.temp)
    };
    phase
        .works
        .iter()
        .filter_map(|work| work.model.jobs())
        .map(of)
        .sum()
}

impl DescribedModel for JobsPlan {
    fn in_outlook(&self) -> String {
        let start = match &self.start {
            JobStart::Open { arrival } => {
                let law = ArrivalSpec {
                    law: arrival.clone(),
                };
                format!("partly open, jobs arrive by {law}")
            }
            JobStart::Closed { jobs } => format!("closed loop, {jobs} jobs at a time"),
        };
        let pace = match self.pace {
            StagePace::Poisson { rate } => format!("Poisson {rate}/s within a stage"),
            StagePace::Burst => "a stage's operations all at once".to_owned(),
            StagePace::Sequential => "a stage's operations one after the other".to_owned(),
        };
        format!("{start}, {} stages each, {pace}", self.stages.len())
    }

    fn in_results(&self) -> String {
        format!(
            "{}, at most {} in flight",
            self.in_outlook(),
            self.max_in_flight
        )
    }

    fn rates(&self, plan: &Plan, phase: usize, work: usize) -> Result<Rates, LawError> {
        let ops = JobGen::new(plan, phase as u16, work as u16)?;
        let work = &plan.phases[phase].works[work];
        let (written, read) = ops.mean_bytes(self);
        let per_job: f64 = work.mix.iter().map(|entry| entry.weight).sum();
        let shares = work.mix.iter();
        let mix = by_class(shares.map(|entry| (entry.class, entry.weight / per_job)));
        Ok(Rates {
            read: read / per_job,
            written: written / per_job,
            mix,
        })
    }
}

/// A factor, formatted as `2^-10` if it is a power of two.
struct Factor(f64);

impl std::fmt::Display for Factor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let exponent = self.0.log2();
        if exponent.fract() == 0.0 && exponent.abs() >= 2.0 {
            write!(f, "2^{exponent}")
        } else {
            write!(f, "{}", self.0)
        }
    }
}
