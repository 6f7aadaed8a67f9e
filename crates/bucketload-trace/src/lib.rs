//! Recorded requests of object stores and caches, prepared for replay or for fitting a model.
//!
//! ```text
//! files ─ input ─ frames ─ formats ─▶ Parsed ─ prepare ─▶ canonical file ─┬─ replay source
//!  gz, zst   lines, JSON  importers            sort, liveness, sizes      └─ model ─▶ workload
//! ```
//!
//! Everything streams: memory does not grow with the length of a trace, and data that does not fit goes into
//! temporary files without names. Formats, timing and the treatment of absent keys follow the page
//! `docs/traces.md`.

mod blocks;
mod canonical;
mod error;
mod formats;
mod frames;
mod hash;
mod input;
mod model;
mod named_record;
mod parsed;
mod prepare;
mod source;
mod spill;
mod text;

pub use blocks::{BlockStatistics, block_statistics};
pub use canonical::{CanonicalStream, CanonicalTrace};
pub use error::TraceError;
pub use formats::{
    Column, Emit, Format, FormatOptions, Framing, Importer, Layout, MOONCAKE_BLOCK_TOKENS,
    SWIFT_TEMPLATE, TimeForm, detect,
};
pub use frames::{Frame, Frames};
pub use model::{
    ArrivalFit, Candidate, Dispersion, Model, PopularityFit, QuantileRow, SizeFit, TopShare, model,
};
pub use parsed::{DropReason, NO_TIME, ParsedRecord};
pub use prepare::{
    Ambiguous, FileFacts, PrepareOptions, RangePlacement, RateSeries, RecordedLatency, Sample,
    SampleBy, SizeSketch, SizeSources, Summary, Ticks, Untimed, prepare,
};
pub use source::{LapKeys, MAX_COPIES, Replay, SourceOptions};
