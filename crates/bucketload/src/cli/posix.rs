//! Flags that say how files are used, for file:// targets.

use bucketload_drivers::posix::{Cache, Fsync, Io, Layout, Write};
use clap::Args;

use super::values::size;

/// How files are used. All of them are for file:// targets.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "File system options")]
pub(crate) struct PosixArgs {
    /// Who makes the system calls: uring, threads or sync
    ///
    /// uring: io_uring for the data of files, threads for the rest. threads: a pool that may block.
    /// sync: the load thread itself, which then does nothing else; for closed loops with as many
    /// workers as load threads. Unless given: uring, or threads where there is no io_uring.
    #[arg(long, value_name = "ENGINE")]
    pub(crate) posix_io: Option<Io>,

    /// Bypass the page cache (O_DIRECT)
    #[arg(long)]
    pub(crate) posix_direct: bool,

    /// When data must be on the device: never, close (before the file is closed) or write (with each
    /// write); unless given `never`
    #[arg(long, value_name = "WHEN")]
    pub(crate) posix_fsync: Option<Fsync>,

    /// How objects are written: in-place, or rename (a temporary file is renamed); unless given
    /// `in-place`
    #[arg(long, value_name = "HOW")]
    pub(crate) posix_write: Option<Write>,

    /// Page cache: keep, or drop (pages of a file after each operation on it); unless given `keep`
    #[arg(long, value_name = "POLICY")]
    pub(crate) posix_cache: Option<Cache>,

    /// Empty the whole machine's page cache, names and inodes before each measured phase; needs root
    ///
    /// Writes everything back first. Other programs on this machine get slower for a while. Caches of
    /// servers behind a mount are not emptied.
    #[arg(long)]
    pub(crate) posix_drop_caches: bool,

    /// One file per object (files), or objects at fixed places of one file (shared-file); unless given
    /// `files`
    #[arg(long, value_name = "LAYOUT")]
    pub(crate) posix_layout: Option<Layout>,

    /// Most bytes per system call; unless given 1MiB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) posix_block: Option<u64>,

    /// Shared file: distance between objects, and their largest size; unless given 1MiB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) posix_slot: Option<u64>,

    /// Most pool threads per load thread; unless given 64
    #[arg(long, value_name = "N")]
    pub(crate) posix_threads: Option<usize>,
}

impl PosixArgs {
    /// These flags, replaced by those of `other` that were given.
    pub(crate) fn with(&self, other: &Self) -> Self {
        Self {
            posix_io: other.posix_io.or(self.posix_io),
            posix_direct: other.posix_direct || self.posix_direct,
            posix_fsync: other.posix_fsync.or(self.posix_fsync),
            posix_write: other.posix_write.or(self.posix_write),
            posix_cache: other.posix_cache.or(self.posix_cache),
            posix_drop_caches: other.posix_drop_caches || self.posix_drop_caches,
            posix_layout: other.posix_layout.or(self.posix_layout),
            posix_block: other.posix_block.or(self.posix_block),
            posix_slot: other.posix_slot.or(self.posix_slot),
            posix_threads: other.posix_threads.or(self.posix_threads),
        }
    }

    /// Each flag and whether it was given.
    pub(crate) fn given(&self) -> [(&'static str, bool); 10] {
        [
            ("--posix-io", self.posix_io.is_some()),
            ("--posix-direct", self.posix_direct),
            ("--posix-fsync", self.posix_fsync.is_some()),
            ("--posix-write", self.posix_write.is_some()),
            ("--posix-cache", self.posix_cache.is_some()),
            ("--posix-drop-caches", self.posix_drop_caches),
            ("--posix-layout", self.posix_layout.is_some()),
            ("--posix-block", self.posix_block.is_some()),
            ("--posix-slot", self.posix_slot.is_some()),
            ("--posix-threads", self.posix_threads.is_some()),
        ]
    }
}
