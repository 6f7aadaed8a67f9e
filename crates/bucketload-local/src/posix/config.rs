//! The driver's options and their defaults.

use std::fmt;
use std::path::PathBuf;

/// Declares an enum of option values with their names.
macro_rules! named {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident => $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $name {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name on the command line.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                Self::ALL.iter().copied().find(|v| v.name() == text).ok_or_else(|| {
                    let names: Vec<_> = Self::ALL.iter().map(|v| v.name()).collect();
                    format!("{text:?} is not one of {}", names.join(", "))
                })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

named! {
    /// Which thread makes the system calls, and how.
    Io {
        /// io_uring for file data, a thread pool for everything else.
        Uring => "uring",
        /// A pool of threads that may block.
        Threads => "threads",
        /// The load thread itself, which blocks during the call.
        Sync => "sync",
    }
}

named! {
    /// When data must have reached the device.
    Fsync {
        /// Never: the kernel decides when to write it back.
        Never => "never",
        /// Before the file is closed (fsync).
        Close => "close",
        /// With each write (O_DSYNC).
        Write => "write",
    }
}

named! {
    /// How an object is written.
    Write {
        /// Write the file under its own name. Readers see it grow.
        InPlace => "in-place",
        /// Write a temporary file in the same directory, then rename it. Readers see the old object or
        /// the new one.
        Rename => "rename",
    }
}

named! {
    /// Treatment of the page cache.
    Cache {
        /// The kernel decides.
        Keep => "keep",
        /// Drop the pages of a file after each operation on it, outside the operation's time.
        Drop => "drop",
    }
}

named! {
    /// How objects are stored in files.
    Layout {
        /// One file per object.
        Files => "files",
        /// Objects at fixed distances in one file per directory: for random access to one file.
        Shared => "shared-file",
    }
}

/// Configuration of the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PosixConfig {
    /// The directory that contains the buckets.
    pub root: PathBuf,
    /// How system calls are made; `None` for the best available: [`Io::Uring`], or [`Io::Threads`] if the
    /// kernel or the build lacks io_uring.
    pub io: Option<Io>,
    /// Whether data bypasses the page cache (O_DIRECT).
    pub direct: bool,
    /// When data must have reached the device.
    pub fsync: Fsync,
    /// How an object is written.
    pub write: Write,
    /// Treatment of the page cache.
    pub cache: Cache,
    /// How objects are stored in files.
    pub layout: Layout,
    /// Most bytes per system call; a multiple of [`PosixConfig::ALIGNMENT`].
    pub block: u64,
    /// Distance between objects in a shared file, and their largest size, in bytes; a multiple of
    /// [`PosixConfig::ALIGNMENT`].
    pub slot: u64,
    /// Most pool threads per load thread.
    pub threads: usize,
}

impl PosixConfig {
    /// Alignment that O_DIRECT requires of addresses, offsets and lengths, in bytes: the page size, a
    /// multiple of every block size that Linux supports for file systems.
    pub const ALIGNMENT: u64 = 4096;

    /// The defaults for the directory `root`.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            io: None,
            direct: false,
            fsync: Fsync::Never,
            write: Write::InPlace,
            cache: Cache::Keep,
            layout: Layout::Files,
            block: 1 << 20,
            slot: 1 << 20,
            threads: 64,
        }
    }

    /// Checks the configuration.
    ///
    /// # Errors
    /// The first setting that cannot work, with a remedy.
    pub fn check(&self) -> Result<(), String> {
        let aligned = |n: u64| n > 0 && n.is_multiple_of(Self::ALIGNMENT);
        if !self.root.is_absolute() {
            return Err(format!("{} is not an absolute path", self.root.display()));
        }
        if !aligned(self.block) || self.block > 64 << 20 {
            return Err(format!(
                "blocks of {} bytes: use a multiple of 4 KiB up to 64 MiB",
                self.block
            ));
        }
        if !aligned(self.slot) {
            return Err(format!(
                "slots of {} bytes: use a multiple of 4 KiB",
                self.slot
            ));
        }
        if self.threads == 0 {
            return Err("a pool without threads cannot work: use at least 1".to_owned());
        }
        if self.layout == Layout::Shared && self.write == Write::Rename {
            return Err(
                "objects in a shared file are written in place: use either layout `shared-file` \
                 or write mode `rename`"
                    .to_owned(),
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Fsync, Io, Layout, PosixConfig, Write};

    #[test]
    fn names_round_trip_and_wrong_ones_are_explained() {
        for io in Io::ALL {
            assert_eq!(io.name().parse(), Ok(*io));
        }
        assert_eq!("close".parse(), Ok(Fsync::Close));
        let wrong = "aio".parse::<Io>().unwrap_err();
        assert!(wrong.contains("uring, threads, sync"), "{wrong}");
    }

    #[test]
    fn impossible_settings_are_refused() {
        let good = PosixConfig::new("/data");
        assert_eq!(good.check(), Ok(()));
        let changes: [fn(&mut PosixConfig); 6] = [
            |c| c.root = "data".into(),
            |c| c.block = 4097,
            |c| c.block = 0,
            |c| c.slot = 100,
            |c| c.threads = 0,
            |c| (c.layout, c.write) = (Layout::Shared, Write::Rename),
        ];
        for change in changes {
            let mut wrong = good.clone();
            change(&mut wrong);
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }
}
