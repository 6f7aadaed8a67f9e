//! `bucketload capacity`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::run::LoadArgs;
use super::target::TargetArgs;
use super::workload::WorkloadArgs;

const EXAMPLES: &str = "\
Examples:
  bucketload capacity online-service --slo 'p99<50ms,errors<0.1%' --target s3://bench --endpoint-url http://host:9000
  bucketload capacity get --size 4KiB --slo 'get.p99.9<20ms' --start-rate 500/s --quick
  bucketload capacity unet3d.toml --slo 'au>=90%' --over accelerators --target s3://bench --endpoint-url http://host:9000
      The most accelerators that the store keeps busy; `train --show` prints such a file
  bucketload capacity mlperf-1.toml --slo 'get.p95<200ms' --over users --target s3://bench --endpoint-url http://host:9000
      The most users of a language model whose reads are fast enough; `kvcache --preset mlperf-1 --show` prints such a file

An objective is [CLASS.][ttfb.]pNN, mean or max < DURATION; [CLASS.]errors < SHARE; or
[CLASS.]throughput > RATE or SIZE/s. The metrics of studies are accepted by their names too: bandwidth,
first-byte, p999. Durations are response times from the intended start; a failed operation counts as
the timeout. Without an objective for errors, errors<=0.1% applies.

The search doubles the rate from --start-rate until an objective is missed, halves the gap until
its ends are 5 % apart, and confirms both ends in random order. Trials last long enough for the
percentile (at least 60 s) unless --trial-duration or --quick says otherwise.

Exit code 1: the objectives are missed at the lowest rate, or no capacity could be confirmed.";

/// Find the highest rate at which a store meets its service level objectives
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CapacityArgs {
    /// Name of a built-in workload or a workload file, with one measuring phase
    #[arg(value_name = "WORKLOAD", value_hint = ValueHint::FilePath)]
    pub(crate) workload: String,

    #[command(flatten)]
    pub(crate) search: SearchArgs,

    #[command(flatten)]
    pub(crate) target: TargetArgs,

    #[command(flatten)]
    pub(crate) workload_args: WorkloadArgs,

    #[command(flatten)]
    pub(crate) load: LoadArgs,

    #[command(flatten)]
    pub(crate) output: StudyOutputArgs,
}

/// How to search.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Search options")]
pub(crate) struct SearchArgs {
    /// The objectives, such as 'p99<50ms,errors<0.1%'
    #[arg(long, value_name = "OBJECTIVE,...")]
    pub(crate) slo: String,

    /// Search for the largest number of accelerators of a workload that trains, or of users of a language model, instead
    /// of a rate
    ///
    /// Each trial goes through the training; with --trial-duration or --quick, through as much of it as the time
    /// allows. The data set bounds the number: each accelerator needs three steps. Users are those of each client. They ask
    /// as long as the workload says, for --trial-duration, or for 10 s with --quick.
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with_all = ["start_rate", "max_rate"])]
    pub(crate) over: Option<Over>,

    /// Lowest rate to try; reference trials run at half of it
    #[arg(long, value_name = "RATE", default_value = "100/s")]
    pub(crate) start_rate: String,

    /// Highest rate to try (default: no limit)
    #[arg(long, value_name = "RATE")]
    pub(crate) max_rate: Option<String>,

    /// Length of each trial (default: 60s, or longer if the highest percentile needs it)
    #[arg(long, value_name = "TIME")]
    pub(crate) trial_duration: Option<String>,

    /// Trials that confirm each end of the bracket; 0 for none (default: 5, or 3 with --quick)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=50))]
    pub(crate) confirm: Option<u32>,

    /// Get a rough answer: trials of about 10 s, 3 confirmations, reference trials only after failures
    #[arg(long)]
    pub(crate) quick: bool,
}

/// What a search varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Over {
    /// Accelerators of a workload that trains
    Accelerators,
    /// Users of each client of a workload with the cache of a language model
    Users,
}

/// Output of commands that measure several runs.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Output options")]
pub(crate) struct StudyOutputArgs {
    /// Format of the result on standard output
    #[arg(long, short, value_enum, value_name = "FORMAT", default_value_t)]
    pub(crate) output: StudyFormat,

    /// Directory for the trials and the report (default: bucketload-runs/COMMAND-WORKLOAD-TIME)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
}

/// Formats of the result of several runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum StudyFormat {
    /// Tables for people
    #[default]
    Text,
    /// One JSON document at the end
    Json,
}

#[cfg(test)]
mod tests {
    use super::CapacityArgs;
    use crate::cli::{Command, command};

    fn parse(line: &str) -> Result<CapacityArgs, String> {
        match command(line)? {
            Command::Capacity(args) => Ok(*args),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn an_objective_is_all_it_needs() {
        let args = parse("bucketload capacity get --slo p99<5ms --size 4k --threads 1").unwrap();
        assert_eq!(
            (args.search.slo.as_str(), args.search.confirm),
            ("p99<5ms", None)
        );
        assert_eq!(args.search.start_rate, "100/s");
        assert!(parse("bucketload capacity get").is_err());
        assert!(parse("bucketload capacity get --slo p99<5ms --confirm 51").is_err());
    }
}
