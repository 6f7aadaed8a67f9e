//! `bucketload study`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};

use super::values::duration;

const EXAMPLES: &str = "\
Examples:
  bucketload study list
  bucketload study ossperf --quick --target embedded
      OSSperf's tables on the embedded server
  bucketload study ostorebench --quick
      Starts Swift, Ceph, MinIO (and SeaweedFS where weed is on the PATH) one after the other
  bucketload study cosbench --time 30m --target ours=s3://bench --endpoint-url http://host:9000
      As many repetitions as half an hour holds
  bucketload study mine.toml --dir results/mine
      A study of your own; the same command again goes on where it was interrupted
  bucketload study report results/mine

A target is the name of one of the study, server:NAME (a script of servers/), embedded, posix:DIR,
serve:DIR, libs3:DIR (the library in the process), gateway:DIR and gateway-unix:DIR (the library over a
gateway), or what --target of `bucketload run` takes; NAME= in front names it. Credentials come from the
environment. Targets that the study starts are started one after the other.

Exit code 1: a cell failed, or a gate of a cell did. Cells that were left out are named.";

/// Repeat a published study, or one of your own, on your stores, with one report
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

    /// Measure this target instead of those of the study (may be repeated)
    #[arg(long, short, value_name = "TARGET", help_heading = "Study options")]
    pub(crate) target: Vec<String>,

    /// URL of the service for the targets of --target that are URLs
    #[arg(long, value_name = "URL", requires = "target", value_hint = ValueHint::Url, help_heading = "Study options")]
    pub(crate) endpoint_url: Option<String>,

    /// Measure these experiments only
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        help_heading = "Study options"
    )]
    pub(crate) only: Vec<String>,

    /// Fit the repetitions to this time, such as 30m
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Study options")]
    pub(crate) time: Option<Duration>,

    /// Short runs and small data, as the study's table `quick` says: a first look
    #[arg(long, help_heading = "Study options")]
    pub(crate) quick: bool,

    /// Repetitions of each cell; with --time, the most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100), help_heading = "Study options")]
    pub(crate) repetitions: Option<u32>,

    /// Seed of the order and of the runs; unless given the study's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=i64::MAX as u64), help_heading = "Study options")]
    pub(crate) seed: Option<u64>,

    /// Measure also what failed or was left out before
    #[arg(long, help_heading = "Study options")]
    pub(crate) retry: bool,

    /// Directory with the scripts of servers; unless given `servers` in the working directory or above it, else those that the program carries
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Study options")]
    pub(crate) servers: Option<PathBuf>,

    /// Print the plan and do nothing
    #[arg(long, help_heading = "Study options")]
    pub(crate) dry_run: bool,

    /// Directory of the study; unless given bucketload-studies/NAME. An unfinished study in it goes on
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Output options")]
    pub(crate) dir: Option<PathBuf>,
}

/// What else can be done with studies.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum StudyCommand {
    /// List the studies inside the program
    List,
    /// Print a study, to begin one of your own
    Show {
        /// Its name
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Make the report of a study's directory anew
    Report {
        /// Directory of the study, finished or not
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        dir: PathBuf,
    },
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::{StudyArgs, StudyCommand};
    use crate::cli::{Cli, Command};

    fn parse(line: &str) -> Result<StudyArgs, String> {
        match Cli::try_parse_from(line.split_whitespace())
            .map_err(|e| e.to_string())?
            .command
        {
            Command::Study(args) => Ok(*args),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn a_name_or_a_word() {
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
