//! COSBench's archive of a run, computed from the run directory.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use bucketload_core::agent::{AGENTS, AgentsFile};
use bucketload_core::rows::PhaseRows;
use bucketload_core::sink::{Event, PhaseEnd};
use bucketload_cosbench::artifacts::{
    DriverRecord, HISTORY_HEADER, LogLine, Record, Snapshot, StageRecord, State, WORKLOADS_HEADER,
};
use bucketload_cosbench::{Workload, parse};
use bucketload_results::result::RunResult;
use bucketload_results::rundir::{RunDir, Status};

use super::PROFILE;
use super::figures::{MeasuredStage, fill};
use super::plan::stage_phases;
use super::timeline::snapshots;
use crate::exit::Failure;

/// Checks that no workload of the archive has this number.
///
/// # Errors
/// When one has.
pub(crate) fn check_number(archive: &Path, number: u64) -> Result<(), Failure> {
    match taken(archive, number) {
        false => Ok(()),
        true => Err(Failure::usage(format!(
            "--cosbench-number: {} already holds a workload w{number}; choose another number, or remove the flag",
            archive.display()
        ))),
    }
}

/// Writes the archive of the run in `run` into `archive`, under `number` or the next free number. Returns the directory
/// of the workload.
///
/// # Errors
/// When the run is not one of a COSBench workload, the number is in use, or a file cannot be read or written.
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
            "{} is not a run of a COSBench workload",
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
            // Never reuses the number of another workload, even if the counter is wrong (B17).
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

/// When a phase started and ended.
#[derive(Clone, Copy, Default)]
struct PhaseTimes {
    started_ns: Option<u64>,
    ended: Option<(u64, PhaseEnd, u64)>,
}

/// The content of a run directory that an archive needs.
struct RunLog {
    marks: BTreeMap<usize, PhaseTimes>,
    rows: BTreeMap<usize, PhaseRows>,
    snapshots: BTreeMap<usize, Vec<Snapshot>>,
    lines: BTreeMap<usize, Vec<LogLine>>,
    /// Start of the run, in nanoseconds since 1970.
    start_unix_ns: u64,
    /// The agents that carried out the run; none if it ran on one machine.
    agents: AgentsFile,
}

impl RunLog {
    fn ms(&self, at_ns: u64) -> u64 {
        (self.start_unix_ns + at_ns) / 1_000_000
    }

    /// COSBench's drivers: the agents, or this machine if there are none.
    fn drivers(&self) -> Vec<DriverRecord> {
        let driver = |number: usize, url: String| DriverRecord {
            name: format!("driver{}", number + 1),
            url,
            lines: Vec::new(),
        };
        match self.agents.agents.len() {
            0 => vec![driver(0, String::new())],
            _ => {
                let agents = self.agents.agents.iter();
                agents
                    .map(|agent| driver(agent.rank as usize, agent.address.clone()))
                    .collect()
            }
        }
    }

    /// The driver that a message is about, which its beginning or end names.
    fn driver_of(&self, message: &str) -> usize {
        let named = |rank: usize| {
            let name = format!("agent {rank} (");
            let last = message.rsplit_once('[').map_or("", |(_, last)| last);
            message.starts_with(&name) || last.starts_with(&name)
        };
        (0..self.agents.agents.len())
            .find(|rank| named(*rank))
            .unwrap_or(0)
    }
}

/// The agents of a run, if it had any.
fn agents(dir: &Path) -> Result<AgentsFile, String> {
    let path = dir.join(AGENTS);
    match fs::read(&path) {
        Ok(text) => serde_json::from_slice(&text).map_err(|e| format!("{}: {e}", path.display())),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(AgentsFile::default()),
        Err(e) => Err(format!("{}: {e}", path.display())),
    }
}

