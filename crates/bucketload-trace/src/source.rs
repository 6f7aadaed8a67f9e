//! Reads a canonical trace for a replay: scaled, multiplied, looped, with renamed buckets (docs/spec/traces.md
//! sections 4.3 and 4.4).
//!
//! ```text
//! canonical file ─┬─ copy 1 ─ lap 0, lap 1, … ─┐
//!                 ├─ copy 2, later ────────────┼─ merge by time ─▶ batches
//!                 └─ …                         ┘
//! ```
//!
//! Keys get the name of their bucket as a prefix (`bucket/key`), so that one target bucket can hold all keys of the
//! trace.

use std::collections::BTreeMap;

use bucketload_core::generate::rng::mix64;
use bucketload_core::trace::{
    Batch, RecordStream, TraceError as CoreError, TraceOp, TraceSource, key_hash,
};

use crate::canonical::{CanonicalStream, CanonicalTrace};
use crate::error::TraceError;
use crate::named_record::NamedRecord;

/// Maximum number of copies: each copy needs its own reader.
pub const MAX_COPIES: u32 = 64;

/// How a canonical trace is replayed.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceOptions {
    /// Number of passes finished the trace, at least 1.
    pub laps: u32,
    /// Keys of later laps.
    pub lap_keys: LapKeys,
    /// Number of copies of the trace with separate keys, 1 to [`MAX_COPIES`].
    pub copies: u32,
    /// Factor on sizes, offsets and lengths.
    pub size_factor: f64,
    /// Bounds of sizes after scaling, bytes; sizes of 0 stay 0.
    pub size_bounds: (u64, u64),
    /// New bucket names by old ones.
    pub rename: BTreeMap<String, String>,
    /// Seed of the copies' offsets in time.
    pub seed: u64,
}

impl Default for SourceOptions {
    fn default() -> Self {
        Self {
            laps: 1,
            lap_keys: LapKeys::Suffix,
            copies: 1,
            size_factor: 1.0,
            size_bounds: (0, u64::MAX),
            rename: BTreeMap::new(),
            seed: 1,
        }
    }
}

/// Keys of later laps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LapKeys {
    /// Objects that the trace creates, overwrites or deletes get new names in each lap; the laps share the others.
    Suffix,
    /// The same names: writes become overwrites, and objects deleted in one lap are missing in the next.
    Reuse,
}

/// A trace with its replay options.
#[derive(Clone, Debug)]
pub struct Replay {
    trace: CanonicalTrace,
    options: SourceOptions,
    /// Key prefix `bucket/` of each bucket number.
    prefixes: Vec<Vec<u8>>,
    lap_ns: i64,
}

impl Replay {
    /// Makes a replay of `trace` with `options`.
    ///
    /// # Errors
    /// When an option is out of range or names a bucket that is not in the trace.
    pub fn new(trace: CanonicalTrace, options: SourceOptions) -> Result<Self, TraceError> {
        let wrong = |text: String| Err(TraceError::Option(text));
        if options.laps == 0 {
            return wrong("use at least one lap".to_owned());
        }
        if !(1..=MAX_COPIES).contains(&options.copies) {
            return wrong(format!("{} copies: use 1 to {MAX_COPIES}", options.copies));
        }
        if !(options.size_factor.is_finite() && options.size_factor > 0.0) {
            return wrong(format!(
                "sizes * {}: use a factor above 0",
                options.size_factor
            ));
        }
        let summary = trace.summary();
        for name in options.rename.keys() {
            if !summary.buckets.contains(name) {
                let known = summary.buckets.join(", ");
                return wrong(format!("the trace has no bucket {name:?}; it has {known}"));
            }
        }
        let prefix = |name: &String| {
            let name = options.rename.get(name).unwrap_or(name);
            if name.is_empty() {
                Vec::new()
            } else {
                format!("{name}/").into_bytes()
            }
        };
        let prefixes = summary.buckets.iter().map(prefix).collect();
        // The next lap begins one mean gap after the last record.
        let gaps = summary.records.saturating_sub(1).max(1);
        let gap = summary.span_ns / i64::try_from(gaps).unwrap_or(i64::MAX);
        let lap_ns = summary.span_ns.saturating_add(gap.max(1));
        Ok(Self {
            trace,
            options,
            prefixes,
            lap_ns,
        })
    }

