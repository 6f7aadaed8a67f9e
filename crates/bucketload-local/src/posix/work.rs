//! One step of an operation: what is to be done, everything that it needs, and what came of it.
//!
//! A work is handed to the engine and comes back. It owns its memory and files, so that a step that
//! nobody waits for any more harms nobody.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use super::buffer::Buffer;
use super::config::{Cache, Fsync, PosixConfig};
use super::errors::Failure;
use super::walk::{Page, Walk};

/// An open file.
#[derive(Debug)]
pub(super) enum File {
    /// Of one operation.
    Own(OwnedFd),
    /// Of all operations of a thread.
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

/// How a file is opened for writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// Emptied, or made.
    Replace,
    /// Made; an error where there is one.
    New,
    /// At its end, or made.
    End,
    /// Made under the temporary name [`Work::beside`].
    Beside,
}

/// What ends the writing of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ending {
    /// Length to cut the file to: O_DIRECT writes whole blocks.
    pub(super) truncate: Option<u64>,
    /// Whether it gets its name now.
    pub(super) rename: bool,
}

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// Reads `len` bytes at `offset` into the buffer. Opens the file before and closes it behind as
    /// said.
    Read { open: bool, close: bool },
    /// Writes `len` bytes at `offset`.
    Write {
        open: Option<Opening>,
        end: Option<Ending>,
    },
    /// Opens the shared file at `beside` for reading or, made if need be, for both.
    OpenShared { write: bool },
    /// Makes the data of the open file durable.
    Sync,
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
    /// Sets the times of a file, makes it where it is absent.
    Touch,
    /// Makes a bucket.
    MakeBucket,
    /// Looks for a bucket.
    HeadBucket,
    /// Removes an empty directory; with `prune` one that holds nothing but directories.
    RemoveBucket { prune: bool },
    /// Counts the buckets.
    ListBuckets,
    /// Fetches the walk's next page of at most `len` entries.
    List,
    /// Removes our own files and the empty directories under a prefix; `offset` is the number of
    /// bytes of the path that name the bucket.
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
    /// Path of our own file beside the object, with a NUL.
    pub(super) beside: Vec<u8>,
    /// Paths, each with a NUL.
    pub(super) names: Vec<u8>,
    pub(super) file: Option<File>,
    /// How the file was made by this operation, which takes it away again when it fails.
    pub(super) made: Option<Opening>,
    pub(super) buffer: Buffer,
    /// Where in the file.
    pub(super) offset: u64,
    /// Where in the content, for calls that write from where it lies.
    pub(super) content_at: u64,
    /// Bytes to read or write, entries to list.
    pub(super) len: usize,
    /// Bytes that are enough to read: that there are no more needs no proof.
    pub(super) enough: usize,
    /// Bytes read or written, by this step.
    pub(super) moved: usize,
    /// Things found or removed, or the size of a file.
    pub(super) found: u64,
    /// When the file's state was last changed, seconds since 1970.
    pub(super) changed_s: i64,
    pub(super) direct: bool,
    pub(super) fsync: Fsync,
    pub(super) cache: Cache,
    pub(super) walk: Walk,
    pub(super) page: Page,
    /// The clock of the operation's probe, and what it showed.
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
            page: Page::default(),
            clock: || 0,
            started_ns: 0,
            first_ns: 0,
            done_ns: 0,
            result: Ok(()),
        }
    }

    /// Forgets an earlier operation.
    #[inline]
    pub(super) fn reset(&mut self, clock: fn() -> u64) {
        // An operation that was abandoned between two steps leaves its file open.
        self.leave_file();
        self.made = None;
        self.offset = 0;
        self.content_at = 0;
        self.clock = clock;
        self.started_ns = 0;
        self.first_ns = 0;
        self.done_ns = 0;
    }

    /// Closes the operation's own file. A shared one will most likely be that of the next operation.
    pub(super) fn leave_file(&mut self) {
        if let Some(File::Own(_)) = self.file {
            self.file = None;
        }
    }

    /// The step leaves: to be called immediately before its first system call.
    pub(super) fn mark_start(&mut self) {
        if self.started_ns == 0 {
            self.started_ns = (self.clock)();
        }
    }

    /// The step's answer is here.
    pub(super) fn mark_answer(&mut self) {
        self.done_ns = (self.clock)();
        if self.first_ns == 0 {
            self.first_ns = self.done_ns;
        }
    }
}
