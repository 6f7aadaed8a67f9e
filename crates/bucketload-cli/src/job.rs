//! One run from plan to report: run directory, sinks, calibration, execution, analysis, output.
//!
//! Everything that the user sees afterwards is computed from the run directory, as `bucketload report` does.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bucketload_agents::FleetWatch;
use bucketload_core::agent::{AGENTS, AgentsFile};
use bucketload_core::driver::AnyDriver;
use bucketload_core::plan::Plan;
use bucketload_core::sink::{Calibration, Event, PhaseEnd, RunSink};
use bucketload_core::tally::Interval;
use bucketload_core::verdict::Word;
use bucketload_results::analyze::{self, analyze};
use bucketload_results::converge::Convergence;
use bucketload_results::failing::Failing;
use bucketload_results::oplog::{OpLogFacts, OpLogFormat};
use bucketload_results::output::dlio;
use bucketload_results::result::{NodeBalance, RunResult};
use bucketload_results::rundir::{Manifest, RunDirSink, RunEnd, Status, write_verdict};
use bucketload_run::{
    RunError, RunOptions, StopHandle, StopHook, StopLevel, calibrate, run_calibrated,
};

use crate::advice;
use crate::calibrations::Cache;
use crate::cli::run::LoadArgs;
use crate::connection::Connection;
use crate::drivers;
use crate::exit::{Exit, Failure, OrFail};
use crate::files;
use crate::io500;
use crate::kept;
use crate::live::Live;
use crate::metrics::Metrics;
use crate::oplog::OpLogWriter;
use crate::setup;
use crate::sinks::FanOut;

/// Everything that a run needs besides its driver.
pub(crate) struct Job {
    pub(crate) plan: Plan,
    pub(crate) options: RunOptions,
    /// The manifest, complete except for the driver's facts.
    pub(crate) manifest: Manifest,
    /// The run directory to create.
    pub(crate) out: PathBuf,
    pub(crate) ceiling: Ceiling,
    /// Format of the operation log; `None` for no log.
    pub(crate) op_log: Option<OpLogFormat>,
    /// Address that answers scrapes.
    pub(crate) prometheus: Option<std::net::SocketAddr>,
    /// Whether to show no progress on standard error.
    pub(crate) quiet: bool,
    /// Messages for the user before the run.
    pub(crate) notes: Vec<String>,
    /// Follows the run besides the sinks of every run. Phases then end at their limits only, even if nearly all
    /// operations fail.
    pub(crate) watch: Option<Box<dyn RunSink>>,
    /// The agents that carry out the run (`options.remote`); `None` if this process does it alone.
    pub(crate) agents: Option<FleetWatch>,
}

/// The client's ceiling: the rate it reaches if the store takes no time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ceiling {
    /// Not measured.
    Skip,
    /// Measured before the first load, with the schedule of this phase.
    Measure(usize),
    /// As `Measure`, unless it was measured on this machine lately.
    Lately(usize),
    /// Known from an earlier run with the same schedule.
    Known(Calibration),
}

impl Ceiling {
    /// The ceiling is looked for in the cache before it is measured.
    pub(crate) fn or_cached(self) -> Self {
        match self {
            Self::Measure(phase) => Self::Lately(phase),
            other => other,
        }
    }

    /// The ceiling is measured if `plan` has a phase for it and the user did not turn calibration off.
    pub(crate) fn of(plan: &Plan, load: &LoadArgs) -> Self {
        match setup::calibrated_phase(plan) {
            Some(phase) if !load.no_calibration => Self::Measure(phase),
            _ => Self::Skip,
        }
    }
}

/// A finished run.
pub(crate) struct Done {
    pub(crate) result: RunResult,
    /// The run directory.
    pub(crate) out: PathBuf,
    /// What clean-up left in the target, and how to remove it.
    left: Option<String>,
    /// What the user should know about the data set that the run keeps.
    kept: Vec<String>,
}

