//! Studies: directories of several related runs.
//!
//! ```text
//! DIR/capacity.json (or sweep.json)   the request; written first
//! DIR/trials.jsonl                    one line per trial, appended when it ends
//! DIR/001-NAME/ …                     the trials' run directories
//! DIR/result.json, report.html        computed from the above; `bucketload report DIR` recomputes them
//! ```
//!
//! A killed study keeps every trial that had ended.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use bucketload_core::stats::knee::{Knee, Saturation};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::ResultsError;
use crate::journal::{self, Journal};
use crate::units;

/// Name of the file of trials.
pub const TRIALS: &str = "trials.jsonl";
/// Name of the computed result.
pub const RESULT: &str = "result.json";
/// Name of the page.
pub const REPORT: &str = "report.html";

/// A kind of study.
pub trait Study {
    /// Name of the file with the request. It distinguishes the kinds of studies.
    const HEADER: &'static str;
    /// The request.
    type Header: Serialize + DeserializeOwned;
    /// The measurements of one trial.
    type Record: Serialize + DeserializeOwned;
}

/// Creates the study's files in `dir`, and `dir` itself if necessary. Returns the journal of its trials.
///
/// # Errors
/// When a file cannot be written or exists already.
pub fn create<S: Study>(
    dir: &Path,
    header: &S::Header,
) -> Result<Journal<S::Record>, ResultsError> {
    std::fs::create_dir_all(dir).map_err(ResultsError::io(dir, "create"))?;
    let text = serde_json::to_string_pretty(header).unwrap_or_default();
    for (name, text) in [(S::HEADER, text.as_str()), (TRIALS, "")] {
        let path = dir.join(name);
        File::create_new(&path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(ResultsError::io(&path, "create"))?;
    }
    Journal::open(&dir.join(TRIALS))
}

/// True if `dir` holds a study of this kind.
#[must_use]
pub fn is_study<S: Study>(dir: &Path) -> bool {
    dir.join(S::HEADER).is_file()
}

/// The content of a study's files.
#[derive(Debug)]
pub struct StudyFiles<S: Study> {
    /// The request.
    pub header: S::Header,
    /// The trials that had ended.
    pub trials: Vec<S::Record>,
    /// Unreadable lines of the file of trials: a killed process leaves its last line incomplete.
    pub damaged: u64,
}

/// Reads a study, finished or not.
///
/// # Errors
/// When a file is missing or the header is invalid.
pub fn read<S: Study>(dir: &Path) -> Result<StudyFiles<S>, ResultsError> {
    let path = dir.join(S::HEADER);
    let text = std::fs::read_to_string(&path).map_err(ResultsError::io(&path, "read"))?;
    let header = serde_json::from_str(&text).map_err(|e| ResultsError::Manifest {
        path,
        line: e.line(),
        column: e.column(),
        message: e.to_string(),
    })?;
    let lines = journal::read(&dir.join(TRIALS))?;
    let damaged = lines.iter().filter(|line| line.is_err()).count() as u64;
    Ok(StudyFiles {
        header,
        trials: lines.into_iter().flatten().collect(),
        damaged,
    })
}

/// Derives a trial's record anew, given the header and the stored record.
pub type Rederive<'a, S> = dyn FnMut(
        &<S as Study>::Header,
        &<S as Study>::Record,
    ) -> Result<Option<<S as Study>::Record>, ResultsError>
    + 'a;

/// The lines of the study's file of trials in `dir`, derived anew. A trial for which `rederive` returns `None`
/// is left out; unreadable lines are kept.
///
/// # Errors
/// When the study cannot be read, or when `rederive` fails.
pub fn rederive_trials<S: Study>(
    dir: &Path,
    rederive: &mut Rederive<'_, S>,
) -> Result<String, ResultsError> {
    let header = read::<S>(dir)?.header;
    let mut out = String::new();
    for line in journal::read(&dir.join(TRIALS))? {
        match line {
            Ok(record) => {
                if let Some(record) = rederive(&header, &record)? {
                    out += &serde_json::to_string(&record).unwrap_or_default();
                    out.push('\n');
                }
            }
            // A killed process leaves its last line incomplete.
            Err(line) => out += &line,
        }
    }
    Ok(out)
}

/// Writes the computed result and the page.
///
/// # Errors
/// When a file cannot be written.
pub fn write_result(dir: &Path, json: &str, page: &str) -> Result<(), ResultsError> {
    for (name, text) in [(RESULT, json), (REPORT, page)] {
        let path = dir.join(name);
        std::fs::write(&path, text).map_err(ResultsError::io(&path, "write"))?;
    }
    Ok(())
}

/// The saturation throughput in a sentence; `what` names the trials.
pub(crate) fn saturated(saturation: Option<&Saturation>, what: &str) -> Option<String> {
    let s = saturation?;
    let width = s.half_width.map(|h| format!(" ± {}", units::rate(h)));
    Some(format!(
        "saturation throughput {}{}/s over {} overloaded {what}",
        units::rate(s.per_s),
        width.unwrap_or_default(),
        s.trials
    ))
}

/// The bend of a curve in a sentence; `name` says which bend.
pub(crate) fn bend(name: &str, knee: Option<&Knee>) -> Option<String> {
    let k = knee?;
    Some(format!(
        "{name} at {}/s (range {} to {}/s): descriptive, not an objective",
        units::rate(k.x),
        units::rate(k.range.0),
        units::rate(k.range.1)
    ))
}

/// A caution about `lines` unreadable lines of the file of trials; `None` for 0.
pub(crate) fn unreadable(lines: u64) -> Option<String> {
    (lines > 0).then(|| format!("caution: {lines} lines of {TRIALS} cannot be read"))
}

/// A line about missing runs; `None` if all `wanted` ones are done.
pub(crate) fn interrupted(done: usize, wanted: usize) -> Option<String> {
    (done < wanted).then(|| format!("interrupted: {done} of {wanted} runs"))
}

/// The subtitle of a study's page: start to the second, version and command line.
pub(crate) fn origin(started: &str, version: &str, command_line: &[String]) -> String {
    let command = command_line.join(" ");
    let started = match started.split_once('.') {
        Some((seconds, _)) => format!("{seconds}Z"),
        None => started.to_owned(),
    };
    format!("Started {started}, Bucketload {version}. {command}")
}
