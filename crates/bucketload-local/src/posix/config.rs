//! How files are used: the driver's options and their defaults.

use std::fmt;
use std::path::PathBuf;

/// Declares an enumeration of option values with their names.
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
                    format!("{text:?} is none of {}", names.join(", "))
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
    /// Who makes the system calls.
    Io {
        /// io_uring for the data of files, a pool of threads for everything else.
        Uring => "uring",
        /// A pool of threads that may block.
        Threads => "threads",
        /// The load thread itself, which then does nothing else.
        Sync => "sync",
    }
}

named! {
    /// When data must have reached the device.
    Fsync {
        /// Never: the kernel writes it back when it likes.
        Never => "never",
        /// Before the file is closed (fsync).
        Close => "close",
        /// With each write (O_DSYNC).
        Write => "write",
    }
}

named! {
    /// How an object comes to its name.
    Write {
        /// The file is opened under its name and written there. Readers see it growing.
        InPlace => "in-place",
        /// A temporary file in the same directory is written and renamed. Readers see the old
        /// object or the new one.
        Rename => "rename",
    }
}

named! {
    /// What becomes of the page cache.
    Cache {
        /// The kernel decides.
        Keep => "keep",
        /// The pages of a file are dropped after each operation on it, outside its time.
        Drop => "drop",
    }
}

named! {
    /// How objects lie in files.
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
    /// The directory that buckets are directories of.
    pub root: PathBuf,
    /// Who makes the system calls; `None` for the best that there is: [`Io::Uring`], or
    /// [`Io::Threads`] where the kernel or the build has none.
    pub io: Option<Io>,
    /// Whether data bypasses the page cache (O_DIRECT).
    pub direct: bool,
    /// When data must have reached the device.
    pub fsync: Fsync,
    /// How an object comes to its name.
    pub write: Write,
    /// What becomes of the page cache.
    pub cache: Cache,
    /// How objects lie in files.
    pub layout: Layout,
    /// Most bytes moved by one system call; a multiple of [`PosixConfig::ALIGNMENT`].
    pub block: u64,
    /// Distance between objects in a shared file, and their largest size, in bytes; a multiple of
    /// [`PosixConfig::ALIGNMENT`].
    pub slot: u64,
    /// Most threads of the pool of one load thread.
    pub threads: usize,
}

impl PosixConfig {
    /// What O_DIRECT asks of addresses, offsets and lengths, in bytes: the page size, which is a
    /// multiple of every device's block size that Linux supports for file systems.
    pub const ALIGNMENT: u64 = 4096;

    /// The defaults, on the directory `root`.
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

    /// Refuses what cannot work.
    ///
    /// # Errors
    /// What is wrong and what to write instead.
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
            return Err("a pool of no threads does nothing: use at least 1".to_owned());
        }
        if self.layout == Layout::Shared && self.write == Write::Rename {
            return Err(
                "objects in a shared file are written in place: drop one of layout `shared-file` \
                 and write mode `rename`"
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
