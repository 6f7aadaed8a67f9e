//! From a run directory to a result, in bounded memory.
//!
//! ```text
//! events ──────────────┐
//! intervals ──scan──> series, totals ──window──> measured window ─┐
//! intervals ──gather (histograms of the window) ──────────────────┴──> phases ──judge──> verdict
//! plan ──realised (operations generated again) ───────────────────────┘
//! ```
//!
//! The directory is read twice: the window is known only after the whole series, and the histograms of a
//! long run do not fit into memory at once. Series are folded (`fold`), so memory does not grow with the
//! length of the run.

mod accounting;
mod anatomy;
mod balance;
mod bins;
mod classes;
mod client;
mod events;
pub(crate) mod fold;
mod gather;
pub(crate) mod header;
mod judge;
mod model;
mod nodes;
mod rates;
mod realised;
mod scan;
mod throughput;
mod window;

use std::collections::BTreeMap;
use std::path::Path;

use bucketload_core::agent::{AGENTS, AgentsFile};
use bucketload_core::ai::AiFigures;
use bucketload_core::capacity::{CheckedObjective, TrialEvidence, judge as judge_slo};
use bucketload_core::plan::{Accounting, PhaseKind, PhasePlan};
use bucketload_core::slowest::SlowRequest;
use bucketload_core::tally::Tally;
use bucketload_core::verdict::Verdict;

use self::bins::Counts;
use self::classes::classes;
use self::events::EventSummary;
use self::gather::PhaseGather;
use self::rates::{rates, series};
use self::scan::PhaseScan;
use self::window::Marks;
use crate::error::ResultsError;
use crate::result::{
    CheckpointResult, Latency, OracleResult, Ossperf, PhaseResult, RoundsResult, RunResult, SCHEMA,
    SteadySeries, Summary, TrainResult, Window, ai,
};
use crate::rundir::{Manifest, RunDir, Status};
use crate::units;

pub use nodes::{nodes, nodes_by_phase, read_placement, read_served};

/// Analyses the run directory `dir`. The run may have finished, be running or have been killed.
///
/// # Errors
/// When `dir` is not a run directory or a file cannot be read. Truncated and damaged parts are not errors:
/// they are listed in [`RunResult::damage`].
pub fn analyze(dir: &Path) -> Result<RunResult, ResultsError> {
    examine(dir).map(|(result, _)| result)
}

/// Like [`analyze()`], and also returns the tally of each phase by its index in the plan. A tally covers the
/// operations from the start of the phase's window to the end of its drain; it serves percentiles and
/// objectives that a result does not contain.
///
/// # Errors
/// As [`analyze()`].
pub fn examine(dir: &Path) -> Result<(RunResult, BTreeMap<u16, Tally>), ResultsError> {
    let run = RunDir::open(dir)?;
    let manifest = run.manifest();
    let (events, mut damage) = run.events()?;
    let (slowest, slow_damage) = run.slowest()?;
    damage.absorb(slow_damage);
    let mut summary = EventSummary::of(events);
    let mut findings = Vec::new();
    let oracle = if manifest.plan.has_oracle() {
        let (found, lost) = run.findings()?;
        damage.absorb(lost);
        findings.clone_from(&found);
        Some(OracleResult::new(summary.oracle.take(), found))
    } else {
        None
    };
    let (scans, scan_damage) = scan::scan(&run, &summary.marks)?;
    damage.absorb(scan_damage);
    let mut planned = BTreeMap::new();
    for (&index, scan) in &scans {
        if let Some(plan) = manifest.plan.phases.get(usize::from(index)) {
            planned.insert(index, MeasuredPart::of(plan, scan, &summary.marks(index)));
        }
    }
    let windows = planned
        .iter()
        .map(|(&index, part)| (index, (&scans[&index], part.window, scans[&index].start_ns)))
        .collect();
    let (gathered, gather_damage) = gather::gather(&run, &windows, &summary.marks)?;
    damage.absorb(gather_damage);
    let mut phases = Vec::new();
    for (index, part) in planned {
        phases.push(phase(
            manifest,
            index,
            &scans[&index],
            &gathered[&index],
            part,
            &summary,
            slowest.get(&index).map_or(&[], Vec::as_slice),
        ));
    }
    let missing: Vec<String> = missing(manifest, &phases);
    let mut verdict = judge::overall(&phases, &missing, &damage, manifest);
    if let Some(log) = manifest.op_log.filter(|log| log.dropped > 0) {
        verdict.notes.push(format!(
            "the operation log is missing {} of {} operations because its writer could not keep up; the figures \
             of this result do not depend on it",
            log.dropped,
            log.rows + log.dropped
        ));
    }
    let agents = agents(dir);
    if let Some(agents) = &agents {
        verdict.notes.extend(agents.failed().map(|agent| {
            format!(
                "agent {} ({}) {}: {}",
                agent.rank,
                agent.host,
                agent.state.name(),
                agent.reason.as_deref().unwrap_or("unknown reason")
            )
        }));
    }
    let oracle_said = oracle.as_ref().map(|oracle| (oracle, findings.as_slice()));
    let drill = crate::drill::result(&run, dir, manifest.slo.as_ref(), oracle_said)?;
    let mut run = header::header(manifest);
    run.facts.extend(agents.as_ref().map(agents_fact));
    run.popularity = accounting::popularity(&phases);
    let finished = manifest.status == Status::Finished;
    let ossperf = Ossperf::of(&manifest.plan, &phases, finished);
    let numbered = manifest.plan.phases.iter().zip(0u16..);
    let train = numbered
        .filter_map(|(phase, index)| TrainResult::of(phase, index, &summary.epochs))
        .collect();
    let mut result = RunResult {
        schema: SCHEMA,
        summary: Summary::of(&verdict, &phases),
        run,
        verdict,
        phases,
        nodes: None,
        calibration: summary.calibration,
        warnings: summary.warnings,
        failures: summary.failures,
        oracle,
        ossperf,
        io500: None,
        rounds: RoundsResult::new(&summary.rounds),
        drill,
        checkpoint: CheckpointResult::of(&manifest.plan, &summary.ranks, |phase| {
            summary.marks.get(&phase)?.started_ns
        }),
        train,
        damage,
    };
    result.summarise_headline();
    let tallies = gathered
        .into_iter()
        .map(|(index, phase)| (index, phase.tally));
    Ok((result, tallies.collect()))
}

