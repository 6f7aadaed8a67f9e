//! Several measurements on one prepared data set, in one process.
//!
//! ```text
//!  open ──► trial ──► trial ──► … ──► close
//!            │ first: claim the prefix, prepare
//!            │ later: delete what earlier trials wrote, prepare again what they destroyed
//!            └ each with its own run directory and verdict: DIR/001-NAME, DIR/002-NAME, …
//! ```
//!
//! Every trial finds the store in the same state. Trials with the same settings perform the same operations; only the
//! names of new objects differ. [`Campaign::close`], or dropping the value, deletes everything that the campaign
//! created. Several campaigns may exist at once: each has its own prefix and its own embedded server.

pub(crate) mod dataset;
pub(crate) mod interleave;
mod order;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::Duration;

use bucketload_core::plan::{PhaseKind, Plan};
use bucketload_core::sink::Calibration;
use bucketload_results::result::RunResult;
use bucketload_run::{Discard, RunEnd, RunOptions, StopHandle, StopLevel, discard, run};
use bucketload_workload::resolve::{Override, Overrides, Resolved, resolve};
use bucketload_workload::spec::WorkloadFile;

use crate::cli::run::LoadArgs;
use crate::connection::Connection;
use crate::exit::{Exit, Failure, OrFail};
use crate::job::{Ceiling, Done, Job, failure};
use crate::live::Live;
use crate::setup;
use dataset::{Wear, identity, indices};

/// What a campaign measures, where, and how it can be stopped.
pub(crate) struct CampaignSpec {
    /// The workload.
    pub(crate) file: WorkloadFile,
    /// Settings of every trial.
    pub(crate) overrides: Overrides,
    /// Where the load goes.
    pub(crate) connection: Connection,
    /// How the load is generated.
    pub(crate) load: LoadArgs,
    /// Directory in which the trials' run directories are created.
    pub(crate) dir: PathBuf,
    /// Number of trials that an interrupted campaign left in `dir`; `None`: the directory must be empty.
    pub(crate) resumed: Option<u32>,
    /// Whether each trial has its own arrival schedule, so that trials with the same settings differ by chance, as
    /// arrivals of real users do. Otherwise such trials share a schedule (common random numbers).
    pub(crate) independent: bool,
    /// Print neither progress nor notes.
    pub(crate) quiet: bool,
    /// Stops the current trial and the campaign.
    pub(crate) stop: StopHandle,
}

/// See the module's description.
pub(crate) struct Campaign {
    spec: CampaignSpec,
    id: String,
    options: RunOptions,
    data: Option<DataSet>,
    trials: u32,
    calibrations: Vec<(String, Calibration)>,
    /// Whether the prefix carries the campaign's marker and was not cleaned up yet.
    claimed: bool,
}

/// The objects in the target.
struct DataSet {
    /// The plan that prepared them.
    plan: Plan,
    identity: String,
    wear: Wear,
}

/// One measurement.
pub(crate) struct Trial {
    /// Its result.
    pub(crate) result: RunResult,
    /// Its run directory.
    pub(crate) dir: PathBuf,
    /// How `bucketload run` would have exited: a gate may have failed.
    pub(crate) exit: Exit,
}

impl Campaign {
    /// Checks workload, settings and directory. Sends nothing to the target yet.
    ///
    /// # Errors
    /// When the workload cannot be resolved or the directory is not empty.
    pub(crate) fn open(spec: CampaignSpec) -> Result<Self, Failure> {
        if spec.resumed.is_none() {
            setup::refuse_used(&spec.dir, "--out")?;
        }
        let id = setup::new_run_id(time::OffsetDateTime::now_utc())?;
        let options = setup::options(&spec.load, &id, &spec.connection);
        let campaign = Self {
            id,
            options,
            data: None,
            trials: spec.resumed.unwrap_or(0),
            calibrations: Vec::new(),
            claimed: false,
            spec,
        };
        let resolved = campaign.resolve(&[])?;
        if !campaign.spec.quiet {
            for note in &resolved.notes {
                eprintln!("bucketload: {note}");
            }
        }
        Ok(campaign)
    }

