//! Options of a preparation.

use std::path::PathBuf;

use bucketload_core::trace::TraceOp;

use crate::formats::{Format, FormatOptions};

/// How a trace is prepared.
#[derive(Clone, Debug)]
pub struct PrepareOptions {
    /// Format of the files; detected per file if absent.
    pub format: Option<Format>,
    /// Options of the format.
    pub formats: FormatOptions,
    /// Operations to keep; all if absent.
    pub ops: Option<Vec<TraceOp>>,
    /// Inclusive ranges of recorded statuses to keep; all if empty.
    pub statuses: Vec<(u16, u16)>,
    /// Buckets to keep; all if empty.
    pub buckets: Vec<Vec<u8>>,
    /// Part of the trace to replay: from and to, nanoseconds since its first record. Earlier records tell which objects
    /// exist.
    pub window: (i64, i64),
    /// Sampling that makes the load smaller.
    pub sample: Option<Sample>,
    /// How records in the same tick of a coarse clock are treated.
    pub ticks: Ticks,
    /// Instants for records without any.
    pub untimed: Option<Untimed>,
    /// Positions of ranges of which only the length is known.
    pub ranges: RangePlacement,
    /// How reads of objects that should not exist are treated.
    pub ambiguous: Ambiguous,
    /// Whether to keep requests with a 4xx status.
    pub replay_errors: bool,
    /// Size of objects of unknown size, bytes.
    pub default_size: Option<u64>,
    /// Salt for replacing keys, prefixes and bucket names by hashes; `None` keeps the names.
    pub anonymise: Option<String>,
    /// Whether to continue if more than 0.1 % of the lines cannot be parsed.
    pub lenient: bool,
    /// File for samples of unparsable lines.
    pub samples: PathBuf,
    /// Directory for temporary files.
    pub temp: PathBuf,
    /// Seed of everything random: jitter, placement of ranges, drawn sizes.
    pub seed: u64,
}

impl PrepareOptions {
    /// The defaults: everything of every file, with temporary files in `temp`.
    #[must_use]
    pub fn new(temp: PathBuf) -> Self {
        Self {
            format: None,
            formats: FormatOptions::default(),
            ops: None,
            statuses: Vec::new(),
            buckets: Vec::new(),
            window: (0, i64::MAX),
            sample: None,
            ticks: Ticks::Spread,
            untimed: None,
            ranges: RangePlacement::Uniform,
            ambiguous: Ambiguous::Insert,
            replay_errors: false,
            default_size: None,
            anonymise: None,
            lenient: false,
            samples: temp.join("unparsable.txt"),
            temp,
            seed: 1,
        }
    }
}

/// Keeps a share of the keys, clients or buckets, selected by hash, with all their requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Share to keep, above 0 and at most 1.
    pub fraction: f64,
    /// What is sampled.
    pub by: SampleBy,
}

impl Sample {
    /// Whether the item with this hash is kept.
    pub(crate) fn keeps(&self, hash: u64) -> bool {
        // docs/spec/traces.md section 4.3: hash mod 2^24 < f * 2^24.
        ((hash & 0xff_ffff) as f64) < self.fraction * f64::from(1 << 24)
    }
}

/// What is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleBy {
    /// Keys, each with its complete history.
    Key,
    /// Clients.
    Client,
    /// Buckets.
    Bucket,
}

/// Treatment of records in the same tick of a coarse clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ticks {
    /// Spread evenly over the tick, in their order.
    Spread,
    /// All at the start of the tick.
    Burst,
    /// At random instants of the tick, in their order.
    Jitter,
}

/// Instants for records without any.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Untimed {
    /// Fixed gaps, records per second.
    Constant(f64),
    /// Exponential gaps, records per second.
    Poisson(f64),
    /// Fixed gaps; the value is the total span, nanoseconds.
    Span(i64),
}

/// Positions of ranges of which only the length is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangePlacement {
    /// At the start of the object.
    Head,
    /// Uniformly, at multiples of 4 KiB.
    Uniform,
    /// After the object's previous range.
    Sequential,
}

/// Treatment of reads of objects whose existence no record explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ambiguous {
    /// Insert a write of the object just before.
    Insert,
    /// Leave out the read.
    Drop,
}
