//! What a preparation can be told.

use std::path::PathBuf;

use bucketload_core::trace::TraceOp;

use crate::formats::{Format, FormatOptions};

/// How a trace is made ready.
#[derive(Clone, Debug)]
pub struct PrepareOptions {
    /// Format of the files; found out per file unless given.
    pub format: Option<Format>,
    /// What the format is told.
    pub formats: FormatOptions,
    /// Operations that are kept; all unless given.
    pub ops: Option<Vec<TraceOp>>,
    /// Inclusive ranges of recorded statuses that are kept; all when empty.
    pub statuses: Vec<(u16, u16)>,
    /// Buckets that are kept; all when empty.
    pub buckets: Vec<Vec<u8>>,
    /// Part of the trace that is replayed: from and to, nanoseconds since its first record. What
    /// comes before tells which objects exist.
    pub window: (i64, i64),
    /// What is left out to make the load smaller.
    pub sample: Option<Sample>,
    /// What is done about records in the same tick of a coarse clock.
    pub ticks: Ticks,
    /// Instants of records that have none.
    pub untimed: Option<Untimed>,
    /// Where ranges lie of which only the length is known.
    pub ranges: RangePlacement,
    /// What is done about reads of objects that should not exist.
    pub ambiguous: Ambiguous,
    /// Whether requests that were answered 4xx are kept.
    pub replay_errors: bool,
    /// Size of objects about which nothing is known, bytes.
    pub default_size: Option<u64>,
    /// Replace keys, prefixes and bucket names by hashes, salted with this.
    pub anonymise: Option<String>,
    /// Go on when more than 0.1 % of the lines cannot be read.
    pub lenient: bool,
    /// Where samples of unreadable lines are written, if there are any.
    pub samples: PathBuf,
    /// Directory for temporary files.
    pub temp: PathBuf,
    /// Seed of what is random: jitter, placement of ranges, drawn sizes.
    pub seed: u64,
}

impl PrepareOptions {
    /// Everything of every file, temporaries in `temp`.
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

/// Keeps a share of the keys or clients, by their hash, with all their requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Share that is kept, above 0 and at most 1.
    pub fraction: f64,
    /// What is sampled.
    pub by: SampleBy,
}

impl Sample {
    /// Whether something with this hash is kept.
    pub(crate) fn keeps(&self, hash: u64) -> bool {
        // docs/spec/traces.md section 4.3: hash mod 2^24 < f * 2^24.
        ((hash & 0xff_ffff) as f64) < self.fraction * f64::from(1 << 24)
    }
}

/// What is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleBy {
    /// Keys, each with its whole history.
    Key,
    /// Clients.
    Client,
    /// Buckets.
    Bucket,
}

/// Records in the same tick of a coarse clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ticks {
    /// Evenly over the tick, in their order.
    Spread,
    /// All at its start.
    Burst,
    /// At random instants of it, in their order.
    Jitter,
}

/// Instants of records that have none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Untimed {
    /// Fixed gaps, records per second.
    Constant(f64),
    /// Exponential gaps, records per second.
    Poisson(f64),
    /// Fixed gaps such that the trace takes so many nanoseconds.
    Span(i64),
}

/// Where ranges lie of which only the length is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangePlacement {
    /// At the start.
    Head,
    /// Anywhere, at multiples of 4 KiB.
    Uniform,
    /// Behind the last range of the object.
    Sequential,
}

/// Reads of objects that no record accounts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ambiguous {
    /// Write the object just before.
    Insert,
    /// Leave the read out.
    Drop,
}
