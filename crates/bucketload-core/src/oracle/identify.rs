//! Determines which versions of a key a body comes from.
//!
//! A stamp names its version. Without a stamp, the arena start of the bytes is compared with those of the
//! existing versions; bodies too short for either are compared byte by byte. If several versions fit (an
//! object of one byte has 256 forms), an allowed one is chosen.

use super::register::{ReadMark, Register, Ruling, State};
use crate::inspect::{ContentTrace, Seen};
use crate::payload::Arena;

/// Number of versions to try before the remembered ones.
const TRIED: u32 = 4096;

/// The origin of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// One version, complete within the requested range.
    Version(u32),
    /// Begins with a version (if it is known) and goes wrong at `at`.
    Torn {
        /// The version it begins with.
        first: Option<u32>,
        /// The version it continues with, if known.
        then: Option<u32>,
        /// Object offset at which it goes wrong: it changes to another version, ends early or ends late.
        at: u64,
    },
    /// Holds bytes from offset `at` that belong to no version.
    Corrupt {
        /// The version it begins with.
        first: Option<u32>,
        /// Object offset of the first wrong byte.
        at: u64,
    },
    /// Another run's content of this key.
    OtherRun,
    /// Too little data to say anything (an empty body or range).
    Nothing,
}

/// Number of bytes requested, relative to an object of `size` bytes.
fn wanted(size: u64, offset: u64, len: Option<u64>) -> u64 {
    let left = size.saturating_sub(offset);
    len.map_or(left, |len| len.min(left))
}

/// Determines which version the body `seen` of object `key` of key set `keyset` is. `len` is the length of
/// the requested range, `None` for a whole object.
#[must_use]
pub fn identify(
    register: &Register,
    arena: &Arena,
    (keyset, key): (u16, u64),
    seen: &Seen,
    len: Option<u64>,
    mark: ReadMark,
) -> Identity {
    let id = arena.content_id(keyset, key);
    let name = |trace: ContentTrace| {
        trace.version.or_else(|| {
            let start = trace.start?;
            versions(register).find(|&version| arena.start(id, version) == start)
        })
    };
    if let Some(at) = seen.bad {
        let other_run = seen.foreign.is_some_and(|stamp| stamp.id == id);
        if other_run && at == 0 {
            return Identity::OtherRun;
        }
        return Identity::Corrupt {
            first: name(seen.head),
            at,
        };
    }
    if let Some((at, trace)) = seen.turn {
        return Identity::Torn {
            first: name(seen.head),
            then: name(trace),
            at,
        };
    }
    let size_of = |version| match register.mutation(version)?.state {
        State::Object { size } => Some(size),
        State::Absent => None,
    };
    if !seen.is_identified() {
        return short(register, arena, (keyset, key), seen, len, mark);
    }
    let Some(version) = name(seen.head) else {
        return Identity::Corrupt {
            first: None,
            at: seen.offset,
        };
    };
    match size_of(version) {
        Some(size) if seen.bytes != wanted(size, seen.offset, len) => Identity::Torn {
            first: Some(version),
            then: None,
            at: seen.offset + seen.bytes.min(wanted(size, seen.offset, len)),
        },
        _ => Identity::Version(version),
    }
}

/// The remembered versions, newest first, then those before them.
fn versions(register: &Register) -> impl Iterator<Item = u32> {
    let first = register.begun().saturating_sub(TRIED);
    let remembered = register.history().iter().rev().map(|m| m.version);
    remembered.chain((first..=register.begun()).rev())
}

/// Identifies a body that is too short to identify itself.
fn short(
    register: &Register,
    arena: &Arena,
    (keyset, key): (u16, u64),
    seen: &Seen,
    len: Option<u64>,
    mark: ReadMark,
) -> Identity {
    let mut older = None;
    for mutation in register.history().iter().rev() {
        let State::Object { size } = mutation.state else {
            continue;
        };
        let content = arena.content(keyset, key, mutation.version, size);
        let fits = seen.bytes == wanted(size, seen.offset, len)
            && content.verify(seen.offset, seen.sample()).is_ok();
        if fits && register.rule_version(mutation.version, mark) == Ruling::Allowed {
            return Identity::Version(mutation.version);
        }
        if fits {
            older.get_or_insert(mutation.version);
        }
    }
    if let Some(version) = older {
        return Identity::Version(version);
    }
    if seen.bytes == 0 {
        // An empty body that no version explains was truncated to nothing, unless the range lies beyond an
        // object that has been forgotten.
        let first = register.missed(mark).map(|m| m.version);
        return match (first, len) {
            (Some(_), None) => Identity::Torn {
                first,
                then: None,
                at: seen.offset,
            },
            _ => Identity::Nothing,
        };
    }
    // Forgotten versions; the received bytes are assumed to be their full size.
    let end = seen.offset + seen.bytes;
    let known = |version| register.mutation(version).is_some();
    let forgotten = versions(register).filter(|&version| !known(version));
    for version in forgotten {
        let content = arena.content(keyset, key, version, end);
        if content.verify(seen.offset, seen.sample()).is_ok() {
            return Identity::Version(version);
        }
    }
    Identity::Corrupt {
        first: None,
        at: seen.offset,
    }
}
