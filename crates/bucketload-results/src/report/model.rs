//! Sections for phases with jobs and for replays.

use super::summary::{latencies, latency_row};
use crate::kit::{Axis, Chart, Section, Series, Table, Unit};
use crate::result::{ClassResult, JobsResult, PhaseResult, ReplayResult};
use crate::units;
use bucketload_core::error::ErrorKind;

/// The sections that the phase's model adds.
pub(super) fn sections(phase: &PhaseResult) -> Vec<Section> {
    let jobs = phase.jobs.as_ref().map(|jobs| jobs_section(phase, jobs));
    let replay = phase.replay.as_ref().map(replay_section);
    jobs.into_iter().chain(replay).collect()
}

fn jobs_section(phase: &PhaseResult, jobs: &JobsResult) -> Section {
    let spans = jobs.spans.iter();
    let makespans = latencies("Makespans")
        .noted(
            "From the start of a stage, or the arrival of a job, to the end of its last operation.",
        )
        .with(spans.map(|span| latency_row(&span.name, &span.makespan)));
    let counts = &jobs.counts;
    let failed = jobs.spans.last().map_or(0, |span| span.failed);
    let mut rows = vec![
        ("jobs started", units::count(counts.begun)),
        ("jobs ended", units::count(counts.ended)),
        ("jobs with a failed operation", units::count(failed)),
        ("jobs that waited for others", units::count(counts.delayed)),
    ];
    if let Some(growth) = &jobs.growth {
        let text = format!(
            "{:.1} to {:.1} in progress, {:+.2} per minute (p = {:.2e}): {}",
            growth.first_quarter,
            growth.end,
            60.0 * growth.slope_per_s,
            growth.p_value,
            if jobs.unstable { "unstable" } else { "stable" }
        );
        rows.push(("growth over the window", text));
    }
    let series = &phase.series;
    let points = series.t_s.iter().copied().zip(series.jobs.iter().copied());
    let chart = Chart::lines(
        "Jobs in progress",
        Axis::linear("time", Unit::Seconds),
        Axis::linear("jobs", Unit::Number),
        [Series::line("arrived and not ended", 0, points)],
    );
    let rows = rows
        .into_iter()
        .map(|(name, value)| [name.to_owned(), value]);
    let intro = "Jobs arrive independently of the store; within a job, each stage waits for the previous one.";
    Section::new("Jobs", intro)
        .tables([makespans, Table::pairs("").with(rows)])
        .charts([chart])
}

/// What a corrupt answer means in a replay; empty without any.
pub(super) fn corrupt(phase: &PhaseResult) -> &'static str {
    let corrupt = |c: &ClassResult| c.errors.iter().any(|e| e.kind == ErrorKind::Corrupt);
    match phase.replay.is_some() && phase.classes.iter().any(corrupt) {
        true => {
            " Corrupt, in a replay: the store returned another number of bytes than the trace says the object has. The \
             store may be wrong, or the trace contradicts itself; the failures name both sizes."
        }
        false => "",
    }
}

fn replay_section(replay: &ReplayResult) -> Section {
    let counts = replay
        .rows()
        .into_iter()
        .filter(|(_, n)| *n > 0)
        .map(|(name, n)| [name.to_owned(), units::count(n)]);
    let waits = [("key order", &replay.blocked), ("shaping", &replay.shaped)];
    let waits = waits.into_iter().filter(|(_, figures)| figures.n > 0);
    let waits = latencies("Waits added by the replay")
        .noted(
            "The wait for a key is part of the response time; shaping shifts the due time and is not part of it.",
        )
        .with(waits.map(|(name, figures)| latency_row(name, figures)));
    let waits = Some(waits).filter(|table| !table.rows.is_empty());
    Section::new("Replay", format!("Trace {}.", replay.trace))
        .tables([Table::pairs("").with(counts)])
        .tables(waits)
}
