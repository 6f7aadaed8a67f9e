//! Writes a run directory during the run.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use bucketload_core::histogram::Histogram;
use bucketload_core::sink::{Event, RunSink};
use bucketload_core::slowest::SlowRequest;
use bucketload_core::tally::Interval;
use bucketload_core::verdict::Verdict;

use super::hdr::{Encoder, HEADER};
use super::line::{IntervalLine, Metric};
use super::manifest::{Manifest, Status, VerdictSummary};
use super::slow::SlowLog;
use super::{EVENTS, HIST, INTERVALS, ORACLE, hist_name};
use crate::error::ResultsError;
use crate::oplog::OpLogFacts;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// The final status.
    pub status: Status,
    /// Wall-clock end, nanoseconds since 1970.
    pub ended_unix_ns: u64,
    /// The error of an aborted run.
    pub error: Option<String>,
}

/// The histogram log of the current phase.
struct HistLog {
    phase: u16,
    file: File,
    path: PathBuf,
    len: u64,
}

/// A [`RunSink`] that appends to a run directory.
///
/// Each event and interval reaches the kernel with one `write` per file, so the death of the process loses at most
/// what was being written. Memory is bounded by the size of one interval. After the first failed write nothing more
/// is written, because anything after an incomplete line would be unreadable. [`RunDirSink::finish`] returns that
/// error; [`RunDirSink::error`] shows it early.
pub struct RunDirSink {
    dir: PathBuf,
    manifest: Manifest,
    intervals: File,
    events: File,
    /// Only for runs that the oracle judges.
    findings: Option<File>,
    hist: Option<HistLog>,
    slow: SlowLog,
    encoder: Encoder,
    buffer: Vec<u8>,
    failed: Option<ResultsError>,
}

impl RunDirSink {
    /// Creates the run directory `dir` (and its parents) and writes the manifest, without secrets and with status
    /// `running`.
    ///
    /// # Errors
    /// When the directory is not empty or cannot be written.
    pub fn create(dir: impl Into<PathBuf>, mut manifest: Manifest) -> Result<Self, ResultsError> {
        let dir = dir.into();
        fs::create_dir_all(&dir).map_err(ResultsError::io(&dir, "create"))?;
        let mut entries = fs::read_dir(&dir).map_err(ResultsError::io(&dir, "list"))?;
        if entries.next().is_some() {
            return Err(ResultsError::NotEmpty(dir));
        }
        let hist = dir.join(HIST);
        fs::create_dir(&hist).map_err(ResultsError::io(&hist, "create"))?;
        manifest.status = Status::Running;
        manifest.redact();
        manifest.write(&dir)?;
        Ok(Self {
            intervals: append(&dir.join(INTERVALS))?,
            events: append(&dir.join(EVENTS))?,
            slow: SlowLog::new(&dir),
            findings: match manifest.plan.has_oracle() {
                true => Some(append(&dir.join(ORACLE))?),
                false => None,
            },
            dir,
            manifest,
            hist: None,
            encoder: Encoder::new(),
            buffer: Vec::new(),
            failed: None,
        })
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// The first write error, if any.
    #[must_use]
    pub const fn error(&self) -> Option<&ResultsError> {
        self.failed.as_ref()
    }

    /// Sets the facts about the operation log for the manifest.
    pub fn set_op_log(&mut self, facts: OpLogFacts) {
        self.manifest.op_log = Some(facts);
    }

    /// Completes the manifest.
    ///
    /// # Errors
    /// The first error of the whole run; the directory lacks everything after it.
    pub fn finish(mut self, end: RunEnd) -> Result<(), ResultsError> {
        self.manifest.status = end.status;
        self.manifest.ended_unix_ns = end.ended_unix_ns;
        self.manifest.error = end.error;
        self.manifest.redact();
        let written = self.manifest.write(&self.dir);
        match self.failed.take() {
            Some(first) => Err(first),
            None => written,
        }
    }

    fn write_event(&mut self, event: &Event) -> Result<(), ResultsError> {
        self.buffer.clear();
        let (file, name, encoded) = match (event, &mut self.findings) {
            (Event::Finding(finding), Some(file)) => {
                (file, ORACLE, json_line(&mut self.buffer, finding))
            }
            _ => (&mut self.events, EVENTS, json_line(&mut self.buffer, event)),
        };
        let path = self.dir.join(name);
        encoded.map_err(ResultsError::io(&path, "encode"))?;
        file.write_all(&self.buffer)
            .map_err(ResultsError::io(&path, "write"))
    }

    fn write_interval(&mut self, interval: &Interval) -> Result<(), ResultsError> {
        let hist = self.write_histograms(interval)?;
        let path = self.dir.join(INTERVALS);
        self.buffer.clear();
        json_line(&mut self.buffer, &IntervalLine::new(interval, hist))
            .map_err(ResultsError::io(&path, "encode"))?;
        self.intervals
            .write_all(&self.buffer)
            .map_err(ResultsError::io(&path, "write"))
    }

    /// Appends the histograms to the phase's log; returns their position.
    fn write_histograms(&mut self, interval: &Interval) -> Result<(u64, u64), ResultsError> {
        let phase = interval.phase;
        self.buffer.clear();
        let (start, end) = (interval.start_ns, interval.end_ns.max(interval.start_ns));
        let tally = &interval.tally;
        let mut line = |tag: std::fmt::Arguments<'_>, histogram: &Histogram| {
            self.encoder
                .line(&mut self.buffer, tag, start, end, histogram);
        };
        for cell in &tally.cells {
            let (work, class) = (cell.work, cell.class);
            for metric in Metric::OF_CELL {
                if let Some(histogram) = metric.of_cell(cell) {
                    let name = metric.name();
                    line(format_args!("{phase}/{work}/{class}/{name}"), histogram);
                }
            }
        }
        for (index, endpoint) in tally.endpoints.iter().enumerate() {
            if let Some(service) = &endpoint.service {
                line(format_args!("{phase}/-/endpoint-{index}/service"), service);
            }
        }
        for span in &tally.spans {
            let (work, part, name) = (span.work, span.part, Metric::Makespan.name());
            let tag = format_args!("{phase}/{work}/part-{part}/{name}");
            line(tag, &span.makespan);
        }
        for cell in tally.sizes.iter().filter(|cell| cell.ok > 0) {
            let (work, class, from, to) = (cell.work, cell.class, cell.from, cell.to);
            for metric in Metric::OF_SIZE {
                // Only size cells have a range of sizes after the class.
                let name = metric.name();
                let tag = format_args!("{phase}/{work}/{class}@{from}-{to}/{name}");
                line(tag, metric.of_size(cell));
            }
        }
        for metric in Metric::OF_TALLY {
            let name = metric.name();
            line(format_args!("{phase}/-/all/{name}"), metric.of_tally(tally));
        }
        let log = match &mut self.hist {
            Some(log) if log.phase == phase => log,
            other => other.insert(HistLog::open(&self.dir, phase)?),
        };
        let offset = log.len;
        log.file
            .write_all(&self.buffer)
            .map_err(ResultsError::io(&log.path, "write"))?;
        log.len += self.buffer.len() as u64;
        Ok((offset, self.buffer.len() as u64))
    }

