//! `bucketload study`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};

use super::values::duration;

const EXAMPLES: &str = "\
Examples:
  bucketload study list
  bucketload study ossperf --quick --target embedded
      Reproduce OSSperf's tables on the embedded server
  bucketload study ostorebench --quick
      Start Swift, Ceph, MinIO (and SeaweedFS if weed is on the PATH) one after another
  bucketload study cosbench --time 30m --target ours=s3://bench --endpoint-url http://host:9000
      Run as many repetitions as fit into half an hour
  bucketload study ai --quick --target one=s3://bench --target two=s3://bench \
      --endpoint-url one=http://host1:9000 --endpoint-url two=http://host2:9000
      Training, checkpoints and the cache of a language model on two stores
  bucketload study mine.toml --dir results/mine
      Run your own study; after an interruption, the same command continues it
  bucketload study report results/mine

A target is the name of a target of the study, server:NAME (a script of servers/), embedded,
posix:DIR, serve:DIR, libs3:DIR (the library in the process), gateway:DIR and gateway-unix:DIR (the
library over a gateway), or a URL as for --target of `bucketload run`; NAME= in front names the
target. Credentials come from the environment. The study runs the servers that it starts one after
another, each only while its cells are measured.

Exit code 1: a cell failed, or a gate of a cell failed. Skipped cells are listed.";

/// Repeat a published study, or your own, on your stores, with a single report
#[derive(Clone, Debug, Args)]
#[command(
    after_help = EXAMPLES,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    arg_required_else_help = true
)]
pub(crate) struct StudyArgs {
    #[command(subcommand)]
    pub(crate) command: Option<StudyCommand>,

    /// Name of a study (see `bucketload study list`), or a file
    #[arg(value_name = "NAME|FILE.toml", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) study: Option<String>,

    /// Measure this target instead of the study's targets (may be repeated)
    #[arg(long, short, value_name = "TARGET", help_heading = "Study options")]
    pub(crate) target: Vec<String>,

    /// URL of the service, for targets of --target that are URLs; NAME=URL for a single one (may be repeated)
    #[arg(long, value_name = "[NAME=]URL", requires = "target", value_hint = ValueHint::Url, help_heading = "Study options")]
    pub(crate) endpoint_url: Vec<String>,

    /// Create the buckets of targets of --target that are URLs, and delete them after each cell
    #[arg(long, requires = "target", help_heading = "Study options")]
    pub(crate) create_bucket: bool,

    /// Run only these experiments
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        help_heading = "Study options"
    )]
    pub(crate) only: Vec<String>,

    /// Fit the number of repetitions to this time, such as 30m
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Study options")]
    pub(crate) time: Option<Duration>,

    /// Take a first look, with short runs and little data as in the study's table `quick`
    #[arg(long, help_heading = "Study options")]
    pub(crate) quick: bool,

    /// Repetitions of each cell; with --time, the maximum
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100), help_heading = "Study options")]
    pub(crate) repetitions: Option<u32>,

    /// Seed of the order and of the runs (default: the study's seed)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=i64::MAX as u64), help_heading = "Study options")]
    pub(crate) seed: Option<u64>,

    /// Also measure cells that failed or were skipped before
    #[arg(long, help_heading = "Study options")]
    pub(crate) retry: bool,

    /// Directory with the scripts of servers (default: `servers` in the working directory or above it, else the
    /// scripts built into the program)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Study options")]
    pub(crate) servers: Option<PathBuf>,

    /// Print the plan, and do nothing
    #[arg(long, help_heading = "Study options")]
    pub(crate) dry_run: bool,

    /// Directory of the study (default: bucketload-studies/NAME); an unfinished study in it is continued
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Output options")]
    pub(crate) dir: Option<PathBuf>,
}

/// Other commands on studies.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum StudyCommand {
    /// List the built-in studies
    List,
    /// Print a study, to start your own from it, or the trace `conversations`
    Show {
        /// Name of the study, or `conversations`
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Rewrite the report of a study's directory
    Report {
        /// Directory of the study, finished or not
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        dir: PathBuf,
    },
}

#[cfg(test)]
mod tests {
    use super::{StudyArgs, StudyCommand};
    use crate::cli::{Command, command};

    fn parse(line: &str) -> Result<StudyArgs, String> {
        match command(line)? {
            Command::Study(args) => Ok(*args),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn a_study_is_named_or_a_subcommand_given() {
        let args = parse("bucketload study ossperf --quick -t a=mem: -t minio --time 30m").unwrap();
        assert_eq!(args.study.as_deref(), Some("ossperf"));
        assert_eq!(args.target, ["a=mem:", "minio"]);
        assert_eq!(args.time.unwrap().as_secs(), 1800);
        assert!(matches!(
            parse("bucketload study list").unwrap().command,
            Some(StudyCommand::List)
        ));
        let report = parse("bucketload study report x").unwrap().command;
        assert!(matches!(report, Some(StudyCommand::Report { .. })));
        for wrong in [
            "bucketload study",
            "bucketload study x --endpoint-url http://a",
            "bucketload study x --repetitions 0",
            "bucketload study list --quick",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
