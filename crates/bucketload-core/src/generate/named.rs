//! The operations of works on named buckets and objects ([`NamedPlan`]).
//!
//! A worker's operations depend only on the seed, the worker's index and the number of operations it has
//! performed, not on threads, agents or time. COSBench takes some numbers from a counter that all workers of
//! a driver share. Here they are assigned instead: the `k`-th number that worker `w` of `W` takes is number
//! `w + k·W` of the sequence. Every number is therefore used once before any is reused, however the workers
//! are distributed, and no counter is shared.

use super::LawError;
use super::rng::{Draws, Purpose, Stream};
use crate::op::{ByteRange, Op, OpClass};
use crate::payload::trailer::TRAILER_LEN;
use crate::plan::named::{
    NamePattern, NamedEntry, NamedFile, NamedPlan, NamedSizes, NamedSlice, Numbers,
};
use crate::plan::{MixEntry, Plan};

/// The operations of one work. Immutable, shared by all threads.
#[derive(Clone, Debug)]
pub struct NamedGen {
    seed: u64,
    phase: u16,
    work: u16,
    plan: NamedPlan,
    mix: Vec<MixEntry>,
    /// Cumulative weights of the entries.
    ends: Vec<u64>,
}

/// One worker's position.
#[derive(Clone, Debug)]
pub struct NamedCursor {
    /// Index of the worker, from 0.
    index: u32,
    /// Operations started.
    turn: u64,
    /// Operations started, per entry.
    started: Vec<u64>,
    walk: Walk,
}

/// Position of a walk.
#[derive(Clone, Copy, Debug, Default)]
struct Walk {
    /// Buckets completed.
    bucket: u64,
    /// Objects of the current bucket completed.
    object: u64,
    /// Whether the current bucket has been created.
    made: bool,
}

impl NamedCursor {
    /// Operations started.
    #[must_use]
    pub const fn turn(&self) -> u64 {
        self.turn
    }

    /// Index of the worker, from 0.
    #[must_use]
    pub const fn index(&self) -> u32 {
        self.index
    }
}

/// Container and object numbers of a key.
const fn split(key: u64) -> (u32, u32) {
    ((key >> 32) as u32, key as u32)
}

