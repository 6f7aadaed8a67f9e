//! A fingerprint of the offered load: arrivals and operations as generated.
//!
//! The scenario hash identifies the parameters of a plan; the fingerprint identifies what they generate. Two
//! runs with the same fingerprint offered the same requests at the same instants, even if different versions
//! of the program made them or the workloads were worded differently.

use sha2::{Digest, Sha256};

use super::LawError;
use super::ops::OpGen;
use crate::op::Op;
use crate::plan::{PhaseKind, Plan};

/// Number of arrivals and operations per work that enter the hash.
pub const HASHED_OPS: u64 = 10_000;
/// Number of jobs whose arrivals and operations enter the hash.
pub(crate) const HASHED_JOBS: u64 = 100;

/// SHA-256 over the first [`HASHED_OPS`] arrivals (open loops: sequence number and due instant) and
/// operations (class, key set, object, version, size, range, count) of every work of every measuring phase,
/// truncated to 16 hexadecimal digits.
///
/// # Errors
/// If the plan's operations cannot be generated.
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
            work_plan.model.fingerprint(plan, (phase, work), &mut put)?;
        }
    }
    Ok(short_hex(hash))
}

/// The first 64 bits of a hash as 16 hexadecimal digits.
pub(crate) fn short_hex(hash: Sha256) -> String {
    let digest = hash.finalize();
    let (first, _) = digest.split_first_chunk().expect("32 bytes");
    format!("{:016x}", u64::from_be_bytes(*first))
}

/// Passes the first operations of a work that draws from its mix to `put`.
pub(crate) fn hash_mix(
    plan: &Plan,
    phase: usize,
    work: usize,
    put: &mut dyn FnMut(u64),
) -> Result<(), LawError> {
    let ops = OpGen::new(plan, phase, work)?;
    (0..HASHED_OPS).for_each(|seq| hash_op(&ops.op(seq), put));
    Ok(())
}

/// Passes the fields that identify an operation to `put`.
pub(crate) fn hash_op(op: &Op, put: &mut dyn FnMut(u64)) {
    let range = op.range.map_or((0, 0), |range| (range.offset, range.len));
    let words = [
        op.class as u64,
        u64::from(op.keyset),
        op.key,
        op.source_key,
        u64::from(op.version),
        op.size,
        range.0,
        range.1,
        op.count,
    ];
    words.into_iter().for_each(put);
}
