//! Reads the files of a study for the report.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bucketload_results::ResultsError;
use serde::de::DeserializeOwned;

use super::ReportError;
use crate::journal::{self, End};
use crate::layout;
use crate::model::{Cell, JournalLine, Plan, Study, Target, TargetFacts};

/// A study's files, without those of its cells.
#[derive(Clone, Debug)]
pub struct Files {
    /// The study's directory.
    pub dir: PathBuf,
    /// The request.
    pub study: Study,
    /// The cells.
    pub plan: Plan,
    /// The events, in order.
    pub journal: Vec<JournalLine>,
    /// The targets' facts, by name; missing for targets that were never inspected.
    pub facts: BTreeMap<String, TargetFacts>,
    /// The progress of each cell.
    pub state: journal::State,
}

impl Files {
    /// Reads the study in `dir`.
    ///
    /// # Errors
    /// When a file is missing or invalid. A missing journal or incomplete lines are not errors.
    pub fn read(dir: &Path) -> Result<Self, ReportError> {
        let path = dir.join(layout::STUDY);
        let study: Study = toml::from_str(&text(&path)?).map_err(|e| ReportError::Form {
            path: path.clone(),
            message: e.to_string(),
        })?;
        let plan: Plan = json(&dir.join(layout::PLAN))?;
        let journal = journal::read(dir)?;
        let mut facts = BTreeMap::new();
        for target in &study.targets {
            let path = layout::target(dir, &target.name);
            if path.is_file() {
                facts.insert(target.name.clone(), json(&path)?);
            }
        }
        Ok(Self {
            dir: dir.to_owned(),
            state: journal::State::of(&journal),
            study,
            plan,
            journal,
            facts,
        })
    }

    /// The directory of a measured cell, or the reason why there is none: `failed: …`, `skipped: …`, `not measured: …`.
    ///
    /// # Errors
    /// The reason.
    pub fn measured(&self, cell: &Cell) -> Result<PathBuf, String> {
        let known = self.state.cells.get(&cell.id);
        match known.and_then(|known| known.end.as_ref()) {
            Some(End::Finished { dir, .. }) => Ok(self.dir.join(dir)),
            Some(End::Failed { reason, .. }) => Err(format!("failed: {reason}")),
            Some(End::Skipped { reason }) => Err(format!("skipped: {reason}")),
            None if known.is_some_and(|known| known.attempts > 0) => {
                Err("failed: it was interrupted".to_owned())
            }
            None => Err("not measured: the study has not reached it".to_owned()),
        }
    }

    /// Why the placement of a cell's objects could not be determined, if so.
    #[must_use]
    pub fn unplaced(&self, cell: &str) -> Option<&str> {
        self.journal.iter().rev().find_map(|line| match line {
            JournalLine::Unplaced {
                cell: of, reason, ..
            } if of == cell => Some(reason.as_str()),
            _ => None,
        })
    }

    /// The target called `name` and its position.
    #[must_use]
    pub fn target(&self, name: &str) -> Option<(usize, &Target)> {
        let targets = self.study.targets.iter().enumerate();
        targets.into_iter().find(|(_, target)| target.name == name)
    }

    /// The display name of a target.
    #[must_use]
    pub fn label(&self, name: &str) -> String {
        self.target(name)
            .map_or_else(|| name.to_owned(), |(_, target)| target.label().to_owned())
    }

    /// Name of the target that multiples refer to; empty without targets.
    #[must_use]
    pub fn baseline(&self) -> &str {
        let first = || self.study.targets.first().map_or("", |target| &target.name);
        match self.study.baseline.as_str() {
            "" => first(),
            name => name,
        }
    }
}

fn text(path: &Path) -> Result<String, ResultsError> {
    std::fs::read_to_string(path).map_err(ResultsError::io(path, "read"))
}

fn json<T: DeserializeOwned>(path: &Path) -> Result<T, ReportError> {
    serde_json::from_str(&text(path)?).map_err(|e| ReportError::Form {
        path: path.to_owned(),
        message: e.to_string(),
    })
}
