//! Journals: files with one line of JSON per event, on disk before anything else happens.
//!
//! A killed process leaves at most its last line incomplete. Readers do not count it, and the next writer cuts it off,
//! so an interrupted experiment or study resumes where it stopped.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::ResultsError;

/// A journal with lines of type `L` that is being written.
#[derive(Debug)]
pub struct Journal<L> {
    path: PathBuf,
    file: File,
    lines: PhantomData<fn(&L)>,
}

impl<L: Serialize> Journal<L> {
    /// Opens the journal `path` for appending, new if necessary. Cuts off a line that a killed process left unfinished.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn open(path: &Path) -> Result<Self, ResultsError> {
        let open = || {
            let options = File::options().create(true).read(true).append(true).clone();
            let mut file = options.open(path)?;
            let mut text = Vec::new();
            file.read_to_end(&mut text)?;
            let last = text.iter().rposition(|byte| *byte == b'\n');
            file.set_len(last.map_or(0, |at| at as u64 + 1))?;
            // The file's directory entry must be on disk as well.
            File::open(path.parent().unwrap_or(path))?.sync_all()?;
            Ok(file)
        };
        Ok(Self {
            file: open().map_err(ResultsError::io(path, "open"))?,
            path: path.to_owned(),
            lines: PhantomData,
        })
    }

    /// Appends a line and waits until it is on disk.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append(&mut self, line: &L) -> Result<(), ResultsError> {
        let mut text = serde_json::to_vec(line).unwrap_or_default();
        text.push(b'\n');
        let written = self.file.write_all(&text);
        written
            .and_then(|()| self.file.sync_data())
            .map_err(ResultsError::io(&self.path, "write"))
    }
}

/// The lines of the journal `path`; an unreadable or unfinished one is an `Err` with its text.
///
/// # Errors
/// When the file cannot be read.
pub fn read<L: DeserializeOwned>(path: &Path) -> Result<Vec<Result<L, String>>, ResultsError> {
    // An unfinished line may end within a character.
    let bytes = std::fs::read(path).map_err(ResultsError::io(path, "read"))?;
    let text = String::from_utf8_lossy(&bytes);
    let parsed = |line: &str| serde_json::from_str(line.strip_suffix('\n')?).ok();
    let lines = text.split_inclusive('\n');
    Ok(lines
        .map(|line| parsed(line).ok_or_else(|| line.to_owned()))
        .collect())
}
