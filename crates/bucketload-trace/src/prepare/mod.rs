//! Converts log files to a canonical file for a replay or a model.
//!
//! ```text
//! import ─▶ sort by time ─▶ dedupe, partition by key ─▶ liveness ─▶ merge by time ─▶ finish ─▶ file
//!           runs on disk     64-1024 streams             per part    streams          instants
//! ```
//!
//! Each step streams, and its memory is bounded: 20 MiB of records to sort, histories of 120,000 keys, 12 MiB of blocks
//! for all streams together.

mod finish;
mod import;
mod liveness;
mod names;
mod options;
mod sketch;
mod summary;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use bucketload_core::trace::TraceOp;

pub use options::{Ambiguous, PrepareOptions, RangePlacement, Sample, SampleBy, Ticks, Untimed};
pub use sketch::SizeSketch;
pub use summary::{FileFacts, RateSeries, RecordedLatency, SizeSources, Summary};

use crate::canonical::{CanonicalTrace, Writer};
use crate::error::TraceError;
use crate::hash::{first64, hash128};
use crate::named_record::NamedRecord;
use crate::parsed::DropReason;
use crate::spill::{Merge, Spill, Stream, reduce};
use finish::{GroupedDeletes, TimedRecords};
use import::{Imported, counts_by_reason, import};
use liveness::{Findings, Liveness};

/// Minimum and maximum number of hash bits that select a key's partition.
const PARTITION_BITS: std::ops::RangeInclusive<u32> = 6..=10;
/// Approximate number of records in a partition: few enough that their keys fit into memory even if few repeat.
const PARTITION_RECORDS: u64 = 200_000;
/// Maximum number of ids remembered within one tick of the clock, to find duplicates.
const IDS_PER_TICK: usize = 65_536;

/// Imports `paths`, merged by time, into the canonical file `out`.
///
/// # Errors
/// When a file cannot be read or written, no format matches, too many lines cannot be parsed, or no record is left.
pub fn prepare(
    paths: &[PathBuf],
    options: &PrepareOptions,
    out: &Path,
) -> Result<CanonicalTrace, TraceError> {
    let mut imported = import(paths, options)?;
    let sorter = std::mem::replace(
        &mut imported.sorter,
        crate::spill::Sorter::new(Spill::new(&options.temp)?),
    );
    let mut parts = Partitions::new(options, sorter.records())?;
    let mut sorted = sorter.finish()?;
    let first_ts = parts.fill(&mut sorted, &mut imported)?;
    drop(sorted);
    let Some(first_ts) = first_ts else {
        let dropped = match counts_by_reason(&imported.dropped, |_| true) {
            none if none.is_empty() => "the input is empty".to_owned(),
            counts => counts,
        };
        return Err(TraceError::Empty(dropped));
    };
    // Records without instants get theirs later, so a window cannot apply.
    let window = match imported.untimed {
        true if options.window != (0, i64::MAX) => {
            return Err(TraceError::Option(
                "a time window needs records with instants".to_owned(),
            ));
        }
        true => (i64::MIN, i64::MAX),
        false => (
            first_ts.saturating_add(options.window.0),
            first_ts.saturating_add(options.window.1),
        ),
    };
    let mut liveness = Liveness::new(options, &imported.law, window, parts.bits)?;
    for stream in &parts.streams {
        liveness.partition(&parts.spill, stream, 0)?;
    }
    drop(parts);
    let Liveness {
        found,
        out: mut spill,
        mut streams,
        mut preload,
        ..
    } = liveness;
    spill.finish(&mut preload)?;
    let total = streams.iter().map(|stream| stream.records).sum();
    reduce(&mut spill, &mut streams)?;
    let grouped = || GroupedDeletes::new(Merge::new(&spill, &streams)?);
    let mut timed = TimedRecords::new(
        grouped()?,
        grouped()?,
        options.ticks,
        imported.resolution_ns,
        options.untimed.filter(|_| imported.untimed),
        total,
        options.seed,
    )?;
    let top: u64 = found.top.iter().sum();
    let mut summary = summary_of(imported, found, options, first_ts);
    let mut writer = Writer::create(out)?;
    let mut rec = NamedRecord::default();
    let mut origin = None;
    let mut durations: BTreeMap<u8, SizeSketch> = BTreeMap::new();
    while timed.next(&mut rec)? {
        let origin = *origin.get_or_insert(rec.base.ts_ns);
        rec.base.ts_ns = (rec.base.ts_ns - origin).max(summary.span_ns);
        summary.span_ns = rec.base.ts_ns;
        count(&mut summary, &rec);
        if rec.base.dur_ns >= 0 {
            durations
                .entry(rec.base.op as u8)
                .or_default()
                .add(rec.base.dur_ns as u64);
        }
        writer.push(&rec)?;
    }
    if summary.records == 0 {
        return Err(TraceError::Empty(describe(&summary)));
    }
    summary.first_ts_ns = origin.unwrap_or(first_ts);
    summary.top10_replayed = top as f64 / summary.requests as f64;
    summary.recorded_latency = durations
        .iter()
        .filter_map(|(op, sketch)| {
            let op = TraceOp::from_number(*op)?;
            Some((op.name().to_owned(), latency(sketch)))
        })
        .collect();
    writer.begin_preload()?;
    let mut reader = spill.read(&preload);
    while reader.next(&mut rec)? {
        writer.push(&rec)?;
    }
    writer.finish(&summary)?;
    CanonicalTrace::open(out)
}

