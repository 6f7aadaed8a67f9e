//! All generators of one work: arrivals, operations, names and think times.
//!
//! Everything is a function of the plan's seed and a counter. A source is immutable and shared by all load threads.

use std::sync::Arc;

use bucketload_core::generate::LawError;
use bucketload_core::generate::arrivals::{Schedule, Shard};
use bucketload_core::generate::jobs::JobGen;
use bucketload_core::generate::names::{KeyBatch, KeyNames};
use bucketload_core::generate::ops::{ContentId, OpGen};
use bucketload_core::generate::rng::mix64;
use bucketload_core::generate::think::ThinkTime;
use bucketload_core::op::{KeySource, Op, OpClass};
use bucketload_core::payload::{Arena, Content};
use bucketload_core::plan::ranks::{RankMapping, RankTask};
use bucketload_core::plan::{ArrivalLaw, JobsPlan, MixEntry, Plan, RanksPlan, ReplayPlan};

use crate::checkpoint::CheckpointWork;
use crate::error::RunError;
use crate::feed::{Feed, Fixed, Jobs, Kvcache, Queue, Trace};
use crate::kvcache::KvWork;
use crate::models;
use crate::named_objects::NamedWork;
use crate::names::{Names, push_key};
use crate::options::RunOptions;
use crate::ownership::{in_workload_buckets, prefix_in_workload_buckets};
use crate::partition::Partition;
use crate::ranks::RankWork;
use crate::train::TrainWork;

/// Longest key that S3 allows, bytes.
const LONGEST_KEY: usize = 1024;

/// Where the operations of a work come from.
pub(crate) enum Ops {
    /// Drawn from the mix, by sequence number.
    Mix(OpGen),
    /// Jobs.
    Jobs(JobsPlan, JobGen),
    /// Recorded in a trace.
    Recorded(Recorded),
    /// Works on buckets and objects that the user names.
    Named(NamedWork),
    /// The steps of ranks.
    Ranks(RankWork),
    /// Requests of a language model.
    Kvcache(KvWork),
    /// The ranks of a checkpoint.
    Checkpoint(CheckpointWork),
}

/// The queues that carry a trace to the load threads, and how its keys are named.
pub(crate) struct Recorded {
    plan: ReplayPlan,
    /// Prefix of all names.
    prefix: String,
    /// Prefix of the names in each recorded bucket.
    buckets: Vec<String>,
    /// One queue per share of the keys; `None` for the shares of other agents.
    queues: Vec<Option<Arc<Queue>>>,
}

/// The generators that a model builds from its part of a plan.
pub(crate) struct Generators {
    pub(crate) ops: Ops,
    pub(crate) schedule: Option<Schedule>,
    pub(crate) think: Option<ThinkTime>,
    pub(crate) train: Option<TrainWork>,
}

impl From<Ops> for Generators {
    /// Generators without arrivals and think times.
    fn from(ops: Ops) -> Self {
        Self {
            ops,
            schedule: None,
            think: None,
            train: None,
        }
    }
}

/// The inputs from which a model builds its generators.
pub(crate) struct Draft<'a> {
    pub(crate) plan: &'a Plan,
    /// Index of the phase in the plan.
    pub(crate) phase: usize,
    /// Index of the work in the phase.
    pub(crate) work: usize,
    /// Phase and work as numbers of random streams.
    pub(crate) numbers: (u16, u16),
    /// Seed of the arrival schedule.
    seed: u64,
    pub(crate) options: &'a RunOptions,
    /// Number of load threads.
    pub(crate) threads: usize,
}

impl Draft<'_> {
    /// The schedule of an arrival process.
    pub(crate) fn arrivals(&self, law: &ArrivalLaw) -> Result<Schedule, RunError> {
        let (phase, work) = self.numbers;
        Schedule::new(self.seed, phase, work, law).map_err(refused)
    }

    /// Operations drawn from the mix, without arrivals and think times.
    pub(crate) fn mix(&self) -> Result<Generators, RunError> {
        let ops = OpGen::new(self.plan, self.phase, self.work).map_err(refused)?;
        Ok(Ops::Mix(ops).into())
    }
}

/// Turns an invalid law of the plan into an error of the run.
pub(crate) fn refused(error: LawError) -> RunError {
    RunError::Options(format!("the plan's {error}"))
}

