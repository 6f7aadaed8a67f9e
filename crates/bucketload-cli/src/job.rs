//! One run from plan to report: run directory, sinks, calibration, execution, analysis, output.
//!
//! Everything a user sees afterwards is computed from the run directory, the same way `bucketload report` does.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bucketload_agents::FleetWatch;
use bucketload_core::driver::AnyDriver;
use bucketload_core::plan::Plan;
use bucketload_core::sink::{Calibration, Event, RunSink};
use bucketload_core::verdict::Word;
use bucketload_results::analyze::{self, analyze};
use bucketload_results::converge::Convergence;
use bucketload_results::oplog::{OpLogFacts, OpLogFormat};
use bucketload_results::result::{NodeBalance, RunResult};
use bucketload_results::rundir::{Manifest, RunDirSink, RunEnd, Status, write_verdict};
use bucketload_run::{RunError, RunOptions, StopHandle, StopHook, StopLevel, calibrate, run};

use crate::cli::run::LoadArgs;
use crate::drivers;
use crate::exit::{Exit, Failure, OrFail};
use crate::io500;
use crate::live::Live;
use crate::metrics::Metrics;
use crate::oplog::Logging;
use crate::setup;
use crate::sinks::Fan;

/// Everything that a run needs beside its driver.
pub(crate) struct Job {
    pub(crate) plan: Plan,
    pub(crate) options: RunOptions,
    /// The manifest, complete but for the driver's facts.
    pub(crate) manifest: Manifest,
    /// The run directory to create.
    pub(crate) out: PathBuf,
    /// The client's own ceiling.
    pub(crate) ceiling: Ceiling,
    /// Form in which every operation is logged into the run directory; `None` = not at all.
    pub(crate) op_log: Option<OpLogFormat>,
    /// Where to answer scrapes.
    pub(crate) prometheus: Option<std::net::SocketAddr>,
    /// Progress on standard error.
    pub(crate) live: Live,
    /// What to tell the user before the run.
    pub(crate) notes: Vec<String>,
    /// The agents that carry out the run (`options.remote`); `None` = this process alone.
    pub(crate) agents: Option<FleetWatch>,
}

/// What the client could do if the store cost nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ceiling {
    /// Stays unknown.
    Skip,
    /// Measured first of all, with the schedule of this phase.
    Measure(usize),
    /// Known from an earlier run with the same schedule.
    Known(Calibration),
}

impl Ceiling {
    /// Measured, where `plan` has a phase to measure it with and the user does not do without.
    pub(crate) fn of(plan: &Plan, load: &LoadArgs) -> Self {
        match setup::calibrated_phase(plan) {
            Some(phase) if !load.no_calibration => Self::Measure(phase),
            _ => Self::Skip,
        }
    }
}

/// A run that came to an end.
pub(crate) struct Done {
    pub(crate) result: RunResult,
    /// The run directory.
    pub(crate) out: PathBuf,
    /// What the run left in the target although it should not, and how to remove it.
    left: Option<String>,
}

impl Done {
    /// Says where the report is, unless `quiet`, and what the run left in the target: after its result.
    pub(crate) fn tell(&self, quiet: bool) {
        if !quiet {
            let report = self.out.join("report.html");
            eprintln!("bucketload: report: {}", report.display());
        }
        if let Some(left) = &self.left {
            eprintln!("bucketload: {left}");
        }
    }
}

