//! Errors of traces, with remedies.

use std::io;
use std::path::{Path, PathBuf};

/// An error of importing, preparing or modelling a trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The format of a file is not recognised.
    #[error("{}: no format matches its first lines{hint}; name the format with --format ({formats})", path.display())]
    Unrecognised {
        /// The file.
        path: PathBuf,
        /// How its columns could be read; empty if it has none.
        hint: String,
        /// The names of the formats.
        formats: String,
    },
    /// Too many lines cannot be parsed.
    #[error(
        "{unparsable} of {frames} lines cannot be read ({reasons}); the first is {first}; samples are in {}; correct the \
         lines, or skip them with --lenient", samples.display()
    )]
    TooManyUnparsable {
        /// Lines or objects without a record.
        unparsable: u64,
        /// Total number of lines or objects.
        frames: u64,
        /// Counts by reason.
        reasons: String,
        /// File, line, reason and text of the first one.
        first: String,
        /// The file with samples.
        samples: PathBuf,
    },
    /// No record is left to replay.
    #[error("no record is left to replay: {0}")]
    Empty(String),
    /// A canonical file is damaged or has another version.
    #[error("{}: not a usable canonical trace: {reason}", path.display())]
    Canonical {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// An option is wrong.
    #[error("{0}")]
    Option(String),
}

impl TraceError {
    /// Wraps a system error about `path`.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |error| Self::Io {
            path: path.to_owned(),
            error,
        }
    }
}
