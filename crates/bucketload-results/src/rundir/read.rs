//! Streams a run directory in bounded memory, however the process that wrote it ended.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use bucketload_core::histogram::{Histogram, quantile_of};
use bucketload_core::op::OpClass;
use bucketload_core::oracle::Finding;
use bucketload_core::sink::Event;
use bucketload_core::slowest::SlowRequest;
use bucketload_core::tally::{Gauges, Interval, Tally};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::hdr::{Decoder, split};
use super::line::{Exact, IntervalLine, Metric, Owner};
use super::manifest::Manifest;
use super::{EVENTS, INTERVALS, ORACLE, hist_name, slow};
use crate::error::ResultsError;

/// Limit on the length of a line; run directories have no longer lines.
const MAX_LINE: u64 = 16 << 20;
/// Limit on the events kept in memory; further ones are only counted.
const MAX_EVENTS: usize = 10_000;

/// Unreadable parts of a run directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    /// Files whose last line is incomplete: the process died while writing it.
    pub torn: Vec<String>,
    /// Invalid lines inside files, as `file:line`, at most 20.
    pub lines: Vec<String>,
    /// Number of further such lines.
    pub more_lines: u64,
    /// Histograms that an interval refers to but that are missing or unreadable.
    pub histograms: u64,
    /// Events beyond those kept.
    pub dropped_events: u64,
}

impl Damage {
    /// True if everything was read.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    fn line(&mut self, file: &str, number: u64) {
        if self.lines.len() < 20 {
            self.lines.push(format!("{file}:{number}"));
        } else {
            self.more_lines += 1;
        }
    }

    /// Adds the damage that another pass found, without counting it twice.
    pub(crate) fn absorb(&mut self, other: Self) {
        for torn in other.torn {
            if !self.torn.contains(&torn) {
                self.torn.push(torn);
            }
        }
        for line in other.lines {
            if !self.lines.contains(&line) {
                self.lines.push(line);
            }
        }
        self.more_lines = self.more_lines.max(other.more_lines);
        self.histograms = self.histograms.max(other.histograms);
        self.dropped_events = self.dropped_events.max(other.dropped_events);
    }
}

/// A run directory, opened for reading.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    manifest: Manifest,
}

impl RunDir {
    /// Opens the run directory `path`.
    ///
    /// # Errors
    /// When the manifest is missing, damaged or too new.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, ResultsError> {
        let path = path.into();
        let manifest = Manifest::read(&path)?;
        Ok(Self { path, manifest })
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The manifest.
    #[must_use]
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The events, at most 10,000 of them.
    ///
    /// # Errors
    /// When the file cannot be read. A missing file has no events.
    pub fn events(&self) -> Result<(Vec<Event>, Damage), ResultsError> {
        self.lines(EVENTS)
    }

    /// The slowest requests of each measuring phase, slowest first, at most
    /// [`bucketload_core::slowest::KEPT`] per phase.
    ///
    /// # Errors
    /// When the file cannot be read. A missing file has no requests.
    pub fn slowest(&self) -> Result<(BTreeMap<u16, Vec<SlowRequest>>, Damage), ResultsError> {
        slow::read(&self.path)
    }

    /// The findings of the oracle in the order in which they were written, at most 10,000, and the unreadable parts
    /// of the file.
    ///
    /// # Errors
    /// When the file cannot be read. A missing file has no findings.
    pub fn findings(&self) -> Result<(Vec<Finding>, Damage), ResultsError> {
        self.lines(ORACLE)
    }

    fn lines<T: DeserializeOwned>(
        &self,
        name: &'static str,
    ) -> Result<(Vec<T>, Damage), ResultsError> {
        let mut lines = Lines::open(&self.path, name)?;
        let mut damage = Damage::default();
        let mut all = Vec::new();
        while let Some(line) = lines.next(&mut damage)? {
            if all.len() < MAX_EVENTS {
                all.push(line);
            } else {
                damage.dropped_events += 1;
            }
        }
        Ok((all, damage))
    }

    /// The intervals, in the order in which they were written.
    ///
    /// # Errors
    /// When the file cannot be read. A missing file has no intervals.
    pub fn intervals(&self) -> Result<IntervalReader, ResultsError> {
        Ok(IntervalReader {
            dir: self.path.clone(),
            lines: Lines::open(&self.path, INTERVALS)?,
            hist: None,
            decoder: Decoder::new(),
            text: String::new(),
            damage: Damage::default(),
        })
    }
}

