//! The run directory: append-only during the run, and readable whatever happens to the process.
//!
//! ```text
//! run.json          manifest: what ran, on which target, how it ended; replaced atomically
//! events.jsonl      phase starts and ends, calibration, warnings, first failures
//! intervals.jsonl   one line per interval: counters, gauges, exact sum/min/max per histogram
//! oracle.jsonl      findings of the consistency oracle with their evidence; only if it judged
//! hist/phase-N.hlog HdrHistogram interval log of phase N (V2, deflated); tags
//!                   join phase, work, class (or `part-N` of jobs) and metric by `/`; `-` and
//!                   `all` for figures of the whole phase, `-` and `endpoint-N` for those of one of
//!                   several endpoints
//! slowest.jsonl     the slowest requests of each measuring phase, appended as they become known; the
//!                   1000 slowest of a phase count
//! agents.json       the agents of a run on many hosts; replaced atomically once a second
//! ops-*.parquet     every operation, if the run was asked for it (or ops-*.csv.zst)
//! ```
//!
//! The histograms of an interval are written before its line, and the line states their position: every line has
//! its histograms. A `kill -9` can truncate only the last line of a file; [`read`] skips a truncated line and
//! reports it. Other HdrHistogram tools can read the histogram files too.
//!
//! [`RunDirSink`] writes, [`read`] streams, [`Follow`] watches a growing directory. [`manifest`] and `line` define the
//! formats, `hdr` converts histograms, [`redact`] keeps secrets out, [`host`] describes the machine.

pub mod host;
pub mod manifest;
pub mod read;
pub mod redact;

mod follow;
mod hdr;
mod line;
mod sink;
mod slow;

pub(crate) use line::{IntervalLine, Metric, Owner};
pub(crate) use read::{Stored, empty_interval};

pub use follow::Follow;
pub use manifest::{ClientFacts, Manifest, SettingOrigin, Status, TraceInput, VerdictSummary};
pub use read::{Damage, RunDir};
pub use sink::{RunDirSink, RunEnd, write_verdict};

/// Format of the directory; raised when older readers would misread it.
pub const FORMAT: u32 = 1;

/// Name of the manifest.
pub const MANIFEST: &str = "run.json";
/// Name of the interval file.
pub const INTERVALS: &str = "intervals.jsonl";
/// Name of the event file.
pub const EVENTS: &str = "events.jsonl";
/// Name of the file of the slowest requests.
pub const SLOWEST: &str = "slowest.jsonl";
/// Name of the file of the oracle's findings.
pub const ORACLE: &str = "oracle.jsonl";
/// Name of the folder of histogram logs.
pub const HIST: &str = "hist";

/// Name of the histogram log of a phase, inside the run directory.
#[must_use]
pub fn hist_name(phase: u16) -> String {
    format!("{HIST}/phase-{phase}.hlog")
}