const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl NamedGen {
    /// The operations of work number `work` of phase number `phase`.
    ///
    /// # Errors
    /// If the work is not of this kind, or its entries do not match its mix.
    pub fn new(plan: &Plan, phase: usize, work: usize) -> Result<Self, LawError> {
        let field = || format!("phases[{phase}].works[{work}]");
        let work_plan = &plan.phases[phase].works[work];
        let Some(named) = work_plan.model.named() else {
            return Err(LawError::new(field(), "does not work on named objects"));
        };
        if named.entries.len() != work_plan.mix.len() || named.entries.is_empty() {
            return Err(LawError::new(
                field(),
                "has entries that do not match its mix",
            ));
        }
        if phase >= Stream::MAX_PHASES {
            let reason = format!("is one of more than {} phases", Stream::MAX_PHASES);
            return Err(LawError::new(field(), reason));
        }
        for entry in &named.entries {
            for pattern in std::iter::once(&entry.bucket).chain(&entry.object) {
                let weighted = matches!(pattern.numbers, Numbers::Weighted { .. });
                if weighted && pattern.divided {
                    let reason = "divides numbers chosen by weight, which cannot be divided";
                    return Err(LawError::new(field(), reason));
                }
            }
        }
        let mut sum = 0;
        let mut ends = Vec::with_capacity(work_plan.mix.len());
        for entry in &work_plan.mix {
            sum += entry.weight.max(0.0).round() as u64;
            ends.push(sum);
        }
        if sum == 0 {
            return Err(LawError::new(field(), "has a mix without weight"));
        }
        Ok(Self {
            seed: plan.seed,
            phase: phase as u16,
            work: u16::try_from(work).unwrap_or(u16::MAX),
            plan: named.clone(),
            mix: work_plan.mix.clone(),
            ends,
        })
    }

    /// The plan of the work.
    #[must_use]
    pub const fn plan(&self) -> &NamedPlan {
        &self.plan
    }

    /// The initial position of worker `index` (from 0).
    #[must_use]
    pub fn cursor(&self, index: u32) -> NamedCursor {
        NamedCursor {
            index,
            turn: 0,
            started: vec![0; self.mix.len()],
            walk: Walk::default(),
        }
    }

    /// The worker's next operation; `None` once it has walked through its slice. Allocates nothing.
    pub fn next(&self, at: &mut NamedCursor) -> Option<Op> {
        let op = if self.plan.walk {
            self.step(at)?
        } else {
            self.chosen(at)
        };
        at.turn += 1;
        Some(op)
    }

    /// Whether the work deletes the buckets that its workers have walked through.
    #[must_use]
    pub fn deletes_buckets(&self) -> bool {
        let second = self.mix.get(1);
        second.is_some_and(|entry| entry.class == OpClass::DeleteBucket)
    }

    /// Whether operations of entry number `entry` write or check trailers.
    #[inline]
    #[must_use]
    pub fn has_trailer(&self, entry: u16) -> bool {
        self.plan.entries[usize::from(entry)].trailer
    }

    /// Number of entries.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.mix.len()
    }

    /// The next deletion of a bucket after a walk, made by the worker that finished last: bucket number
    /// `done` of all.
    #[must_use]
    pub fn bucket_after(&self, at: &mut NamedCursor, done: u64) -> Option<Op> {
        let entry = self.plan.entries.get(1)?;
        let (lo, hi) = entry.bucket.numbers.bounds()?;
        let number = u64::from(lo) + done;
        if number > u64::from(hi) {
            return None;
        }
        let op = self.op(at, 1, (number as u32, 0));
        at.turn += 1;
        Some(op)
    }

    /// The numbers that worker `index` walks through.
    fn slice(&self, pattern: &NamePattern, index: u32) -> NamedSlice {
        match pattern.numbers.bounds() {
            None => NamedSlice { first: 0, len: 0 },
            Some((lo, hi)) if pattern.divided => NamedSlice::of(lo, hi, index, self.plan.workers),
            Some((lo, hi)) => NamedSlice::of(lo, hi, 0, 1),
        }
    }

    fn step(&self, at: &mut NamedCursor) -> Option<Op> {
        let entry = &self.plan.entries[0];
        let buckets = self.slice(&entry.bucket, at.index);
        let objects = match &entry.object {
            Some(pattern) => self.slice(pattern, at.index),
            None => NamedSlice { first: 0, len: 1 },
        };
        loop {
            if at.walk.bucket >= buckets.len {
                return None;
            }
            let bucket = (buckets.first + at.walk.bucket) as u32;
            let makes = self.plan.buckets_too && self.mix[1].class == OpClass::MakeBucket;
            if makes && !at.walk.made {
                at.walk.made = true;
                return Some(self.op(at, 1, (bucket, 0)));
            }
            if at.walk.object < objects.len {
                let object = (objects.first + at.walk.object) as u32;
                at.walk.object += 1;
                return Some(self.op(at, 0, (bucket, object)));
            }
            at.walk = Walk {
                bucket: at.walk.bucket + 1,
                ..Walk::default()
            };
        }
    }

    fn draws(&self, purpose: Purpose, at: &NamedCursor) -> Draws {
        let seq = u64::from(at.index) + at.turn * u64::from(self.plan.workers);
        Draws::new(self.seed, Stream::new(purpose, self.phase, self.work), seq)
    }

    fn chosen(&self, at: &mut NamedCursor) -> Op {
        let total = self.ends[self.ends.len() - 1];
        let entry = if self.ends.len() == 1 {
            0
        } else {
            let drawn = self.draws(Purpose::Choice, at).below(total);
            self.ends.partition_point(|end| *end <= drawn)
        };
        let named = &self.plan.entries[entry];
        let nth = at.started[entry];
        let mut draws = self.draws(Purpose::Key, at);
        let divided = named.bucket.divided || named.object.as_ref().is_some_and(|o| o.divided);
        // How many times the sequences of buckets and objects have come round together.
        let rounds = match &named.object {
            Some(object) if !self.plan.legacy_sequences => {
                let position = self.position(at, nth, divided);
                let lengths = (self.cycle(&named.bucket, at), self.cycle(object, at));
                match lengths {
                    (Some(a), Some(b)) if a > 0 && b > 0 => position / (a / gcd(a, b) * b),
                    _ => 0,
                }
            }
            _ => 0,
        };
        let bucket = self.number(&named.bucket, at, nth, divided, 0, &mut draws);
        let object = match &named.object {
            Some(pattern) => self.number(pattern, at, nth, divided, rounds, &mut draws),
            None => 0,
        };
        let op = self.op(at, entry, (bucket, object));
        at.started[entry] += 1;
        op
    }

    /// Position of the `nth` operation in a sequence.
    fn position(&self, at: &NamedCursor, nth: u64, divided: bool) -> u64 {
        if divided {
            nth
        } else {
            u64::from(at.index) + nth * u64::from(self.plan.workers)
        }
    }

    /// The number of operations after which a sequence repeats; `None` for unordered numbers.
    fn cycle(&self, pattern: &NamePattern, at: &NamedCursor) -> Option<u64> {
        match pattern.numbers {
            Numbers::Range { .. } => Some(self.slice(pattern, at.index).len),
            Numbers::Sequential { lo, hi } => Some(u64::from(hi - lo) + 1),
            _ => None,
        }
    }

    /// The number for the `nth` operation; `rounds` shifts a sequence.
    fn number(
        &self,
        pattern: &NamePattern,
        at: &NamedCursor,
        nth: u64,
        divided: bool,
        rounds: u64,
        draws: &mut Draws,
    ) -> u32 {
        match &pattern.numbers {
            Numbers::Constant { n } => *n,
            Numbers::Uniform { .. } => {
                let slice = self.slice(pattern, at.index);
                (slice.first + draws.below(slice.len.max(1))) as u32
            }
            Numbers::Range { .. } => {
                let slice = self.slice(pattern, at.index);
                // Workers that divide the other numbers start at different positions of this range.
                let shift = if divided && !pattern.divided {
                    u64::from(at.index)
                } else {
                    0
                };
                let position = self.position(at, nth, divided) + shift + rounds;
                (slice.first + position % slice.len.max(1)) as u32
            }
            Numbers::Sequential { lo, hi } => {
                // One sequence over all workers, whether or not they divide the range.
                let position = self.position(at, nth, false) + rounds;
                (u64::from(*lo) + position % (u64::from(hi - lo) + 1)) as u32
            }
            Numbers::Weighted { buckets } => weighted(buckets, draws),
            Numbers::Empty => 0,
        }
    }

    fn op(&self, at: &NamedCursor, entry: usize, (bucket, object): (u32, u32)) -> Op {
        let (mix, named) = (&self.mix[entry], &self.plan.entries[entry]);
        let key = u64::from(bucket) << 32 | u64::from(object);
        let size = match (self.file(named, object), &named.sizes) {
            // A trailer follows the file's bytes.
            (Some(file), _) if named.trailer => file.bytes + TRAILER_LEN as u64,
            (Some(file), _) => file.bytes,
            (None, Some(sizes)) => self.size(sizes, at, entry, key),
            (None, None) if mix.class.writes_body() => 0,
            (None, None) => Op::UNKNOWN_SIZE,
        };
        let range = named.range.map(|range| {
            let offsets = range.object_bytes.saturating_sub(range.len).max(1);
            ByteRange {
                offset: self.draws(Purpose::Range, at).below(offsets),
                len: range.len,
            }
        });
        Op {
            seq: u64::from(at.index) + at.turn * u64::from(self.plan.workers),
            class: mix.class,
            entry: entry as u16,
            keyset: mix.keyset,
            key,
            source_key: 0,
            source_keyset: 0,
            version: 0,
            size,
            range,
            count: mix.count,
            pages: mix.pages,
        }
    }

    fn size(&self, sizes: &NamedSizes, at: &NamedCursor, entry: usize, key: u64) -> u64 {
        let mut draws = if sizes.by_name {
            Draws::new(self.seed, Stream::new(Purpose::ObjectSize, 0, 0), key)
        } else {
            self.draws(Purpose::Size, at)
        };
        let number = match &sizes.numbers {
            Numbers::Constant { n } => *n,
            Numbers::Uniform { lo, hi } => lo + draws.below(u64::from(hi - lo) + 1) as u32,
            Numbers::Range { lo, hi } | Numbers::Sequential { lo, hi } => {
                let nth = if self.plan.walk {
                    at.turn
                } else {
                    at.started[entry]
                };
                let position = self.position(at, nth, false);
                lo + (position % (u64::from(hi - lo) + 1)) as u32
            }
            Numbers::Weighted { buckets } => weighted(buckets, &mut draws),
            Numbers::Empty => 0,
        };
        u64::from(number) * sizes.unit_bytes
    }

    fn file<'a>(&self, entry: &'a NamedEntry, object: u32) -> Option<&'a NamedFile> {
        let index = (object as usize).checked_sub(1)?;
        entry.files.get(index)
    }

    /// Writes the names of `op` into the buffers, replacing their contents.
    #[inline]
    pub fn render(&self, op: &Op, bucket: &mut String, key: &mut String) {
        let entry = &self.plan.entries[usize::from(op.entry)];
        let (container, object) = split(op.key);
        entry.bucket.render(container, bucket);
        if op.class.on_bucket() {
            // For bucket operations, the key in records is the bucket's name.
            key.clear();
            key.push_str(bucket);
            return;
        }
        match (self.file(entry, object), &entry.object) {
            (Some(file), _) => {
                key.clear();
                key.push_str(&file.name);
            }
            (None, Some(pattern)) => pattern.render(object, key),
            (None, None) => key.clear(),
        }
    }

    /// Length of the longest name, bytes.
    #[must_use]
    pub fn max_len(&self) -> usize {
        let lengths = self.plan.entries.iter().map(|entry| {
            let object = entry.object.as_ref().map_or(0, NamePattern::max_len);
            let file = entry.files.iter().map(|f| f.name.len()).max().unwrap_or(0);
            entry.bucket.max_len().max(object).max(file)
        });
        lengths.max().unwrap_or(0)
    }
}

/// A number from weighted ranges, exactly by weight. (COSBench's own comparison gives the first range one
/// unit too much, docs/spec/cosbench.md section 1.7.)
fn weighted(buckets: &[(u32, u32, u32)], draws: &mut Draws) -> u32 {
    let total: u64 = buckets.iter().map(|b| u64::from(b.2)).sum();
    let mut left = draws.below(total.max(1));
    for (lo, hi, weight) in buckets {
        if left < u64::from(*weight) {
            return lo + draws.below(u64::from(hi - lo) + 1) as u32;
        }
        left -= u64::from(*weight);
    }
    buckets.last().map_or(0, |b| b.1)
}

#[cfg(test)]
#[path = "named_tests.rs"]
mod tests;
