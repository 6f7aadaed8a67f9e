//! Run directories to compare.

use std::path::{Path, PathBuf};

use crate::analyze::analyze;
use crate::error::ResultsError;
use crate::result::RunResult;
use crate::rundir::{MANIFEST, Manifest};

/// Depth to which directories are searched for runs.
const DEPTH: usize = 3;

/// One run with its plan.
#[derive(Clone, Debug)]
pub struct Run {
    /// Its directory.
    pub directory: PathBuf,
    /// The manifest, including the plan.
    pub manifest: Manifest,
    /// The result.
    pub result: RunResult,
}

impl Run {
    /// Reads and analyses a run directory.
    ///
    /// # Errors
    /// When it is not a run directory, or a file cannot be read.
    pub fn load(directory: &Path) -> Result<Self, ResultsError> {
        Ok(Self {
            directory: directory.to_owned(),
            manifest: Manifest::read(directory)?,
            result: analyze(directory)?,
        })
    }
}

/// The run directories that `path` stands for: itself, or those below it (at most three levels down), such as
/// the trials of a campaign, sorted by name.
///
/// # Errors
/// When a directory cannot be listed, or there are no runs.
pub fn find(path: &Path) -> Result<Vec<PathBuf>, ResultsError> {
    let mut found = Vec::new();
    collect(path, DEPTH, &mut found)?;
    if found.is_empty() {
        return Err(ResultsError::NoRun(path.to_owned()));
    }
    Ok(found)
}

fn collect(path: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), ResultsError> {
    if path.join(MANIFEST).is_file() {
        found.push(path.to_owned());
        return Ok(());
    }
    if depth == 0 {
        return Ok(());
    }
    let mut below = Vec::new();
    for entry in std::fs::read_dir(path).map_err(ResultsError::io(path, "list"))? {
        let entry = entry.map_err(ResultsError::io(path, "list"))?.path();
        if entry.is_dir() {
            below.push(entry);
        }
    }
    below.sort();
    below
        .iter()
        .try_for_each(|entry| collect(entry, depth - 1, found))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::find;

    #[test]
    fn runs_are_found_below_and_in_order() {
        let dir = tempfile::tempdir().unwrap();
        for run in [
            "c/002-x",
            "c/001-x",
            "c/010-x",
            "single",
            "a/b/c/d/too-deep",
        ] {
            fs::create_dir_all(dir.path().join(run)).unwrap();
            fs::write(dir.path().join(run).join("run.json"), "{}").unwrap();
        }
        // Directories inside a run are not runs.
        fs::create_dir_all(dir.path().join("single/hist")).unwrap();
        let names = |path: &str| {
            let found = find(&dir.path().join(path)).unwrap();
            let name = |p: &std::path::PathBuf| p.file_name().unwrap().to_str().unwrap().to_owned();
            found.iter().map(name).collect::<Vec<_>>()
        };
        assert_eq!(names("c"), ["001-x", "002-x", "010-x"]);
        assert_eq!(names("single"), ["single"]);
        assert_eq!(names("").len(), 4);
        assert!(find(&dir.path().join("a")).is_err());
        assert!(find(&dir.path().join("absent")).is_err());
    }
}