    /// The trace.
    #[must_use]
    pub fn trace(&self) -> &CanonicalTrace {
        &self.trace
    }

    /// Time from the start of one lap to the start of the next, nanoseconds.
    #[must_use]
    pub fn lap_ns(&self) -> i64 {
        self.lap_ns
    }

    /// Number of requests finished all laps and copies.
    #[must_use]
    pub fn requests(&self) -> u64 {
        let summary = self.trace.summary();
        summary.requests * u64::from(self.options.laps) * u64::from(self.options.copies)
    }

    /// Time of the last record finished all laps and copies, nanoseconds since the first.
    #[must_use]
    pub fn span_ns(&self) -> i64 {
        let last = (0..self.options.copies)
            .map(|copy| self.offset_ns(copy))
            .max()
            .unwrap_or(0);
        let laps = i64::from(self.options.laps - 1);
        last + self.lap_ns.saturating_mul(laps) + self.trace.summary().span_ns
    }

    /// Start of a copy: 0 for the first, a random instant in [0, min(1 h, span / 10)) for the others.
    fn offset_ns(&self, copy: u32) -> i64 {
        const HOUR: i64 = 3_600_000_000_000;
        let max = HOUR.min(self.trace.summary().span_ns / 10) as u64;
        if copy == 0 || max == 0 {
            return 0;
        }
        (mix64(mix64(self.options.seed) ^ u64::from(copy)) % max) as i64
    }

    fn scaled(&self, value: i64) -> i64 {
        if value <= 0 || self.options.size_factor == 1.0 {
            return value;
        }
        (value as f64 * self.options.size_factor).round() as i64
    }

    /// Changes a record of the trace into a record of `copy` in `lap`.
    fn shape(&self, rec: &mut NamedRecord, copy: u32, lap: u32) {
        let r = &mut rec.base;
        r.ts_ns = r
            .ts_ns
            .saturating_add(self.lap_ns.saturating_mul(i64::from(lap)))
            .saturating_add(self.offset_ns(copy));
        r.lap = lap;
        if r.size > 0 {
            let (min, max) = self.options.size_bounds;
            r.size = (self.scaled(r.size).max(1) as u64).clamp(min, max.max(min)) as i64;
        }
        // For uploads `len` is the part size, for listings the page size: those do not scale.
        if r.op == TraceOp::Get && (r.off > 0 || r.len >= 0) && r.size >= 0 {
            r.off = self.scaled(r.off).min((r.size - 1).max(0));
            if r.len >= 0 {
                r.len = self.scaled(r.len).max(1).min(r.size - r.off);
            }
        }
        let new_names = lap > 0 && self.options.lap_keys == LapKeys::Suffix;
        let suffix = Suffix {
            copy: (self.options.copies > 1).then_some(copy + 1),
            lap: new_names.then_some(lap),
        };
        if lap > 0 && !new_names {
            // The liveness analysis holds only for the first lap.
            r.absent = false;
        }
        let prefix = self
            .prefixes
            .get(r.bucket as usize)
            .map_or(&b""[..], Vec::as_slice);
        let changed = rec.changed;
        if r.op == TraceOp::List {
            rec.key.splice(0..0, prefix.iter().copied());
        } else {
            suffix.apply(&mut rec.key, changed);
            rec.key.splice(0..0, prefix.iter().copied());
        }
        for other in &mut rec.more {
            if r.op == TraceOp::Copy {
                // `other` is the source as bucket/key, whose object counts as changed.
                self.rename_source(other);
                suffix.apply(other, true);
            } else {
                suffix.apply(other, changed);
                other.splice(0..0, prefix.iter().copied());
            }
        }
        // The bucket name is part of the key now.
        r.bucket = 0;
        r.key_hash = key_hash(0, &rec.key);
    }