/// The generators of one work of one phase.
pub(crate) struct Source {
    ops: Ops,
    schedule: Option<Schedule>,
    think: Option<ThinkTime>,
    train: Option<TrainWork>,
    names: Vec<KeyNames>,
    mix: Vec<MixEntry>,
    /// Whether reads compare bytes in plans that verify. IOR does not in its random reads, which are too small to hide
    /// that work; the bytes of the same files were compared before.
    pub(crate) compares: bool,
}

impl Source {
    /// The generators of work number `work` of phase number `phase`, for `threads` load threads. `options` give the
    /// names' prefix and the number of the schedule.
    pub(crate) fn new(
        plan: &Plan,
        phase: usize,
        work: usize,
        options: &RunOptions,
        threads: usize,
    ) -> Result<Self, RunError> {
        let prefix = options.names_prefix();
        let names = plan
            .keysets
            .iter()
            .enumerate()
            .map(|(i, set)| {
                match &set.buckets {
                    None => KeyNames::new(prefix, set),
                    Some(_) => KeyNames::new(
                        &prefix_in_workload_buckets(prefix),
                        &in_workload_buckets(set),
                    ),
                }
                .map_err(|e| RunError::Options(format!("the plan's keysets[{i}].{e}")))
            })
            .collect::<Result<_, _>>()?;
        let work_plan = &plan.phases[phase].works[work];
        let (index, of) = (phase, work);
        let number = |n: usize| {
            u16::try_from(n)
                .map_err(|_| RunError::Options(format!("there are {n} phases or works")))
        };
        let (phase, work) = (number(phase)?, number(work)?);
        let seed = match options.schedule {
            0 => plan.seed,
            number => mix64(plan.seed ^ mix64(u64::from(number))),
        };
        let draft = Draft {
            plan,
            phase: index,
            work: of,
            numbers: (phase, work),
            seed,
            options,
            threads,
        };
        let made = models::of(&work_plan.model).generators(&draft)?;
        let random = |ranks: &RanksPlan| {
            ranks.mapping == RankMapping::Files && matches!(ranks.task, RankTask::RandomRead { .. })
        };
        Ok(Self {
            compares: !work_plan.model.ranks().is_some_and(random),
            ops: made.ops,
            schedule: made.schedule,
            think: made.think,
            train: made.train,
            names,
            mix: work_plan.mix.clone(),
        })
    }

    /// The feed of share `index` of `of` of the work; `None` for closed loops.
    pub(crate) fn feed(&self, work: u16, (index, of): (u32, u32)) -> Option<Feed> {
        match &self.ops {
            Ops::Named(_) | Ops::Ranks(_) | Ops::Checkpoint(_) => None,
            Ops::Mix(_) => {
                let arrivals = self.schedule.as_ref()?.shard(Shard { index, of });
                Some(Feed::Fixed(Fixed::new(arrivals)))
            }
            Ops::Jobs(jobs, ops) => {
                let schedule = self.schedule.as_ref();
                let jobs = Jobs::new(work, jobs, ops, schedule, (index, of));
                Some(Feed::Jobs(Box::new(jobs)))
            }
            Ops::Recorded(recorded) => {
                let queue = recorded.queues.get(index as usize)?.clone()?;
                Some(Feed::Trace(Box::new(Trace::new(&recorded.plan, queue))))
            }
            Ops::Kvcache(shared) => {
                let queue = match &shared.users {
                    Some(_) => Arc::default(),
                    None => shared.queues.get(index as usize)?.clone()?,
                };
                let cache = Kvcache::new(work, shared, queue, (index, of));
                Some(Feed::Kvcache(Box::new(cache)))
            }
        }
    }

    /// The same source with the fresh objects of measurement number `generation` on the data set of `plan`. Names from
    /// a trace do not change.
    pub(crate) fn of_generation(mut self, plan: &Plan, generation: u32) -> Self {
        self.ops = match self.ops {
            Ops::Mix(ops) => Ops::Mix(ops.of_generation(plan, generation)),
            Ops::Jobs(jobs, ops) => Ops::Jobs(jobs, ops.of_generation(generation)),
            named @ (Ops::Recorded(_)
            | Ops::Named(_)
            | Ops::Ranks(_)
            | Ops::Kvcache(_)
            | Ops::Checkpoint(_)) => named,
        };
        self
    }

    /// How the work reads its trace, and the queues of its shares.
    pub(crate) fn replay(&self) -> Option<(&ReplayPlan, &[Option<Arc<Queue>>])> {
        match &self.ops {
            Ops::Recorded(recorded) => Some((&recorded.plan, &recorded.queues)),
            Ops::Kvcache(shared) if shared.users.is_none() => {
                Some((&shared.replay, &shared.queues))
            }
            Ops::Kvcache(_)
            | Ops::Mix(_)
            | Ops::Jobs(..)
            | Ops::Named(_)
            | Ops::Ranks(_)
            | Ops::Checkpoint(_) => None,
        }
    }

