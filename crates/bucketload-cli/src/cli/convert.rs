//! `bucketload convert`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// Check a COSBench workload and write it out as COSBench understands it
///
/// Everything that COSBench would refuse when the workload is submitted, or stop at when a stage starts,
/// is refused here at once, with its place in the file. What COSBench ignores without a word is printed
/// as a warning. The result is what COSBench keeps as `workload-config.xml`: everything inherited
/// written out, every default filled in, special works with their operation.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:\n  bucketload convert workload.xml --out expanded.xml")]
pub(crate) struct ConvertArgs {
    /// The workload file, XML
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    /// File to write; standard output unless given
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,

    /// Write secrets out; unless given, keys and passwords become ***
    #[arg(long)]
    pub(crate) show_secrets: bool,
}