impl Done {
    /// Prints where the report is, unless `quiet`, and what clean-up left in the target. Called after the result is
    /// printed.
    pub(crate) fn print_notes(&self, quiet: bool) {
        if !quiet {
            let report = self.out.join("report.html");
            eprintln!("bucketload: report: {}", report.display());
        }
        for message in self.kept.iter().chain(&self.left) {
            eprintln!("bucketload: {message}");
        }
    }
}

impl Job {
    /// A run of `plan`, written by the user as `source` (see [`setup::manifest`]), with progress on standard error and
    /// without calibration, logs or agents.
    ///
    /// # Errors
    /// When the requested cores are not usable.
    pub(crate) fn new(
        plan: Plan,
        source: &str,
        run_id: &str,
        options: RunOptions,
        connection: &Connection,
        out: PathBuf,
    ) -> Result<Self, Failure> {
        Ok(Self {
            manifest: setup::manifest(run_id, &plan, source, connection, &options)?,
            plan,
            options,
            out,
            ceiling: Ceiling::Skip,
            op_log: None,
            prometheus: None,
            quiet: false,
            notes: Vec::new(),
            watch: None,
            agents: None,
        })
    }

    /// Carries out the run. Returns its result, and how to exit.
    ///
    /// # Errors
    /// When the run directory cannot be written or the run broke. What was measured is kept.
    pub(crate) fn execute(
        mut self,
        driver: &AnyDriver,
        stop: &StopHandle,
    ) -> Result<(Done, Exit), Failure> {
        let mut cache = None;
        if let Ceiling::Lately(phase) = self.ceiling {
            cache = Cache::of(&self.plan, &self.options, &self.manifest.host);
            let known = cache.as_ref().and_then(|c| c.read(SystemTime::now()));
            self.ceiling = known.map_or(Ceiling::Measure(phase), Ceiling::Known);
        }
        let mut live = Live::new(&self.plan, self.quiet);
        live.begin(matches!(self.ceiling, Ceiling::Measure(_)));
        self.manifest.driver = driver.facts();
        if self.options.before_measuring.is_some() {
            let how = "emptied before each measured phase";
            let setting = ("the machine's caches".to_owned(), how.to_owned());
            self.manifest.driver.settings.push(setting);
        }
        if self.options.check_writes {
            let how = "each is read back and compared, which its time does not include";
            let setting = ("check writes".to_owned(), how.to_owned());
            self.manifest.driver.settings.push(setting);
        }
        let prepare_only = self.manifest.prepare_only;
        self.manifest.started_unix_ns = unix_ns();
        let mut metrics = match self.prometheus {
            Some(address) => {
                let metrics =
                    Metrics::start(address, &self.manifest.run_id, &self.plan).or_usage()?;
                live.say(&format!("metrics: http://{}/metrics", metrics.address));
                Some(metrics)
            }
            None => None,
        };
        if self.watch.is_none() {
            self.options.converged = Some(early_end(&self.plan));
        }
        let log = match self.op_log {
            Some(format) => {
                self.manifest.op_log = Some(OpLogFacts {
                    format,
                    ..OpLogFacts::default()
                });
                let (dir, options) = (&self.out, &mut self.options);
                Some(OpLogWriter::start(dir, format, &self.manifest, options)?)
            }
            None => None,
        };
        let endpoints = self.manifest.driver.endpoints.clone();
        let existed = self.out.exists();
        let mut directory = RunDirSink::create(&self.out, self.manifest)
            .map_err(|e| Failure::usage(format!("--out {}: {e}", self.out.display())))?;
        if let Some(agents) = &self.agents {
            agents.set_directory(&self.out);
        }
        let mut measured = Measured(false);
        let outcome = {
            let mut sinks = FanOut::default();
            sinks.add(&mut directory);
            sinks.add(&mut live);
            sinks.add(&mut measured);
            if let Some(metrics) = &mut metrics {
                sinks.add(metrics);
            }
            if let Some(watch) = &mut self.watch {
                sinks.add(&mut **watch);
            }
            for message in self.notes {
                sinks.event(&Event::Warning { message });
            }
            let (plan, options) = (&self.plan, &self.options);
            let mut calibrate = |sink: &mut dyn RunSink| {
                let calibration = match self.ceiling {
                    Ceiling::Skip => None,
                    Ceiling::Known(known) => Some(known),
                    Ceiling::Measure(phase) | Ceiling::Lately(phase) => match &options.remote {
                        Some(remote) => remote.borrow_mut().calibrate(phase, stop)?,
                        None => {
                            let found = calibrate(&drivers::null(), plan, phase, options, stop)?;
                            // A stop cuts the measurement short.
                            if let (Some(cache), StopLevel::Run) = (&cache, stop.level()) {
                                cache.write(&found, SystemTime::now());
                            }
                            Some(found)
                        }
                    },
                };
                if let Some(calibration) = calibration {
                    sink.event(&Event::Calibrated(calibration));
                }
                Ok(())
            };
            run_calibrated(driver, plan, options, &mut sinks, stop, &mut calibrate)
        };
        live.finish();
        // Tells whoever watches that the load is over, however it ended.
        self.watch = None;
        // Tells the agents that the run is over.
        self.options.remote = None;
        if let Some(log) = log {
            let (facts, error) = log.finish(&mut self.options);
            directory.set_op_log(facts);
            if let Some(error) = error {
                let message = format!("the operation log is incomplete: {error}");
                eprintln!("bucketload: {message}");
                directory.event(&Event::Warning { message });
            }
        }
        let left = self.options.left.take();
        if let Some(left) = &left {
            directory.event(&Event::Warning {
                message: left.clone(),
            });
        }
        let (status, failure) = match &outcome {
            Ok(end) if end.stopped == StopLevel::Run => (Status::Finished, None),
            Ok(_) => (Status::Interrupted, None),
            Err(error) => (Status::Aborted, Some(failure(error, &endpoints))),
        };
        let end = RunEnd {
            status,
            ended_unix_ns: unix_ns(),
            error: failure.as_ref().map(|f| f.message.clone()),
        };
        directory.finish(end).or_aborted()?;
        // When agents are lost, what was measured until then is reported and labelled.
        let lost = matches!(&outcome, Err(RunError::Agents(_)));
        if let Some(failure) = failure.filter(|f| f.exit != Exit::GateFailed && !lost) {
            let refused = matches!(failure.exit, Exit::Usage | Exit::Target);
            if refused && !measured.0 {
                forget(&self.out, existed).or_aborted()?;
            }
            return Err(failure.with_leftovers(left.as_deref()));
        }
        let result = report(&self.out)?;
        let limits = result.verdict.reasons.iter().any(|r| r.rule == "V5");
        if let Some(cache) = cache.filter(|_| limits) {
            // What disturbed the calibration may be over.
            cache.forget();
        }
        let kept = match (&self.options.data_set, &outcome) {
            (Some(set), Ok(end)) => kept::words(set, end, &self.out),
            (Some(set), Err(_)) if lost => {
                let missing = self.options.incomplete.take();
                kept::words_after_loss(set, missing.as_deref(), &self.out)
            }
            _ => Vec::new(),
        };
        let exit = match (&outcome, gate(&result)) {
            (Err(_), _) if lost => Exit::Aborted,
            (Err(_), _) => Exit::GateFailed,
            (Ok(end), _) if end.stopped != StopLevel::Run => Exit::Interrupted,
            (Ok(end), _) if prepare_only => match end.incomplete {
                Some(_) => Exit::GateFailed,
                None => Exit::Ok,
            },
            (Ok(_), gate) => gate.or_leftovers(left.is_some()),
        };
        if let Err(error) = &outcome {
            eprintln!("bucketload: {error}");
        }
        Ok((
            Done {
                result,
                out: self.out,
                left,
                kept,
            },
            exit,
        ))
    }
}

