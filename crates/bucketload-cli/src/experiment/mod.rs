//! Several trials in one directory with one report: what `capacity`, `sweep`, `study-grid` and `s3-hpc` share.
//!
//! ```text
//!  verb ─ header, trials ─► Session ─► DIR: header, trials.jsonl, run directories ─ derive ─► result.json, report.html
//! ```
//!
//! A verb describes its kind of study as an [`Experiment`] and measures the trials. A [`Session`] holds the directory
//! and reports whatever was measured when the trials end. [`Kind`] gives `report` and bundles the same for any
//! directory.

mod session;

use std::path::{Path, PathBuf};

use bucketload_core::plan::{PhaseKind, Plan};
use bucketload_core::tally::Tally;
use bucketload_results::analyze::examine;
use bucketload_results::bundle::is_plain_path;
use bucketload_results::capacity::CapacityStudy;
use bucketload_results::error::ResultsError;
use bucketload_results::grid::GridStudy;
use bucketload_results::hpc::HpcStudy;
use bucketload_results::result::RunResult;
use bucketload_results::rundir::{MANIFEST, Manifest, redact};
use bucketload_results::study::{Study, StudyFiles, read, rederive_trials, write_result};
use bucketload_results::sweep::SweepStudy;
use serde::Serialize;
use time::format_description::well_known::Rfc3339;

use crate::cli::capacity::StudyFormat;
use crate::commands::docs::print;
use crate::exit::{Exit, Failure, OrFail};
use crate::files;
pub(crate) use session::{Journal, Session};

/// Name of the file with an experiment's table, for kinds that have one.
pub(crate) const TABLE: &str = "cells.csv";

/// A kind of study: how its journal becomes a report.
pub(crate) trait Experiment: Study<Record: Clone> {
    /// What is computed from header and trials, and written as `result.json`.
    type Result: Serialize;

    /// Computes the result.
    fn result(files: StudyFiles<Self>) -> Self::Result
    where
        Self: Sized;

    /// The report for the terminal, with a line per trial if the kind offers that and `with_trials` is set.
    fn text(result: &Self::Result, with_trials: bool) -> String;

    /// The report page.
    fn page(result: &Self::Result) -> String;

    /// The content of [`TABLE`].
    fn table(_result: &Self::Result) -> Option<String> {
        None
    }

    /// The exit code that the outcome calls for.
    fn exit(_result: &Self::Result) -> Exit {
        Exit::Ok
    }

    /// A trial's run directory, relative to the study's; empty if the trial has none.
    fn run_directory(record: &Self::Record) -> &str;

    /// Computes a trial's record again from its run directory. `None` if the trial measured nothing.
    ///
    /// # Errors
    /// When the run directory cannot be read.
    fn record_again(
        header: &Self::Header,
        record: &Self::Record,
        trial: &Measured,
    ) -> Result<Option<Self::Record>, ResultsError>;

    /// Whether the record is data itself, because no run directory stands behind it.
    fn is_own_data(_header: &Self::Header, _record: &Self::Record) -> bool {
        false
    }
}

/// What the files of an experiment lead to.
pub(crate) struct Derived {
    /// Content of [`RESULT`](bucketload_results::study::RESULT).
    pub(crate) json: String,
    /// Content of [`REPORT`](bucketload_results::study::REPORT).
    pub(crate) page: String,
    /// Content of [`TABLE`].
    pub(crate) table: Option<String>,
    text: String,
    exit: Exit,
}

impl Derived {
    /// Writes the files into `dir` and prints the result.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub(crate) fn publish(&self, dir: &Path, format: StudyFormat) -> Result<(), Failure> {
        if let Some(table) = &self.table {
            files::write(dir.join(TABLE), table)?;
        }
        write_result(dir, &self.json, &self.page).or_aborted()?;
        match format {
            StudyFormat::Text => print(self.text.as_bytes()),
            StudyFormat::Json => print(format!("{}\n", self.json).as_bytes()),
        }
        .map(drop)
    }
}

