//! Flags of `bundle` and `verify-bundle`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// Pack a run or study into one file, with all data behind its figures
///
/// The bundle contains the settings, plan, seed, events, intervals, histograms, environment and reports, each with its
/// SHA-256. The same directory gives the same bytes. `bucketload verify-bundle` computes every figure again.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:\n  bucketload bundle runs/my-run -o evidence.bundle.tar.zst")]
pub(crate) struct BundleArgs {
    /// Run directory, or directory of capacity, sweep, study-grid, s3-hpc or study
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: PathBuf,

    /// File to write (default: the directory's name with .bundle.tar.zst, beside the directory)
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,
}

/// Verify a bundle: check every checksum, and compute every figure again from the data
///
/// The exit code is 0 if everything matches. It is 1 if a byte was changed or a figure does not follow from the data;
/// file, field, stored value and computed value are then printed. It is 2 if the file is not a bundle, or not one that
/// may be unpacked.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:\n  bucketload verify-bundle evidence.bundle.tar.zst")]
pub(crate) struct VerifyBundleArgs {
    /// The bundle
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    /// Most bytes to unpack, such as 200GiB (default: 64GiB)
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_size: Option<String>,

    /// Directory in which to unpack (default: the system's directory for temporary files)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) work_dir: Option<PathBuf>,
}
