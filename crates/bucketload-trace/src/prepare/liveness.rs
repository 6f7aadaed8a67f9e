//! Determines which objects must exist before a replay, their sizes, and which requests meet an absent object
//! (docs/spec/traces.md section 5.1 and 5.3).
//!
//! Records are partitioned by key and sorted by time. Each partition is read twice: the first pass collects facts about
//! each key over the whole trace, the second pass walks through its history and completes the records. Partitions with
//! too many keys for the memory are split.

mod complete;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use bucketload_core::generate::rng::mix64;
use bucketload_core::trace::TraceOp;

use super::options::PrepareOptions;
use super::sketch::SizeSketch;
use super::summary::SizeSources;
use crate::error::TraceError;
use crate::hash::first64;
use crate::named_record::NamedRecord;
use crate::parsed::DropReason;
use crate::spill::{Spill, Stream};

/// Maximum number of key histories in memory: some 25 MiB.
const MAX_KEYS: usize = 120_000;
/// Number of parts into which a partition is split.
const SPLIT_PARTS: usize = 16;

/// Hashes keys by their own bytes, which are uniform hashes already.
#[derive(Default)]
struct PassThroughHasher(u64);

impl Hasher for PassThroughHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 ^= u64::from_le_bytes(word);
        }
    }

    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        mix64(self.0)
    }
}

type KeyHistories = HashMap<[u8; 16], KeyHistory, BuildHasherDefault<PassThroughHasher>>;

/// Whether an object exists at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Presence {
    #[default]
    Unknown,
    Exists,
    Absent,
}

/// The source of a size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SizeOrigin {
    #[default]
    None,
    Record,
    Key,
    Extent,
    Sent,
    Drawn,
    Default,
}

/// The collected facts about a key.
#[derive(Clone, Debug, Default)]
struct KeyHistory {
    /// Any known size plus 1; 0 if unknown.
    known: u64,
    /// Furthest byte read.
    extent: u64,
    /// Maximum number of bytes sent for a read of the whole object, plus 1.
    sent: u64,
    /// Largest known size before the first write in the window, plus 1.
    initial: u64,
    /// Whether a request in the window has written or deleted the object.
    mutated: bool,
    /// Whether a request in the window changes the object or copies from it.
    changed: bool,
    /// Whether a request with evidence has been seen.
    decided: bool,
    /// Whether the object must exist when the window begins.
    preload: bool,
    /// The state before the window, and during the second pass the current state.
    state: Presence,
    size: u64,
    source: SizeOrigin,
    /// End of the last range, for sequential placement.
    cursor: u64,
    /// Open uploads: id, bytes so far, largest part.
    uploads: Vec<(u64, u64, u64)>,
    requests: u64,
}

/// What a response says about the object's existence.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Evidence {
    /// Success.
    There,
    /// The log has no status.
    Silent,
    /// 404.
    Missing,
    /// Another failure.
    None,
}

fn evidence(status: u16) -> Evidence {
    match status {
        0 => Evidence::Silent,
        1..400 => Evidence::There,
        404 => Evidence::Missing,
        _ => Evidence::None,
    }
}

/// Whether an operation creates or replaces an object.
fn creates(op: TraceOp) -> bool {
    matches!(op, TraceOp::Put | TraceOp::Copy | TraceOp::MpuComplete)
}

fn deletes(op: TraceOp) -> bool {
    matches!(op, TraceOp::Delete | TraceOp::MultiDelete)
}

fn reads(op: TraceOp) -> bool {
    matches!(op, TraceOp::Get | TraceOp::Head)
}

/// The results of the analysis.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    pub(crate) keys: u64,
    pub(crate) preload_objects: u64,
    pub(crate) preload_bytes: u64,
    pub(crate) inserted: u64,
    pub(crate) clamped: u64,
    pub(crate) sizes: SizeSources,
    pub(crate) dropped: [u64; DropReason::ALL.len()],
    pub(crate) changes_population: bool,
    /// Requests of the most frequent keys, at most ten, most frequent first.
    pub(crate) top: Vec<u64>,
}

