//! Writes a run directory while the run lasts.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

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
    /// What went wrong, for an aborted run.
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
/// Each event and each interval reaches the kernel with one `write` per file, so that the death of
/// the process loses at most what was being written. Memory is bounded by the size of one
/// interval. After the first failed write nothing more is written, because whatever follows a
/// torn line would be unreadable; [`RunDirSink::finish`] returns that error, and
/// [`RunDirSink::error`] tells it early.
pub struct RunDirSink {
    dir: PathBuf,
    manifest: Manifest,
    intervals: File,
    events: File,
    /// Of runs that the oracle judges.
    findings: Option<File>,
    hist: Option<HistLog>,
    slow: SlowLog,
    encoder: Encoder,
    buffer: Vec<u8>,
    failed: Option<ResultsError>,
}

impl RunDirSink {
    /// Creates the run directory `dir` (with its parents) and writes the manifest, without
    /// secrets and with status `running`.
    ///
    /// # Errors
    /// When the directory holds something already or cannot be written.
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

    /// The first error of writing, if there was one.
    #[must_use]
    pub const fn error(&self) -> Option<&ResultsError> {
        self.failed.as_ref()
    }

    /// States how the operation log came out, for the manifest.
    pub fn set_op_log(&mut self, facts: OpLogFacts) {
        self.manifest.op_log = Some(facts);
    }

    /// Completes the manifest.
    ///
    /// # Errors
    /// The first error of the whole run: the directory then lacks what came after it.
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
        if let (Event::Finding(finding), Some(file)) = (event, &mut self.findings) {
            let path = self.dir.join(ORACLE);
            self.buffer.clear();
            json_line(&mut self.buffer, finding).map_err(ResultsError::io(&path, "encode"))?;
            return file
                .write_all(&self.buffer)
                .map_err(ResultsError::io(&path, "write"));
        }
        let path = self.dir.join(EVENTS);
        self.buffer.clear();
        json_line(&mut self.buffer, event).map_err(ResultsError::io(&path, "encode"))?;
        self.events
            .write_all(&self.buffer)
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

    /// Appends the histograms to the phase's log; returns where they stand.
    fn write_histograms(&mut self, interval: &Interval) -> Result<(u64, u64), ResultsError> {
        let phase = interval.phase;
        self.buffer.clear();
        let (start, end) = (interval.start_ns, interval.end_ns.max(interval.start_ns));
        for cell in &interval.tally.cells {
            for metric in Metric::OF_CELL {
                let Some(histogram) = metric.of_cell(cell) else {
                    continue;
                };
                self.encoder.line(
                    &mut self.buffer,
                    format_args!("{phase}/{}/{}/{}", cell.work, cell.class, metric.name()),
                    start,
                    end,
                    histogram,
                );
            }
        }
        for (index, endpoint) in interval.tally.endpoints.iter().enumerate() {
            if let Some(service) = &endpoint.service {
                self.encoder.line(
                    &mut self.buffer,
                    format_args!("{phase}/-/endpoint-{index}/service"),
                    start,
                    end,
                    service,
                );
            }
        }
        for span in &interval.tally.spans {
            let name = Metric::Makespan.name();
            self.encoder.line(
                &mut self.buffer,
                format_args!("{phase}/{}/part-{}/{name}", span.work, span.part),
                start,
                end,
                &span.makespan,
            );
        }
        for cell in interval.tally.sizes.iter().filter(|cell| cell.ok > 0) {
            for metric in Metric::OF_SIZE {
                // The class is followed by the range of sizes, which no other owner has.
                let owner = format_args!(
                    "{phase}/{}/{}@{}-{}/{}",
                    cell.work,
                    cell.class,
                    cell.from,
                    cell.to,
                    metric.name()
                );
                let of = metric.of_size(cell);
                self.encoder.line(&mut self.buffer, owner, start, end, of);
            }
        }
        for metric in Metric::OF_TALLY {
            self.encoder.line(
                &mut self.buffer,
                format_args!("{phase}/-/all/{}", metric.name()),
                start,
                end,
                metric.of_tally(&interval.tally),
            );
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

/// Puts the verdict of the analysis into the manifest of `dir`.
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
