//! Measuring phases: limits, stopping rule, works and their models.

use super::builder::PlanBuilder;
use super::defaults;
use super::keysets::Keyset;
use super::layers::RESERVED_PHASES;
use super::sizes;
use crate::spec::law::ArrivalSpec;
use crate::spec::{ModelName, PhaseLimits, PhaseSpec, WorkSpec, WorkloadSpec};
use bucketload_core::plan::{
    Accounting, ArrivalLaw, ClosedPlan, GapLaw, KeyLaw, Limits, MixEntry, ModelPlan, OpenPlan,
    PhaseKind, PhasePlan, StopFigure, StopRule, WorkPlan,
};

/// Maximum number of closed-loop workers that are totalled separately.
const MAX_STREAMS: u64 = 4096;
/// Maximum number of bounds of size classes.
const MAX_SIZE_CLASSES: usize = 7;

/// A measuring phase, with the location of each of its mix entries in the workload.
pub(super) struct RunPhase {
    pub(super) plan: PhasePlan,
    /// Whether the phase only deletes, each object once. It then ends with the last object, whose number is
    /// known once the scale is.
    limited_by_objects: bool,
    /// Whether the phase goes through its objects once.
    pub(super) once: bool,
    /// For each work, its path and the path of each entry.
    paths: Vec<(String, Vec<String>)>,
}

impl RunPhase {
    /// Path of a work in the workload.
    pub(super) fn work_path(&self, work: usize) -> &str {
        self.paths.get(work).map_or("phases", |(path, _)| path)
    }

    /// Path in the workload of a plan's field such as `phases[1].works[0].mix[2].keys`.
    pub(super) fn path_of(&self, work: usize, plan_field: &str) -> String {
        let entry = plan_field.split_once("mix[").and_then(|(_, rest)| {
            let (index, field) = rest.split_once(']')?;
            let path = self.paths.get(work)?.1.get(index.parse::<usize>().ok()?)?;
            // The entry's field, without the plan's inner structure.
            match field.trim_start_matches('.').split(['.', '[']).next() {
                None | Some("") => Some(path.clone()),
                Some(field) => Some(format!("{path}.{field}")),
            }
        });
        entry.unwrap_or_else(|| self.work_path(work).to_owned())
    }

    /// The mix entries, each with its path, of all works except those that consist of jobs or are a cache.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&MixEntry, &str)> {
        self.plan
            .works
            .iter()
            .zip(&self.paths)
            .filter(|(work, _)| work.model.jobs().is_none() && work.model.kvcache().is_none())
            .flat_map(|(work, (_, paths))| work.mix.iter().zip(paths.iter().map(String::as_str)))
    }
}

/// Whether a single work only deletes or renames objects in turn.
fn deletes_once(works: &[WorkPlan]) -> bool {
    let [work] = works else { return false };
    let [entry] = work.mix.as_slice() else {
        return false;
    };
    entry.class.removes_objects() && entry.keys == KeyLaw::Sequential
}

