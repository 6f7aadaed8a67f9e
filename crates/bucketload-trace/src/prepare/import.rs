//! The first pass, from files to sorted records: parses, filters, samples, numbers names, and collects what later
//! passes need to know about the whole trace.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bucketload_core::trace::{TraceOp, key_hash};
use sha2::{Digest, Sha256};

use super::names::Names;
use super::options::{PrepareOptions, SampleBy};
use super::sketch::{SizeSketch, TopKeys};
use super::summary::FileFacts;
use crate::error::TraceError;
use crate::formats::{Format, detect, hint};
use crate::frames::{Frame, Frames};
use crate::hash::{first64, hash64, hash128};
use crate::input;
use crate::named_record::NamedRecord;
use crate::parsed::{DropReason, NO_TIME, ParsedRecord};
use crate::spill::{Sorter, Spill};
use crate::text::fields::split_at;

/// Maximum number of sampled unparsable lines, and maximum length of a sample, bytes.
const SAMPLES: u64 = 100;
const SAMPLE_BYTES: usize = 400;

/// The results of the first pass.
pub(crate) struct Imported {
    pub(crate) sorter: Sorter,
    pub(crate) files: Vec<FileFacts>,
    pub(crate) buckets: Names,
    pub(crate) law: SizeSketch,
    pub(crate) top: TopKeys,
    pub(crate) frames: u64,
    pub(crate) dropped: [u64; DropReason::ALL.len()],
    /// The coarsest power of ten of nanoseconds that divides every instant.
    pub(crate) resolution_ns: i64,
    /// Whether the records have no instants and are numbered instead.
    pub(crate) untimed: bool,
    /// Number of backward steps of more than 1 s between consecutive records.
    pub(crate) backward_steps: u64,
}

/// The state of the first pass.
struct FirstPass<'o> {
    options: &'o PrepareOptions,
    found: Imported,
    clients: Names,
    rec: NamedRecord,
    /// Number of records with an instant, and without.
    timed: u64,
    untimed: u64,
    last_ts: i64,
    /// Line number of the first key of recent multi-object deletes, which keeps the keys of a request together.
    groups: HashMap<u64, u64>,
    failed: Option<TraceError>,
}

/// Reads all files.
pub(crate) fn import(paths: &[PathBuf], options: &PrepareOptions) -> Result<Imported, TraceError> {
    let mut pass = FirstPass {
        options,
        found: Imported {
            sorter: Sorter::new(Spill::new(&options.temp)?),
            files: Vec::new(),
            buckets: Names::default(),
            law: SizeSketch::default(),
            top: TopKeys::default(),
            frames: 0,
            dropped: [0; DropReason::ALL.len()],
            resolution_ns: 1_000_000_000,
            untimed: false,
            backward_steps: 0,
        },
        clients: Names::default(),
        rec: NamedRecord::default(),
        timed: 0,
        untimed: 0,
        last_ts: i64::MIN,
        groups: HashMap::new(),
        failed: None,
    };
    // Number 0 is the unknown client.
    pass.clients.id(b"");
    let mut samples = Samples::new(&options.samples);
    for path in paths {
        let facts = read_file(path, options, &mut pass, &mut samples)?;
        pass.found.files.push(facts);
    }
    let FirstPass {
        mut found,
        timed,
        untimed,
        ..
    } = pass;
    let unparsable: u64 = DropReason::ALL
        .iter()
        .filter(|reason| reason.is_unparsable())
        .map(|reason| found.dropped[*reason as usize])
        .sum();
    if unparsable * 1000 > found.frames && !options.lenient {
        return Err(TraceError::TooManyUnparsable {
            unparsable,
            frames: found.frames,
            reasons: counts_by_reason(&found.dropped, DropReason::is_unparsable),
            first: samples.first,
            samples: options.samples.clone(),
        });
    }
    if timed > 0 && untimed > 0 {
        return Err(TraceError::Option(format!(
            "{} records have an instant and {} have none: replay such files separately",
            timed, untimed
        )));
    }
    if untimed > 0 && options.untimed.is_none() {
        return Err(TraceError::Option(
            "the records have no instants: give --untimed RATE, such as 1000/s, poisson:1000/s \
             or span:5h"
                .to_owned(),
        ));
    }
    if untimed > 0 {
        (found.untimed, found.resolution_ns) = (true, 1);
    }
    Ok(found)
}

