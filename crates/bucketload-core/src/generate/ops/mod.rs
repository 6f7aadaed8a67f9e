//! Operations as a function of the sequence number.
//!
//! [`OpGen::op`] chooses the mix entry, the object, the size and the range, each from its own random stream
//! at index `seq`. No state passes from one operation to the next, so any worker, agent or verifier can
//! compute any operation.
//!
//! ```text
//!  seq ──choice──> entry ──keys──> object ─┬─ reads:  size from the population (if never overwritten)
//!                                          ├─ initial content: version 0, size from the population
//!                                          ├─ fresh objects:   version 0, size from stream `size`
//!                                          └─ overwrites: version seq+1, size from stream `size`
//! ```
//!
//! Object indices: initial objects are `0..count` of the key set, and the fresh object of operation `seq` is
//! `count + seq`. If several works write fresh objects into one key set, the second work's objects start
//! [`FRESH_STRIDE`] higher, the third's twice that, and so on in plan order, so no two works write the same
//! object. Later measurements on the same data set write their fresh objects beyond those of earlier ones
//! ([`OpGen::of_generation`]).

mod check;
mod entry;
mod expect;
mod latest;

use self::entry::{Entry, Keys, Role};
use super::LawError;
use super::alias::AliasTable;
use super::objects::Population;
use super::rng::{Draws, Purpose, Stream};
use crate::op::{ByteRange, Op, OpClass};
use crate::plan::{KeyLaw, MixEntry, Plan, WorkPlan};

/// Distance between the fresh objects of successive works that write into the same key set. A work can offer
/// this many operations before reaching the next work's objects.
pub const FRESH_STRIDE: u64 = 1_000_000_000_000;

/// The inputs that determine an object's bytes, for [`crate::payload::Arena::content`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentId {
    /// Index of the key set.
    pub keyset: u16,
    /// Index of the object.
    pub key: u64,
    /// Version of its content.
    pub version: u32,
    /// Size of the whole object, in bytes.
    pub size: u64,
}

impl ContentId {
    /// The content that `op` writes, or reads and can be compared with; `None` for operations without a body
    /// and for reads of objects that may have been overwritten.
    #[inline]
    #[must_use]
    pub fn of(op: &Op) -> Option<Self> {
        let known = op.class.writes_body() || op.class.reads_body() && op.size != Op::UNKNOWN_SIZE;
        known.then_some(Self {
            keyset: op.keyset,
            key: op.key,
            version: op.version,
            size: op.size,
        })
    }
}

/// The object chosen for an operation, with its rank in the population's ranking if the draw yields it.
#[derive(Clone, Copy)]
struct ChosenObject {
    key: u64,
    rank: Option<u64>,
}

/// A chain: worker `w` of `workers` performs the sequence numbers `w + t · workers`. Its turn `t` performs
/// entry `t mod entries` on object `(t div entries) · workers + w`.
#[derive(Clone, Copy, Debug)]
struct Chain {
    workers: u64,
    entries: u64,
}

impl Chain {
    /// The chain of a work, if its mix forms one.
    fn of(work: &WorkPlan) -> Result<Option<Self>, LawError> {
        let chained = |entry: &MixEntry| entry.keys == KeyLaw::Chained;
        if !work.mix.iter().any(chained) {
            return Ok(None);
        }
        if !work.mix.iter().all(chained) {
            let reason =
                "has the law `chained` in only some entries; either all entries have it or none";
            return Err(LawError::new("mix", reason));
        }
        match work.model.closed() {
            Some(closed) if closed.workers > 0 => Ok(Some(Self {
                workers: u64::from(closed.workers),
                entries: work.mix.len() as u64,
            })),
            _ => {
                let reason =
                    "has the law `chained`, which only workers of a closed loop can follow";
                Err(LawError::new("mix", reason))
            }
        }
    }

