//! Figures of phases with jobs or replays.

use bucketload_core::plan::PhasePlan;
use bucketload_core::tally::Tally;
use bucketload_core::verdict::Verdict;

use super::bins::Counts;
use super::judge;
use super::scan::PhaseScan;
use crate::result::{JobsResult, Latency, ReplayResult, SpanResult};

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
