//! Sections for phases with jobs, for replays and for the cache of a language model.

use super::summary::{latencies, latency_row};
use crate::kit::{Axis, Chart, Section, Series, Table, Unit};
use crate::result::{ClassResult, JobsResult, KvcacheResult, PhaseResult, ReplayResult};
use crate::units;
use bucketload_core::error::ErrorKind;

/// The sections that the phase's model adds.
pub(super) fn sections(phase: &PhaseResult) -> Vec<Section> {
    let jobs = phase.jobs.as_ref().map(|jobs| jobs_section(phase, jobs));
    let replay = phase.replay.as_ref().map(replay_section);
    let kvcache = phase.kvcache.as_ref();
    let kvcache = kvcache.map(|cache| kvcache_section(phase, cache));
    jobs.into_iter().chain(replay).chain(kvcache).collect()
}

fn kvcache_section(phase: &PhaseResult, cache: &KvcacheResult) -> Section {
    let ratio = |share: f64| format!("{:.3} %", 100.0 * share);
    let ratios = [
        ["block hit ratio".to_owned(), ratio(cache.block_hit_ratio)],
        ["token hit ratio".to_owned(), ratio(cache.token_hit_ratio)],
        [
            "bytes of hits".to_owned(),
            units::bytes(cache.counts.hit_bytes as f64),
        ],
    ];
    let counts = cache.rows().into_iter().filter(|(_, n)| *n > 0);
    let counts = counts.map(|(name, n)| [name.to_owned(), units::count(n)]);
    let durations = cache.durations.iter().filter(|d| d.time.n > 0);
    let durations = latencies("Durations of requests")
        .noted(
            "Load: first read sent to last needed block received. Arrival to loaded also has the lookup and all waiting. \
             First token later or earlier: load against the time to compute the same tokens. Write-behind: nobody waits \
             for it.",
        )
        .with(durations.map(|d| latency_row(&d.name, &d.time)));
    let classes = cache.classes.iter().filter(|class| class.time.n > 0);
    let classes = latencies("Classes of requests, arrival to loaded").with(
        classes
            .clone()
            .map(|class| latency_row(&class.name, &class.time)),
    );
    let known = cache.classes.iter().filter(|class| class.time.n > 0);
    let kept = known.flat_map(|class| {
        class.targets.iter().map(|target| {
            let what = format!("{}, {} %", class.name, (target.q * 1e6).round() / 1e4);
            let limit = units::ns(target.target_ns as f64);
            let text = match (target.value_ns, target.kept) {
                (Some(value), Some(true)) => {
                    format!("{}, kept (at most {limit})", units::ns(value as f64))
                }
                (Some(value), _) => {
                    format!("{}, MISSED (at most {limit})", units::ns(value as f64))
                }
                (None, _) => format!("too few requests to tell (at most {limit})"),
            };
            [what, text]
        })
    });
    let kept = Table::pairs("Targets of the classes").with(kept);
    let classes = Some([classes, kept]).filter(|tables| !tables[0].rows.is_empty());
    let series = &phase.series;
    let points = series.t_s.iter().copied().zip(series.jobs.iter().copied());
    let chart = Chart::lines(
        "Requests in progress",
        Axis::linear("time", Unit::Seconds),
        Axis::linear("requests", Unit::Number),
        [Series::line("arrived and not written", 0, points)],
    );
    Section::new("Key-value cache", format!("Trace {}.", cache.trace))
        .tables([
            Table::pairs("").with(ratios.into_iter().chain(counts)),
            durations,
        ])
        .tables(classes.into_iter().flatten())
        .charts([chart])
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
