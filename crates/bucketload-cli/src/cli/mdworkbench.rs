//! `bucketload md-workbench`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::agents::AgentsArgs;
use super::run::{LoadArgs, OpLogForm};
use super::target::TargetArgs;

const EXAMPLES: &str = "\
Examples:
  bucketload md-workbench --ranks 8 -D 2 -P 500 -I 200 --target s3://bench --endpoint-url http://host:9000
  bucketload md-workbench --ranks 4 --target file:///mnt/data --waiting-time 0.5 -L /tmp/latency
  bucketload md-workbench -1 --target s3://bench && bucketload md-workbench -2 --target s3://bench
      Precreation and benchmark as two commands: the file of --run-info-file connects them

Letters are those of MD-Workbench, but that its -t (waiting time) has no letter here: -t is the target.
A rank is a worker with a connection of its own, in this program or on agents (--agents, --launch); rank R is on
agent R modulo their number. See docs/md-workbench.md.";

/// Measure metadata operations on a working set that stays as large as it is, as MD-Workbench does
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WorkbenchArgs {
    #[command(flatten)]
    pub(crate) workbench: WorkbenchOptions,

    #[command(flatten)]
    pub(crate) target: TargetArgs,

    #[command(flatten)]
    pub(crate) load: LoadArgs,

    #[command(flatten)]
    pub(crate) agents: AgentsArgs,

    /// Run directory; unless given bucketload-runs/md-workbench-TIME
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Output options")]
    pub(crate) out: Option<PathBuf>,

    /// Form of the operation log, which the latencies are computed from
    #[arg(
        long,
        value_enum,
        value_name = "FORM",
        default_value = "parquet",
        help_heading = "Output options"
    )]
    pub(crate) op_log: OpLogForm,
}

/// What is measured.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "MD-Workbench options")]
pub(crate) struct WorkbenchOptions {
    /// Number of ranks; over all agents; unless given as many as there are cores, per agent
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) ranks: Option<u32>,

    /// Data sets of a rank
    #[arg(long, short = 'D', value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) data_sets: u32,

    /// Objects in a data set
    #[arg(long, short = 'P', value_name = "N", default_value_t = 3000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(crate) precreate_per_set: u64,

    /// Steps per data set and iteration
    #[arg(long, short = 'I', value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(crate) obj_per_proc: u64,

    /// Iterations of the benchmark
    #[arg(long, short = 'R', value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) iterations: u32,

    /// Bytes of an object
    #[arg(long, short = 'S', value_name = "BYTES", default_value_t = 3901)]
    pub(crate) object_size: u64,

    /// Distance in ranks between the owner of an object and who consumes it, per data set
    #[arg(long, short = 'O', value_name = "N", default_value_t = 1)]
    pub(crate) offset: u32,

    /// Wait after each operation, as a factor of its time
    #[arg(long, value_name = "FACTOR", default_value_t = 0.0)]
    pub(crate) waiting_time: f64,

    /// Each iteration with the factors 0, 0.0625, 0.125, 0.25, 0.5, 1, 2 and 4
    #[arg(long, short = 'T', conflicts_with = "waiting_time")]
    pub(crate) adaptive_waiting: bool,

    /// Longest duration of an iteration, seconds; 0 for none. Needs --stonewall-wear-out
    #[arg(long, short = 'w', value_name = "SECONDS", default_value_t = 0)]
    pub(crate) stonewall_timer: u64,

    /// Behind the stonewall all ranks go on to the highest number of steps
    #[arg(long, short = 'W')]
    pub(crate) stonewall_wear_out: bool,

    /// Write the latencies of rank 0 into files with this prefix
    #[arg(long, short = 'L', value_name = "PREFIX")]
    pub(crate) latency: Option<String>,

    /// Write those of all ranks
    #[arg(long, requires = "latency")]
    pub(crate) latency_all: bool,

    /// Run the precreation; without -1, -2 and -3 everything
    #[arg(long, short = '1')]
    pub(crate) run_precreate: bool,

    /// Run the benchmark
    #[arg(long, short = '2')]
    pub(crate) run_benchmark: bool,

    /// Run the cleanup
    #[arg(long, short = '3')]
    pub(crate) run_cleanup: bool,

    /// Number of steps that were done before, instead of that in the run-info file
    #[arg(long, value_name = "N")]
    pub(crate) start_item: Option<u64>,

    /// Do not delete and create: stat and read only
    #[arg(long)]
    pub(crate) read_only: bool,

    /// Objects that cannot be precreated are errors in the line, but no reason to exit with 1
    #[arg(long)]
    pub(crate) ignore_precreate_errors: bool,

    /// A line per rank beside that over all ranks
    #[arg(long)]
    pub(crate) process_reports: bool,

    /// Print counters and rates separated by tabs
    #[arg(long)]
    pub(crate) print_detailed_stats: bool,

    /// File that connects commands which run one part each
    #[arg(long, value_name = "FILE", default_value = "md-workbench.status", value_hint = ValueHint::FilePath)]
    pub(crate) run_info_file: PathBuf,

    /// Compare every byte that is read
    #[arg(long, short = 'X')]
    pub(crate) verify_read: bool,

    /// Seed of the data pattern; unless given the time of the start
    #[arg(long, short = 'G', value_name = "N")]
    pub(crate) seed: Option<i32>,

    /// What objects hold
    #[arg(long, value_enum, value_name = "TYPE", default_value_t)]
    pub(crate) data_packet_type: PacketType,
}

/// What objects hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum PacketType {
    /// IOR's pattern: rank and index in every word
    #[default]
    #[value(alias = "t")]
    Timestamp,
    /// Bytes that cannot be compressed
    #[value(alias = "i", alias = "incompressible", alias = "r")]
    Random,
}