/// The counts of the reasons that `include` selects, for a message.
pub(super) fn counts_by_reason(
    dropped: &[u64; DropReason::ALL.len()],
    include: impl Fn(DropReason) -> bool,
) -> String {
    let rows = DropReason::ALL
        .iter()
        .map(|&reason| (reason, dropped[reason as usize]))
        .filter(|&(reason, n)| n > 0 && include(reason))
        .map(|(reason, n)| format!("{n} {}", reason.name()));
    rows.collect::<Vec<_>>().join(", ")
}

fn read_file(
    path: &Path,
    options: &PrepareOptions,
    pass: &mut FirstPass<'_>,
    samples: &mut Samples,
) -> Result<FileFacts, TraceError> {
    let facts = Arc::new(Mutex::new((Sha256::new(), 0u64)));
    let raw: Box<dyn Read + Send> = if path == Path::new("-") {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(path).map_err(TraceError::io(path))?)
    };
    let hashed = Box::new(HashingReader {
        inner: raw,
        facts: Arc::clone(&facts),
    });
    let mut input = input::decompressed(hashed, path)?;
    let format = match options.format {
        Some(format) => format,
        None => {
            let head = input.fill_buf().map_err(TraceError::io(path))?;
            detect(head, &options.formats).ok_or_else(|| TraceError::Unrecognised {
                path: path.to_owned(),
                hint: hint(head),
                formats: Format::names(),
            })?
        }
    };
    let mut importer = format.importer(&options.formats)?;
    importer.start_file();
    let mut stream = Frames::new(input, importer.framing());
    let mut number = 0u64;
    while let Some(frame) = stream.next_frame().map_err(TraceError::io(path))? {
        pass.found.frames += 1;
        number += 1;
        let src = pass.found.frames;
        let (bytes, problem) = match frame {
            Frame::Broken(reason, bytes) => (bytes, Err(reason)),
            Frame::Whole(bytes) => (
                bytes,
                importer.read(bytes, &mut |parsed| pass.take(parsed, src)),
            ),
        };
        if let Err(reason) = problem {
            pass.found.dropped[reason as usize] += 1;
            if reason.is_unparsable() {
                samples.add(path, number, reason, bytes)?;
            }
        }
        if let Some(error) = pass.failed.take() {
            return Err(error);
        }
    }
    let facts = facts
        .lock()
        .map_or_else(|e| e.into_inner().clone(), |guard| guard.clone());
    let hash = facts.0.finalize();
    Ok(FileFacts {
        path: path.display().to_string(),
        format: format.name().to_owned(),
        bytes: facts.1,
        sha256: hash.iter().map(|byte| format!("{byte:02x}")).collect(),
        frames: number,
    })
}

/// Hashes and counts the bytes that are read.
struct HashingReader {
    inner: Box<dyn Read + Send>,
    facts: Arc<Mutex<(Sha256, u64)>>,
}

impl Read for HashingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        if let Ok(mut facts) = self.facts.lock() {
            facts.0.update(&buffer[..n]);
            facts.1 += n as u64;
        }
        Ok(n)
    }
}

/// The file with samples of unparsable lines, created with the first sample.
struct Samples {
    path: PathBuf,
    file: Option<File>,
    written: u64,
    /// The first sample.
    first: String,
}

impl Samples {
    fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            file: None,
            written: 0,
            first: String::new(),
        }
    }

    fn add(
        &mut self,
        source: &Path,
        line: u64,
        why: DropReason,
        text: &[u8],
    ) -> Result<(), TraceError> {
        if self.written == SAMPLES {
            return Ok(());
        }
        self.written += 1;
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let file = File::create(&self.path).map_err(TraceError::io(&self.path))?;
                self.file.insert(file)
            }
        };
        let text = String::from_utf8_lossy(&text[..text.len().min(SAMPLE_BYTES)]);
        let sample = format!("{}:{line}: {}: {text}", source.display(), why.name());
        writeln!(file, "{sample}").map_err(TraceError::io(&self.path))?;
        if self.written == 1 {
            self.first = sample;
        }
        Ok(())
    }
}

