//! `bucketload convert`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// Check a COSBench workload and write it in expanded form, as COSBench understands it
///
/// Refuses everything that COSBench would refuse when the workload is submitted, or fail on when a stage
/// starts, and names its place in the file. Warns about everything that COSBench silently ignores. The
/// result is what COSBench stores as `workload-config.xml`: inherited settings and defaults are filled in,
/// and special works have their operation.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:\n  bucketload convert workload.xml --out expanded.xml")]
pub(crate) struct ConvertArgs {
    /// The workload file, XML
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    /// File to write (default: standard output)
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,

    /// Write keys and passwords instead of ***
    #[arg(long)]
    pub(crate) show_secrets: bool,
}