/// Streams intervals: first the counters of each, then its histograms on demand.
pub struct IntervalReader {
    dir: PathBuf,
    lines: Lines,
    hist: Option<(u16, File, PathBuf)>,
    decoder: Decoder,
    text: String,
    damage: Damage,
}

impl IntervalReader {
    /// The next interval with all its histograms; `None` at the end.
    ///
    /// # Errors
    /// When a file cannot be read. Truncated or damaged parts are skipped and reported by
    /// [`IntervalReader::into_damage`].
    pub fn next_interval(&mut self) -> Result<Option<Interval>, ResultsError> {
        let Some(line) = self.next_line()? else {
            return Ok(None);
        };
        let mut interval = empty_interval();
        self.load(&line, &mut interval, |_| true)?;
        Ok(Some(interval))
    }

    /// The damage found so far.
    #[must_use]
    pub fn into_damage(self) -> Damage {
        self.damage
    }

    pub(crate) fn next_line(&mut self) -> Result<Option<IntervalLine>, ResultsError> {
        self.lines.next(&mut self.damage)
    }

    /// Replaces `interval` with the one in `line`, with the histograms of the `wanted` metrics.
    pub(crate) fn load(
        &mut self,
        line: &IntervalLine,
        interval: &mut Interval,
        wanted: impl Fn(Metric) -> bool,
    ) -> Result<(), ResultsError> {
        line.fill(interval);
        self.histograms(line, wanted, |stored| stored.add_to(&mut interval.tally))
    }

    /// Passes the histograms of the `wanted` metrics in `line` to `each`, if they are those that were written. They are
    /// lists of buckets, because long runs have millions, most of them with few values in a wide range.
    pub(crate) fn histograms(
        &mut self,
        line: &IntervalLine,
        wanted: impl Fn(Metric) -> bool,
        mut each: impl FnMut(&Stored<'_>),
    ) -> Result<(), ResultsError> {
        self.read_histograms(line)?;
        let mut missing = line.exacts().filter(|(_, m, _)| wanted(*m)).count() as u64;
        for entry in self.text.lines() {
            let Some((metric, owner, encoded)) = parse_entry(entry) else {
                continue;
            };
            if !wanted(metric) {
                continue;
            }
            let Some((.., exact)) = line.exacts().find(|(o, m, _)| (*o, *m) == (owner, metric))
            else {
                continue;
            };
            let Some(buckets) = self.decoder.decode(encoded) else {
                continue;
            };
            if buckets.iter().map(|(_, count)| count).sum::<u64>() == exact.n {
                missing = missing.saturating_sub(1);
                each(&Stored {
                    owner,
                    metric,
                    buckets,
                    exact: *exact,
                });
            }
        }
        self.damage.histograms += missing;
        Ok(())
    }

    /// Reads the part of the histogram log that `line` refers to into `self.text`.
    fn read_histograms(&mut self, line: &IntervalLine) -> Result<(), ResultsError> {
        self.text.clear();
        let (offset, len) = line.hist;
        if len == 0 || len > MAX_LINE {
            return Ok(());
        }
        if self
            .hist
            .as_ref()
            .is_none_or(|(phase, ..)| *phase != line.phase)
        {
            let path = self.dir.join(hist_name(line.phase));
            self.hist = match File::open(&path) {
                Ok(file) => Some((line.phase, file, path)),
                Err(e) if e.kind() == io::ErrorKind::NotFound => None,
                Err(e) => return Err(ResultsError::io(&path, "open")(e)),
            };
        }
        if let Some((_, file, path)) = &mut self.hist {
            let mut bytes = std::mem::take(&mut self.text).into_bytes();
            file.seek(SeekFrom::Start(offset))
                .and_then(|_| file.take(len).read_to_end(&mut bytes))
                .map_err(ResultsError::io(path, "read"))?;
            // Damaged bytes make single lines unreadable, not the whole text.
            self.text = String::from_utf8(bytes)
                .unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned());
        }
        Ok(())
    }
}

/// A histogram of an interval as it is stored.
#[derive(Debug)]
pub(crate) struct Stored<'a> {
    pub(crate) owner: Owner,
    pub(crate) metric: Metric,
    buckets: &'a [(usize, u64)],
    exact: Exact,
}

