//! The fault log: one line per response that was held back.
//!
//! The file is the ground truth for a measurement of the server: timers fire late and threads are
//! busy, so a response may leave later than the rules say. Lines are comma-separated,
//! `operation,ready_ns,due_ns,released_ns,key`: when the response was ready, when the rules released
//! it, and when sending began, in nanoseconds since the server started. The key comes last because it
//! may contain commas; its control characters are escaped. Each line is one write to a file opened for
//! appending, so threads need no lock and a killed server loses nothing.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Instant;

use crate::router::Operation;

/// An open fault log.
#[derive(Debug)]
pub(crate) struct FaultLog {
    file: File,
    epoch: Instant,
}

impl FaultLog {
    /// Creates the file, which must not exist.
    ///
    /// # Errors
    /// If the file exists or cannot be created.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let mut options = File::options();
        let mut file = options.append(true).create_new(true).open(path)?;
        file.write_all(b"operation,ready_ns,due_ns,released_ns,key\n")?;
        Ok(Self {
            file,
            epoch: Instant::now(),
        })
    }

    /// Logs one response: when it was ready, due, and released.
    pub(crate) fn held(&self, operation: Operation, key: &str, instants: [Instant; 3]) {
        let [ready, due, released] =
            instants.map(|at| at.saturating_duration_since(self.epoch).as_nanos());
        let line = format!(
            "{},{ready},{due},{released},{}\n",
            operation.name(),
            key.escape_debug()
        );
        // On a full disk the log ends early; its reader counts the lines.
        let _ = (&self.file).write_all(line.as_bytes());
    }
}
