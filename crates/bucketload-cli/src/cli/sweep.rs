//! `bucketload sweep`.

use clap::{Args, ValueHint};

use super::capacity::StudyOutputArgs;
use super::run::LoadArgs;
use super::target::TargetArgs;
use super::workload::WorkloadArgs;

const EXAMPLES: &str = "\
Examples:
  bucketload sweep get --over workers=1..128 --duration 1m --target s3://bench --endpoint-url http://host:9000
  bucketload sweep put --over size=4KiB,64KiB,1MiB --workers 16
  bucketload sweep online-service --over rate=100/s..1600/s --repetitions 5
  bucketload sweep get --over endpoints=1,2,4 --endpoint-url http://host{1...4}:9000 --target s3://bench
  bucketload sweep mixed --over 'mix=get=9,put=1;get=1,put=9'

FIELD is workers, rate, size, endpoints, any other workload option without its dashes, or the path
of a field as for --set. A..B doubles from A to B; A..B+S goes from A to B in steps of S. Separate
values that contain commas by semicolons.

The Universal Scalability Law is fitted to six or more numbers of workers or endpoints that span a
factor of 32; fewer are reported as efficiency.";

/// Measure a workload at several values of one field, several times each, in random order
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SweepArgs {
    /// Name of a built-in workload or a workload file, with one measuring phase
    #[arg(value_name = "WORKLOAD", value_hint = ValueHint::FilePath)]
    pub(crate) workload: String,

    /// The field and its values, such as workers=1,2,4..128
    #[arg(long, value_name = "FIELD=VALUES")]
    pub(crate) over: String,

    /// Runs at each value
    #[arg(long, visible_alias = "runs", value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repetitions: u32,

    #[command(flatten)]
    pub(crate) target: TargetArgs,

    #[command(flatten)]
    pub(crate) workload_args: WorkloadArgs,

    #[command(flatten)]
    pub(crate) load: LoadArgs,

    #[command(flatten)]
    pub(crate) output: StudyOutputArgs,
}