    fn rename_source(&self, source: &mut Vec<u8>) {
        let (bucket, key) = crate::text::fields::split_at(source, b'/');
        let name = String::from_utf8_lossy(bucket);
        if let Some(new) = self.options.rename.get(name.as_ref()) {
            let key = key.to_vec();
            *source = [new.as_bytes(), &key].join(&b'/');
        }
    }
}

/// Suffixes that keep the keys of copies and laps apart.
struct Suffix {
    copy: Option<u32>,
    lap: Option<u32>,
}

impl Suffix {
    fn apply(&self, key: &mut Vec<u8>, changed: bool) {
        if let Some(copy) = self.copy {
            key.extend_from_slice(format!("#{copy}").as_bytes());
        }
        if let Some(lap) = self.lap
            && changed
        {
            key.extend_from_slice(format!("#lap{lap}").as_bytes());
        }
    }
}

impl TraceSource for Replay {
    fn records(&self) -> Result<Box<dyn RecordStream>, CoreError> {
        let copies = (0..self.options.copies).map(|copy| Copy::new(self, copy));
        let copies = copies.collect::<Result<_, _>>().map_err(core_error)?;
        Ok(Box::new(Records {
            replay: self.clone(),
            copies,
        }))
    }

    fn preload(&self) -> Result<Box<dyn RecordStream>, CoreError> {
        Ok(Box::new(Preload {
            replay: self.clone(),
            input: self.trace.preload().map_err(core_error)?,
            object: NamedRecord::default(),
            next: u32::MAX,
        }))
    }
}

fn core_error(error: TraceError) -> CoreError {
    CoreError(error.to_string())
}

/// One copy of the trace, with its laps.
struct Copy {
    number: u32,
    lap: u32,
    input: CanonicalStream,
    /// The next record, already changed for this copy and lap.
    head: NamedRecord,
    finished: bool,
}

impl Copy {
    fn new(replay: &Replay, number: u32) -> Result<Self, TraceError> {
        let mut copy = Self {
            number,
            lap: 0,
            input: replay.trace.records()?,
            head: NamedRecord::default(),
            finished: false,
        };
        copy.step(replay)?;
        Ok(copy)
    }

    fn step(&mut self, replay: &Replay) -> Result<(), TraceError> {
        while !self.input.next(&mut self.head)? {
            self.lap += 1;
            if self.lap == replay.options.laps {
                self.finished = true;
                return Ok(());
            }
            self.input = replay.trace.records()?;
        }
        replay.shape(&mut self.head, self.number, self.lap);
        Ok(())
    }
}

/// All copies, merged by time.
struct Records {
    replay: Replay,
    copies: Vec<Copy>,
}

impl RecordStream for Records {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool, CoreError> {
        out.clear();
        while !out.is_full() {
            // With few copies, a scan is cheaper than a heap.
            let open = self.copies.iter_mut().filter(|copy| !copy.finished);
            let Some(first) = open.min_by_key(|copy| copy.head.base.ts_ns) else {
                break;
            };
            let rec = &first.head;
            out.push(rec.base, &rec.key, rec.more.iter().map(Vec::as_slice));
            first.step(&self.replay).map_err(core_error)?;
        }
        Ok(!out.is_empty())
    }
}

/// The objects that must exist: for every copy, and for every lap in which their names change.
struct Preload {
    replay: Replay,
    input: CanonicalStream,
    object: NamedRecord,
    /// Index of the object's next name, over laps and copies.
    next: u32,
}

impl RecordStream for Preload {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool, CoreError> {
        out.clear();
        let options = &self.replay.options;
        while !out.is_full() {
            let new_names = self.object.changed && options.lap_keys == LapKeys::Suffix;
            let laps = if new_names { options.laps } else { 1 };
            if self.next >= laps * options.copies {
                if !self.input.next(&mut self.object).map_err(core_error)? {
                    break;
                }
                self.next = 0;
                continue;
            }
            let mut rec = self.object.clone();
            self.replay
                .shape(&mut rec, self.next / laps, self.next % laps);
            (rec.base.ts_ns, rec.base.lap) = (0, 0);
            out.push(rec.base, &rec.key, []);
            self.next += 1;
        }
        Ok(!out.is_empty())
    }
}
