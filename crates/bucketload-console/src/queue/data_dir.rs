//! The queue on disk: one file that is replaced atomically, and a lock against a second controller.
//!
//! ```text
//! DIR/lock         held while a controller uses the directory
//! DIR/queue.json   the queue
//! DIR/jobs/wN/     workload file, output of the process, and the run directory `run`
//! DIR/incoming/    submissions being checked; emptied at startup
//! DIR/archive/     COSBench's archive of the XML workloads
//! ```

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::{JobId, Queue};

/// Format of the queue file; raised when older programs would misread the file.
const FORMAT: u32 = 1;
/// Name of the queue file.
const FILE: &str = "queue.json";
/// Name of the directory for submissions being checked.
const INCOMING: &str = "incoming";

/// The contents of the file.
#[derive(Serialize, Deserialize)]
struct Document<Q> {
    format: u32,
    queue: Q,
}

/// The data directory of a controller.
#[derive(Debug)]
pub(crate) struct DataDir {
    dir: PathBuf,
    /// Keeps the lock.
    _lock: File,
}

impl DataDir {
    /// Opens or makes the directory, readable by its owner only: workload files can contain credentials.
    ///
    /// # Errors
    /// When it cannot be used, or another controller uses it.
    pub(crate) fn open(dir: &Path) -> Result<Self, String> {
        let at = |path: &Path| {
            let path = path.display().to_string();
            move |e: io::Error| format!("--data {path}: {e}")
        };
        let (jobs, incoming) = (dir.join("jobs"), dir.join(INCOMING));
        for path in [dir, &jobs, &incoming] {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(path)
                .map_err(at(path))?;
        }
        let path = dir.join("lock");
        let lock = open_private(&path).map_err(at(&path))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            format!(
                "--data {}: another controller uses this directory",
                dir.display()
            )
        })?;
        let store = Self {
            dir: dir.to_owned(),
            _lock: lock,
        };
        // Submissions that a killed controller was checking; nobody was told that they were accepted.
        for entry in fs::read_dir(&incoming).map_err(at(&incoming))?.flatten() {
            let _ = fs::remove_dir_all(entry.path());
        }
        Ok(store)
    }

    /// Loads the queue of the last controller; an empty queue if there is none.
    ///
    /// # Errors
    /// When the file is damaged or of a newer format.
    pub(crate) fn load(&self) -> Result<Queue, String> {
        let path = self.dir.join(FILE);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Queue::default()),
            Err(e) => return Err(format!("{}: {e}", path.display())),
        };
        let damaged = |e: serde_json::Error| {
            format!(
                "{}: {e}; move the file away to start with an empty queue",
                path.display()
            )
        };
        let head: Document<serde_json::Value> = serde_json::from_slice(&text).map_err(damaged)?;
        if head.format > FORMAT {
            return Err(format!(
                "{}: written by a newer version (format {}, this one reads up to {FORMAT})",
                path.display(),
                head.format
            ));
        }
        let mut queue: Queue = serde_json::from_value(head.queue).map_err(damaged)?;
        queue.repair();
        Ok(queue)
    }

    /// Replaces the file atomically and durably.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn save(&self, queue: &Queue) -> io::Result<()> {
        let new = self.dir.join("queue.json.new");
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&new)?;
        let document = Document {
            format: FORMAT,
            queue,
        };
        let mut text = serde_json::to_vec_pretty(&document)?;
        text.push(b'\n');
        file.write_all(&text)?;
        file.sync_all()?;
        fs::rename(&new, self.dir.join(FILE))?;
        File::open(&self.dir)?.sync_all()
    }

    /// The directory of submission `number` during its check.
    pub(crate) fn incoming(&self, number: u64) -> PathBuf {
        self.dir.join(INCOMING).join(number.to_string())
    }

    /// COSBench's archive.
    pub(crate) fn archive(&self) -> PathBuf {
        self.dir.join("archive")
    }

    /// The directory of a job.
    pub(crate) fn job(&self, id: JobId) -> PathBuf {
        self.dir.join("jobs").join(id.to_string())
    }
}

/// Opens a file for appending that only its owner may read.
pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
}