impl Job {
    /// Carries out the run and returns its result and how to exit.
    ///
    /// # Errors
    /// When the run directory cannot be written or the run broke; what was measured is kept.
    pub(crate) fn execute(
        mut self,
        driver: &AnyDriver,
        stop: &StopHandle,
    ) -> Result<(Done, Exit), Failure> {
        self.manifest.driver = driver.facts();
        if self.options.before_measuring.is_some() {
            let how = "emptied before each measured phase";
            let setting = ("the machine's caches".to_owned(), how.to_owned());
            self.manifest.driver.settings.push(setting);
        }
        if self.options.check_writes {
            let how = "each is read back and compared, outside its time";
            let setting = ("check writes".to_owned(), how.to_owned());
            self.manifest.driver.settings.push(setting);
        }
        self.manifest.started_unix_ns = unix_ns();
        let mut metrics = match self.prometheus {
            Some(address) => {
                let metrics =
                    Metrics::start(address, &self.manifest.run_id, &self.plan).or_usage()?;
                self.live
                    .say(&format!("metrics: http://{}/metrics", metrics.address));
                Some(metrics)
            }
            None => None,
        };
        self.options.converged = convergence(&self.plan);
        let log = match self.op_log {
            Some(format) => {
                self.manifest.op_log = Some(OpLogFacts {
                    format,
                    ..OpLogFacts::default()
                });
                let (dir, options) = (&self.out, &mut self.options);
                Some(Logging::start(dir, format, &self.manifest, options)?)
            }
            None => None,
        };
        let mut directory = RunDirSink::create(&self.out, self.manifest)
            .map_err(|e| Failure::usage(format!("--out {}: {e}", self.out.display())))?;
        if let Some(agents) = &self.agents {
            agents.set_directory(&self.out);
        }
        let outcome = {
            let mut sinks = Fan::default();
            sinks.add(&mut directory);
            sinks.add(&mut self.live);
            if let Some(metrics) = &mut metrics {
                sinks.add(metrics);
            }
            for message in self.notes {
                sinks.event(&Event::Warning { message });
            }
            let calibration = match self.ceiling {
                Ceiling::Skip => Ok(None),
                Ceiling::Known(known) => Ok(Some(known)),
                Ceiling::Measure(phase) => match &self.options.remote {
                    Some(remote) => remote.borrow_mut().calibrate(phase, stop),
                    None => {
                        let null = drivers::null();
                        calibrate(&null, &self.plan, phase, &self.options, stop).map(Some)
                    }
                },
            };
            calibration.and_then(|calibration| {
                if let Some(calibration) = calibration {
                    sinks.event(&Event::Calibrated(calibration));
                }
                run(driver, &self.plan, &self.options, &mut sinks, stop)
            })
        };
        self.live.finish();
        // The agents are told that the run is over, and may go.
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
            Err(error) => (Status::Aborted, Some(failure(error))),
        };
        let end = RunEnd {
            status,
            ended_unix_ns: unix_ns(),
            error: failure.as_ref().map(|f| f.message.clone()),
        };
        directory.finish(end).or_aborted()?;
        // What was measured until agents were lost is reported, labelled.
        let lost = matches!(&outcome, Err(RunError::Agents(_)));
        if let Some(failure) = failure.filter(|f| f.exit != Exit::GateFailed && !lost) {
            return Err(failure.and_left(left.as_deref()));
        }
        let result = report(&self.out)?;
        let exit = match (&outcome, gate(&result)) {
            (Err(_), _) if lost => Exit::Aborted,
            (Err(_), _) => Exit::GateFailed,
            (Ok(end), _) if end.stopped != StopLevel::Run => Exit::Interrupted,
            (Ok(_), gate) => gate.or_left(left.is_some()),
        };
        if let Err(error) = &outcome {
            eprintln!("bucketload: {error}");
        }
        Ok((
            Done {
                result,
                out: self.out,
                left,
            },
            exit,
        ))
    }
}

/// Ends phases with a stopping rule when they have measured precisely enough.
fn convergence(plan: &Plan) -> Option<StopHook> {
    if plan.phases.iter().all(|phase| phase.stop.is_none()) {
        return None;
    }
    let phases = plan.phases.clone();
    let mut current: Option<(u16, Convergence)> = None;
    Some(RefCell::new(Box::new(move |interval| {
        if current
            .as_ref()
            .is_none_or(|(phase, _)| *phase != interval.phase)
        {
            let plan = phases.get(usize::from(interval.phase));
            current = plan
                .and_then(Convergence::new)
                .map(|state| (interval.phase, state));
        }
        current
            .as_mut()
            .is_some_and(|(_, state)| state.interval(interval))
    })))
}

/// Where objects lie, in a run directory: what `report --placement` was given.
pub(crate) const PLACEMENT: &str = "placement.csv";
/// What data nodes served, in a run directory: what `report --served` was given.
pub(crate) const SERVED: &str = "served.csv";

/// The result of a run directory, with the load of the data nodes where it is known. Nothing but the
/// directory's data has a part in it.
///
/// # Errors
/// When the directory cannot be read.
pub(crate) fn result(dir: &Path) -> Result<RunResult, Failure> {
    let mut result = analyze(dir).or_usage()?;
    result.nodes = nodes(dir).or_usage()?;
    if result.run.profile == io500::PROFILE {
        // A configuration that cannot be read any more is told where its files are written.
        result.io500 = io500::scored(dir).ok().map(|(report, _)| (&report).into());
    }
    Ok(result)
}

/// The load of the data nodes, where the directory says which objects they hold.
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
    let page = dir.join("report.html");
    std::fs::write(&page, bucketload_results::report::html(&result))
        .map_err(|e| Failure::aborted(format!("{}: {e}", page.display())))?;
    Ok(result)
}

/// Verification is a gate: bytes that came back wrong fail the run whatever their number. So does any
/// finding of the consistency oracle, a store that was full, and a phase that failed more operations
/// than its workload allows (most of them, unless it says).
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
        .any(|gate| !gate.passed);
    if wrong || inconsistent || nothing || failed {
        Exit::GateFailed
    } else {
        Exit::Ok
    }
}

/// What a run that broke means for the user.
pub(crate) fn failure(error: &RunError) -> Failure {
    let message = error.to_string();
    match error {
        RunError::Options(_) | RunError::Unsupported { .. } | RunError::Foreign { .. } => {
            Failure::usage(message)
        }
        RunError::InUse { .. } => Failure::usage(format!(
            "{message}; name others (cprefix, oprefix), or allow it: --delete-named"
        )),
        RunError::Unreachable(_) | RunError::Bucket { .. } | RunError::BucketExists { .. } => {
            Failure::target(message)
        }
        RunError::NoBucket { .. } => Failure::target(format!("{message} (--create-bucket)")),
        RunError::Prepare { .. } => Failure {
            exit: Exit::GateFailed,
            message,
        },
        _ => Failure::aborted(message),
    }
}

pub(crate) fn unix_ns() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
