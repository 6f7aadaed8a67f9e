//! Turns a COSBench workload into a plan: a phase per stage, a pause per delay.

use bucketload_core::op::OpClass;
use bucketload_core::payload::PayloadKind;
use bucketload_core::plan::named::NamedPlan;
use bucketload_core::plan::{
    Accounting, KeyNaming, KeysetPlan, Limits, PhaseKind, PhasePlan, Plan, RetryPlan, SizeAssign,
    SizeKind, SizeLaw, WorkPlan,
};
use bucketload_cosbench::{Work, WorkKind, Workload};

use super::entry::{self, WrittenSizes};
use super::overrides::Settings;
use super::{PROFILE, STRICT, refuse};

const SECOND_NS: u64 = 1_000_000_000;
/// How long a stage waits for operations in flight at its end: as long as COSBench's drivers do
/// (docs/spec/cosbench.md section 1.9). After that the operations are given up, where COSBench would wait forever.
const DRAIN_NS: u64 = 60 * SECOND_NS;
/// Default timeout of COSBench's adapters.
const TIMEOUT_NS: u64 = 30 * SECOND_NS;
/// Default seed; COSBench workloads cannot name one.
const SEED: u64 = 42;

/// The part of the workload that a phase of the plan stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StagePhase {
    /// Index of the stage.
    pub(crate) stage: usize,
    /// Whether the phase is the stage's delay instead of its works.
    pub(crate) pause: bool,
}

/// The stages of a workload, one entry per phase of the plan.
pub(crate) fn stage_phases(workload: &Workload) -> Vec<StagePhase> {
    let mut phases = Vec::new();
    for (index, stage) in workload.stages.iter().enumerate() {
        if !stage.is_delay() {
            phases.push(StagePhase {
                stage: index,
                pause: false,
            });
        }
        if stage.closure_delay_s > 0 {
            phases.push(StagePhase {
                stage: index,
                pause: true,
            });
        }
    }
    phases
}

/// The plan of a workload.
///
/// # Errors
/// Everything that is not supported, with its place in the file.
pub(super) fn plan(
    workload: &Workload,
    settings: &Settings,
    strict: bool,
    notes: &mut Vec<String>,
) -> Result<Plan, String> {
    let known = WrittenSizes::of(workload, notes);
    let mut phases = Vec::new();
    for step in stage_phases(workload) {
        let stage = &workload.stages[step.stage];
        let pause = u64::from(stage.closure_delay_s) * SECOND_NS;
        let mut phase = PhasePlan {
            name: stage.name.clone(),
            kind: PhaseKind::Pause,
            works: Vec::new(),
            limits: Limits {
                duration_ns: pause,
                ..Limits::default()
            },
            steady_state: false,
            stop: None,
            accounting: Accounting::default(),
        };
        if step.pause {
            if !stage.is_delay() {
                phase.name = format!("{} (closuredelay)", stage.name);
            }
            phases.push(phase);
            continue;
        }
        let works: Result<Vec<WorkPlan>, String> = stage
            .works
            .iter()
            .map(|w| work(w, &known, strict))
            .collect();
        phase.works = works?;
        let normal = stage.works.iter().any(|work| work.kind == WorkKind::Normal);
        phase.kind = if normal {
            PhaseKind::Run
        } else {
            PhaseKind::Prepare
        };
        (phase.limits, phase.accounting) = limits(&phase.works);
        phases.push(phase);
    }
    Ok(Plan {
        workload: workload.name.clone(),
        profile: PROFILE.to_owned(),
        compat: if strict {
            STRICT.to_owned()
        } else {
            String::new()
        },
        seed: settings.seed.unwrap_or(SEED),
        scale: 1.0,
        size_scale: 1.0,
        payload: payload(workload, settings)?,
        verify: known.verifies(),
        timeout_ns: TIMEOUT_NS,
        retry: RetryPlan {
            max_attempts: 1,
            backoff_ns: 0,
            max_backoff_ns: 0,
        },
        not_found_is_failure: true,
        keysets: vec![keyset()],
        phases,
    })
}

