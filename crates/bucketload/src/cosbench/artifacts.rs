//! COSBench's archive of a run: what happened, read from the run directory.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use bucketload_core::histogram::Histogram;
use bucketload_core::plan::ModelPlan;
use bucketload_core::rows::{PhaseRows, RowSums, WorkerSpan};
use bucketload_core::sink::{Event, PhaseEnd};
use bucketload_cosbench::artifacts::{
    Figures, HISTORY_HEADER, Record, Row, Snapshot, StageRecord, State, WORKLOADS_HEADER,
    WorkerLine,
};
use bucketload_cosbench::{Stage, Work, Workload, parse};
use bucketload_results::result::RunResult;
use bucketload_results::rundir::{Manifest, RunDir, Status};

use super::plan::steps;
use super::timeline::snapshots;
use super::{PROFILE, STRICT};
use crate::exit::Failure;

/// Name of the driver in the archive: this machine.
const DRIVER: &str = "driver1";
/// Shares of the percentiles.
const SHARES: [f64; 5] = [0.60, 0.80, 0.90, 0.95, 0.99];

/// Refuses a number that another workload of the archive has.
///
/// # Errors
/// When there is one.
pub(crate) fn check_number(archive: &Path, number: u64) -> Result<(), Failure> {
    match taken(archive, number) {
        false => Ok(()),
        true => Err(Failure::usage(format!(
            "--cosbench-number: {} holds a workload w{number} already; choose another number, or leave it out",
            archive.display()
        ))),
    }
}

/// Writes the archive of the run in `run` into `archive`, under `number` or the next free one; returns the
/// directory of the workload.
///
/// # Errors
/// When the run is of no COSBench workload, the number is another's, or something cannot be read or written.
pub(crate) fn write(
    run: &Path,
    result: &RunResult,
    archive: &Path,
    number: Option<u64>,
    utc_offset_s: i64,
) -> Result<PathBuf, Failure> {
    let usage = |text: String| Failure::usage(format!("--cosbench-artifacts: {text}"));
    let dir = RunDir::open(run).map_err(|e| usage(e.to_string()))?;
    let manifest = dir.manifest();
    if manifest.plan.profile != PROFILE {
        return Err(usage(format!(
            "{} is no run of a COSBench workload",
            run.display()
        )));
    }
    let parsed = parse(&manifest.workload_source)
        .map_err(|e| usage(format!("the workload in {}: {e}", run.display())))?;
    let io = |path: &Path| {
        let path = path.display().to_string();
        move |e: std::io::Error| usage(format!("{path}: {e}"))
    };
    fs::create_dir_all(archive).map_err(io(archive))?;
    let mut record = record(&dir, &parsed.workload, result, utc_offset_s).map_err(usage)?;
    let meta = archive.join(".meta");
    let last = fs::read_to_string(&meta).unwrap_or_default();
    let last: u64 = last.trim().parse().unwrap_or(0);
    match number {
        Some(number) => {
            check_number(archive, number)?;
            record.number = number;
        }
        None => {
            record.number = last + 1;
            // Never the number of another workload, whatever became of the count (B17).
            while taken(archive, record.number) {
                record.number += 1;
            }
        }
    }
    let files = record.files(manifest.workload_source.clone());
    let place = archive.join(&files.directory);
    fs::create_dir(&place).map_err(io(&place))?;
    for (name, content) in &files.files {
        let path = place.join(name);
        fs::write(&path, content).map_err(io(&path))?;
    }
    for (name, header, lines) in [
        ("run-history.csv", HISTORY_HEADER, &files.history),
        ("workloads.csv", WORKLOADS_HEADER, &files.workloads),
    ] {
        let path = archive.join(name);
        append(&path, header, lines).map_err(io(&path))?;
    }
    fs::write(&meta, record.number.max(last).to_string()).map_err(io(&meta))?;
    Ok(place)
}

fn taken(archive: &Path, number: u64) -> bool {
    let prefix = format!("w{number}-");
    let entries = fs::read_dir(archive).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .any(|name| name.starts_with(&prefix))
}

fn append(path: &Path, header: &str, lines: &str) -> std::io::Result<()> {
    let mut file = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)?;
    if file.metadata()?.len() == 0 {
        file.write_all(header.as_bytes())?;
    }
    file.write_all(lines.as_bytes())
}

/// What the events say of a phase.
#[derive(Clone, Copy, Default)]
struct Mark {
    started_ns: Option<u64>,
    ended: Option<(u64, PhaseEnd, u64)>,
}

