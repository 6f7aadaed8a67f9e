//! The HTML report: one file that loads nothing from elsewhere.
//!
//! [`html`] turns a [`RunResult`] into a [`Page`] (text, tables and charts of the [`kit`](crate::kit)) and renders
//! it; it computes no figures. `summary` makes the head, `latency` and `load` the charts of a phase, `anatomy` the
//! parts of its response times, `balance` the spread over endpoints and nodes, `accounting` what only some phases
//! have (popularity, streams, size classes, gates), `workload` the comparison with theory, `oracle` the
//! consistency findings, `ossperf` and `io500` the figures of those benchmarks, `density` the latencies of
//! MD-Workbench, `notes` the remarks that several phases share, and `environment` the rest. `comparison` and
//! `overlay` make the same page for two sets of runs.

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

/// The report of a comparison: the same figures with one column per side, and charts with both sides overlaid.
#[must_use]
pub fn comparison_html(comparison: &Comparison, a: &[Run], b: &[Run]) -> String {
    comparison::page(comparison, a, b).render()
}

/// The content of a run's report.
#[must_use]
pub fn page(result: &RunResult) -> Page {
    let mut page = summary::head(result);
    page.sections.extend(accounting::identity(result));
    page.sections
        .extend(result.ossperf.as_ref().map(ossperf::section));
    page.sections.extend(density::section(result));
    for phase in result.measured() {
        page.sections
            .extend(phase_sections(phase, &result.run.driver.endpoints));
    }
    let several = result.measured().count() >= notes::SEVERAL;
    let notes = several.then(|| notes::gather(&mut page)).flatten();
    // Scores come first: they are why readers open the page.
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

fn phase_sections(phase: &PhaseResult, endpoints: &[String]) -> Vec<Section> {
    let mut sections = vec![summary::classes(phase), latency::section(phase)];
    sections.extend(anatomy::section(phase, endpoints));
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
