//! Output formats: pure functions from results and live figures to text.
//!
//! [`text`] is for readers. [`json`], [`jsonl`] and [`csv`] are for programs and stable: columns and fields are
//! only ever added. [`live`] shows a run in progress on a terminal or in a log; [`prometheus`] exposes it as
//! counters for a scraper. Functions called `comparison_…` render two sets of runs side by side. None of them
//! performs I/O.

pub(crate) mod accounting;
pub(crate) mod checkpoint;
pub(crate) mod comparison;
mod csv;
mod detail;
pub mod dlio;
mod drill;
mod drill_picture;
mod explain;
mod headline;
mod json;
mod lines;
pub mod live;
mod oracle;
mod ossperf;
pub mod prometheus;
mod provenance;
mod rounds;
mod text;
mod train;

pub(crate) use comparison::word;
pub use comparison::{
    comparison_csv, comparison_json, comparison_markdown, comparison_sentence, comparison_text,
};
pub use csv::csv;
pub use headline::objective_lines;
pub use json::{json, jsonl};
pub use lines::break_line;
pub(crate) use ossperf::WHAT as OSSPERF_STEPS;
pub use text::{TextOptions, text};