/// What a run directory says, as far as an archive needs it.
struct Told {
    marks: BTreeMap<usize, Mark>,
    rows: BTreeMap<usize, PhaseRows>,
    snapshots: BTreeMap<usize, Vec<Snapshot>>,
    log: BTreeMap<usize, Vec<(u64, String)>>,
    /// Start of the run, nanoseconds since 1970.
    start_unix_ns: u64,
}

impl Told {
    fn ms(&self, at_ns: u64) -> u64 {
        (self.start_unix_ns + at_ns) / 1_000_000
    }
}

fn record(
    dir: &RunDir,
    workload: &Workload,
    result: &RunResult,
    utc_offset_s: i64,
) -> Result<Record, String> {
    let manifest = dir.manifest();
    let steps = steps(workload);
    let mut told = Told {
        marks: BTreeMap::new(),
        rows: BTreeMap::new(),
        snapshots: BTreeMap::new(),
        log: BTreeMap::new(),
        start_unix_ns: manifest.started_unix_ns,
    };
    events(dir, &mut told)?;
    let drained_ns = |phase: usize| {
        let ended = told.marks.get(&phase).and_then(|mark| mark.ended);
        ended.map_or(u64::MAX, |(_, _, drained_ns)| drained_ns)
    };
    told.snapshots = snapshots(dir, workload, &steps, drained_ns)?;
    let begun_ms = manifest.started_unix_ns / 1_000_000;
    let mut out = Record {
        number: 0,
        name: workload.name.clone(),
        states: vec![state("queuing", begun_ms), state("processing", begun_ms)],
        utc_offset_s,
        stages: Vec::new(),
        driver: DRIVER.to_owned(),
    };
    for (index, stage) in workload.stages.iter().enumerate() {
        let of = |pause: bool| {
            steps
                .iter()
                .position(|s| s.stage == index && s.pause == pause)
        };
        let (load, pause) = (of(false), of(true));
        let mut written = StageRecord {
            name: stage.name.clone(),
            states: states(&told, result, begun_ms, load, pause),
            ..StageRecord::default()
        };
        if let Some(phase) = load {
            fill(&mut written, stage, manifest, phase, &told);
            written.snapshots = told.snapshots.remove(&phase).unwrap_or_default();
            written.log = told.log.remove(&phase).unwrap_or_default();
        }
        out.stages.push(written);
    }
    let failed = |s: &StageRecord| s.states.last().is_some_and(|state| state.name == "failed");
    let last = match manifest.status {
        Status::Finished if out.stages.iter().any(failed) => "failed",
        Status::Finished => "finished",
        Status::Interrupted => "cancelled",
        Status::Aborted | Status::Running => "terminated",
    };
    let ends = out
        .stages
        .iter()
        .flat_map(|s| &s.states)
        .map(|s| s.at_ms)
        .max();
    let ended_ms = match manifest.ended_unix_ns {
        0 => ends.unwrap_or(begun_ms),
        ended => ended / 1_000_000,
    };
    out.states.push(state(last, ended_ms));
    Ok(out)
}

const fn state(name: &'static str, at_ms: u64) -> State {
    State { name, at_ms }
}

/// The states of a stage. What comes after the works does not change how they ended (B14).
fn states(
    told: &Told,
    result: &RunResult,
    begun_ms: u64,
    load: Option<usize>,
    pause: Option<usize>,
) -> Vec<State> {
    let mut out = vec![state("waiting", begun_ms)];
    let mark = |phase: Option<usize>| phase.and_then(|p| told.marks.get(&p)).copied();
    let mut verdict = match load {
        Some(_) => "aborted",
        None => "completed",
    };
    let mut end_ns = 0;
    if let Some(Mark {
        started_ns: Some(started_ns),
        ended,
    }) = mark(load)
    {
        out.push(state("running", told.ms(started_ns)));
        end_ns = started_ns;
        verdict = "terminated";
        if let Some((at_ns, end, drained_ns)) = ended {
            out.push(state("closing", told.ms(at_ns)));
            end_ns = drained_ns;
            let gates = result
                .phases
                .iter()
                .filter(|phase| Some(usize::from(phase.index)) == load)
                .flat_map(|phase| &phase.gates);
            verdict = match end {
                PhaseEnd::Aborted => "terminated",
                PhaseEnd::Interrupted => "cancelled",
                _ if gates.into_iter().any(|gate| !gate.passed) => "failed",
                _ => "completed",
            };
        }
    }
    if let Some(Mark {
        started_ns: Some(started_ns),
        ended,
    }) = mark(pause)
    {
        out.push(state("sleeping", told.ms(started_ns)));
        end_ns = ended.map_or(started_ns, |(_, _, drained)| drained);
    } else if load.is_none() {
        verdict = "aborted";
    }
    let at_ms = match end_ns {
        0 => begun_ms,
        ns => told.ms(ns),
    };
    out.push(state(verdict, at_ms));
    out
}

