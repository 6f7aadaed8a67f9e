//! Identifies the bytes of a body without knowing which version to expect.
//!
//! ```text
//! object offset 0        256 KiB            512 KiB
//!               |stamp|bytes … |stamp|by╳tes … |
//!                 │              │       └ differs: looked up in the arena (15 bytes suffice)
//!                 └ version ─────┴ if the version is the same, compare the bytes with its stream
//! ```
//!
//! An [`Inspector`] is fed a body piece by piece and fills a [`Seen`]: the version the body starts with, the
//! offset where another version begins and the offset of the first bytes that nobody wrote. The inspector
//! stores only a window of 32 bytes, allocates nothing and compares each byte once.

use crate::payload::{Arena, STAMP_INTERVAL, STAMP_LEN, Stamp};

/// Bytes to collect before searching the arena: two whole words at any alignment.
const WINDOW: usize = 24;
/// The fewest bytes that are sure to contain a whole word.
const LEAST: usize = 15;

/// What identifies part of a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContentTrace {
    /// The version, if a stamp names it.
    pub version: Option<u32>,
    /// The arena offset that the content starts from ([`Arena::start`]).
    pub start: Option<u64>,
}

/// Findings about a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Object offset of the first byte.
    pub offset: u64,
    /// Bytes received.
    pub bytes: u64,
    /// What the body starts with.
    pub head: ContentTrace,
    /// Where other content of the same object begins, and which.
    pub turn: Option<(u64, ContentTrace)>,
    /// Offset of the first bytes that belong to no version of the object.
    pub bad: Option<u64>,
    /// A stamp of another object or another run, found at offset `bad`.
    pub foreign: Option<Stamp>,
    /// The first bytes, for bodies too short to identify themselves.
    sample: [u8; STAMP_LEN],
}

impl Seen {
    /// The first bytes of the body, at most 32.
    #[must_use]
    pub fn sample(&self) -> &[u8] {
        let len = usize::try_from(self.bytes).unwrap_or(usize::MAX);
        &self.sample[..len.min(STAMP_LEN)]
    }

    /// Whether the body itself reveals its version.
    #[must_use]
    pub const fn is_identified(&self) -> bool {
        self.head.version.is_some() || self.head.start.is_some()
    }
}

/// Inspects a body of one object.
#[derive(Clone, Copy, Debug)]
pub struct Inspector<'a> {
    arena: &'a Arena,
    id: u64,
    /// Object offset of the next byte.
    at: u64,
    /// Start of the content that the bytes are compared with.
    stream: Option<u64>,
    /// Bytes of a stamp, or of the window to look up.
    window: [u8; STAMP_LEN],
    filled: usize,
    /// Object offset of the window's first byte.
    window_at: u64,
    seen: Seen,
    done: bool,
}

impl<'a> Inspector<'a> {
    /// Inspects a body of object `key` of key set `keyset` that starts at object offset `offset`.
    #[must_use]
    pub fn new(arena: &'a Arena, keyset: u16, key: u64, offset: u64) -> Self {
        Self {
            arena,
            id: arena.content_id(keyset, key),
            at: offset,
            stream: None,
            window: [0; STAMP_LEN],
            filled: 0,
            window_at: offset,
            seen: Seen {
                offset,
                bytes: 0,
                head: ContentTrace::default(),
                turn: None,
                bad: None,
                foreign: None,
                sample: [0; STAMP_LEN],
            },
            done: false,
        }
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        if (self.seen.bytes as usize) < STAMP_LEN {
            let at = self.seen.bytes as usize;
            let n = bytes.len().min(STAMP_LEN - at);
            self.seen.sample[at..at + n].copy_from_slice(&bytes[..n]);
        }
        self.seen.bytes += bytes.len() as u64;
        while !bytes.is_empty() && !self.done {
            let inside = self.at % STAMP_INTERVAL;
            let n = if inside < STAMP_LEN as u64 {
                self.stamp_bytes(bytes, inside as usize)
            } else {
                self.content_bytes(bytes, inside)
            };
            bytes = &bytes[n..];
            self.at += n as u64;
        }
    }

    /// Returns the findings; call it once the body is complete.
    #[must_use]
    pub fn finish(mut self) -> Seen {
        if !self.done {
            let inside = (self.at % STAMP_INTERVAL) as usize;
            if inside > 0 && inside < STAMP_LEN && self.filled == inside {
                self.part_of_stamp(inside);
            } else if self.stream.is_none() {
                self.unresolved();
            }
        }
        self.seen
    }

