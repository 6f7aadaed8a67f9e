//! Computes what a plan will do without doing it.

pub(super) mod text;

use serde::Serialize;

use bucketload_core::generate::LawError;
use bucketload_core::generate::arrivals::Schedule;
use bucketload_core::generate::fingerprint::schedule_hash;
use bucketload_core::generate::ops::OpGen;
use bucketload_core::op::OpClass;
use bucketload_core::plan::{Limits, PhaseKind, Plan, WorkPlan};

use super::models;

/// Expected load of a plan, by phase and in total.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DryRun {
    /// Name of the workload.
    pub workload: String,
    /// Profile, empty for none.
    pub profile: String,
    /// Seed.
    pub seed: u64,
    /// Scale of object counts.
    pub scale: f64,
    /// Identity of what is measured ([`Plan::scenario_hash`]).
    pub scenario_hash: String,
    /// Name of another benchmark whose published procedure is reproduced; empty for none.
    pub compat: String,
    /// Fingerprint of the first operations ([`schedule_hash`]).
    pub schedule_hash: String,
    /// Phases that perform operations, in order.
    pub phases: Vec<PhaseOutlook>,
    /// Objects written before the measurement.
    pub prepared_objects: u64,
    /// Bytes written before the measurement.
    pub prepared_bytes: f64,
    /// Load of the measuring phases.
    pub measured: Outlook,
}

/// Expected load of a phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PhaseOutlook {
    /// Name of the phase.
    pub name: String,
    /// Whether the phase prepares or measures.
    pub kind: PhaseKind,
    /// Time limit, nanoseconds; 0 for none.
    pub duration_ns: u64,
    /// The works of the phase.
    pub works: Vec<WorkOutlook>,
    /// The phase as a whole.
    pub total: Outlook,
}

/// Expected load of a work.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkOutlook {
    /// Name of the work.
    pub name: String,
    /// The workload model, in words.
    pub model: String,
    /// Operations per second, if the schedule determines them.
    pub ops_per_s: Option<f64>,
    /// Share of each operation class, largest first.
    pub mix: Vec<(OpClass, f64)>,
    /// Load of the work.
    pub total: Outlook,
}

/// Expected counts; `None` if they depend on how fast the store answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Outlook {
    /// Operations.
    pub ops: Option<f64>,
    /// Object bytes read.
    pub bytes_read: Option<f64>,
    /// Object bytes written.
    pub bytes_written: Option<f64>,
    /// Seconds during which operations are offered.
    pub seconds: Option<f64>,
}

/// Arrivals and the number of operations per arrival.
struct Offer {
    schedule: Schedule,
    per_arrival: f64,
}

impl Offer {
    fn expected_between(&self, from_ns: u64, to_ns: u64) -> f64 {
        self.per_arrival * self.schedule.expected_between(from_ns, to_ns)
    }

    fn mean_rate(&self, duration_ns: u64) -> f64 {
        self.per_arrival * self.schedule.mean_rate(duration_ns)
    }
}

/// Bytes per operation of a work, and the share of each class.
#[derive(Default)]
pub(super) struct Rates {
    pub(super) read: f64,
    pub(super) written: f64,
    pub(super) mix: Vec<(OpClass, f64)>,
}

impl DryRun {
    /// Computes what `plan` will do.
    ///
    /// # Errors
    /// If the plan's operations cannot be generated; for a resolved plan they always can.
    pub fn new(plan: &Plan) -> Result<Self, LawError> {
        let mut out = Self {
            workload: plan.workload.clone(),
            profile: plan.profile.clone(),
            seed: plan.seed,
            scale: plan.scale,
            scenario_hash: plan.scenario_hash(),
            compat: plan.compat.clone(),
            schedule_hash: schedule_hash(plan)?,
            phases: Vec::new(),
            prepared_objects: 0,
            prepared_bytes: 0.0,
            measured: Outlook::NONE,
        };
        for (index, phase) in plan.phases.iter().enumerate() {
            match phase.kind {
                PhaseKind::Init | PhaseKind::Audit | PhaseKind::Cleanup | PhaseKind::Pause => {
                    continue;
                }
                PhaseKind::Prepare | PhaseKind::Run => {}
            }
            let outlook = phase_outlook(plan, index)?;
            if phase.kind == PhaseKind::Prepare {
                let written = |work: &WorkPlan| models::of(&work.model).written(work);
                out.prepared_objects +=
                    phase.limits.ops + phase.works.iter().map(written).sum::<u64>();
                out.prepared_bytes += outlook.total.bytes_written.unwrap_or(0.0);
            } else {
                out.measured = out.measured.then(&outlook.total);
            }
            out.phases.push(outlook);
        }
        Ok(out)
    }
}

impl Outlook {
    const NONE: Self = Self {
        ops: Some(0.0),
        bytes_read: Some(0.0),
        bytes_written: Some(0.0),
        seconds: Some(0.0),
    };

    /// The sum of two loads that follow one another.
    fn then(&self, other: &Self) -> Self {
        let add = |a: Option<f64>, b: Option<f64>| Some(a? + b?);
        Self {
            ops: add(self.ops, other.ops),
            bytes_read: add(self.bytes_read, other.bytes_read),
            bytes_written: add(self.bytes_written, other.bytes_written),
            seconds: add(self.seconds, other.seconds),
        }
    }

