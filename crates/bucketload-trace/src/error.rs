//! What can go wrong with a trace, and what to do about it.

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
        /// What the system says.
        error: io::Error,
    },
    /// The format of a file is not recognised.
    #[error("{}: no format fits its first lines; name it with --format ({formats})", path.display())]
    Unrecognised {
        /// The file.
        path: PathBuf,
        /// The names of the formats.
        formats: String,
    },
    /// Too much of the input cannot be understood.
    #[error(
        "{unparsable} of {frames} lines cannot be read ({reasons}); samples are in {}; \
         --lenient goes on without them", samples.display()
    )]
    TooManyUnparsable {
        /// Lines or objects that yield no record.
        unparsable: u64,
        /// Lines or objects in all.
        frames: u64,
        /// Counts by reason.
        reasons: String,
        /// The side file.
        samples: PathBuf,
    },
    /// Nothing is left to replay.
    #[error("no record is left to replay: {0}")]
    Empty(String),
    /// A file in canonical form is damaged or of another version.
    #[error("{}: not a usable canonical trace: {reason}", path.display())]
    Canonical {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// An option makes no sense.
    #[error("{0}")]
    Option(String),
}

impl TraceError {
    /// An error of the system about `path`.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |error| Self::Io {
            path: path.to_owned(),
            error,
        }
    }
}
