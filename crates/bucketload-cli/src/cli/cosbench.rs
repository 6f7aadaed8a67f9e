//! Flags of COSBench workloads.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

/// What concerns COSBench workloads (XML) only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "COSBench options (for workloads in XML)")]
pub(crate) struct CosbenchArgs {
    /// Let the workload replace and delete objects and containers that exist already
    ///
    /// A COSBench workload names containers and objects without any mark of the run. Unless this is given,
    /// the run is refused when one that it would replace or delete is there before it begins.
    #[arg(long)]
    pub(crate) delete_named: bool,

    /// Let the operation localwrite write files below this directory of this machine
    ///
    /// COSBench's localwrite measures the driver's own disk: it writes FILES/CONTAINER/OBJECT. Workloads that
    /// name it are refused unless this is given, and `files` has to lie in DIR.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) allow_local_writes: Option<PathBuf>,

    /// Leave these operations out, such as restore,localwrite; the ratios of the others grow
    #[arg(long, value_name = "OP,...", value_delimiter = ',')]
    pub(crate) skip_operations: Vec<String>,

    /// Whose numbers the artifacts hold; unless given, ours
    ///
    /// `strict` reproduces COSBench: operations count when they began and ended in the window, percentiles
    /// are upper edges of 10-ms buckets, rates are sums of the workers' rates, containers and objects in
    /// sequence keep step.
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) compat: Option<Compat>,

    /// Write COSBench's archive (run-history.csv, workloads.csv, wN-NAME/...) into this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) cosbench_artifacts: Option<PathBuf>,

    /// Number of the workload in that archive, the N of wN-NAME; unless given the next free one
    #[arg(long, value_name = "N", requires = "cosbench_artifacts", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) cosbench_number: Option<u64>,
}

/// How closely COSBench is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compat {
    /// As COSBench computes
    Strict,
}

impl CosbenchArgs {
    /// The first flag that was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        [
            ("--delete-named", self.delete_named),
            ("--allow-local-writes", self.allow_local_writes.is_some()),
            ("--skip-operations", !self.skip_operations.is_empty()),
            ("--compat", self.compat.is_some()),
            ("--cosbench-artifacts", self.cosbench_artifacts.is_some()),
        ]
        .into_iter()
        .find_map(|(flag, given)| given.then_some(flag))
    }
}
