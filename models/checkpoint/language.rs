//! Checkpoints: the phases that the table `checkpoint` of a workload stands for.

use bucketload_core::generate::LawError;
use bucketload_core::op::OpClass;
use bucketload_core::payload::PayloadKind;
use bucketload_core::plan::checkpoint::{CheckpointAction, LanguageModel};
use bucketload_core::plan::ranks::Fraction;
use bucketload_core::plan::{
    Accounting, CheckpointPlan, KeyLaw, KeyNaming, KeysetPlan, Limits, MixEntry, PhaseKind,
    PhasePlan, Plan, RangePlan, SizeAssign, SizeLaw, WorkPlan,
};
use bucketload_core::units::format_size;

use crate::resolve::builder::PlanBuilder;
use crate::resolve::dryrun::Rates;
use crate::resolve::models::DescribedModel;
use crate::resolve::{ResolveContext, defaults};
use crate::spec::{
    CheckpointPhase, CheckpointSpec, ExtensionSpec, LatestSpec, ModelSpec, WorkloadSpec, closest,
    known_models,
};

/// The procedure of the benchmark (docs/spec/ai-checkpoints.md section "Checkpoints").
const COUNT: u32 = 10;
const PAUSE_NS: u64 = 5_000_000_000;
const PART_BYTES: u64 = 32 << 20;
const PARTS_IN_FLIGHT: u32 = 16;
const RANGE_BYTES: u64 = 128 << 20;
const RANGES_IN_FLIGHT: u32 = 8;
/// Common distance of checkpoints in training runs, for figures that need one.
const INTERVAL_NS: u64 = 1_800_000_000_000;
/// Longest time for one object: 14 GB at 4 MB/s.
const TIMEOUT_NS: u64 = 3_600_000_000_000;
/// Five phases per checkpoint stay below the limit on phases.
const MOST_CHECKPOINTS: u32 = 200;
/// Most connections of all ranks together.
const MOST_CONNECTIONS: u64 = 1 << 17;

