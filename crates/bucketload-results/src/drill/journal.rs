//! Reads the journal of a drill.

use std::fs;
use std::path::Path;

use bucketload_core::drill::Entry;

use crate::error::ResultsError;

/// Name of the journal in a run directory.
pub const JOURNAL: &str = "drill.jsonl";

/// The entries of the journal in `dir`, in order; none if there is no journal. Lines that cannot be read, such as the last
/// one of a process that was killed, are left out.
///
/// # Errors
/// When the file cannot be read.
pub fn read_journal(dir: &Path) -> Result<Vec<Entry>, ResultsError> {
    let path = dir.join(JOURNAL);
    match fs::read_to_string(&path) {
        Ok(text) => Ok(text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(ResultsError::io(&path, "read")(e)),
    }
}
