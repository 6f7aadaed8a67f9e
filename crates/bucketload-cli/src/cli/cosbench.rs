//! Flags of COSBench workloads.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

/// Flags that apply to COSBench workloads (XML) only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "COSBench options (for workloads in XML)")]
pub(crate) struct CosbenchArgs {
    /// Allow the workload to replace and delete objects and containers that exist already
    ///
    /// A COSBench workload names its containers and objects itself, so nothing marks them as the run's. Without
    /// this flag, the run is refused if a container or object that it would replace or delete exists before it
    /// starts.
    #[arg(long)]
    pub(crate) delete_named: bool,

    /// Allow the operation localwrite to write files below this directory on this machine
    ///
    /// COSBench's localwrite measures the driver's own disk: it writes FILES/CONTAINER/OBJECT. Workloads that use
    /// it are refused without this flag, and `files` must be inside DIR. With agents, each writes on its own machine;
    /// those that --launch starts have this permission, others need `agent --allow-local-writes`.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) allow_local_writes: Option<PathBuf>,

    /// Run the workload's triggers: scripts in this directory of this machine
    ///
    /// DIR/NAME with the trigger's arguments runs before its stage or the workload, and DIR/NAME -k after it; what is
    /// left is then killed. The run waits at most 10 s for the first and 60 s for the second. Their output is in scripts.log
    /// in the run directory. Without this flag, triggers are ignored with a note.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) allow_triggers: Option<PathBuf>,

    /// Skip these operations, such as restore,localwrite; the ratios of the others grow accordingly
    #[arg(long, value_name = "OP,...", value_delimiter = ',')]
    pub(crate) skip_operations: Vec<String>,

    /// How to compute the numbers in the artifacts (default: Bucketload's own way)
    ///
    /// `strict` reproduces COSBench: operations count if they started and ended in the window, percentiles
    /// are upper edges of 10-ms buckets, rates are sums of the workers' rates, and sequential containers and
    /// objects advance in step.
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) compat: Option<Compat>,

    /// Write COSBench's archive (run-history.csv, workloads.csv, wN-NAME/...) into this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) cosbench_artifacts: Option<PathBuf>,

    /// Number of the workload in that archive, the N of wN-NAME (default: the next free number)
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
    /// The first of these flags that was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        [
            ("--delete-named", self.delete_named),
            ("--allow-local-writes", self.allow_local_writes.is_some()),
            ("--allow-triggers", self.allow_triggers.is_some()),
            ("--skip-operations", !self.skip_operations.is_empty()),
            ("--compat", self.compat.is_some()),
            ("--cosbench-artifacts", self.cosbench_artifacts.is_some()),
        ]
        .into_iter()
        .find_map(|(flag, given)| given.then_some(flag))
    }
}
