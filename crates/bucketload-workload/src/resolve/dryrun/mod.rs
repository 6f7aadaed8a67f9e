//! What a plan will do, computed without doing it.

mod named;

pub use named::describe as describe_named;
mod text;

use serde::Serialize;

use bucketload_core::generate::LawError;
use bucketload_core::generate::arrivals::Schedule;
use bucketload_core::generate::fingerprint::schedule_hash;
use bucketload_core::generate::jobs::JobGen;
use bucketload_core::generate::ops::OpGen;
use bucketload_core::op::OpClass;
use bucketload_core::plan::{
    JobStart, JobsPlan, Limits, ModelPlan, PhaseKind, Plan, ReplayTiming, StagePace, WorkPlan,
};

/// Expected extent of a plan, by phase and in total.
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
    /// What the measuring phases do.
    pub measured: Outlook,
}

/// Expected extent of a phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PhaseOutlook {
    /// Name of the phase.
    pub name: String,
    /// Whether it prepares or measures.
    pub kind: PhaseKind,
    /// Time limit, nanoseconds; 0 for none.
    pub duration_ns: u64,
    /// The works of the phase.
    pub works: Vec<WorkOutlook>,
    /// The phase as a whole.
    pub total: Outlook,
}

/// Expected extent of a work.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkOutlook {
    /// Name of the work.
    pub name: String,
    /// How operations are due, in words.
    pub model: String,
    /// Operations per second, where the schedule says.
    pub ops_per_s: Option<f64>,
    /// Share of each operation class, largest first.
    pub mix: Vec<(OpClass, f64)>,
    /// What the work does.
    pub total: Outlook,
}

/// Expected counts. `None` where they depend on how fast the store answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Outlook {
    /// Operations.
    pub ops: Option<f64>,
    /// Object bytes read.
    pub bytes_read: Option<f64>,
    /// Object bytes written.
    pub bytes_written: Option<f64>,
    /// Seconds of offering operations.
    pub seconds: Option<f64>,
}

/// Arrivals and how many operations each brings.
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

/// Bytes per operation of a work, and how often which class occurs.
#[derive(Default)]
struct Rates {
    read: f64,
    written: f64,
    mix: Vec<(OpClass, f64)>,
}

impl DryRun {
    /// Computes what `plan` will do.
    ///
    /// # Errors
    /// When the plan cannot be generated from, which a resolved plan can.
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
            measured: Outlook {
                ops: Some(0.0),
                bytes_read: Some(0.0),
                bytes_written: Some(0.0),
                seconds: Some(0.0),
            },
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
                let named = phase.works.iter().filter_map(named::written);
                out.prepared_objects += phase.limits.ops + named.sum::<u64>();
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
    /// Both, one after the other.
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
        let rates = match &work_plan.model {
            ModelPlan::Jobs(jobs) => {
                job_rates(&JobGen::new(plan, phase_id, work_id)?, jobs, work_plan)
            }
            ModelPlan::Named(named) => named::rates(named, work_plan),
            // How much they do is decided while they do it.
            ModelPlan::Ranks(_) => Rates::default(),
            _ => rates(&OpGen::new(plan, index, work)?, work_plan),
        };
        let arrival = match &work_plan.model {
            ModelPlan::Open { arrival, .. } => Some((arrival, 1.0)),
            ModelPlan::Jobs(jobs) => match &jobs.start {
                JobStart::Open { arrival } => Some((arrival, jobs.mean_job_ops())),
                JobStart::Closed { .. } => None,
            },
            ModelPlan::Closed { .. }
            | ModelPlan::Replay(_)
            | ModelPlan::Rounds(_)
            | ModelPlan::Ranks(_)
            | ModelPlan::Named(_) => None,
        };
        let schedule = match arrival {
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
                None if matches!(work.model, ModelPlan::Named(_)) => named::ops(work),
                // Only a limit that concerns this work alone tells how much a closed loop does.
                None if parts.len() == 1 => ops_by_limits(&limits, rates),
                None => None,
            };
            let ns = seconds.map_or(0, |s| (s * 1e9) as u64);
            WorkOutlook {
                name: work.name.clone(),
                model: model(work),
                ops_per_s: schedule.as_ref().map(|schedule| schedule.mean_rate(ns)),
                mix: rates.mix.clone(),
                total: Outlook::of(ops, rates, seconds),
            }
        })
        .collect();
    let none = Outlook {
        ops: Some(0.0),
        bytes_read: Some(0.0),
        bytes_written: Some(0.0),
        seconds: Some(0.0),
    };
    let mut total = works.iter().fold(none, |sum, work| sum.then(&work.total));
    total.seconds = seconds;
    Ok(PhaseOutlook {
        name: phase.name.clone(),
        kind: phase.kind,
        duration_ns: limits.duration_ns,
        works,
        total,
    })
}

