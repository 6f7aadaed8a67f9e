//! Directories of several runs: a line per trial follows from the trial's run directory, the result from the lines.
//!
//! Trials without a run directory (the floors of `s3-hpc`) have their line as data.

use std::path::Path;

use bucketload_core::plan::PhaseKind;
use bucketload_core::tally::Tally;
use bucketload_results::analyze::examine;
use bucketload_results::bundle::{Role, is_plain_path};
use bucketload_results::capacity::{self, CapacityStudy};
use bucketload_results::error::ResultsError;
use bucketload_results::grid::{self, GridStudy};
use bucketload_results::hpc::{self, HpcStudy};
use bucketload_results::result::RunResult;
use bucketload_results::rundir::Manifest;
use bucketload_results::study::{REPORT, RESULT, Study, TRIALS, is_study, rederive_trials};
use bucketload_results::sweep::{self, SweepStudy};

use super::kinds::{Give, Kind};
use crate::commands::study;
use crate::exit::{Failure, OrFail};

/// A directory of several runs.
pub(super) struct Trials;

impl Kind for Trials {
    fn name(&self) -> &'static str {
        "trials"
    }

    fn is(&self, dir: &Path) -> bool {
        study::is_study(dir)
    }

    fn role(&self, path: &str) -> Option<Role> {
        let headers = [
            CapacityStudy::HEADER,
            SweepStudy::HEADER,
            GridStudy::HEADER,
            HpcStudy::HEADER,
            TRIALS,
        ];
        match path {
            path if headers.contains(&path) => Some(Role::Data),
            RESULT | REPORT | "cells.csv" => Some(Role::Derived),
            _ => None,
        }
    }

    fn derive(&self, dir: &Path, give: &mut Give<'_>) -> Result<(), Failure> {
        let Some(derived) = study::derive(dir, false)? else {
            return Ok(());
        };
        give(RESULT, derived.json.into_bytes())?;
        give(REPORT, derived.page.into_bytes())?;
        if let Some((name, table)) = derived.table {
            give(name, table.into_bytes())?;
        }
        give(TRIALS, trials(dir).or_usage()?.into_bytes())
    }
}

/// What a trial's run directory holds.
struct Measured {
    manifest: Manifest,
    result: RunResult,
    /// Of the measuring phase.
    tally: Tally,
}

/// Reads the run directory `inside` of the study in `dir`. `None` where there is none; a path that leads out of the
/// study leads to none.
fn measured(dir: &Path, inside: &str) -> Result<Option<Measured>, ResultsError> {
    let path = dir.join(inside);
    if !is_plain_path(inside) || !path.join(bucketload_results::rundir::MANIFEST).is_file() {
        return Ok(None);
    }
    let manifest = Manifest::read(&path)?;
    let (result, mut tallies) = examine(&path)?;
    let phase = manifest
        .plan
        .phases
        .iter()
        .position(|phase| phase.kind == PhaseKind::Run);
    let phase = phase.and_then(|phase| u16::try_from(phase).ok());
    let tally = phase
        .and_then(|phase| tallies.remove(&phase))
        .unwrap_or_default();
    Ok(Some(Measured {
        manifest,
        result,
        tally,
    }))
}

/// The lines of the trials anew. A trial whose run directory is gone has no line: its figures follow from nothing.
fn trials(dir: &Path) -> Result<String, ResultsError> {
    if is_study::<CapacityStudy>(dir) {
        rederive_trials::<CapacityStudy>(dir, &mut |header, old| {
            let Some(of) = measured(dir, &old.dir)? else {
                return Ok(None);
            };
            let name = old.dir.clone();
            Ok(capacity::Record::of(
                old.trial,
                name,
                &header.slo,
                &of.manifest.plan,
                &of.result,
                &of.tally,
            ))
        })
    } else if is_study::<SweepStudy>(dir) {
        rederive_trials::<SweepStudy>(dir, &mut |_, old| {
            let Some(of) = measured(dir, &old.dir)? else {
                return Ok(None);
            };
            let name = old.dir.clone();
            Ok(sweep::Record::of(
                &old.value,
                old.number,
                old.repetition,
                name,
                &of.result,
                &of.tally,
            ))
        })
    } else if is_study::<GridStudy>(dir) {
        rederive_trials::<GridStudy>(dir, &mut |header, old| {
            let Some(of) = measured(dir, &old.dir)? else {
                return Ok(None);
            };
            let touch = header
                .rows
                .iter()
                .any(|row| row.name == old.row && row.touch);
            let place = (dir.join(&old.dir), old.dir.clone());
            let place = (place.0.as_path(), place.1);
            grid::Record::read(
                (&old.row, touch),
                old.processes,
                old.repetition,
                old.floor,
                place,
                &of.result,
            )
            .map(Some)
        })
    } else {
        rederive_trials::<HpcStudy>(dir, &mut |header, old| {
            let row = header.rows.iter().find(|row| row.name == old.row);
            let floor = row.is_some_and(|row| row.floor);
            let Some(of) = measured(dir, &old.dir)? else {
                return Ok((floor && old.dir.is_empty()).then(|| old.clone()));
            };
            let mut steps = hpc::StepRecord::of_run(&of.result);
            // What keeps nothing has nothing to list.
            steps.retain(|step| !floor || step.step != "list");
            Ok(Some(hpc::Record {
                steps,
                ..old.clone()
            }))
        })
    }
}