    fn of(ops: Option<f64>, rates: &Rates, seconds: Option<f64>) -> Self {
        Self {
            ops,
            bytes_read: ops.map(|ops| ops * rates.read),
            bytes_written: ops.map(|ops| ops * rates.written),
            seconds,
        }
    }
}

fn phase_outlook(plan: &Plan, index: usize) -> Result<PhaseOutlook, LawError> {
    let phase = &plan.phases[index];
    let limits = phase.limits;
    let mut parts = Vec::new();
    for (work, work_plan) in phase.works.iter().enumerate() {
        let (phase_id, work_id) = (index as u16, work as u16);
        let rates = models::of(&work_plan.model).rates(plan, index, work)?;
        let schedule = match work_plan.model.arrivals() {
            Some((arrival, per_arrival)) => Some(Offer {
                schedule: Schedule::new(plan.seed, phase_id, work_id, arrival)?,
                per_arrival,
            }),
            None => None,
        };
        parts.push((work_plan, rates, schedule));
    }
    let seconds = duration(&limits, &parts);
    let works: Vec<WorkOutlook> = parts
        .iter()
        .map(|(work, rates, schedule)| {
            let ops = match schedule {
                Some(schedule) => seconds.map(|s| schedule.expected_between(0, (s * 1e9) as u64)),
                None => models::of(&work.model).ops(work, &limits, rates, parts.len() == 1),
            };
            let ns = seconds.map_or(0, |s| (s * 1e9) as u64);
            WorkOutlook {
                name: work.name.clone(),
                model: models::of(&work.model).in_outlook(),
                ops_per_s: schedule.as_ref().map(|schedule| schedule.mean_rate(ns)),
                mix: rates.mix.clone(),
                total: Outlook::of(ops, rates, seconds),
            }
        })
        .collect();
    let mut total = works
        .iter()
        .fold(Outlook::NONE, |sum, work| sum.then(&work.total));
    total.seconds = seconds;
    Ok(PhaseOutlook {
        name: phase.name.clone(),
        kind: phase.kind,
        duration_ns: limits.duration_ns,
        works,
        total,
    })
}

/// How long the phase offers operations: its time limit, or less if the limits on operations or bytes are
/// expected to be reached earlier. `None` if that depends on the store.
fn duration(limits: &Limits, parts: &[(&WorkPlan, Rates, Option<Offer>)]) -> Option<f64> {
    let time = (limits.duration_ns > 0).then_some(limits.duration_ns as f64 / 1e9);
    if limits.ops == 0 && limits.bytes == 0 {
        return time;
    }
    // The end is known in advance only if all works are open.
    let mut schedules = Vec::new();
    for (_, rates, schedule) in parts {
        schedules.push((schedule.as_ref()?, rates.read + rates.written));
    }
    let reached = |seconds: f64| {
        let ns = (seconds * 1e9) as u64;
        let offered = |bytes: bool| -> f64 {
            let each = schedules.iter().map(|(schedule, per_op)| {
                schedule.expected_between(0, ns) * if bytes { *per_op } else { 1.0 }
            });
            each.sum()
        };
        (limits.ops > 0 && offered(false) >= limits.ops as f64)
            || (limits.bytes > 0 && offered(true) >= limits.bytes as f64)
    };
    // No run lasts more than ten years.
    let last = time.unwrap_or(3.2e8);
    if !reached(last) {
        return time;
    }
    let (mut low, mut high) = (0.0, last);
    for _ in 0..64 {
        let middle = 0.5 * (low + high);
        *(if reached(middle) { &mut high } else { &mut low }) = middle;
    }
    Some(high)
}

/// The number of operations of a closed loop, if a limit determines it.
pub(super) fn ops_by_limits(limits: &Limits, rates: &Rates) -> Option<f64> {
    let by_ops = (limits.ops > 0).then_some(limits.ops as f64);
    let per_op = rates.read + rates.written;
    let by_bytes = (limits.bytes > 0 && per_op > 0.0).then(|| limits.bytes as f64 / per_op);
    if limits.duration_ns > 0 {
        // Time may run out first.
        return None;
    }
    match (by_ops, by_bytes) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Rates of a work that draws its operations from its mix.
pub(super) fn mix_rates(plan: &Plan, phase: usize, work: usize) -> Result<Rates, LawError> {
    let ops = OpGen::new(plan, phase, work)?;
    let (mut read, mut written) = (0.0, 0.0);
    let mut shares = Vec::new();
    for (index, entry) in plan.phases[phase].works[work].mix.iter().enumerate() {
        let share = ops.probability(index as u16);
        let bytes = share * ops.mean_bytes(index as u16);
        if entry.class.reads_body() {
            read += bytes;
        } else if entry.class.writes_body() {
            written += bytes;
        }
        shares.push((entry.class, share));
    }
    let mix = by_class(shares.into_iter());
    Ok(Rates { read, written, mix })
}

/// Sums shares by class, largest first.
pub(super) fn by_class(shares: impl Iterator<Item = (OpClass, f64)>) -> Vec<(OpClass, f64)> {
    let mut mix: Vec<(OpClass, f64)> = Vec::new();
    for (class, share) in shares {
        match mix.iter_mut().find(|(other, _)| *other == class) {
            Some((_, sum)) => *sum += share,
            None => mix.push((class, share)),
        }
    }
    mix.sort_by(|a, b| b.1.total_cmp(&a.1));
    mix
}