    /// Consumes bytes of a stamp, starting `inside` bytes into it.
    fn stamp_bytes(&mut self, bytes: &[u8], inside: usize) -> usize {
        let n = bytes.len().min(STAMP_LEN - inside);
        if inside == 0 {
            if self.stream.is_none() && self.filled > 0 {
                self.unresolved();
                if self.done {
                    return n;
                }
            }
            self.filled = 0;
            self.window_at = self.at;
        }
        // A range that starts inside a stamp reveals nothing before the stamp's end.
        if self.filled == inside {
            self.window[inside..inside + n].copy_from_slice(&bytes[..n]);
            self.filled += n;
        }
        if inside + n == STAMP_LEN {
            if self.filled == STAMP_LEN {
                self.stamp();
            }
            self.filled = 0;
        }
        n
    }

    /// Evaluates a complete stamp.
    fn stamp(&mut self) {
        let Some(stamp) = Stamp::parse(&self.window) else {
            return self.is_bad(self.window_at);
        };
        let offset = u64::from(stamp.number) * STAMP_INTERVAL;
        if stamp.id != self.id || stamp.generation != self.arena.generation() {
            self.seen.foreign = Some(stamp);
            return self.is_bad(self.window_at);
        }
        if offset != self.window_at {
            return self.is_bad(self.window_at);
        }
        let trace = ContentTrace {
            version: Some(stamp.version),
            start: Some(self.arena.start(self.id, stamp.version)),
        };
        if self.stream.is_some() && self.stream == trace.start {
            let current = match &mut self.seen.turn {
                Some((_, turn)) => turn,
                None => &mut self.seen.head,
            };
            current.version = trace.version;
        } else {
            self.turns(self.window_at, trace);
        }
    }

    /// Compares content bytes up to the next stamp, or collects them to identify the stream.
    fn content_bytes(&mut self, bytes: &[u8], inside: u64) -> usize {
        let left = usize::try_from(STAMP_INTERVAL - inside).unwrap_or(usize::MAX);
        let bytes = &bytes[..bytes.len().min(left)];
        let Some(start) = self.stream else {
            return self.search(bytes);
        };
        let want = self.arena.slice(start, self.at, bytes.len());
        if bytes == want {
            return bytes.len();
        }
        let same = bytes.iter().zip(want).take_while(|(a, b)| a == b).count();
        self.stream = None;
        self.filled = 0;
        same
    }

    /// Collects a window of bytes and looks it up in the arena.
    fn search(&mut self, bytes: &[u8]) -> usize {
        if self.filled == 0 {
            self.window_at = self.at;
        }
        let n = bytes.len().min(WINDOW - self.filled);
        self.window[self.filled..self.filled + n].copy_from_slice(&bytes[..n]);
        self.filled += n;
        if self.filled == WINDOW {
            self.resolve();
        }
        n
    }

    /// Looks up the window in the arena.
    fn resolve(&mut self) {
        let window = &self.window[..self.filled];
        self.filled = 0;
        let position = self.arena.locate(window);
        let start = position.map(|at| at.wrapping_sub(self.window_at) & (Arena::PERIOD - 1));
        let current = self.seen.turn.map_or(self.seen.head, |(_, trace)| trace);
        match start {
            Some(start) if current.start != Some(start) => {
                let version = None;
                let start = Some(start);
                self.turns(self.window_at, ContentTrace { version, start });
            }
            // Either not our content, or a few wrong bytes in the same stream.
            _ => self.is_bad(self.window_at),
        }
    }

    /// Handles a search that ends before the window is full.
    fn unresolved(&mut self) {
        let begun = self.seen.is_identified();
        if self.filled >= LEAST {
            self.resolve();
        } else if begun && self.filled > 0 {
            // Too few bytes to identify, but they differ from the version before them.
            self.is_bad(self.window_at);
        }
    }

    /// Handles a body that ends inside a stamp, after `len` of its bytes.
    fn part_of_stamp(&mut self, len: usize) {
        let current = self.seen.turn.map_or(self.seen.head, |(_, trace)| trace);
        let Some(version) = current.version else {
            return;
        };
        let want = Stamp {
            version,
            id: self.id,
            number: (self.window_at / STAMP_INTERVAL) as u32,
            generation: self.arena.generation(),
        };
        if self.window[..len] != want.to_bytes()[..len] {
            self.is_bad(self.window_at);
        }
    }

    /// Notes that the body holds `trace` from object offset `at`.
    fn turns(&mut self, at: u64, trace: ContentTrace) {
        self.stream = trace.start;
        if !self.seen.is_identified() {
            self.seen.head = trace;
        } else if self.seen.turn.is_none() {
            self.seen.turn = Some((at, trace));
        } else {
            // A third version adds nothing to the finding.
            self.done = true;
        }
    }

    fn is_bad(&mut self, at: u64) {
        self.seen.bad = Some(at);
        self.done = true;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Inspector, Seen};
    use crate::payload::{Arena, PayloadKind, STAMP_INTERVAL};

