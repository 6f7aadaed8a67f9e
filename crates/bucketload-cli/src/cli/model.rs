//! `bucketload model`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::trace::TraceArgs;

/// Fit a workload to recorded requests and report how well it fits
///
/// Prints the goodness of fit. The workload reproduces arrivals, mix, sizes and popularity; it contains no
/// names from the trace.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Example:\n  bucketload model access.log.gz --write my.toml && bucketload run my.toml"
)]
pub(crate) struct ModelArgs {
    #[command(flatten)]
    pub(crate) trace: TraceArgs,

    /// Write the workload to this file (default: print it after the report)
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) write: Option<PathBuf>,

    /// Format of the report
    #[arg(long, short, value_enum, value_name = "FORMAT", default_value_t)]
    pub(crate) output: ModelOutput,

    /// Name of the workload (default: the name of the file)
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Seed of the schedules by which candidate models are judged
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
}

/// Formats of the report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModelOutput {
    /// Tables for people
    #[default]
    Text,
    /// One JSON document that includes the workload
    Json,
}
