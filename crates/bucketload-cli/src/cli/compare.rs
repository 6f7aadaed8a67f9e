//! `bucketload compare`.

use std::path::PathBuf;
use std::time::Duration;

use bucketload_core::stats::decide::DEFAULT_MARGIN;
use clap::{Args, Parser, ValueEnum, ValueHint};

use super::run::LoadArgs;
use super::target::TargetArgs;
use super::values::{duration, margin};
use super::workload::WorkloadArgs;

const EXAMPLES: &str = "\
Examples:
  bucketload compare runs/before runs/after
      Two run directories, or two directories of several runs each (typically 5)
  bucketload compare --a runs/mon runs/tue --b runs/wed runs/thu --margin 3%
  bucketload compare s3://old/t s3://new/t --workload online-service --runs 5 --duration 60s \\
      --a-with \"--endpoint-url http://old:9000\" --b-with \"--endpoint-url http://new:9000\"
      Two targets, measured alternately with the same operations and the same schedule
  bucketload compare get --a-with \"--workers 16\" --b-with \"--workers 32\" --allow-different workload
      One workload with different settings
  bucketload compare runs/main runs/branch --fail-on slower --output markdown
      A gate in CI: exit code 1 if B is slower by more than the margin

The statistics treat runs, not requests, as the samples: intervals come from the variation between
runs. Verdicts are faster, slower, equivalent and inconclusive; ratios are B over A.";

/// Compare two sets of runs, or measure two targets or workloads alternately, and say which is faster
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompareArgs {
    /// The baseline: a directory of runs, a target (s3://…, file:///…, mem:, null:) or a workload
    #[arg(value_name = "A", required_unless_present = "a_runs", conflicts_with = "a_runs", value_hint = ValueHint::AnyPath)]
    pub(crate) a: Option<String>,

    /// What to compare with the baseline, of the same kind (default: A, with the flags of --b-with)
    #[arg(value_name = "B", conflicts_with = "b_runs", value_hint = ValueHint::AnyPath)]
    pub(crate) b: Option<String>,

    #[command(flatten)]
    pub(crate) comparison: ComparisonArgs,

    #[command(flatten)]
    pub(crate) live: LiveArgs,

    #[command(flatten)]
    pub(crate) target: TargetArgs,

    #[command(flatten)]
    pub(crate) workload_args: WorkloadArgs,

    #[command(flatten)]
    pub(crate) load: LoadArgs,
}

/// How runs are compared, and what is printed.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Comparison options")]
pub(crate) struct ComparisonArgs {
    /// Run directories of the baseline
    #[arg(long = "a", value_name = "DIR", num_args = 1.., requires = "b_runs", value_hint = ValueHint::DirPath)]
    pub(crate) a_runs: Vec<PathBuf>,

    /// Run directories to compare with the baseline
    #[arg(long = "b", value_name = "DIR", num_args = 1.., requires = "a_runs", value_hint = ValueHint::DirPath)]
    pub(crate) b_runs: Vec<PathBuf>,

    /// Compare runs in pairs, first with first: they have the same seed and schedule and were measured alternately
    #[arg(long)]
    pub(crate) paired: bool,

    /// Largest difference that does not matter
    #[arg(long, value_name = "SHARE", default_value_t = Margin(DEFAULT_MARGIN), value_parser = |text: &str| margin(text).map(Margin))]
    pub(crate) margin: Margin,

    /// Allow the sides to differ in this: the path of a field such as phases.run.works, `workload` for all
    /// fields, or `verdict` for runs that are not VALID (may be repeated)
    #[arg(long, value_name = "FIELD")]
    pub(crate) allow_different: Vec<String>,

    /// Outcome that makes the exit code 1
    #[arg(long, value_enum, value_name = "WORD", default_value_t)]
    pub(crate) fail_on: FailOn,

    /// Format of the comparison on standard output
    #[arg(long, short, value_enum, value_name = "FORMAT", default_value_t)]
    pub(crate) output: CompareFormat,

    /// Write the report page to this file (default: report.html in --out if the runs are measured here)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,
}

/// How to measure runs for the comparison.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Options for measuring runs")]
pub(crate) struct LiveArgs {
    /// The workload, if A and B are targets
    #[arg(long, value_name = "WORKLOAD", value_hint = ValueHint::FilePath)]
    pub(crate) workload: Option<String>,