    fn latch(&mut self, outcome: Result<(), ResultsError>) {
        if let Err(e) = outcome {
            self.failed.get_or_insert(e);
        }
    }
}

impl HistLog {
    fn open(dir: &Path, phase: u16) -> Result<Self, ResultsError> {
        let path = dir.join(hist_name(phase));
        let mut file = append(&path)?;
        let mut len = file
            .metadata()
            .map_err(ResultsError::io(&path, "inspect"))?
            .len();
        if len == 0 {
            file.write_all(HEADER.as_bytes())
                .map_err(ResultsError::io(&path, "write"))?;
            len = HEADER.len() as u64;
        }
        Ok(Self {
            phase,
            file,
            path,
            len,
        })
    }
}

impl RunSink for RunDirSink {
    fn event(&mut self, event: &Event) {
        if self.failed.is_none() {
            let outcome = self.write_event(event);
            self.latch(outcome);
        }
    }

    fn interval(&mut self, interval: &Interval) {
        if self.failed.is_none() {
            let outcome = self.write_interval(interval);
            self.latch(outcome);
        }
    }

    fn slow_requests(&mut self, requests: &[SlowRequest]) {
        if self.failed.is_none() {
            let outcome = self.slow.add(requests);
            self.latch(outcome);
        }
    }
}

/// Stores the verdict of the analysis in the manifest of `dir`.
///
/// # Errors
/// When the manifest cannot be read or replaced.
pub fn write_verdict(dir: &Path, verdict: &Verdict) -> Result<(), ResultsError> {
    let mut manifest = Manifest::read(dir)?;
    manifest.verdict = Some(VerdictSummary::from(verdict));
    manifest.write(dir)
}

pub(super) fn append(path: &Path) -> Result<File, ResultsError> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .map_err(ResultsError::io(path, "create"))
}

pub(super) fn json_line<T: serde::Serialize>(out: &mut Vec<u8>, value: &T) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.push(b'\n');
    Ok(())
}