    /// The work's mix.
    pub(crate) fn mix(&self) -> &[MixEntry] {
        &self.mix
    }

    /// The operation with sequence number `seq` of a closed loop or of a static schedule.
    #[inline]
    pub(crate) fn op(&self, seq: u64) -> Op {
        let mut op = Op::new(OpClass::Get);
        self.op_into(seq, &mut op);
        op
    }

    /// As [`Source::op`], written in place.
    #[inline]
    pub(crate) fn op_into(&self, seq: u64, op: &mut Op) {
        match &self.ops {
            Ops::Mix(ops) => ops.op_into(seq, op),
            // Their feeds generate the operations.
            Ops::Jobs(..)
            | Ops::Recorded(_)
            | Ops::Named(_)
            | Ops::Ranks(_)
            | Ops::Kvcache(_)
            | Ops::Checkpoint(_) => {
                unreachable!("no operation by number")
            }
        }
    }

    /// Whether the feed writes the names, and not the plan.
    #[inline]
    fn is_recorded(&self) -> bool {
        matches!(self.ops, Ops::Recorded(_) | Ops::Kvcache(_))
    }

    /// Replaces the contents of `out` with the name of recorded key `key` of bucket number `bucket`.
    pub(crate) fn recorded_name(&self, bucket: u32, key: &[u8], out: &mut String) {
        out.clear();
        self.push_recorded(bucket, key, out);
    }

    /// Appends the name of recorded key `key` of bucket number `bucket` to `out`.
    pub(crate) fn push_recorded(&self, bucket: u32, key: &[u8], out: &mut String) {
        if let Ops::Recorded(recorded) = &self.ops {
            out.push_str(&recorded.prefix);
            if let Some(bucket) = recorded.buckets.get(bucket as usize) {
                out.push_str(bucket);
            }
            push_key(key, out);
        }
    }

    /// The operation of mix entry `entry` on object `key`.
    pub(crate) fn op_on(&self, entry: u16, seq: u64, key: u64) -> Op {
        match &self.ops {
            Ops::Mix(ops) => ops.op_on(entry, seq, key),
            Ops::Jobs(..)
            | Ops::Recorded(_)
            | Ops::Named(_)
            | Ops::Ranks(_)
            | Ops::Kvcache(_)
            | Ops::Checkpoint(_) => {
                unreachable!("no operation by entry")
            }
        }
    }

    /// Index of the object called `name` in key set `keyset`.
    pub(crate) fn index_of(&self, keyset: u16, name: &str) -> Option<u64> {
        self.names[usize::from(keyset)].index_of(name)
    }

    /// Whether workers pause between operations, for think times or to obey a rate limit.
    pub(crate) fn pauses(&self) -> bool {
        let limited = |named: &NamedWork| {
            let plan = named.ops.plan();
            plan.max_ops_per_s > 0 || plan.max_bytes_per_s > 0
        };
        let waits = |ranks: &RankWork| ranks.ops.plan().waiting > 0.0;
        self.think.is_some() || self.named().is_some_and(limited) || self.ranks().is_some_and(waits)
    }

    /// The work of ranks, if this is one.
    #[inline]
    pub(crate) fn ranks(&self) -> Option<&RankWork> {
        match &self.ops {
            Ops::Ranks(ranks) => Some(ranks),
            _ => None,
        }
    }

    /// The ranks of a checkpoint, if the work is one.
    #[inline]
    pub(crate) fn checkpoint(&self) -> Option<&CheckpointWork> {
        match &self.ops {
            Ops::Checkpoint(work) => Some(work),
            _ => None,
        }
    }

    /// The work on buckets and objects that the user names, if this is one.
    #[inline]
    pub(crate) fn named(&self) -> Option<&NamedWork> {
        match &self.ops {
            Ops::Named(named) => Some(named),
            _ => None,
        }
    }

    /// What the accelerators of a training share, if this is one.
    pub(crate) const fn train(&self) -> Option<&TrainWork> {
        self.train.as_ref()
    }

    /// The pause of worker `worker` (over all agents) after its `iteration`-th operation.
    pub(crate) fn think_ns(&self, worker: u32, iteration: u64) -> u64 {
        self.think
            .as_ref()
            .map_or(0, |think| think.pause_ns(worker, iteration))
    }