/// The agents of the run; `None` for a run of one process.
fn agents(dir: &Path) -> Option<AgentsFile> {
    let text = std::fs::read(dir.join(AGENTS)).ok()?;
    // The file is replaced atomically, so it is either complete or absent.
    serde_json::from_slice(&text).ok()
}

/// The agents as a name and a line of text.
fn agents_fact(agents: &AgentsFile) -> (String, String) {
    let mut hosts: Vec<&str> = agents.agents.iter().map(|a| a.host.as_str()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let hosts = match hosts.as_slice() {
        [one] => format!("on {one}"),
        several => format!("on {} hosts", several.len()),
    };
    let text = format!(
        "{} {hosts}; clock offsets known to within ±{}",
        agents.agents.len(),
        units::ns(agents.worst_bound_ns() as f64)
    );
    ("agents".to_owned(), text)
}

/// Measuring phases of the plan that left no intervals.
fn missing(manifest: &Manifest, phases: &[PhaseResult]) -> Vec<String> {
    manifest
        .plan
        .phases
        .iter()
        .enumerate()
        .filter(|(i, plan)| {
            plan.kind == PhaseKind::Run && !phases.iter().any(|p| usize::from(p.index) == *i)
        })
        .map(|(_, plan)| plan.name.clone())
        .collect()
}

/// The measured part of a phase.
struct MeasuredPart {
    marks: Marks,
    offered_until_ns: u64,
    window: Window,
    steadiness: Vec<SteadySeries>,
    /// Bins of the window.
    bins: Vec<Counts>,
}

impl MeasuredPart {
    fn of(plan: &PhasePlan, scan: &PhaseScan, marks: &Marks) -> Self {
        let until = window::offered_until(plan, marks, scan.start_ns, scan.end_ns);
        let Accounting {
            rampup_ns,
            measured_ns,
            ..
        } = plan.accounting;
        let begin = (scan.start_ns + rampup_ns).min(until);
        let until = match measured_ns {
            0 => until,
            measured => until.min(begin + measured),
        };
        let (mut window, steadiness) = window::find(plan, scan, begin, until);
        window.warmup_ns += begin - scan.start_ns;
        Self {
            marks: *marks,
            offered_until_ns: until.min(scan.end_ns),
            window,
            steadiness,
            bins: window::inside(scan.series.bins(), window.start_ns, window.end_ns),
        }
    }
}

fn phase(
    manifest: &Manifest,
    index: u16,
    scan: &PhaseScan,
    gathered: &PhaseGather,
    part: MeasuredPart,
    events: &EventSummary,
    slowest: &[SlowRequest],
) -> PhaseResult {
    let plan = &manifest.plan.phases[usize::from(index)];
    let open_loop = window::is_open(plan);
    let bins = &part.bins;
    let rates = rates(bins);
    let calibration = events.calibration(index);
    let measured = plan.kind == PhaseKind::Run;
    let mut client = client::usage(manifest, gathered, scan.rss_max_bytes);
    let end = part.marks.ended.map(|(_, end, _)| end);
    let verdict = measured.then(|| {
        judge::verdict(&judge::Evidence {
            manifest,
            plan,
            scan,
            bins,
            tally: &gathered.tally,
            end,
            calibration,
            steadiness: &part.steadiness,
            client: &client,
            window_s: part.window.seconds(),
            ok_per_s: rates.ops_per_s.mean,
        })
    });
    if let Some(verdict) = &verdict {
        client.headroom = verdict.client.headroom;
        let reserve = verdict.client.reserve;
        client.used_share = reserve.map(|r| r.used());
        client.headroom_factor = reserve.map(|r| r.factor);
        client.headroom_limit = reserve.map(|r| r.limit);
    }
    let kvcache = model::kvcache(plan, scan, &gathered.tally, part.window.seconds());
    let objectives = verdict.as_ref().map_or_else(Vec::new, |verdict| {
        let ai = ai::of_phase(
            plan,
            TrainResult::of(plan, index, &events.epochs).as_ref(),
            kvcache.as_ref(),
            events.ranks.get(&index),
            events.marks(index).started_ns,
        );
        let figures = (rates.ops_per_s.mean, &ai);
        objectives(manifest, plan, &gathered.tally, figures, verdict)
    });
    let realised = if measured {
        (0..plan.works.len())
            .flat_map(|work| {
                let offered = ended_of(scan, work);
                realised::work(&manifest.plan, usize::from(index), work, offered)
            })
            .collect()
    } else {
        Vec::new()
    };
    let tally = &gathered.tally;
    PhaseResult {
        index,
        name: plan.name.clone(),
        kind: plan.kind,
        open_loop,
        load: header::load(plan),
        end,
        precision: header::precision(plan),
        started_ns: scan.start_ns,
        offered_until_ns: part.offered_until_ns,
        drained_ns: part
            .marks
            .ended
            .map_or(scan.end_ns, |(.., drained)| drained),
        window: part.window,
        totals: scan.totals,
        rates,
        classes: classes(manifest, plan, scan, gathered),
        lag: Latency::of(&tally.lag),
        late: Latency::of(&tally.late),
        dispatch: Latency::of(&tally.dispatch),
        connect_tcp: Latency::of(&tally.connect_tcp),
        connect_tls: Latency::of(&tally.connect_tls),
        connect_dns: Latency::of(&tally.connect_dns),
        series: series(scan),
        throughput: throughput::describe(bins, open_loop),
        steadiness: part.steadiness,
        client,
        endpoints: gathered
            .endpoints
            .finish(&tally.endpoints, &manifest.driver.endpoints),
        slowest: anatomy::slowest(slowest),
        jobs: model::jobs(plan, scan, tally, verdict.as_ref(), bins),
        replay: model::replay(plan, scan, tally),
        kvcache,
        backlog: open_loop.then(|| accounting::backlog(plan, scan.series.bins(), bins)),
        streams: events
            .streams
            .get(&index)
            .and_then(|sums| accounting::streams(sums)),
        size_classes: accounting::size_classes(plan, tally),
        gates: accounting::gates(plan, &scan.totals, events.rows.get(&index)),
        objectives,
        verdict,
        realised,
    }
}

/// The run's objectives, compared with a measured phase. An objective of a class that the phase does not perform is
/// left out, and so is one on a figure that it cannot have.
fn objectives(
    manifest: &Manifest,
    plan: &PhasePlan,
    tally: &Tally,
    (ok_per_s, ai): (f64, &AiFigures),
    verdict: &Verdict,
) -> Vec<CheckedObjective> {
    let Some(slo) = &manifest.slo else {
        return Vec::new();
    };
    let evidence = TrialEvidence {
        tally,
        ok_per_s,
        timeout_ns: manifest.plan.timeout_ns,
        not_found_is_failure: manifest.plan.not_found_is_failure,
        ai,
        verdict,
    };
    let checked = judge_slo(slo, &evidence).checked;
    let mut mix = plan.works.iter().flat_map(|work| &work.mix);
    let listed = mix.next().is_some();
    // Models without a mix, such as traces, perform anything.
    let performs = |class| {
        let mut mix = plan.works.iter().flat_map(|work| &work.mix);
        !listed || mix.any(|entry| entry.class == class)
    };
    let checked = slo.objectives.iter().zip(checked);
    let concern = checked.filter(|(objective, _)| {
        objective.class.is_none_or(performs)
            && objective
                .ai_figure()
                .is_none_or(|figure| figure.is_of(plan))
    });
    concern.map(|(_, checked)| checked).collect()
}

/// Number of a work's operations that ended in the phase.
fn ended_of(scan: &PhaseScan, work: usize) -> u64 {
    scan.classes
        .iter()
        .filter(|((w, _), _)| usize::from(*w) == work)
        .map(|(_, class)| class.ended)
        .sum()
}

fn work_name(plan: &PhasePlan, work: u16) -> String {
    let work = plan.works.get(usize::from(work));
    work.map_or_else(String::new, |work| work.name.clone())
}