/// How long the phase offers operations: its time limit, or less where the limits of operations or
/// bytes are expected to be reached earlier. `None` where that depends on the store.
fn duration(limits: &Limits, parts: &[(&WorkPlan, Rates, Option<Offer>)]) -> Option<f64> {
    let time = (limits.duration_ns > 0).then_some(limits.duration_ns as f64 / 1e9);
    if limits.ops == 0 && limits.bytes == 0 {
        return time;
    }
    // All works must be open for the end to be known in advance.
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
    // A run of more than ten years is no run.
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

/// Operations that a closed loop performs, where a limit says so.
fn ops_by_limits(limits: &Limits, rates: &Rates) -> Option<f64> {
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

fn rates(ops: &OpGen, work: &WorkPlan) -> Rates {
    let mut rates = Rates {
        read: 0.0,
        written: 0.0,
        mix: Vec::new(),
    };
    for (index, entry) in work.mix.iter().enumerate() {
        let share = ops.probability(index as u16);
        let bytes = share * ops.mean_bytes(index as u16);
        if entry.class.reads_body() {
            rates.read += bytes;
        } else if entry.class.writes_body() {
            rates.written += bytes;
        }
        match rates
            .mix
            .iter_mut()
            .find(|(class, _)| *class == entry.class)
        {
            Some((_, sum)) => *sum += share,
            None => rates.mix.push((entry.class, share)),
        }
    }
    rates.mix.sort_by(|a, b| b.1.total_cmp(&a.1));
    rates
}

/// Rates of a work made of jobs.
fn job_rates(ops: &JobGen, jobs: &JobsPlan, work: &WorkPlan) -> Rates {
    let (written, read) = ops.mean_bytes(jobs);
    let per_job: f64 = work.mix.iter().map(|entry| entry.weight).sum();
    let mut mix: Vec<(OpClass, f64)> = Vec::new();
    for entry in &work.mix {
        let share = entry.weight / per_job;
        match mix.iter_mut().find(|(class, _)| *class == entry.class) {
            Some((_, sum)) => *sum += share,
            None => mix.push((entry.class, share)),
        }
    }
    mix.sort_by(|a, b| b.1.total_cmp(&a.1));
    Rates {
        read: read / per_job,
        written: written / per_job,
        mix,
    }
}

/// Jobs in words, for outlooks and reports.
#[must_use]
pub fn describe_jobs(jobs: &JobsPlan) -> String {
    let start = match &jobs.start {
        JobStart::Open { arrival } => {
            let law = crate::spec::law::ArrivalSpec {
                law: arrival.clone(),
            };
            format!("partly open, jobs arrive by {law}")
        }
        JobStart::Closed { jobs } => format!("closed loop, {jobs} jobs at a time"),
    };
    let pace = match jobs.pace {
        StagePace::Poisson { rate } => format!("Poisson {rate}/s within a stage"),
        StagePace::Burst => "a stage's operations all at once".to_owned(),
        StagePace::Sequential => "a stage's operations one after the other".to_owned(),
    };
    format!("{start}, {} stages each, {pace}", jobs.stages.len())
}

fn model(work: &WorkPlan) -> String {
    match &work.model {
        ModelPlan::Rounds(rounds) => format!(
            "{} rounds of {} workers writing {} objects each",
            rounds.iterations, rounds.workers, rounds.objects
        ),
        ModelPlan::Closed { workers, think } => {
            let think = crate::spec::law::ThinkSpec(*think).to_string();
            let plural = if *workers == 1 { "" } else { "s" };
            match think.as_str() {
                "none" => format!("closed loop, {workers} worker{plural}"),
                think => format!("closed loop, {workers} worker{plural}, think time {think}"),
            }
        }
        ModelPlan::Open {
            arrival,
            max_in_flight,
        } => {
            let law = crate::spec::law::ArrivalSpec {
                law: arrival.clone(),
            };
            format!("open loop, {law}, at most {max_in_flight} in flight")
        }
        ModelPlan::Jobs(jobs) => describe_jobs(jobs),
        ModelPlan::Named(plan) => named::describe(plan),
        ModelPlan::Ranks(plan) => format!("{} ranks", plan.ranks),
        ModelPlan::Replay(replay) => match replay.timing {
            ReplayTiming::Asap => "replay of a trace, as fast as possible".to_owned(),
            _ => "replay of a trace".to_owned(),
        },
    }
}
