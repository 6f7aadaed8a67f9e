//! Files whose errors end the command, with their path in the message.

use std::path::Path;

use crate::exit::Failure;

/// Reads a text file that the user names.
///
/// # Errors
/// A mistake of the user, if the file cannot be read.
pub(crate) fn read(path: impl AsRef<Path>) -> Result<String, Failure> {
    let path = path.as_ref();
    std::fs::read_to_string(path).map_err(|e| Failure::usage(format!("{}: {e}", path.display())))
}

/// Writes a result file.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn write(path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> Result<(), Failure> {
    let path = path.as_ref();
    std::fs::write(path, content).map_err(|e| Failure::aborted(format!("{}: {e}", path.display())))
}
