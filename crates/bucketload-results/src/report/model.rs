//! Sections for phases made of jobs and for replays.

use super::page::{Axis, Chart, Section, Series, Table};
use super::summary::latency_row;
use crate::result::{JobsResult, PhaseResult, ReplayResult};
use crate::units;

/// The sections that the phase's model adds.
pub(super) fn sections(phase: &PhaseResult) -> Vec<Section> {
    let jobs = phase.jobs.as_ref().map(|jobs| jobs_section(phase, jobs));
    let replay = phase.replay.as_ref().map(replay_section);
    jobs.into_iter().chain(replay).collect()
}

fn jobs_section(phase: &PhaseResult, jobs: &JobsResult) -> Section {
    let mut makespans = Table {
        title: "Makespans".to_owned(),
        head: ["", "n", "mean", "p50", "p90", "p95", "p99", "p99.9", "max"]
            .map(str::to_owned)
            .to_vec(),
        note: "From the beginning of a stage, or the arrival of a job, to the end of its last operation."
            .to_owned(),
        ..Table::default()
    };
    for span in &jobs.spans {
        makespans.rows.push(latency_row(&span.name, &span.makespan));
    }
    let counts = &jobs.counts;
    let failed = jobs.spans.last().map_or(0, |span| span.failed);
    let mut rows = vec![
        ("jobs begun", units::count(counts.begun)),
        ("jobs ended", units::count(counts.ended)),
        ("with a failed operation", units::count(failed)),
        ("that had to wait for others", units::count(counts.delayed)),
    ];
    if let Some(growth) = &jobs.growth {
        let text = format!(
            "{:.1} to {:.1} under way, {:+.2} per minute (p = {:.2e}): {}",
            growth.first_quarter,
            growth.end,
            60.0 * growth.slope_per_s,
            growth.p_value,
            if jobs.unstable { "unstable" } else { "stable" }
        );
        rows.push(("growth over the window", text));
    }
    let mut chart = Chart::lines(
        "Jobs under way",
        Axis::linear("time", "s"),
        Axis::linear("jobs", ""),
    );
    let points = phase.series.t_s.iter().zip(&phase.series.jobs);
    chart.series.push(Series {
        name: "arrived and not ended".to_owned(),
        points: points.map(|(&t, &jobs)| (t, Some(jobs))).collect(),
        ..Series::default()
    });
    Section {
        title: "Jobs".to_owned(),
        intro: "Jobs arrive whatever the store does; inside a job each stage waits for the one before it."
            .to_owned(),
        tables: vec![
            makespans,
            Table {
                rows: rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect(),
                ..Table::default()
            },
        ],
        charts: vec![chart],
    }
}

fn replay_section(replay: &ReplayResult) -> Section {
    let c = &replay.counts;
    let rows = [
        ("shed as too late", c.shed),
        ("objects absent against the trace", c.absent),
        ("objects absent as in the trace", c.absent_as_recorded),
        ("objects found against the trace", c.unexpected),
        ("skipped: key known to be absent", c.skipped_absent),
        (
            "skipped: record without a request of its own",
            c.skipped_other,
        ),
        ("waited for an earlier request on their key", c.blocked),
        ("delayed by the rate limit", c.shaped),
    ];
    let mut waits = Table {
        title: "Waits made by the replay".to_owned(),
        head: ["", "n", "mean", "p50", "p90", "p95", "p99", "p99.9", "max"]
            .map(str::to_owned)
            .to_vec(),
        note: "The wait for a key is part of the response time; shaping moves the due instant and is not."
            .to_owned(),
        ..Table::default()
    };
    for (name, figures) in [("key order", &replay.blocked), ("shaping", &replay.shaped)] {
        if figures.n > 0 {
            waits.rows.push(latency_row(name, figures));
        }
    }
    let mut tables = vec![Table {
        rows: rows
            .into_iter()
            .map(|(name, n)| vec![name.to_owned(), units::count(n)])
            .collect(),
        ..Table::default()
    }];
    if !waits.rows.is_empty() {
        tables.push(waits);
    }
    Section {
        title: "Replay".to_owned(),
        intro: format!("Trace {}.", replay.trace),
        tables,
        ..Section::default()
    }
}