    /// Target and workload flags for A only, in one argument; they replace the flags for both sides
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true)]
    pub(crate) a_with: Option<String>,

    /// Target and workload flags for B only
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true)]
    pub(crate) b_with: Option<String>,

    /// Runs per side (default: 5)
    #[arg(long, visible_alias = "repetitions", value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub(crate) runs: Option<u32>,

    /// Order of the runs (default: abba)
    #[arg(long, value_enum, value_name = "ORDER")]
    pub(crate) order: Option<Order>,

    /// Seed of the random order (default: a random one, which is printed)
    #[arg(long, value_name = "N")]
    pub(crate) order_seed: Option<u64>,

    /// Pause before each run, for the stores to recover (default: 2s)
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) pause: Option<Duration>,

    /// Directory for the run directories (default: bucketload-runs/compare-WORKLOAD-TIME)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
}

/// A margin, shown as a percentage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Margin(pub(crate) f64);

impl std::fmt::Display for Margin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}%", (self.0 * 1e6).round() / 1e4)
    }
}

/// The outcome that makes the exit code 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// B is slower by more than the margin
    #[default]
    Slower,
    /// B is slower, or the runs do not rule that out
    Inconclusive,
    /// No outcome
    Never,
}

/// Order of the runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Order {
    /// A B B A A B B A …: linear drift of the environment cancels
    #[default]
    Abba,
    /// Pairs of A and B, each in random order
    Random,
}

/// Formats of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompareFormat {
    /// A table for people
    #[default]
    Text,
    /// One JSON document
    Json,
    /// One row per quantity as comma-separated values
    Csv,
    /// A table for pull requests
    Markdown,
}

/// Flags of one side, as given to `--a-with`.
#[derive(Debug, Default, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
pub(crate) struct SideArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) workload_args: WorkloadArgs,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::{CompareArgs, FailOn, LiveArgs, Margin, SideArgs};
    use crate::cli::values::words;
    use crate::cli::{Cli, Command};

    fn parse(line: &str) -> Result<CompareArgs, String> {
        let words = words(line)?;
        match Cli::try_parse_from(words)
            .map_err(|e| e.to_string())?
            .command
        {
            Command::Compare(args) => Ok(*args),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn directories_need_no_flags() {
        let args = parse("bucketload compare x y").unwrap();
        assert_eq!(
            (args.a.as_deref(), args.b.as_deref()),
            (Some("x"), Some("y"))
        );
        let comparison = &args.comparison;
        assert_eq!(
            (comparison.margin, comparison.fail_on),
            (Margin(0.05), FailOn::Slower)
        );
        assert_eq!(args.live, LiveArgs::default());
        let lists = parse("bucketload compare --a x y --b z --margin 3%").unwrap();
        assert_eq!(
            (lists.comparison.a_runs.len(), lists.comparison.b_runs.len()),
            (2, 1)
        );
        assert_eq!(lists.comparison.margin.to_string(), "3%");
    }

    #[test]
    fn contradictions_are_refused() {
        for wrong in [
            "bucketload compare",
            "bucketload compare x --a y --b z",
            "bucketload compare --a x",
            "bucketload compare x y --runs 1",
            "bucketload compare x y --margin 0",
            "bucketload compare x y --margin 100%",
            "bucketload compare x y --fail-on faster",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_side_has_flags_of_its_own() {
        let args = parse(
            "bucketload compare get --workers 8 --a-with '--workers 16 --size \"4k/70:1m/30\"' \
             --b-with '--endpoint-url http://h:1'",
        )
        .unwrap();
        let a = words(args.live.a_with.as_deref().unwrap()).unwrap();
        let a = SideArgs::try_parse_from(a).unwrap();
        assert_eq!(a.workload_args.workers.as_deref(), Some("16"));
        assert_eq!(a.workload_args.size.as_deref(), Some("4k/70:1m/30"));
        let b = words(args.live.b_with.as_deref().unwrap()).unwrap();
        let b = SideArgs::try_parse_from(b).unwrap().target;
        let url = b.settings.get(&bucketload_target::flags::ENDPOINT_URL);
        assert_eq!(url, Some("http://h:1"));
        assert!(words("--x 'y").is_err());
    }
}
