//! What `capacity` and `sweep` have in common: a campaign, a directory, trials that are read back.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use bucketload_core::plan::{PhaseKind, Plan};
use bucketload_core::tally::Tally;
use bucketload_results::analyze::examine;
use bucketload_results::capacity::{CapacityResult, CapacityStudy};
use bucketload_results::grid::{GridResult, GridStudy};
use bucketload_results::hpc::{HpcResult, HpcStudy};
use bucketload_results::result::RunResult;
use bucketload_results::rundir::redact;
use bucketload_results::sweep::{SweepResult, SweepStudy};
use bucketload_results::{capacity, grid, hpc, study, sweep};
use bucketload_run::StopHandle;
use bucketload_workload::resolve::{EMBEDDED_MEMORY_BUDGET, ResolveContext, Resolved};
use bucketload_workload::spec::WorkloadFile;
use time::format_description::well_known::Rfc3339;

use crate::campaign::{Campaign, CampaignSpec, Trial};
use crate::cli::capacity::{StudyFormat, StudyOutputArgs};
use crate::cli::run::LoadArgs;
use crate::cli::workload::WorkloadArgs;
use crate::commands::docs::print;
use crate::connection::Connection;
use crate::exit::{Exit, Failure, OrFail};
use crate::setup;
use crate::target::Target;

/// The directory of a study that starts now, as given or named after command, workload and time.
pub(crate) fn directory(output: &StudyOutputArgs, command: &str, workload: &str) -> PathBuf {
    if let Some(out) = &output.out {
        return out.clone();
    }
    let started = time::OffsetDateTime::now_utc();
    setup::unused(setup::default_directory(
        &format!("{command}-{workload}"),
        started,
    ))
}

/// The instant of the start, as results show it.
pub(crate) fn now() -> String {
    let now = time::OffsetDateTime::now_utc();
    // Every instant of the clock has this form.
    now.format(&Rfc3339).unwrap_or_default()
}

/// The command line, without secrets.
pub(crate) fn command_line() -> Vec<String> {
    redact::args(&std::env::args().collect::<Vec<_>>())
}

/// The one measuring phase of a plan.
///
/// # Errors
/// When there are several, or none.
pub(crate) fn one_phase(plan: &Plan, command: &str) -> Result<usize, Failure> {
    let phases: Vec<usize> = (0..plan.phases.len())
        .filter(|&i| plan.phases[i].kind == PhaseKind::Run)
        .collect();
    match phases[..] {
        [phase] => Ok(phase),
        _ => Err(Failure::usage(format!(
            "{command} {}: it has {} measuring phases; {command} needs a workload with one",
            plan.workload,
            phases.len()
        ))),
    }
}

/// Opens a campaign in `dir` whose trials have schedules of their own.
///
/// # Errors
/// As [`Campaign::open`].
pub(crate) fn campaign(
    dir: &Path,
    file: &WorkloadFile,
    workload: &WorkloadArgs,
    connection: Connection,
    load: &LoadArgs,
    quiet: bool,
    stop: &StopHandle,
) -> Result<Campaign, Failure> {
    resumed_campaign(dir, file, workload, connection, load, (quiet, stop), None)
}

/// As [`campaign`], in a directory with so many trials of an earlier one that was interrupted.
///
/// # Errors
/// As [`Campaign::open`].
pub(crate) fn resumed_campaign(
    dir: &Path,
    file: &WorkloadFile,
    workload: &WorkloadArgs,
    connection: Connection,
    load: &LoadArgs,
    (quiet, stop): (bool, &StopHandle),
    resumed: Option<u32>,
) -> Result<Campaign, Failure> {
    let overrides = workload.overrides().or_usage()?;
    let memory = connection.target == Target::Memory;
    let mut campaign = Campaign::open(CampaignSpec {
        file: file.clone(),
        overrides,
        context: ResolveContext {
            memory_budget: memory.then_some(EMBEDDED_MEMORY_BUDGET),
        },
        connection,
        load: load.clone(),
        dir: dir.to_owned(),
        resumed,
        // A line per trial says enough where nothing can be drawn over.
        quiet: quiet || !std::io::stderr().is_terminal(),
        stop: stop.clone(),
    })?;
    campaign.independent_schedules();
    Ok(campaign)
}

/// Refuses workload options that the command sets by itself.
///
/// # Errors
/// The first of them that was given.
pub(crate) fn refuse(command: &str, why: &str, given: &[(&str, bool)]) -> Result<(), Failure> {
    match given.iter().find(|(_, given)| *given) {
        Some((flag, _)) => Err(Failure::usage(format!(
            "{flag}: {command} {why}; remove it"
        ))),
        None => Ok(()),
    }
}

/// The result of a trial and what was recorded in its measuring phase.
///
/// # Errors
/// When its run directory cannot be read.
pub(crate) fn measured(trial: &Trial, phase: usize) -> Result<(RunResult, Tally), Failure> {
    let (result, mut tallies) = examine(&trial.dir).or_aborted()?;
    let phase = u16::try_from(phase).unwrap_or(u16::MAX);
    let tally = tallies.remove(&phase).unwrap_or_default();
    Ok((result, tally))
}

/// The name of a trial's directory below the study's.
pub(crate) fn relative(dir: &Path, trial: &Trial) -> String {
    let inside = trial.dir.strip_prefix(dir).unwrap_or(&trial.dir);
    inside.to_string_lossy().into_owned()
}