    /// The entry and object of sequence number `seq`.
    #[inline]
    const fn at(self, seq: u64) -> (u64, u64) {
        let (worker, turn) = (seq % self.workers, seq / self.workers);
        let object = (turn / self.entries) * self.workers + worker;
        (turn % self.entries, object)
    }
}

/// The streams of one work.
#[derive(Clone, Copy, Debug)]
struct Streams {
    choice: Stream,
    key: Stream,
    size: Stream,
    range: Stream,
    source: Stream,
}

/// The operations of one work of one phase. Immutable: share it between threads or clone it.
#[derive(Clone, Debug)]
pub struct OpGen {
    seed: u64,
    streams: Streams,
    /// `None` for a mix of one entry, which needs no choice.
    mix: Option<AliasTable>,
    /// For works whose workers perform the whole mix on one object after another.
    chain: Option<Chain>,
    entries: Box<[Entry]>,
    /// The populations that the entries use, each with its key set's index.
    sets: Box<[(u16, Population)]>,
}

impl OpGen {
    /// The operations of work number `work` of phase number `phase`.
    ///
    /// How classes use key laws: copies and renames choose their *source* by the key law (fresh: uniformly
    /// among the initial objects) and write a fresh object of the same key set. Lists list the prefix of the
    /// object's shard. Delete-many deletes consecutive objects starting at the drawn one, and its sequential
    /// law advances by whole batches. Puts to existing objects rewrite their initial content if the key set
    /// is not marked as overwritten (as in a prepare phase), otherwise they write new versions.
    ///
    /// # Errors
    /// If a law is invalid or an entry contradicts its key set. The error names the field of the plan and the
    /// valid values.
    pub fn new(plan: &Plan, phase: usize, work: usize) -> Result<Self, LawError> {
        let field = format!("phases[{phase}].works[{work}]");
        let Some(work_plan) = plan.phases.get(phase).and_then(|p| p.works.get(work)) else {
            return Err(LawError::new(field, "does not exist"));
        };
        let (Ok(phase_id), Ok(work_id)) = (u16::try_from(phase), u16::try_from(work)) else {
            return Err(LawError::new(field, "is beyond the 65536th"));
        };
        if phase >= Stream::MAX_PHASES {
            let reason = format!("is beyond the {}th phase", Stream::MAX_PHASES);
            return Err(LawError::new(field, reason));
        }
        if work_plan.mix.len() > usize::from(u16::MAX) {
            return Err(LawError::new(field, "has a mix of more than 65535 entries"));
        }
        let weights: Vec<f64> = work_plan.mix.iter().map(|entry| entry.weight).collect();
        let mix = AliasTable::new(&weights, "mix").map_err(|e| e.within(&field))?;
        let mut sets: Vec<(u16, Population)> = Vec::new();
        for entry in &work_plan.mix {
            if !sets.iter().any(|set| set.0 == entry.keyset) {
                sets.push((entry.keyset, Population::new(plan, entry.keyset)?));
            }
        }
        let entries = (0..work_plan.mix.len())
            .map(|i| {
                Entry::new(plan, (phase, work, i), &sets)
                    .map_err(|e| e.within(&format!("mix[{i}]")).within(&field))
            })
            .collect::<Result<_, _>>()?;
        let stream = |purpose| Stream::new(purpose, phase_id, work_id);
        Ok(Self {
            seed: plan.seed,
            streams: Streams {
                choice: stream(Purpose::Choice),
                key: stream(Purpose::Key),
                size: stream(Purpose::Size),
                range: stream(Purpose::Range),
                source: stream(Purpose::Source),
            },
            mix: (weights.len() > 1).then_some(mix),
            chain: Chain::of(work_plan).map_err(|e| e.within(&field))?,
            entries,
            sets: sets.into_boxed_slice(),
        })
    }