/// Whether anything was measured.
struct Measured(bool);

impl RunSink for Measured {
    fn event(&mut self, _: &Event) {}

    fn interval(&mut self, _: &Interval) {
        self.0 = true;
    }
}

/// Removes the directory of a refused run, which would stand in the way of the next attempt. Keeps the directory
/// itself if it `existed` before, which was then empty, and `bucketload-runs` if it has other runs.
pub(crate) fn forget(out: &Path, existed: bool) -> std::io::Result<()> {
    std::fs::remove_dir_all(out)?;
    if existed {
        return std::fs::create_dir(out);
    }
    let parent = out
        .parent()
        .filter(|parent| *parent == Path::new(setup::RUNS));
    if let Some(parent) = parent {
        // Fails if it has other runs.
        let _ = std::fs::remove_dir(parent);
    }
    Ok(())
}

/// As [`forget`], for a directory of several runs, but only if no file other than those called `known` is in it: nothing
/// that was measured is removed.
pub(crate) fn forget_hollow(dir: &Path, existed: bool, known: &[&str]) -> std::io::Result<()> {
    fn is_hollow(dir: &Path, known: &[&str]) -> std::io::Result<bool> {
        for entry in dir.read_dir()? {
            let entry = entry?;
            let hollow = match entry.file_type()?.is_dir() {
                true => is_hollow(&entry.path(), known)?,
                false => known.iter().any(|name| entry.file_name() == *name),
            };
            if !hollow {
                return Ok(false);
            }
        }
        Ok(true)
    }
    match dir.is_dir() && is_hollow(dir, known)? {
        true => forget(dir, existed),
        false => Ok(()),
    }
}

