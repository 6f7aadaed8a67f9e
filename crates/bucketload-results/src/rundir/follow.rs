//! Follows a run directory while another process writes it.
//!
//! [`Follow::poll`] delivers what was completed since the last call; a line that is still being written waits for
//! the next call. A [`RunSink`] receives the same calls as inside the running process, so every display of a run
//! works on both.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use bucketload_core::sink::{Event, RunSink};
use bucketload_core::tally::Interval;

use super::line::{IntervalLine, Metric};
use super::manifest::Manifest;
use super::read::{IntervalReader, RunDir, empty_interval};
use super::{EVENTS, INTERVALS};
use crate::error::ResultsError;

/// Bytes read at a time.
const CHUNK: u64 = 1 << 18;
/// Longest incomplete line that is kept; run directories have no longer lines.
const MAX_LINE: usize = 16 << 20;

/// A run directory that may still grow.
#[derive(Debug)]
pub struct Follow {
    dir: PathBuf,
    manifest: Manifest,
    reader: IntervalReader,
    interval: Interval,
    intervals: Tail,
    events: Tail,
    /// Events read before the intervals that precede them; delivered after these.
    pending: Vec<Event>,
}

impl Follow {
    /// Starts at the beginning of the run directory `dir`.
    ///
    /// # Errors
    /// When it has no manifest (yet), or a manifest that is damaged or too new.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Self, ResultsError> {
        let dir = dir.into();
        let run = RunDir::open(&dir)?;
        Ok(Self {
            manifest: run.manifest().clone(),
            reader: run.intervals()?,
            interval: empty_interval(),
            intervals: Tail::new(dir.join(INTERVALS)),
            events: Tail::new(dir.join(EVENTS)),
            pending: Vec::new(),
            dir,
        })
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// The manifest, as of the last [`Follow::refresh`].
    #[must_use]
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Rereads the manifest, to see how the run ended.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn refresh(&mut self) -> Result<&Manifest, ResultsError> {
        self.manifest = Manifest::read(&self.dir)?;
        Ok(&self.manifest)
    }

    /// Passes new events and at most `most` new intervals to `sink`; returns the number of intervals. Intervals
    /// have only the histograms of response times. Damaged lines are skipped.
    ///
    /// The end of a phase is delivered after all its intervals; its start may come after its first ones.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn poll(&mut self, sink: &mut dyn RunSink, most: usize) -> Result<usize, ResultsError> {
        while let Some(line) = self.events.next()? {
            self.pending.extend(serde_json::from_slice(&line));
        }
        let mut delivered = 0;
        while delivered < most {
            let Some(line) = self.intervals.next()? else {
                self.pending.drain(..).for_each(|event| sink.event(&event));
                return Ok(delivered);
            };
            let Ok(line) = serde_json::from_slice::<IntervalLine>(&line) else {
                continue;
            };
            self.reader.load(&line, &mut self.interval, |metric| {
                metric == Metric::Response
            })?;
            sink.interval(&self.interval);
            delivered += 1;
        }
        Ok(delivered)
    }
}

/// The complete lines of a growing file.
#[derive(Debug)]
struct Tail {
    path: PathBuf,
    file: Option<File>,
    /// Bytes read but not yet delivered: complete lines from `from` on, then the start of one.
    buffer: Vec<u8>,
    from: usize,
}

impl Tail {
    const fn new(path: PathBuf) -> Self {
        Self {
            path,
            file: None,
            buffer: Vec::new(),
            from: 0,
        }
    }

    /// The next complete line without its end; `None` if there is none yet.
    fn next(&mut self) -> Result<Option<Vec<u8>>, ResultsError> {
        let mut searched = self.from;
        loop {
            if let Some(at) = self.buffer[searched..].iter().position(|&b| b == b'\n') {
                let end = searched + at;
                let line = self.buffer[self.from..end].to_vec();
                self.from = end + 1;
                return Ok(Some(line));
            }
            self.buffer.drain(..self.from);
            self.from = 0;
            if self.buffer.len() > MAX_LINE {
                self.buffer.clear();
            }
            searched = self.buffer.len();
            if self.fill()? == 0 {
                return Ok(None);
            }
        }
    }

    fn fill(&mut self) -> Result<usize, ResultsError> {
        let file = match &mut self.file {
            Some(file) => file,
            none => match File::open(&self.path) {
                Ok(file) => none.insert(file),
                Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(0),
                Err(e) => return Err(ResultsError::io(&self.path, "open")(e)),
            },
        };
        file.take(CHUNK)
            .read_to_end(&mut self.buffer)
            .map_err(ResultsError::io(&self.path, "read"))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::Tail;

    #[test]
    fn lines_are_delivered_when_complete() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lines");
        let mut tail = Tail::new(path.clone());
        assert_eq!(tail.next().unwrap(), None);
        let mut file = std::fs::File::create(&path).unwrap();
        file.write_all(b"one\ntw").unwrap();
        assert_eq!(tail.next().unwrap().as_deref(), Some(&b"one"[..]));
        assert_eq!(tail.next().unwrap(), None);
        file.write_all(b"o\n\nfour\n").unwrap();
        let mut rest = Vec::new();
        while let Some(line) = tail.next().unwrap() {
            rest.push(String::from_utf8(line).unwrap());
        }
        assert_eq!(rest, ["two", "", "four"]);
        assert_eq!(tail.next().unwrap(), None);
    }
}