    /// The same operations with the fresh objects of measurement number `generation` on one data set, which
    /// differ from those of every other generation; [`OpGen::new`] builds generation 0. Only the names of
    /// fresh objects change. `plan` must be the plan from which the generator was built.
    #[must_use]
    pub fn of_generation(mut self, plan: &Plan, generation: u32) -> Self {
        for entry in &mut self.entries {
            entry.shift_fresh(entry::writers(plan, entry.keyset) * u64::from(generation));
        }
        self
    }

    /// The operation with sequence number `seq`.
    #[inline]
    #[must_use]
    pub fn op(&self, seq: u64) -> Op {
        let mut op = Op::new(OpClass::Get);
        self.op_into(seq, &mut op);
        op
    }

    /// Writes the operation with sequence number `seq` into `op` in place. Returning it by value would copy
    /// it in wider pieces than it was just written in, which stalls the processor.
    #[inline]
    pub fn op_into(&self, seq: u64, op: &mut Op) {
        let index = self.entry_of(seq);
        let entry = &self.entries[index];
        self.op_at(index, seq, self.choose(entry, seq), op);
    }

    /// The operation of mix entry `entry` on object `key`, for models that choose both themselves; `seq`
    /// numbers the operations of the work.
    ///
    /// # Panics
    /// If the mix has no such entry.
    #[must_use]
    pub fn op_on(&self, entry: u16, seq: u64, key: u64) -> Op {
        let mut op = Op::new(OpClass::Get);
        self.op_at(
            usize::from(entry),
            seq,
            ChosenObject { key, rank: None },
            &mut op,
        );
        op
    }

    #[inline]
    fn op_at(&self, index: usize, seq: u64, object: ChosenObject, op: &mut Op) {
        let entry = &self.entries[index];
        *op = Op {
            seq,
            class: entry.class,
            entry: index as u16,
            keyset: entry.keyset,
            key: object.key,
            source_key: 0,
            source_keyset: entry.keyset,
            version: 0,
            size: 0,
            range: None,
            count: entry.count,
            pages: entry.pages,
        };
        match entry.role {
            Role::Plain => {}
            Role::Read => op.size = self.known_size(entry, object),
            Role::ReadRange => {
                op.size = self.known_size(entry, object);
                op.range = self.range(entry, seq, op.size);
            }
            Role::ReadPart => {
                op.size = self.known_size(entry, object);
                op.range = self.part(entry, seq, op.size);
            }
            Role::ReadVersion => op.size = Op::UNKNOWN_SIZE,
            Role::WriteInitial => op.size = self.known_size(entry, object),
            Role::WriteFresh => op.size = self.drawn_size(entry, seq),
            Role::Overwrite => {
                op.size = self.drawn_size(entry, seq);
                // Never 0, the version of initial content, even after 2^32 operations.
                op.version = (seq % u64::from(u32::MAX)) as u32 + 1;
            }
            Role::Copy => {
                op.size = self.known_size(entry, object);
                op.source_key = object.key;
                op.key = entry.fresh_base + seq;
            }
        }
    }

    /// The mix entry of operation `seq`.
    #[inline]
    fn entry_of(&self, seq: u64) -> usize {
        if let Some(chain) = self.chain {
            return chain.at(seq).0 as usize;
        }
        match &self.mix {
            None => 0,
            Some(mix) => mix.choose(Draws::new(self.seed, self.streams.choice, seq).next_unit()),
        }
    }