    /// Writes the operation's key and, for copies and renames, its source key. Allocates nothing once the buffers are
    /// large enough.
    #[inline]
    pub(crate) fn render(&self, op: &Op, into: &mut Names) {
        match &self.ops {
            Ops::Mix(_) | Ops::Jobs(..) => into.clear_source(),
            // The feed wrote the names when it gave the operation.
            Ops::Recorded(_) | Ops::Kvcache(_) => return,
            Ops::Named(named) => {
                into.clear_source();
                let (key, more) = into.parts_mut();
                return named.ops.render(op, &mut more.bucket, key);
            }
            Ops::Ranks(ranks) => {
                into.clear_source();
                return ranks.ops.render(op, into.key_mut());
            }
            Ops::Checkpoint(work) => {
                into.clear_source();
                return work.ops.render(op, into.key_mut());
            }
        }
        let names = &self.names[usize::from(op.keyset)];
        match op.class {
            class if class.lists() => names.render_prefix(op.key, into.key_mut()),
            _ => {
                if let Some(text) = into.key_of(op.keyset, op.key) {
                    names.render(op.key, text);
                }
            }
        }
        if op.class.has_source() {
            let more = into.more_mut();
            self.names[usize::from(op.source_keyset)].render(op.source_key, &mut more.source);
        }
    }

    /// Length of the longest key, bytes.
    pub(crate) fn max_key_len(&self) -> usize {
        match &self.ops {
            Ops::Recorded(recorded) => {
                let bucket = recorded.buckets.iter().map(String::len).max();
                recorded.prefix.len() + bucket.unwrap_or(0) + LONGEST_KEY
            }
            Ops::Named(named) => named.ops.max_len(),
            Ops::Ranks(ranks) => ranks.ops.max_len(),
            Ops::Kvcache(shared) => shared.names.max_len(),
            Ops::Checkpoint(work) => work.ops.max_len(),
            _ => self.names.iter().map(KeyNames::max_len).max().unwrap_or(0),
        }
    }

    /// The keys of a delete-many, where the plan renders them.
    #[inline]
    pub(crate) fn batch(&self, op: &Op) -> Option<KeyBatch<'_>> {
        (op.class == OpClass::DeleteMany && !self.is_recorded() && self.named().is_none())
            .then(|| self.names[usize::from(op.keyset)].batch(op.key))
    }

    /// The keys of a delete-many, where the feed wrote them.
    #[inline]
    pub(crate) fn listed<'a>(&self, op: &Op, names: &'a Names) -> Option<&'a dyn KeySource> {
        let listed = op.class == OpClass::DeleteMany && self.is_recorded();
        names.listed().filter(|_| listed).map(|listed| listed as _)
    }

    /// The delimiter of a list operation.
    #[inline]
    pub(crate) fn delimiter(&self, op: &Op) -> &str {
        &self.mix[usize::from(op.entry)].delimiter
    }
}

/// Object bytes that an operation transfers, where the plan or the trace knows them; else 0.
pub(crate) const fn body_bytes(op: &Op) -> u64 {
    match op.range {
        _ if !op.class.writes_body() && !op.class.reads_body() => 0,
        Some(range) => range.len,
        None if op.size != Op::UNKNOWN_SIZE => op.size,
        None => 0,
    }
}

/// The content that the operation writes, or is expected to read where that is known.
#[inline]
pub(crate) fn content<'a>(arena: &'a Arena, op: &Op) -> Option<Content<'a>> {
    let id = ContentId::of(op)?;
    Some(arena.content(id.keyset, id.key, id.version, id.size))
}

impl Recorded {
    pub(crate) fn new(
        replay: &ReplayPlan,
        plan: &Plan,
        options: &RunOptions,
        threads: usize,
    ) -> Self {
        let share = (options.share.index, options.share.of);
        let mut queues: Vec<Option<Arc<Queue>>> = Vec::new();
        for thread in 0..threads {
            if let Some(part) = Partition::of(replay.max_in_flight, share, (thread, threads)) {
                queues.resize_with(part.of as usize, || None);
                queues[part.index as usize] = Some(Arc::default());
            }
        }
        let set = plan.keysets.first().map_or("", |set| set.prefix.as_str());
        Self {
            plan: replay.clone(),
            prefix: format!("{}{set}", options.prefix),
            buckets: replay.buckets.clone(),
            queues,
        }
    }
}
