//! The HTML report: one file that loads nothing from elsewhere.
//!
//! [`html`] turns a [`RunResult`] into a [`Page`] (text, tables, charts of the [`kit`](crate::kit)) and renders
//! it; it computes no figure of its own. `summary` makes the head, `latency` and `load` the charts
//! of a phase, `anatomy` the parts of its response times, `balance` the spread over endpoints and
//! nodes, `accounting` what only some phases state (identity, streams, size classes, gates),
//! `workload` the comparison with theory, `oracle` what was found out about consistency, `ossperf` the
//! six steps of that benchmark, `io500` the scores of that one, `density` the latencies of MD-Workbench, `notes` what
//! several phases have in common,
//! `environment` the rest. `comparison` and `overlay` make the same page for two sets of runs.

mod accounting;
mod anatomy;
mod balance;
mod comparison;
mod density;
mod environment;
mod io500;
mod latency;
mod load;
mod model;
mod notes;
mod oracle;
mod ossperf;
mod overlay;
mod summary;
mod workload;

pub use density::density;

use crate::compare::{Comparison, Run};
use crate::kit::{Page, Section};
use crate::result::{PhaseResult, RunResult};

/// The report of a run as a self-contained HTML page.
#[must_use]
pub fn html(result: &RunResult) -> String {
    page(result).render()
}

/// The report of a comparison: the same figures with a column per side, both drawn over each other.
#[must_use]
pub fn comparison_html(comparison: &Comparison, a: &[Run], b: &[Run]) -> String {
    comparison::page(comparison, a, b).render()
}

/// The content of that page.
#[must_use]
pub fn page(result: &RunResult) -> Page {
    let mut page = summary::head(result);
    page.sections.extend(accounting::identity(result));
    page.sections
        .extend(result.ossperf.as_ref().map(ossperf::section));
    page.sections.extend(density::section(result));
    for phase in result.measured() {
        page.sections.extend(phase_sections(phase));
    }
    let several = result.measured().count() >= notes::SEVERAL;
    let notes = several.then(|| notes::gather(&mut page)).flatten();
    // Scores first: they are what the page is looked at for.
    let scores = result.io500.as_ref().map(io500::section);
    let head = scores.into_iter().chain(notes);
    page.sections.splice(0..0, head);
    page.sections.extend(oracle::sections(result));
    page.sections.extend(environment::trace(result));
    page.sections
        .extend(result.nodes.as_ref().map(balance::nodes));
    page.sections.extend(environment::other_phases(result));
    page.sections.extend(environment::failures(result));
    page.sections.push(environment::environment(result));
    page
}

fn phase_sections(phase: &PhaseResult) -> Vec<Section> {
    let mut sections = vec![summary::classes(phase), latency::section(phase)];
    sections.extend(anatomy::section(phase));
    sections.push(load::section(phase));
    sections.extend(phase.endpoints.as_ref().map(balance::endpoints));
    sections.extend(model::sections(phase));
    sections.extend(accounting::section(phase));
    if let Some(throughput) = &phase.throughput {
        sections.push(load::distribution(throughput));
    }
    if !phase.realised.is_empty() {
        sections.push(workload::section(phase));
    }
    sections
}