    #[inline]
    fn choose(&self, entry: &Entry, seq: u64) -> ChosenObject {
        let unranked = |key| ChosenObject { key, rank: None };
        match &entry.keys {
            Keys::Sequential { count, stride } => {
                // The product may need 128 bits, and dividing those takes a function call.
                unranked(match seq.checked_mul(*stride) {
                    Some(product) => count.remainder(product),
                    None => (u128::from(seq) * u128::from(*stride) % u128::from(count.by())) as u64,
                })
            }
            Keys::Fresh => unranked(entry.fresh_base + seq),
            Keys::Chained { count } => {
                unranked(self.chain.map_or(seq, |chain| chain.at(seq).1) % count)
            }
            Keys::Ranked {
                popularity,
                ranking,
                ranks_sizes,
            } => {
                let stream = if entry.from_source_stream {
                    self.streams.source
                } else {
                    self.streams.key
                };
                let rank = popularity.rank(&mut Draws::new(self.seed, stream, seq));
                ChosenObject {
                    key: ranking.object(rank),
                    rank: ranks_sizes.then_some(rank),
                }
            }
            Keys::Latest(latest) => {
                let draws = Draws::new(self.seed, self.streams.key, seq);
                let written = |earlier| latest.writes(self.entry_of(earlier));
                unranked(latest.pick(seq, draws, written))
            }
        }
    }

    /// The size of the object unless somebody overwrites it.
    #[inline]
    fn known_size(&self, entry: &Entry, object: ChosenObject) -> u64 {
        let set = &self.sets[entry.set].1;
        match set.fixed_size() {
            Some(size) if object.key < set.count() && !set.overwritten() => size,
            _ => self.sampled_size(entry, object),
        }
    }

    fn sampled_size(&self, entry: &Entry, object: ChosenObject) -> u64 {
        let set = &self.sets[entry.set].1;
        if set.overwritten() && entry.role != Role::WriteInitial {
            Op::UNKNOWN_SIZE
        } else if object.key < set.count() {
            match object.rank {
                Some(rank) => set.object_size_ranked(object.key, rank),
                None => set.object_size(object.key),
            }
        } else {
            // A fresh object of this work, chosen by the latest law.
            let seq = object.key - entry.fresh_base;
            self.drawn_size(&self.entries[self.entry_of(seq)], seq)
        }
    }

    #[inline]
    fn drawn_size(&self, entry: &Entry, seq: u64) -> u64 {
        let sizes = entry.sizes.as_ref();
        let sizes = sizes.unwrap_or_else(|| self.sets[entry.set].1.sizes());
        sizes.sample(&mut Draws::new(self.seed, self.streams.size, seq))
    }

    /// A range within an object of `size` bytes. Its length follows the law but is at most the object's size;
    /// its offset is uniform among the multiples of the alignment at which that length fits. `None` for an
    /// empty object.
    #[inline]
    fn range(&self, entry: &Entry, seq: u64, size: u64) -> Option<ByteRange> {
        let law = entry.range.as_ref()?;
        let size = if size == Op::UNKNOWN_SIZE {
            law.least_size
        } else {
            size
        };
        if size == 0 {
            return None;
        }
        let mut draws = Draws::new(self.seed, self.streams.range, seq);
        let len = law.len.sample(&mut draws).clamp(1, size);
        let offset = law.align.by() * draws.below(law.align.quotient(size - len) + 1);
        Some(ByteRange { offset, len })
    }

    /// The range of a part of an object of `size` bytes, each part with the same probability. `None` for an empty
    /// object, whose only part is empty.
    fn part(&self, entry: &Entry, seq: u64, size: u64) -> Option<ByteRange> {
        let parts = size.div_ceil(entry.count);
        let mut draws = Draws::new(self.seed, self.streams.range, seq);
        let offset = entry.count * (parts > 0).then(|| draws.below(parts))?;
        Some(ByteRange {
            offset,
            len: entry.count.min(size - offset),
        })
    }

    /// The initial objects of the plan's key set number `keyset`, if the work uses it.
    #[must_use]
    pub fn population(&self, keyset: u16) -> Option<&Population> {
        let set = self.sets.iter().find(|set| set.0 == keyset)?;
        Some(&set.1)
    }

    /// Size of initial object `key` of key set `keyset`, in bytes; `None` if the work does not use the key
    /// set or `key` is not an initial object.
    #[must_use]
    pub fn object_size(&self, keyset: u16, key: u64) -> Option<u64> {
        let set = self.population(keyset)?;
        (key < set.count()).then(|| set.object_size(key))
    }
}
