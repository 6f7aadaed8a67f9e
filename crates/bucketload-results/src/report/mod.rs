//! The HTML report: one file that loads nothing from elsewhere.
//!
//! [`html`] turns a [`RunResult`] into a [`Page`] (text, tables and charts of the [`kit`](crate::kit)) and renders
//! it; it computes no figures. `summary` makes the head and the tables of classes, `overview` the charts of the first
//! screen. The body answers five questions (`questions`): `latency` and `load` have the charts of a phase, `time` what
//! all curves over time share, `anatomy` the parts of response times, `balance` the spread over endpoints and nodes,
//! `accounting` what only some phases have (popularity, streams, size classes, gates), `workload` the comparison with
//! theory, `oracle` the consistency findings, `drill` what broke on purpose, `ossperf` and `io500` the figures of those
//! benchmarks, `density` the latencies of MD-Workbench, `train` how busy accelerators were, `notes` the remarks that
//! several phases share, and `environment` the rest.
//! `comparison` and `overlay` make the same page for two sets of runs.

mod accounting;
mod anatomy;
mod balance;
mod comparison;
mod density;
mod drill;
mod environment;
mod io500;
mod latency;
mod load;
mod model;
mod notes;
mod oracle;
mod ossperf;
mod overlay;
mod overview;
mod questions;
mod summary;
mod time;
mod train;
mod workload;

pub use density::density;

use crate::compare::{Comparison, Run};
use crate::kit::Page;
use crate::result::RunResult;

/// The report of a run as a self-contained HTML page.
#[must_use]
pub fn html(result: &RunResult) -> String {
    page(result).render()
}

/// The report of a comparison: the same figures with one column per side, and charts with both sides overlaid.
#[must_use]
pub fn comparison_html(comparison: &Comparison, a: &[Run], b: &[Run]) -> String {
    comparison::page(comparison, a, b).render()
}

/// The content of a run's report.
#[must_use]
pub fn page(result: &RunResult) -> Page {
    let mut page = summary::head(result);
    page.first = overview::charts(result);
    // Scores come first: they are why readers open the page.
    let scores = result.io500.as_ref().map(io500::section);
    page.sections.extend(scores);
    page.sections
        .extend(result.ossperf.as_ref().map(ossperf::section));
    page.sections
        .extend(result.drill.as_ref().map(drill::section));
    let checkpoint = result.checkpoint.as_ref();
    page.sections
        .extend(checkpoint.map(crate::output::checkpoint::section));
    page.sections
        .extend(result.train.iter().map(train::section));
    page.sections.extend(questions::sections(result));
    let several = result.measured().count() >= notes::SEVERAL;
    let notes = several.then(|| notes::gather(&mut page)).flatten();
    page.sections.extend(notes);
    page
}