    /// The directory that holds the trials' run directories.
    pub(crate) fn dir(&self) -> &Path {
        &self.spec.dir
    }

    /// The target in words.
    pub(crate) fn describe(&self) -> String {
        self.spec.connection.describe()
    }

    /// The plan of a trial with these settings.
    ///
    /// # Errors
    /// When the settings do not fit the workload.
    pub(crate) fn plan(&self, settings: &[Override]) -> Result<Plan, Failure> {
        self.resolve(settings).map(|resolved| resolved.plan)
    }

    fn resolve(&self, settings: &[Override]) -> Result<Resolved, Failure> {
        let mut overrides = self.spec.overrides.clone();
        overrides.settings.extend_from_slice(settings);
        let context = self.spec.connection.target.resolve_context();
        resolve(&self.spec.file, &overrides, &context).or_usage()
    }

    /// Brings the target into the state in which a trial with these settings starts. Trials do this themselves; an
    /// earlier call keeps the load of preparation away from another campaign's measurement.
    ///
    /// # Errors
    /// When the target cannot be used, the data cannot be written, or the user stops the campaign.
    pub(crate) fn prepare(&mut self, settings: &[Override]) -> Result<(), Failure> {
        let plan = self.plan(settings)?;
        self.make_ready(&plan)
    }

    /// Measures with these settings on top of the campaign's, in a run directory named after the trial's number and
    /// `name`.
    ///
    /// # Errors
    /// When the target cannot be used, the data cannot be prepared, the run breaks, or the user stops the campaign. The
    /// run directory keeps what was measured.
    pub(crate) fn trial(&mut self, name: &str, settings: &[Override]) -> Result<Trial, Failure> {
        let resolved = self.resolve(settings)?;
        self.make_ready(&resolved.plan)?;
        let plan = &resolved.plan;
        let generation = self.trials;
        self.trials += 1;
        let options = self.options(indices(plan, PhaseKind::Run).collect(), generation);
        let run_id = format!("{}.{}", self.id, self.trials);
        let ceiling = self.ceiling(plan);
        let schedule = schedule(plan);
        if let Some(data) = &mut self.data {
            data.wear.add(plan);
        }
        let spec = &self.spec;
        let out = spec.dir.join(format!("{:03}-{name}", self.trials));
        let (source, connection) = (spec.file.text(), &spec.connection);
        let scale_note = setup::scale_note(&resolved.notes);
        let mut job = Job::new(resolved.plan, source, &run_id, options, connection, out)?;
        job.manifest.scale_note = scale_note;
        if job.options.schedule != 0 && !job.manifest.schedule_hash.is_empty() {
            // The hash alone identifies the plan's own schedule.
            job.manifest.schedule_hash += &format!(".{}", job.options.schedule);
        }
        job.ceiling = ceiling;
        job.quiet = spec.quiet;
        job.notes.extend(connection.warnings());
        let (done, exit) = job.execute(&connection.driver, &spec.stop)?;
        if exit == Exit::Interrupted {
            return Err(Failure::interrupted());
        }
        let Done { result, out, .. } = done;
        if let (Ceiling::Measure(_), Some(calibration)) = (ceiling, result.calibration) {
            self.calibrations.push((schedule, calibration));
        }
        Ok(Trial {
            result,
            dir: out,
            exit,
        })
    }

    /// Sleeps for `length`, or until the user stops the campaign.
    pub(crate) fn pause(&self, length: Duration) {
        const STEP: Duration = Duration::from_millis(50);
        let mut left = length;
        while !left.is_zero() && self.spec.stop.level() == StopLevel::Run {
            let step = left.min(STEP);
            std::thread::sleep(step);
            left -= step;
        }
    }

    /// Deletes everything that the campaign created, unless its workload keeps it.
    ///
    /// # Errors
    /// When the store refuses; leftovers carry the campaign's marker.
    pub(crate) fn close(mut self) -> Result<(), Failure> {
        self.clean_up()
    }

    fn options(&self, phases: Vec<usize>, generation: u32) -> RunOptions {
        RunOptions {
            phases: Some(phases),
            generation,
            schedule: if self.spec.independent { generation } else { 0 },
            ..setup::options(&self.spec.load, &self.id, &self.spec.connection)
        }
    }