fn latency(sketch: &SizeSketch) -> RecordedLatency {
    RecordedLatency {
        n: sketch.total(),
        p50_ns: sketch.quantile(0.5).unwrap_or(0),
        p99_ns: sketch.quantile(0.99).unwrap_or(0),
    }
}

/// Adds a record to the summary.
fn count(summary: &mut Summary, rec: &NamedRecord) {
    let r = &rec.base;
    summary.records += 1;
    summary.requests += u64::from(r.repeat);
    summary.count(r.op);
    summary.rate.add(r.ts_ns, u64::from(r.repeat));
    let bytes = match r.op {
        TraceOp::Get => r.range().map_or(r.size.max(0) as u64, |range| range.len),
        TraceOp::Put | TraceOp::MpuComplete => r.size.max(0) as u64,
        _ => 0,
    };
    summary.bytes += bytes * u64::from(r.repeat);
}

fn summary_of(
    imported: Imported,
    found: Findings,
    options: &PrepareOptions,
    first_ts: i64,
) -> Summary {
    let sample = options.sample;
    let kept = |hash| sample.is_none_or(|s| s.by != SampleBy::Key || s.keeps(hash));
    let (top10_recorded, top10_kept) = imported.top.shares(10, kept);
    let mut summary = Summary {
        frames: imported.frames,
        first_ts_ns: first_ts,
        resolution_ns: imported.resolution_ns,
        backward_steps: imported.backward_steps,
        ticks: match options.ticks {
            Ticks::Spread => "spread",
            Ticks::Burst => "burst",
            Ticks::Jitter => "jitter",
        }
        .to_owned(),
        keys: found.keys,
        preload_objects: found.preload_objects,
        preload_bytes: found.preload_bytes,
        changes_population: found.changes_population,
        inserted: found.inserted,
        clamped: found.clamped,
        sizes: found.sizes,
        top10_recorded,
        top10_kept,
        anonymised: options.anonymise.is_some(),
        buckets: names(imported.buckets.names()),
        ..Summary::default()
    };
    for &reason in DropReason::ALL {
        let n = imported.dropped[reason as usize] + found.dropped[reason as usize];
        if n > 0 {
            summary.dropped.insert(reason.name().to_owned(), n);
        }
    }
    notes(&mut summary, &imported.files, imported.untimed);
    summary.files = imported.files;
    summary
}

fn names(names: &[Vec<u8>]) -> Vec<String> {
    names
        .iter()
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect()
}

