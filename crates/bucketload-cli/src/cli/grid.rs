//! `bucketload study-grid`.

use clap::{Args, ValueHint};

use super::capacity::StudyOutputArgs;
use super::run::LoadArgs;
use super::target::TargetArgs;

const EXAMPLES: &str = "\
Examples:
  bucketload study-grid
      A hundredth of the study's files, up to 10 MB each, on the embedded server
  bucketload study-grid --rows all --scale 1 --processes 1,4,16 --target s3://bench --endpoint-url http://host:9000
  bucketload study-grid --rows g0,touch,500x4096 --processes 1,2,4,8 --repetitions 5

Rows of the study, as files per process x bytes: touch and g0 10000 x 0, g1 10000 x 1024,
g2 1000 x 10240, g3 1000 x 102400, g4 1000 x 1024000, g5 1000 x 10240000, g6 100 x 102400000,
g7 10 x 1024000000, g8 1 x 10240000000. Files beyond 5 GiB are written in parts of 64 MiB.

A process is a worker with its own connection; all workers run in this program.";

/// Measure the grid of a study of storage systems: files x sizes x processes; write, read, metadata
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GridArgs {
    #[command(flatten)]
    pub(crate) grid: GridOptions,

    #[command(flatten)]
    pub(crate) target: TargetArgs,

    #[command(flatten)]
    pub(crate) load: LoadArgs,

    #[command(flatten)]
    pub(crate) output: StudyOutputArgs,
}

/// What to measure.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Grid options")]
pub(crate) struct GridOptions {
    /// Rows: touch, g0 to g8, ranges, all, or FILESxBYTES
    #[arg(long, value_name = "ROWS", default_value = "touch,g0..g5")]
    pub(crate) rows: String,

    /// Numbers of processes
    #[arg(long, value_name = "N,...", default_value = "1", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) processes: Vec<u32>,

    /// Requests in flight per process
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) streams: u32,

    /// Factor on the number of files of the study's rows (not on sizes); a process has at least one file
    #[arg(long, value_name = "FACTOR", default_value_t = 0.01)]
    pub(crate) scale: f64,

    /// Skip rows that would write more bytes than this, such as 20GiB (default: 512MiB for the embedded server
    /// over memory, else no limit)
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_bytes: Option<String>,

    /// Trials per cell
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repetitions: u32,

    /// Continue the interrupted grid in the directory of --out, without repeating its trials
    #[arg(long)]
    pub(crate) resume: bool,

    /// Do not measure the floor: the same work on the null target
    #[arg(long)]
    pub(crate) no_floor: bool,

    /// Compare every byte read with what was written
    #[arg(long)]
    pub(crate) verify: bool,

    /// Seed of all random choices
    #[arg(long, value_name = "N", value_hint = ValueHint::Other)]
    pub(crate) seed: Option<u64>,

    /// Time limit of one attempt of an operation, such as 10m (default: 30s plus the time that the file takes
    /// at 10 MB/s)
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<String>,
}