    /// The client's ceiling for a plan, which is measured once per schedule.
    fn ceiling(&self, plan: &Plan) -> Ceiling {
        if self.spec.load.no_calibration {
            return Ceiling::Skip;
        }
        let wanted = schedule(plan);
        let mut known = self.calibrations.iter();
        match known.find(|(schedule, _)| *schedule == wanted) {
            Some((_, calibration)) => Ceiling::Known(*calibration),
            None => setup::calibrated_phase(plan).map_or(Ceiling::Skip, Ceiling::Measure),
        }
    }

    fn make_ready(&mut self, plan: &Plan) -> Result<(), Failure> {
        self.unless_stopped()?;
        let wanted = identity(plan);
        let all = || indices(plan, PhaseKind::Prepare).collect::<Vec<_>>();
        let missing = match self.data.take() {
            None if self.claimed => {
                // An earlier preparation did not finish.
                self.discard(plan, Discard::Everything)?;
                all()
            }
            None => {
                self.carry_out(plan, indices(plan, PhaseKind::Init).collect())?;
                self.claimed = true;
                all()
            }
            Some(data) if data.identity != wanted => {
                self.discard(&data.plan, Discard::Everything)?;
                all()
            }
            Some(data) => {
                if data.wear.written {
                    self.discard(&data.plan, Discard::Written)?;
                }
                data.wear.repairs(plan)
            }
        };
        if !missing.is_empty() {
            self.carry_out(plan, missing)?;
        }
        self.unless_stopped()?;
        self.data = Some(DataSet {
            plan: plan.clone(),
            identity: wanted,
            wear: Wear::default(),
        });
        Ok(())
    }

    /// Runs phases that are not measured.
    fn carry_out(&self, plan: &Plan, phases: Vec<usize>) -> Result<RunEnd, Failure> {
        let mut live = Live::new(plan, self.spec.quiet);
        let options = self.options(phases, 0);
        let (driver, stop) = (&self.spec.connection.driver, &self.spec.stop);
        let outcome = run(driver, plan, &options, &mut live, stop);
        live.finish();
        let left = options.left.take();
        match outcome {
            Err(error) => Err(failure(&error, &[]).with_leftovers(left.as_deref())),
            Ok(end) => left.map_or(Ok(end), |left| Err(Failure::leftovers(left))),
        }
    }

    fn discard(&self, plan: &Plan, what: Discard) -> Result<(), Failure> {
        let (driver, stop) = (&self.spec.connection.driver, &self.spec.stop);
        let report = discard(driver, plan, &self.options, what, stop);
        report.map(drop).map_err(|error| failure(&error, &[]))
    }

    fn unless_stopped(&self) -> Result<(), Failure> {
        match self.spec.stop.level() {
            StopLevel::Run => Ok(()),
            StopLevel::Finish | StopLevel::Abort => Err(Failure::interrupted()),
        }
    }

    fn clean_up(&mut self) -> Result<(), Failure> {
        if !std::mem::take(&mut self.claimed) {
            return Ok(());
        }
        let plan = match self.data.take() {
            Some(data) => data.plan,
            None => self.plan(&[])?,
        };
        let cleanup: Vec<usize> = indices(&plan, PhaseKind::Cleanup).collect();
        if cleanup.is_empty() {
            return Ok(());
        }
        if self.spec.stop.level() == StopLevel::Abort {
            return match self.options.aborted() {
                Some(left) => Err(Failure::leftovers(left)),
                None => Ok(()),
            };
        }
        self.carry_out(&plan, cleanup).map(drop)
    }
}

impl Drop for Campaign {
    fn drop(&mut self) {
        if let Err(failure) = self.clean_up() {
            eprintln!("bucketload: {}", failure.message);
        }
    }
}

/// What a calibration depends on: which operations there are, and when they are due.
fn schedule(plan: &Plan) -> String {
    let works: Vec<_> = setup::calibrated_phase(plan)
        .map(|phase| &plan.phases[phase].works)
        .into_iter()
        .collect();
    serde_json::json!([plan.seed, works]).to_string()
}
