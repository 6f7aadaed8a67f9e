//! `bucketload io500`.

use std::path::PathBuf;

use bucketload_results::oplog::OpLogFormat;
use clap::{Args, ValueHint};

use super::agents::AgentsArgs;
use super::run::{LoadArgs, OP_LOG_FORMATS};
use super::target::TargetArgs;
use super::values::{byte_rate, choice};

const EXAMPLES: &str = "\
Examples:
  bucketload io500 --config io500.ini --ranks 16
      IO500 as configured: on the directory `datadir`, or on the S3 service of `api`
  bucketload io500 --ranks 16 --target s3://bench --endpoint-url http://host:9000
  bucketload io500 --ranks 16 --target s3://bench --endpoint-url http://host:9000 --mapping ior-libs3-single
      With the requests that IOR's backend S3-libs3 sends
  bucketload io500 --ranks 2 --target mem: --set debug.stonewall-time=1
      A trial run on the embedded server, which is marked as invalid
  bucketload io500 --ranks 64 --agents h1:7400,h2:7400 --target s3://bench --endpoint-url http://host:9000
      64 ranks on two agents (`bucketload agent --listen`)
  bucketload io500 --verify results/2026.11.20-08.38.11

A rank is a worker with its own connection, in this program or on agents (--agents, --launch); rank
R runs on agent R modulo the number of agents. Stonewall, wear-out, sizes, order and assignment of
work are IO500's. See docs/io500.md.";

/// Score a target as IO500 does: bandwidth and metadata phases, stonewall, result files
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Io500Args {
    /// Configuration file in IO500's format
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "IO500 options")]
    pub(crate) config: Option<PathBuf>,

    /// Set an option of the configuration, such as debug.stonewall-time=30 (may be repeated)
    #[arg(
        long,
        value_name = "SECTION.OPTION=VALUE",
        help_heading = "IO500 options"
    )]
    pub(crate) set: Vec<String>,

    /// Number of ranks over all agents (default: one per core of this machine, times the number of agents)
    #[arg(long, short = 'n', value_name = "N", help_heading = "IO500 options")]
    pub(crate) ranks: Option<String>,

    /// How files map to objects: ior-libs3-single, ior-libs3-bucket-per-file, native, multipart, or files
    /// (ranges of real files)
    ///
    /// The default is files for a directory, ior-libs3-single for `api = S3-libs3`, else native. Rates of
    /// different mappings cannot be compared, because the mappings send different requests.
    #[arg(long, value_name = "MAPPING", help_heading = "IO500 options")]
    pub(crate) mapping: Option<String>,

    /// Do not run; verify the formulas and hashes of a result.txt or result_summary.txt, ours or IO500's, or of a
    /// result directory together with its config.ini
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath, help_heading = "IO500 options")]
    pub(crate) verify: Option<PathBuf>,

    /// Do not run; print the phases in order
    #[arg(long, conflicts_with = "verify", help_heading = "IO500 options")]
    pub(crate) list: bool,

    /// Do not run; print the hash of the configuration
    #[arg(long, conflicts_with = "verify", help_heading = "IO500 options")]
    pub(crate) config_hash: bool,

    /// Phases to run: standard, or extended with mdworkbench, find-easy and find-hard (default: standard)
    #[arg(long, value_name = "MODE", help_heading = "IO500 options")]
    pub(crate) mode: Option<String>,

    /// Rate at which the target is expected to take data, such as 2GiB/s
    ///
    /// The run says beforehand how much it will write, and is refused on a directory whose file system has no room
    /// for that. Without this flag, the rate of a directory is measured with a file of 64 MiB.
    #[arg(long, value_name = "RATE", value_parser = byte_rate, help_heading = "IO500 options")]
    pub(crate) expect_rate: Option<u64>,

    /// Leave the files in the target
    #[arg(long, help_heading = "IO500 options")]
    pub(crate) keep: bool,

    #[command(flatten)]
    pub(crate) target: TargetArgs,

    #[command(flatten)]
    pub(crate) load: LoadArgs,

    #[command(flatten)]
    pub(crate) agents: AgentsArgs,

    /// Run directory (default: a directory named after the start time, below the configuration's `resultdir`)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Output options")]
    pub(crate) out: Option<PathBuf>,

    /// Log every operation into the run directory (ops-*.parquet or ops-*.csv.zst)
    #[arg(
        long,
        value_parser = choice(OP_LOG_FORMATS),
        value_name = "FORM",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "parquet",
        help_heading = "Output options"
    )]
    pub(crate) op_log: Option<OpLogFormat>,
}
