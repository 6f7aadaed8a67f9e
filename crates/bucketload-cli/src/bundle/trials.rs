//! Directories of several runs: a line per trial follows from the trial's run directory, the result from the lines.

use std::path::Path;

use bucketload_results::bundle::Role;
use bucketload_results::study::{REPORT, RESULT, TRIALS};

use super::kinds::{Emit, Kind};
use crate::exit::{Failure, OrFail};
use crate::experiment::{KINDS, TABLE, kind_of};

/// A directory of several runs.
pub(super) struct Trials;

impl Kind for Trials {
    fn name(&self) -> &'static str {
        "trials"
    }

    fn is(&self, dir: &Path) -> bool {
        kind_of(dir).is_some()
    }

    fn role(&self, path: &str) -> Option<Role> {
        match path {
            TRIALS => Some(Role::Data),
            RESULT | REPORT | TABLE => Some(Role::Derived),
            _ => KINDS
                .iter()
                .any(|kind| kind.header == path)
                .then_some(Role::Data),
        }
    }

    fn derive(&self, dir: &Path, emit: &mut Emit<'_>) -> Result<(), Failure> {
        let Some(kind) = kind_of(dir) else {
            return Ok(());
        };
        let derived = (kind.derive)(dir, false)?;
        emit(RESULT, derived.json.into_bytes())?;
        emit(REPORT, derived.page.into_bytes())?;
        if let Some(table) = derived.table {
            emit(TABLE, table.into_bytes())?;
        }
        emit(TRIALS, (kind.trials)(dir).or_usage()?.into_bytes())
    }
}
