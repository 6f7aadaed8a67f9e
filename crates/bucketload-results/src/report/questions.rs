//! The body of a report: five questions, each with its charts; what is evidence rather than answer is folded.

use super::{
    accounting, anatomy, balance, density, environment, latency, load, model, notes, oracle,
    summary, workload,
};
use crate::kit::{Chart, Section};
use crate::result::{PhaseResult, RunResult};

/// The questions that the result can answer.
pub(super) fn sections(result: &RunResult) -> Vec<Section> {
    let phases: Vec<&PhaseResult> = result.measured().collect();
    let endpoints = &result.run.driver.endpoints;
    let time = |phase: &PhaseResult| where_it_goes(phase, endpoints);
    let mut questions = Vec::new();
    if phases.len() >= notes::SEVERAL {
        // Question by question, a reader would open each phase again and again.
        let part = |phase: &&PhaseResult| phase_by_phase(phase, endpoints);
        questions.extend([
            Section::new("How fast?", "")
                .tables([summary::all(&phases)])
                .parts(density::section(result)),
            Section::new("Phase by phase", "").parts(phases.iter().map(part)),
            Section::new("Where does the time go?", "")
                .parts(result.nodes.as_ref().map(balance::nodes)),
            Section::new("Can I believe it?", ""),
        ]);
    } else {
        questions.extend([
            per_phase(&phases, "How fast?", fast).parts(density::section(result)),
            per_phase(&phases, "How steady?", steady),
            per_phase(&phases, "Where does the time go?", time)
                .parts(result.nodes.as_ref().map(balance::nodes)),
            per_phase(&phases, "Can I believe it?", believe),
        ]);
    }
    if let Some(believe) = questions.pop() {
        let believe = believe
            .parts(oracle::sections(result))
            .parts(environment::failures(result).map(Section::folded));
        questions.push(believe);
    }
    questions.push(what(result));
    questions.into_iter().filter(|q| !q.is_empty()).collect()
}

/// All that is known of a phase, folded.
fn phase_by_phase(phase: &PhaseResult, endpoints: &[String]) -> Section {
    let titled = |title: &str, section: Section| Section {
        title: title.to_owned(),
        ..section
    };
    Section::new(format!("Phase {}", phase.name), "")
        .parts([
            titled("How fast?", fast(phase).charts(first(phase))),
            titled("How steady?", steady(phase)),
            titled("Where does the time go?", where_it_goes(phase, endpoints)),
            titled("Can I believe it?", believe(phase)),
        ])
        .folded()
}

/// The charts that a page of one phase has on its first screen.
fn first(phase: &PhaseResult) -> [Chart; 2] {
    [load::operations(phase), latency::cdf(phase)]
}

/// A question that each phase answers: directly if there is one, else in a part per phase.
fn per_phase(
    phases: &[&PhaseResult],
    question: &str,
    answer: impl Fn(&PhaseResult) -> Section,
) -> Section {
    if let [phase] = phases[..] {
        return Section {
            title: question.to_owned(),
            ..answer(phase)
        };
    }
    let parts = phases.iter().map(|phase| Section {
        title: format!("Phase {}", phase.name),
        ..answer(phase)
    });
    Section::new(question, "").parts(parts)
}

fn fast(phase: &PhaseResult) -> Section {
    let several_lines = phase.classes.iter().filter(|c| c.ok > 0).count() > 1;
    let mut section = summary::classes(phase);
    section.intro += model::corrupt(phase);
    section
        .charts([latency::tail(phase)])
        .charts(load::bytes(phase))
        .parts(accounting::section(phase))
        .parts(model::sections(phase))
        .parts(several_lines.then(|| latency::service(phase)))
}

fn steady(phase: &PhaseResult) -> Section {
    let section = Section::new("", "").tables([load::steadiness(phase)]);
    let bands = latency::bands(phase);
    // A chart per operation: of many operations they are evidence.
    let section = match phase.classes.len() {
        ..=4 => section.charts(bands),
        _ => section.parts([
            Section::new("Response time over the phase, by operation", "")
                .charts(bands)
                .folded(),
        ]),
    };
    section
        .parts([latency::heat_maps(phase)])
        .parts(load::backlog(phase))
        .parts(phase.throughput.as_ref().map(load::distribution))
}

fn where_it_goes(phase: &PhaseResult, endpoints: &[String]) -> Section {
    let section = anatomy::section(phase, endpoints).unwrap_or_default();
    section.parts(phase.endpoints.as_ref().map(balance::endpoints))
}

fn believe(phase: &PhaseResult) -> Section {
    load::believe(phase).parts([latency::lag(phase)])
}

fn what(result: &RunResult) -> Section {
    let realised = result.measured().filter(|phase| !phase.realised.is_empty());
    let several = result.measured().count() > 1;
    let realised = realised.map(|phase| {
        let mut section = workload::section(phase).folded();
        if several {
            section.title += &format!(": {}", phase.name);
        }
        section
    });
    environment::what(result)
        .parts(accounting::identity(result))
        .parts(environment::trace(result))
        .parts(realised)
        .parts(environment::other_phases(result).map(Section::folded))
        .parts([environment::environment(result).folded()])
}