/// Target and workload in words.
pub(crate) fn names(resolved: &Resolved) -> (String, String) {
    let plan = &resolved.plan;
    (plan.workload.clone(), plan.profile.clone())
}

/// Whether `dir` holds several runs that belong together.
pub(crate) fn is_study(dir: &Path) -> bool {
    study::is_study::<CapacityStudy>(dir)
        || study::is_study::<SweepStudy>(dir)
        || study::is_study::<GridStudy>(dir)
        || study::is_study::<HpcStudy>(dir)
}

/// What follows from the files of a study.
pub(crate) struct Derived {
    reported: Reported,
    /// [`study::RESULT`].
    pub(crate) json: String,
    text: String,
    /// [`study::REPORT`].
    pub(crate) page: String,
    /// The table of a grid and its file.
    pub(crate) table: Option<(&'static str, String)>,
}

/// Computes what follows from the study in `dir`, without writing anything. `None` when the directory holds
/// no study.
///
/// # Errors
/// When the directory cannot be read.
pub(crate) fn derive(dir: &Path, with_trials: bool) -> Result<Option<Derived>, Failure> {
    let mut table = None;
    let (reported, json, text, page) = if study::is_study::<CapacityStudy>(dir) {
        let files = study::read::<CapacityStudy>(dir).or_usage()?;
        let result = CapacityResult::new(files);
        let json = serde_json::to_string(&result).unwrap_or_default();
        let text = capacity::text::text(&result, with_trials);
        let page = capacity::page::html(&result);
        (Reported::Capacity(Box::new(result)), json, text, page)
    } else if study::is_study::<SweepStudy>(dir) {
        let files = study::read::<SweepStudy>(dir).or_usage()?;
        let result = SweepResult::new(files);
        let json = serde_json::to_string(&result).unwrap_or_default();
        let text = sweep::text::text(&result);
        let page = sweep::page::html(&result);
        (Reported::Sweep, json, text, page)
    } else if study::is_study::<GridStudy>(dir) {
        let files = study::read::<GridStudy>(dir).or_usage()?;
        let result = GridResult::new(files);
        let json = serde_json::to_string(&result).unwrap_or_default();
        let text = grid::text::text(&result);
        let page = grid::page::html(&result);
        table = Some(("cells.csv", grid::csv::csv(&result)));
        (Reported::Grid, json, text, page)
    } else if study::is_study::<HpcStudy>(dir) {
        let files = study::read::<HpcStudy>(dir).or_usage()?;
        let result = HpcResult::new(files);
        let json = serde_json::to_string(&result).unwrap_or_default();
        let text = hpc::text::text(&result);
        let page = hpc::page::html(&result);
        (Reported::Hpc, json, text, page)
    } else {
        return Ok(None);
    };
    Ok(Some(Derived {
        reported,
        json,
        text,
        page,
        table,
    }))
}

/// Computes the result of the study in `dir`, writes its files and prints it. `None` when the
/// directory holds no study.
///
/// # Errors
/// When the directory cannot be read or written.
pub(crate) fn report(
    dir: &Path,
    format: StudyFormat,
    with_trials: bool,
) -> Result<Option<Reported>, Failure> {
    let Some(derived) = derive(dir, with_trials)? else {
        return Ok(None);
    };
    let Derived {
        reported,
        json,
        text,
        page,
        table,
    } = derived;
    if let Some((name, table)) = table {
        let path = dir.join(name);
        std::fs::write(&path, table)
            .map_err(|e| Failure::aborted(format!("{}: {e}", path.display())))?;
    }
    study::write_result(dir, &json, &page).or_aborted()?;
    match format {
        StudyFormat::Text => print(text.as_bytes())?,
        StudyFormat::Json => print(format!("{json}\n").as_bytes())?,
    };
    Ok(Some(reported))
}

/// A study that was reported.
pub(crate) enum Reported {
    /// A capacity search.
    Capacity(Box<CapacityResult>),
    /// A sweep.
    Sweep,
    /// A grid.
    Grid,
    /// Ways to the objects of a directory.
    Hpc,
}

/// Ends a study: what was measured is reported whatever happened, then the failure that `ended` it, if any,
/// decides; after it what the clean-up left, if it was not `closed` well.
///
/// # Errors
/// The failure that ended the trials, unless it was the user.
pub(crate) fn finish(
    dir: &Path,
    output: &StudyOutputArgs,
    quiet: bool,
    ended: Result<(), Failure>,
    closed: Result<(), Failure>,
) -> Result<(Exit, Option<Reported>), Failure> {
    let left = closed.err();
    let told = left.as_ref().map(|left| left.message.as_str());
    let reported = report(dir, output.output, false).map_err(|failure| failure.and_left(told))?;
    if !quiet {
        eprintln!("bucketload: report: {}", dir.join(study::REPORT).display());
    }
    // What is left in the target does not hide what ended the study, and is not hidden by it.
    if let Some(left) = told {
        eprintln!("bucketload: {left}");
    }
    match ended {
        Ok(()) => Ok((left.map_or(Exit::Ok, |left| left.exit), reported)),
        Err(failure) if failure.exit == Exit::Interrupted => Ok((Exit::Interrupted, reported)),
        Err(failure) => Err(failure),
    }
}

/// The failure of a study that the user has stopped.
pub(crate) fn interrupted() -> Failure {
    Failure {
        exit: Exit::Interrupted,
        message: "interrupted".to_owned(),
    }
}