impl Stored<'_> {
    /// Adds it to the histogram of `tally` to which it belongs.
    pub(crate) fn add_to(&self, tally: &mut Tally) {
        if let Some(histogram) = self.owner.histogram_mut(tally, self.metric) {
            self.add_into(histogram);
        }
    }

    /// Adds it to `histogram`.
    pub(crate) fn add_into(&self, histogram: &mut Histogram) {
        let Exact {
            sum_ns,
            min_ns,
            max_ns,
            ..
        } = self.exact;
        histogram.add_buckets(self.buckets.iter().copied(), sum_ns, min_ns, max_ns);
    }

    /// See [`Histogram::quantile_ns`].
    pub(crate) fn quantile_ns(&self, q: f64) -> u64 {
        let Exact {
            n, min_ns, max_ns, ..
        } = self.exact;
        quantile_of(self.buckets.iter().copied(), n, min_ns, max_ns, q)
    }
}

/// Splits a log line into metric, owner and encoded histogram.
fn parse_entry(entry: &str) -> Option<(Metric, Owner, &str)> {
    let (tag, encoded) = split(entry)?;
    let mut parts = tag.split('/');
    let (_phase, work, class) = (parts.next()?, parts.next()?, parts.next()?);
    let metric = Metric::from_name(parts.next()?)?;
    let (owner, metrics): (_, &[Metric]) = match (work, class.split_once('@')) {
        ("-", _) => match class.strip_prefix("endpoint-") {
            Some(index) => (Owner::Endpoint(index.parse().ok()?), &[Metric::Service]),
            None => (Owner::Tally, &Metric::OF_TALLY),
        },
        (work, None) if class.starts_with("part-") => {
            let part = class.strip_prefix("part-")?.parse().ok()?;
            (Owner::Span(work.parse().ok()?, part), &[Metric::Makespan])
        }
        (work, None) => (
            Owner::Cell(work.parse().ok()?, OpClass::from_name(class)?),
            &Metric::OF_CELL,
        ),
        (work, Some((class, range))) => {
            let (from, to) = range.split_once('-')?;
            let (from, to) = (from.parse().ok()?, to.parse().ok()?);
            let class = OpClass::from_name(class)?;
            (
                Owner::Size(work.parse().ok()?, class, from, to),
                &Metric::OF_SIZE,
            )
        }
    };
    metrics
        .contains(&metric)
        .then_some((metric, owner, encoded))
}

pub(crate) fn empty_interval() -> Interval {
    Interval {
        phase: 0,
        index: 0,
        start_ns: 0,
        end_ns: 0,
        tally: Tally::new(),
        gauges: Gauges::default(),
    }
}

/// Lines of a JSON-lines file.
pub(super) struct Lines {
    reader: Option<BufReader<File>>,
    path: PathBuf,
    name: &'static str,
    number: u64,
    buffer: Vec<u8>,
}

impl Lines {
    pub(super) fn open(dir: &Path, name: &'static str) -> Result<Self, ResultsError> {
        let path = dir.join(name);
        let reader = match File::open(&path) {
            Ok(file) => Some(BufReader::with_capacity(1 << 16, file)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(ResultsError::io(&path, "open")(e)),
        };
        Ok(Self {
            reader,
            path,
            name,
            number: 0,
            buffer: Vec::new(),
        })
    }

    /// The next valid line; `None` at the end.
    pub(super) fn next<T: DeserializeOwned>(
        &mut self,
        damage: &mut Damage,
    ) -> Result<Option<T>, ResultsError> {
        let Some(reader) = &mut self.reader else {
            return Ok(None);
        };
        loop {
            self.buffer.clear();
            let read = reader
                .take(MAX_LINE)
                .read_until(b'\n', &mut self.buffer)
                .map_err(ResultsError::io(&self.path, "read"))?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            if self.buffer.last() != Some(&b'\n') {
                if (read as u64) < MAX_LINE {
                    damage.torn.push(self.name.to_owned());
                    return Ok(None);
                }
                damage.line(self.name, self.number);
                continue;
            }
            match serde_json::from_slice(&self.buffer) {
                Ok(value) => return Ok(Some(value)),
                Err(_) => damage.line(self.name, self.number),
            }
        }
    }
}

impl std::fmt::Debug for IntervalReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IntervalReader")
            .field("dir", &self.dir)
            .finish_non_exhaustive()
    }
}
