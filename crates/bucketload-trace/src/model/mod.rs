//! Fits a workload to a trace: arrivals, mix, sizes and popularity, with the goodness of each fit.
//!
//! ```text
//! canonical file ─ observe ─▶ Observed ─┬─ arrivals ───▶ law, dispersion recorded and fitted
//!    one pass, counts per key on disk   ├─ sizes ──────▶ laws, quantiles recorded and fitted
//!                                       ├─ popularity ─▶ law, shares recorded and fitted
//!                                       └─ workload ───▶ TOML
//! ```

mod arrivals;
mod observe;
mod popularity;
mod report;
mod sizes;
mod workload;

use std::path::Path;

use serde::Serialize;

pub use arrivals::{ArrivalFit, Candidate, Dispersion};
pub use popularity::{PopularityFit, TopShare};
pub use sizes::{QuantileRow, SizeFit};

use crate::canonical::CanonicalTrace;
use crate::error::TraceError;
use observe::observe;

/// A fitted workload, with its goodness of fit.
#[derive(Clone, Debug, Serialize)]
pub struct Model {
    /// The workload, in the language of workload files.
    pub workload: String,
    /// Number of fitted requests.
    pub requests: u64,
    /// Time from the first to the last request, nanoseconds.
    pub span_ns: i64,
    /// Share of each entry of the mix, by name.
    pub mix: Vec<(String, f64)>,
    /// The arrival process.
    pub arrivals: ArrivalFit,
    /// Sizes of objects read, if any.
    pub read_sizes: Option<SizeFit>,
    /// Sizes of objects written, if any.
    pub write_sizes: Option<SizeFit>,
    /// Lengths of ranges, if any.
    pub range_lengths: Option<SizeFit>,
    /// Popularity of objects in reads, if any.
    pub reads: Option<PopularityFit>,
    /// Popularity of objects in overwrites, if any.
    pub overwrites: Option<PopularityFit>,
    /// Notes on what the workload does not reproduce.
    pub notes: Vec<String>,
}

/// Fits a workload called `name` to a trace. Temporary files go to `temp`.
///
/// # Errors
/// When the trace cannot be read, or is too short for a fit: below 100 requests or without duration.
pub fn model(
    trace: &CanonicalTrace,
    name: &str,
    temp: &Path,
    seed: u64,
) -> Result<Model, TraceError> {
    let summary = trace.summary();
    if summary.requests < 100 || summary.span_ns <= 0 {
        return Err(TraceError::Empty(format!(
            "{} requests in {} ns are too few for a model: 100 are needed",
            summary.requests, summary.span_ns
        )));
    }
    let seen = observe(trace, temp)?;
    let mut notes = summary.notes.clone();
    let fit = |sketch: &crate::SizeSketch| SizeFit::of(sketch);
    let mut model = Model {
        workload: String::new(),
        requests: summary.requests,
        span_ns: summary.span_ns,
        mix: Vec::new(),
        arrivals: arrivals::fit(&seen.arrivals, summary, seed)?,
        read_sizes: fit(&seen.read_sizes),
        write_sizes: fit(&seen.write_sizes),
        range_lengths: fit(&seen.range_lengths),
        reads: PopularityFit::of(&seen.reads),
        overwrites: PopularityFit::of(&seen.overwrites),
        notes: Vec::new(),
    };
    let (mix, workload) = workload::workload(name, summary, &seen, &model, &mut notes);
    (model.mix, model.workload, model.notes) = (mix, workload, notes);
    Ok(model)
}