impl PlanBuilder<'_> {
    /// The plan of a workload that consists of checkpoints.
    pub(in crate::resolve) fn checkpoint_plan(
        &mut self,
        name: &str,
        profile: &str,
        spec: &WorkloadSpec,
        checkpoint: &CheckpointSpec,
        context: &ResolveContext,
    ) -> Plan {
        let foreign = [
            ("keysets", spec.keysets.is_some()),
            ("phases", spec.phases.is_some()),
            ("scale", spec.scale.is_some()),
            ("size-scale", spec.size_scale.is_some()),
            ("oracle", spec.oracle == Some(true)),
        ];
        for (field, _) in foreign.into_iter().filter(|(_, given)| *given) {
            let message = format!(
                "`checkpoint` defines what is written and read, so `{field}` does not apply"
            );
            self.error(
                field,
                message,
                "remove it; checkpoint.scale makes objects smaller",
            );
        }
        let timeout_ns = spec.timeout.map_or(TIMEOUT_NS, |t| t.0);
        if timeout_ns == 0 {
            self.error(
                "timeout",
                "a timeout of 0 fails every operation",
                "write it such as \"1h\"",
            );
        }
        let base = self.checkpoint_base(checkpoint, context);
        let (objects, bytes) = base.total();
        let existing = checkpoint.existing.unwrap_or(false);
        let mean = SizeLaw::constant((bytes / objects.max(1)).max(1));
        let keyset = KeysetPlan {
            name: "checkpoint".to_owned(),
            prefix: "checkpoint/".to_owned(),
            shards: 1,
            count: objects,
            size: mean,
            assign: SizeAssign::Random,
            overwritten: false,
            naming: KeyNaming::Index,
            existing,
            buckets: None,
        };
        let mut phases = Vec::new();
        if !existing {
            phases.push(PhasePlan::new(
                "init",
                PhaseKind::Init,
                Vec::new(),
                Limits::default(),
            ));
        }
        phases.extend(checkpoint_phases(checkpoint, &base, timeout_ns));
        if !existing && !spec.keep.unwrap_or(false) {
            phases.push(PhasePlan::new(
                "cleanup",
                PhaseKind::Cleanup,
                Vec::new(),
                Limits::default(),
            ));
        }
        Plan {
            workload: name.to_owned(),
            profile: profile.to_owned(),
            compat: spec.compat.clone().unwrap_or_default(),
            seed: spec.seed.unwrap_or(defaults::SEED),
            scale: 1.0,
            size_scale: 1.0,
            payload: spec.payload.map_or(PayloadKind::Random, |p| p.0),
            verify: spec.verify.unwrap_or(true),
            timeout_ns,
            retry: self.retry(spec),
            not_found_is_failure: true,
            keysets: vec![keyset],
            phases,
        }
    }

    /// The first checkpoint, as it is written.
    fn checkpoint_base(
        &mut self,
        spec: &CheckpointSpec,
        context: &ResolveContext,
    ) -> CheckpointPlan {
        let mut model = self.language_model(spec);
        let copy = model.tensor * model.pipeline;
        match spec.ranks {
            Some(ranks) if ranks == 0 || ranks % copy != 0 => self.error(
                "checkpoint.ranks",
                format!("{ranks} ranks do not hold whole copies of {}", model.name),
                format!("use a multiple of {copy}, its tensor x pipeline"),
            ),
            Some(ranks) => {
                model.data = ranks / copy;
                if let Err(e) = model.check() {
                    self.error("checkpoint.ranks", e.reason, "use fewer ranks");
                    model.data = 1;
                }
            }
            None => {}
        }
        let all = u32::try_from(model.ranks()).unwrap_or(u32::MAX);
        let ranks = spec.subset.unwrap_or(all);
        if ranks == 0 || ranks > all {
            let message = format!(
                "{ranks} ranks lie outside 1 to {all}, the ranks of {}",
                model.name
            );
            self.error("checkpoint.subset", message, "leave it out for all ranks");
        }
        let mut base = CheckpointPlan {
            model,
            action: CheckpointAction::Write,
            number: 1,
            ranks: ranks.clamp(1, all),
            scale: spec
                .scale
                .map_or(Fraction { parts: 1, of: 1 }, |scale| scale.0),
            extension: <&str>::from(spec.extension.unwrap_or(ExtensionSpec::Pt)).to_owned(),
            piece_bytes: spec.part_size.map_or(PART_BYTES, |part| part.0),
            lanes: 1,
            shift: spec.rank_shift.unwrap_or(0),
            interval_ns: spec.interval.map_or(INTERVAL_NS, |interval| interval.0),
        };
        let bytes = all_bytes(spec, &base);
        if let Some(budget) = context.memory_budget
            && spec.scale.is_none()
            && bytes > budget
        {
            let of = readable(bytes, budget, &base);
            base.scale = Fraction { parts: 1, of };
            self.note(format!(
                "checkpoint.scale is 1/{of}, because the target keeps objects in memory ({} allowed)",
                format_size(budget)
            ));
        }
        self.check_checkpoint(spec, &base, context);
        base
    }

    fn check_checkpoint(
        &mut self,
        spec: &CheckpointSpec,
        base: &CheckpointPlan,
        context: &ResolveContext,
    ) {
        if base.shift > 0 && base.shift >= base.ranks {
            let message = format!("a shift of {} among {} ranks", base.shift, base.ranks);
            self.error(
                "checkpoint.rank-shift",
                message,
                "use less than the number of ranks",
            );
        }
        let largest = base.largest();
        match base.piece_bytes {
            0 if largest > defaults::MAX_SINGLE_PUT => self.note(format!(
                "the largest object has {}, which S3 does not accept in one request (5 GiB); set part-size",
                format_size(largest)
            )),
            0 => {}
            part => self.check_parts("checkpoint.part-size", part, largest),
        }
        if spec.existing == Some(true) && spec.phase != Some(CheckpointPhase::Read) {
            self.error(
                "checkpoint.existing",
                "checkpoints that are there are only read",
                "add phase = \"read\", or leave it out",
            );
        }
        if spec.count == Some(0) || spec.count > Some(MOST_CHECKPOINTS) {
            let message = format!(
                "{} checkpoints lie outside 1 to {MOST_CHECKPOINTS}",
                spec.count.unwrap_or(0)
            );
            self.error("checkpoint.count", message, "");
        }
        for (field, value) in [
            (
                "parts-in-flight",
                spec.parts_in_flight.unwrap_or(PARTS_IN_FLIGHT),
            ),
            (
                "ranges-in-flight",
                spec.ranges_in_flight.unwrap_or(RANGES_IN_FLIGHT),
            ),
        ] {
            let connections = u64::from(value) * u64::from(base.ranks);
            if value == 0 || connections > MOST_CONNECTIONS {
                self.error(
                    &format!("checkpoint.{field}"),
                    format!(
                        "{value} for each of {} ranks lie outside 1 to {MOST_CONNECTIONS} in all",
                        base.ranks
                    ),
                    "write 1 for one after another",
                );
            }
        }
        if spec.interval.is_some_and(|interval| interval.0 == 0) {
            self.error(
                "checkpoint.interval",
                "no training between checkpoints",
                "write it such as \"30m\"",
            );
        }
        let bytes = all_bytes(spec, base);
        if let Some(budget) = context.memory_budget.filter(|budget| bytes > *budget) {
            self.error(
                "checkpoint.scale",
                format!(
                    "the checkpoints have {bytes} bytes, and the target keeps objects in memory ({} allowed)",
                    format_size(budget)
                ),
                format!(
                    "use at most scale = \"1/{}\", fewer checkpoints, or another target",
                    readable(bytes, budget, base)
                ),
            );
        }
    }

    fn language_model(&mut self, spec: &CheckpointSpec) -> LanguageModel {
        let known = known_models().unwrap_or_default();
        let fallback = || known[0].clone();
        match &spec.model {
            Some(ModelSpec::Numbers(numbers)) => {
                numbers
                    .model("custom")
                    .unwrap_or_else(|(field, message, remedy)| {
                        self.error(&format!("checkpoint.model.{field}"), message, remedy);
                        fallback()
                    })
            }
            Some(ModelSpec::Name(name)) => match known.iter().find(|model| model.name == *name) {
                Some(model) => model.clone(),
                None => {
                    let names: Vec<&str> = known.iter().map(|model| model.name.as_str()).collect();
                    let close = closest(name, names.iter().copied());
                    let close =
                        close.map_or(String::new(), |name| format!("did you mean `{name}`? "));
                    let remedy = format!(
                        "{close}known: {}; or give a table of numbers",
                        names.join(", ")
                    );
                    self.error(
                        "checkpoint.model",
                        format!("unknown model `{name}`"),
                        remedy,
                    );
                    fallback()
                }
            },
            None => {
                self.error(
                    "checkpoint",
                    "the model is missing",
                    "add model = \"llama3-8b\"",
                );
                fallback()
            }
        }
    }
}

