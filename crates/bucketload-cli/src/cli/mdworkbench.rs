//! `bucketload md-workbench`.

use std::path::PathBuf;

use bucketload_results::oplog::OpLogFormat;
use clap::{Args, ValueEnum, ValueHint};

use super::agents::AgentsArgs;
use super::run::{LoadArgs, OP_LOG_FORMATS};
use super::target::TargetArgs;
use super::values::choice;

const EXAMPLES: &str = "\
Examples:
  bucketload md-workbench --ranks 8 -D 2 -P 500 -I 200 --target s3://bench --endpoint-url http://host:9000
  bucketload md-workbench --ranks 4 --target file:///mnt/data --waiting-time 0.5 -L /tmp/latency
  bucketload md-workbench -1 --target s3://bench && bucketload md-workbench -2 --target s3://bench
      Precreation and benchmark as two commands, connected by the file of --run-info-file

Short options are those of MD-Workbench, except for its -t (waiting time): here -t is the target.
A rank is a worker with its own connection, in this program or on agents (--agents, --launch); rank
R runs on agent R modulo the number of agents. See docs/md-workbench.md.";

/// Measure metadata operations on a working set of constant size, as MD-Workbench does
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

    /// Run directory (default: bucketload-runs/md-workbench-TIME)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Output options")]
    pub(crate) out: Option<PathBuf>,

    /// Format of the operation log, from which the latencies are computed
    #[arg(
        long,
        value_parser = choice(OP_LOG_FORMATS),
        value_name = "FORM",
        default_value = "parquet",
        help_heading = "Output options"
    )]
    pub(crate) op_log: OpLogFormat,
}

/// What to measure.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "MD-Workbench options")]
pub(crate) struct WorkbenchOptions {
    /// Number of ranks over all agents (default: one per core of this machine, times the number of agents)
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) ranks: Option<u32>,

    /// Data sets per rank
    #[arg(long, short = 'D', value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) data_sets: u32,

    /// Objects per data set
    #[arg(long, short = 'P', value_name = "N", default_value_t = 3000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(crate) precreate_per_set: u64,

    /// Steps per data set and iteration
    #[arg(long, short = 'I', value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(crate) obj_per_proc: u64,

    /// Iterations of the benchmark
    #[arg(long, short = 'R', value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) iterations: u32,

    /// Bytes per object
    #[arg(long, short = 'S', value_name = "BYTES", default_value_t = 3901)]
    pub(crate) object_size: u64,

    /// Distance in ranks between the rank that creates an object and the rank that consumes it, per data set
    #[arg(long, short = 'O', value_name = "N", default_value_t = 1)]
    pub(crate) offset: u32,

    /// Wait after each operation for this factor times its duration
    #[arg(long, value_name = "FACTOR", default_value_t = 0.0)]
    pub(crate) waiting_time: f64,

    /// Run each iteration with the waiting factors 0, 0.0625, 0.125, 0.25, 0.5, 1, 2 and 4
    #[arg(long, short = 'T', conflicts_with = "waiting_time")]
    pub(crate) adaptive_waiting: bool,

    /// Time limit of an iteration in seconds; 0 for none. Needs --stonewall-wear-out
    #[arg(long, short = 'w', value_name = "SECONDS", default_value_t = 0)]
    pub(crate) stonewall_timer: u64,

    /// After the stonewall, let all ranks continue to the highest number of steps that any rank reached
    #[arg(long, short = 'W')]
    pub(crate) stonewall_wear_out: bool,

    /// Write the latencies of rank 0 to files whose names start with this prefix
    #[arg(long, short = 'L', value_name = "PREFIX")]
    pub(crate) latency: Option<String>,

    /// Write the latencies of all ranks
    #[arg(long, requires = "latency")]
    pub(crate) latency_all: bool,

    /// Run the precreation; without -1, -2 and -3, all parts run
    #[arg(long, short = '1')]
    pub(crate) run_precreate: bool,

    /// Run the benchmark
    #[arg(long, short = '2')]
    pub(crate) run_benchmark: bool,

    /// Run the cleanup
    #[arg(long, short = '3')]
    pub(crate) run_cleanup: bool,

    /// Number of steps done earlier, instead of the number in the run-info file
    #[arg(long, value_name = "N")]
    pub(crate) start_item: Option<u64>,

    /// Stat and read only; do not delete and create
    #[arg(long)]
    pub(crate) read_only: bool,

    /// Report objects that cannot be precreated as errors, but do not exit with 1 because of them
    #[arg(long)]
    pub(crate) ignore_precreate_errors: bool,

    /// Print a line per rank besides the line over all ranks
    #[arg(long)]
    pub(crate) process_reports: bool,

    /// Print times and counters of every rank, separated by tabs
    #[arg(long)]
    pub(crate) print_detailed_stats: bool,

    /// File that connects commands that run one part each
    #[arg(long, value_name = "FILE", default_value = "md-workbench.status", value_hint = ValueHint::FilePath)]
    pub(crate) run_info_file: PathBuf,

    /// Compare every byte read with what was written
    #[arg(long, short = 'X')]
    pub(crate) verify_read: bool,

    /// Seed of the data pattern (default: derived from the run's identifier)
    #[arg(long, short = 'G', value_name = "N")]
    pub(crate) seed: Option<i32>,

    /// Content of objects
    #[arg(long, value_enum, value_name = "TYPE", default_value_t)]
    pub(crate) data_packet_type: PacketType,
}

/// Content of objects.
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
