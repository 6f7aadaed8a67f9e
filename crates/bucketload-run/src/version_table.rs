//! The identifiers of versions that the run has written, for operations on one version.
//!
//! ```text
//!  write of object k ── id from the store ──▶ slot (n mod versions) of k     n: writes of k so far
//!  get-version    ◀── one of the slots, at random
//!  delete-version ◀── the slot written first, which is then empty
//! ```
//!
//! A key set has as many slots per object as its preparation writes versions, so an object's newest versions are known.
//! Slots are made before the run and shared by all load threads without locks: each is a sequence of atomic words with a
//! counter that is odd while somebody writes them (a seqlock). Objects written to fresh keys are not remembered.

use std::cell::Cell;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64, fence};

use bucketload_core::generate::rng::mix64;
use bucketload_core::op::{Op, OpClass, VersionId};
use bucketload_core::plan::{PhaseKind, Plan};

use crate::error::RunError;
use crate::options::RunOptions;

/// Most versions that are remembered, about 80 bytes each.
const MOST: u64 = 1 << 20;

/// A version of an object, as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    /// Which write of the object it was, from 1.
    number: u32,
    /// Version of its content.
    content: u32,
    size: u64,
    pub(crate) id: VersionId,
}

/// Where a version is remembered.
#[derive(Default)]
struct Slot {
    /// Odd while the words are written.
    turn: AtomicU32,
    /// Number and content version, size, identifier; the number is 0 in an empty slot.
    words: [AtomicU64; 8],
}

impl Slot {
    /// The version, if there is one and nobody is writing it.
    fn read(&self) -> Option<Version> {
        let turn = self.turn.load(Acquire);
        let words: [u64; 8] = std::array::from_fn(|i| self.words[i].load(Relaxed));
        fence(Acquire);
        if turn % 2 == 1 || self.turn.load(Relaxed) != turn || words[0] == 0 {
            return None;
        }
        let [head, size, id @ ..] = words;
        Some(Version {
            number: (head >> 32) as u32,
            content: head as u32,
            size,
            id: VersionId::from_words(id),
        })
    }

    /// Replaces what `expected` accepts by `version`. Returns whether that was done: not if somebody else writes the slot.
    fn replace(
        &self,
        version: Option<Version>,
        expected: impl Fn(Option<Version>) -> bool,
    ) -> bool {
        let turn = self.turn.load(Acquire);
        let known = self.read();
        let owned = turn.is_multiple_of(2)
            && expected(known)
            && self
                .turn
                .compare_exchange(turn, turn.wrapping_add(1), Acquire, Relaxed)
                .is_ok();
        if !owned {
            return false;
        }
        // Readers see the odd turn before any of the words.
        fence(Release);
        let words = version.map_or([0; 8], |v| {
            let [a, b, c, d, e, f] = v.id.to_words();
            let head = u64::from(v.number) << 32 | u64::from(v.content);
            [head, v.size, a, b, c, d, e, f]
        });
        for (place, word) in self.words.iter().zip(words) {
            place.store(word, Relaxed);
        }
        self.turn.store(turn.wrapping_add(2), Release);
        true
    }
}

/// The slots of a key set.
struct Versions {
    /// Writes of each object.
    written: Box<[AtomicU32]>,
    each: usize,
    slots: Box<[Slot]>,
}

impl Versions {
    /// Slots for `count` objects with `each` versions.
    fn new(count: usize, each: usize) -> Self {
        Self {
            written: (0..count).map(|_| AtomicU32::new(0)).collect(),
            each,
            slots: (0..count * each).map(|_| Slot::default()).collect(),
        }
    }

    fn of(&self, key: u64) -> &[Slot] {
        match usize::try_from(key) {
            Ok(key) if key < self.written.len() => &self.slots[key * self.each..][..self.each],
            _ => &[],
        }
    }
}

/// The versions of all key sets whose versions the plan uses.
pub(crate) struct VersionTable(Vec<Versions>);

