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
mod client;
pub(crate) mod fold;
mod gather;
mod header;
mod judge;
mod model;
mod nodes;
mod realised;
mod scan;
mod throughput;
mod window;

use std::collections::BTreeMap;
use std::path::Path;

use bucketload_core::agent::{AGENTS, AgentsFile};
use bucketload_core::capacity::{CheckedObjective, TrialEvidence, judge as judge_slo};
use bucketload_core::error::ErrorKind;
use bucketload_core::oracle::OracleSummary;
use bucketload_core::plan::{Accounting, ModelPlan, PhaseKind, PhasePlan};
use bucketload_core::rows::PhaseRows;
use bucketload_core::sink::{Calibration, Event, Round, StreamSum};
use bucketload_core::slowest::SlowRequest;
use bucketload_core::stats::batch::{Estimate, estimate};
use bucketload_core::tally::{Cell, Tally};
use bucketload_core::verdict::Verdict;

use self::bins::Counts;
use self::gather::{ClassGather, PhaseGather};
use self::scan::{ClassKey, PhaseScan};
use self::window::Marks;
use crate::error::ResultsError;
use crate::result::figure::{Computed, Outcome};
use crate::result::{
    Cdf, ClassResult, ErrorCount, FailureExample, Latency, OracleResult, Ossperf, PhaseResult,
    Rates, RoundsResult, RunResult, SCHEMA, Series, SteadySeries, Summary, Window,
};
use crate::rundir::{Manifest, RunDir, Status};
use crate::units;

pub use nodes::{nodes, nodes_by_phase, read_placement, read_served};

