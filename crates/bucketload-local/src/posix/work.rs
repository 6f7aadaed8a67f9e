//! One step of an operation: its task, its input and its result.
//!
//! A session hands a work to the engine and gets it back. A work owns its memory and files, so an abandoned
//! step does no harm.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use super::buffer::Buffer;
use super::config::{Cache, Fsync, PosixConfig};
use super::errors::Failure;
use super::search::Search;
use super::walk::{Page, Walk};

/// An open file.
#[derive(Debug)]
pub(super) enum File {
    /// A file of one operation.
    Own(OwnedFd),
    /// A file that a thread's operations share.
    Shared(Arc<OwnedFd>),
}

impl AsFd for File {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Own(fd) => fd.as_fd(),
            Self::Shared(fd) => fd.as_fd(),
        }
    }
}

/// How to open a file for writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpenMode {
    /// Truncate or create.
    Replace,
    /// Create; fail if the file exists.
    New,
    /// Append or create.
    End,
    /// Create under the temporary name [`Work::beside`].
    Beside,
}

/// The last actions after writing a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Finish {
    /// Length to which to truncate the file: O_DIRECT writes whole blocks.
    pub(super) truncate: Option<u64>,
    /// Whether to rename the file from `beside` to `path`.
    pub(super) rename: bool,
}

/// The task of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// Reads `len` bytes at `offset` into the buffer. Optionally opens the file first and closes it after.
    Read { open: bool, close: bool },
    /// Writes `len` bytes at `offset`.
    Write {
        open: Option<OpenMode>,
        end: Option<Finish>,
    },
    /// Opens the shared file at `beside` for reading; with `write` also for writing, creating it if necessary.
    OpenShared { write: bool },
    /// Makes the data of the open file durable.
    Sync,
    /// Makes everything in the file system durable.
    SyncAll,
    /// Reads the size of a file.
    Stat,
    /// Removes a file.
    Unlink,
    /// Removes the files in `names`; with `prune` also the directories that become empty.
    UnlinkMany { prune: bool },
    /// Renames `source` to `path`.
    Rename,
    /// Copies `source` to `path`.
    Copy,
    /// Sets the times of a file; creates the file if it is missing.
    Touch,
    /// Creates a bucket.
    MakeBucket,
    /// Checks that a bucket exists.
    HeadBucket,
    /// Removes an empty directory; with `prune` one that contains only directories.
    RemoveBucket { prune: bool },
    /// Counts the buckets.
    ListBuckets,
    /// Fetches the walk's next page of at most `len` entries.
    List,
    /// Fetches at least `len` further entries of the search, in any order.
    Search,
    /// Removes the driver's own files and the empty directories under a prefix.
    Sweep,
}

/// A step.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) task: Task,
    /// Path of the object or bucket below the root, with a NUL.
    pub(super) path: Vec<u8>,
    /// Path of the source of a copy or rename, with a NUL.
    pub(super) source: Vec<u8>,
    /// Path of the driver's own file beside the object, with a NUL.
    pub(super) beside: Vec<u8>,
    /// Paths, each with a NUL.
    pub(super) names: Vec<u8>,
    pub(super) file: Option<File>,
    /// How this operation created the file, which it removes again if it fails.
    pub(super) made: Option<OpenMode>,
    pub(super) buffer: Buffer,
    /// Offset in the file.
    pub(super) offset: u64,
    /// Offset in the content, for calls that write directly from it.
    pub(super) content_at: u64,
    /// Bytes to read or write, or entries to list.
    pub(super) len: usize,
    /// Number of bytes at which a read may stop without reaching the end of the file.
    pub(super) enough: usize,
    /// Bytes that this step read or wrote.
    pub(super) moved: usize,
    /// Number of things found or removed, or the size of a file.
    pub(super) found: u64,
    /// Time of the file's last status change, in seconds since 1970.
    pub(super) changed_s: i64,
    pub(super) direct: bool,
    pub(super) fsync: Fsync,
    pub(super) cache: Cache,
    pub(super) walk: Walk,
    pub(super) search: Search,
    pub(super) page: Page,
    /// The clock of the operation's probe, and the times read from it.
    pub(super) clock: fn() -> u64,
    pub(super) started_ns: u64,
    pub(super) first_ns: u64,
    pub(super) done_ns: u64,
    pub(super) result: Result<(), Failure>,
}

impl Work {
    /// An idle work for a driver with `config`.
    pub(super) fn new(config: &PosixConfig) -> Self {
        Self {
            task: Task::Stat,
            path: Vec::with_capacity(128),
            source: Vec::new(),
            beside: Vec::new(),
            names: Vec::new(),
            file: None,
            made: None,
            buffer: Buffer::NONE,
            offset: 0,
            content_at: 0,
            len: 0,
            enough: 0,
            moved: 0,
            found: 0,
            changed_s: 0,
            direct: config.direct,
            fsync: config.fsync,
            cache: config.cache,
            walk: Walk::default(),
            search: Search::default(),
            page: Page::default(),
            clock: || 0,
            started_ns: 0,
            first_ns: 0,
            done_ns: 0,
            result: Ok(()),
        }
    }

    /// Clears the state of an earlier operation.
    #[inline]
    pub(super) fn reset(&mut self, clock: fn() -> u64) {
        // An operation abandoned between two steps leaves its file open.
        self.leave_file();
        self.made = None;
        self.offset = 0;
        self.content_at = 0;
        self.clock = clock;
        self.started_ns = 0;
        self.first_ns = 0;
        self.done_ns = 0;
    }

    /// Closes the operation's own file. Keeps a shared one, which the next operation will probably use.
    pub(super) fn leave_file(&mut self) {
        if let Some(File::Own(_)) = self.file {
            self.file = None;
        }
    }

    /// Marks the start of the operation. Call it immediately before the first system call.
    pub(super) fn mark_start(&mut self) {
        if self.started_ns == 0 {
            self.started_ns = (self.clock)();
        }
    }

    /// Marks the arrival of the step's answer.
    pub(super) fn mark_answer(&mut self) {
        self.done_ns = (self.clock)();
        if self.first_ns == 0 {
            self.first_ns = self.done_ns;
        }
    }
}
