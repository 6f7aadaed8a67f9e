//! Figures of phases with jobs, replays or the cache of a language model.

use bucketload_core::histogram::Histogram;
use bucketload_core::op::OpClass;
use bucketload_core::plan::{KV_QUANTILES, KvClass, KvSpan, KvUsers, KvcachePlan, PhasePlan};
use bucketload_core::tally::{Cell, Tally};
use bucketload_core::verdict::Verdict;

use super::bins::Counts;
use super::judge;
use super::scan::PhaseScan;
use crate::result::{
    JobsResult, KvClassResult, KvDuration, KvMlperf, KvTarget, KvcacheResult, Latency,
    ReplayResult, SpanResult,
};

/// Jobs of a phase; `None` if no work consists of jobs.
pub(crate) fn jobs(
    plan: &PhasePlan,
    scan: &PhaseScan,
    tally: &Tally,
    verdict: Option<&Verdict>,
    bins: &[Counts],
) -> Option<JobsResult> {
    let mut spans: Vec<SpanResult> = Vec::new();
    let mut any = false;
    for (index, work) in plan.works.iter().enumerate() {
        let Some(jobs) = work.model.jobs() else {
            continue;
        };
        any = true;
        let of_work = |span: &&bucketload_core::tally::Span| usize::from(span.work) == index;
        spans.extend(tally.spans.iter().filter(of_work).map(|span| SpanResult {
            work: span.work,
            work_name: work.name.clone(),
            part: span.part,
            name: jobs.span_name(span.part).unwrap_or_default(),
            failed: span.failed,
            makespan: Latency::of(&span.makespan),
        }));
    }
    spans.sort_by_key(|span| (span.work, span.part));
    let is_unstable = |verdict: &Verdict| verdict.reasons.iter().any(|r| r.rule == "unstable");
    any.then(|| JobsResult {
        counts: scan.jobs,
        growth: judge::jobs_growth(plan, bins),
        unstable: verdict.is_some_and(is_unstable),
        spans,
    })
}

/// Figures of a replay besides its requests; `None` for other models.
pub(crate) fn replay(plan: &PhasePlan, scan: &PhaseScan, tally: &Tally) -> Option<ReplayResult> {
    let replay = plan.works.iter().find_map(|work| work.model.replay())?;
    Some(ReplayResult {
        trace: replay.trace.clone(),
        counts: scan.replay,
        blocked: Latency::of(&tally.blocked),
        shaped: Latency::of(&tally.shaped),
    })
}

/// Figures of the cache of a language model; `None` for other models. `tally` is that of a window of `window_s` seconds.
pub(crate) fn kvcache(
    plan: &PhasePlan,
    scan: &PhaseScan,
    tally: &Tally,
    window_s: f64,
) -> Option<KvcacheResult> {
    let mut works = plan.works.iter().enumerate();
    let (work, cache) = works.find_map(|(i, work)| Some((i, work.model.kvcache()?)))?;
    let span = |part: u16| {
        let mut spans = tally.spans.iter();
        let found = spans.find(|span| usize::from(span.work) == work && span.part == part);
        found.map(|span| &span.makespan)
    };
    let counts = scan.kvcache;
    Some(KvcacheResult {
        trace: cache.trace.clone(),
        counts,
        block_hit_ratio: counts.hit_ratio(),
        token_hit_ratio: counts.token_hit_ratio(),
        durations: KvSpan::NAMES
            .into_iter()
            .filter_map(|(part, name)| {
                Some(KvDuration {
                    name: name.to_owned(),
                    time: Latency::of(span(part as u16)?),
                })
            })
            .collect(),
        classes: cache
            .classes
            .iter()
            .enumerate()
            .map(|(i, class)| kept(class, span(KvSpan::CLASSES + i as u16)))
            .collect(),
        mlperf: cache
            .users
            .as_ref()
            .map(|users| mlperf(cache, users, tally, window_s)),
    })
}

fn mlperf(cache: &KvcachePlan, users: &KvUsers, tally: &Tally, window_s: f64) -> KvMlperf {
    const GIB: f64 = 1_073_741_824.0;
    let cell = |class| tally.cells.iter().find(|cell| cell.class == class);
    let (read, written) = (cell(OpClass::Get), cell(cache.put_class()));
    let per_s = |cell: Option<&Cell>| match window_s > 0.0 {
        true => cell.map_or(0.0, |cell| cell.bytes as f64) / window_s,
        false => 0.0,
    };
    let p95 = |cell: Option<&Cell>| {
        let times = &cell?.service;
        (times.count() > 0).then(|| times.quantile_ns(0.95) as f64 / 1e6)
    };
    KvMlperf {
        aggregated_read_bandwidth_gbps: per_s(read) / GIB,
        aggregated_write_bandwidth_gbps: per_s(written) / GIB,
        aggregated_storage_throughput_tokens_per_sec: (per_s(read) + per_s(written))
            / cache.block_bytes as f64,
        aggregated_device_read_p95_ms: p95(read),
        aggregated_device_write_p95_ms: p95(written),
        total_ranks: users.clients,
        cpu_tier_ranks: if users.tier_bytes > 0 {
            users.clients
        } else {
            0
        },
    }
}

/// How far a class kept its targets. A percentile counts if at least one value is expected beyond it.
fn kept(class: &KvClass, times: Option<&Histogram>) -> KvClassResult {
    let empty = Histogram::new();
    let times = times.unwrap_or(&empty);
    let n = times.count();
    let within = times.count_at_most(class.targets_ns[0]) as f64 / n.max(1) as f64;
    let targets = KV_QUANTILES.into_iter().zip(class.targets_ns);
    KvClassResult {
        name: class.name.clone(),
        time: Latency::of(times),
        within,
        targets: targets
            .map(|(q, target_ns)| {
                let known = (1.0 - q) * n as f64 >= 1.0 - 1e-9;
                let value_ns = known.then(|| times.quantile_ns(q));
                KvTarget {
                    q,
                    target_ns,
                    value_ns,
                    kept: value_ns.map(|value| value <= target_ns),
                }
            })
            .collect(),
    }
}
