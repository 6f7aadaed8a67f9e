//! A fingerprint of what is offered: arrivals and operations, as they are generated.
//!
//! The scenario hash identifies the parameters of a plan; this identifies what comes of them. Two
//! runs with the same fingerprint offered the same requests at the same instants, also when they
//! were made by different versions of the program, and however the plan was put into words.

use sha2::{Digest, Sha256};

use super::LawError;
use super::arrivals::Schedule;
use super::jobs::JobGen;
use super::named::NamedGen;
use super::ops::OpGen;
use super::ranks::{RankGen, Spot};
use crate::op::Op;
use crate::plan::{JobStart, ModelPlan, PhaseKind, Plan};

/// Arrivals and operations of each work that enter the hash.
pub const HASHED_OPS: u64 = 10_000;
/// Jobs whose arrivals and operations enter the hash.
const HASHED_JOBS: u64 = 100;

/// SHA-256 over the first [`HASHED_OPS`] arrivals (open loops: sequence number and due instant) and
/// operations (class, key set, object, version, size, range, count) of every work of every
/// measuring phase, as 16 hexadecimal digits.
///
/// # Errors
/// When the plan cannot be generated from.
pub fn schedule_hash(plan: &Plan) -> Result<String, LawError> {
    let mut hash = Sha256::new();
    let mut put = |value: u64| hash.update(value.to_le_bytes());
    for (phase, phase_plan) in plan.phases.iter().enumerate() {
        if phase_plan.kind != PhaseKind::Run {
            continue;
        }
        for (work, work_plan) in phase_plan.works.iter().enumerate() {
            put(phase as u64);
            put(work as u64);
            match &work_plan.model {
                ModelPlan::Jobs(jobs) => {
                    let ops = JobGen::new(plan, phase as u16, work as u16)?;
                    if let JobStart::Open { arrival } = &jobs.start {
                        let schedule =
                            Schedule::new(plan.seed, phase as u16, work as u16, arrival)?;
                        for arrival in schedule.arrivals().take(HASHED_JOBS as usize) {
                            put(arrival.due_ns);
                        }
                    }
                    for job in 0..HASHED_JOBS {
                        for stage in 0..ops.stages() {
                            for i in 0..ops.ops_in(job, stage) {
                                put(ops.gap_ns(job, stage, i));
                                words(&ops.op(job, stage, i)).into_iter().for_each(&mut put);
                            }
                        }
                    }
                    continue;
                }
                ModelPlan::Replay(replay) => {
                    // The trace says what is offered; its identity stands for it.
                    replay.trace.bytes().for_each(|byte| put(u64::from(byte)));
                    put(replay.timing.speed().unwrap_or(0.0).to_bits());
                    continue;
                }
                ModelPlan::Rounds(rounds) => {
                    // What a round does follows from these.
                    put(u64::from(rounds.workers));
                    put(u64::from(rounds.iterations));
                    put(u64::from(rounds.objects));
                    put(rounds.delete.to_bits());
                    continue;
                }
                ModelPlan::Named(named) => {
                    let ops = NamedGen::new(plan, phase, work)?;
                    put(u64::from(named.workers));
                    for worker in 0..named.workers.min(HASHED_JOBS as u32) {
                        let mut at = ops.cursor(worker);
                        for op in
                            std::iter::from_fn(|| ops.next(&mut at)).take(HASHED_JOBS as usize)
                        {
                            words(&op).into_iter().for_each(&mut put);
                        }
                    }
                    continue;
                }
                ModelPlan::Ranks(ranks) => {
                    let ops = RankGen::new(plan, phase, work, "")?;
                    put(u64::from(ranks.ranks));
                    for rank in 0..ranks.ranks.min(HASHED_JOBS as u32) {
                        for step in 0..ranks.most_steps(rank).min(HASHED_JOBS) {
                            let first = ranks.opening;
                            for entry in first..ops.entries() - ranks.closing {
                                let spot = Spot {
                                    base: 0,
                                    step,
                                    set: 0,
                                    entry,
                                };
                                let op = ops.op(rank, spot, step, 1);
                                words(&op).into_iter().for_each(&mut put);
                            }
                        }
                    }
                    continue;
                }
                ModelPlan::Open { .. } | ModelPlan::Closed { .. } => {}
            }
            let ops = OpGen::new(plan, phase, work)?;
            if let ModelPlan::Open { arrival, .. } = &work_plan.model {
                let schedule = Schedule::new(plan.seed, phase as u16, work as u16, arrival)?;
                for arrival in schedule.arrivals().take(HASHED_OPS as usize) {
                    put(arrival.seq);
                    put(arrival.due_ns);
                }
            }
            for seq in 0..HASHED_OPS {
                words(&ops.op(seq)).into_iter().for_each(&mut put);
            }
        }
    }
    let digest = hash.finalize();
    Ok(digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

/// What makes an operation what it is.
fn words(op: &Op) -> [u64; 9] {
    let range = op.range.map_or((0, 0), |range| (range.offset, range.len));
    [
        op.class as u64,
        u64::from(op.keyset),
        op.key,
        op.source_key,
        u64::from(op.version),
        op.size,
        range.0,
        range.1,
        op.count,
    ]
}
