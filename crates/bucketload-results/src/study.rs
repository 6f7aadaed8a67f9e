//! Directories of several runs that belong together.
//!
//! ```text
//! DIR/capacity.json (or sweep.json)   what was asked for; written first
//! DIR/trials.jsonl                    one line per trial, appended when it has ended
//! DIR/001-NAME/ …                     the trials' run directories
//! DIR/result.json, report.html        computed from the above, again by `bucketload report DIR`
//! ```
//!
//! A study that was killed keeps every trial that had ended.

use std::fs::File;
use std::io::Write as _;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use bucketload_core::stats::knee::{Knee, Saturation};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::ResultsError;
use crate::units;

/// Name of the file of trials.
pub const TRIALS: &str = "trials.jsonl";
/// Name of the computed result.
pub const RESULT: &str = "result.json";
/// Name of the page.
pub const REPORT: &str = "report.html";

/// What makes a kind of study.
pub trait Study {
    /// Name of the file that says what was asked for; it tells kinds of studies apart.
    const HEADER: &'static str;
    /// What was asked for.
    type Header: Serialize + DeserializeOwned;
    /// What a trial showed.
    type Record: Serialize + DeserializeOwned;
}

/// A study being written.
#[derive(Debug)]
pub struct StudyWriter<S> {
    path: PathBuf,
    trials: File,
    kind: PhantomData<S>,
}

impl<S: Study> StudyWriter<S> {
    /// Creates the study's files in `dir`, which is made where it does not exist.
    ///
    /// # Errors
    /// When a file cannot be written, or holds a study already.
    pub fn create(dir: &Path, header: &S::Header) -> Result<Self, ResultsError> {
        std::fs::create_dir_all(dir).map_err(ResultsError::io(dir, "create"))?;
        let text = serde_json::to_string_pretty(header).unwrap_or_default();
        let path = dir.join(S::HEADER);
        File::create_new(&path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(ResultsError::io(&path, "create"))?;
        let path = dir.join(TRIALS);
        let trials = File::create_new(&path).map_err(ResultsError::io(&path, "create"))?;
        Ok(Self {
            path,
            trials,
            kind: PhantomData,
        })
    }

    /// Opens the study in `dir` again, which was interrupted, to append further trials. A line that a killed
    /// process left unfinished is cut off.
    ///
    /// # Errors
    /// When the file of trials cannot be read or written.
    pub fn resume(dir: &Path) -> Result<Self, ResultsError> {
        let path = dir.join(TRIALS);
        let text = std::fs::read(&path).map_err(ResultsError::io(&path, "read"))?;
        let whole = text.iter().rposition(|byte| *byte == b'\n');
        let whole = whole.map_or(0, |at| at as u64 + 1);
        let trials = File::options()
            .append(true)
            .open(&path)
            .and_then(|file| file.set_len(whole).map(|()| file))
            .map_err(ResultsError::io(&path, "write"))?;
        Ok(Self {
            path,
            trials,
            kind: PhantomData,
        })
    }

    /// Appends a trial that has ended.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn append(&mut self, record: &S::Record) -> Result<(), ResultsError> {
        let mut line = serde_json::to_string(record).unwrap_or_default();
        line.push('\n');
        self.trials
            .write_all(line.as_bytes())
            .map_err(ResultsError::io(&self.path, "write"))
    }
}

/// Whether `dir` holds a study of this kind.
#[must_use]
pub fn is_study<S: Study>(dir: &Path) -> bool {
    dir.join(S::HEADER).is_file()
}

/// A study as it was read.
#[derive(Debug)]
pub struct StudyFiles<S: Study> {
    /// What was asked for.
    pub header: S::Header,
    /// The trials that had ended.
    pub trials: Vec<S::Record>,
    /// Lines of the file of trials that cannot be read: a killed process tears the last one.
    pub damaged: u64,
}

/// Reads a study, finished or not.
///
/// # Errors
/// When a file is missing or the header cannot be understood.
pub fn read<S: Study>(dir: &Path) -> Result<StudyFiles<S>, ResultsError> {
    let path = dir.join(S::HEADER);
    let text = std::fs::read_to_string(&path).map_err(ResultsError::io(&path, "read"))?;
    let header = serde_json::from_str(&text).map_err(|e| ResultsError::Manifest {
        path,
        line: e.line(),
        column: e.column(),
        message: e.to_string(),
    })?;
    let path = dir.join(TRIALS);
    let text = std::fs::read_to_string(&path).map_err(ResultsError::io(&path, "read"))?;
    let (mut trials, mut damaged) = (Vec::new(), 0);
    for line in text.lines() {
        match serde_json::from_str(line) {
            Ok(record) => trials.push(record),
            Err(_) => damaged += 1,
        }
    }
    Ok(StudyFiles {
        header,
        trials,
        damaged,
    })
}

/// Makes a record of what its trial left, from the header and the record that stands there.
pub type Again<'a, S> = dyn FnMut(
        &<S as Study>::Header,
        &<S as Study>::Record,
    ) -> Result<Option<<S as Study>::Record>, ResultsError>
    + 'a;

/// The trials of the study in `dir` again, a line each: those that `again` makes of the recorded ones, where it
/// makes any.
///
/// # Errors
/// When the study cannot be read, or by `again`.
pub fn trials_again<S: Study>(
    dir: &Path,
    again: &mut Again<'_, S>,
) -> Result<String, ResultsError> {
    let header = read::<S>(dir)?.header;
    let path = dir.join(TRIALS);
    let text = std::fs::read_to_string(&path).map_err(ResultsError::io(&path, "read"))?;
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        match serde_json::from_str(line) {
            Ok(record) => {
                if let Some(record) = again(&header, &record)? {
                    out += &serde_json::to_string(&record).unwrap_or_default();
                    out.push('\n');
                }
            }
            // A killed process tears the last one.
            Err(_) => out += line,
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

/// What overloaded trials say of the saturation; `what` they are called.
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

/// Where a curve bends, called `name`.
pub(crate) fn bend(name: &str, knee: Option<&Knee>) -> Option<String> {
    let k = knee?;
    Some(format!(
        "{name} at {}/s, in the range {} to {}/s: a description, not an objective",
        units::rate(k.x),
        units::rate(k.range.0),
        units::rate(k.range.1)
    ))
}

/// That `lines` of the trials' file are damaged; nothing for none.
pub(crate) fn unreadable(lines: u64) -> Option<String> {
    (lines > 0).then(|| format!("caution: {lines} lines of {TRIALS} cannot be read"))
}

/// Where a study comes from, in the words of its page.
pub(crate) fn origin(started: &str, version: &str, command_line: &[String]) -> String {
    let command = command_line.join(" ");
    format!("Started {started}, Bucketload {version}. {command}")
}