/// Limit on the points of a series for display.
const SERIES_POINTS: usize = 2000;

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
    let oracle = if manifest.plan.has_oracle() {
        let (findings, lost) = run.findings()?;
        damage.absorb(lost);
        Some(OracleResult::new(summary.oracle.take(), findings))
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
    let mut run = header::header(manifest);
    run.facts.extend(agents.as_ref().map(agents_fact));
    run.popularity = accounting::popularity(&phases);
    let finished = manifest.status == Status::Finished;
    let ossperf = Ossperf::of(&manifest.plan, &phases, finished);
    let result = RunResult {
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
        damage,
    };
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

/// The content of a run's events.
#[derive(Default)]
struct EventSummary {
    marks: BTreeMap<u16, Marks>,
    calibration: Option<Calibration>,
    /// The calibration that was known when each phase ended.
    calibrations: BTreeMap<u16, Calibration>,
    warnings: Vec<String>,
    failures: Vec<FailureExample>,
    oracle: Option<OracleSummary>,
    rounds: Vec<Round>,
    streams: BTreeMap<u16, Vec<StreamSum>>,
    rows: BTreeMap<u16, PhaseRows>,
}

impl EventSummary {
    fn of(events: Vec<Event>) -> Self {
        let mut summary = Self::default();
        for event in events {
            match event {
                Event::PhaseStarted { phase, at_ns } => {
                    summary.marks.entry(phase).or_default().started_ns = Some(at_ns);
                }
                Event::PhaseEnded {
                    phase,
                    at_ns,
                    end,
                    drained_ns,
                } => {
                    summary.marks.entry(phase).or_default().ended = Some((at_ns, end, drained_ns));
                    if let Some(known) = summary.calibration {
                        summary.calibrations.insert(phase, known);
                    }
                }
                Event::Calibrated(calibration) => summary.calibration = Some(calibration),
                Event::Warning { message } => summary.warnings.push(message),
                Event::Round(round) => summary.rounds.push(round),
                Event::Oracle(oracle) => summary.oracle = Some(oracle),
                // Findings have their own file; ranks go into the benchmark's own tables.
                Event::Finding(_) | Event::Ranks(_) => {}
                Event::Rows(rows) => summary.rows.entry(rows.phase).or_default().merge(rows),
                Event::Streams { phase, streams } => {
                    summary.streams.entry(phase).or_default().extend(streams);
                }
                Event::Failure {
                    phase,
                    class,
                    key,
                    error,
                    at_ns,
                } => summary.failures.push(FailureExample {
                    phase,
                    class,
                    key,
                    error,
                    at_ns,
                }),
            }
        }
        summary
    }

    fn marks(&self, phase: u16) -> Marks {
        self.marks.get(&phase).copied().unwrap_or_default()
    }

    fn calibration(&self, phase: u16) -> Option<Calibration> {
        self.calibrations.get(&phase).copied().or(self.calibration)
    }
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
    let objectives = verdict.as_ref().map_or_else(Vec::new, |verdict| {
        let ok_per_s = rates.ops_per_s.mean;
        objectives(manifest, plan, &gathered.tally, ok_per_s, verdict)
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
/// left out.
fn objectives(
    manifest: &Manifest,
    plan: &PhasePlan,
    tally: &Tally,
    ok_per_s: f64,
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
    let concern = checked.filter(|(objective, _)| objective.class.is_none_or(performs));
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

/// Estimates a rate: the exact mean over all bins, with the interval from the bins' rates.
fn rate<B>(bins: &[B], count: impl Fn(&B) -> u64, len_ns: impl Fn(&B) -> u64) -> Estimate {
    let longest = bins.iter().map(&len_ns).max().unwrap_or(0);
    let per_s: Vec<f64> = bins
        .iter()
        // A short last bin must not weigh as much as a whole one.
        .filter(|b| len_ns(b) * 100 >= longest * 99)
        .map(|b| count(b) as f64 * 1e9 / len_ns(b).max(1) as f64)
        .collect();
    let total: u64 = bins.iter().map(&count).sum();
    let time: u64 = bins.iter().map(&len_ns).sum();
    Estimate {
        mean: if time == 0 {
            0.0
        } else {
            total as f64 * 1e9 / time as f64
        },
        ..estimate(&per_s)
    }
}

fn work_name(plan: &PhasePlan, work: u16) -> String {
    let work = plan.works.get(usize::from(work));
    work.map_or_else(String::new, |work| work.name.clone())
}

fn rates(bins: &[Counts]) -> Rates {
    let mean = |count: fn(&Counts) -> u64| rate(bins, count, |b| b.len_ns);
    Rates {
        ops_per_s: mean(|b| b.ok),
        bytes_per_s: mean(|b| b.bytes),
        offered_ops_per_s: mean(|b| b.offered).mean,
        offered_bytes_per_s: mean(|b| b.offered_bytes).mean,
        failed_per_s: mean(|b| b.failed).mean,
    }
}

fn classes(
    manifest: &Manifest,
    plan: &PhasePlan,
    scan: &PhaseScan,
    gathered: &PhaseGather,
) -> Vec<ClassResult> {
    // A replay reserves room for every operation that a trace could contain.
    let occurs = |key: &ClassKey| {
        let work = plan.works.get(usize::from(key.0));
        let replay = work.is_some_and(|work| matches!(work.model, ModelPlan::Replay(_)));
        !replay || scan.classes.get(key).is_some_and(|class| class.ended > 0)
    };
    gathered
        .classes
        .iter()
        .filter(|(key, _)| occurs(key))
        .map(|(key, class)| {
            let empty;
            let cell = match gather::find(&gathered.tally, key.0, key.1) {
                Some(cell) => cell,
                None => {
                    empty = Cell::new(key.0, key.1);
                    &empty
                }
            };
            class_result(manifest, plan, *key, cell, class)
        })
        .collect()
}

fn class_result(
    manifest: &Manifest,
    plan: &PhasePlan,
    key: ClassKey,
    cell: &Cell,
    class: &ClassGather,
) -> ClassResult {
    let mut errors: Vec<ErrorCount> = ErrorKind::ALL
        .into_iter()
        .map(|kind| ErrorCount {
            kind,
            count: cell.failed[kind as usize],
        })
        .filter(|error| error.count > 0)
        .collect();
    errors.sort_by_key(|error| std::cmp::Reverse(error.count));
    let successes = class.successes.bins();
    let mut result = ClassResult {
        work: key.0,
        work_name: work_name(plan, key.0),
        class: key.1,
        ok: cell.ok,
        failed: cell.failures(),
        cancelled: cell.cancelled(),
        retries: cell.retries,
        bytes: cell.bytes,
        errors,
        ops_per_s: rate(successes, |b| b.ok, |b| b.len_ns),
        bytes_per_s: rate(successes, |b| b.bytes, |b| b.len_ns),
        response: Latency::of(&cell.response),
        service: Latency::of(&cell.service),
        ttfb: Latency::of(&cell.ttfb),
        failed_response: Latency::of(&cell.failed_response),
        anatomy: anatomy::parts(cell),
        bandwidth: plan
            .works
            .get(usize::from(key.0))
            .and_then(|work| accounting::bandwidth(&manifest.plan.keysets, work, cell)),
        response_cdf: Cdf::of(&cell.response),
        service_cdf: Cdf::of(&cell.service),
        over_time: class.over_time.clone(),
        heat_map: class.heat_map(),
        figures: Computed::default(),
    };
    result.figures = Computed::of(&Outcome::from(&result));
    result
}

/// The time series of a phase for display.
fn series(scan: &PhaseScan) -> Series {
    let bins = scan.series.bins();
    let group = bins.len().div_ceil(SERIES_POINTS).max(1);
    let mut series = Series {
        intervals_per_point: scan.series.stride() * group as u64,
        ..Series::default()
    };
    for bin in fold::regroup(bins, group) {
        let seconds = bin.start_ns.saturating_sub(scan.start_ns) as f64 / 1e9;
        series.t_s.push(seconds);
        series.offered_ops_per_s.push(bin.per_s(bin.offered));
        series.ops_per_s.push(bin.per_s(bin.ok));
        series.failed_per_s.push(bin.per_s(bin.failed));
        series
            .offered_bytes_per_s
            .push(bin.per_s(bin.offered_bytes));
        series.bytes_per_s.push(bin.per_s(bin.bytes));
        series.in_flight.push(bin.mean_in_flight());
        series.backlog_s.push(bin.backlog_ns as f64 / 1e9);
        series
            .sessions
            .push(bin.sessions as f64 / bin.intervals.max(1) as f64);
        series.jobs.push(bin.mean_jobs());
        series.machine_busy.push(if bin.total_ns == 0 {
            0.0
        } else {
            bin.busy_ns as f64 / bin.total_ns as f64
        });
        series.late_p99_ms.push(bin.late_p99_ns as f64 / 1e6);
    }
    series
}