/// The hook that ends phases before their limits: once they have measured as precisely as their stopping rule asks, or
/// when nearly all operations fail.
fn early_end(plan: &Plan) -> StopHook {
    let (phases, absent_fails) = (plan.phases.clone(), plan.not_found_is_failure);
    let mut current: Option<(u16, Option<Convergence>, Option<Failing>)> = None;
    RefCell::new(Box::new(move |interval| {
        if current
            .as_ref()
            .is_none_or(|(phase, ..)| *phase != interval.phase)
        {
            let phase = phases.get(usize::from(interval.phase))?;
            let rules = (Convergence::new(phase), Failing::new(phase, absent_fails));
            current = Some((interval.phase, rules.0, rules.1));
        }
        let (_, convergence, failing) = current.as_mut()?;
        let converged = convergence
            .as_mut()
            .is_some_and(|state| state.interval(interval));
        let fails = failing
            .as_mut()
            .is_some_and(|state| state.interval(interval));
        match (converged, fails) {
            (true, _) => Some(PhaseEnd::Converged),
            (_, true) => Some(PhaseEnd::Failing),
            _ => None,
        }
    }))
}

/// Name of the placement file in a run directory, from `report --placement`.
pub(crate) const PLACEMENT: &str = "placement.csv";
/// Name of the file with the requests that data nodes served in a run directory, from `report --served`.
pub(crate) const SERVED: &str = "served.csv";

/// The result of a run directory, with the load of the data nodes if it is known. Depends on the directory's data
/// alone.
///
/// # Errors
/// When the directory cannot be read.
pub(crate) fn result(dir: &Path) -> Result<RunResult, Failure> {
    let mut result = analyze(dir).or_usage()?;
    result.nodes = nodes(dir).or_usage()?;
    if result.run.profile == io500::PROFILE {
        // An unreadable configuration is reported where IO500's result files are written.
        result.io500 = io500::scored(dir).ok().map(|(report, _)| (&report).into());
    }
    Ok(result)
}

/// The load of the data nodes, if the directory says which objects they hold.
fn nodes(dir: &Path) -> Result<Option<NodeBalance>, bucketload_results::ResultsError> {
    let placement = dir.join(PLACEMENT);
    if !placement.is_file() {
        return Ok(None);
    }
    let table = analyze::read_placement(&placement)?;
    let served = Some(dir.join(SERVED)).filter(|path| path.is_file());
    let served = served
        .map(|path| analyze::read_served(&path, &table))
        .transpose()?;
    analyze::nodes(dir, &table, served.as_ref()).map(Some)
}