impl VersionTable {
    /// A table for `plan`; `None` if no operation names a version.
    ///
    /// # Errors
    /// When there are too many versions to remember, or this process would not see all writes.
    pub(crate) fn new(plan: &Plan, options: &RunOptions) -> Result<Option<Self>, RunError> {
        let entries = || {
            let works = plan.phases.iter().flat_map(|phase| &phase.works);
            works.flat_map(|work| &work.mix)
        };
        let Some(named) = entries().find(|entry| entry.class.by_version()) else {
            return Ok(None);
        };
        let refuse = |text: String| Err(RunError::Options(text));
        let class = named.class;
        if options.share.of > 1 || options.remote.is_some() {
            return refuse(format!(
                "`{class}` needs the identifiers of the versions that were written, so it works on one host only; \
                 leave out --agents and --launch"
            ));
        }
        if options.data_set.is_some() || options.data.is_some() {
            return refuse(format!(
                "`{class}` needs the identifiers of the versions, which only the run that wrote them knows; let this \
                 run prepare its own objects"
            ));
        }
        let prepares = |set: u16| {
            let phases = plan.phases.iter().filter(|p| p.kind == PhaseKind::Prepare);
            let writing = phases.filter(|phase| {
                let mut mix = phase.works.iter().flat_map(|work| &work.mix);
                mix.any(|entry| entry.keyset == set)
            });
            writing.count().max(1)
        };
        let mut all = 0;
        let mut sets = Vec::new();
        for (index, set) in plan.keysets.iter().enumerate() {
            let index = u16::try_from(index).unwrap_or(u16::MAX);
            if !entries().any(|entry| entry.class.by_version() && entry.keyset == index) {
                sets.push(Versions::new(0, 1));
                continue;
            }
            let each = prepares(index);
            all += set.count.saturating_mul(each as u64);
            if all > MOST {
                return refuse(format!(
                    "key set `{}`: {} objects with {each} versions each are more versions than the {MOST} whose \
                     identifiers are kept; lower `count` or `versions`",
                    set.name, set.count
                ));
            }
            sets.push(Versions::new(set.count as usize, each));
        }
        Ok(Some(Self(sets)))
    }

    /// Whether versions of the operation's object are remembered.
    pub(crate) fn tracks(&self, op: &Op) -> bool {
        !self.slots(op).is_empty()
    }

    fn slots(&self, op: &Op) -> &[Slot] {
        self.0[usize::from(op.keyset)].of(op.key)
    }

    /// Remembers the version that `op` wrote.
    pub(crate) fn wrote(&self, op: &Op, id: VersionId) {
        let set = &self.0[usize::from(op.keyset)];
        let slots = set.of(op.key);
        if slots.is_empty() {
            return;
        }
        let number = set.written[op.key as usize]
            .fetch_add(1, Relaxed)
            .wrapping_add(1);
        let version = Version {
            number,
            content: op.version,
            size: op.size,
            id,
        };
        // Of writes of one object at the same time, one may be forgotten: there are always others to choose from.
        let older = |known: Option<Version>| known.is_none_or(|known| known.number < number);
        slots[number as usize % slots.len()].replace(Some(version), older);
    }

    /// Chooses the version for an operation on one: `id` receives its identifier, the operation its content version and
    /// size. A version that is to be deleted is forgotten. Returns `None` if no version of the object is known.
    pub(crate) fn choose(&self, op: &mut Op, id: &Cell<VersionId>) -> Option<Version> {
        let slots = self.slots(op);
        let chosen = match op.class {
            OpClass::DeleteVersion => take_oldest(slots)?,
            _ => {
                let from = mix64(op.seq) as usize;
                let mut turns = 0..slots.len();
                turns.find_map(|i| slots[from.wrapping_add(i) % slots.len()].read())?
            }
        };
        id.set(chosen.id);
        (op.version, op.size) = (chosen.content, chosen.size);
        Some(chosen)
    }

    /// Whether nobody has chosen the version for deletion, nor replaced it by a newer one in this table.
    pub(crate) fn remembers(&self, op: &Op, version: Version) -> bool {
        self.slots(op)
            .iter()
            .any(|slot| slot.read() == Some(version))
    }

    /// Every version that is still remembered, as a read of it.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Op, Version)> {
        self.0.iter().enumerate().flat_map(|(set, versions)| {
            let slots = versions.slots.iter().enumerate();
            slots.filter_map(move |(at, slot)| {
                let version = slot.read()?;
                let op = Op {
                    keyset: set as u16,
                    key: (at / versions.each) as u64,
                    version: version.content,
                    size: version.size,
                    ..Op::new(OpClass::GetVersion)
                };
                Some((op, version))
            })
        })
    }
}

/// Takes the version written first out of `slots`.
fn take_oldest(slots: &[Slot]) -> Option<Version> {
    loop {
        let known = slots.iter().filter_map(|slot| Some((slot, slot.read()?)));
        let (slot, oldest) = known.min_by_key(|(_, version)| version.number)?;
        // Otherwise another worker was faster, and one version fewer is left.
        if slot.replace(None, |known| known == Some(oldest)) {
            return Some(oldest);
        }
    }
}

#[cfg(test)]
#[path = "version_table_tests.rs"]
mod tests;