/// Adds the notes that a reader of the result must know.
fn notes(summary: &mut Summary, files: &[FileFacts], untimed: bool) {
    let from = |format: &str| files.iter().any(|file| file.format == format);
    if from("cloudtrail") {
        summary.notes.push(
            "CloudTrail records the ends of requests and no durations, so starts are late by the duration"
                .to_owned(),
        );
    }
    if from("minio-trace") {
        let note =
            "MinIO traces count header bytes, so sizes without request headers are estimates";
        summary.notes.push(note.to_owned());
    }
    if untimed {
        summary
            .notes
            .push("the records had no instants; instants were generated".to_owned());
    }
    if summary.backward_steps > 0 {
        let n = summary.backward_steps;
        summary
            .notes
            .push(format!("the clock stepped back by more than 1 s {n} times"));
    }
    if summary.sizes.guessed() > 0.2 {
        let share = summary.sizes.guessed() * 100.0;
        summary.notes.push(format!(
            "{share:.0} % of the sizes are guessed, so byte throughput is only indicative"
        ));
    }
}

fn describe(summary: &Summary) -> String {
    let rows: Vec<String> = summary
        .dropped
        .iter()
        .map(|(name, n)| format!("{n} {name}"))
        .collect();
    rows.join(", ")
}

/// The records, partitioned by key.
struct Partitions {
    spill: Spill,
    streams: Vec<Stream>,
    bits: u32,
}

impl Partitions {
    fn new(options: &PrepareOptions, records: u64) -> Result<Self, TraceError> {
        let wanted = (records / PARTITION_RECORDS).max(1).ilog2() + 1;
        let bits = wanted.clamp(*PARTITION_BITS.start(), *PARTITION_BITS.end());
        Ok(Self {
            spill: Spill::for_streams(&options.temp, 1 << bits)?,
            streams: vec![Stream::default(); 1 << bits],
            bits,
        })
    }

    fn push(&mut self, rec: &NamedRecord) -> Result<(), TraceError> {
        let part = first64(&rec.key_id) >> (64 - self.bits);
        self.spill.push(&mut self.streams[part as usize], rec)
    }

    /// Reads all records in order of time and drops duplicates. Returns the first instant.
    fn fill(
        &mut self,
        sorted: &mut Merge,
        imported: &mut Imported,
    ) -> Result<Option<i64>, TraceError> {
        let mut rec = NamedRecord::default();
        let (mut first, mut tick) = (None, i64::MIN);
        let mut ids: HashSet<u64> = HashSet::new();
        while sorted.next(&mut rec)? {
            first.get_or_insert(rec.base.ts_ns);
            if rec.base.ts_ns != tick {
                tick = rec.base.ts_ns;
                ids.clear();
            }
            if rec.id != 0 && ids.len() < IDS_PER_TICK && !ids.insert(rec.id) {
                imported.dropped[DropReason::Duplicate as usize] += 1;
                continue;
            }
            if rec.base.op == TraceOp::Copy && !rec.more.is_empty() {
                self.push(&source_of(&rec, imported))?;
            }
            self.push(&rec)?;
        }
        for stream in &mut self.streams {
            self.spill.finish(stream)?;
        }
        Ok(first)
    }
}

/// Makes a record for the source of a copy, as evidence that the object existed.
fn source_of(copy: &NamedRecord, imported: &mut Imported) -> NamedRecord {
    // If the format has no buckets, the source is only a key.
    let names = imported.buckets.names();
    let bare = names
        .get(copy.base.bucket as usize)
        .is_some_and(Vec::is_empty);
    let (bucket, key) = match bare {
        true => (&b""[..], &copy.more[0][..]),
        false => crate::text::fields::split_at(&copy.more[0], b'/'),
    };
    let mut source = copy.clone();
    source.ghost = true;
    source.more.clear();
    source.key = key.to_vec();
    source.key_id = hash128(&[bucket, key]);
    source.base.bucket = imported.buckets.id(bucket);
    source.base.key_hash = bucketload_core::trace::key_hash(source.base.bucket, key);
    source.base.op = TraceOp::Head;
    (source.base.size, source.base.off, source.base.len) = (copy.base.size, 0, -1);
    source.id = 0;
    source
}
