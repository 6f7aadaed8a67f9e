//! The flags of `bucketload doctor`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::target::TargetArgs;

const EXAMPLES: &str = "\
Examples:
  bucketload doctor s3://bucket/prefix --endpoint-url http://host:9000
  bucketload doctor s3://bucket --write-dialect store.toml
  bucketload run online-service --target s3://bucket --dialect store.toml

Exit codes: 0 ready; 1 something differs; 2 mistake on the command line; 3 not usable; 5 something was left in the target";

/// Examine a store: say what works, what differs and what to do about it
///
/// Connects as a run would, and asks for everything that a workload may need: names and addresses, TLS, connections,
/// clocks, signatures, rights, conditions, checksums, listings, multipart uploads, deletions. Each line says what the
/// server answered and what to do. Writes only below PREFIX/bucketload-doctor-ID/ and removes that again.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// What to examine, as for --target
    #[arg(value_name = "TARGET", conflicts_with = "target")]
    pub(crate) url: Option<String>,

    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,

    /// Write what differs to a dialect file, for --dialect
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) write_dialect: Option<PathBuf>,

    /// Create the bucket if it does not exist, and delete it again
    #[arg(long)]
    pub(crate) create_bucket: bool,

    /// Skip measuring what this client could drive
    #[arg(long)]
    pub(crate) no_calibration: bool,

    #[command(flatten)]
    pub(crate) target: TargetArgs,
}