/// Computes what the study in `dir` leads to, without writing anything.
fn derive<E: Experiment>(dir: &Path, with_trials: bool) -> Result<Derived, Failure> {
    let result = E::result(read::<E>(dir).or_usage()?);
    Ok(Derived {
        json: serde_json::to_string(&result).unwrap_or_default(),
        page: E::page(&result),
        table: E::table(&result),
        text: E::text(&result, with_trials),
        exit: E::exit(&result),
    })
}

/// The lines of the study's trials, computed again. A trial whose run directory is gone has no line.
fn trials<E: Experiment>(dir: &Path) -> Result<String, ResultsError> {
    rederive_trials::<E>(dir, &mut |header, record| {
        let inside = E::run_directory(record);
        let path = dir.join(inside);
        // A path that leads out of the study is not followed.
        if is_plain_path(inside) && path.join(MANIFEST).is_file() {
            return E::record_again(header, record, &Measured::read(&path)?);
        }
        Ok(E::is_own_data(header, record).then(|| record.clone()))
    })
}

/// An experiment whose kind is known at run time only.
pub(crate) struct Kind {
    /// Name of the file that marks a directory of this kind.
    pub(crate) header: &'static str,
    /// Computes result and reports, with a line per trial in the text if asked for.
    pub(crate) derive: fn(&Path, bool) -> Result<Derived, Failure>,
    /// Computes the lines of the trials from their run directories.
    pub(crate) trials: fn(&Path) -> Result<String, ResultsError>,
}

const fn kind<E: Experiment>() -> Kind {
    Kind {
        header: E::HEADER,
        derive: derive::<E>,
        trials: trials::<E>,
    }
}

/// Every kind.
pub(crate) static KINDS: [Kind; 4] = [
    kind::<CapacityStudy>(),
    kind::<SweepStudy>(),
    kind::<GridStudy>(),
    kind::<HpcStudy>(),
];

/// The kind of the directory `dir`, if it holds an experiment.
pub(crate) fn kind_of(dir: &Path) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| dir.join(kind.header).is_file())
}

/// What a trial's run directory holds.
pub(crate) struct Measured {
    pub(crate) dir: PathBuf,
    pub(crate) manifest: Manifest,
    pub(crate) result: RunResult,
    /// What the first measuring phase recorded.
    pub(crate) tally: Tally,
}

impl Measured {
    /// Reads the run directory `dir`.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn read(dir: &Path) -> Result<Self, ResultsError> {
        let manifest = Manifest::read(dir)?;
        let (result, mut tallies) = examine(dir)?;
        let mut phases = manifest.plan.phases.iter();
        let phase = phases.position(|phase| phase.kind == PhaseKind::Run);
        let phase = phase.and_then(|phase| u16::try_from(phase).ok());
        let tally = phase.and_then(|phase| tallies.remove(&phase));
        Ok(Self {
            dir: dir.to_owned(),
            manifest,
            result,
            tally: tally.unwrap_or_default(),
        })
    }
}

/// The current time as results show it.
pub(crate) fn now() -> String {
    let now = time::OffsetDateTime::now_utc();
    // RFC 3339 can express every time that the clock can show.
    now.format(&Rfc3339).unwrap_or_default()
}

/// The command line, without secrets.
pub(crate) fn command_line() -> Vec<String> {
    redact::args(&std::env::args().collect::<Vec<_>>())
}

/// Checks that a plan has exactly one measuring phase.
///
/// # Errors
/// When it has none or several.
pub(crate) fn check_one_phase(plan: &Plan, verb: &str) -> Result<(), Failure> {
    let phases = plan.phases.iter();
    match phases.filter(|phase| phase.kind == PhaseKind::Run).count() {
        1 => Ok(()),
        n => Err(Failure::usage(format!(
            "{verb} {}: the workload has {n} measuring phases; {verb} needs a workload with exactly one",
            plan.workload
        ))),
    }
}

/// Refuses options that the verb does not take.
///
/// # Errors
/// The first option that was given.
pub(crate) fn refuse(verb: &str, why: &str, given: &[(&str, bool)]) -> Result<(), Failure> {
    match given.iter().find(|(_, given)| *given) {
        Some((flag, _)) => Err(Failure::usage(format!("{flag}: {verb} {why}; remove it"))),
        None => Ok(()),
    }
}
