//! The generators of one work, put together: arrivals, operations, names and think times.
//!
//! Everything is a function of the plan's seed and a counter; a source is immutable and shared by
//! all load threads.

use bucketload_core::generate::LawError;
use bucketload_core::generate::arrivals::{Arrivals, Schedule, Shard};
use bucketload_core::generate::names::{KeyBatch, KeyNames};
use bucketload_core::generate::ops::{ContentId, OpGen};
use bucketload_core::generate::think::ThinkTime;
use bucketload_core::op::{Op, OpClass};
use bucketload_core::payload::{Arena, Content};
use bucketload_core::plan::{GapLaw, MixEntry, ModelPlan, Plan};

use crate::error::RunError;

/// The generators of one work of one phase.
pub(crate) struct Source {
    ops: OpGen,
    schedule: Option<Schedule>,
    think: Option<ThinkTime>,
    names: Vec<KeyNames>,
    mix: Vec<MixEntry>,
}

impl Source {
    /// The generators of work number `work` of phase number `phase`, with names below `prefix`.
    pub(crate) fn new(
        plan: &Plan,
        phase: usize,
        work: usize,
        prefix: &str,
    ) -> Result<Self, RunError> {
        let refused = |error: LawError| RunError::Options(format!("the plan's {error}"));
        let ops = OpGen::new(plan, phase, work).map_err(refused)?;
        let names = plan
            .keysets
            .iter()
            .enumerate()
            .map(|(i, set)| {
                KeyNames::new(prefix, set)
                    .map_err(|e| RunError::Options(format!("the plan's keysets[{i}].{e}")))
            })
            .collect::<Result<_, _>>()?;
        let work_plan = &plan.phases[phase].works[work];
        // The generator of operations has refused indices beyond 65535.
        let (phase, work) = (phase as u16, work as u16);
        let (schedule, think) = match &work_plan.model {
            ModelPlan::Open { arrival, .. } => {
                let schedule = Schedule::new(plan.seed, phase, work, arrival).map_err(refused)?;
                (Some(schedule), None)
            }
            ModelPlan::Rounds(_) => (None, None),
            ModelPlan::Closed { think, .. } => {
                let none = *think == GapLaw::None;
                let think = ThinkTime::new(plan.seed, phase, work, *think).map_err(refused)?;
                (None, (!none).then_some(think))
            }
        };
        Ok(Self {
            ops,
            schedule,
            think,
            names,
            mix: work_plan.mix.clone(),
        })
    }

    /// The same with the fresh objects of another measurement on the data set of `plan`.
    pub(crate) fn of_generation(mut self, plan: &Plan, generation: u32) -> Self {
        self.ops = self.ops.of_generation(plan, generation);
        self
    }

    /// Share `index` of `of` of the schedule; `None` for closed loops.
    pub(crate) fn arrivals(&self, index: u32, of: u32) -> Option<Arrivals> {
        Some(self.schedule.as_ref()?.shard(Shard { index, of }))
    }

    /// The operation with sequence number `seq`.
    #[inline]
    pub(crate) fn op(&self, seq: u64) -> Op {
        self.ops.op(seq)
    }

    /// The operation of mix entry `entry` on object `key`.
    pub(crate) fn op_on(&self, entry: u16, seq: u64, key: u64) -> Op {
        self.ops.op_on(entry, seq, key)
    }

    /// The object that a name of the key set `keyset` stands for.
    pub(crate) fn index_of(&self, keyset: u16, name: &str) -> Option<u64> {
        self.names[usize::from(keyset)].index_of(name)
    }

    /// Whether workers pause between operations.
    pub(crate) fn has_think_time(&self) -> bool {
        self.think.is_some()
    }

    /// The pause of worker `worker` (over all agents) after its `iteration`-th operation.
    pub(crate) fn think_ns(&self, worker: u32, iteration: u64) -> u64 {
        self.think
            .as_ref()
            .map_or(0, |think| think.pause_ns(worker, iteration))
    }

    /// Writes the operation's key and, for copies, its source key; allocates nothing once the
    /// buffers are large enough.
    #[inline]
    pub(crate) fn render(&self, op: &Op, key: &mut String, source: &mut String) {
        let names = &self.names[usize::from(op.keyset)];
        match op.class {
            OpClass::List | OpClass::ListV1 | OpClass::ListUploads => {
                names.render_prefix(op.key, key);
            }
            _ => names.render(op.key, key),
        }
        if matches!(op.class, OpClass::Copy | OpClass::MultipartCopy) {
            self.names[usize::from(op.source_keyset)].render(op.source_key, source);
        } else {
            source.clear();
        }
    }

    /// Bytes that the longest key needs.
    pub(crate) fn max_key_len(&self) -> usize {
        self.names.iter().map(KeyNames::max_len).max().unwrap_or(0)
    }

    /// The keys of a request about several objects.
    #[inline]
    pub(crate) fn batch(&self, op: &Op) -> Option<KeyBatch<'_>> {
        (op.class == OpClass::DeleteMany).then(|| self.names[usize::from(op.keyset)].batch(op.key))
    }

    /// The delimiter of a list operation.
    #[inline]
    pub(crate) fn delimiter(&self, op: &Op) -> &str {
        &self.mix[usize::from(op.entry)].delimiter
    }
}

/// What the operation writes, or what it reads as far as that is known.
#[inline]
pub(crate) fn content<'a>(arena: &'a Arena, op: &Op) -> Option<Content<'a>> {
    let id = ContentId::of(op)?;
    Some(arena.content(id.keyset, id.key, id.version, id.size))
}