fn record(
    dir: &RunDir,
    workload: &Workload,
    result: &RunResult,
    utc_offset_s: i64,
) -> Result<Record, String> {
    let manifest = dir.manifest();
    let steps = stage_phases(workload);
    let mut log = RunLog {
        marks: BTreeMap::new(),
        rows: BTreeMap::new(),
        snapshots: BTreeMap::new(),
        lines: BTreeMap::new(),
        start_unix_ns: manifest.started_unix_ns,
        agents: agents(dir.path())?,
    };
    events(dir, &mut log)?;
    let drained_ns = |phase: usize| {
        let ended = log.marks.get(&phase).and_then(|mark| mark.ended);
        ended.map_or(u64::MAX, |(_, _, drained_ns)| drained_ns)
    };
    log.snapshots = snapshots(dir, workload, &steps, drained_ns)?;
    let begun_ms = manifest.started_unix_ns / 1_000_000;
    let mut out = Record {
        number: 0,
        name: workload.name.clone(),
        states: vec![state("queuing", begun_ms), state("processing", begun_ms)],
        utc_offset_s,
        stages: Vec::new(),
        drivers: log.drivers(),
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
            states: states(&log, result, begun_ms, load, pause),
            ..StageRecord::default()
        };
        if let Some(phase) = load {
            if let Some(rows) = log.rows.get(&phase) {
                let measured = MeasuredStage {
                    plan: &manifest.plan,
                    phase,
                    rows,
                    pins: &log.agents.pins,
                };
                fill(&mut written, &mut out.drivers, stage, &measured);
            }
            written.snapshots = log.snapshots.remove(&phase).unwrap_or_default();
            written.log = log.lines.remove(&phase).unwrap_or_default();
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

/// The states of a stage. Its delay does not change how its works ended (B14).
fn states(
    log: &RunLog,
    result: &RunResult,
    begun_ms: u64,
    load: Option<usize>,
    pause: Option<usize>,
) -> Vec<State> {
    let mut out = vec![state("waiting", begun_ms)];
    let mark = |phase: Option<usize>| phase.and_then(|p| log.marks.get(&p)).copied();
    let mut verdict = match load {
        Some(_) => "aborted",
        None => "completed",
    };
    let mut end_ns = 0;
    if let Some(PhaseTimes {
        started_ns: Some(started_ns),
        ended,
    }) = mark(load)
    {
        out.push(state("running", log.ms(started_ns)));
        end_ns = started_ns;
        verdict = "terminated";
        if let Some((at_ns, end, drained_ns)) = ended {
            out.push(state("closing", log.ms(at_ns)));
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
    if let Some(PhaseTimes {
        started_ns: Some(started_ns),
        ended,
    }) = mark(pause)
    {
        out.push(state("sleeping", log.ms(started_ns)));
        end_ns = ended.map_or(started_ns, |(_, _, drained)| drained);
    } else if load.is_none() {
        verdict = "aborted";
    }
    let at_ms = match end_ns {
        0 => begun_ms,
        ns => log.ms(ns),
    };
    out.push(state(verdict, at_ms));
    out
}

fn events(dir: &RunDir, log: &mut RunLog) -> Result<(), String> {
    let (events, _) = dir.events().map_err(|e| e.to_string())?;
    let mut current = 0;
    for event in events {
        match event {
            Event::PhaseStarted { phase, at_ns } => {
                current = usize::from(phase);
                log.marks.entry(current).or_default().started_ns = Some(at_ns);
            }
            Event::PhaseEnded {
                phase,
                at_ns,
                end,
                drained_ns,
            } => {
                log.marks.entry(usize::from(phase)).or_default().ended =
                    Some((at_ns, end, drained_ns));
            }
            Event::Rows(rows) => log
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
                let line = LogLine {
                    at_ms: log.ms(at_ns),
                    driver: log.driver_of(&error),
                    text: format!("[ERROR] [{class}] - {key}: {error}"),
                };
                log.lines.entry(usize::from(phase)).or_default().push(line);
            }
            Event::Warning { message } => {
                let line = LogLine {
                    at_ms: log.start_unix_ns / 1_000_000,
                    driver: log.driver_of(&message),
                    text: format!("[WARN] [Run] - {message}"),
                };
                log.lines.entry(current).or_default().push(line);
            }
            _ => {}
        }
    }
    Ok(())
}
