//! Sections for phases with jobs, for replays and for the cache of a language model.

use super::summary::{latencies, latency_row};
use crate::kit::{Axis, Chart, Section, Series, Table, Unit};
use crate::result::{ClassResult, JobsResult, KvMlperf, KvcacheResult, PhaseResult, ReplayResult};
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
    let ratios = match &cache.mlperf {
        Some(figures) => mlperf(figures),
        None => vec![
            ["block hit ratio".to_owned(), ratio(cache.block_hit_ratio)],
            ["token hit ratio".to_owned(), ratio(cache.token_hit_ratio)],
            [
                "bytes of hits".to_owned(),
                units::bytes(cache.counts.hit_bytes as f64),
            ],
        ],
    };
    let (intro, until, noted) = match cache.mlperf {
        Some(_) => (
            "Users converse with a language model; each waits for its request, thinks, and sends the next.".to_owned(),
            "Classes of requests, whole requests",
            "Load: first read of an earlier turn sent to the last received. Arrival to loaded counts from the request. \
             Prefill: the write of the entry, with the wait for others that write. Decode: all reads of the own entry. \
             Request: all of these; the answer's generation is not part of it.",
        ),
        None => (
            format!("Trace {}.", cache.trace),
            "Classes of requests, arrival to loaded",
            "Load: first read sent to last needed block received. Arrival to loaded also has the lookup and all waiting. \
             First token later or earlier: load against the time to compute the same tokens. Write-behind: nobody waits \
             for it.",
        ),
    };
    let counts = cache.rows().into_iter().filter(|(_, n)| *n > 0);
    let counts = counts.map(|(name, n)| [name.to_owned(), units::count(n)]);
    let durations = cache.durations.iter().filter(|d| d.time.n > 0);
    let durations = latencies("Durations of requests")
        .noted(noted)
        .with(durations.map(|d| latency_row(&d.name, &d.time)));
    let classes = cache.classes.iter().filter(|class| class.time.n > 0);
    let classes = latencies(until).with(
        classes
            .clone()
            .map(|class| latency_row(&class.name, &class.time)),
    );
    let known = cache.classes.iter().filter(|class| class.time.n > 0);
    let kept = known.flat_map(|class| {
        class.targets.iter().map(|target| {
            let value = target.value_ns.map(|value| units::ns(value as f64));
            let word = match target.kept {
                Some(true) => "kept",
                Some(false) => "MISSED",
                None => "too few",
            };
            [
                format!("{} p{}", class.name, (target.q * 1e6).round() / 1e4),
                value.unwrap_or_else(|| "–".to_owned()),
                units::ns(target.target_ns as f64),
                word.to_owned(),
            ]
        })
    });
    let kept = Table::new(1, ["", "value", "target"])
        .text_columns(["outcome"])
        .titled("Targets of the classes")
        .with(kept);
    let classes = Some([classes, kept]).filter(|tables| !tables[0].rows.is_empty());
    let series = &phase.series;
    let points = series.t_s.iter().copied().zip(series.jobs.iter().copied());
    let shown = match cache.mlperf {
        Some(_) => "asked and not answered",
        None => "arrived and not written",
    };
    let chart = Chart::lines(
        "Requests in progress",
        Axis::linear("time", Unit::Seconds),
        Axis::linear("requests", Unit::Number),
        [Series::line(shown, 0, points)],
    );
    Section::new("Key-value cache", intro)
        .tables([
            Table::pairs("").with(ratios.into_iter().chain(counts)),
            durations,
        ])
        .tables(classes.into_iter().flatten())
        .charts([chart])
}

/// The figures of MLPerf Storage.
fn mlperf(f: &KvMlperf) -> Vec<[String; 2]> {
    let rate = |gib: f64| format!("{gib:.3} GiB/s");
    let p95 = |ms: Option<f64>| ms.map_or_else(|| "no values".to_owned(), |ms| units::ns(ms * 1e6));
    let rows = [
        ("read bandwidth", rate(f.aggregated_read_bandwidth_gbps)),
        ("write bandwidth", rate(f.aggregated_write_bandwidth_gbps)),
        (
            "tokens per second through the store",
            units::rate(f.aggregated_storage_throughput_tokens_per_sec),
        ),
        ("p95 of a read", p95(f.aggregated_device_read_p95_ms)),
        ("p95 of a write", p95(f.aggregated_device_write_p95_ms)),
        ("clients", units::count(u64::from(f.total_ranks))),
    ];
    let rows = rows.into_iter();
    rows.map(|(name, value)| [name.to_owned(), value]).collect()
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