/// Bytes of all checkpoints of `spec`, each as large as `base`.
fn all_bytes(spec: &CheckpointSpec, base: &CheckpointPlan) -> u64 {
    let count = u64::from(spec.count.unwrap_or(COUNT));
    base.total().1.saturating_mul(count)
}

/// The denominator, two digits and zeros, of the largest readable scale with which `bytes` of `base` fit into `budget`.
fn readable(bytes: u64, budget: u64, base: &CheckpointPlan) -> u64 {
    let ratio = u128::from(bytes) * u128::from(base.scale.of) / u128::from(base.scale.parts);
    let least = u64::try_from(ratio.div_ceil(u128::from(budget.max(1)))).unwrap_or(u64::MAX / 100);
    let step = 10u64.pow(least.max(1).ilog10().saturating_sub(1));
    // Every tensor has at least one element, so a little room is left.
    (least + 1).div_ceil(step) * step
}

fn checkpoint_phases(
    spec: &CheckpointSpec,
    base: &CheckpointPlan,
    timeout_ns: u64,
) -> Vec<PhasePlan> {
    let wanted = spec.phase.unwrap_or(CheckpointPhase::Both);
    let pause_ns = spec.pause.map_or(PAUSE_NS, |pause| pause.0);
    let count = spec.count.unwrap_or(COUNT).clamp(1, MOST_CHECKPOINTS);
    let read = CheckpointPlan {
        action: CheckpointAction::Read,
        piece_bytes: spec.range_size.map_or(RANGE_BYTES, |range| range.0),
        lanes: spec.ranges_in_flight.unwrap_or(RANGES_IN_FLIGHT),
        ..base.clone()
    };
    let commit = CheckpointPlan {
        action: CheckpointAction::Commit,
        piece_bytes: 0,
        shift: 0,
        ..base.clone()
    };
    let mut phases = Vec::new();
    let mut add = |plan: &CheckpointPlan, number: u32, kind: PhaseKind| {
        let plan = CheckpointPlan {
            number,
            ..plan.clone()
        };
        let name = format!("{}-{number}", plan.action);
        if pause_ns > 0 && kind == PhaseKind::Run && plan.action != CheckpointAction::Commit {
            let limits = Limits {
                duration_ns: pause_ns,
                ..Limits::default()
            };
            phases.push(PhasePlan::new(
                &format!("before-{name}"),
                PhaseKind::Pause,
                Vec::new(),
                limits,
            ));
        }
        let mix = checkpoint_mix(spec, &plan);
        let work = WorkPlan {
            name: name.clone(),
            model: plan.into(),
            mix,
        };
        let limits = Limits {
            drain_ns: timeout_ns,
            ..Limits::default()
        };
        phases.push(PhasePlan {
            accounting: Accounting {
                max_failed: Some(0.0),
                ..Accounting::default()
            },
            ..PhasePlan::new(&name, kind, vec![work], limits)
        });
    };
    let kind = match wanted {
        CheckpointPhase::Read => PhaseKind::Prepare,
        _ => PhaseKind::Run,
    };
    let written = match spec.existing {
        Some(true) => 0,
        _ => count,
    };
    for number in 1..=written {
        add(base, number, kind);
        if !matches!(spec.latest, None | Some(LatestSpec::None)) {
            add(&commit, number, kind);
        }
    }
    if wanted != CheckpointPhase::Write {
        (1..=count).for_each(|number| add(&read, number, PhaseKind::Run));
    }
    phases
}