/// Analyses a run directory, stores the verdict and writes the report page.
pub(crate) fn report(dir: &Path) -> Result<RunResult, Failure> {
    let result = result(dir)?;
    write_verdict(dir, &result.verdict).or_aborted()?;
    let page = bucketload_results::report::html(&result);
    files::write(dir.join("report.html"), page)?;
    if let Some(train) = result.train.first() {
        let text = dlio::summary(&result, train, &agent_hosts(dir));
        files::write(dir.join(dlio::SUMMARY), text)?;
    }
    Ok(result)
}

/// The hosts of a run's agents, each once, in order; empty for a run of one process.
fn agent_hosts(dir: &Path) -> Vec<String> {
    let text = std::fs::read(dir.join(AGENTS)).ok();
    let known: Option<AgentsFile> = text.and_then(|text| serde_json::from_slice(&text).ok());
    let mut hosts: Vec<String> = known
        .map(|known| known.agents.into_iter().map(|agent| agent.host).collect())
        .unwrap_or_default();
    hosts.sort_unstable();
    hosts.dedup();
    hosts
}

/// The gates of a run. A run fails if any operation returned wrong bytes, if the store was full, if the consistency
/// oracle found anything, if the verdict is INCOMPLETE, if a phase failed more operations than its workload allows (by
/// default, most of them) or ended early because nearly all failed, or if it missed an objective of the user.
fn gate(result: &RunResult) -> Exit {
    use bucketload_core::error::ErrorKind::{Corrupt, Full};
    let wrong = result
        .phases
        .iter()
        .flat_map(|phase| &phase.classes)
        .flat_map(|class| &class.errors)
        .any(|error| matches!(error.kind, Corrupt | Full) && error.count > 0);
    let inconsistent = result.oracle.as_ref().is_some_and(|o| !o.is_clean());
    let nothing = result.verdict.word == Word::Incomplete;
    let failed = result
        .phases
        .iter()
        .flat_map(|phase| &phase.gates)
        .any(|gate| !gate.passed)
        || result.summary.slo_met == Some(false);
    let mut ends = result.phases.iter().map(|phase| phase.end);
    let gave_up = ends.any(|end| end == Some(PhaseEnd::Failing));
    if wrong || inconsistent || nothing || failed || gave_up {
        Exit::GateFailed
    } else {
        Exit::Ok
    }
}

/// The failure that a broken run means for the user. `endpoints` are those of the target.
pub(crate) fn failure(error: &RunError, endpoints: &[String]) -> Failure {
    let message = advice::explained(error, endpoints);
    match error {
        RunError::Unsupported { driver, what }
            if driver == "s3" && what.split(", ").any(|class| class == "append") =>
        {
            Failure::usage(format!(
                "{message}, or allow appends with --append write-offset if the store has them (`bucketload doctor` tells)"
            ))
        }
        RunError::Options(_) | RunError::Unsupported { .. } | RunError::Foreign { .. } => {
            Failure::usage(message)
        }
        RunError::Refused { .. } => Failure::usage(format!(
            "{message}; leave it out of the mix, or run without the dialect"
        )),
        RunError::Unconditional { .. } => Failure::target(format!(
            "{message}; write the marker without a condition (--latest)"
        )),
        RunError::InUse { .. } => Failure::usage(format!(
            "{message}; choose other names (cprefix, oprefix), or allow changes with --delete-named"
        )),
        RunError::Unreachable(_)
        | RunError::Bucket { .. }
        | RunError::BucketExists { .. }
        | RunError::NoBucket { .. } => Failure::target(message),
        RunError::Prepare { .. } | RunError::Altered { .. } => Failure::gate(message),
        _ => Failure::aborted(message),
    }
}

pub(crate) fn unix_ns() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