/// The analysis of all partitions.
pub(crate) struct Liveness<'o> {
    options: &'o PrepareOptions,
    law: &'o SizeSketch,
    /// The window, in absolute instants.
    window: (i64, i64),
    pub(crate) found: Findings,
    /// The completed records: one sorted stream per partition.
    pub(crate) out: Spill,
    pub(crate) streams: Vec<Stream>,
    /// The objects that must exist, as write records.
    pub(crate) preload: Stream,
    /// Whether a size had to be guessed without any known sizes.
    no_size: bool,
    /// Number of hash bits that selected the partition.
    bits: u32,
}

impl<'o> Liveness<'o> {
    pub(crate) fn new(
        options: &'o PrepareOptions,
        law: &'o SizeSketch,
        window: (i64, i64),
        bits: u32,
    ) -> Result<Self, TraceError> {
        Ok(Self {
            options,
            law,
            window,
            found: Findings::default(),
            out: Spill::for_streams(&options.temp, 1 << bits)?,
            streams: Vec::new(),
            preload: Stream::default(),
            no_size: false,
            bits,
        })
    }

    /// Analyses one partition; `level` is the number of splits so far.
    pub(crate) fn partition(
        &mut self,
        spill: &Spill,
        stream: &Stream,
        level: u32,
    ) -> Result<(), TraceError> {
        let mut keys = KeyHistories::default();
        let mut reader = spill.read(stream);
        let mut rec = NamedRecord::default();
        while reader.next(&mut rec)? {
            // After ten splits, keys of a partition share at least 46 bits of their hash, so they are few.
            if keys.len() == MAX_KEYS && level < 10 && !keys.contains_key(&rec.key_id) {
                drop((keys, reader));
                return self.split(spill, stream, level);
            }
            self.learn(keys.entry(rec.key_id).or_default(), &rec);
        }
        self.found.keys += keys.values().filter(|key| key.requests > 0).count() as u64;
        for (id, key) in &mut keys {
            self.begin(id, key);
        }
        let mut out = Stream::default();
        let mut reader = spill.read(stream);
        while reader.next(&mut rec)? {
            if let Some(key) = keys.get_mut(&rec.key_id) {
                self.walk(key, &mut rec, &mut out)?;
            }
        }
        self.out.finish(&mut out)?;
        if out.records > 0 {
            self.streams.push(out);
        }
        let top = &mut self.found.top;
        top.extend(keys.values().map(|key| key.requests).filter(|&n| n > 0));
        top.sort_unstable_by(|a, b| b.cmp(a));
        top.truncate(10);
        if self.no_size {
            return Err(TraceError::Option(
                "some sizes are unknown, and no record has a size to draw them from: give \
                 --default-size"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    fn split(&mut self, spill: &Spill, stream: &Stream, level: u32) -> Result<(), TraceError> {
        let mut parts: Vec<Stream> = vec![Stream::default(); SPLIT_PARTS];
        let mut into = Spill::new(&self.options.temp)?;
        let mut reader = spill.read(stream);
        let mut rec = NamedRecord::default();
        while reader.next(&mut rec)? {
            // The highest bits selected the partition.
            let shift = 64 - self.bits - 4 * (level + 1);
            let part = first64(&rec.key_id) >> shift & (SPLIT_PARTS as u64 - 1);
            into.push(&mut parts[part as usize], &rec)?;
        }
        for part in &mut parts {
            into.finish(part)?;
        }
        parts
            .iter()
            .try_for_each(|part| self.partition(&into, part, level + 1))
    }

    /// First pass: collects the facts about the key over the whole trace.
    fn learn(&self, key: &mut KeyHistory, rec: &NamedRecord) {
        let r = &rec.base;
        if r.ts_ns >= self.window.1 {
            return;
        }
        let inside = r.ts_ns >= self.window.0;
        let seen = evidence(r.status);
        let ok = matches!(seen, Evidence::There | Evidence::Silent);
        let size = self.size_of(key, rec);
        if size > 0 && ok {
            key.known = if key.known > 0 { key.known } else { size };
            if !key.mutated {
                key.initial = key.initial.max(size);
            }
        }
        if r.op == TraceOp::Get && ok {
            let end = r.off.max(0).saturating_add(r.len.max(0)) as u64;
            if r.len > 0 {
                key.extent = key.extent.max(end);
            } else if rec.sent >= 0 {
                key.sent = key.sent.max(rec.sent as u64 + 1);
            }
        }
        key.changed |= inside && (rec.ghost || creates(r.op) || deletes(r.op));
        if rec.ghost {
            self.decide(key, seen, true, inside);
            return;
        }
        key.requests += if inside { u64::from(r.repeat) } else { 0 };
        if reads(r.op) {
            self.decide(key, seen, true, inside);
        } else if creates(r.op) && ok {
            self.decide(key, seen, false, inside);
            key.mutated = true;
            if !inside {
                (key.state, key.initial, key.mutated) = (Presence::Exists, size, false);
            }
        } else if deletes(r.op) && ok {
            self.decide(key, seen, true, inside);
            key.mutated = true;
            if !inside {
                (key.state, key.initial, key.mutated) = (Presence::Absent, 0, false);
            }
        }
    }

    /// The record's own size plus 1, or the sum of the parts of its upload plus 1; 0 if unknown.
    fn size_of(&self, key: &mut KeyHistory, rec: &NamedRecord) -> u64 {
        let r = &rec.base;
        match r.op {
            TraceOp::MpuPart => {
                let part = r.size.max(0) as u64;
                if let Some(open) = key.uploads.iter_mut().find(|open| open.0 == r.upload) {
                    open.1 += part;
                    open.2 = open.2.max(part);
                } else {
                    // Uploads that are never completed must not accumulate.
                    if key.uploads.len() >= 64 {
                        key.uploads.remove(0);
                    }
                    key.uploads.push((r.upload, part, part));
                }
                0
            }
            TraceOp::MpuComplete => {
                let open = key.uploads.iter().position(|open| open.0 == r.upload);
                let (_, bytes, _) = open.map(|at| key.uploads[at]).unwrap_or_default();
                if open.is_some() && bytes > 0 {
                    bytes + 1
                } else {
                    (r.size + 1).max(0) as u64
                }
            }
            TraceOp::Get | TraceOp::Head | TraceOp::Put | TraceOp::Copy => {
                (r.size + 1).max(0) as u64
            }
            _ => 0,
        }
    }

    /// The first request with evidence tells whether the object existed at the start of the window.
    fn decide(&self, key: &mut KeyHistory, seen: Evidence, needs: bool, inside: bool) {
        if !inside {
            match seen {
                Evidence::There if needs => key.state = Presence::Exists,
                Evidence::Missing => key.state = Presence::Absent,
                _ => {}
            }
            return;
        }
        if key.decided || seen == Evidence::None {
            return;
        }
        key.decided = true;
        match (key.state, seen) {
            (Presence::Unknown, Evidence::Missing) => key.state = Presence::Absent,
            (Presence::Unknown, _) if needs => key.preload = true,
            (Presence::Exists, Evidence::Missing) => {}
            (Presence::Exists, _) => key.preload = true,
            // Deleted before the window, or created by this request.
            _ => {}
        }
    }

    /// Between the passes: sets the state of the key at the start of the window.
    fn begin(&mut self, id: &[u8; 16], key: &mut KeyHistory) {
        key.uploads.clear();
        (key.size, key.source) = if key.initial > 0 || key.known > 0 {
            let size = if key.initial > 0 {
                key.initial
            } else {
                key.known
            };
            ((size - 1).max(key.extent), SizeOrigin::Key)
        } else if key.extent > 0 {
            (
                key.extent.max(key.sent.saturating_sub(1)),
                SizeOrigin::Extent,
            )
        } else if key.sent > 0 {
            (key.sent - 1, SizeOrigin::Sent)
        } else {
            (0, SizeOrigin::None)
        };
        if key.source == SizeOrigin::None && key.requests > 0 {
            self.guess(id, key);
        }
        if key.preload {
            key.state = Presence::Exists;
        } else if key.state == Presence::Exists {
            // The object existed before the window, but in the window it is only overwritten or was found missing.
            key.state = Presence::Unknown;
        }
    }

    fn guess(&mut self, id: &[u8; 16], key: &mut KeyHistory) {
        // Always the same quantile for a key: 53 bits of its hash.
        let u = (mix64(first64(id) ^ self.options.seed) >> 11) as f64 / (1u64 << 53) as f64;
        (key.size, key.source) = match (self.law.quantile(u), self.options.default_size) {
            (Some(size), _) => (size, SizeOrigin::Drawn),
            (None, Some(size)) => (size, SizeOrigin::Default),
            (None, None) => (0, SizeOrigin::None),
        };
    }
}