impl FirstPass<'_> {
    fn take(&mut self, parsed: &ParsedRecord, src: u64) {
        if let Err(reason) = self.check(parsed) {
            self.found.dropped[reason as usize] += 1;
            return;
        }
        match &self.options.anonymise {
            Some(salt) => self.accept(&anonymised(parsed, salt.as_bytes()), src),
            None => self.accept(parsed, src),
        }
    }

    fn accept(&mut self, parsed: &ParsedRecord, src: u64) {
        let key_id = hash128(&[&parsed.bucket, &parsed.key]);
        let repeat = u64::from(parsed.repeat);
        self.found.top.add(&key_id, repeat);
        if let Some(sample) = self.options.sample {
            let hash = match sample.by {
                SampleBy::Key => first64(&key_id),
                SampleBy::Client => hash64(&[&parsed.client]),
                SampleBy::Bucket => hash64(&[&parsed.bucket]),
            };
            if !sample.keeps(hash) {
                self.found.dropped[DropReason::Sampled as usize] += 1;
                return;
            }
        }
        if parsed.size >= 0 && matches!(parsed.op, TraceOp::Get | TraceOp::Put | TraceOp::Head) {
            self.found.law.add(parsed.size as u64);
        }
        let ts_ns = self.clock(parsed.ts_ns);
        self.fill(parsed, ts_ns, key_id, src);
        if let Err(error) = self.found.sorter.push(&self.rec) {
            self.failed = Some(error);
        }
    }

    fn check(&self, parsed: &ParsedRecord) -> Result<(), DropReason> {
        let options = self.options;
        if parsed.op == TraceOp::Other {
            return Err(DropReason::NotReplayed);
        }
        if options
            .ops
            .as_ref()
            .is_some_and(|ops| !ops.contains(&parsed.op))
        {
            return Err(DropReason::FilteredOp);
        }
        let status = parsed.status;
        let wanted = |range: &(u16, u16)| (range.0..=range.1).contains(&status);
        if !options.statuses.is_empty() && !options.statuses.iter().any(wanted) {
            return Err(DropReason::FilteredStatus);
        }
        if !options.buckets.is_empty() && !options.buckets.contains(&parsed.bucket) {
            return Err(DropReason::FilteredBucket);
        }
        Ok(())
    }

    /// Tracks the resolution and backward steps of the clock. Returns the instant, or the number of a record without one.
    fn clock(&mut self, ts_ns: i64) -> i64 {
        if ts_ns == NO_TIME {
            self.untimed += 1;
            return self.untimed as i64 - 1;
        }
        self.timed += 1;
        while ts_ns % self.found.resolution_ns != 0 {
            self.found.resolution_ns /= 10;
        }
        if ts_ns < self.last_ts.saturating_sub(1_000_000_000) {
            self.found.backward_steps += 1;
        }
        self.last_ts = ts_ns;
        ts_ns
    }

    fn fill(&mut self, parsed: &ParsedRecord, ts_ns: i64, key_id: [u8; 16], src: u64) {
        let rec = &mut self.rec;
        let base = &mut rec.base;
        base.ts_ns = ts_ns;
        base.op = parsed.op;
        base.bucket = self.found.buckets.id(&parsed.bucket);
        base.size = parsed.size;
        (base.off, base.len) = (parsed.off, parsed.len);
        base.client = self.clients.id(&parsed.client);
        base.status = parsed.status;
        base.dur_ns = parsed.dur_ns;
        base.part = parsed.part;
        base.upload = parsed.upload;
        base.absent = false;
        base.repeat = parsed.repeat.max(1);
        base.src = src;
        if parsed.op == TraceOp::MultiDelete {
            if self.groups.len() > 4096 {
                self.groups.clear();
            }
            base.src = *self.groups.entry(parsed.upload).or_insert(src);
        }
        rec.key.clear();
        rec.key.extend_from_slice(&parsed.key);
        base.key_hash = key_hash(base.bucket, &rec.key);
        rec.key_id = key_id;
        rec.sent = parsed.sent;
        rec.id = parsed.id;
        rec.more.clear();
        if !parsed.source.is_empty() {
            rec.more.push(parsed.source.clone());
        }
    }
}

/// Replaces names by salted hashes: equal names stay equal, and nothing else can be learned from them.
fn anonymised(parsed: &ParsedRecord, salt: &[u8]) -> ParsedRecord {
    let hex = |parts: &[&[u8]]| -> Vec<u8> {
        let hash = hash128(parts);
        hash.iter()
            .flat_map(|byte| format!("{byte:02x}").into_bytes())
            .collect()
    };
    let bucket = |name: &[u8]| hex(&[salt, name])[..12].to_vec();
    let mut new = parsed.clone();
    new.bucket = bucket(&parsed.bucket);
    if !parsed.key.is_empty() {
        new.key = hex(&[salt, &parsed.bucket, &parsed.key]);
    }
    if !parsed.source.is_empty() {
        let (from, name) = split_at(&parsed.source, b'/');
        new.source = [bucket(from), hex(&[salt, from, name])].join(&b'/');
    }
    new
}
