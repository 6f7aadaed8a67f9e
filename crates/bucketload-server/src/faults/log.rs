//! What faults really did: a line per answer that was held back.
//!
//! The file is the truth that a measurement of the server is compared with: timers are late, threads
//! are busy, and the answer leaves when it leaves. Lines are comma-separated,
//! `operation,ready_ns,due_ns,released_ns,key`: when the answer was ready, when the rules let it go, and
//! when its sending really began, in nanoseconds since the server started; the key comes last, since it
//! may contain commas, with control characters escaped. Each line is one write to a
//! file opened for appending, so threads need no lock and a killed server loses nothing.

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
    /// The system's reason.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let mut options = File::options();
        let mut file = options.append(true).create_new(true).open(path)?;
        file.write_all(b"operation,ready_ns,due_ns,released_ns,key\n")?;
        Ok(Self {
            file,
            epoch: Instant::now(),
        })
    }

    /// Writes down one answer: when it was ready, due, and released.
    pub(crate) fn held(&self, operation: Operation, key: &str, instants: [Instant; 3]) {
        let [ready, due, released] =
            instants.map(|at| at.saturating_duration_since(self.epoch).as_nanos());
        let line = format!(
            "{},{ready},{due},{released},{}\n",
            operation.name(),
            key.escape_debug()
        );
        // A full disk makes the log end early; the reader counts its lines.
        let _ = (&self.file).write_all(line.as_bytes());
    }
}
