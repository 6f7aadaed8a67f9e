//! `bucketload s3-hpc`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::capacity::StudyOutputArgs;

/// The default library.
pub(crate) const DEFAULT_LIBRARY: &str = "libs3.so.4";

const EXAMPLES: &str = "\
Examples:
  bucketload s3-hpc --root /mnt/lustre/bench --library ./libs3.so.4
      Files, the library in the process, the library over a gateway, and HTTP, with both floors
  bucketload s3-hpc --root /dev/shm/bench --rows posix,http --sizes 4KiB,1MiB --processes 1,4
  bucketload s3-hpc --root /dev/shm/bench --library ./libs3.so.4 \\
      --row 'versitygw=--target s3://bench --endpoint-url http://127.0.0.1:7070'
      With another server as a further row; credentials come from the environment

Bucketload's own rows use the same directory. `bucketload run s3-hpc` runs a single cell on any
target.";

/// Compare access paths to the objects of a directory: files, libs3 in the process and over a gateway, HTTP
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct HpcArgs {
    #[command(flatten)]
    pub(crate) hpc: HpcOptions,

    #[command(flatten)]
    pub(crate) output: StudyOutputArgs,
}

/// What to compare.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Comparison options")]
pub(crate) struct HpcOptions {
    /// Directory for the objects; created if it does not exist
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) root: PathBuf,

    /// libs3 library for the rows embedded, remote and remote-unix (default: libs3.so.4 from the library search path)
    #[arg(long, value_name = "FILE", default_value = DEFAULT_LIBRARY, hide_default_value = true, value_hint = ValueHint::FilePath)]
    pub(crate) library: PathBuf,

    /// Bucketload's own rows to measure (default: all, without those of the library if it is not found)
    #[arg(long, value_enum, value_name = "ROW,...", value_delimiter = ',')]
    pub(crate) rows: Vec<OwnRow>,

    /// A further row, defined by the flags of its target (may be repeated)
    #[arg(long = "row", value_name = "NAME='FLAGS'")]
    pub(crate) further: Vec<String>,

    /// Sizes of objects
    #[arg(
        long,
        value_name = "SIZE,...",
        value_delimiter = ',',
        default_value = "1KiB,16KiB,256KiB,1MiB,16MiB,128MiB"
    )]
    pub(crate) sizes: Vec<String>,

    /// Numbers of processes; each has one operation in flight
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) processes: Vec<u32>,

    /// Most objects per size
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub(crate) objects: u64,

    /// Most bytes per cell; a cell has at least one object per process
    #[arg(long, value_name = "SIZE", default_value = "512MiB")]
    pub(crate) max_bytes: String,

    /// Trials per cell
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repetitions: u32,

    /// Do not measure the floors: a bare socket (tcp), and HTTP to a server that stores nothing (rest)
    #[arg(long)]
    pub(crate) no_floors: bool,

    /// Compare every byte read with what was written
    #[arg(long)]
    pub(crate) verify: bool,
}

/// Bucketload's own rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OwnRow {
    /// One file per object, with plain system calls
    Posix,
    /// libs3 in the process, on the directory
    Embedded,
    /// libs3 in the process, on `bucketload gateway` over TCP on loopback
    Remote,
    /// libs3 in the process, on `bucketload gateway` over a Unix socket
    RemoteUnix,
    /// HTTP to `bucketload serve` on the directory
    Http,
}