impl PlanBuilder<'_> {
    /// Sets the limit of phases that delete each object once.
    pub(super) fn limit_deletes(&mut self, runs: &mut [RunPhase], keysets: &[Keyset]) {
        for run in runs.iter_mut() {
            if !deletes_once(&run.plan.works) {
                continue;
            }
            let entry = &run.plan.works[0].mix[0];
            let objects = keysets[usize::from(entry.keyset)].plan.count;
            let once = objects.div_ceil(entry.count.clamp(1, objects.max(1)));
            let limits = &mut run.plan.limits;
            if run.limited_by_objects {
                limits.ops = once;
            } else if limits.ops > once {
                let (name, ops) = (&run.plan.name, limits.ops);
                self.notes.push(format!(
                    "phase `{name}` performs {ops} removals, but after {once} no objects are left"
                ));
            }
        }
    }

    pub(super) fn run_phases(
        &mut self,
        spec: &WorkloadSpec,
        keysets: &[Keyset],
        timeout_ns: u64,
    ) -> Vec<RunPhase> {
        let phases: Vec<_> = spec
            .phases
            .iter()
            .flat_map(|phases| &phases.0)
            .filter(|(name, _)| !RESERVED_PHASES.contains(&name.as_str()))
            .collect();
        if phases.is_empty() {
            self.error(
                "phases",
                "the workload measures nothing",
                "add a table [phases.run] with `duration`, `workers` or `rate`, and `mix`",
            );
        }
        phases
            .into_iter()
            .map(|(name, phase)| self.run_phase(name, phase, keysets, timeout_ns))
            .collect()
    }

    fn run_phase(
        &mut self,
        name: &str,
        spec: &PhaseSpec,
        keysets: &[Keyset],
        timeout_ns: u64,
    ) -> RunPhase {
        let path = format!("phases.{name}");
        let works: Vec<(String, String, &WorkSpec)> = match &spec.limits.works {
            None => vec![(name.to_owned(), path.clone(), &spec.work)],
            Some(works) => {
                if spec.work != WorkSpec::default() {
                    self.error(
                        &format!("{path}.works"),
                        "the phase has both `works` and fields of a single work",
                        "move `mix`, `workers`, `rate` and the like into the works",
                    );
                } else if works.0.is_empty() {
                    self.error(&format!("{path}.works"), "there is no work", "");
                }
                works
                    .0
                    .iter()
                    .map(|(name, work)| (name.clone(), format!("{path}.works.{name}"), work))
                    .collect()
            }
        };
        let (mut plans, mut paths) = (Vec::new(), Vec::new());
        for (name, path, work) in works {
            let (model, mix, entry_paths) = match (work.model, &work.rounds) {
                (Some(ModelName::Jobs), _) => self.jobs(&path, work, keysets),
                _ if let Some(kvcache) = &work.kvcache => self.kvcache(&path, work, kvcache),
                _ if let Some(train) = &work.train => self.train(&path, work, train, keysets),
                (None, Some(rounds)) => {
                    let (model, (mix, entry_paths)) = self.rounds(&path, work, rounds, keysets);
                    (model, mix, entry_paths)
                }
                (None, None) => {
                    if work.jobs.is_some() {
                        let message = "`jobs` is set, but the work does not consist of jobs";
                        let remedy = "add model = \"jobs\"";
                        self.error(&format!("{path}.jobs"), message, remedy);
                    }
                    let model = self.model(&path, work);
                    let (mix, entry_paths) = self.mix(&path, work, keysets);
                    (model, mix, entry_paths)
                }
            };
            plans.push(WorkPlan { name, model, mix });
            paths.push((path, entry_paths));
        }
        let deletes = deletes_once(&plans);
        let ends = |work: &WorkPlan| work.model.rounds().is_some() || work.model.train().is_some();
        let goes_once = spec.limits.once == Some(true);
        if goes_once && spec.limits.ops.is_some() {
            self.error(
                &format!("{path}.once"),
                "the phase would end both with its last object and after a number of operations",
                "use either `once` or `ops`",
            );
        }
        let once = deletes || goes_once || plans.iter().all(ends);
        let has_jobs = plans.iter().any(|work| work.model.jobs().is_some());
        let limited = |work: &WorkPlan| work.model.jobs().is_some_and(|jobs| jobs.limit > 0);
        let drills = self.root.find("fault").is_some();
        let ends = once || drills || has_jobs && plans.iter().all(limited);
        let mut limits = self.limits(&path, &spec.limits, timeout_ns, ends);
        if has_jobs {
            if spec.limits.ops.is_some() {
                self.error(
                    &format!("{path}.ops"),
                    "a limit on operations would cut jobs short",
                    "limit `duration`, or the number of jobs with jobs.limit",
                );
            }
            if spec.limits.drain.is_none() {
                limits.drain_ns = limits.drain_ns.max(defaults::JOBS_DRAIN_NS);
            }
        }
        let accounting = self.accounting(&path, &spec.limits, &plans);
        RunPhase {
            limited_by_objects: deletes && spec.limits.ops.is_none(),
            once: goes_once,
            plan: PhasePlan {
                name: name.to_owned(),
                kind: PhaseKind::Run,
                works: plans,
                limits,
                steady_state: spec.limits.steady_state.unwrap_or(true),
                stop: self.stop_rule(&path, &spec.limits),
                accounting,
            },
            paths,
        }
    }

    fn limits(&mut self, path: &str, spec: &PhaseLimits, timeout_ns: u64, once: bool) -> Limits {
        let limits = Limits {
            duration_ns: spec.duration.map_or(0, |d| d.0),
            ops: spec.ops.unwrap_or(0),
            bytes: spec.bytes.map_or(0, |b| b.0),
            drain_ns: spec.drain.map_or(timeout_ns, |d| d.0),
        };
        let zero = [
            ("duration", spec.duration.map(|d| d.0)),
            ("ops", spec.ops),
            ("bytes", spec.bytes.map(|b| b.0)),
        ];
        for (field, value) in zero {
            if value == Some(0) {
                self.error(
                    &format!("{path}.{field}"),
                    "with a limit of 0 the phase would end at once",
                    "give a limit above 0, or none",
                );
            }
        }
        if !once && zero.iter().all(|(_, value)| value.is_none()) {
            self.error(
                path,
                "the phase never ends",
                "add `duration`, `ops` or `bytes`",
            );
        }
        limits
    }

    /// Additional figures to record.
    fn accounting(&mut self, path: &str, spec: &PhaseLimits, works: &[WorkPlan]) -> Accounting {
        let streams = spec.streams.unwrap_or(false);
        let workers = works.iter().map(|work| {
            let closed = work.model.closed();
            closed.map_or(u64::MAX, |closed| u64::from(closed.workers))
        });
        let workers = workers.fold(0, u64::saturating_add);
        if streams && workers > MAX_STREAMS {
            self.error(
                &format!("{path}.streams"),
                "streams are the workers of closed loops, at most 4096 of them",
                "use `workers`, or remove `streams`",
            );
        }
        let size_classes: Vec<u64> = spec
            .size_classes
            .iter()
            .flatten()
            .map(|size| sizes::bytes(size.0, self.size_scale))
            .collect();
        if !size_classes.is_sorted_by(|a, b| a < b) || size_classes.first() == Some(&0) {
            self.error(
                &format!("{path}.size-classes"),
                "the lower bounds of size classes must ascend from above 0",
                "write it such as [\"1B\", \"10MiB\"] for empty, small and large objects",
            );
        }
        if size_classes.len() > MAX_SIZE_CLASSES {
            self.error(
                &format!("{path}.size-classes"),
                format!("{} bounds are too many", size_classes.len()),
                "at most 7 bounds, for 8 classes: each class has its own histograms",
            );
        }
        Accounting {
            streams,
            size_classes,
            max_failed: spec.max_failed.map(|share| share.0),
            ..Accounting::default()
        }
    }

    fn stop_rule(&mut self, path: &str, spec: &PhaseLimits) -> Option<StopRule> {
        let stop = spec.stop.as_ref()?;
        let rule = StopRule {
            min_window_ns: stop.min_window.map_or(defaults::STOP_WINDOW_NS, |w| w.0),
            half_width: stop.half_width.map_or(defaults::STOP_HALF_WIDTH, |w| w.0),
            quantile: stop.quantile.map_or(defaults::STOP_QUANTILE, |q| q.0),
            figure: StopFigure::Throughput,
        };
        if rule.half_width <= 0.0 {
            let remedy = "write it such as \"2%\"";
            self.error(
                &format!("{path}.stop.half-width"),
                "no interval has width 0",
                remedy,
            );
        }
        if !(0.0..1.0).contains(&rule.quantile) {
            let remedy = "write it such as 0.99";
            self.error(
                &format!("{path}.stop.quantile"),
                "the quantile must be at least 0 and below 1",
                remedy,
            );
        }
        if spec.duration.is_some_and(|d| d.0 <= rule.min_window_ns) {
            self.error(
                &format!("{path}.stop.min-window"),
                "the minimum window is not shorter than the phase, so the phase could never stop early",
                "make `duration` longer or `min-window` shorter",
            );
        }
        Some(rule)
    }

    fn model(&mut self, path: &str, work: &WorkSpec) -> ModelPlan {
        let field = |name: &str| format!("{path}.{name}");
        let open = work.arrival.is_some() || work.rate.is_some();
        match (work.workers, open) {
            (Some(_), true) => self.error(
                &field("workers"),
                "`workers` makes a closed loop, `arrival` and `rate` make an open one",
                "use one or the other",
            ),
            (None, false) => self.error(
                path,
                "the work does not say when operations are due",
                "add `rate` or `arrival` for an open loop, or `workers` for a closed one",
            ),
            (Some(0), _) => {
                self.error(
                    &field("workers"),
                    "at least 1 worker is needed",
                    "give at least 1",
                );
            }
            (Some(workers), _) if workers > 1_000_000 => {
                let message = format!("{workers} workers are too many");
                self.error(&field("workers"), message, "at most 1000000");
            }
            _ => {}
        }
        if !open && work.max_in_flight.is_some() {
            self.error(
                &field("max-in-flight"),
                "a closed loop has no cap on operations in flight",
                "the number of workers is that cap",
            );
        }
        if open && work.think.is_some() {
            self.error(
                &field("think"),
                "an open loop has no think time",
                "remove it",
            );
        }
        if !open {
            return ModelPlan::from(ClosedPlan {
                workers: work.workers.unwrap_or(1),
                think: work.think.map_or(GapLaw::None, |think| think.0),
            });
        }
        let arrival = self.arrival(path, work);
        let max_in_flight = work
            .max_in_flight
            .unwrap_or_else(|| defaults::max_in_flight(&arrival));
        if max_in_flight == 0 {
            self.error(
                &field("max-in-flight"),
                "with a cap of 0 no operation could ever start",
                "give at least 1, or remove it for 10 s worth of arrivals",
            );
        }
        ModelPlan::from(OpenPlan {
            arrival,
            max_in_flight,
        })
    }

    /// The arrival process with its rate, which `rate` may supply or replace.
    pub(super) fn arrival(&mut self, path: &str, work: &WorkSpec) -> ArrivalLaw {
        let poisson = || ArrivalSpec {
            law: ArrivalLaw::Poisson { rate: 0.0 },
        };
        let mut arrival = work.arrival.clone().unwrap_or_else(poisson);
        match work.rate {
            Some(rate) if !arrival.set_rate(rate.0) => self.error(
                &format!("{path}.rate"),
                format!("the arrival process {arrival} has no single rate to set"),
                "give another `arrival`, such as poisson(200/s), or remove `rate`",
            ),
            None if arrival.rate() == Some(0.0) => self.error(
                &format!("{path}.arrival"),
                "the rate is missing",
                "write it inside, such as poisson(200/s), or add `rate`",
            ),
            _ => {}
        }
        if arrival.rate().is_some_and(|rate| rate > 1e8) {
            self.error(
                &format!("{path}.rate"),
                "more than 10^8 operations per second cannot be scheduled",
                "",
            );
        }
        arrival.law
    }
}
