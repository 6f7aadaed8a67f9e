//! Flags of `bundle` and `verify-bundle`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// Pack a run or study with all that its figures follow from into one file
///
/// Holds what was asked for, plan, seed, events, intervals, histograms, environment and reports, each with its
/// SHA-256; the same directory gives the same bytes. `bucketload verify-bundle` computes every figure anew.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:\n  bucketload bundle runs/my-run -o evidence.bundle.tar.zst")]
pub(crate) struct BundleArgs {
    /// Run directory, or directory of capacity, sweep, study-grid, s3-hpc or study
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: PathBuf,

    /// File to write; unless given the directory's name with .bundle.tar.zst, beside it
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,
}

/// Check a bundle: every checksum, and every figure computed anew from the data
///
/// Exit code 0 when all of it holds; 1 when a byte was changed or a figure does not follow, with file, field, what
/// stands there and what follows; 2 for what is no bundle, or not one that may be unpacked.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:\n  bucketload verify-bundle evidence.bundle.tar.zst")]
pub(crate) struct VerifyBundleArgs {
    /// The bundle
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    /// Most bytes to unpack, such as 200GiB; 64GiB unless given
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_size: Option<String>,

    /// Directory in which to unpack; the system's for temporary files unless given
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) work_dir: Option<PathBuf>,
}
