//! Errors of run directories. Each names the file and the remedy.

use std::io;
use std::path::{Path, PathBuf};

/// Why a run directory cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// A file operation failed.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What was attempted, such as `write`.
        action: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// The directory to create is not empty.
    #[error("{}: not empty; choose another run directory or remove this one", .0.display())]
    NotEmpty(PathBuf),
    /// The directory has no manifest.
    #[error("{}: not a run directory: it has no run.json", .0.display())]
    NoRun(PathBuf),
    /// The run has no operation log, or the log was not finished.
    #[error("{}: no operation log; record one with --op-log", .0.display())]
    NoOpLog(PathBuf),
    /// The manifest cannot be understood.
    #[error("{}: line {line}, column {column}: {message}; the file is damaged or was edited", path.display())]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// Line of the error, from 1.
        line: usize,
        /// Column of the error, from 1.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// The directory was written by a newer version.
    #[error("{}: format {found} is newer than {supported}, the newest this version reads; use bucketload {version} or newer", path.display())]
    TooNew {
        /// The manifest.
        path: PathBuf,
        /// Format found.
        found: u32,
        /// Newest format understood.
        supported: u32,
        /// The version that wrote it.
        version: String,
    },
}

impl ResultsError {
    /// Wraps an I/O error with what was attempted on which file.
    pub fn io<'a>(
        path: &'a Path,
        action: &'static str,
    ) -> impl FnOnce(io::Error) -> Self + use<'a> {
        move |source| Self::Io {
            path: path.to_owned(),
            action,
            source,
        }
    }
}