    fn arena() -> &'static Arena {
        static ARENA: std::sync::OnceLock<Arena> = std::sync::OnceLock::new();
        ARENA.get_or_init(|| Arena::new(PayloadKind::Random, 5).with_generation(77))
    }

    fn bytes(arena: &Arena, version: u32, size: usize) -> Vec<u8> {
        let mut all = vec![0; size];
        arena.content(1, 42, version, size as u64).fill(0, &mut all);
        all
    }

    fn inspect(arena: &Arena, offset: usize, body: &[u8], piece: usize) -> Seen {
        let mut inspector = Inspector::new(arena, 1, 42, offset as u64);
        body.chunks(piece.max(1)).for_each(|p| inspector.feed(p));
        inspector.finish()
    }

    #[test]
    fn foreign_bodies_are_named() {
        let arena = arena();
        let mut other = vec![0; 1000];
        arena.content(1, 43, 2, 1000).fill(0, &mut other);
        let seen = inspect(arena, 0, &other, 100);
        assert_eq!(seen.bad, Some(0));
        assert_eq!(seen.foreign.unwrap().id, arena.content_id(1, 43));
        let seen = inspect(arena, 0, &[0; 1000], 1000);
        assert_eq!((seen.bad, seen.foreign), (Some(0), None));
        let older = Arena::new(PayloadKind::Random, 5).with_generation(76);
        let seen = inspect(arena, 0, &bytes(&older, 1, 100), 1000);
        assert_eq!(seen.foreign.unwrap().generation, 76);
    }

    #[test]
    fn tiny_bodies_keep_a_sample() {
        let arena = arena();
        let body = bytes(arena, 3, 20);
        let seen = inspect(arena, 0, &body, 7);
        assert!(!seen.is_identified() && seen.bad.is_none());
        assert_eq!(seen.sample(), body);
    }

    proptest! {
        #[test]
        fn whole_bodies_name_their_version(version in any::<u32>(), size in 32usize..900_000, piece in 1usize..300_000) {
            let arena = arena();
            let seen = inspect(arena, 0, &bytes(arena, version, size), piece);
            prop_assert_eq!(seen.head.version, Some(version));
            prop_assert_eq!((seen.bytes, seen.turn, seen.bad), (size as u64, None, None));
        }

        #[test]
        fn ranges_reveal_their_start(version in any::<u32>(), at in 0usize..800_000, len in 64usize..400_000, piece in 1usize..9_000) {
            let arena = arena();
            let body = &bytes(arena, version, 1_300_000)[at..at + len];
            let seen = inspect(arena, at, body, piece);
            let start = arena.start(arena.content_id(1, 42), version);
            prop_assert_eq!(seen.head.start, Some(start));
            prop_assert_eq!((seen.turn, seen.bad), (None, None));
        }

        #[test]
        fn mixed_bodies_show_where_the_version_changes(old in any::<u32>(), new in any::<u32>(), size in 200usize..900_000, cut in 0.2f64..0.8, piece in 1usize..300_000) {
            prop_assume!(old != new);
            let arena = arena();
            let (old, mut body) = (bytes(arena, old, size), bytes(arena, new, size));
            let cut = (cut * size as f64) as usize;
            // A cut inside a stamp, or a few bytes before one, appears as bytes that nobody wrote.
            let inside = cut as u64 % STAMP_INTERVAL;
            prop_assume!((32..STAMP_INTERVAL - 64).contains(&inside));
            body[cut..].copy_from_slice(&old[cut..]);
            let seen = inspect(arena, 0, &body, piece);
            prop_assert_eq!(seen.head.version, Some(new));
            prop_assert_eq!(seen.bad, None);
            let (at, trace) = seen.turn.unwrap();
            // Single bytes of two versions may be equal by chance.
            prop_assert!((cut..cut + 4).contains(&(at as usize)), "{at} {cut}");
            prop_assert!(trace.start.is_some());
        }

        #[test]
        fn wrong_bytes_are_found(version in any::<u32>(), size in 64usize..600_000, flip in 0.0f64..1.0, piece in 1usize..300_000) {
            let arena = arena();
            let mut body = bytes(arena, version, size);
            let at = ((flip * size as f64) as usize).min(size - 1);
            body[at] ^= 0x10;
            let seen = inspect(arena, 0, &body, piece);
            let bad = seen.bad.unwrap();
            // Inside a stamp the whole stamp is wrong.
            prop_assert!(bad <= at as u64 && at as u64 - bad < 32, "{bad} {at}");
        }

        #[test]
        fn any_bytes_are_safe(body in proptest::collection::vec(any::<u8>(), 0..2_000), offset in 0usize..600_000, piece in 1usize..500) {
            let _ = inspect(arena(), offset, &body, piece);
        }
    }
}