fn events(dir: &RunDir, told: &mut Told) -> Result<(), String> {
    let (events, _) = dir.events().map_err(|e| e.to_string())?;
    let mut current = 0;
    for event in events {
        match event {
            Event::PhaseStarted { phase, at_ns } => {
                current = usize::from(phase);
                told.marks.entry(current).or_default().started_ns = Some(at_ns);
            }
            Event::PhaseEnded {
                phase,
                at_ns,
                end,
                drained_ns,
            } => {
                told.marks.entry(usize::from(phase)).or_default().ended =
                    Some((at_ns, end, drained_ns));
            }
            Event::Rows(rows) => told
                .rows
                .entry(usize::from(rows.phase))
                .or_default()
                .merge(rows),
            Event::Failure {
                phase,
                class,
                key,
                error,
                at_ns,
            } => {
                let at_ms = told.ms(at_ns);
                let text = format!("[ERROR] [{class}] - {key}: {error}");
                told.log
                    .entry(usize::from(phase))
                    .or_default()
                    .push((at_ms, text));
            }
            Event::Warning { message } => {
                let at_ms = told.start_unix_ns / 1_000_000;
                let text = format!("[WARN] [Run] - {message}");
                told.log.entry(current).or_default().push((at_ms, text));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Rows and workers of a stage.
fn fill(out: &mut StageRecord, stage: &Stage, manifest: &Manifest, phase: usize, told: &Told) {
    let Some(rows) = told.rows.get(&phase) else {
        return;
    };
    let strict = manifest.plan.compat == STRICT;
    for (index, work) in stage.works.iter().enumerate() {
        let number = index as u16;
        let spans: Vec<&WorkerSpan> = rows.spans.iter().filter(|s| s.work == number).collect();
        let planned = manifest
            .plan
            .phases
            .get(phase)
            .and_then(|p| p.works.get(index));
        let Some(ModelPlan::Named(named)) = planned.map(|w| &w.model) else {
            continue;
        };
        let window_s = match named.runtime_ns {
            0 => wall_s(&spans),
            runtime => runtime as f64 / 1e9,
        };
        for (entry, operation) in work.operations.iter().enumerate() {
            let entry = entry as u16;
            // COSBench's init and dispose leave no samples.
            let silent = strict && is_silent(work);
            let of_entry = || {
                rows.workers
                    .iter()
                    .filter(|r| (r.work, r.entry) == (number, entry))
            };
            let mut rates = (0.0, 0.0);
            for row in of_entry().filter(|_| !silent) {
                let span = spans.iter().find(|s| s.worker == row.worker);
                let sums = if strict { row.inside } else { row.finished };
                let figures = worker(&sums, span.copied(), strict);
                rates.0 += if sums.ok > 0 { figures.throughput } else { 0.0 };
                rates.1 += if sums.bytes > 0 {
                    figures.bandwidth
                } else {
                    0.0
                };
                out.workers.push(WorkerLine {
                    kind: operation.kind.name(),
                    sample: operation.kind.sample_type(),
                    figures,
                });
            }
            let (finished, inside) = rows.sums(number, entry);
            let sums = match (silent, strict) {
                (true, _) => RowSums::default(),
                (false, true) => inside,
                (false, false) => finished,
            };
            let mut figures = means(&sums, strict);
            (figures.throughput, figures.bandwidth) = match strict {
                true => rates,
                false if window_s > 0.0 => {
                    (sums.ok as f64 / window_s, sums.bytes as f64 / window_s)
                }
                false => (0.0, 0.0),
            };
            let latencies = rows
                .latencies
                .iter()
                .find(|l| (l.work, l.entry) == (number, entry));
            let histogram = latencies
                .map(|l| l.legacy.clone())
                .filter(|_| !silent)
                .unwrap_or_default();
            let percentiles = latencies
                .filter(|_| operation.target.histogram && !silent)
                .and_then(|l| match strict {
                    true => legacy_percentiles(&l.legacy),
                    false => percentiles(&l.fine),
                });
            out.rows.push(Row {
                work: index,
                work_name: work.name.clone(),
                name: operation.display_name.clone(),
                kind: operation.kind.name(),
                sample: operation.kind.sample_type(),
                workers: work.workers,
                figures,
                percentiles,
                histogram,
                ratio: operation.ratio,
                config: operation.config.text().to_owned(),
            });
        }
    }
}

/// Whether COSBench has no samples of the work's operation.
fn is_silent(work: &Work) -> bool {
    use bucketload_cosbench::WorkKind::{Dispose, Init};
    matches!(work.kind, Init | Dispose)
}

/// From the first start to the last end of all workers, seconds.
fn wall_s(spans: &[&WorkerSpan]) -> f64 {
    let first = spans.iter().map(|s| s.first_ns).min().unwrap_or(0);
    let last = spans.iter().map(|s| s.last_ns).max().unwrap_or(0);
    last.saturating_sub(first) as f64 / 1e9
}

fn means(sums: &RowSums, strict: bool) -> Figures {
    let ok = sums.ok.max(1) as f64;
    // COSBench adds whole milliseconds.
    let (response_ms, transfer_ms) = match strict {
        true => (sums.response_ms as f64 / ok, sums.transfer_ms as f64 / ok),
        false => (
            sums.response_ns as f64 / ok / 1e6,
            sums.transfer_ns as f64 / ok / 1e6,
        ),
    };
    Figures {
        ops: sums.ok,
        bytes: sums.bytes,
        response_ms,
        processing_ms: response_ms - transfer_ms,
        throughput: 0.0,
        bandwidth: 0.0,
        success: (sums.samples > 0).then(|| sums.ok as f64 / sums.samples as f64),
    }
}

/// The figures of a worker, over the time from its first start to its last end.
fn worker(sums: &RowSums, span: Option<&WorkerSpan>, strict: bool) -> Figures {
    let mut figures = means(sums, strict);
    if let Some(span) = span {
        let seconds = match strict {
            true => {
                (span.last_ns / 1_000_000).saturating_sub(span.first_ns / 1_000_000) as f64 / 1e3
            }
            false => span.last_ns.saturating_sub(span.first_ns) as f64 / 1e9,
        };
        figures.throughput = sums.ok as f64 / seconds;
        figures.bandwidth = sums.bytes as f64 / seconds;
    }
    if sums.ok == 0 {
        figures.throughput = 0.0;
    }
    if sums.bytes == 0 {
        figures.bandwidth = 0.0;
    }
    figures
}

/// COSBench's: the upper edge of the first bucket that reaches the whole part of the share.
fn legacy_percentiles(buckets: &[(u32, u64)]) -> Option<[f64; 6]> {
    let total: u64 = buckets.iter().map(|b| b.1).sum();
    let edge = |bucket: u32| f64::from(bucket + 1) * 10.0;
    let last = edge(buckets.last()?.0);
    let at = |share: f64| {
        let wanted = (total as f64 * share).floor() as u64;
        if wanted == 0 {
            // The very first bucket reaches nothing already.
            return edge(0);
        }
        let mut sum = 0;
        let found = buckets.iter().find(|(_, count)| {
            sum += count;
            sum >= wanted
        });
        found.map_or(last, |b| edge(b.0))
    };
    let [a, b, c, d, e] = SHARES.map(at);
    Some([a, b, c, d, e, last])
}

/// Ours: nearest rank, from buckets of 0.1 %.
fn percentiles(buckets: &[(u32, u64)]) -> Option<[f64; 6]> {
    let total: u64 = buckets.iter().map(|b| b.1).sum();
    let edge = |bucket: u32| Histogram::highest_of(bucket as usize) as f64 / 1e6;
    let last = edge(buckets.last()?.0);
    let at = |share: f64| {
        let wanted = ((total as f64 * share).ceil() as u64).max(1);
        let mut sum = 0;
        let found = buckets.iter().find(|(_, count)| {
            sum += count;
            sum >= wanted
        });
        found.map_or(last, |b| edge(b.0))
    };
    let [a, b, c, d, e] = SHARES.map(at);
    Some([a, b, c, d, e, last])
}

#[cfg(test)]
#[path = "artifacts_tests.rs"]
mod tests;
