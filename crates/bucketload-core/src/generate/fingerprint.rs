//! A fingerprint of what is offered: arrivals and operations, as they are generated.
//!
//! The scenario hash identifies the parameters of a plan; this identifies what comes of them. Two
//! runs with the same fingerprint offered the same requests at the same instants, also when they
//! were made by different versions of the program, and however the plan was put into words.

use sha2::{Digest, Sha256};

use super::LawError;
use super::arrivals::Schedule;
use super::ops::OpGen;
use crate::op::Op;
use crate::plan::{ModelPlan, PhaseKind, Plan};

/// Arrivals and operations of each work that enter the hash.
pub const HASHED_OPS: u64 = 10_000;

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
