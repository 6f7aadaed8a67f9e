//! MD-Workbench: its result lines, latency statistics and latency files (docs/spec/io500-mdworkbench.md, part B).
//!
//! ```text
//!  run directory ─┬─ events: ranks, phases ─┐
//!                 └─ operation log ─────────┴─ measure ─► Stage per phase ─► text (lines), latency (files)
//! ```
//!
//! Everything is computed from the operation log, phase by phase, so quantiles are exact.

pub mod latency;
pub mod measure;
pub mod quantile;
pub mod text;

pub use measure::{Kind, Sample, Stage, StageKind, stages};
