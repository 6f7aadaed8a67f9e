//! Follows a run directory while another process writes it.
//!
//! [`Follow::poll`] hands on what has been completed since the last call; a line that is still being
//! written waits for the next one. The reader is told the same things in the same way as a sink inside the
//! process that runs ([`RunSink`]), so whatever shows a run works on both.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
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
/// Longest line that is kept while its end is awaited; a longer one is no line of ours.
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
    /// Read before the intervals that precede them, told after these.
    pending: Vec<Event>,
}

impl Follow {
    /// Begins at the start of the run directory `dir`.
    ///
    /// # Errors
    /// When it has no manifest (yet), or one that is damaged or too new.
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

    /// Reads the manifest again, to see how the run ended.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn refresh(&mut self) -> Result<&Manifest, ResultsError> {
        self.manifest = Manifest::read(&self.dir)?;
        Ok(&self.manifest)
    }

    /// Tells `sink` what is new, at most `most` intervals of it; returns how many there were. Intervals
    /// carry the histograms of response times only. Damaged lines are passed over.
    ///
    /// The end of a phase is told after all its intervals; its start may come after its first ones.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn poll(&mut self, sink: &mut dyn RunSink, most: usize) -> Result<usize, ResultsError> {
        while let Some(line) = self.events.next()? {
            self.pending.extend(serde_json::from_slice(&line));
        }
        let mut told = 0;
        while told < most {
            let Some(line) = self.intervals.next()? else {
                self.pending.drain(..).for_each(|event| sink.event(&event));
                return Ok(told);
            };
            let Ok(line) = serde_json::from_slice::<IntervalLine>(&line) else {
                continue;
            };
            self.reader.load(&line, &mut self.interval, |metric| {
                metric == Metric::Response
            })?;
            sink.interval(&self.interval);
            told += 1;
        }
        Ok(told)
    }
}

/// The complete lines of a file that grows.
#[derive(Debug)]
struct Tail {
    path: PathBuf,
    file: Option<File>,
    /// What was read and not handed on: complete lines from `from` on, then the start of one.
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

    /// The next complete line without its end; `None` when there is none yet.
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
        if self.file.is_none() {
            match File::open(&self.path) {
                Ok(mut file) => {
                    file.seek(SeekFrom::Start(0))
                        .map_err(ResultsError::io(&self.path, "read"))?;
                    self.file = Some(file);
                }
                Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(0),
                Err(e) => return Err(ResultsError::io(&self.path, "open")(e)),
            }
        }
        match &mut self.file {
            Some(file) => file
                .take(CHUNK)
                .read_to_end(&mut self.buffer)
                .map_err(ResultsError::io(&self.path, "read")),
            None => Ok(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::Tail;

    #[test]
    fn lines_are_handed_on_when_they_are_complete() {
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