/// The operations of a phase: for writes, the second one writes objects larger than a part.
fn checkpoint_mix(spec: &CheckpointSpec, plan: &CheckpointPlan) -> Vec<MixEntry> {
    let entry = |class| MixEntry::new(class, 0, KeyLaw::Sequential);
    match plan.action {
        CheckpointAction::Commit => vec![entry(match spec.latest {
            Some(LatestSpec::Conditional) => OpClass::PutIfMatch,
            _ => OpClass::Put,
        })],
        CheckpointAction::Write => {
            let mut mix = vec![entry(OpClass::Put)];
            if plan.piece_bytes > 0 && plan.largest() > plan.piece_bytes {
                mix.push(MixEntry {
                    count: plan.piece_bytes,
                    pages: spec.parts_in_flight.unwrap_or(PARTS_IN_FLIGHT),
                    ..entry(OpClass::MultipartPut)
                });
            }
            mix
        }
        CheckpointAction::Read if plan.piece_bytes == 0 => vec![entry(OpClass::Get)],
        CheckpointAction::Read => vec![MixEntry {
            range: Some(RangePlan {
                len: SizeLaw::constant(plan.piece_bytes),
                align: plan.piece_bytes,
            }),
            ..entry(OpClass::RangeGet)
        }],
    }
}

impl DescribedModel for CheckpointPlan {
    fn in_outlook(&self) -> String {
        let (model, ranks, number) = (&self.model.name, self.active(), self.number);
        let scale = match self.scale {
            Fraction { parts, of } if parts == of => String::new(),
            Fraction { parts, of } => format!(", scale {parts}/{of}"),
        };
        let part = match ranks == self.model.ranks() as u32 {
            true => format!("{ranks} ranks"),
            false => format!("{ranks} of {} ranks", self.model.ranks()),
        };
        match self.action {
            CheckpointAction::Commit => {
                format!("rank 0 writes `latest` after checkpoint {number} of {model}")
            }
            CheckpointAction::Write => {
                format!("{part} write checkpoint {number} of {model}{scale}")
            }
            CheckpointAction::Read => format!(
                "{part} read checkpoint {number} of {model}{scale}, {} requests each at a time{}",
                self.lanes,
                match self.shift {
                    0 => String::new(),
                    shift => format!(", shifted by {shift} ranks"),
                }
            ),
        }
    }

    fn rates(&self, plan: &Plan, phase: usize, work: usize) -> Result<Rates, LawError> {
        let (operations, bytes) = self.load();
        let per_operation = bytes as f64 / operations.max(1) as f64;
        let reads = self.action == CheckpointAction::Read;
        let mix = &plan.phases[phase].works[work].mix;
        let large = (0..self.active())
            .flat_map(|rank| self.objects(rank))
            .filter(|object| object.bytes > self.piece_bytes)
            .count();
        let shares = match mix.as_slice() {
            [one] => vec![(one.class, 1.0)],
            [small, parts, ..] => {
                let share = large as f64 / operations.max(1) as f64;
                let all = [(parts.class, share), (small.class, 1.0 - share)];
                all.into_iter().filter(|(_, share)| *share > 0.0).collect()
            }
            [] => Vec::new(),
        };
        Ok(Rates {
            read: if reads { per_operation } else { 0.0 },
            written: if reads { 0.0 } else { per_operation },
            mix: shares,
        })
    }

    fn ops(&self, _: &WorkPlan, _: &Limits, _: &Rates, _: bool) -> Option<f64> {
        Some(self.load().0 as f64)
    }

    fn written(&self, _: &WorkPlan) -> u64 {
        match self.action {
            CheckpointAction::Write => self.total().0,
            CheckpointAction::Commit => 1,
            CheckpointAction::Read => 0,
        }
    }
}