/// The key set of all named objects. It only gives them an index; the works define their names.
fn keyset() -> KeysetPlan {
    KeysetPlan {
        name: "named".to_owned(),
        prefix: String::new(),
        shards: 1,
        count: 1,
        size: SizeLaw {
            law: SizeKind::Const { bytes: 0 },
            min: 0,
            max: 0,
        },
        assign: SizeAssign::Random,
        overwritten: true,
        naming: KeyNaming::Index,
        existing: false,
        buckets: None,
    }
}

/// The content of all written objects.
fn payload(workload: &Workload, settings: &Settings) -> Result<PayloadKind, String> {
    if let Some(payload) = settings.payload {
        return Ok(payload);
    }
    let operations = workload
        .stages
        .iter()
        .flat_map(|s| &s.works)
        .flat_map(|w| &w.operations);
    let mut writes = operations.filter(|o| o.kind.writes());
    let Some(first) = writes.next() else {
        return Ok(PayloadKind::Random);
    };
    let zeros = first.target.zeros;
    match writes.find(|o| o.target.zeros != zeros) {
        Some(other) => Err(refuse(
            &other.location,
            "some operations write zeros and others random bytes",
            "a run writes a single kind: make `content` the same everywhere, or give --payload",
        )),
        None if zeros => Ok(PayloadKind::Zeros),
        None => Ok(PayloadKind::Random),
    }
}

fn work(work: &Work, known: &WrittenSizes, strict: bool) -> Result<WorkPlan, String> {
    let parts = entry::entries(work, known)?;
    let walk = work.kind != WorkKind::Normal;
    let seconds = |s: u32| u64::from(s) * SECOND_NS;
    let (mix, entries): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    let normal = |n: u64| if walk { 0 } else { n };
    Ok(WorkPlan {
        name: work.name.clone(),
        model: NamedPlan {
            workers: work.workers,
            driver: work.driver.clone().unwrap_or_default(),
            walk,
            buckets_too: walk && entries.len() > 1,
            entries,
            rampup_ns: seconds(work.rampup_s),
            runtime_ns: seconds(work.runtime_s),
            rampdown_ns: seconds(work.rampdown_s),
            ops: normal(u64::from(work.total_ops)),
            bytes: normal(work.total_bytes),
            max_ops_per_s: u64::from(work.max_iops),
            max_bytes_per_s: work.max_bytes_per_s,
            max_failed_ppm: work.afr,
            legacy_sequences: strict,
        }
        .into(),
        mix,
    })
}

/// The limits of a phase, and the window in which all its works are measured.
fn limits(works: &[WorkPlan]) -> (Limits, Accounting) {
    let plans = || works.iter().filter_map(|work| work.model.named());
    let mut limits = Limits {
        drain_ns: DRAIN_NS,
        ..Limits::default()
    };
    let mut accounting = Accounting::default();
    let stops: Option<Vec<u64>> = plans().map(NamedPlan::stop_ns).collect();
    if let Some(stops) = stops {
        limits.duration_ns = stops.into_iter().max().unwrap_or(0);
        let windows = || plans().map(NamedPlan::window_ns);
        let begin = windows().map(|w| w.0).max().unwrap_or(0);
        let end = windows().map(|w| w.1).min().unwrap_or(0);
        if end > begin && (begin > 0 || end < limits.duration_ns) {
            accounting.rampup_ns = begin;
            accounting.measured_ns = end - begin;
        }
    }
    (limits, accounting)
}

/// The drivers to which works are pinned, each once.
pub(super) fn drivers(plan: &Plan) -> impl Iterator<Item = &str> {
    let works = plan.phases.iter().flat_map(|phase| &phase.works);
    let names = works.filter_map(|work| Some(work.model.named()?.driver.as_str()));
    let all: std::collections::BTreeSet<&str> = names.filter(|name| !name.is_empty()).collect();
    all.into_iter()
}

/// A note for the user if the plan may replace or delete anything.
pub(super) fn delete_note(plan: &Plan) -> Option<String> {
    let mut entries = plan
        .phases
        .iter()
        .flat_map(|p| &p.works)
        .flat_map(|w| &w.mix);
    let changes = |class: OpClass| !class.only_reads() && class != OpClass::MakeBucket;
    entries.any(|entry| changes(entry.class)).then(|| {
        "the run will be refused if a container or object that it would replace or delete exists before it \
         starts (--delete-named allows that)"
            .to_owned()
    })
}
